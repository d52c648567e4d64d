//! Losses and their gradients, compared with Python's.

use crate::support::{Table, total};
use ultramarine::{Array, Dtype, Result, transforms::value_and_grad};
use ultramarine_nn::losses::Reduction::{Mean, None as Each, Sum};
use ultramarine_nn::losses::*;

#[test]
fn losses_are_those_of_python() -> Result<()> {
    let table = Table::read("losses.txt");
    let case = |name: &str, loss: &dyn Fn(&[Array]) -> Result<Array>| -> Result<()> {
        let lines = table.take(name);
        for (dtype, bound) in [(Dtype::Float64, 1e-10), (Dtype::Float32, 1e-5)] {
            // Class indices along the last axis are computed in float32 whatever the logits are.
            let inputs = lines.inputs(dtype);
            let with = |x: &Array| {
                let mut inputs = inputs.clone();
                inputs[0] = x.clone();
                loss(&inputs)
            };
            let (_, gradient) = value_and_grad(|x: &Array| total(&with(x)?))(&inputs[0])?;
            let what = |part: &str| format!("{part} of {name} in {dtype}");
            lines.only("output").check(&what("value"), &with(&inputs[0])?, bound);
            lines.described("gradient")["input0"].check(&what("gradient"), &gradient, bound);
        }
        Ok(())
    };
    macro_rules! cases {
        ($($name:literal $x:ident => $loss:expr;)*) => {$(case($name, &|$x| $loss)?;)*};
    }
    cases! {
        "cross_entropy" x => cross_entropy(&x[0], &x[1], Each);
        "cross_entropy mean" x => cross_entropy(&x[0], &x[1], Mean);
        "cross_entropy of probabilities" x => cross_entropy(&x[0], &x[1], Each);
        "cross_entropy otherwise" x => {
            let how = CrossEntropy { weights: Some(&x[2]), axis: 0, label_smoothing: 0.1 };
            cross_entropy_with(&x[0], &x[1], how, Sum)
        };
        "binary_cross_entropy" x => binary_cross_entropy(&x[0], &x[1], None, true, Mean);
        "binary_cross_entropy of probabilities" x => {
            binary_cross_entropy(&x[0], &x[1], Some(&x[2]), false, Each)
        };
        "l1_loss" x => l1_loss(&x[0], &x[1], Mean);
        "mse_loss" x => mse_loss(&x[0], &x[1], Mean);
        "nll_loss" x => nll_loss(&x[0], &x[1], -1, Each);
        "gaussian_nll_loss" x => gaussian_nll_loss(&x[0], &x[1], &x[2], false, 1e-6, Mean);
        "gaussian_nll_loss full" x => gaussian_nll_loss(&x[0], &x[1], &x[2], true, 0.3, Each);
        "kl_div_loss" x => kl_div_loss(&x[0], &x[1], -1, Each);
        "smooth_l1_loss" x => smooth_l1_loss(&x[0], &x[1], 1.0, Mean);
        "smooth_l1_loss 0.5" x => smooth_l1_loss(&x[0], &x[1], 0.5, Each);
        "huber_loss" x => huber_loss(&x[0], &x[1], 1.0, Each);
        "huber_loss 0.5" x => huber_loss(&x[0], &x[1], 0.5, Sum);
        "log_cosh_loss" x => log_cosh_loss(&x[0], &x[1], Each);
        "hinge_loss" x => hinge_loss(&x[0], &x[1], Each);
        "margin_ranking_loss" x => margin_ranking_loss(&x[0], &x[1], &x[2], 0.2, Each);
        "cosine_similarity_loss" x => cosine_similarity_loss(&x[0], &x[1], 1, 1e-8, Each);
        "triplet_loss" x => triplet_loss(&x[0], &x[1], &x[2], -1, 2, 1.0, 1e-6, Each);
        "triplet_loss otherwise" x => triplet_loss(&x[0], &x[1], &x[2], 0, 3, 0.5, 1e-3, Each);
    }
    table.finish();
    Ok(())
}

#[test]
fn shapes_that_do_not_fit_are_named() -> Result<()> {
    let of = |shape: &[usize]| Array::ones(shape, Dtype::Float32);
    let error = |result: Result<Array>| result.expect_err("an error").to_string();
    assert_eq!(
        error(mse_loss(&of(&[2, 1])?, &of(&[2])?, Mean)),
        "[mse_loss] predictions have shape (2, 1) and targets (2,). Pass arrays of the same shape."
    );
    assert_eq!(
        error(cross_entropy(&of(&[4, 3])?, of(&[3])?.astype(Dtype::Int32), Mean)),
        "[cross_entropy] Targets have shape (3,) and logits (4, 3). Pass class indices of shape (4,), or \
         probabilities of the logits' shape."
    );
    let smoothed = CrossEntropy { label_smoothing: 1.0, ..CrossEntropy::default() };
    let targets = of(&[4])?.astype(Dtype::Int32);
    assert_eq!(
        error(cross_entropy_with(&of(&[4, 3])?, &targets, smoothed, Mean)),
        "[cross_entropy] label_smoothing is 1. Pass a number in [0, 1)."
    );
    Ok(())
}
