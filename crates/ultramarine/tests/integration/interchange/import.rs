//! What an import is: values, addresses, flags, copies.

use super::foreign::{Memory, Tensor};
use super::own_stream;
use ultramarine::interchange::{ImportOptions, dlpack::device_type, dlpack::flag};
use ultramarine::{Array, Device, Dtype, Error, Result};

const COPY: ImportOptions = ImportOptions { device: None, copy: Some(true) };
const NEVER: ImportOptions = ImportOptions { device: None, copy: Some(false) };

fn numbers() -> Vec<i32> {
    (0..24).collect()
}

#[test]
fn the_memory_is_shared_and_given_back() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&numbers());
    for legacy in [false, true] {
        let tensor = Tensor::new(&memory, Dtype::Int32, &[4, 6]);
        let (tensor, count) = if legacy { tensor.make_legacy() } else { tensor.make() };
        let x = Array::from_dlpack_with(tensor, NEVER)?;
        assert_eq!((x.shape(), x.dtype()), (&[4, 6][..], Dtype::Int32));
        assert_eq!(x.value()?.data(), memory.at(0));
        assert_eq!(x.to_vec::<i32>()?, numbers());
        assert!(x.is_evaluated() && x.value()?.buffer.is_escaped());
        let y = x.clone();
        drop(x);
        assert_eq!(count.get(), 0);
        drop(y);
        assert_eq!(count.get(), 1);
    }
    Ok(())
}

#[test]
fn layouts_of_all_sorts() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&numbers());
    let of = |shape: &[i64]| Tensor::new(&memory, Dtype::Int32, shape);
    let check = |tensor: Tensor, first: usize, wanted: &[i32]| -> Result<()> {
        let (tensor, count) = tensor.make();
        let x = Array::from_dlpack_with(tensor, NEVER)?;
        assert_eq!(x.to_vec::<i32>()?, wanted);
        assert_eq!(x.value()?.data(), memory.at(4 * first));
        // Every view of it has to find the elements, too.
        let twice = (&x.flip(None)?.transpose()? + 0)?.transpose()?.flip(None)?;
        assert_eq!(twice.to_vec::<i32>()?, wanted);
        drop((x, twice));
        assert_eq!(count.get(), 1);
        Ok(())
    };
    check(of(&[3]).strides(&[1]), 0, &[0, 1, 2])?;
    check(of(&[2, 3]).strides(&[1, 2]), 0, &[0, 2, 4, 1, 3, 5])?;
    check(of(&[2, 3]).strides(&[0, 1]), 0, &[0, 1, 2, 0, 1, 2])?;
    check(of(&[2, 2]).strides(&[0, 0]).offset(8), 2, &[2; 4])?;
    check(of(&[3]).strides(&[-2]).offset(40), 10, &[10, 8, 6])?;
    check(of(&[2, 3]).strides(&[6, -1]).offset(20), 5, &[5, 4, 3, 11, 10, 9])?;
    check(of(&[2, 2]).strides(&[-6, -1]).offset(36), 9, &[9, 8, 3, 2])?;
    // An offset and a data pointer in the middle of the memory.
    check(of(&[2]).data(memory.at(12)).offset(4), 4, &[4, 5])?;
    // Sizes of 1 may have any stride.
    check(of(&[1, 2, 1]).strides(&[999, 1, i64::MIN]), 0, &[0, 1])?;
    check(of(&[1, 1]).strides(&[i64::MAX, -77]), 0, &[0])?;
    check(of(&[2, 1, 2]).strides(&[4, i64::MAX, 2]), 0, &[0, 2, 4, 6])?;
    let mut scalar = of(&[]).offset(28);
    check(scalar.clone(), 7, &[7])?;
    (scalar.shape, scalar.strides) = (None, None);
    check(scalar, 7, &[7])?;
    let (tensor, _) = of(&[1, 4, 1]).strides(&[7, 2, -7]).make();
    assert_eq!(Array::from_dlpack(tensor)?.value()?.strides[..], [4, 2, 1]);
    Ok(())
}

#[test]
fn nothing_at_all() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&numbers());
    let null = std::ptr::null_mut();
    let of = |shape: &[i64]| Tensor::new(&memory, Dtype::Float32, shape);
    let absurd = [i64::MAX, i64::MIN, 3];
    for tensor in [
        of(&[0]),
        of(&[0]).data(null),
        of(&[2, 0, 3]).data(null).strides(&absurd),
        of(&[2, 0, 3]).strides(&absurd).offset(3),
        of(&[0, 7, 1]).data(null).strides(&absurd).offset(usize::MAX),
        of(&[0]).data(memory.at(1)),
    ] {
        for options in [ImportOptions::default(), COPY, NEVER] {
            let (made, count) = tensor.make();
            let x = Array::from_dlpack_with(made, options)?;
            assert!(x.to_vec::<f32>()?.is_empty());
            let y = x.flip(None)?.transpose()?.add(Array::scalar(1.0f32))?;
            assert!(y.to_vec::<f32>()?.is_empty());
            let again = x.to_dlpack()?;
            assert!(again.tensor().data.is_null() && again.tensor().byte_offset == 0);
            assert_eq!(Array::from_dlpack(again)?.shape(), x.shape());
            drop((x, y));
            assert_eq!(count.get(), 1);
        }
    }
    Ok(())
}

#[test]
fn every_dtype() -> Result<()> {
    let _scope = own_stream()?;
    let bytes: Vec<u8> = (0..64u8).map(|b| b & 1).collect();
    let memory = Memory::new(&bytes);
    for dtype in Dtype::ALL {
        let (tensor, _) = Tensor::new(&memory, dtype, &[3]).make();
        let x = Array::from_dlpack_with(tensor, NEVER)?;
        assert_eq!((x.dtype(), x.value()?.data()), (dtype, memory.at(0)));
        x.with_bytes(|b| assert_eq!(b, &bytes[..3 * dtype.size()]))?;
        let back = x.to_dlpack()?;
        assert_eq!((back.dtype(), back.tensor().data), (dtype.to_dl(), memory.at(0).cast()));
    }
    Ok(())
}

#[test]
fn misaligned_memory_is_copied_where_that_is_allowed() -> Result<()> {
    let _scope = own_stream()?;
    let mut bytes = vec![0xeeu8; 3];
    numbers().iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
    let memory = Memory::new(&bytes);
    let plain = Tensor::new(&memory, Dtype::Int32, &[4]).offset(3);
    let turned = Tensor::new(&memory, Dtype::Int32, &[2, 2, 1])
        .data(memory.at(3))
        .offset(20)
        .strides(&[-5, 2, 77]);
    for (tensor, wanted) in [(plain, [0, 1, 2, 3]), (turned, [5, 7, 0, 2])] {
        for options in [ImportOptions::default(), COPY] {
            let (made, count) = tensor.make();
            let x = Array::from_dlpack_with(made, options)?;
            assert_eq!(count.get(), 1, "given back at once");
            assert!(!x.value()?.buffer.is_escaped());
            assert_eq!(x.to_vec::<i32>()?, wanted);
        }
        let (made, count) = tensor.make();
        match Array::from_dlpack_with(made, NEVER) {
            Err(Error::Buffer(text)) => assert!(text.contains("aligned for int32"), "{text}"),
            other => panic!("{:?}", other.map(|_| ())),
        }
        assert_eq!(count.get(), 1);
    }
    // complex64 is two float32.
    let of = |offset| Tensor::new(&memory, Dtype::Complex64, &[2]).offset(offset).make().0;
    assert_eq!(Array::from_dlpack_with(of(4), NEVER)?.value()?.data(), memory.at(4));
    assert!(Array::from_dlpack_with(of(2), NEVER).is_err());
    let of = |offset| Tensor::new(&memory, Dtype::Float64, &[2]).offset(offset).make().0;
    assert!(Array::from_dlpack_with(of(4), NEVER).is_err());
    Array::from_dlpack(of(4))?.eval()
}

/// Memory that is aligned for what it was given as need not be for what its bits are seen as.
#[test]
fn bits_at_odd_addresses_are_copied() -> Result<()> {
    let _scope = own_stream()?;
    let mut bytes = vec![0xee];
    [1.5f32, -2.0].iter().for_each(|x| bytes.extend(x.to_ne_bytes()));
    let memory = Memory::new(&bytes);
    for start in [0, 1] {
        let (tensor, _) = Tensor::new(&memory, Dtype::Uint8, &[8]).offset(start).make();
        let x = Array::from_dlpack_with(tensor, NEVER)?.view(Dtype::Float32)?;
        let at = x.value()?.data();
        assert!(at.cast::<f32>().is_aligned(), "{at:?}");
        assert_eq!(at == memory.at(0), start == 0);
        if start == 1 {
            assert_eq!(x.to_vec::<f32>()?, [1.5, -2.0]);
        }
    }
    Ok(())
}

#[test]
fn a_copy_is_a_copy_at_once() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&numbers());
    let of = |shape: &[i64]| Tensor::new(&memory, Dtype::Int32, shape);
    let layouts = [
        (of(&[3]), vec![0, 1, 2]),
        (of(&[2, 3]).strides(&[1, 2]), vec![0, 2, 4, 1, 3, 5]),
        (of(&[2, 2]).strides(&[0, -1]).offset(4), vec![1, 0, 1, 0]),
        (of(&[]), vec![0]),
    ];
    for (tensor, wanted) in layouts {
        for device in [None, Some(Device::CPU)] {
            let (made, count) = tensor.clone().flags(flag::READ_ONLY).make();
            let x = Array::from_dlpack_with(made, ImportOptions { device, copy: Some(true) })?;
            assert_eq!(count.get(), 1);
            let value = x.value()?;
            assert!(!value.buffer.is_escaped() && !value.buffer.is_read_only());
            memory.write(0, 77i32);
            assert_eq!(x.to_vec::<i32>()?, wanted);
            memory.write(0, 0i32);
        }
    }
    // Asked for a device that it is on, it is no copy.
    let (made, _) = of(&[3]).make();
    let here = ImportOptions { device: Some(Device::CPU), copy: None };
    assert_eq!(Array::from_dlpack_with(made, here)?.value()?.data(), memory.at(0));
    Ok(())
}

#[test]
fn read_only_memory_stays_so() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&numbers());
    let (made, _) =
        Tensor::new(&memory, Dtype::Int32, &[3]).flags(flag::READ_ONLY | 1 << 40).make();
    let x = Array::from_dlpack(made)?;
    assert!(x.value()?.buffer.is_read_only());
    let view = x.slice(&[1], &[3], &[1])?;
    for array in [&x, &view] {
        assert!(array.to_dlpack()?.is_read_only());
    }
    let again = Array::from_dlpack(view.to_dlpack()?)?;
    assert!(again.to_dlpack()?.is_read_only(), "over any number of journeys");
    Ok(())
}

#[test]
fn a_bool_may_be_any_byte() -> Result<()> {
    let _scope = own_stream()?;
    let bytes = [0u8, 1, 2, 255, 128, 0, 3, 1];
    let memory = Memory::new(&bytes.repeat(100));
    let (made, _) = Tensor::new(&memory, Dtype::Bool, &[800]).make();
    let x = Array::from_dlpack(made)?;
    assert_eq!(x.value()?.data(), memory.at(0));
    let truth: Vec<bool> = bytes.repeat(100).iter().map(|b| *b != 0).collect();
    assert_eq!(x.to_vec::<bool>()?, truth);
    // What the others make of it may be anything, but is something.
    let ys = [
        x.astype(Dtype::Int32),
        x.sort(Some(0))?,
        x.argsort(Some(0))?,
        (&x + &x)?,
        x.logical_not()?,
    ];
    for y in &ys {
        y.eval()?;
    }
    assert_eq!(ys[4].to_vec::<bool>()?.len(), 800);
    Ok(())
}

#[test]
fn pinned_memory_is_the_hosts() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&numbers());
    for (kind, id) in [(device_type::CUDA_HOST, 3), (device_type::ROCM_HOST, 0)] {
        let (made, count) = Tensor::new(&memory, Dtype::Int32, &[3]).device(kind, id).make();
        let x = Array::from_dlpack(made)?;
        assert_eq!((x.device(), x.value()?.data()), (Device::CPU, memory.at(0)));
        assert_eq!((&x + 1)?.to_vec::<i32>()?, [1, 2, 3]);
        drop(x);
        assert_eq!(count.get(), 1);
    }
    Ok(())
}
