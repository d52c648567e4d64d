//! One table of differentiable functions, each of which goes through every check: derivatives against central
//! differences in float64, forward against reverse mode, second derivatives, batching.

mod batching;
mod checks;
mod integers;
mod inventory;
mod slices;
mod special;
mod table;

use crate::support::arrays::{assert_near, f64s, uniform};
use table::{Case, NOT_SMOOTH, cases};
use ultramarine::{Array, Result};
use ultramarine_abi::schema;
use ultramarine_test_support::{Rng, Tolerance};

/// Operands of a case, with an axis of `batch` examples in front if there is one.
fn operands(rng: &mut Rng, case: &Case, batch: Option<usize>) -> Result<Vec<Array>> {
    case.operands
        .iter()
        .map(|o| {
            let shape: Vec<usize> = batch.into_iter().chain(o.shape.iter().copied()).collect();
            if !o.distinct {
                return Ok(uniform(rng, &shape, o.low, o.high));
            }
            let n: usize = shape.iter().product();
            let part = (o.high - o.low) / n as f64;
            let mut numbers: Vec<f64> = (0..n).map(|i| o.low + part * (i as f64 + 0.5)).collect();
            rng.shuffle(&mut numbers);
            Array::from_slice(&numbers, &shape)
        })
        .collect()
}

/// A function of one result, as transforms take it.
fn listed(
    f: impl Fn(&[Array]) -> Result<Array> + Copy,
) -> impl Fn(&[Array]) -> Result<Vec<Array>> + Copy {
    move |x| Ok(vec![f(x)?])
}

/// The elements of all arrays.
fn flat(arrays: &[Array]) -> Vec<f64> {
    arrays.iter().flat_map(f64s).collect()
}

/// Arrays of the shapes of others, from the elements of all.
fn split(numbers: &[f64], like: &[Array]) -> Result<Vec<Array>> {
    let mut at = 0;
    like.iter()
        .map(|a| {
            at += a.size();
            Array::from_slice(&numbers[at - a.size()..at], a.shape())
        })
        .collect()
}

fn close(name: &str, what: &str, got: &Array, want: &[f64]) {
    let scale = want.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let tolerance = Tolerance::absolute(f64::max(2e-8, 1e-7 * scale));
    assert_near(&format!("{name}: {what}"), got, want, tolerance);
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
