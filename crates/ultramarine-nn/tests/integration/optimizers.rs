//! Parameters and states after a few updates, compared with Python's.

use crate::support::{Lines, Table, formula};
use ultramarine::{Array, Dtype, Result, stack};
use ultramarine_nn::optimizers::*;
use ultramarine_nn::{Gradients, Linear, Module, Parameters};

const SHAPES: [(&str, &[usize]); 3] =
    [("deep.0.bias", &[3]), ("deep.0.weight", &[3, 2]), ("deep.1.kernel", &[4, 2, 3])];
const BOUND: f64 = 1e-9;

/// Numbers of the formula, in float64.
fn parameters(offset: usize) -> Result<Parameters> {
    let array = |(j, (name, shape)): (usize, &(&str, &[usize]))| {
        Ok(((*name).to_owned(), Array::from_slice(&formula(offset + j, shape), shape)?))
    };
    SHAPES.iter().enumerate().map(array).collect()
}

/// Three updates, as Python made them.
fn check(name: &str, lines: &Lines, mut optimizer: impl Optimizer) -> Result<()> {
    let mut current = parameters(0)?;
    for step in 1..=3 {
        current = optimizer.apply_gradients(&parameters(10 * step)?, &current)?;
    }
    for (path, described) in lines.described("param") {
        described.check(&format!("{name}: {path}"), &current[&path], BOUND);
    }
    let state = optimizer.state();
    let expected: Vec<Vec<&str>> = lines.of("state").collect();
    let names: Vec<&str> = expected.iter().map(|words| words[0]).collect();
    assert_eq!(state.keys().collect::<Vec<_>>(), names, "{name}: names of the state");
    for words in &expected {
        let array = &state[words[0]];
        assert_eq!(array.dtype().name(), words[1], "{name}: {}", words[0]);
    }
    for (path, described) in lines.described("state") {
        described.check(&format!("{name}: {path} of the state"), &state[&path], BOUND);
    }
    Ok(())
}

#[test]
fn optimizers_and_schedules_are_those_of_python() -> Result<()> {
    let table = Table::read("optimizers.txt");
    macro_rules! cases {
        ($($name:literal $optimizer:expr;)*) => {$(check($name, &table.take($name), $optimizer)?;)*};
    }
    let matrices = |_: &str, gradient: &Array| gradient.ndim() >= 2;
    cases! {
        "SGD" SGD::new(0.1);
        "SGD momentum" SGD::new(0.1).momentum(0.9).weight_decay(0.01).dampening(0.1);
        "SGD nesterov" SGD::new(0.1).momentum(0.9).nesterov(true);
        "RMSprop" RMSprop::new(0.1);
        "RMSprop(0.5, 1e-3)" RMSprop::new(0.1).alpha(0.5).eps(1e-3);
        "Adagrad" Adagrad::new(0.1);
        "AdaDelta" AdaDelta::new(0.1);
        "AdaDelta(0.5, 1e-3)" AdaDelta::new(0.1).rho(0.5).eps(1e-3);
        "Adam" Adam::new(0.1);
        "Adam corrected" Adam::new(0.1).betas((0.8, 0.95)).eps(1e-4).bias_correction(true);
        "AdamW" AdamW::new(0.1);
        "AdamW corrected" AdamW::new(0.1).weight_decay(0.2).bias_correction(true);
        "Adamax" Adamax::new(0.1);
        "Lion" Lion::new(0.1);
        "Lion decay" Lion::new(0.1).betas((0.8, 0.9)).weight_decay(0.1);
        "Adafactor" Adafactor::new();
        "Adafactor warmup" Adafactor::new().beta_1(0.9).weight_decay(0.1).warmup_init(true);
        "Adafactor absolute" Adafactor::new()
            .learning_rate(0.1)
            .eps((1e-8, 1e-2))
            .clip_threshold(0.5)
            .decay_rate(-0.5)
            .scale_parameter(false)
            .relative_step(false);
        "Muon" Muon::new(0.1);
        "Muon plain" Muon::new(0.1).momentum(0.8).weight_decay(0.0).nesterov(false).ns_steps(3);
        "Adam scheduled" Adam::new(linear_schedule(0.0, 0.1, 5));
        "MultiOptimizer" MultiOptimizer::new(SGD::new(0.2).momentum(0.9)).with(matrices, Lion::new(0.1));
    }

    let lines = table.take("clip_grad_norm");
    let (clipped, norm) = clip_grad_norm(&parameters(0)?, 0.5)?;
    lines.only("norm").check("norm", &norm, BOUND);
    for (path, described) in lines.described("param") {
        described.check(&format!("clipped {path}"), &clipped[&path], BOUND);
    }

    for (name, schedule) in [
        ("exponential_decay", exponential_decay(0.1, 0.9)),
        ("step_decay", step_decay(0.1, 0.9, 3)),
        ("cosine_decay", cosine_decay(0.1, 8, 0.01)),
        ("linear_schedule", linear_schedule(0.01, 0.1, 5)),
        (
            "join_schedules",
            join_schedules(
                vec![linear_schedule(0.0, 0.1, 4), exponential_decay(0.1, 0.9)],
                vec![4],
            ),
        ),
    ] {
        let rates = (0..12u64).map(|step| schedule.at(&Array::scalar(step)));
        let rates = stack(&rates.collect::<Result<Vec<_>>>()?, 0)?;
        assert_eq!(rates.dtype(), Dtype::Float32);
        table.take(name).only("rates").check(name, &rates, 1e-6);
    }
    table.finish();
    Ok(())
}

fn one(x: f32) -> Gradients {
    Gradients::from([("w".to_owned(), Array::scalar(x))])
}

#[test]
fn numbers_that_do_not_do_are_named() {
    fn error(mut optimizer: impl Optimizer) -> String {
        optimizer.apply_gradients(&one(1.0), &one(1.0)).expect_err("an error").to_string()
    }
    for (error, text) in [
        (error(Adam::new(0.1).betas((1.0, 0.9))), "[Adam] beta1 is 1. Pass a number in [0, 1)."),
        (
            error(AdamW::new(0.1).eps(-1.0)),
            "[AdamW] eps is -1. Pass a number that is not negative.",
        ),
        (error(RMSprop::new(0.1).eps(0.0)), "[RMSprop] eps is 0. Pass a positive number."),
        (
            error(SGD::new(0.1).nesterov(true)),
            "[SGD] nesterov has momentum 0 and dampening 0. Pass a positive momentum and no dampening.",
        ),
        (
            error(Adafactor::new().relative_step(false)),
            "[Adafactor] The state has no \"learning_rate\". Set the state that the optimizer had.",
        ),
        (
            error(SGD::new(step_decay(0.1, 0.9, 0))),
            "[step_decay] The number of steps is 0. Pass a positive number.",
        ),
        (
            error(SGD::new(join_schedules(vec![0.1.into()], vec![3]))),
            "[join_schedules] 1 schedules have 1 boundaries. Pass one between each two schedules.",
        ),
    ] {
        assert_eq!(error, text);
    }
    let surplus = Adam::new(0.1).apply_gradients(&one(1.0), &Parameters::new());
    assert_eq!(
        surplus.expect_err("an error").to_string(),
        "[Adam] The gradient \"w\" has no parameter. Pass the model's gradients."
    );
}

#[test]
fn a_learning_rate_can_be_read_and_set() -> Result<()> {
    let mut optimizer = SGD::new(|step: &Array| &(step + 1.0)? * 0.5);
    assert_eq!(optimizer.learning_rate()?.item::<f32>()?, 0.5);
    optimizer.apply_gradients(&one(1.0), &one(1.0))?;
    optimizer.apply_gradients(&one(1.0), &one(1.0))?;
    assert_eq!(optimizer.learning_rate()?.item::<f32>()?, 1.0);
    // The schedule goes with it.
    optimizer.set_learning_rate(2.0);
    let updated = optimizer.apply_gradients(&one(1.0), &one(1.0))?;
    assert_eq!(updated["w"].item::<f32>()?, -1.0);
    Ok(())
}

#[test]
fn a_state_goes_on_where_it_was() -> Result<()> {
    let path = std::env::temp_dir().join(format!("nn-state-{}.safetensors", std::process::id()));
    let make = || {
        let decays = |name: &str, _: &Array| name.ends_with("weight");
        MultiOptimizer::new(Adam::new(0.1)).with(decays, AdamW::new(0.1))
    };
    let (mut whole, mut first) = (make(), make());
    let mut current = parameters(0)?;
    current = first.apply_gradients(&parameters(10)?, &current)?;
    whole.apply_gradients(&parameters(10)?, &parameters(0)?)?;
    first.save_state(&path)?;
    let mut second = make();
    second.load_state(&path)?;
    std::fs::remove_file(&path).expect("the file");
    let expected = whole.apply_gradients(&parameters(20)?, &current)?;
    let got = second.apply_gradients(&parameters(20)?, &current)?;
    for (name, array) in &expected {
        assert_eq!(got[name].to_vec::<f64>()?, array.to_vec::<f64>()?, "{name}");
    }
    let error = second.set_state(Parameters::from([("step".to_owned(), Array::scalar(0u64))]));
    assert_eq!(
        error.expect_err("an error").to_string(),
        "[MultiOptimizer] The state has \"step\", and names of 2 optimizers begin with states.0 to states.1. Set the state that the optimizers had."
    );
    let error = Adam::new(0.1).set_state(Parameters::new()).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "[Adam] The state has no \"step\". Set the state that the optimizer had."
    );
    Ok(())
}

#[test]
fn frozen_parameters_stay() -> Result<()> {
    let mut model = Linear::new(2, 2)?;
    model.freeze_where(|name| name == "bias");
    let before = model.parameters();
    let x = Array::ones(&[1, 2], Dtype::Float32)?;
    let (_, gradients) = ultramarine_nn::value_and_grad(&mut model, |m| {
        ultramarine_nn::Layer::forward(m, &x)?.sum(None)
    })?;
    SGD::new(1.0).update(&mut model, &gradients)?;
    let after = model.parameters();
    assert!(after["bias"].is_same(&before["bias"]));
    let moved = (&before["weight"] - &after["weight"])?.to_vec::<f32>()?;
    assert!(moved.iter().all(|d| (d - 1.0).abs() < 1e-6), "{moved:?}");
    Ok(())
}
