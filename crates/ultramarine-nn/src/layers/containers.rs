//! Chains of layers.

use super::base::{Layer, Module};
use std::fmt;
use std::sync::Arc;
use ultramarine::{Array, Result};

/// A chain of layers, each applied to the previous one's result. Their names are `layers.0`,
/// `layers.1` and so on.
///
/// ```
/// use ultramarine::{Array, Dtype};
/// use ultramarine_nn::{Layer, Linear, Module, relu, sequential};
/// let model = sequential![Linear::new(4, 8)?, relu, Linear::new(8, 2)?];
/// assert_eq!(model.forward(&Array::ones(&[3, 4], Dtype::Float32)?)?.shape(), [3, 2]);
/// assert!(model.parameters().contains_key("layers.2.weight"));
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Default)]
pub struct Sequential {
    /// The layers, in their order.
    pub layers: Vec<Box<dyn SequentialLayer>>,
}

impl Sequential {
    /// Makes a model without layers, which returns its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer, or a function of an array such as [`relu`](crate::relu).
    pub fn push<Kind>(&mut self, layer: impl IntoLayer<Kind>) {
        self.layers.push(layer.into_layer());
    }

    /// Returns the chain with another layer or a function appended.
    /// [`sequential!`](crate::sequential) calls it for each of its arguments.
    #[must_use]
    pub fn then<Kind>(mut self, layer: impl IntoLayer<Kind>) -> Sequential {
        self.push(layer);
        self
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x))
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.layers.iter().map(|l| l.type_name())).finish()
    }
}

/// Makes a [`Sequential`] of layers and functions: `sequential![Linear::new(4, 8)?, relu]`.
#[macro_export]
macro_rules! sequential {
    ($($layer:expr),* $(,)?) => { $crate::Sequential::new()$(.then($layer))* };
}

/// A layer in a [`Sequential`]: any [`Layer`] that is a [`Module`] and can be cloned. The trait is
/// implemented for all such layers.
pub trait SequentialLayer: Layer + Module + Send + Sync {
    /// Returns a copy whose parameters are the same arrays.
    fn boxed_clone(&self) -> Box<dyn SequentialLayer>;

    /// Returns the name of the layer's type, for `Debug`.
    fn type_name(&self) -> &'static str;
}

impl<L: Layer + Module + Clone + Send + Sync + 'static> SequentialLayer for L {
    fn boxed_clone(&self) -> Box<dyn SequentialLayer> {
        Box::new(self.clone())
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<L>()
    }
}

impl Clone for Box<dyn SequentialLayer> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Items of a [`Sequential`]: layers, and functions of an array. `Kind` distinguishes the two, and
/// is inferred.
pub trait IntoLayer<Kind> {
    /// Returns the layer in a box.
    fn into_layer(self) -> Box<dyn SequentialLayer>;
}

/// The kind of layers; see [`IntoLayer`].
pub enum IsLayer {}

/// The kind of functions; see [`IntoLayer`].
pub enum IsFunction {}

impl<L: Layer + Module + Clone + Send + Sync + 'static> IntoLayer<IsLayer> for L {
    fn into_layer(self) -> Box<dyn SequentialLayer> {
        Box::new(self)
    }
}

impl<F: Fn(&Array) -> Result<Array> + Send + Sync + 'static> IntoLayer<IsFunction> for F {
    fn into_layer(self) -> Box<dyn SequentialLayer> {
        Box::new(Activation::from(self))
    }
}

/// A function of an array as a layer, which has no parameters.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Activation, Layer, relu};
/// let activation = Activation::from(relu);
/// assert_eq!(activation.forward(&Array::scalar(-1.0f32))?.item::<f32>()?, 0.0);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone)]
pub struct Activation {
    #[module(skip)]
    function: Arc<Function>,
}

type Function = dyn Fn(&Array) -> Result<Array> + Send + Sync;

impl<F: Fn(&Array) -> Result<Array> + Send + Sync + 'static> From<F> for Activation {
    fn from(function: F) -> Activation {
        Activation { function: Arc::new(function) }
    }
}

impl Layer for Activation {
    fn forward(&self, x: &Array) -> Result<Array> {
        (self.function)(x)
    }
}

impl fmt::Debug for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Activation")
    }
}
