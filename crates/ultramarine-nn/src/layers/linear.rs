//! Linear layers.

use super::base::{Layer, Module};
use super::param::Param;
use crate::init::drawn_uniform;
use ultramarine::shape::Show;
use ultramarine::{Array, Error, Result, fast};

/// A layer that returns its input. It replaces a layer that a variant of a model does not have.
#[derive(Module, Clone, Copy, Debug, Default)]
pub struct Identity;

impl Layer for Identity {
    fn forward(&self, x: &Array) -> Result<Array> {
        Ok(x.clone())
    }
}

/// `x W^T + b` along the last axis: from `(..., input_dims)` to `(..., output_dims)`.
///
/// ```
/// use ultramarine::{Array, Dtype};
/// use ultramarine_nn::{Layer, Linear};
/// let layer = Linear::new(3, 2)?;
/// assert_eq!(layer.forward(&Array::ones(&[5, 3], Dtype::Float32)?)?.shape(), [5, 2]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Linear {
    /// `(output_dims, input_dims)`, drawn uniformly from ±1 / sqrt(input_dims).
    pub weight: Param,
    /// `(output_dims)`, drawn from the same distribution as the weight.
    pub bias: Option<Param>,
}

impl Linear {
    /// Makes a layer with a bias.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn new(input_dims: usize, output_dims: usize) -> Result<Linear> {
        Linear::with_bias(input_dims, output_dims, true)
    }

    /// Makes a layer without a bias.
    ///
    /// # Errors
    /// As [`Linear::new`].
    pub fn without_bias(input_dims: usize, output_dims: usize) -> Result<Linear> {
        Linear::with_bias(input_dims, output_dims, false)
    }

    pub(crate) fn with_bias(inputs: usize, outputs: usize, bias: bool) -> Result<Linear> {
        let bound = bound(inputs);
        let weight = drawn_uniform(&[outputs, inputs], bound)?.into();
        Ok(Linear { weight, bias: drawn_bias(bias, outputs, bound)? })
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Array) -> Result<Array> {
        if let (Some(width), [_, inputs]) = (x.shape().last(), self.weight.shape())
            && width != inputs
        {
            let text = format!(
                "The input of shape {} has {width} features along its last axis, and the layer takes {inputs}. Pass an input with as many.",
                Show(x.shape())
            );
            return Err(Error::value("Linear", text));
        }
        fast::linear(x, &self.weight, self.bias.as_deref())
    }
}

/// The bound of uniform initial values, for the number of summed inputs.
pub(crate) fn bound(inputs: usize) -> f64 {
    (1.0 / inputs.max(1) as f64).sqrt()
}

pub(crate) fn drawn_bias(present: bool, outputs: usize, bound: f64) -> Result<Option<Param>> {
    present.then(|| drawn_uniform(&[outputs], bound).map(Param::from)).transpose()
}

/// `x1 W x2^T + b` for each of the outputs: from `(..., input1_dims)` and `(..., input2_dims)` to
/// `(..., output_dims)`.
#[derive(Module, Clone, Debug)]
pub struct Bilinear {
    /// `(output_dims, input2_dims, input1_dims)`, drawn uniformly from ±1 / sqrt(input1_dims).
    pub weight: Param,
    /// `(output_dims)`, drawn from the same distribution as the weight.
    pub bias: Option<Param>,
}

impl Bilinear {
    /// Makes a layer with a bias.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn new(input1_dims: usize, input2_dims: usize, output_dims: usize) -> Result<Bilinear> {
        let mut layer = Bilinear::without_bias(input1_dims, input2_dims, output_dims)?;
        layer.bias = drawn_bias(true, output_dims, bound(input1_dims))?;
        Ok(layer)
    }

    /// Makes a layer without a bias.
    ///
    /// # Errors
    /// As [`Bilinear::new`].
    pub fn without_bias(
        input1_dims: usize,
        input2_dims: usize,
        output_dims: usize,
    ) -> Result<Bilinear> {
        let shape = [output_dims, input2_dims, input1_dims];
        Ok(Bilinear { weight: drawn_uniform(&shape, bound(input1_dims))?.into(), bias: None })
    }

    /// Computes the layer. Axes before the last are broadcast against each other.
    ///
    /// # Errors
    /// Errors of its products, for sizes that do not fit.
    pub fn forward(&self, x1: &Array, x2: &Array) -> Result<Array> {
        let &[outputs, inputs2, inputs1] = self.weight.shape() else {
            let shape = self.weight.shape();
            let text = format!("The weight has shape {}. Give it three axes.", Show(shape));
            return Err(ultramarine::Error::value("Bilinear", text));
        };
        let flat = self.weight.reshape(&[outputs * inputs2, inputs1])?;
        let matrices = x1.matmul(&flat.transpose()?)?;
        let matrices = matrices.unflatten(-1, &[outputs, inputs2])?;
        let y = matrices.matmul(&x2.expand_dims(-1)?)?.squeeze(-1)?;
        with_bias(y, self.bias.as_ref())
    }
}

/// The sum of a result and a bias, if there is one.
pub(crate) fn with_bias(y: Array, bias: Option<&Param>) -> Result<Array> {
    bias.map_or_else(|| Ok(y.clone()), |bias| y.add(bias))
}
