//! Derivatives of every case against central differences in float64, and against each other.

use super::{close, flat, for_each_case, listed, operands, split};
use crate::support::arrays::{f64s, uniform};
use ultramarine::transforms::{grad, jvp, vjp};
use ultramarine::{Array, Dtype, Error, Result};
use ultramarine_test_support::{Rng, Tolerance, assert_close, directional, gradient};

/// Step of the central differences.
const STEP: f64 = 1e-5;

fn uniform_like(rng: &mut Rng, arrays: &[Array]) -> Vec<Array> {
    arrays.iter().map(|a| uniform(rng, a.shape(), -1.0, 1.0)).collect()
}

/// The gradient of `f` with respect to operand `k`, numerically.
fn numeric(f: impl Fn(&[Array]) -> Result<f64>, x: &[Array], k: usize) -> Result<Vec<f64>> {
    let f = |numbers: &[f64]| {
        let mut moved = x.to_vec();
        moved[k] = Array::from_slice(numbers, x[k].shape())?;
        f(&moved)
    };
    gradient(f, &f64s(&x[k]), STEP)
}

#[test]
fn reverse_rules() {
    let mut rng = Rng::new(1);
    for_each_case(|case| {
        let x = operands(&mut rng, case, None)?;
        let weight = uniform(&mut rng, (case.f)(&x)?.shape(), -1.0, 1.0);
        let weighted = |x: &[Array]| (case.f)(x)?.multiply(&weight)?.sum(None)?.item::<f64>();
        let (_, gradients) = vjp(listed(case.f), &x, std::slice::from_ref(&weight))?;
        for (k, gradient) in gradients.iter().enumerate() {
            assert_eq!(gradient.shape(), x[k].shape(), "{}", case.name);
            let want = numeric(weighted, &x, k)?;
            close(case.name, &format!("vjp of operand {k}"), gradient, &want);
        }
        Ok(())
    });
}

#[test]
fn forward_rules() {
    let mut rng = Rng::new(2);
    for_each_case(|case| {
        let x = operands(&mut rng, case, None)?;
        // All operands at once, then each alone: rules see absent tangents too.
        for only in std::iter::once(None).chain((0..x.len()).map(Some)) {
            let tangents: Vec<Array> = x
                .iter()
                .enumerate()
                .map(|(k, a)| match only {
                    Some(o) if o != k => Array::zeros(a.shape(), Dtype::Float64),
                    _ => Ok(uniform(&mut rng, a.shape(), -1.0, 1.0)),
                })
                .collect::<Result<_>>()?;
            let (out, got) = match only {
                None => jvp(listed(case.f), &x, &tangents)?,
                // The others are constants of the function.
                Some(o) => jvp(
                    |y: &[Array]| {
                        let mut all = x.clone();
                        all[o] = y[0].clone();
                        listed(case.f)(&all)
                    },
                    &x[o..=o],
                    &tangents[o..=o],
                )?,
            };
            assert_eq!(out[0].shape(), got[0].shape(), "{}", case.name);
            let f = |numbers: &[f64]| (case.f)(&split(numbers, &x)?)?.to_vec::<f64>();
            let want = directional(f, &flat(&x), &flat(&tangents), STEP)?;
            close(case.name, &format!("jvp, only {only:?}"), &got[0], &want);
        }
        Ok(())
    });
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Checks that reverse and forward mode are each other's transpose: `<c, J t> = <J' c, t>`.
fn check_transpose(
    name: &str,
    f: impl Fn(&[Array]) -> Result<Vec<Array>>,
    x: &[Array],
    tangents: &[Array],
) -> Result<()> {
    let (out, forward) = jvp(&f, x, tangents)?;
    let c: Vec<Vec<f64>> =
        out.iter().map(|a| (0..a.size()).map(|i| 0.5 + (i * 7 % 5) as f64).collect()).collect();
    let cotangents: Vec<Array> =
        c.iter().zip(&out).map(|(c, a)| Array::from_slice(c, a.shape())).collect::<Result<_>>()?;
    let (_, back) = vjp(&f, x, &cotangents)?;
    let (left, right) = (dot(&c.concat(), &flat(&forward)), dot(&flat(&back), &flat(tangents)));
    assert!(left.is_finite(), "{name}: {left}");
    assert_close(
        &format!("{name}: reverse for forward"),
        &[right],
        &[left],
        Tolerance::mixed(1e-6),
    );
    Ok(())
}

#[test]
fn reverse_and_forward_are_transposes() {
    let mut rng = Rng::new(5);
    for_each_case(|case| {
        let x = operands(&mut rng, case, None)?;
        let tangents = uniform_like(&mut rng, &x);
        check_transpose(case.name, listed(case.f), &x, &tangents)
    });
}

#[test]
fn second_derivatives() {
    let mut rng = Rng::new(3);
    for_each_case(|case| {
        let x = operands(&mut rng, case, None)?;
        let weight = uniform(&mut rng, (case.f)(&x)?.shape(), -1.0, 1.0);
        let directions = uniform_like(&mut rng, &x);
        // The gradient's component along the directions, as a function.
        let slope = |x: &[Array]| -> Result<Array> {
            let (_, g) = vjp(listed(case.f), x, std::slice::from_ref(&weight))?;
            let mut total = Array::scalar(0.0f64);
            for (g, d) in g.iter().zip(&directions) {
                total = total.add(&g.multiply(d)?.sum(None)?)?;
            }
            Ok(total)
        };
        let one = Array::scalar(1.0f64);
        let (_, got) = vjp(|x: &[Array]| Ok::<_, Error>(vec![slope(x)?]), &x, &[one])?;
        for (k, got) in got.iter().enumerate() {
            let want = numeric(|x| slope(x)?.item::<f64>(), &x, k)?;
            close(case.name, &format!("second derivative, operand {k}"), got, &want);
        }
        Ok(())
    });
}

/// Of the sum of squares, whose second derivative is not zero where `f` is linear: forward over reverse
/// against central differences, and reverse over reverse as its transpose.
#[test]
fn second_derivatives_of_squares() {
    let mut rng = Rng::new(6);
    for_each_case(|case| {
        let x = operands(&mut rng, case, None)?;
        let tangents = uniform_like(&mut rng, &x);
        let slope = |x: &[Array]| -> Result<Vec<Array>> {
            let squares = |x: &Vec<Array>| -> Result<Array> {
                let y = (case.f)(x)?;
                y.multiply(&y)?.sum(None)
            };
            grad(squares)(&x.to_vec())
        };
        let name = format!("slope of {}", case.name);
        let (_, forward) = jvp(slope, &x, &tangents)?;
        let f = |numbers: &[f64]| Ok::<_, Error>(flat(&slope(&split(numbers, &x)?)?));
        let want = directional(f, &flat(&x), &flat(&tangents), 1e-6)?;
        assert!(want.iter().all(|w| w.is_finite()), "{name}: {want:?}");
        assert_close(&format!("{name}: forward"), &flat(&forward), &want, Tolerance::mixed(1e-6));
        check_transpose(&name, slope, &x, &tangents)
    });
}
