//! The example of a program with an operation of its own: what it asserts about itself, and its operation against a plain
//! loop in double precision.

#[allow(dead_code)]
#[path = "../../../examples/primitive.rs"]
mod example;

use crate::support::arrays::assert_near;
use example::interp;
use ultramarine::{
    Array, Dtype,
    extension::{poison, set_poison},
    transforms::{compile, jvp, vjp, vmap},
};
use ultramarine_test_support::{Tolerance, own_process};

#[test]
fn the_example_runs() {
    example::main().expect("its own assertions");
}

const XP: [f64; 6] = [-2.0, -1.0, -0.25, 0.5, 2.0, 3.0];
const FP: [f64; 6] = [1.0, -1.0, 0.5, 4.0, 3.0, -2.0];
const X: [f64; 8] = [-3.0, -1.5, -0.5, 0.0, 0.75, 1.9, 2.5, 4.0];

/// Value and slope.
fn reference(x: f64, clamped: bool) -> (f64, f64) {
    let inside = if clamped { x.clamp(XP[0], XP[5]) } else { x };
    let piece = (0..4).find(|&i| x < XP[i + 1]).unwrap_or(4);
    let slope = (FP[piece + 1] - FP[piece]) / (XP[piece + 1] - XP[piece]);
    let value = FP[piece] + slope * (inside - XP[piece]);
    (value, if clamped && x != inside { 0.0 } else { slope })
}

fn made(numbers: &[f64], dtype: Dtype) -> Array {
    Array::from_slice(numbers, &[numbers.len()]).expect("an array").astype(dtype)
}

fn close(got: &Array, want: &[f64], bound: f64) {
    assert_near("values", got, want, Tolerance::absolute(bound));
}

#[test]
fn values_slopes_and_batches() {
    for (dtype, bound) in [(Dtype::Float32, 1e-5), (Dtype::Float64, 1e-12)] {
        for clamped in [false, true] {
            let (x, xp, fp) = (made(&X, dtype), made(&XP, dtype), made(&FP, dtype));
            let (values, slopes): (Vec<_>, Vec<_>) =
                X.iter().map(|&x| reference(x, clamped)).unzip();
            close(&interp(&x, &xp, &fp, clamped).expect("values"), &values, bound);

            // The rule, and `compose`, which serves the forward mode.
            let by_x =
                |a: &[Array]| Ok::<_, ultramarine::Error>(vec![interp(&a[0], &xp, &fp, clamped)?]);
            let ones = made(&[1.0; 8], dtype);
            let back =
                vjp(by_x, std::slice::from_ref(&x), std::slice::from_ref(&ones)).expect("vjp").1;
            close(&back[0], &slopes, bound);
            let forward =
                jvp(by_x, std::slice::from_ref(&x), std::slice::from_ref(&ones)).expect("jvp").1;
            close(&forward[0], &slopes, bound);

            // By the table: sums of all weights are the number of looks, and the function is linear in it.
            let by_fp =
                |a: &[Array]| Ok::<_, ultramarine::Error>(vec![interp(&x, &xp, &a[0], clamped)?]);
            let back = vjp(by_fp, std::slice::from_ref(&fp), &[ones]).expect("vjp").1.remove(0);
            let total = back.multiply(&fp).and_then(|s| s.sum(None)).expect("a sum");
            close(&total, &[values.iter().sum()], 20.0 * bound);

            // A batch of numbers.
            let two = ultramarine::stack(&[x.clone(), x.negative().expect("-x")], 1).expect("two");
            let found = vmap(by_x, &[two], [Some(1)], 0);
            let found = found.expect("vmap").remove(0);
            let flipped = X.iter().map(|&x| reference(-x, clamped).0);
            let want: Vec<f64> = values.iter().copied().chain(flipped).collect();
            close(&found.reshape(&[16]).expect("flat"), &want, bound);
        }
    }
}

#[test]
fn batches_of_tables_second_derivatives_and_compiled() {
    let (x, xp, fp) =
        (made(&X, Dtype::Float64), made(&XP, Dtype::Float64), made(&FP, Dtype::Float64));
    let values: Vec<f64> = X.iter().map(|&x| reference(x, false).0).collect();
    let all = |a: &[Array]| Ok::<_, ultramarine::Error>(vec![interp(&a[0], &a[1], &a[2], false)?]);

    // Tables of their own, for which there is no rule: the heights' batch is behind, the points' in front.
    let heights = ultramarine::stack(&[fp.clone(), fp.add(&fp).expect("2 fp")], 1).expect("two");
    let points = ultramarine::stack(&[xp.clone(), xp.clone()], 0).expect("two");
    let axes = [None, Some(0), Some(1)];
    let found = vmap(all, &[x.clone(), points, heights], axes, 0);
    let found = found.expect("vmap").remove(0).reshape(&[16]).expect("flat");
    let want: Vec<f64> = values.iter().copied().chain(values.iter().map(|v| 2.0 * v)).collect();
    close(&found, &want, 1e-12);

    // The slope at x, along a direction of the table: the slope in the table of the direction.
    let ones = made(&[1.0; 8], Dtype::Float64);
    let slope = |a: &[Array]| {
        let by_x =
            |x: &[Array]| Ok::<_, ultramarine::Error>(vec![interp(&x[0], &xp, &a[0], false)?]);
        Ok::<_, ultramarine::Error>(
            vjp(by_x, std::slice::from_ref(&x), std::slice::from_ref(&ones))?.1,
        )
    };
    let found =
        jvp(slope, std::slice::from_ref(&fp), std::slice::from_ref(&fp)).expect("jvp of vjp").1;
    let slopes: Vec<f64> = X.iter().map(|&x| reference(x, false).1).collect();
    close(&found[0], &slopes, 1e-12);

    // Compiled, two looks are one.
    let twice = compile(move |a: &[Array]| {
        let (once, again) =
            (interp(&a[0], &a[1], &a[2], false)?, interp(&a[0], &a[1], &a[2], false)?);
        Ok(vec![once.add(&again)?])
    });
    let want: Vec<f64> = values.iter().map(|v| 2.0 * v).collect();
    for _ in 0..2 {
        close(
            &twice.call(&[x.clone(), xp.clone(), fp.clone()]).expect("compiled")[0],
            &want,
            1e-12,
        );
    }
    assert_eq!(twice.traces(), 1);
}

#[test]
fn every_element_is_written() {
    own_process!();
    let before = poison();
    set_poison(true);
    for n in [0usize, 1, 4095, 4096, 4097, 20_000] {
        let x: Vec<f64> = (0..n).map(|i| i as f64 * 1e-3 - 5.0).collect();
        let x = made(&x, Dtype::Float32);
        for x in [x.clone(), x.slice(&[0], &[n as isize], &[3]).expect("every third")] {
            let found = interp(&x, &made(&XP, Dtype::Float32), &made(&FP, Dtype::Float32), true);
            let want: Vec<f64> = x
                .to_vec::<f32>()
                .expect("x")
                .iter()
                .map(|&x| reference(x.into(), true).0)
                .collect();
            close(&found.expect("lazy"), &want, 1e-5);
        }
    }
    set_poison(before);
}

#[test]
fn misfits_are_errors_at_the_call() {
    let (xp, one) = (made(&XP, Dtype::Float32), made(&[1.0], Dtype::Float32));
    for (xp, fp) in [(&xp, &one), (&one, &one)] {
        let error = interp(&one, xp, fp, true).expect_err("no table").to_string();
        assert!(
            error.starts_with("[interp] xp and fp are 2 points or more, got float32"),
            "{error}"
        );
    }
}
