//! Modules: names, freezing, modes, and what a derive makes of fields.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use ultramarine::{Array, Dtype, Result, eval};
use ultramarine_nn::*;

fn param(x: f32) -> Param {
    Array::scalar(x).into()
}

fn names(module: &impl Module) -> Vec<String> {
    module.parameters().into_keys().collect()
}

#[derive(Module, Clone)]
struct Leaf {
    a: Param,
    b: Option<Param>,
}

fn leaf(x: f32) -> Leaf {
    Leaf { a: param(x), b: None }
}

/// Fields of all kinds.
#[derive(Module, Clone)]
#[allow(dead_code)] // Fields that are left out.
struct Fields<M> {
    plain: Leaf,
    vector: Vec<Leaf>,
    array: [Leaf; 2],
    tuple: (Leaf, Param),
    boxed: Box<Leaf>,
    generic: M,
    map: BTreeMap<String, Leaf>,
    nested: Vec<Vec<Param>>,
    #[module(rename = "other")]
    renamed: Param,
    r#type: Param,
    state: State,
    #[module(skip)]
    skipped: Param,
    #[module(skip)]
    function: fn(u32) -> u32,
    activation: fn(&Array) -> Result<Array>,
    number: usize,
    float: f64,
    flag: bool,
    text: String,
    word: &'static str,
    sizes: Vec<usize>,
    dtype: Dtype,
    nothing: Option<bool>,
    phantom: PhantomData<u8>,
    training: Training,
}

fn fields() -> Fields<Kinds> {
    Fields {
        plain: Leaf { a: param(1.0), b: Some(param(2.0)) },
        vector: vec![leaf(3.0), leaf(4.0)],
        array: [leaf(5.0), leaf(6.0)],
        tuple: (leaf(7.0), param(8.0)),
        boxed: Box::new(leaf(9.0)),
        generic: Kinds::Named { left: param(10.0), right: leaf(11.0) },
        map: [("key".to_owned(), leaf(12.0))].into(),
        nested: vec![vec![param(13.0)], vec![]],
        renamed: param(14.0),
        r#type: param(15.0),
        state: Array::scalar(16.0f32).into(),
        skipped: param(17.0),
        function: |x| x,
        activation: relu,
        number: 1,
        float: 1.0,
        flag: true,
        text: String::new(),
        word: "",
        sizes: vec![1],
        dtype: Dtype::Float32,
        nothing: None,
        phantom: PhantomData,
        training: Training::default(),
    }
}

/// Variants of all kinds.
#[derive(Module, Clone)]
enum Kinds {
    Whole(Leaf),
    Pair(Param, Leaf),
    Named { left: Param, right: Leaf },
    Empty,
}

#[derive(Module, Clone)]
struct Numbered(Param, #[module(skip)] (), Leaf);

#[test]
fn names_are_paths_of_fields() {
    assert_eq!(
        names(&fields()),
        [
            "array.0.a",
            "array.1.a",
            "boxed.a",
            "generic.left",
            "generic.right.a",
            "map.key.a",
            "nested.0.0",
            "other",
            "plain.a",
            "plain.b",
            "state",
            "tuple.0.a",
            "tuple.1",
            "type",
            "vector.0.a",
            "vector.1.a",
        ]
    );
    assert_eq!(names(&Numbered(param(1.0), (), leaf(3.0))), ["0", "2.a"]);
    assert_eq!(names(&Kinds::Whole(leaf(1.0))), ["a"]);
    assert_eq!(names(&Kinds::Pair(param(1.0), leaf(1.0))), ["0", "1.a"]);
    assert_eq!(names(&Kinds::Empty), [""; 0]);
    // Of many layers they are in the order of their text.
    let many: Vec<Leaf> = (0..11).map(|i| leaf(i as f32)).collect();
    assert_eq!(names(&many)[1..4], ["1.a", "10.a", "2.a"]);
}

#[test]
fn parameters_have_operators() -> Result<()> {
    let (x, p) = (Array::scalar(6.0f32), param(3.0));
    let results = [
        &x * &p,
        &p * &x,
        &x / &p,
        &p - &x,
        &p - &p,
        &p + 1.0,
        1.0 - &p,
        2 * &p,
        &p / 2,
        x.clone() + &p,
        &p + x.clone(),
        -&p,
    ];
    let values = results.into_iter().map(|r| r?.item::<f32>());
    let values = values.collect::<Result<Vec<_>>>()?;
    assert_eq!(values, [18.0, 18.0, 2.0, -3.0, 0.0, 4.0, -2.0, 6.0, 1.5, 9.0, 9.0, -3.0]);
    Ok(())
}

#[test]
fn parameters_are_frozen_by_name_and_state_always_is() {
    let mut model = fields();
    let all = names(&model).len();
    assert_eq!(model.trainable_parameters().len(), all - 1);
    model.freeze();
    assert!(model.trainable_parameters().is_empty());
    model.unfreeze_where(|name| name.starts_with("vector."));
    let trained: Vec<String> = model.trainable_parameters().into_keys().collect();
    assert_eq!(trained, ["vector.0.a", "vector.1.a"]);
    model.unfreeze();
    assert_eq!(model.trainable_parameters().len(), all - 1);
    model.freeze_where(|name| name.starts_with("plain"));
    assert!(model.plain.a.is_frozen() && !model.renamed.is_frozen());
    assert!(Param::frozen(Array::scalar(1.0f32)).is_frozen());
}

#[test]
fn modes_reach_all_layers() -> Result<()> {
    #[derive(Module, Clone)]
    struct Model {
        layers: Vec<Sequential>,
        own: Training,
    }
    let mut model = Model {
        layers: vec![sequential![Dropout::new(0.5)?, BatchNorm::new(2)?]],
        own: Training::default(),
    };
    let x = Array::ones(&[4, 2], Dtype::Float32)?;
    model.eval();
    let first = model.layers[0].forward(&x)?;
    assert!(!*model.own);
    assert_eq!(first.to_vec::<f32>()?, model.layers[0].forward(&x)?.to_vec::<f32>()?);
    assert_eq!(model.parameters()["layers.0.layers.1.running_mean"].to_vec::<f32>()?, [0.0; 2]);
    model.train();
    assert!(*model.own);
    model.layers[0].forward(&x)?;
    assert_ne!(model.parameters()["layers.0.layers.1.running_mean"].to_vec::<f32>()?, [0.0; 2]);
    Ok(())
}

#[test]
fn updates_check_names_and_shapes() -> Result<()> {
    let mut model = leaf(1.0);
    let new = |name: &str, array: Array| Parameters::from([(name.to_owned(), array)]);
    model.update(&new("a", Array::scalar(2.0f32)))?;
    assert_eq!(model.a.item::<f32>()?, 2.0);
    model.update(&Parameters::new())?;
    let error = |outcome: Result<()>| outcome.expect_err("an error").to_string();
    assert_eq!(
        error(model.update(&new("b", Array::scalar(2.0f32)))),
        "[update] not parameters of the model: b. Compare with the names and shapes of `parameters`."
    );
    assert_eq!(
        error(model.update(&new("a", Array::zeros(&[2], Dtype::Float32)?))),
        "[update] not of the shape of their parameters: a [2] for []. Compare with the names and shapes of \
         `parameters`."
    );
    assert_eq!(
        error(model.update_all(&Parameters::new())),
        "[update_all] missing: a. Compare with the names and shapes of `parameters`."
    );
    model.set_dtype(Dtype::Float16);
    assert_eq!(model.a.dtype(), Dtype::Float16);
    Ok(())
}

#[test]
fn gradients_are_of_trained_parameters() -> Result<()> {
    #[derive(Module)]
    struct Model {
        a: Param,
        b: Param,
        calls: State,
    }
    let mut model = Model { a: param(3.0), b: param(2.0), calls: Array::scalar(0.0f32).into() };
    let product = |m: &Model| {
        m.calls.set((&m.calls.get() + 1.0)?.multiply(m.a.stop_gradient())?);
        m.a.multiply(&*m.a)?.multiply(&*m.b)
    };
    let (value, gradients) = value_and_grad(&mut model, product)?;
    assert_eq!(value.item::<f32>()?, 18.0);
    assert_eq!(gradients["a"].item::<f32>()?, 12.0);
    assert_eq!(gradients["b"].item::<f32>()?, 9.0);
    // The array that the call kept was computed with the parameters, and is there afterwards.
    eval(&model.arrays())?;
    assert_eq!(model.calls.get().item::<f32>()?, 3.0);

    model.a.set_frozen(true);
    let before = model.a.clone();
    let (_, gradients) = value_and_grad(&mut model, product)?;
    assert_eq!(gradients.into_keys().collect::<Vec<_>>(), ["b"]);
    assert!(model.a.is_same(&before));

    // After an error the parameters are the ones before.
    let b = model.b.clone();
    let failed = value_and_grad(&mut model, |m| m.b.reshape(&[2]));
    assert!(failed.is_err() && model.b.is_same(&b));
    let error = |outcome: Result<(Array, Gradients)>| outcome.expect_err("an error").to_string();
    assert_eq!(
        error(value_and_grad(&mut model, |m| m.b.reshape(&[1]))),
        "[value_and_grad] The function must return a scalar, not an array of shape (1,). Take its mean or sum."
    );
    model.b.set(Array::scalar(1i32));
    assert_eq!(
        error(value_and_grad(&mut model, product)),
        "[value_and_grad] The parameter b is int32, which has no gradient. Freeze it."
    );
    model.freeze();
    assert_eq!(
        error(value_and_grad(&mut model, product)),
        "[value_and_grad] The model has no parameters to train. Unfreeze some."
    );
    Ok(())
}

#[test]
fn sequential_holds_layers_and_functions() -> Result<()> {
    let mut model = sequential![Linear::new(2, 2)?, relu, |x: &Array| x + 1.0, GELU::default()];
    model.push(Identity);
    assert_eq!(model.layers.len(), 5);
    let copy = model.clone();
    model.freeze();
    assert_eq!(copy.trainable_parameters().len(), 2);
    let weight = |m: &Sequential| m.parameters()["layers.0.weight"].clone();
    assert!(weight(&copy).is_same(&weight(&model)));
    let empty = Sequential::new().forward(&Array::scalar(1.0f32))?;
    assert_eq!(empty.item::<f32>()?, 1.0);
    Ok(())
}

#[test]
fn checkpoints_have_the_same_gradients() -> Result<()> {
    let mut model = sequential![Linear::new(3, 3)?, tanh, Linear::new(3, 1)?];
    let x = Array::from_slice(&[0.5f32, -1.0, 2.0], &[1, 3])?;
    let (_, plain) = value_and_grad(&mut model, |m| m.forward(&x)?.sum(None))?;
    let (_, again) = value_and_grad(&mut model, |m| utils::checkpoint(m, &x)?.sum(None))?;
    for (name, gradient) in &plain {
        assert_eq!(again[name].to_vec::<f32>()?, gradient.to_vec::<f32>()?, "{name}");
    }
    Ok(())
}

#[test]
fn checkpoints_draw_the_same_numbers_again() -> Result<()> {
    let layer = Dropout::new(0.5)?;
    let x = Array::ones(&[64], Dtype::Float32)?;
    let mut output = None;
    let state = std::cell::RefCell::new(&mut output);
    let loss = |x: &Array| {
        let y = utils::checkpoint(&layer, x)?;
        **state.borrow_mut() = Some(y.clone());
        y.sum(None)
    };
    let (_, gradient) = ultramarine::transforms::value_and_grad(loss)(&x)?;
    let output = output.expect("the function was called").to_vec::<f32>()?;
    assert_eq!(gradient.to_vec::<f32>()?, output);
    // And others in the next call.
    assert_ne!(utils::checkpoint(&layer, &x)?.to_vec::<f32>()?, output);
    Ok(())
}

#[test]
fn wrong_inputs_are_named() -> Result<()> {
    let x = Array::ones(&[2], Dtype::Float32)?;
    let error = |outcome: Result<Array>| outcome.expect_err("an error").to_string();
    for (error, text) in [
        (
            error(InstanceNorm::new().forward(&x)),
            "[InstanceNorm] The input has shape (2,). Pass at least 3 axes, the first for the batch, the last for channels.",
        ),
        (
            error(Dropout2d::new(0.1)?.forward(&x)),
            "[Dropout2d] The input has shape (2,). Pass an array of 3 or 4 axes, channels last.",
        ),
        (
            error(MaxPool1d::new(2).forward(&x)),
            "[MaxPool1d] The input has shape (2,). Pass 3 axes, the first for the batch, the last for channels.",
        ),
        (
            error(BatchNorm::new(2)?.forward(&x.reshape(&[1, 2])?)),
            "[BatchNorm] The input of shape (1, 2) has one value per channel. Pass more in training.",
        ),
        (
            error(RNN::new(2, 2)?.forward(&x)),
            "[RNN] The input has shape (2,). Pass (..., steps, elements).",
        ),
        (
            error(Upsample::new(2.0, Interpolation::Nearest).forward(&x)),
            "[Upsample] The input has shape (2,). Pass (batch, ..., channels) with a spatial axis.",
        ),
    ] {
        assert_eq!(error, text);
    }
    let text = |error: ultramarine::Error| error.to_string();
    assert_eq!(
        Dropout::new(1.0).map_err(text).expect_err("an error"),
        "[Dropout] p is 1. Pass a probability of at least 0 and below 1."
    );
    assert_eq!(
        Conv1d::new(4, 4, 1)?.groups(3).map_err(text).expect_err("an error"),
        "[Conv1d] 4 input channels cannot be divided into 3 groups. Pass a divisor."
    );
    assert_eq!(Conv1d::new(4, 4, 1)?.groups(2)?.weight.shape(), [4, 1, 2]);
    assert_eq!(
        MultiHeadAttention::new(3, 2).map_err(text).expect_err("an error"),
        "[MultiHeadAttention] 3 dims cannot be divided into 2 heads. Pass a multiple of the heads."
    );
    Ok(())
}
