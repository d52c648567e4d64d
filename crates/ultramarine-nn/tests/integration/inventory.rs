//! Names that the Python package exports have a counterpart of the same name here, or a reason why not.

use std::collections::BTreeSet;
use std::path::Path;

/// Names without a counterpart, and why.
const LEFT_OUT: &[(&str, &str, &[&str])] = &[
    (
        "layers",
        "layers are those of one process; `ultramarine::distributed` has the collectives, and `checkpoints` the files",
        &[
            "AllToShardedLinear",
            "FullyShardedModule",
            "QuantizedAllToShardedLinear",
            "QuantizedShardedToAllLinear",
            "ShardedToAllLinear",
            "fully_shard",
        ],
    ),
    (
        "utils",
        "layers are those of one process; `ultramarine::distributed` has the collectives, and `checkpoints` the files",
        &["average_gradients", "clip_grad_norm_sharded"],
    ),
];

/// Imports each name from its module, so that it has to exist, and lists them.
macro_rules! here {
    ([$($module:ident)::+] $($name:ident)*) => {{
        #[allow(unused_imports)]
        mod imported {
            use $($module)::+::{$($name as _),*};
        }
        &[$(stringify!($name)),*]
    }};
}

/// The Python module's file, what Rust has of it, and how the file names what it exports.
fn modules() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    vec![
        (
            "layers",
            "nn/layers/__init__.py",
            here!([ultramarine_nn]
                ALiBi AvgPool1d AvgPool2d AvgPool3d BatchNorm Bilinear CELU Conv1d Conv2d Conv3d ConvTranspose1d
                ConvTranspose2d ConvTranspose3d Dropout Dropout2d Dropout3d ELU Embedding GELU GLU GRU GroupNorm HardShrink
                HardTanh Hardswish Identity InstanceNorm LSTM LayerNorm LeakyReLU Linear LogSigmoid LogSoftmax MaxPool1d
                MaxPool2d MaxPool3d Mish Module MultiHeadAttention PReLU QQLinear QuantizedEmbedding QuantizedLinear RMSNorm
                RNN ReLU ReLU2 ReLU6 RoPE SELU Sequential SiLU Sigmoid SinusoidalPositionalEncoding Softmax Softmin Softplus
                Softshrink Softsign Step Tanh Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
                TransformerEncoderLayer Upsample celu elu gelu gelu_approx gelu_fast_approx glu hard_shrink hard_tanh
                hardswish leaky_relu log_sigmoid log_softmax mish prelu quantize relu relu2 relu6 selu sigmoid silu softmax
                softmin softplus softshrink softsign step tanh),
        ),
        (
            "losses",
            "nn/losses.py",
            here!([ultramarine_nn::losses]
                binary_cross_entropy cosine_similarity_loss cross_entropy gaussian_nll_loss hinge_loss huber_loss kl_div_loss
                l1_loss log_cosh_loss margin_ranking_loss mse_loss nll_loss smooth_l1_loss triplet_loss),
        ),
        (
            "init",
            "nn/init.py",
            here!([ultramarine_nn::init]
                constant glorot_normal glorot_uniform he_normal he_uniform identity normal orthogonal sparse uniform),
        ),
        ("utils", "nn/utils.py", here!([ultramarine_nn::utils] checkpoint value_and_grad)),
        (
            "optimizers",
            "optimizers/__init__.py",
            here!([ultramarine_nn::optimizers]
                AdaDelta Adafactor Adagrad Adam AdamW Adamax Lion MultiOptimizer Muon Optimizer RMSprop SGD clip_grad_norm
                cosine_decay exponential_decay join_schedules linear_schedule step_decay),
        ),
    ]
}

/// The names in `__all__`, or those that are imported under their own name from a module inside of the package.
fn exported(text: &str) -> BTreeSet<String> {
    if let Some((_, list)) = text.split_once("__all__ = [") {
        let (list, _) = list.split_once(']').expect("the list's end");
        return list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    }
    let imports = text.lines().filter_map(|line| line.split_once(" import "));
    let classes = imports.filter(|(from, _)| from.matches('.').count() > 1);
    let name = |(_, names): (&str, &str)| names.split(" as ").next().map(str::to_owned);
    classes.filter_map(name).collect()
}

#[test]
fn what_python_has_is_here_or_left_out_for_a_reason() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ultramarine");
    for (module, file, here) in modules() {
        let text = std::fs::read_to_string(package.join(file)).expect("the Python package");
        let python = exported(&text);
        assert!(python.len() > 3, "{file} exports {python:?}");
        let here: BTreeSet<String> = here.iter().map(|name| (*name).to_owned()).collect();
        let left_out: BTreeSet<String> = LEFT_OUT
            .iter()
            .filter(|(of, _, _)| *of == module)
            .flat_map(|(_, _, names)| names.iter().map(|name| (*name).to_owned()))
            .collect();
        let missing: Vec<_> = python.difference(&here).filter(|n| !left_out.contains(*n)).collect();
        assert!(missing.is_empty(), "{file} has {missing:?}. Add them here, or say why not.");
        let stale: Vec<_> = left_out.union(&here).filter(|n| !python.contains(*n)).collect();
        assert!(stale.is_empty(), "{file} has no {stale:?}. Remove them from the lists.");
        let both: Vec<_> = left_out.intersection(&here).collect();
        assert!(both.is_empty(), "{both:?} are left out, and here.");
    }
}

/// The modules of `nn` itself, and what it exports beside its layers.
#[test]
fn the_package_exports_nothing_else() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ultramarine/nn/__init__.py");
    let text = std::fs::read_to_string(file).expect("the Python package");
    let others: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("from ultramarine.nn.utils import "))
        .filter_map(|names| names.split(" as ").next())
        .collect();
    assert_eq!(others, ["average_gradients", "value_and_grad"]);
    let from: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("from ")?.split(' ').next()).collect();
    let known = ["ultramarine.nn", "ultramarine.nn.layers", "ultramarine.nn.utils"];
    assert_eq!(from, known.into());
}
