//! Derivatives and batching of all linear operations.

use Dtype::*;
use ultramarine::transforms::{jvp, vjp, vmap};
use ultramarine::{Array, Dtype, PadMode, Result, concatenate, stack};

/// 1, 2, 3 ... in a shape.
fn counted(shape: &[usize]) -> Array {
    let data: Vec<f32> = (1..=shape.iter().product::<usize>()).map(|v| v as f32).collect();
    Array::from_slice(&data, shape).expect("the shape fits")
}

type Linear = (&'static str, &'static [usize], fn(&Array) -> Result<Array>);

/// Linear functions of one array, with the shape of their argument.
const LINEAR: &[Linear] = &[
    ("broadcast", &[3, 1], |x| x.broadcast_to(&[2, 3, 4])),
    ("reshape", &[2, 6], |x| x.transpose()?.reshape(&[3, 4])),
    ("transpose", &[2, 3, 4], |x| x.transpose_axes([2, 0, 1])),
    ("slice", &[4, 5], |x| x.slice(&[3, 1], &[isize::MIN, 5], &[-2, 3])),
    ("diagonal", &[3, 4, 2], |x| x.diagonal(-1, 1, 0)),
    ("diag", &[3], |x| x.diag(1)),
    ("strided", &[3, 3], |x| x.as_strided(&[3, 2, 2], &[1, 2, 1], 1)),
    ("concatenate", &[2, 3], |x| concatenate(&[x.clone(), x.flip(None)?, x.clone()], 1)),
    ("stack", &[2, 3], |x| stack(&[x.clone(), Array::zeros(&[2, 3], Float32)?], 1)),
    ("pad", &[2, 3], |x| x.pad(&[(1, 2), (0, 1)], PadMode::Constant, Array::scalar(0i32))),
    ("reflect", &[2, 3], |x| x.pad(&[(1, 2), (0, 4)], PadMode::Reflect, Array::scalar(0i32))),
    ("edge", &[2, 3], |x| x.pad(&[(1, 2), (2, 1)], PadMode::Edge, Array::scalar(0i32))),
    ("repeat", &[2, 3], |x| x.repeat(3, Some(1))),
    ("tile", &[2, 3], |x| x.tile(&[2, 2, 1])),
    ("roll", &[2, 3], |x| x.roll(&[1, -2], [0, 1])),
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
        let (_, forward) = jvp(call, std::slice::from_ref(&x), std::slice::from_ref(&t))?;
        let expected = f(&t)?;
        assert_eq!(forward[0].shape(), expected.shape(), "{name}");
        assert_eq!(forward[0].to_vec::<f32>()?, expected.to_vec::<f32>()?, "{name} forward");
        let c = counted(expected.shape());
        let (_, reverse) = vjp(call, std::slice::from_ref(&x), std::slice::from_ref(&c))?;
        assert_eq!(reverse[0].shape(), *shape, "{name}");
        let dot = |a: &Array, b: &Array| a.multiply(b)?.sum(None)?.item::<f32>();
        assert_eq!(dot(&c, &expected)?, dot(&reverse[0], &t)?, "{name} reverse");
        let mut batch = vec![5];
        batch.extend_from_slice(shape);
        let rows = counted(&batch);
        for axis in 0..=shape.len() as isize {
            let moved = rows.moveaxis(0, axis)?;
            let mapped = vmap(call, &[moved], [Some(axis)], -1)?;
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
    let (_, g) = vjp(run, &[x.clone(), u.clone()], &[ones])?;
    assert_eq!(g[0].to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(g[1].to_vec::<f32>()?, [2.0, 2.0]);
    // Only one operand is mapped.
    let rows = counted(&[5, 2]);
    let only =
        |p: &[Array]| Ok(vec![write(&x, &p[0])?, concatenate(&[p[0].clone(), u.clone()], 0)?]);
    let mapped = vmap(only, std::slice::from_ref(&rows), [Some(0)], 0)?;
    for (i, row) in rows.unstack(0)?.iter().enumerate() {
        assert_eq!(mapped[0].unstack(0)?[i].to_vec::<f32>()?, write(&x, row)?.to_vec::<f32>()?);
        let joined = concatenate(&[row.clone(), u.clone()], 0)?;
        assert_eq!(mapped[1].unstack(0)?[i].to_vec::<f32>()?, joined.to_vec::<f32>()?);
    }
    Ok(())
}
