//! Arguments at the edges of their types: they give errors or results, never a panic.

use std::{ptr::NonNull, sync::Arc};
use ultramarine::{
    Array, Buffer, BufferRef, Dtype, Error, PadMode, Result, Scalar, concatenate, index, random,
    shape, transforms,
};

/// More elements than any array may have, though fewer bytes of a small dtype.
const VAST: usize = 1 << 61;

fn is_value<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Value(_)))
}

#[test]
fn sizes_that_overflow() -> Result<()> {
    assert_eq!(shape::size(&[usize::MAX, 2, 3]), usize::MAX);
    assert_eq!(shape::size(&[usize::MAX, 2, 0]), 0);
    let vast = shape::contiguous_strides(&[2, usize::MAX, 4, 3]);
    assert_eq!(vast[..], [isize::MAX, 12, 3, 1]);
    assert!(is_value(Array::from_slice(&[1.0f32], &[usize::MAX, 2])));
    assert!(is_value(Array::from_slice::<f32>(&[], &[0, usize::MAX, 2])));
    assert!(is_value(Array::from_bytes(&[], &[usize::MAX, 0], Dtype::Uint8)));
    assert!(is_value(Array::empty(&[VAST, 8], Dtype::Uint8)));
    // Eight bytes for each element would not fit the address space.
    assert!(is_value(Array::zeros(&[VAST], Dtype::Uint8)));
    let x = Array::scalar(true);
    assert!(is_value(x.broadcast_to(&[VAST])));
    let wide = x.broadcast_to(&[VAST >> 2])?;
    assert!(is_value(wide.astype(Dtype::Float64).view(Dtype::Uint8)));
    // What may be described may still be too much to have.
    for huge in [wide.astype(Dtype::Float64), wide.astype(Dtype::Float32).exp()?, wide.contiguous()]
    {
        assert_eq!(huge.nbytes(), huge.size() * huge.itemsize());
        let text = huge.eval().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(text.contains("cannot allocate"), "{text}");
    }
    assert!(is_value(wide.repeat(usize::MAX, None)));
    assert!(is_value(wide.tile(&[usize::MAX, usize::MAX])));
    assert!(is_value(wide.pad(&[(usize::MAX, usize::MAX)], PadMode::Edge, &x)));
    assert!(is_value(wide.outer(&wide)));
    assert!(is_value(concatenate(&vec![wide.clone(); 9], 0)));
    assert!(is_value(random::bits(&[usize::MAX, 3], 1, None)));
    assert!(is_value(random::split(&random::key(1)?, usize::MAX)));
    assert!(is_value(Array::scalar(1.0f32).diag(0)));
    assert!(is_value(Array::ones(&[2], Dtype::Float32)?.diag(isize::MIN)));
    // As many lists as there are rows, each of which fits by itself.
    let rows = Array::scalar(0u8).broadcast_to(&[1 << 30, 1 << 29])?;
    let joined =
        |p: &[Array]| Ok(vec![concatenate(&[p[0].clone(), p[0].clone(), p[0].clone()], 0)?]);
    let mapped = transforms::vmap(joined, &[rows], [Some(0)], 0);
    assert!(is_value(mapped));
    Ok(())
}

#[test]
fn memory_from_outside() -> Result<()> {
    let buffer = || -> Result<BufferRef> {
        let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4])?;
        Ok(a.value()?.buffer.clone())
    };
    let made = |offset, shape: &[usize], strides: &[isize]| {
        Array::from_buffer(buffer()?, offset, shape, strides, Dtype::Float32)
    };
    assert!(is_value(made(usize::MAX - 3, &[0], &[1])));
    assert!(is_value(made(usize::MAX - 3, &[1], &[1])));
    assert!(is_value(made(0, &[2], &[isize::MAX])));
    assert!(is_value(made(0, &[5], &[1])));
    assert!(is_value(made(0, &[2], &[-1])));
    assert!(is_value(made(2, &[1], &[1])));
    assert!(is_value(made(0, &[2], &[1, 1])));
    // Strides that are never taken may be anything.
    let x = made(4, &[1, 2, 1], &[isize::MAX, 2, isize::MIN])?;
    let y = x.flip(None)?.transpose()?.reshape(&[2])?;
    assert_eq!(y.to_vec::<f32>()?, [4.0, 2.0]);
    let z = made(16, &[0, 3], &[isize::MAX, isize::MIN])?.slice(&[0, 2], &[0, 3], &[1, 1])?;
    assert_eq!((z.shape(), z.to_vec::<f32>()?), (&[0, 1][..], vec![]));
    Ok(())
}

#[test]
fn foreign_memory_is_released_after_its_last_reader() -> Result<()> {
    let owner = Arc::new([1.5f32, 2.5, 3.5]);
    let pointer = NonNull::from(&*owner).cast();
    // SAFETY: the numbers live until the owner is dropped, which the buffer does.
    let buffer = unsafe { Buffer::from_foreign(pointer, 12, true, Box::new(owner.clone())) };
    assert!(buffer.is_read_only() && buffer.is_escaped());
    let x = Array::from_buffer(buffer, 4, &[2], &[1], Dtype::Float32)?;
    let y = x.square()?;
    y.eval()?;
    assert_eq!(*owner, [1.5, 2.5, 3.5]);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(x);
    assert_eq!(Arc::strong_count(&owner), 1);
    assert_eq!(y.to_vec::<f32>()?, [6.25, 12.25]);
    Ok(())
}

#[test]
fn bools_are_zero_or_one() -> Result<()> {
    for bits in [1, 2, 0xfe, 0x80] {
        assert_eq!(Scalar::from_bits(Dtype::Bool, bits), Scalar::from(true));
    }
    assert_eq!(Scalar::from_bits(Dtype::Bool, 0x100), Scalar::from(false));
    assert_eq!(Scalar::from_bits(Dtype::Int8, 0x1ff), Scalar::from(-1i8));
    let x = Array::full(&[3], Scalar::from_bits(Dtype::Bool, 2))?;
    assert_eq!(x.to_vec::<bool>()?, [true; 3]);
    let bytes = Array::from_slice(&[0u8, 1, 2, 255], &[4])?;
    let buffer = bytes.value()?.buffer.clone();
    let x = Array::from_buffer(buffer, 0, &[4], &[1], Dtype::Bool)?;
    assert_eq!(x.to_vec::<bool>()?, [false, true, true, true]);
    Ok(())
}

#[test]
fn indices_beyond_all_arrays() -> Result<()> {
    let x = Array::arange(0.0, 5.0, 1.0, Dtype::Int32)?;
    for vast in [usize::MAX, isize::MAX as usize, 1 << 40] {
        assert!(matches!(x.index(&index![vast]), Err(Error::Index(_))), "{vast}");
        assert_eq!(x.index(&index![3..vast])?.to_vec::<i32>()?, [3, 4]);
        assert_eq!(x.index(&index![vast..])?.size(), 0);
    }
    assert!(matches!(x.index(&index![i64::MIN]), Err(Error::Index(_))));
    assert_eq!(x.index(&index![i64::MIN..i64::MAX])?.size(), 5);
    for extreme in [isize::MIN, isize::MAX] {
        assert!(matches!(x.sum(extreme), Err(Error::Index(_))));
        assert!(matches!(x.moveaxis(0, extreme), Err(Error::Index(_))));
        assert!(is_value(x.partition(extreme, Some(0))));
        assert!(is_value(x.topk(extreme, Some(0))));
        assert_eq!(x.roll(&[extreme, extreme], None)?.size(), 5);
        assert_eq!(Array::eye(2, 3, extreme, Dtype::Int32)?.sum(None)?.item::<i32>()?, 0);
        assert_eq!(x.reshape(&[1, 5])?.diagonal(extreme, 0, 1)?.size(), 0);
        assert_eq!(x.split_at(&[extreme], 0)?.len(), 2);
        let place = [extreme];
        for step in [isize::MIN, -1, 1, isize::MAX] {
            assert!(x.slice(&place, &place, &[step])?.size() <= 5);
        }
    }
    assert_eq!(x.slice(&[4], &[isize::MIN], &[isize::MIN])?.to_vec::<i32>()?, [4]);
    let float = x.astype(Dtype::Float32);
    assert_eq!(float.round(i32::MIN)?.size(), 5);
    assert_eq!(float.round(i32::MAX)?.size(), 5);
    Ok(())
}

/// Paddings of many times the array's length: one gather, not a part for each image.
#[test]
fn mirrors_of_mirrors() -> Result<()> {
    for n in 1..5usize {
        let x = Array::arange(0.0, n as f64, 1.0, Dtype::Int32)?;
        for mode in [PadMode::Reflect, PadMode::Symmetric] {
            for (low, high) in [(0, 1), (1, 0), (2, 3), (7, 0), (0, 8), (9, 11), (n, n)] {
                let got = x.pad(&[(low, high)], mode, Array::scalar(0i32))?.to_vec::<i32>()?;
                // Walks to and fro, at the ends turning at once or standing for a step.
                let walk = |steps: usize, from_end: bool| -> Vec<i32> {
                    let (mut at, mut by) = (if from_end { n as i64 - 1 } else { 0 }, 1);
                    if !from_end {
                        by = -1;
                    }
                    let mut out = Vec::new();
                    for _ in 0..steps {
                        if (0..n as i64).contains(&(at + by)) {
                            at += by;
                        } else {
                            by = -by;
                            if mode == PadMode::Reflect && n > 1 {
                                at += by;
                            }
                        }
                        out.push(at as i32);
                    }
                    out
                };
                let mut want = walk(low, false);
                want.reverse();
                want.extend(0..n as i32);
                want.extend(walk(high, true));
                assert_eq!(got, want, "{n} {mode:?} {low} {high}");
            }
        }
    }
    let x = Array::from_slice(&[1i32, 2], &[2])?;
    let long = x.pad(&[(1 << 20, 1)], PadMode::Reflect, Array::scalar(0i32))?;
    assert_eq!(long.sum(None)?.item::<i32>()?, 3 * (1 << 19) + 3 + 1);
    Ok(())
}
