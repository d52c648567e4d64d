//! Every differentiable op against central differences in float64, every batching
//! rule against a loop, and transforms of transforms.

mod inventory;
mod linalg;
mod table;

use table::{Case, NOT_SMOOTH, cases};
use ultramarine::transforms::{grad, jvp, value_and_grad, vjp, vmap};
use ultramarine::{Array, Dtype, Error, Result, stack};
use ultramarine_abi::schema;

/// Step of the central differences, and the error that is let pass.
const STEP: f64 = 1e-5;
const TOLERANCE: f64 = 2e-8;

struct Numbers(u64);

impl Numbers {
    fn next(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        low + (high - low) * ((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }

    fn array(&mut self, shape: &[usize], low: f64, high: f64) -> Result<Array> {
        let n = shape.iter().product();
        let data: Vec<f64> = (0..n).map(|_| self.next(low, high)).collect();
        Array::from_slice(&data, shape)
    }

    fn operands(&mut self, case: &Case, batch: Option<usize>) -> Result<Vec<Array>> {
        case.operands
            .iter()
            .map(|o| {
                let shape: Vec<usize> = batch.into_iter().chain(o.shape.iter().copied()).collect();
                self.array(&shape, o.low, o.high)
            })
            .collect()
    }
}

/// `sum(f(x) * weight)`.
fn weighted(case: &Case, x: &[Array], weight: &Array) -> Result<f64> {
    (case.f)(x)?.multiply(weight)?.sum(None, false)?.item::<f64>()
}

fn moved(x: &Array, i: usize, by: f64) -> Result<Array> {
    let mut data = x.to_vec::<f64>()?;
    data[i] += by;
    Array::from_slice(&data, x.shape())
}

fn close(name: &str, what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{name}: {what}: sizes");
    let scale = want.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            (g - w).abs() <= TOLERANCE.max(1e-7 * scale),
            "{name}: {what}[{i}]: got {g}, central difference {w}"
        );
    }
}

/// The derivative of `weighted` with respect to operand `k`, numerically.
fn numeric(case: &Case, x: &[Array], weight: &Array, k: usize) -> Result<Vec<f64>> {
    (0..x[k].size())
        .map(|i| {
            let mut y = x.to_vec();
            y[k] = moved(&x[k], i, STEP)?;
            let up = weighted(case, &y, weight)?;
            y[k] = moved(&x[k], i, -STEP)?;
            Ok((up - weighted(case, &y, weight)?) / (2.0 * STEP))
        })
        .collect()
}

/// Runs a check of every case and reports all that fail.
fn for_each_case(mut check: impl FnMut(&Case) -> Result<()>) {
    let mut failures = Vec::new();
    for case in &cases() {
        let run = std::panic::AssertUnwindSafe(|| check(case));
        match std::panic::catch_unwind(run) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failures.push(format!("{}: {error}", case.name)),
            Err(panic) => failures.push(match panic.downcast_ref::<String>() {
                Some(text) => text.clone(),
                None => format!("{}: panicked", case.name),
            }),
        }
    }
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn reverse_rules() {
    let mut numbers = Numbers(1);
    for_each_case(|case| {
        let x = numbers.operands(case, None)?;
        let weight = numbers.array((case.f)(&x)?.shape(), -1.0, 1.0)?;
        let (_, gradients) = vjp(
            |x: &[Array]| Ok::<_, Error>(vec![(case.f)(x)?]),
            &x,
            std::slice::from_ref(&weight),
        )?;
        for (k, gradient) in gradients.iter().enumerate() {
            assert_eq!(gradient.shape(), x[k].shape(), "{}", case.name);
            let want = numeric(case, &x, &weight, k)?;
            close(case.name, &format!("vjp of operand {k}"), &gradient.to_vec::<f64>()?, &want);
        }
        Ok(())
    });
}

#[test]
fn forward_rules() {
    let mut numbers = Numbers(2);
    for_each_case(|case| {
        let x = numbers.operands(case, None)?;
        // All operands at once, then each alone: rules see absent tangents too.
        for only in std::iter::once(None).chain((0..x.len()).map(Some)) {
            let tangents: Vec<Array> = x
                .iter()
                .enumerate()
                .map(|(k, a)| match only {
                    Some(o) if o != k => Array::zeros(a.shape(), Dtype::Float64),
                    _ => numbers.array(a.shape(), -1.0, 1.0),
                })
                .collect::<Result<_>>()?;
            let f = |x: &[Array]| Ok::<_, Error>(vec![(case.f)(x)?]);
            let (_, got) = match only {
                None => jvp(f, &x, &tangents)?,
                // The others are constants of the function.
                Some(o) => jvp(
                    |y: &[Array]| {
                        let mut all = x.clone();
                        all[o] = y[0].clone();
                        f(&all)
                    },
                    &x[o..=o],
                    &tangents[o..=o],
                )?,
            };
            let at = |h: f64| -> Result<Vec<f64>> {
                let y: Vec<Array> = x
                    .iter()
                    .zip(&tangents)
                    .map(|(a, t)| a.add(&t.multiply(&Array::scalar(h))?))
                    .collect::<Result<_>>()?;
                (case.f)(&y)?.to_vec::<f64>()
            };
            let want: Vec<f64> = at(STEP)?
                .iter()
                .zip(at(-STEP)?)
                .map(|(up, down)| (up - down) / (2.0 * STEP))
                .collect();
            close(case.name, &format!("jvp, only {only:?}"), &got[0].to_vec::<f64>()?, &want);
        }
        Ok(())
    });
}

#[test]
fn second_derivatives() {
    let mut numbers = Numbers(3);
    for_each_case(|case| {
        let x = numbers.operands(case, None)?;
        let weight = numbers.array((case.f)(&x)?.shape(), -1.0, 1.0)?;
        let directions: Vec<Array> =
            x.iter().map(|a| numbers.array(a.shape(), -1.0, 1.0)).collect::<Result<_>>()?;
        // The gradient's component along the directions, as a function.
        let slope = |x: &[Array]| -> Result<Array> {
            let f = |x: &[Array]| Ok::<_, Error>(vec![(case.f)(x)?]);
            let (_, g) = vjp(f, x, std::slice::from_ref(&weight))?;
            let mut total = Array::scalar(0.0f64);
            for (g, d) in g.iter().zip(&directions) {
                total = total.add(&g.multiply(d)?.sum(None, false)?)?;
            }
            Ok(total)
        };
        let one = Array::scalar(1.0f64);
        let (_, got) = vjp(|x: &[Array]| Ok::<_, Error>(vec![slope(x)?]), &x, &[one])?;
        for (k, got) in got.iter().enumerate() {
            let want: Vec<f64> = (0..x[k].size())
                .map(|i| {
                    let at = |h: f64| -> Result<f64> {
                        let mut y = x.clone();
                        y[k] = moved(&x[k], i, h)?;
                        slope(&y)?.item::<f64>()
                    };
                    Ok((at(STEP)? - at(-STEP)?) / (2.0 * STEP))
                })
                .collect::<Result<_>>()?;
            close(
                case.name,
                &format!("second derivative, operand {k}"),
                &got.to_vec::<f64>()?,
                &want,
            );
        }
        Ok(())
    });
}

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
    let mut numbers = Numbers(4);
    for_each_case(|case| {
        let ndims: Vec<usize> = case.operands.iter().map(|o| o.shape.len()).collect();
        for axes in patterns(ndims.len(), &ndims) {
            let batched = numbers.operands(case, Some(BATCH))?;
            let example = |i: usize| -> Result<Vec<Array>> {
                batched
                    .iter()
                    .zip(&axes)
                    .map(|(a, axis)| {
                        let i = if axis.is_some() { i } else { 0 };
                        a.take(&Array::scalar(i as i32), Some(0))
                    })
                    .collect()
            };
            let inputs: Vec<Array> = batched
                .iter()
                .zip(&axes)
                .map(|(a, axis)| match axis {
                    Some(axis) => a.moveaxis(0, *axis),
                    None => a.take(&Array::scalar(0i32), Some(0)),
                })
                .collect::<Result<_>>()?;
            let f = |x: &[Array]| Ok::<_, Error>(vec![(case.f)(x)?]);
            let got = &vmap(f, &inputs, &axes, |_| Ok(vec![Some(0)]))?[0];
            let want: Vec<Array> =
                (0..BATCH).map(|i| (case.f)(&example(i)?)).collect::<Result<_>>()?;
            let want = stack(&want, 0)?;
            assert_eq!(got.shape(), want.shape(), "{}: vmap {axes:?}", case.name);
            close(
                case.name,
                &format!("vmap {axes:?}"),
                &got.to_vec::<f64>()?,
                &want.to_vec::<f64>()?,
            );

            // The gradient of each example, and the gradient through the batch.
            let weight = numbers.array((case.f)(&example(0)?)?.shape(), -1.0, 1.0)?;
            let slopes = |x: &[Array]| -> Result<Vec<Array>> {
                Ok(vjp(f, x, std::slice::from_ref(&weight))?.1)
            };
            let got = vmap(slopes, &inputs, &axes, |n| Ok::<_, Error>(vec![Some(0); n]))?;
            for (k, got) in got.iter().enumerate() {
                let want: Vec<Array> = (0..BATCH)
                    .map(|i| Ok(slopes(&example(i)?)?.swap_remove(k)))
                    .collect::<Result<_>>()?;
                let want = stack(&want, 0)?.to_vec::<f64>()?;
                close(
                    case.name,
                    &format!("vmap {axes:?} of vjp {k}"),
                    &got.to_vec::<f64>()?,
                    &want,
                );
            }
            let summed = |x: &[Array]| -> Result<Vec<Array>> {
                let out = vmap(f, x, &axes, |_| Ok(vec![Some(0)]))?;
                Ok(vec![out[0].multiply(&weight)?.sum(None, false)?])
            };
            let (_, through) = vjp(summed, &inputs, &[Array::scalar(1.0f64)])?;
            for (k, through) in through.iter().enumerate() {
                let want = match axes[k] {
                    Some(axis) => got[k].moveaxis(0, axis)?,
                    None => got[k].sum(Some(&[0]), false)?,
                };
                close(
                    case.name,
                    &format!("vjp {k} of vmap {axes:?}"),
                    &through.to_vec::<f64>()?,
                    &want.to_vec::<f64>()?,
                );
            }
        }
        Ok(())
    });
}

#[test]
fn the_table_names_every_op() {
    let names: Vec<&str> = cases().iter().map(|c| c.name).collect();
    let known = |n: &&str| NOT_SMOOTH.contains(n) || names.iter().any(|c| c.starts_with(*n));
    for list in [schema::unary::NAMES, schema::binary::NAMES] {
        for name in list {
            assert!(known(name), "{name} is neither in the table nor in NOT_SMOOTH");
        }
    }
    for name in &schema::reduce::NAMES[..4] {
        assert!(known(name), "{name}");
    }
}

#[test]
fn stop_gradient_stops() -> Result<()> {
    let x = Array::scalar(3.0f32);
    let d = grad(|x: &Array| x.stop_gradient().multiply(x))(&x)?;
    assert_eq!(d.item::<f32>()?, 3.0);
    let f = |x: &[Array]| Ok::<_, Error>(vec![x[0].stop_gradient().multiply(&x[0])?]);
    let (_, t) = jvp(f, std::slice::from_ref(&x), &[Array::scalar(1.0f32)])?;
    assert_eq!(t[0].item::<f32>()?, 3.0);
    Ok(())
}

#[test]
fn trees_and_errors() -> Result<()> {
    let f = |(a, (b, c)): &(Array, (Array, Vec<Array>))| {
        a.multiply(b)?.multiply(&c[0])?.sum(None, false)
    };
    let x = |v: f32| Array::from_slice(&[v, v], &[2]);
    let at = (x(2.0)?, (x(3.0)?, vec![x(4.0)?, x(5.0)?]));
    let (value, (da, (db, dc))) = value_and_grad(f)(&at)?;
    assert_eq!(value.item::<f32>()?, 48.0);
    assert_eq!(da.to_vec::<f32>()?, [12.0; 2]);
    assert_eq!(db.to_vec::<f32>()?, [8.0; 2]);
    assert_eq!((dc[0].to_vec::<f32>()?, dc[1].to_vec::<f32>()?), (vec![6.0; 2], vec![0.0; 2]));

    let not_scalar = grad(|a: &Array| a.exp())(&x(1.0)?);
    assert!(matches!(not_scalar, Err(Error::Value(_))), "{not_scalar:?}");
    let integer = grad(|a: &Array| a.sum(None, false))(&Array::scalar(1i32));
    assert!(matches!(integer, Err(Error::Value(_))), "{integer:?}");
    let inside = vmap(
        |x: &[Array]| Ok::<_, Error>(vec![Array::scalar(x[0].item::<f32>()?)]),
        &[x(1.0)?],
        &[Some(0)],
        |_| Ok(vec![Some(0)]),
    );
    assert!(matches!(inside, Err(Error::Value(_))), "{inside:?}");
    Ok(())
}

#[test]
fn values_can_be_read_while_tracing() -> Result<()> {
    let d = grad(|x: &Array| {
        let y = x.multiply(x)?;
        // A decision on a value, as programs make; what was evaluated stays traced.
        if y.item::<f32>()? > 1.0 { y.multiply(x) } else { Ok(y) }
    });
    assert_eq!(d(&Array::scalar(2.0f32))?.item::<f32>()?, 12.0);
    assert_eq!(d(&Array::scalar(0.5f32))?.item::<f32>()?, 1.0);
    Ok(())
}
