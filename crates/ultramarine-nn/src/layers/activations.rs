//! Activation functions as layers.

use super::activation_functions::*;
use super::base::{Layer, Module};
use super::param::Param;
use ultramarine::{Array, Result};

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident $function:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Clone, Copy, Debug, Default)]
        pub struct $name;

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                $function(x)
            }
        }
    )*};
}

layers! {
    /// The layer of [`sigmoid`].
    Sigmoid sigmoid;
    /// The layer of [`tanh`].
    Tanh tanh;
    /// The layer of [`relu`].
    ReLU relu;
    /// The layer of [`relu2`].
    ReLU2 relu2;
    /// The layer of [`relu6`].
    ReLU6 relu6;
    /// The layer of [`selu`].
    SELU selu;
    /// The layer of [`silu`].
    SiLU silu;
    /// The layer of [`softplus`].
    Softplus softplus;
    /// The layer of [`mish`].
    Mish mish;
    /// The layer of [`log_sigmoid`].
    LogSigmoid log_sigmoid;
    /// The layer of [`softsign`].
    Softsign softsign;
    /// The layer of [`hardswish`].
    Hardswish hardswish;
}

macro_rules! layers_with_numbers {
    ($(
        $(#[$doc:meta])*
        $name:ident $function:ident { $($(#[$about:meta])* $field:ident: $of:ty = $default:expr,)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Module, Clone, Copy, Debug)]
        pub struct $name {
            $($(#[$about])* pub $field: $of,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                $function(x $(, self.$field)*)
            }
        }
    )*};
}

layers_with_numbers! {
    /// The layer of [`leaky_relu`].
    LeakyReLU leaky_relu {
        /// Factor below 0; 0.01 by default.
        negative_slope: f64 = 0.01,
    }
    /// The layer of [`elu`].
    ELU elu {
        /// Factor below 0; 1 by default.
        alpha: f64 = 1.0,
    }
    /// The layer of [`celu`].
    CELU celu {
        /// Factor below 0; 1 by default.
        alpha: f64 = 1.0,
    }
    /// The layer of [`glu`].
    GLU glu {
        /// Axis that is halved; the last by default.
        axis: isize = -1,
    }
    /// The layer of [`hard_tanh`].
    HardTanh hard_tanh {
        /// Smallest result; -1 by default.
        min_val: f64 = -1.0,
        /// Largest result; 1 by default.
        max_val: f64 = 1.0,
    }
    /// The layer of [`hard_shrink`].
    HardShrink hard_shrink {
        /// Largest absolute value that gives 0; 0.5 by default.
        lambd: f64 = 0.5,
    }
    /// The layer of [`softshrink`].
    Softshrink softshrink {
        /// Largest absolute value that gives 0; 0.5 by default.
        lambd: f64 = 0.5,
    }
    /// The layer of [`step`].
    Step step {
        /// Smallest element that gives 1; 0 by default.
        threshold: f64 = 0.0,
    }
    /// The layer of [`softmax`].
    Softmax softmax {
        /// The axis; the last by default.
        axis: isize = -1,
    }
    /// The layer of [`softmin`].
    Softmin softmin {
        /// The axis; the last by default.
        axis: isize = -1,
    }
    /// The layer of [`log_softmax`].
    LogSoftmax log_softmax {
        /// The axis; the last by default.
        axis: isize = -1,
    }
    /// The layer of [`gelu`] and its approximations.
    GELU gelu_of {
        /// The approximation; [`gelu`] itself by default.
        approximation: Approximation = Approximation::None,
    }
}

/// Selects the function that [`GELU`] computes: the exact one or an approximation. The names are
/// Python's.
#[derive(Module, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximation {
    /// [`gelu`].
    #[default]
    None,
    /// [`gelu_approx`]: `precise` or `tanh` in Python.
    Tanh,
    /// [`gelu_fast_approx`]: `fast` in Python.
    Fast,
}

fn gelu_of(x: &Array, approximation: Approximation) -> Result<Array> {
    match approximation {
        Approximation::None => gelu(x),
        Approximation::Tanh => gelu_approx(x),
        Approximation::Fast => gelu_fast_approx(x),
    }
}

/// The layer of [`prelu`]. Its slopes below 0 are trained (He et al., 2015).
#[derive(Module, Clone, Debug)]
pub struct PReLU {
    /// The slopes, `(num_parameters)`: a single one, or one for each channel.
    pub weight: Param,
}

impl PReLU {
    /// Makes a layer with initial slopes of 0.25.
    ///
    /// # Errors
    /// [`Error::Value`](ultramarine::Error::Value) for a number that is too large.
    pub fn new(num_parameters: usize) -> Result<PReLU> {
        Ok(PReLU { weight: Array::full(&[num_parameters], 0.25f32)?.into() })
    }
}

impl Layer for PReLU {
    fn forward(&self, x: &Array) -> Result<Array> {
        prelu(x, &self.weight)
    }
}
