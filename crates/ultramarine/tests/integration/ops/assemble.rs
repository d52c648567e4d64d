//! Arrays put together from others, creation, and the rules of all linear ops.

use Dtype::*;
use ultramarine::transforms::{jvp, vjp, vmap};
use ultramarine::{Array, Dtype, Error, PadMode, Result, concatenate, stack};

fn ints(data: &[i32], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).expect("the shape fits")
}

/// 1, 2, 3 ... in a shape.
fn counted(shape: &[usize]) -> Array {
    let data: Vec<f32> = (1..=shape.iter().product::<usize>()).map(|v| v as f32).collect();
    Array::from_slice(&data, shape).expect("the shape fits")
}

#[test]
fn joined() -> Result<()> {
    let x = ints(&[0, 1, 2, 3, 4, 5], &[2, 3]);
    let y = concatenate(
        &[
            x.clone(),
            ints(&[6, 7], &[2, 1]),
            x.transpose()?.slice(&[-1, 0], &[isize::MIN, 2], &[-1, 1])?.transpose()?,
        ],
        1,
    )?;
    assert_eq!(y.to_vec::<i32>()?, [0, 1, 2, 6, 2, 1, 0, 3, 4, 5, 7, 5, 4, 3]);
    let empty = Array::zeros(&[0, 3], Int32)?;
    assert_eq!(concatenate(&[empty.clone(), x.clone()], 0)?.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5]);
    assert_eq!(concatenate(&[empty.clone(), empty], 0)?.shape(), [0, 3]);
    let mixed = concatenate(&[x.clone(), x.astype(Float16)], -2)?;
    assert_eq!((mixed.dtype(), mixed.shape()), (Float16, &[4usize, 3][..]));
    let value = |r: Result<Array>| matches!(r, Err(Error::Value(_)));
    let index = |r: Result<Array>| matches!(r, Err(Error::Index(_)));
    assert!(value(concatenate(&[], 0)));
    assert!(value(concatenate(&[x.clone(), ints(&[1, 2], &[2, 1])], 0)));
    assert!(value(concatenate(&[x.clone(), ints(&[1, 2], &[2])], 0)));
    assert!(index(concatenate(&[x.clone(), x.clone()], 2)));
    assert!(index(concatenate(&[Array::scalar(1i32), Array::scalar(2i32)], 0)));
    let s = stack(&[x.clone(), x.clone()], -1)?;
    assert_eq!((s.shape(), &s.to_vec::<i32>()?[..4]), (&[2usize, 3, 2][..], &[0, 0, 1, 1][..]));
    assert!(value(stack(&[], 0)) && value(stack(&[x.clone(), ints(&[1], &[1])], 0)));
    assert!(index(stack(&[x.clone(), x], 4)));
    Ok(())
}

#[test]
fn updates_of_slices() -> Result<()> {
    for (start, stop, step) in
        [(1isize, 6isize, 2isize), (-1, isize::MIN, -3), (2, 2, 1), (0, 7, 1)]
    {
        let x = ints(&[0, 1, 2, 3, 4, 5, 6], &[7]);
        let n = x.slice(&[start], &[stop], &[step])?.size();
        let update = Array::arange(10.0, 10.0 + n as f64, 1.0, Int64)?;
        let y = x.slice_update(&update, &[start], &[stop], &[step])?;
        let mut naive: Vec<i32> = (0..7).collect();
        let mut at = if start < 0 { start + 7 } else { start };
        for v in 0..n {
            naive[at as usize] = 10 + v as i32;
            at += step;
        }
        assert_eq!(y.to_vec::<i32>()?, naive, "{start}:{stop}:{step}");
        // The source is as it was.
        assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5, 6]);
    }
    let x = Array::zeros(&[2, 3], Int32)?;
    let y = x.slice_update(&ints(&[1, 2], &[2, 1]), &[0, 1], &[2, 3], &[1, 1])?;
    assert_eq!(y.to_vec::<i32>()?, [0, 1, 1, 0, 2, 2]);
    assert!(x.slice_update(&ints(&[1, 2, 3, 4], &[4]), &[0, 0], &[2, 3], &[1, 1]).is_err());
    // A chain of updates writes into one buffer.
    let mut chain = x.add(&Array::ones(&[2, 3], Int32)?)?;
    for i in 0..3 {
        chain = chain.slice_update(
            &ints(&[10 * i], &[1]),
            &[0, i as isize],
            &[2, i as isize + 1],
            &[1, 1],
        )?;
    }
    assert_eq!(chain.to_vec::<i32>()?, [0, 10, 20, 0, 10, 20]);
    Ok(())
}

/// The index that padding by mirrors reads, by walking.
fn mirror(mut i: isize, n: isize, mode: PadMode) -> usize {
    if mode == PadMode::Edge {
        return i.clamp(0, n - 1) as usize;
    }
    let skip = (mode == PadMode::Symmetric) as isize;
    while !(0..n).contains(&i) {
        i = if i < 0 { -i - skip } else { 2 * (n - 1) - i + skip };
        if n == 1 {
            i = 0;
        }
    }
    i as usize
}

#[test]
fn padding() -> Result<()> {
    let zero = Array::scalar(0.0f32);
    for n in 1..5usize {
        for mode in [PadMode::Edge, PadMode::Reflect, PadMode::Symmetric] {
            for (low, high) in [(0, 1), (1, 0), (3, 2), (5, 9)] {
                let y = counted(&[n]).pad(&[(low, high)], mode, &zero)?;
                let naive: Vec<f32> = (-(low as isize)..(n + high) as isize)
                    .map(|i| 1.0 + mirror(i, n as isize, mode) as f32)
                    .collect();
                assert_eq!(y.to_vec::<f32>()?, naive, "{n} {mode:?} {low} {high}");
            }
        }
    }
    let x = ints(&[1, 2], &[1, 2]);
    let y = x.pad(&[(1, 0), (0, 1)], PadMode::Constant, &Array::scalar(2.5f32))?;
    assert_eq!((y.dtype(), y.to_vec::<i32>()?), (Int32, vec![2, 2, 2, 1, 2, 2]));
    assert!(matches!(x.pad(&[(1, 1)], PadMode::Constant, &zero), Err(Error::Value(_))));
    let empty = Array::zeros(&[0, 3], Float32)?;
    assert_eq!(empty.pad(&[(1, 1), (1, 1)], PadMode::Edge, &zero)?.shape(), [2, 5]);
    assert!(empty.pad(&[(1, 1), (1, 1)], PadMode::Reflect, &zero).is_err());
    assert!(matches!(PadMode::from_name("zz"), Err(Error::Value(_))));
    assert_eq!(Array::scalar(1i32).pad(&[], PadMode::Constant, &zero)?.shape(), [0usize; 0]);
    Ok(())
}

#[test]
fn repeated_and_rolled() -> Result<()> {
    let x = ints(&[1, 2, 3, 4], &[2, 2]);
    assert_eq!(x.repeat(2, Some(0))?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
    assert_eq!(x.repeat(2, None)?.to_vec::<i32>()?, [1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(x.repeat(0, Some(1))?.shape(), [2, 0]);
    assert!(matches!(x.repeat(2, Some(7)), Err(Error::Index(_))));
    assert!(matches!(x.repeat(usize::MAX, Some(0)), Err(Error::Value(_))));
    assert_eq!(x.tile(&[2, 1])?.to_vec::<i32>()?, [1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(x.tile(&[2])?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
    assert_eq!(x.tile(&[2, 1, 3])?.shape(), [2, 2, 6]);
    assert_eq!(Array::scalar(1i32).tile(&[2])?.to_vec::<i32>()?, [1, 1]);
    assert_eq!(x.tile(&[])?.shape(), [2, 2]);
    let r = ints(&[0, 1, 2, 3, 4, 5], &[6]);
    assert_eq!(r.roll(&[1, 2], None)?.to_vec::<i32>()?, [3, 4, 5, 0, 1, 2]);
    assert_eq!(r.roll(&[-7], Some(&[0]))?.to_vec::<i32>()?, [1, 2, 3, 4, 5, 0]);
    assert_eq!(x.roll(&[1, 1], Some(&[0, 1]))?.to_vec::<i32>()?, [4, 3, 2, 1]);
    assert!(matches!(x.roll(&[1], Some(&[0, 1])), Err(Error::Value(_))));
    assert!(matches!(x.roll(&[1], Some(&[7])), Err(Error::Index(_))));
    assert_eq!(Array::zeros(&[0, 3], Int32)?.roll(&[1], None)?.shape(), [0, 3]);
    assert_eq!(Array::scalar(3i32).roll(&[1], None)?.item::<i32>()?, 3);
    let k = ints(&[1, 2], &[2]).kron(&ints(&[1, 10], &[2, 1]))?;
    assert_eq!((k.shape(), k.to_vec::<i32>()?), (&[2usize, 2][..], vec![1, 2, 10, 20]));
    Ok(())
}

#[test]
fn creation() -> Result<()> {
    let eye = Array::eye(3, 4, 1, Int32)?;
    assert_eq!(eye.to_vec::<i32>()?, [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
    assert_eq!(Array::eye(2, 2, isize::MIN, Int32)?.to_vec::<i32>()?, [0; 4]);
    assert_eq!(Array::identity(2, Float32)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(Array::tri(2, 3, 1, Int32)?.to_vec::<i32>()?, [1, 1, 0, 1, 1, 1]);
    assert_eq!(Array::eye(3, 0, 0, Float32)?.shape(), [3, 0]);
    let x = Array::ones(&[2, 2, 3], Int32)?;
    assert_eq!(x.tril(-1)?.to_vec::<i32>()?[..6], [0, 0, 0, 1, 0, 0]);
    assert_eq!(x.triu(1)?.to_vec::<i32>()?[6..], [0, 1, 1, 0, 0, 1]);
    assert!(matches!(Array::ones(&[3], Int32)?.tril(0), Err(Error::Value(_))));
    let line = |n, end, dtype| Array::linspace(0.0, 10.0, n, end, dtype);
    assert_eq!(line(4, true, Int32)?.to_vec::<i32>()?, [0, 3, 6, 10]);
    assert_eq!(line(4, false, Float32)?.to_vec::<f32>()?, [0.0, 2.5, 5.0, 7.5]);
    assert_eq!(line(1, true, Float32)?.to_vec::<f32>()?, [0.0]);
    assert_eq!(line(0, true, Float32)?.size(), 0);
    let range = |a, b, s| Array::arange(a, b, s, Int32)?.to_vec::<i32>();
    assert_eq!(range(0.0, 5.0, 1.5)?, [0, 1, 2, 3]);
    assert_eq!(range(0.5, 3.5, 1.0)?, [0, 1, 2]);
    assert_eq!(range(-0.5, 2.5, 1.0)?, [0, 0, 0]);
    assert_eq!(range(0.0, -5.0, -2.0)?, [0, -2, -4]);
    assert_eq!(range(5.0, 0.0, 1.0)?, [0i32; 0]);
    for (stop, step) in [(5.0, 0.0), (f64::NAN, 1.0), (f64::INFINITY, 1.0), (1e12, 1.0)] {
        assert!(matches!(Array::arange(0.0, stop, step, Float32), Err(Error::Value(_))));
    }
    assert!(matches!(Array::arange(0.0, 2.0, 1.0, Bool), Err(Error::Value(_))));
    let e = Array::empty(&[3, 0, 2], Float32)?;
    assert!(e.is_evaluated() && e.shape() == [3, 0, 2]);
    assert_eq!(x.empty_like()?.shape(), x.shape());
    assert_eq!(Array::empty(&[64], Bool)?.to_vec::<bool>()?, [false; 64]);
    assert!(matches!(Array::empty(&[usize::MAX, 2], Int8), Err(Error::Value(_))));
    assert_eq!(x.full_like(2.9f32).to_vec::<i32>()?, [2; 12]);
    Ok(())
}

type Linear = (&'static str, &'static [usize], fn(&Array) -> Result<Array>);

/// Linear functions of one array, with the shape of their argument.
const LINEAR: &[Linear] = &[
    ("broadcast", &[3, 1], |x| x.broadcast_to(&[2, 3, 4])),
    ("reshape", &[2, 6], |x| x.transpose()?.reshape(&[3, 4])),
    ("transpose", &[2, 3, 4], |x| x.transpose_axes(&[2, 0, 1])),
    ("slice", &[4, 5], |x| x.slice(&[3, 1], &[isize::MIN, 5], &[-2, 3])),
    ("diagonal", &[3, 4, 2], |x| x.diagonal(-1, 1, 0)),
    ("diag", &[3], |x| x.diag(1)),
    ("strided", &[3, 3], |x| x.as_strided(&[3, 2, 2], &[1, 2, 1], 1)),
    ("concatenate", &[2, 3], |x| concatenate(&[x.clone(), x.flip(None)?, x.clone()], 1)),
    ("stack", &[2, 3], |x| stack(&[x.clone(), Array::zeros(&[2, 3], Float32)?], 1)),
    ("pad", &[2, 3], |x| x.pad(&[(1, 2), (0, 1)], PadMode::Constant, &Array::scalar(0i32))),
    ("reflect", &[2, 3], |x| x.pad(&[(1, 2), (0, 4)], PadMode::Reflect, &Array::scalar(0i32))),
    ("edge", &[2, 3], |x| x.pad(&[(1, 2), (2, 1)], PadMode::Edge, &Array::scalar(0i32))),
    ("repeat", &[2, 3], |x| x.repeat(3, Some(1))),
    ("tile", &[2, 3], |x| x.tile(&[2, 2, 1])),
    ("roll", &[2, 3], |x| x.roll(&[1, -2], Some(&[0, 1]))),
    ("update of zeros", &[2], |x| {
        Array::zeros(&[3, 4], Float32)?.slice_update(x, &[2, 0], &[isize::MIN, 4], &[-1, 2])
    }),
    ("update by zeros", &[3, 4], |x| {
        x.slice_update(&Array::zeros(&[1], Float32)?, &[0, 1], &[3, 3], &[2, 1])
    }),
    ("update of itself", &[3, 4], |x| {
        x.slice_update(&x.slice(&[0, 0], &[2, 2], &[1, 1])?, &[1, 1], &[3, 3], &[1, 1])
    }),
    ("astype", &[4], |x| Ok(x.astype(Float64).astype(Float32))),
    ("contiguous", &[2, 3], |x| Ok(x.transpose()?.contiguous())),
    ("meshgrid", &[3], |x| {
        let grids = ultramarine::meshgrid(&[x.clone(), x.clone()], false, "xy")?;
        grids[0].subtract(&grids[1])
    }),
    ("tril", &[3, 3], |x| x.tril(0)),
];

/// Forward: the function of the tangent. Reverse: the transposed map, so that
/// `<c, f(t)> = <f'(c), t>`. Mapped: the same as row by row, whatever the axis.
#[test]
fn rules_of_linear_functions() -> Result<()> {
    for (name, shape, f) in LINEAR {
        let x = counted(shape);
        let t = x.square()?.subtract(&x.scalar_like(2.0)?)?;
        let call = |p: &[Array]| Ok(vec![f(&p[0])?]);
        let (_, forward) = jvp::<Error>(call, std::slice::from_ref(&x), std::slice::from_ref(&t))?;
        let expected = f(&t)?;
        assert_eq!(forward[0].shape(), expected.shape(), "{name}");
        assert_eq!(forward[0].to_vec::<f32>()?, expected.to_vec::<f32>()?, "{name} forward");
        let c = counted(expected.shape());
        let (_, reverse) = vjp::<Error>(call, std::slice::from_ref(&x), std::slice::from_ref(&c))?;
        assert_eq!(reverse[0].shape(), *shape, "{name}");
        let dot = |a: &Array, b: &Array| a.multiply(b)?.sum(None, false)?.item::<f32>();
        assert_eq!(dot(&c, &expected)?, dot(&reverse[0], &t)?, "{name} reverse");
        let mut batch = vec![5];
        batch.extend_from_slice(shape);
        let rows = counted(&batch);
        for axis in 0..=shape.len() as isize {
            let moved = rows.moveaxis(0, axis)?;
            let mapped = vmap::<Error>(call, &[moved], &[Some(axis)], |n| Ok(vec![Some(-1); n]))?;
            let alone = rows.unstack(0)?.iter().map(f).collect::<Result<Vec<_>>>()?;
            let alone = stack(&alone, -1)?;
            assert_eq!(mapped[0].shape(), alone.shape(), "{name} over {axis}");
            assert_eq!(mapped[0].to_vec::<f32>()?, alone.to_vec::<f32>()?, "{name} over {axis}");
        }
    }
    Ok(())
}

/// Rules of ops with several operands, of which some take no part.
#[test]
fn rules_with_operands_left_out() -> Result<()> {
    let (x, u) = (counted(&[3, 4]), counted(&[2]));
    let write = |x: &Array, u: &Array| x.slice_update(u, &[0, 1], &[3, 3], &[2, 1]);
    let ones = Array::ones(&[3, 4], Float32)?;
    let run = |p: &[Array]| Ok(vec![write(&p[0], &p[1])?]);
    let (_, g) = vjp::<Error>(run, &[x.clone(), u.clone()], &[ones])?;
    assert_eq!(g[0].to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(g[1].to_vec::<f32>()?, [2.0, 2.0]);
    // Only one operand is mapped.
    let rows = counted(&[5, 2]);
    let only =
        |p: &[Array]| Ok(vec![write(&x, &p[0])?, concatenate(&[p[0].clone(), u.clone()], 0)?]);
    let mapped =
        vmap::<Error>(only, std::slice::from_ref(&rows), &[Some(0)], |n| Ok(vec![Some(0); n]))?;
    for (i, row) in rows.unstack(0)?.iter().enumerate() {
        assert_eq!(mapped[0].unstack(0)?[i].to_vec::<f32>()?, write(&x, row)?.to_vec::<f32>()?);
        let joined = concatenate(&[row.clone(), u.clone()], 0)?;
        assert_eq!(mapped[1].unstack(0)?[i].to_vec::<f32>()?, joined.to_vec::<f32>()?);
    }
    Ok(())
}
