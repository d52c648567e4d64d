//! Kernels in source form, which are user-defined operations on devices without a build step; and parts of layers.
//!
//! A [`Kernel`] is the body of a function, in one or more languages, with the names of its inputs and outputs. Its
//! signature is generated from these names and the dtypes of the call, and a [`prelude`] of helper functions precedes
//! it. It is compiled once for each device and source.
//!
//! `docs/kernels.md` lists the names of each language that a body can use.
//!
//! # Example
//! ```
//! use ultramarine::{Array, Dtype, fast::{Kernel, Launch}};
//!
//! let square = Kernel::new("square", &["x"], &["y"])?
//!     .source("opencl-c", "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];")
//!     .source("cuda-c", "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];");
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
//! let launch = Launch::new([3, 1, 1], [64, 1, 1]).output(&[3], Dtype::Float32);
//! match square.call(&[&x], &launch) {
//!     Ok(outputs) => assert_eq!(outputs[0].to_vec::<f32>()?, [1.0, 4.0, 9.0]),
//!     // On the CPU, which takes no kernels in source form.
//!     Err(error) => assert!(error.to_string().contains("opencl-c, cuda-c")),
//! }
//! # Ok::<(), ultramarine::Error>(())
//! ```

mod compiled;
mod foreign;
mod kernel;
mod op;
mod source;

use crate::error::{Result, bail};
pub use crate::ops::matmul::linear::linear;
pub use crate::ops::nn::attention::{
    AttentionMask, has_attention_kernel, scaled_dot_product_attention,
};
pub use crate::ops::nn::cross_entropy::cross_entropy;
pub use crate::ops::nn::gated_delta::gated_delta_update;
pub use crate::ops::nn::norm::{layer_norm, rms_norm};
pub use crate::ops::nn::rope::{Rope, rope};
pub(crate) use compiled::COMPILED;
pub use compiled::{CompiledKernel, ScalarArgument};
pub use foreign::ForeignKernel;
use kernel::Definition;
pub use kernel::{Kernel, Launch, Template};

/// The languages for which the signature of a [`Kernel`] can be generated. A backend accepts some of them, in its own
/// order of preference.
pub const LANGUAGES: [&str; 4] = ["opencl-c", "cuda-c", "msl", "wgsl"];

/// The error of a transform that meets a kernel's call.
fn no_rule<T>(kernel: &str, rule: &str) -> Result<T> {
    bail!(
        rule,
        "The kernel {kernel} has no {rule} rule. Wrap its call in custom_function and define one."
    )
}

/// The text that precedes kernels of a language: helper functions whose names begin with `um_`. `None` for a language
/// without a prelude.
///
/// Languages are those of [`LANGUAGES`]; `docs/kernels.md` lists the helpers of each.
pub fn prelude(language: &str) -> Option<&'static str> {
    Some(match language {
        "opencl-c" => include_str!("prelude/opencl.cl"),
        "cuda-c" => include_str!("prelude/cuda.cu"),
        "msl" => include_str!("prelude/metal.metal"),
        "wgsl" => include_str!("prelude/webgpu.wgsl"),
        _ => return None,
    })
}
