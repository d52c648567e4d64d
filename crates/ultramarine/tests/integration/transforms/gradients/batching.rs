//! Every batching rule against a loop, alone and with derivatives.

use super::{close, for_each_case, listed, operands};
use crate::support::arrays::uniform;
use ultramarine::transforms::{vjp, vmap};
use ultramarine::{Array, Result, stack};
use ultramarine_test_support::Rng;

/// Which operands are mapped, and along which axis, as `vmap` takes it.
fn patterns(operands: usize, ndims: &[usize]) -> Vec<Vec<Option<isize>>> {
    let mut out = vec![vec![Some(0); operands], vec![Some(-1); operands]];
    if operands > 1 {
        for k in 0..operands {
            let mut alone = vec![None; operands];
            alone[k] = Some(ndims[k] as isize / 2);
            out.push(alone);
        }
    }
    out
}

#[test]
fn batching_rules() {
    const BATCH: usize = 3;
    let mut rng = Rng::new(4);
    for_each_case(|case| {
        let ndims: Vec<usize> = case.operands.iter().map(|o| o.shape.len()).collect();
        for axes in patterns(ndims.len(), &ndims) {
            let batched = operands(&mut rng, case, Some(BATCH))?;
            let example = |i: usize| -> Result<Vec<Array>> {
                batched
                    .iter()
                    .zip(&axes)
                    .map(|(a, axis)| {
                        let i = if axis.is_some() { i } else { 0 };
                        a.take(Array::scalar(i as i32), Some(0))
                    })
                    .collect()
            };
            let inputs: Vec<Array> = batched
                .iter()
                .zip(&axes)
                .map(|(a, axis)| match axis {
                    Some(axis) => a.moveaxis(0, *axis),
                    None => a.take(Array::scalar(0i32), Some(0)),
                })
                .collect::<Result<_>>()?;
            let f = listed(case.f);
            let got = &vmap(f, &inputs, &axes, 0)?[0];
            let want: Vec<Array> =
                (0..BATCH).map(|i| (case.f)(&example(i)?)).collect::<Result<_>>()?;
            let want = stack(&want, 0)?;
            assert_eq!(got.shape(), want.shape(), "{}: vmap {axes:?}", case.name);
            close(case.name, &format!("vmap {axes:?}"), got, &want.to_vec::<f64>()?);

            // The gradient of each example, and the gradient through the batch.
            let weight = uniform(&mut rng, (case.f)(&example(0)?)?.shape(), -1.0, 1.0);
            let slopes = |x: &[Array]| -> Result<Vec<Array>> {
                Ok(vjp(f, x, std::slice::from_ref(&weight))?.1)
            };
            let got = vmap(slopes, &inputs, &axes, 0)?;
            for (k, got) in got.iter().enumerate() {
                let want: Vec<Array> = (0..BATCH)
                    .map(|i| Ok(slopes(&example(i)?)?.swap_remove(k)))
                    .collect::<Result<_>>()?;
                let want = stack(&want, 0)?.to_vec::<f64>()?;
                close(case.name, &format!("vmap {axes:?} of vjp {k}"), got, &want);
            }
            let summed = |x: &[Array]| -> Result<Vec<Array>> {
                let out = vmap(f, x, &axes, 0)?;
                Ok(vec![out[0].multiply(&weight)?.sum(None)?])
            };
            let (_, through) = vjp(summed, &inputs, &[Array::scalar(1.0f64)])?;
            for (k, through) in through.iter().enumerate() {
                let want = match axes[k] {
                    Some(axis) => got[k].moveaxis(0, axis)?,
                    None => got[k].sum(0)?,
                };
                close(
                    case.name,
                    &format!("vjp {k} of vmap {axes:?}"),
                    through,
                    &want.to_vec::<f64>()?,
                );
            }
        }
        Ok(())
    });
}
