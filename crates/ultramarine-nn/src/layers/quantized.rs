//! Layers with quantized weights.

use super::base::{Layer, Leaf, LeafMut, Mode, Module, Visitor, VisitorMut};
use super::embedding::Embedding;
use super::linear::{Linear, bound, with_bias};
use super::param::Param;
use crate::init::{drawn_normal, drawn_uniform};
use ultramarine::{
    Array, Dtype, Error, Quantization, Quantized, Result, SecondFactor, qqmm, quantized_matmul,
};

/// The frozen arrays of a quantized weight.
struct Parts {
    weight: Param,
    scales: Param,
    biases: Option<Param>,
}

impl Parts {
    fn of(weight: &Array, how: Quantization) -> Result<Parts> {
        let Quantized { words, scales, biases, .. } = ultramarine::quantize(weight, how, None)?;
        Ok(Parts {
            weight: Param::frozen(words),
            scales: Param::frozen(scales),
            biases: biases.map(Param::frozen),
        })
    }
}

/// The parts as the core's quantized array.
fn joined(weight: &Array, scales: &Array, biases: Option<&Array>, how: Quantization) -> Quantized {
    let (words, scales, biases) = (weight.clone(), scales.clone(), biases.cloned());
    Quantized { words, scales, biases, global_scale: None, how }
}

/// [`Linear`] with a quantized weight. Its parameters are frozen, except a bias that it takes over from a [`Linear`].
///
/// ```
/// use ultramarine::{Array, Dtype, Quantization};
/// use ultramarine_nn::{Layer, Linear, QuantizedLinear};
/// let linear = Linear::new(64, 8)?;
/// let layer = QuantizedLinear::from_linear(&linear, Quantization::affine(8, 32))?;
/// let x = Array::ones(&[1, 64], Dtype::Float32)?;
/// let difference = (&linear.forward(&x)? - &layer.forward(&x)?)?;
/// assert!(difference.abs()?.max(None)?.item::<f32>()? < 0.05);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct QuantizedLinear {
    /// Words that hold the elements of a row each, `(output_dims, input_dims * bits / 32)`.
    pub weight: Param,
    /// Scales of the groups, `(output_dims, input_dims / group_size)`.
    pub scales: Param,
    /// Biases of the groups, in the affine mode.
    pub biases: Option<Param>,
    /// Bias of the layer, `(output_dims)`.
    pub bias: Option<Param>,
    /// Mode, group size and bits.
    pub how: Quantization,
}

impl QuantizedLinear {
    /// Makes a layer with a random weight, and a bias of zeros.
    ///
    /// # Errors
    /// For sizes that the mode does not have, or input dimensions that are not a multiple of the group size.
    pub fn new(input_dims: usize, output_dims: usize, how: Quantization) -> Result<Self> {
        let mut layer = QuantizedLinear::without_bias(input_dims, output_dims, how)?;
        layer.bias = Some(Param::frozen(Array::zeros(&[output_dims], Dtype::Float32)?));
        Ok(layer)
    }

    /// Makes a layer with a random weight, without a bias.
    ///
    /// # Errors
    /// As [`QuantizedLinear::new`].
    pub fn without_bias(input_dims: usize, output_dims: usize, how: Quantization) -> Result<Self> {
        let weight = drawn_uniform(&[output_dims, input_dims], bound(input_dims))?;
        QuantizedLinear::of(&weight, None, how)
    }

    /// Quantizes the weight of a layer.
    ///
    /// # Errors
    /// As [`QuantizedLinear::new`].
    pub fn from_linear(linear: &Linear, how: Quantization) -> Result<Self> {
        QuantizedLinear::of(&linear.weight, linear.bias.clone(), how)
    }

    fn of(weight: &Array, bias: Option<Param>, how: Quantization) -> Result<Self> {
        let Parts { weight, scales, biases } = Parts::of(weight, how)?;
        Ok(QuantizedLinear { weight, scales, biases, bias, how })
    }
}

impl Layer for QuantizedLinear {
    fn forward(&self, x: &Array) -> Result<Array> {
        let weight = joined(&self.weight, &self.scales, self.biases.as_deref(), self.how);
        with_bias(quantized_matmul(x, &weight, true)?, self.bias.as_ref())
    }
}

/// An [`Embedding`] with quantized vectors: from indices `(...)` to vectors `(..., dims)`. Its parameters are frozen.
#[derive(Module, Clone, Debug)]
pub struct QuantizedEmbedding {
    /// Words that hold the elements of a vector each, `(num_embeddings, dims * bits / 32)`.
    pub weight: Param,
    /// Scales of the groups, `(num_embeddings, dims / group_size)`.
    pub scales: Param,
    /// Biases of the groups, in the affine mode.
    pub biases: Option<Param>,
    /// Mode, group size and bits.
    pub how: Quantization,
}

impl QuantizedEmbedding {
    /// Makes a table of random vectors.
    ///
    /// # Errors
    /// For sizes that the mode does not have, or dimensions that are not a multiple of the group size.
    pub fn new(num_embeddings: usize, dims: usize, how: Quantization) -> Result<Self> {
        QuantizedEmbedding::of(&drawn_normal(&[num_embeddings, dims], bound(dims))?, how)
    }

    /// Quantizes the vectors of a table.
    ///
    /// # Errors
    /// As [`QuantizedEmbedding::new`].
    pub fn from_embedding(embedding: &Embedding, how: Quantization) -> Result<Self> {
        QuantizedEmbedding::of(&embedding.weight, how)
    }

    fn of(weight: &Array, how: Quantization) -> Result<Self> {
        let Parts { weight, scales, biases } = Parts::of(weight, how)?;
        Ok(QuantizedEmbedding { weight, scales, biases, how })
    }

    /// As [`Embedding::as_linear`].
    ///
    /// # Errors
    /// For a last axis of another size.
    pub fn as_linear(&self, x: &Array) -> Result<Array> {
        let weight = joined(&self.weight, &self.scales, self.biases.as_deref(), self.how);
        quantized_matmul(x, &weight, true)
    }
}

impl Layer for QuantizedEmbedding {
    fn forward(&self, x: &Array) -> Result<Array> {
        let row = |a: &Array| a.take(x, Some(0));
        let biases = self.biases.as_deref().map(row).transpose()?;
        joined(&row(&self.weight)?, &row(&self.scales)?, biases.as_ref(), self.how).dequantize(None)
    }
}

/// A linear layer that quantizes its input in the same way as its weight, in the modes nvfp4 and mxfp8.
///
/// In training mode the weight is floats, which each call quantizes, and which have gradients. In evaluation mode the
/// weight is stored quantized.
#[derive(Clone, Debug)]
pub struct QQLinear {
    /// `(output_dims, input_dims)`, or words.
    pub weight: Param,
    /// Scales of the groups, in evaluation mode.
    pub scales: Option<Param>,
    /// Mode, group size and bits.
    pub how: Quantization,
}

impl QQLinear {
    /// Makes a layer with a random weight, in training mode.
    ///
    /// # Errors
    /// For sizes that the mode does not have, or input dimensions that are not a multiple of the group size.
    pub fn new(input_dims: usize, output_dims: usize, how: Quantization) -> Result<QQLinear> {
        let weight = drawn_uniform(&[output_dims, input_dims], bound(input_dims))?;
        QQLinear::of(weight.into(), how)
    }

    /// Takes over the weight of a layer without a bias.
    ///
    /// # Errors
    /// As [`QQLinear::new`]; [`Error::Value`] for a layer with a bias.
    pub fn from_linear(linear: &Linear, how: Quantization) -> Result<QQLinear> {
        if linear.bias.is_some() {
            let text = "The layer has a bias, which is not supported. Use Linear::without_bias.";
            return Err(Error::value("QQLinear", text));
        }
        QQLinear::of(linear.weight.clone(), how)
    }

    fn of(weight: Param, how: Quantization) -> Result<QQLinear> {
        // Reject weights that cannot be quantized here, so that a change of mode cannot fail.
        Parts::of(&weight, how)?;
        Ok(QQLinear { weight, scales: None, how })
    }

    /// Quantizes the weight, if it is floats.
    ///
    /// # Errors
    /// If the weight has another shape or dtype than when the layer was made.
    pub fn quantize(&mut self) -> Result<()> {
        if self.scales.is_none() {
            let Parts { weight, scales, .. } = Parts::of(&self.weight, self.how)?;
            self.weight.set(Array::clone(&weight));
            self.scales = Some(Array::from(scales).into());
        }
        Ok(())
    }

    /// Converts the weight to floats, if it is quantized.
    ///
    /// # Errors
    /// If words and scales do not fit.
    pub fn dequantize(&mut self) -> Result<()> {
        if let Some(scales) = &self.scales {
            let floats = joined(&self.weight, scales, None, self.how).dequantize(None)?;
            self.weight.set(floats);
            self.scales = None;
        }
        Ok(())
    }
}

impl Mode for QQLinear {
    /// A weight that cannot be quantized stays unchanged; the next call returns the error.
    fn set_training(&mut self, training: bool) {
        let _ = if training { self.dequantize() } else { self.quantize() };
    }
}

impl Module for QQLinear {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.leaf(Leaf::Mode(self.scales.is_none()));
        visitor.field("weight", &self.weight);
        visitor.field("scales", &self.scales);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        visitor.leaf(LeafMut::Mode(self));
        visitor.field("weight", &mut self.weight);
        visitor.field("scales", &mut self.scales);
    }
}

impl Layer for QQLinear {
    fn forward(&self, x: &Array) -> Result<Array> {
        match &self.scales {
            Some(scales) => {
                let weight = joined(&self.weight, scales, None, self.how);
                qqmm(x, SecondFactor::Quantized(&weight), None)
            }
            None => {
                let (w, how) = (&self.weight, self.how);
                qqmm(x, SecondFactor::Floats { w, how, global_scale: None }, None)
            }
        }
    }
}

/// A layer that has a variant with a quantized weight. [`MaybeQuantized`] holds either of the two.
pub trait ToQuantized: Module {
    /// The variant.
    type Quantized: Module;

    /// Quantizes the weight.
    ///
    /// # Errors
    /// For sizes that the mode does not have, or a last axis that is not a multiple of the group size.
    fn to_quantized(&self, how: Quantization) -> Result<Self::Quantized>;

    /// Returns the shape of the weight, whose last axis is divided into groups.
    fn weight_shape(&self) -> &[usize];
}

impl ToQuantized for Linear {
    type Quantized = QuantizedLinear;

    fn to_quantized(&self, how: Quantization) -> Result<QuantizedLinear> {
        QuantizedLinear::from_linear(self, how)
    }

    fn weight_shape(&self) -> &[usize] {
        self.weight.shape()
    }
}

impl ToQuantized for Embedding {
    type Quantized = QuantizedEmbedding;

    fn to_quantized(&self, how: Quantization) -> Result<QuantizedEmbedding> {
        QuantizedEmbedding::from_embedding(self, how)
    }

    fn weight_shape(&self) -> &[usize] {
        self.weight.shape()
    }
}

/// A layer that [`quantize`] can replace by its quantized variant, for use as a field of a model. The names of its
/// parameters are those of the layer or of the variant.
///
/// ```
/// use ultramarine::Quantization;
/// use ultramarine_nn::{Linear, MaybeQuantized, Module, quantize};
/// #[derive(Module)]
/// struct Model {
///     head: MaybeQuantized<Linear>,
/// }
/// let mut model = Model { head: Linear::new(64, 4)?.into() };
/// quantize(&mut model, Quantization::affine(4, 64))?;
/// let names: Vec<String> = model.parameters().into_keys().collect();
/// assert_eq!(names, ["head.bias", "head.biases", "head.scales", "head.weight"]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum MaybeQuantized<L: ToQuantized> {
    /// The layer itself.
    Original(L),
    /// Its variant.
    Quantized(L::Quantized),
}

impl<L: ToQuantized> From<L> for MaybeQuantized<L> {
    fn from(layer: L) -> Self {
        MaybeQuantized::Original(layer)
    }
}

impl<L: ToQuantized> Module for MaybeQuantized<L> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        match self {
            MaybeQuantized::Original(layer) => layer.visit(visitor),
            MaybeQuantized::Quantized(layer) => layer.visit(visitor),
        }
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        visitor.leaf(LeafMut::Quantizable(self));
        match self {
            MaybeQuantized::Original(layer) => layer.visit_mut(visitor),
            MaybeQuantized::Quantized(layer) => layer.visit_mut(visitor),
        }
    }
}

impl<L: ToQuantized + Layer> Layer for MaybeQuantized<L>
where
    L::Quantized: Layer,
{
    fn forward(&self, x: &Array) -> Result<Array> {
        match self {
            MaybeQuantized::Original(layer) => layer.forward(x),
            MaybeQuantized::Quantized(layer) => layer.forward(x),
        }
    }
}

impl MaybeQuantized<Embedding> {
    /// As [`Embedding::as_linear`].
    ///
    /// # Errors
    /// For a last axis of another size.
    pub fn as_linear(&self, x: &Array) -> Result<Array> {
        match self {
            MaybeQuantized::Original(layer) => layer.as_linear(x),
            MaybeQuantized::Quantized(layer) => layer.as_linear(x),
        }
    }
}

/// A part of a model that [`quantize`] finds. [`MaybeQuantized`] implements it.
pub trait Quantizable {
    /// Returns the shape of the weight; `None` if it is already quantized.
    fn weight_shape(&self) -> Option<&[usize]>;

    /// Quantizes the weight, unless it is already quantized.
    ///
    /// # Errors
    /// As [`ToQuantized::to_quantized`].
    fn quantize(&mut self, how: Quantization) -> Result<()>;
}

impl<L: ToQuantized> Quantizable for MaybeQuantized<L> {
    fn weight_shape(&self) -> Option<&[usize]> {
        match self {
            MaybeQuantized::Original(layer) => Some(layer.weight_shape()),
            MaybeQuantized::Quantized(_) => None,
        }
    }

    fn quantize(&mut self, how: Quantization) -> Result<()> {
        if let MaybeQuantized::Original(layer) = self {
            *self = MaybeQuantized::Quantized(layer.to_quantized(how)?);
        }
        Ok(())
    }
}

/// Quantizes the weights of all [`MaybeQuantized`] layers of a model.
///
/// # Errors
/// As [`ToQuantized::to_quantized`]. The layers before the failing one are then quantized.
pub fn quantize<M: Module + ?Sized>(model: &mut M, how: Quantization) -> Result<()> {
    quantize_where(model, |_, _| Some(how))
}

/// As [`quantize`], for the layers for which a function of their path and their weight's shape returns a quantization.
///
/// # Errors
/// As [`quantize`].
pub fn quantize_where<M: Module + ?Sized>(
    model: &mut M,
    select: impl Fn(&str, &[usize]) -> Option<Quantization>,
) -> Result<()> {
    let mut outcome = Ok(());
    model.visit_mut(&mut VisitorMut::new(&mut |path, leaf| {
        if let LeafMut::Quantizable(layer) = leaf
            && outcome.is_ok()
            && let Some(shape) = layer.weight_shape()
            && let Some(how) = select(path, shape)
        {
            outcome = layer.quantize(how);
        }
    }));
    outcome
}
