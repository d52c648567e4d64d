//! Batches of matrices in awkward strides, with and without threads; the decompositions themselves are
//! tested where they are.

mod blocked;

use crate::testing::{Array, desc, host};
use ultramarine_abi::schema::op;
use ultramarine_cpu::kernel::{Args, Context, Refusal, Signature, View};
use ultramarine_cpu::tested::families::linalg as prepare;
use ultramarine_cpu::{dtype::Element, level::Level, par::Par};
use ultramarine_test_support::Rng;

fn run(
    id: u32,
    upper: bool,
    inputs: &[View<'_>],
    outputs: &[View<'_>],
    threads: bool,
) -> Result<(), String> {
    run_at(Level::detected(), id, upper, inputs, outputs, threads)
}

fn run_at(
    level: Level,
    id: u32,
    upper: bool,
    inputs: &[View<'_>],
    outputs: &[View<'_>],
    threads: bool,
) -> Result<(), String> {
    let (ins, outs): (Vec<_>, Vec<_>) =
        (inputs.iter().map(desc).collect(), outputs.iter().map(desc).collect());
    let kernel = prepare(id, upper, &Signature { inputs: &ins, outputs: &outs })
        .map_err(|r| format!("{r:?}"))?;
    let par = if threads { Par::new(host()) } else { Par::default() };
    // SAFETY: the arrays behind the views are valid, and outputs are arrays of their own.
    unsafe { kernel.run(&Context { par, level }, &Args { inputs, outputs, scalars: &[] }) }
}

fn zeros<T: Element>(shape: &[i64], plain: bool, rng: &mut Rng) -> Array<T> {
    let values = vec![T::default(); shape.iter().product::<i64>() as usize];
    Array::new(shape, &values, plain, rng)
}

/// A batch of matrices with more on the diagonal than besides.
fn dominant(n: i64, batch: i64, rng: &mut Rng) -> Vec<f64> {
    (0..batch * n * n)
        .map(|i| {
            let (row, column) = (i / n % n, i % n);
            (rng.below(100) as f64) / 100.0 + if row == column { 2.0 * n as f64 } else { 0.0 }
        })
        .collect()
}

#[test]
fn strides_do_not_matter() {
    let rng = &mut Rng::new(7);
    for round in 0..20 {
        let (n, batch) =
            (1 + rng.below(6) as i64, [1 + rng.below(3) as i64, 1 + rng.below(4) as i64]);
        let shape = [batch[0], batch[1], n, n];
        let values = dominant(n, batch[0] * batch[1], rng);
        for (id, outputs) in [(op::CHOLESKY, 1), (op::QR, 2)] {
            for upper in [false, true] {
                let mut results = Vec::new();
                for plain in [true, false] {
                    let a = Array::new(&shape, &values, plain, rng);
                    let out: Vec<Array<f64>> =
                        (0..outputs).map(|_| zeros(&shape, plain, rng)).collect();
                    let views: Vec<View<'_>> = out.iter().map(Array::view).collect();
                    run(id, upper, &[a.view()], &views, round % 2 == 0).unwrap();
                    results.push(out.iter().map(Array::values).collect::<Vec<_>>());
                }
                assert_eq!(results[0], results[1], "{id} {shape:?}");
            }
        }
    }
}

#[test]
fn factors_of_each_matrix() {
    let rng = &mut Rng::new(9);
    let (n, batch) = (4, 50);
    let values = dominant(n, batch, rng);
    let a = Array::new(&[batch, n, n], &values, false, rng);
    let lu: Array<f64> = zeros(&[batch, n, n], false, rng);
    let pivots: Array<u32> = zeros(&[batch, n], false, rng);
    let rows: Array<u32> = zeros(&[batch, n], false, rng);
    run(op::LU, false, &[a.view()], &[lu.view(), pivots.view(), rows.view()], true).unwrap();
    let (lu, rows) = (lu.values(), rows.values());
    let n = n as usize;
    for (which, a) in values.chunks(n * n).enumerate() {
        let (lu, rows) = (&lu[which * n * n..], &rows[which * n..]);
        for i in 0..n {
            for j in 0..n {
                let l = |k: usize| if k == i { 1.0 } else { lu[i * n + k] };
                let product: f64 = (0..=i.min(j)).map(|k| l(k) * lu[k * n + j]).sum();
                let want = a[rows[i] as usize * n + j];
                assert!((product - want).abs() < 1e-12, "{product} {want}");
            }
        }
    }
}

/// The first matrix that fails is named, whatever thread finds it.
#[test]
fn errors_name_the_matrix() {
    let rng = &mut Rng::new(11);
    let mut values = dominant(3, 9, rng);
    values[4 * 9 + 2] = f64::NAN;
    values[7 * 9] = f64::INFINITY;
    for threads in [false, true] {
        let a = Array::new(&[9, 3, 3], &values, false, rng);
        let s: Array<f64> = zeros(&[9, 3], true, rng);
        let error = run(op::SINGULAR_VALUES, false, &[a.view()], &[s.view()], threads).unwrap_err();
        assert!(error.starts_with("matrix 4 of 9: "), "{error}");
        // The others have their results.
        assert!(s.values()[..12].iter().all(|s| *s > 0.0));
    }
}

#[test]
fn requests_that_do_not_fit() {
    let rng = &mut Rng::new(13);
    let a: Array<f32> = zeros(&[3, 3], true, rng);
    let half: Array<half::f16> = zeros(&[3, 3], true, rng);
    let vector: Array<f32> = zeros(&[3], true, rng);
    let descs = |views: &[View<'_>]| views.iter().map(desc).collect::<Vec<_>>();
    let refused = |id, inputs: &[View<'_>], outputs: &[View<'_>]| {
        let (inputs, outputs) = (descs(inputs), descs(outputs));
        prepare(id, false, &Signature { inputs: &inputs, outputs: &outputs }).err()
    };
    let invalid = |r: Option<Refusal>| matches!(r, Some(Refusal::Invalid(_)));
    assert!(invalid(refused(op::CHOLESKY, &[a.view()], &[])));
    assert!(invalid(refused(op::CHOLESKY, &[a.view()], &[vector.view()])));
    assert!(invalid(refused(op::QR, &[vector.view()], &[a.view(), a.view()])));
    assert!(invalid(refused(op::LU, &[a.view()], &[a.view(), vector.view(), vector.view()])));
    let half = refused(op::CHOLESKY, &[half.view()], &[half.view()]);
    assert!(matches!(half, Some(Refusal::Unsupported)));
    let wide: Array<f32> = zeros(&[3, 4], true, rng);
    let error = run(op::CHOLESKY, false, &[wide.view()], &[wide.view()], false).unwrap_err();
    assert!(error.contains("shapes"), "{error}");
}
