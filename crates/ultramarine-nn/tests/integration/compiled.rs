//! Compiled steps do what the steps themselves do.

use std::cell::Cell;
use ultramarine::{Array, Dtype, Error, KeepDims, Result, eval, random};
use ultramarine_nn::losses::{Reduction, mse_loss};
use ultramarine_nn::optimizers::{Adam, MultiOptimizer, Optimizer, SGD, linear_schedule};
use ultramarine_nn::*;

fn model() -> Result<Sequential> {
    Ok(sequential![
        Linear::new(3, 8)?,
        BatchNorm::new(8)?,
        Dropout::new(0.3)?,
        relu,
        Linear::new(8, 1)?
    ])
}

fn optimizer() -> MultiOptimizer {
    let weights = |name: &str, _: &Array| name.ends_with("weight");
    MultiOptimizer::new(SGD::new(0.01)).with(weights, Adam::new(linear_schedule(0.0, 0.1, 10)))
}

fn batch(i: usize) -> Result<[Array; 2]> {
    let x = (0..12).map(|j| ((i * 12 + j) as f32 * 0.7).sin()).collect::<Vec<_>>();
    let x = Array::from_slice(&x, &[4, 3])?;
    let y = x.sum(KeepDims(-1))?;
    Ok([x, y])
}

/// A step of training: the loss, and its root.
fn step<O: Optimizer>(
    model: &mut Sequential,
    optimizer: &mut O,
    batch: &[Array],
) -> Result<(Array, Array)> {
    let (loss, gradients) =
        value_and_grad(model, |m| mse_loss(m.forward(&batch[0]), &batch[1], Reduction::Mean))?;
    optimizer.update(model, &gradients)?;
    let root = loss.sqrt()?;
    Ok((loss, root))
}

/// Parameters, state and last loss after some steps, made by `make`.
fn trained(
    mut make: impl FnMut(&mut Sequential, &mut MultiOptimizer, &[Array]) -> Result<(Array, Array)>,
) -> Result<Vec<Vec<f32>>> {
    random::seed(5)?;
    let (mut model, mut optimizer) = (model()?, optimizer());
    let mut all = Vec::new();
    for i in 0..6 {
        if i == 3 {
            model.eval();
        }
        if i == 5 {
            model.train();
            model.freeze_where(|name| name.starts_with("layers.0."));
        }
        let (loss, root) = make(&mut model, &mut optimizer, &batch(i)?)?;
        all = [model.arrays(), optimizer.arrays(), vec![loss, root]].concat();
        eval(&all)?;
    }
    all.iter().map(|a| a.astype(Dtype::Float32).to_vec::<f32>()).collect()
}

#[test]
fn a_compiled_step_trains_as_the_step_does() -> Result<()> {
    let compiled = CompiledStep::new();
    let calls = Cell::new(0);
    let got = trained(|model, optimizer, batch| {
        compiled.call(model, optimizer, batch, |model, optimizer, batch| {
            calls.set(calls.get() + 1);
            step(model, optimizer, batch)
        })
    })?;
    // In training, in evaluation, and with frozen parameters.
    assert_eq!((calls.get(), compiled.traces()), (3, 3));
    let expected = trained(step)?;
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(&expected) {
        for (g, e) in got.iter().zip(expected) {
            assert!((g - e).abs() <= 1e-5 * (1.0 + e.abs()), "{g} for {e}");
        }
    }
    Ok(())
}

#[test]
fn after_an_error_all_is_as_it_was() -> Result<()> {
    let (mut model, mut optimizer) = (Linear::new(3, 1)?, Adam::new(0.1));
    let before = model.parameters();
    let compiled: CompiledStep = CompiledStep::new();
    let failed = compiled.call(&mut model, &mut optimizer, &batch(0)?, |model, _, _| {
        model.weight.set((&model.weight * 2.0)?);
        Err(Error::value("mine", "is wrong"))
    });
    assert_eq!(failed.expect_err("an error").to_string(), "[mine] is wrong");
    assert!(model.parameters().iter().all(|(name, array)| array.is_same(&before[name])));
    assert_eq!(optimizer.state()["step"].item::<u64>()?, 0);

    let renamed = compiled.call(&mut model, &mut optimizer, &batch(0)?, |model, _, inputs| {
        model.bias = None;
        Ok(inputs[0].clone())
    });
    assert_eq!(
        renamed.expect_err("an error").to_string(),
        "[CompiledStep] The step changes names of parameters or of the optimizer's state. Do that between steps."
    );
    Ok(())
}

#[test]
fn the_learning_rate_is_set_between_steps() -> Result<()> {
    let (mut model, mut optimizer) = (Linear::without_bias(2, 1)?, SGD::new(0.0));
    let x = [Array::ones(&[1, 2], Dtype::Float32)?];
    let compiled: CompiledStep = CompiledStep::new();
    let mut weights = Vec::new();
    for rate in [0.0, 1.0, 3.0] {
        optimizer.set_learning_rate(rate);
        compiled.call(&mut model, &mut optimizer, &x, |model, optimizer, inputs| {
            let (loss, gradients) = value_and_grad(model, |m| m.forward(&inputs[0])?.sum(None))?;
            optimizer.update(model, &gradients)?;
            Ok(loss)
        })?;
        weights.push(model.weight.to_vec::<f32>()?[0]);
    }
    assert_eq!(compiled.traces(), 1);
    assert!(
        (weights[0] - weights[1] - 1.0).abs() < 1e-6
            && (weights[1] - weights[2] - 3.0).abs() < 1e-6
    );
    Ok(())
}
