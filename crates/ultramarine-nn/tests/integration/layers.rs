//! Names, shapes and first values of parameters, outputs and gradients of each layer, compared with Python's.

use crate::support::{Lines, Table, formula_values, total};
use std::collections::BTreeMap;
use ultramarine::fast::AttentionMask::{Array as Masked, Causal, None as Unmasked};
use ultramarine::{
    Array, Dtype, Quantization, QuantizationMode, Result, concatenate, random, transforms,
};
use ultramarine_nn::*;

/// Bounds of sums, in float64 and float32.
const EXACT: f64 = 1e-10;
const ROUNDED: f64 = 2e-5;

/// The numbers that a case is computed with.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    /// Numbers of the formula, in float64.
    Formula,
    /// Those that were drawn, in float32.
    Drawn,
}

struct Cases {
    table: Table,
}

impl Cases {
    /// A layer of one input.
    fn layer<M: Module + Layer + Clone>(
        &self,
        name: &str,
        make: impl Fn() -> Result<M>,
    ) -> Result<()> {
        self.case(name, make, |m, x| m.forward(&x[0]))
    }

    /// A module, with the call that the table has.
    fn case<M: Module + Clone>(
        &self,
        name: &str,
        make: impl Fn() -> Result<M>,
        call: impl Fn(&M, &[Array]) -> Result<Array>,
    ) -> Result<()> {
        self.with(Values::Formula, name, make, call)
    }

    fn drawn<M: Module + Layer + Clone>(
        &self,
        name: &str,
        make: impl Fn() -> Result<M>,
    ) -> Result<()> {
        self.with(Values::Drawn, name, make, |m, x| m.forward(&x[0]))
    }

    fn with<M: Module + Clone>(
        &self,
        values: Values,
        name: &str,
        make: impl Fn() -> Result<M>,
        call: impl Fn(&M, &[Array]) -> Result<Array>,
    ) -> Result<()> {
        let lines = self.table.take(name);
        random::seed(0)?;
        let module = make()?;
        check_parameters(name, &module, &lines);
        match values {
            Values::Drawn => compute(name, module, &lines, values, Dtype::Float32, ROUNDED, call),
            Values::Formula => {
                compute(name, module.clone(), &lines, values, Dtype::Float64, EXACT, &call)?;
                compute(name, module, &lines, values, Dtype::Float32, ROUNDED, &call)
            }
        }
    }
}

fn check_parameters<M: Module>(name: &str, module: &M, lines: &Lines) {
    let (all, trained) = (module.parameters(), module.trainable_parameters());
    let expected: BTreeMap<String, bool> =
        lines.of("param").map(|words| (words[0].to_owned(), words[1] == "trained")).collect();
    let got: BTreeMap<String, bool> =
        all.keys().map(|path| (path.clone(), trained.contains_key(path))).collect();
    assert_eq!(got, expected, "{name}: parameters, and whether they are trained");
    for (path, described) in lines.described("param") {
        described.check(&format!("{name}: {path} as drawn"), &all[&path], 1e-6);
    }
}

fn compute<M: Module>(
    name: &str,
    mut module: M,
    lines: &Lines,
    values: Values,
    dtype: Dtype,
    bound: f64,
    call: impl Fn(&M, &[Array]) -> Result<Array>,
) -> Result<()> {
    if values == Values::Formula {
        module.update_all(&formula_values(&module.parameters(), dtype)?)?;
    }
    let inputs = lines.inputs(dtype);
    let gradients = lines.described("gradient");
    let what = |part: &str| format!("{name} in {dtype}: {part}");

    // Before the running statistics change.
    let copy = module.parameters();
    let of_input = |i: usize| {
        transforms::value_and_grad(|x: &Array| {
            let mut inputs = inputs.clone();
            inputs[i] = x.clone();
            total(&call(&module, &inputs)?)
        })(&inputs[i])
    };
    for i in 0..inputs.len() {
        if let Some(expected) = gradients.get(&format!("input{i}")) {
            expected.check(&what(&format!("gradient of input {i}")), &of_input(i)?.1, bound);
        }
    }
    module.update_all(&copy)?;

    let trained = gradients.keys().any(|path| !path.starts_with("input"));
    let output = if trained {
        let mut output = None;
        let (_, found) = value_and_grad(&mut module, |m| {
            let y = call(m, &inputs)?;
            output = Some(y.clone());
            total(&y)
        })?;
        for (path, gradient) in &found {
            gradients[path].check(&what(&format!("gradient of {path}")), gradient, bound);
        }
        output.expect("the function was called")
    } else {
        call(&module, &inputs)?
    };
    lines.only("output").check(&what("output"), &output, bound);
    for (path, state) in lines.described("state") {
        state.check(&what(&path), &module.parameters()[&path], bound);
    }
    Ok(())
}

fn evaluated<M: Module>(mut module: M) -> M {
    module.eval();
    module
}

#[test]
fn layers_are_those_of_python() -> Result<()> {
    let cases = Cases { table: Table::read("layers.txt") };
    linear(&cases)?;
    convolutions(&cases)?;
    norms(&cases)?;
    pools(&cases)?;
    positions(&cases)?;
    recurrent(&cases)?;
    transformers(&cases)?;
    upsample(&cases)?;
    quantized(&cases)?;
    activations(&cases)?;
    cases.table.finish();
    Ok(())
}

fn linear(c: &Cases) -> Result<()> {
    c.layer("Identity", || Ok(Identity))?;
    c.layer("Linear(3, 2)", || Linear::new(3, 2))?;
    c.layer("Linear(3, 2) without bias", || Linear::without_bias(3, 2))?;
    c.case("Bilinear(3, 2, 4)", || Bilinear::new(3, 2, 4), |m, x| m.forward(&x[0], &x[1]))?;
    c.layer("Embedding(5, 3)", || Embedding::new(5, 3))?;
    c.case("Embedding(5, 3) as linear", || Embedding::new(5, 3), |m, x| m.as_linear(&x[0]))?;
    c.layer("Sequential", || {
        let inner = sequential![PReLU::new(1)?, tanh];
        Ok(sequential![Linear::new(3, 4)?, ReLU, inner, Linear::new(4, 2)?])
    })
}

fn convolutions(c: &Cases) -> Result<()> {
    c.layer("Conv1d(4, 6, 3)", || Conv1d::new(4, 6, 3))?;
    c.layer("Conv1d(4, 6, 3) stride 2 padding 1 dilation 2", || {
        Ok(Conv1d::new(4, 6, 3)?.stride(2).padding(1).dilation(2))
    })?;
    c.layer("Conv2d(3, 4, 3) padding 1", || Ok(Conv2d::new(3, 4, 3)?.padding(1)))?;
    c.layer("Conv2d(3, 4, (2, 3)) stride (2, 1) padding (0, 1) without bias", || {
        Ok(Conv2d::new(3, 4, (2, 3))?.stride((2, 1)).padding([0, 1]).without_bias())
    })?;
    c.layer("Conv3d(2, 3, 2)", || Conv3d::new(2, 3, 2))?;
    c.layer("ConvTranspose1d(3, 2, 3)", || ConvTranspose1d::new(3, 2, 3))?;
    c.layer("ConvTranspose2d(3, 2, 3) stride 2 padding 1 output_padding 1", || {
        Ok(ConvTranspose2d::new(3, 2, 3)?.stride(2).padding(1).output_padding(1))
    })?;
    c.layer("ConvTranspose3d(2, 2, 2)", || ConvTranspose3d::new(2, 2, 2))
}

fn norms(c: &Cases) -> Result<()> {
    c.layer("Dropout(0.5) in evaluation", || Ok(evaluated(Dropout::new(0.5)?)))?;
    c.layer("LayerNorm(6)", || LayerNorm::new(6))?;
    c.layer("LayerNorm(6) without bias", || Ok(LayerNorm::new(6)?.without_bias()))?;
    c.layer("LayerNorm(6) without affine", || Ok(LayerNorm::new(6)?.without_affine().eps(1e-3)))?;
    c.layer("RMSNorm(6)", || RMSNorm::new(6))?;
    c.layer("InstanceNorm(3)", || Ok(InstanceNorm::new()))?;
    c.layer("InstanceNorm(3) affine", || InstanceNorm::with_affine(3))?;
    c.layer("GroupNorm(2, 6)", || GroupNorm::new(2, 6))?;
    c.layer("GroupNorm(2, 6) as PyTorch", || Ok(GroupNorm::new(2, 6)?.pytorch_compatible(true)))?;
    c.layer("GroupNorm(2, 6) of two axes", || GroupNorm::new(2, 6))?;
    c.layer("BatchNorm(3)", || BatchNorm::new(3))?;
    c.layer("BatchNorm(3) in evaluation", || Ok(evaluated(BatchNorm::new(3)?)))?;
    c.layer("BatchNorm(3) without statistics", || {
        Ok(BatchNorm::new(3)?.momentum(0.2).without_affine().without_running_stats())
    })
}

fn pools(c: &Cases) -> Result<()> {
    macro_rules! pools {
        ($kind:literal $one:ident $two:ident $three:ident) => {
            let name = |rest: &str| format!("{}Pool{rest}", $kind);
            c.layer(&name("1d(3) stride 2 padding 1"), || Ok($one::new(3).stride(2).padding(1)))?;
            c.layer(&name("1d(11) stride 2"), || Ok($one::new(11).stride(2)))?;
            c.layer(&name("1d(13) stride 1"), || Ok($one::new(13).stride(1)))?;
            c.layer(&name("2d(2)"), || Ok($two::new(2)))?;
            c.layer(&name("2d(4, 5)"), || Ok($two::new((4, 5))))?;
            c.layer(&name("3d(2) stride 1"), || Ok($three::new(2).stride(1)))?;
        };
    }
    pools!("Max" MaxPool1d MaxPool2d MaxPool3d);
    pools!("Avg" AvgPool1d AvgPool2d AvgPool3d);
    Ok(())
}

fn positions(c: &Cases) -> Result<()> {
    c.layer("RoPE(4)", || Ok(RoPE::new(4)))?;
    c.case(
        "RoPE(6) traditional base 100 scale 0.5 at 3",
        || Ok(RoPE::new(6).traditional(true).base(100.0).scale(0.5)),
        |m, x| m.forward_at(&x[0], &Array::scalar(3i32)),
    )?;
    c.layer("SinusoidalPositionalEncoding(6)", || SinusoidalPositionalEncoding::new(6))?;
    c.layer("SinusoidalPositionalEncoding(4) otherwise", || {
        let encoding = SinusoidalPositionalEncoding::with_frequencies(4, 0.1, 2.0, true)?;
        Ok(encoding.scale(1.0).cos_first(true))
    })?;
    c.case("ALiBi", || Ok(ALiBi), |m, x| m.forward(&x[0], 0, None))?;
    c.case("ALiBi at 2", || Ok(ALiBi), |m, x| m.forward(&x[0], 2, None))
}

fn recurrent(c: &Cases) -> Result<()> {
    c.layer("RNN(3, 4)", || RNN::new(3, 4))?;
    c.layer("RNN(3, 4) with relu", || Ok(RNN::without_bias(3, 4)?.nonlinearity(relu)))?;
    c.layer("GRU(3, 4)", || GRU::new(3, 4))?;
    c.case("GRU(3, 4) from a state", || GRU::new(3, 4), |m, x| m.forward_from(&x[0], Some(&x[1])))?;
    c.layer("GRU(3, 4) without bias", || GRU::without_bias(3, 4))?;
    let joined = |(states, cells): (Array, Array)| concatenate(&[states, cells], -1);
    c.case("LSTM(3, 4)", || LSTM::new(3, 4), |m, x| joined(m.forward_from(&x[0], None, None)?))?;
    c.case(
        "LSTM(3, 4) from a state",
        || LSTM::without_bias(3, 4),
        |m, x| joined(m.forward_from(&x[0], Some(&x[1]), Some(&x[2]))?),
    )
}

fn transformers(c: &Cases) -> Result<()> {
    c.case(
        "MultiHeadAttention(8, 2)",
        || MultiHeadAttention::new(8, 2),
        |m, x| m.forward(&x[0], &x[1], &x[2], Unmasked),
    )?;
    let sizes = AttentionSizes {
        query_input_dims: Some(5),
        key_input_dims: Some(6),
        value_input_dims: Some(7),
        value_dims: Some(4),
        value_output_dims: Some(3),
        bias: true,
    };
    c.case(
        "MultiHeadAttention(8, 2) of other sizes",
        || MultiHeadAttention::with_sizes(8, 2, sizes),
        |m, x| m.forward(&x[0], &x[1], &x[2], Causal),
    )?;
    let plain = TransformerOptions::default();
    c.case(
        "TransformerEncoderLayer(8, 2)",
        || TransformerEncoderLayer::new(8, 2, &plain),
        |m, x| m.forward(&x[0], Unmasked),
    )?;
    let otherwise = TransformerOptions {
        mlp_dims: Some(5),
        activation: gelu.into(),
        norm_first: false,
        ..plain.clone()
    };
    c.case(
        "TransformerEncoderLayer(8, 2) otherwise",
        || TransformerEncoderLayer::new(8, 2, &otherwise),
        |m, x| m.forward(&x[0], Causal),
    )?;
    let checkpointed = TransformerOptions { mlp_dims: Some(6), checkpoint: true, ..plain.clone() };
    c.case(
        "TransformerEncoder(2, 8, 2) checkpointed",
        || TransformerEncoder::new(2, 8, 2, &checkpointed),
        |m, x| {
            let mask = MultiHeadAttention::create_additive_causal_mask(3, x[0].dtype())?;
            m.forward(&x[0], Masked(&mask))
        },
    )?;
    let small = TransformerOptions { mlp_dims: Some(6), ..plain.clone() };
    c.case(
        "TransformerDecoderLayer(8, 2)",
        || TransformerDecoderLayer::new(8, 2, &small),
        |m, x| m.forward(&x[0], &x[1], Causal, Unmasked),
    )?;
    let norms_last = TransformerOptions { norm_first: false, ..checkpointed.clone() };
    c.case(
        "TransformerDecoder(2, 8, 2) checkpointed",
        || TransformerDecoder::new(2, 8, 2, &norms_last),
        |m, x| m.forward(&x[0], &x[1], Causal, Unmasked),
    )?;
    c.case(
        "Transformer(8, 2, 1, 2)",
        || Transformer::new(8, 2, 1, 2, &small),
        |m, x| m.forward(&x[0], &x[1], Unmasked, Causal, Unmasked),
    )
}

fn upsample(c: &Cases) -> Result<()> {
    use Interpolation::{Cubic, Linear, Nearest};
    for (mode, word) in [(Nearest, "nearest"), (Linear, "linear"), (Cubic, "cubic")] {
        let one = |factor: f64| Upsample::new(factor, mode);
        c.layer(&format!("Upsample(2) {word}"), || Ok(one(2.0)))?;
        c.layer(&format!("Upsample(0.6) {word}"), || Ok(one(0.6)))?;
        c.layer(&format!("Upsample(1.5, 3) {word}"), || {
            Ok(Upsample::with_factors([1.5, 3.0], mode))
        })?;
        if mode != Nearest {
            c.layer(&format!("Upsample(1.7) {word} with corners"), || {
                Ok(one(1.7).align_corners(true))
            })?;
            c.layer(&format!("Upsample(0.4) {word} antialiased"), || Ok(one(0.4).antialias(true)))?;
            c.layer(&format!("Upsample(1.5) {word} of a long axis"), || Ok(one(1.5)))?;
        }
    }
    Ok(())
}

fn quantized(c: &Cases) -> Result<()> {
    let mode = Quantization::new;
    for (word, how) in [
        ("affine 8", Quantization::affine(8, 32)),
        ("affine 4", Quantization::affine(4, 64)),
        ("mxfp4 4", mode(QuantizationMode::Mxfp4)),
    ] {
        c.drawn(&format!("QuantizedLinear(64, 4) {word}"), || QuantizedLinear::new(64, 4, how))?;
    }
    c.drawn("QuantizedLinear from Linear", || {
        let linear = Linear::new(64, 4)?;
        // Python makes a layer, with a weight that it drops.
        QuantizedLinear::from_linear(&linear, Quantization::affine(4, 32))
    })?;
    let embedding = || QuantizedEmbedding::new(5, 64, Quantization::default());
    c.drawn("QuantizedEmbedding(5, 64)", embedding)?;
    let as_linear = |m: &QuantizedEmbedding, x: &[Array]| m.as_linear(&x[0]);
    c.with(Values::Drawn, "QuantizedEmbedding(5, 64) as linear", embedding, as_linear)?;
    let layer = || QQLinear::new(64, 4, mode(QuantizationMode::Nvfp4));
    c.drawn("QQLinear(64, 4)", layer)?;
    c.drawn("QQLinear(64, 4) in evaluation", || Ok(evaluated(layer()?)))
}

fn activations(c: &Cases) -> Result<()> {
    macro_rules! layers {
        ($($name:literal $layer:expr;)*) => {$(
            c.case($name, || Ok($layer), |m, x| m.forward(&(&x[0] * 4.0)?))?;
        )*};
    }
    layers! {
        "Sigmoid" Sigmoid;
        "Tanh" Tanh;
        "ReLU" ReLU;
        "ReLU2" ReLU2;
        "ReLU6" ReLU6;
        "LeakyReLU" LeakyReLU::default();
        "LeakyReLU(0.3)" LeakyReLU { negative_slope: 0.3 };
        "PReLU" PReLU::new(1)?;
        "PReLU(4)" PReLU::new(4)?;
        "ELU" ELU::default();
        "ELU(0.5)" ELU { alpha: 0.5 };
        "CELU" CELU::default();
        "CELU(0.5)" CELU { alpha: 0.5 };
        "SELU" SELU;
        "SiLU" SiLU;
        "GELU" GELU::default();
        "GELU tanh" GELU { approximation: Approximation::Tanh };
        "GELU fast" GELU { approximation: Approximation::Fast };
        "GLU" GLU::default();
        "GLU(0)" GLU { axis: 0 };
        "Softplus" Softplus;
        "Mish" Mish;
        "LogSigmoid" LogSigmoid;
        "Softsign" Softsign;
        "Hardswish" Hardswish;
        "HardTanh" HardTanh::default();
        "HardShrink" HardShrink::default();
        "HardShrink(0.2)" HardShrink { lambd: 0.2 };
        "Softshrink" Softshrink::default();
        "Softshrink(0.2)" Softshrink { lambd: 0.2 };
        "Softmax" Softmax::default();
        "Softmin" Softmin::default();
        "LogSoftmax" LogSoftmax::default();
    }
    Ok(())
}

#[test]
fn a_step_is_of_integers() -> Result<()> {
    let x = Array::from_slice(&[-1.0f32, 0.0, 0.5], &[3])?;
    assert_eq!(Step::default().forward(&x)?.to_vec::<i32>()?, [0, 1, 1]);
    assert_eq!(Step { threshold: 0.5 }.forward(&x)?.to_vec::<i32>()?, [0, 0, 1]);
    Ok(())
}

#[test]
fn an_input_of_another_width_is_named() -> Result<()> {
    let error = Linear::new(3, 4)?.forward(&Array::ones(&[5, 2], Dtype::Float32)?);
    let text = error.expect_err("two features for three").to_string();
    assert!(text.contains("[Linear] The input of shape (5, 2) has 2 features"), "{text}");
    assert!(text.contains("takes 3"), "{text}");
    Ok(())
}
