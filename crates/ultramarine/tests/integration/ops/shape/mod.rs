//! Views and what is made of them.

mod concatenate;
mod pad;
mod tile;

use ultramarine::{Array, Dtype, Error, Result, broadcast_arrays, meshgrid};

fn ints(data: &[i32], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).expect("the shape fits")
}

/// 0, 1, 2 ... in a shape.
fn counted(shape: &[usize]) -> Array {
    let data: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
    Array::from_slice(&data, shape).expect("the shape fits")
}

#[test]
fn inferred_shapes() -> Result<()> {
    let x = counted(&[2, 3, 4]);
    let z = Array::zeros(&[0, 3], Dtype::Float32)?;
    assert_eq!(x.reshape(&[-1, 4])?.shape(), [6, 4]);
    assert_eq!(z.reshape(&[-1, 3])?.shape(), [0, 3]);
    assert_eq!(z.reshape(&[5, 0])?.shape(), [5, 0]);
    for bad in [&[5isize, -1][..], &[-1, -1], &[7], &[-2, 3], &[-1, 0], &[isize::MAX, 16]] {
        assert!(matches!(x.reshape(bad), Err(Error::Value(_))), "{bad:?}");
    }
    assert!(matches!(z.reshape(&[0, -1]), Err(Error::Value(_))));
    let flat = |a, b| x.flatten(a, b).map(|y| y.shape().to_vec());
    assert_eq!(flat(1, -1)?, [2, 12]);
    assert_eq!(flat(0, 1)?, [6, 4]);
    assert_eq!(flat(0, 5)?, [24]);
    assert_eq!(flat(-9, -1)?, [24]);
    assert!(flat(2, 1).is_err() && flat(5, -1).is_err());
    assert_eq!(Array::scalar(1i32).flatten(0, -1)?.shape(), [1]);
    assert_eq!(x.unflatten(2, &[2, -1])?.shape(), [2, 3, 2, 2]);
    assert!(matches!(x.unflatten(3, &[2, 2]), Err(Error::Index(_))));
    assert!(matches!(x.unflatten(2, &[3, -1]), Err(Error::Value(_))));
    assert!(matches!(x.unflatten::<isize>(2, &[]), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn axes_moved_added_removed() -> Result<()> {
    let x = counted(&[2, 3, 4]);
    assert_eq!(x.transpose()?.shape(), [4, 3, 2]);
    assert_eq!(x.swapaxes(0, -1)?.shape(), [4, 3, 2]);
    assert_eq!(x.moveaxis(0, -1)?.shape(), [3, 4, 2]);
    assert!(matches!(x.moveaxis(0, 3), Err(Error::Index(_))));
    assert!(matches!(x.transpose_axes([0, 1, 1]), Err(Error::Value(_))));
    assert!(matches!(x.transpose_axes([0, 1, 7]), Err(Error::Index(_))));
    assert_eq!(x.expand_dims([0, -1])?.shape(), [1, 2, 3, 4, 1]);
    assert_eq!(x.expand_dims([-1, 0])?.shape(), [1, 2, 3, 4, 1]);
    assert!(matches!(x.expand_dims([0, 0]), Err(Error::Value(_))));
    assert!(matches!(x.expand_dims([0, 5]), Err(Error::Index(_))));
    let s = Array::ones(&[1, 2, 1], Dtype::Int32)?;
    assert_eq!(s.squeeze(None)?.shape(), [2]);
    assert_eq!(s.squeeze(0)?.shape(), [2, 1]);
    assert!(matches!(s.squeeze(1), Err(Error::Value(_))));
    assert!(matches!(s.squeeze(5), Err(Error::Index(_))));
    let vector = counted(&[3]);
    assert_eq!(vector.atleast_2d()?.shape(), [1, 3]);
    assert_eq!(vector.atleast_3d()?.shape(), [1, 3, 1]);
    assert_eq!(counted(&[3, 4]).atleast_3d()?.shape(), [3, 4, 1]);
    assert_eq!(Array::scalar(1i32).atleast_1d()?.shape(), [1]);
    Ok(())
}

/// Python's rule for one axis, written down naively.
fn python_slice(n: isize, start: isize, stop: isize, step: isize) -> Vec<i32> {
    let wrap = |p: isize| if p < 0 { p.saturating_add(n) } else { p };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let (mut at, stop) = (wrap(start).clamp(low, high), wrap(stop).clamp(low, high));
    let mut out = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        out.push(at as i32);
        at += step;
    }
    out
}

#[test]
fn slices_of_all_kinds() -> Result<()> {
    for n in 0..5isize {
        let x = counted(&[n as usize]);
        for start in -6..7 {
            for stop in [-isize::MAX, -6, -3, -1, 0, 1, 2, 4, 6, isize::MAX] {
                for step in [-7, -2, -1, 1, 2, 3, 7] {
                    let y = x.slice(&[start], &[stop], &[step])?;
                    let expected = python_slice(n, start, stop, step);
                    assert_eq!(y.to_vec::<i32>()?, expected, "{n}: {start}:{stop}:{step}");
                }
            }
        }
    }
    assert!(matches!(counted(&[3]).slice(&[0], &[1], &[0]), Err(Error::Value(_))));
    assert!(matches!(counted(&[3]).slice(&[], &[], &[]), Err(Error::Value(_))));
    let x = counted(&[2, 3]);
    assert_eq!(x.flip(None)?.to_vec::<i32>()?, [5, 4, 3, 2, 1, 0]);
    assert_eq!(x.flip(-1)?.to_vec::<i32>()?, [2, 1, 0, 5, 4, 3]);
    // A slice of a slice, transposed.
    let y = counted(&[4, 6]).slice(&[-1, 1], &[isize::MIN, 6], &[-2, 2])?.transpose()?;
    assert_eq!(y.to_vec::<i32>()?, [19, 7, 21, 9, 23, 11]);
    Ok(())
}

#[test]
fn diagonals() -> Result<()> {
    let (rows, columns) = (3, 4);
    let x = counted(&[rows, columns]);
    for k in -5..6isize {
        let naive: Vec<i32> = (0..rows as isize)
            .filter(|r| (0..columns as isize).contains(&(r + k)))
            .map(|r| (r * columns as isize + r + k) as i32)
            .collect();
        assert_eq!(x.diagonal(k, 0, 1)?.to_vec::<i32>()?, naive, "{k}");
        assert_eq!(x.transpose()?.diagonal(k, 1, 0)?.to_vec::<i32>()?, naive, "{k}");
        let back = x.diagonal(k, 0, 1)?.diag(k)?;
        assert_eq!(back.diag(k)?.to_vec::<i32>()?, naive);
    }
    let t = counted(&[2, 3, 4]);
    assert_eq!(t.diagonal(1, 0, 1)?.shape(), [4, 2]);
    assert!(matches!(t.diagonal(0, 1, 1), Err(Error::Value(_))));
    assert!(matches!(t.diagonal(0, 1, 7), Err(Error::Index(_))));
    assert!(matches!(counted(&[3]).diagonal(0, 0, 1), Err(Error::Value(_))));
    assert!(matches!(t.diag(0), Err(Error::Value(_))));
    assert_eq!(counted(&[2]).diag(-1)?.to_vec::<i32>()?, [0, 0, 0, 0, 0, 0, 0, 1, 0]);
    Ok(())
}

#[test]
fn strided_stays_inside() -> Result<()> {
    let x = counted(&[4, 3]);
    let y = x.transpose()?.as_strided(&[2, 2], &[1, 3], 4)?;
    // Over the row-major elements of the transposed array: 0 3 6 9 1 4 7 10 ...
    assert_eq!(y.to_vec::<i32>()?, [1, 10, 4, 2]);
    assert_eq!(x.as_strided(&[3], &[-1], 2)?.to_vec::<i32>()?, [2, 1, 0]);
    assert_eq!(x.as_strided(&[0, 3], &[99, 99], 99)?.size(), 0);
    let bad: [(&[usize], &[isize], usize); 5] = [
        (&[13], &[1], 0),
        (&[2], &[-1], 0),
        (&[2, 2], &[1], 0),
        (&[1], &[1], 12),
        (&[9], &[isize::MAX], 0),
    ];
    for (shape, strides, offset) in bad {
        assert!(matches!(x.as_strided(shape, strides, offset), Err(Error::Value(_))), "{shape:?}");
    }
    Ok(())
}

#[test]
fn absurd_positions_and_steps() -> Result<()> {
    let extremes = [isize::MIN, isize::MIN + 1, -1, 0, 1, isize::MAX - 1, isize::MAX];
    let x = counted(&[3, 4]);
    for a in extremes {
        for b in extremes {
            for step in extremes.into_iter().filter(|s| *s != 0) {
                let y = x.slice(&[a, b], &[b, a], &[step, step])?;
                // Once more over it, so that its strides are computed with.
                let z = y.flip(None)?.transpose()?.flatten(0, -1)?;
                assert_eq!(z.to_vec::<i32>()?.len(), y.size());
            }
        }
        let d = x.diagonal(a, 0, 1)?.flip(None)?;
        assert_eq!(d.to_vec::<i32>()?.len(), d.size());
        let strided = x.as_strided(&[1, 0], &[a, isize::MIN], 5)?.flip(None)?;
        assert_eq!(strided.to_vec::<i32>()?, [0i32; 0]);
        assert_eq!(x.as_strided(&[1, 1], &[a, a], 5)?.flip(None)?.view(Dtype::Int8)?.size(), 4);
    }
    Ok(())
}

#[test]
fn bits_under_another_type() -> Result<()> {
    let x = Array::from_slice(&[1.0f32, -2.0, 0.5, 4.0], &[2, 2])?;
    let bits: Vec<i32> = [1.0f32, -2.0, 0.5, 4.0].iter().map(|v| v.to_bits() as i32).collect();
    assert_eq!(x.view(Dtype::Int32)?.to_vec::<i32>()?, bits);
    assert_eq!(x.view(Dtype::Uint16)?.shape(), [2, 4]);
    assert_eq!(x.view(Dtype::Uint16)?.view(Dtype::Float32)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    // The last axis does not lie densely: a copy comes first.
    let t = x.transpose()?.view(Dtype::Uint64)?;
    assert_eq!(t.view(Dtype::Float32)?.to_vec::<f32>()?, [1.0, 0.5, -2.0, 4.0]);
    // Constants have bits, too.
    assert_eq!(
        Array::ones(&[2], Dtype::Float32)?.view(Dtype::Int32)?.to_vec::<i32>()?,
        [0x3f800000; 2]
    );
    let bools = Array::from_slice(&[1i32, 0, 256], &[3])?.view(Dtype::Bool)?;
    assert_eq!(bools.shape(), [12]);
    assert_eq!(bools.to_vec::<bool>()?.iter().filter(|b| **b).count(), 2);
    assert!(matches!(
        Array::ones(&[2, 3], Dtype::Int8)?.view(Dtype::Float32),
        Err(Error::Value(_))
    ));
    assert!(matches!(Array::scalar(1.0f32).view(Dtype::Int8), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn parts() -> Result<()> {
    let x = counted(&[2, 3, 4]);
    let shapes = |parts: Vec<Array>| parts.iter().map(|p| p.shape()[1]).collect::<Vec<_>>();
    assert_eq!(shapes(x.split(3, 1)?), [1, 1, 1]);
    assert_eq!(shapes(x.split_at(&[1], 1)?), [1, 2]);
    assert_eq!(shapes(x.split_at(&[1, 1, 2, 9], 1)?), [1, 0, 1, 1, 0]);
    assert_eq!(shapes(x.split_at(&[2, 1], 1)?), [2, 0, 2]);
    assert_eq!(shapes(x.split_at(&[-1], 1)?), [2, 1]);
    assert_eq!(shapes(x.split_at(&[], 1)?), [3]);
    assert!(matches!(x.split(2, 1), Err(Error::Value(_))));
    assert!(matches!(x.split(0, 1), Err(Error::Value(_))));
    assert!(matches!(x.split(2, 5), Err(Error::Index(_))));
    let rows = x.unstack(1)?;
    assert_eq!((rows.len(), rows[0].shape()), (3, &[2usize, 4][..]));
    assert_eq!(rows[2].to_vec::<i32>()?, [8, 9, 10, 11, 20, 21, 22, 23]);
    assert!(matches!(Array::scalar(1i32).unstack(0), Err(Error::Index(_))));
    Ok(())
}

#[test]
fn broadcasting() -> Result<()> {
    let x = counted(&[2, 3]);
    assert_eq!(x.broadcast_to(&[2, 2, 3])?.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    for bad in [&[2usize, 4][..], &[3], &[1, 3]] {
        assert!(matches!(x.broadcast_to(bad), Err(Error::Value(_))), "{bad:?}");
    }
    let both = broadcast_arrays(&[x.clone(), counted(&[2, 1])])?;
    assert_eq!(both[1].to_vec::<i32>()?, [0, 0, 0, 1, 1, 1]);
    assert!(broadcast_arrays(&[] as &[Array])?.is_empty());
    assert!(broadcast_arrays(&[x.clone(), counted(&[4])]).is_err());
    let (a, b) = (counted(&[2]), counted(&[3]));
    let xy = meshgrid(&[a.clone(), b.clone()], false, "xy")?;
    assert_eq!((xy[0].shape(), xy[0].to_vec::<i32>()?), (&[3usize, 2][..], vec![0, 1, 0, 1, 0, 1]));
    let ij = meshgrid(&[a.clone(), b.clone()], true, "ij")?;
    assert_eq!((ij[0].shape(), ij[1].shape()), (&[2usize, 1][..], &[1usize, 3][..]));
    assert!(matches!(meshgrid(&[a, b], false, "yx"), Err(Error::Value(_))));
    Ok(())
}
