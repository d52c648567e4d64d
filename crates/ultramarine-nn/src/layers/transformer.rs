//! Attention and transformers.

use super::activation_functions::relu;
use super::base::{Layer, Module};
use super::containers::Activation;
use super::dropout::Dropout;
use super::linear::Linear;
use super::normalization::LayerNorm;
use crate::utils::checkpointed;
use ultramarine::fast::{AttentionMask, scaled_dot_product_attention};
use ultramarine::{Array, Dtype, Error, Result, Scalar, finfo, where_};

/// Attention with several heads (Vaswani et al., 2017).
///
/// ```
/// use ultramarine::{Array, Dtype, fast::AttentionMask};
/// use ultramarine_nn::MultiHeadAttention;
/// let attention = MultiHeadAttention::new(8, 2)?;
/// let x = Array::ones(&[1, 5, 8], Dtype::Float32)?;
/// assert_eq!(attention.forward(&x, &x, &x, AttentionMask::Causal)?.shape(), [1, 5, 8]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MultiHeadAttention {
    /// The projection of queries.
    pub query_proj: Linear,
    /// The projection of keys.
    pub key_proj: Linear,
    /// The projection of values.
    pub value_proj: Linear,
    /// The projection of the result.
    pub out_proj: Linear,
    /// Number of heads.
    pub num_heads: usize,
}

/// Sizes of [`MultiHeadAttention`] that differ from `dims`. A field that is `None` means `dims`, unless its
/// documentation says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionSizes {
    /// Last axis of the queries.
    pub query_input_dims: Option<usize>,
    /// Last axis of the keys.
    pub key_input_dims: Option<usize>,
    /// Last axis of the values; that of the keys by default.
    pub value_input_dims: Option<usize>,
    /// Size of the values of all heads.
    pub value_dims: Option<usize>,
    /// Last axis of the result.
    pub value_output_dims: Option<usize>,
    /// Set if projections have biases; false by default.
    pub bias: bool,
}

impl MultiHeadAttention {
    /// Makes an attention with `num_heads` heads of `dims / num_heads` elements each.
    ///
    /// # Errors
    /// [`Error::Value`] if `dims` is not a multiple of the number of heads.
    pub fn new(dims: usize, num_heads: usize) -> Result<MultiHeadAttention> {
        MultiHeadAttention::with_sizes(dims, num_heads, AttentionSizes::default())
    }

    /// As [`MultiHeadAttention::new`], with separate sizes for queries, keys and values.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::new`].
    pub fn with_sizes(
        dims: usize,
        num_heads: usize,
        sizes: AttentionSizes,
    ) -> Result<MultiHeadAttention> {
        if num_heads == 0 || !dims.is_multiple_of(num_heads) {
            let text = format!(
                "{dims} dims cannot be divided into {num_heads} heads. Pass a multiple of the heads."
            );
            return Err(Error::value("MultiHeadAttention", text));
        }
        let keys = sizes.key_input_dims.unwrap_or(dims);
        let values = sizes.value_dims.unwrap_or(dims);
        let linear = |inputs, outputs| Linear::with_bias(inputs, outputs, sizes.bias);
        Ok(MultiHeadAttention {
            query_proj: linear(sizes.query_input_dims.unwrap_or(dims), dims)?,
            key_proj: linear(keys, dims)?,
            value_proj: linear(sizes.value_input_dims.unwrap_or(keys), values)?,
            out_proj: linear(values, sizes.value_output_dims.unwrap_or(dims))?,
            num_heads,
        })
    }

    /// Rearranges `(batch, positions, heads * size)` as `(batch, heads, positions, size)`.
    fn heads(&self, projected: &Array) -> Result<Array> {
        let heads = projected.unflatten(-1, &[self.num_heads as isize, -1])?;
        heads.transpose_axes([0, 2, 1, 3])
    }

    /// Attends from queries `(batch, n, query_input_dims)` to keys and values `(batch, m, ...)`: `(batch, n, value_output_dims)`.
    ///
    /// # Errors
    /// As [`scaled_dot_product_attention`].
    pub fn forward(
        &self,
        queries: &Array,
        keys: &Array,
        values: &Array,
        mask: AttentionMask<'_>,
    ) -> Result<Array> {
        let q = self.heads(&self.query_proj.forward(queries)?)?;
        let k = self.heads(&self.key_proj.forward(keys)?)?;
        let v = self.heads(&self.value_proj.forward(values)?)?;
        let scale = 1.0 / (q.shape()[3] as f64).sqrt();
        let y = scaled_dot_product_attention(&q, &k, &v, scale, mask, None, None)?;
        self.out_proj.forward(&y.transpose_axes([0, 2, 1, 3])?.flatten(-2, -1)?)
    }

    /// Returns a mask `(n, n)` to be added to scores: the dtype's lowest number for keys after the query, and 0
    /// elsewhere.
    ///
    /// # Errors
    /// [`Error::Value`] for a dtype that is not floating.
    pub fn create_additive_causal_mask(n: usize, dtype: Dtype) -> Result<Array> {
        let Some(info) = finfo(dtype) else {
            let text =
                format!("A mask of {dtype} cannot be added to scores. Pass a floating dtype.");
            return Err(Error::value("create_additive_causal_mask", text));
        };
        let positions = Array::arange(0.0, n as f64, 1.0, Dtype::Int32)?;
        let later = positions.expand_dims(1)?.less(&positions)?;
        let number = |v: f64| Array::scalar(Scalar::from_f64(dtype, v));
        where_(&later, number(info.min), number(0.0))
    }
}

/// Options of [`Transformer`] and of its layers. All layers of a model share them.
#[derive(Clone, Debug)]
pub struct TransformerOptions {
    /// Size of the hidden layer; four times `dims` by default.
    pub mlp_dims: Option<usize>,
    /// Probability of dropout; 0 by default.
    pub dropout: f64,
    /// The hidden layer's activation; [`relu`] by default.
    pub activation: Activation,
    /// If set, norms come before attention and hidden layer, instead of after the sum with the input; true by default.
    pub norm_first: bool,
    /// If set, gradients compute the layers again, which saves memory; false by default. See
    /// [`checkpoint`](crate::utils::checkpoint).
    pub checkpoint: bool,
}

impl Default for TransformerOptions {
    fn default() -> Self {
        TransformerOptions {
            mlp_dims: None,
            dropout: 0.0,
            activation: relu.into(),
            norm_first: true,
            checkpoint: false,
        }
    }
}

/// A part of a layer: its input is added to its result, and a norm comes before or after it.
fn residual(
    x: &Array,
    norm: &LayerNorm,
    norm_first: bool,
    part: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    match norm_first {
        true => x.add(&part(&norm.forward(x)?)?),
        false => norm.forward(&x.add(&part(x)?)?),
    }
}

/// Calls `f` with arrays and masks. If `on`, gradients compute it again.
fn called<const N: usize, const M: usize>(
    on: bool,
    f: impl Fn(&[Array], [AttentionMask<'_>; M]) -> Result<Array> + Send + Sync + 'static,
    arrays: [&Array; N],
    masks: [AttentionMask<'_>; M],
) -> Result<Array> {
    let mut arguments: Vec<Array> = arrays.into_iter().cloned().collect();
    if !on {
        return f(&arguments, masks);
    }
    // Masks that are arrays are arguments too, after the others.
    let places = masks.map(|mask| match mask {
        AttentionMask::Array(array) => {
            arguments.push(array.clone());
            Place::Argument(arguments.len() - 1)
        }
        AttentionMask::Causal => Place::Causal,
        _ => Place::None,
    });
    let again = move |arguments: &[Array]| {
        let masks = places.map(|place| match place {
            Place::Argument(i) => AttentionMask::Array(&arguments[i]),
            Place::Causal => AttentionMask::Causal,
            Place::None => AttentionMask::None,
        });
        f(&arguments[..N], masks)
    };
    checkpointed(again, &arguments)
}

/// Where a mask is passed.
#[derive(Clone, Copy)]
enum Place {
    None,
    Causal,
    Argument(usize),
}

/// A layer of a transformer's encoder: self-attention, then a hidden layer, each with a residual connection and a
/// [`LayerNorm`]. The shape `(batch, positions, dims)` is kept.
#[derive(Module, Clone, Debug)]
pub struct TransformerEncoderLayer {
    /// Attention to the input itself.
    pub attention: MultiHeadAttention,
    /// Norm of the attention.
    pub ln1: LayerNorm,
    /// Norm of the hidden layer.
    pub ln2: LayerNorm,
    /// Projection into the hidden layer.
    pub linear1: Linear,
    /// Projection out of the hidden layer.
    pub linear2: Linear,
    /// Dropout after the attention.
    pub dropout1: Dropout,
    /// Dropout in the hidden layer.
    pub dropout2: Dropout,
    /// Activation of the hidden layer.
    pub activation: Activation,
    /// Set if norms come first; see [`TransformerOptions`].
    pub norm_first: bool,
}

impl TransformerEncoderLayer {
    /// Makes a layer for `(batch, positions, dims)`.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::new`] and [`Dropout::new`].
    pub fn new(dims: usize, num_heads: usize, options: &TransformerOptions) -> Result<Self> {
        let mlp_dims = options.mlp_dims.unwrap_or(4 * dims);
        Ok(TransformerEncoderLayer {
            attention: MultiHeadAttention::new(dims, num_heads)?,
            ln1: LayerNorm::new(dims)?,
            ln2: LayerNorm::new(dims)?,
            linear1: Linear::new(dims, mlp_dims)?,
            linear2: Linear::new(mlp_dims, dims)?,
            dropout1: Dropout::new(options.dropout)?,
            dropout2: Dropout::new(options.dropout)?,
            activation: options.activation.clone(),
            norm_first: options.norm_first,
        })
    }

    /// Computes the layer.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::forward`].
    pub fn forward(&self, x: &Array, mask: AttentionMask<'_>) -> Result<Array> {
        let x = residual(x, &self.ln1, self.norm_first, |x| {
            self.dropout1.forward(&self.attention.forward(x, x, x, mask)?)
        })?;
        residual(&x, &self.ln2, self.norm_first, |x| {
            let hidden = self.activation.forward(&self.linear1.forward(x)?)?;
            self.linear2.forward(&self.dropout2.forward(&hidden)?)
        })
    }
}

/// The encoder of a transformer: [`TransformerEncoderLayer`]s, then a norm.
#[derive(Module, Clone, Debug)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The norm of the result.
    pub ln: LayerNorm,
    /// Set if gradients compute the layers again; see [`TransformerOptions`].
    pub checkpoint: bool,
}

impl TransformerEncoder {
    /// Makes an encoder for `(batch, positions, dims)`.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`].
    pub fn new(
        num_layers: usize,
        dims: usize,
        num_heads: usize,
        options: &TransformerOptions,
    ) -> Result<Self> {
        let layer = |_| TransformerEncoderLayer::new(dims, num_heads, options);
        let layers = (0..num_layers).map(layer).collect::<Result<_>>()?;
        let (ln, checkpoint) = (LayerNorm::new(dims)?, options.checkpoint);
        Ok(TransformerEncoder { layers, ln, checkpoint })
    }

    /// Computes the encoder.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::forward`].
    pub fn forward(&self, x: &Array, mask: AttentionMask<'_>) -> Result<Array> {
        let x = self.layers.iter().try_fold(x.clone(), |x, layer| {
            let layer = layer.clone();
            called(self.checkpoint, move |x, [mask]| layer.forward(&x[0], mask), [&x], [mask])
        })?;
        self.ln.forward(&x)
    }
}

/// A layer of a transformer's decoder: self-attention, attention to the encoder's result, then a
/// hidden layer, each with a residual connection and a [`LayerNorm`].
#[derive(Module, Clone, Debug)]
pub struct TransformerDecoderLayer {
    /// Attention to the input itself.
    pub self_attention: MultiHeadAttention,
    /// Attention to the encoder's result.
    pub cross_attention: MultiHeadAttention,
    /// Norm of the attention to the input.
    pub ln1: LayerNorm,
    /// Norm of the attention to the encoder's result.
    pub ln2: LayerNorm,
    /// Norm of the hidden layer.
    pub ln3: LayerNorm,
    /// Projection into the hidden layer.
    pub linear1: Linear,
    /// Projection out of the hidden layer.
    pub linear2: Linear,
    /// Dropout after the self-attention.
    pub dropout1: Dropout,
    /// Dropout after the attention to the encoder's result.
    pub dropout2: Dropout,
    /// Dropout in the hidden layer.
    pub dropout3: Dropout,
    /// Activation of the hidden layer.
    pub activation: Activation,
    /// Set if norms come first; see [`TransformerOptions`].
    pub norm_first: bool,
}

impl TransformerDecoderLayer {
    /// Makes a layer for `(batch, positions, dims)`.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`].
    pub fn new(dims: usize, num_heads: usize, options: &TransformerOptions) -> Result<Self> {
        let mlp_dims = options.mlp_dims.unwrap_or(4 * dims);
        Ok(TransformerDecoderLayer {
            self_attention: MultiHeadAttention::new(dims, num_heads)?,
            cross_attention: MultiHeadAttention::new(dims, num_heads)?,
            ln1: LayerNorm::new(dims)?,
            ln2: LayerNorm::new(dims)?,
            ln3: LayerNorm::new(dims)?,
            linear1: Linear::new(dims, mlp_dims)?,
            linear2: Linear::new(mlp_dims, dims)?,
            dropout1: Dropout::new(options.dropout)?,
            dropout2: Dropout::new(options.dropout)?,
            dropout3: Dropout::new(options.dropout)?,
            activation: options.activation.clone(),
            norm_first: options.norm_first,
        })
    }

    /// Computes the layer. `memory` is the encoder's result.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::forward`].
    pub fn forward(
        &self,
        x: &Array,
        memory: &Array,
        x_mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Array> {
        let x = residual(x, &self.ln1, self.norm_first, |x| {
            self.dropout1.forward(&self.self_attention.forward(x, x, x, x_mask)?)
        })?;
        let x = residual(&x, &self.ln2, self.norm_first, |x| {
            let y = self.cross_attention.forward(x, memory, memory, memory_mask)?;
            self.dropout2.forward(&y)
        })?;
        residual(&x, &self.ln3, self.norm_first, |x| {
            let hidden = self.activation.forward(&self.linear1.forward(x)?)?;
            self.linear2.forward(&self.dropout3.forward(&hidden)?)
        })
    }
}

/// The decoder of a transformer: [`TransformerDecoderLayer`]s, then a norm.
#[derive(Module, Clone, Debug)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// The norm of the result.
    pub ln: LayerNorm,
    /// Set if gradients compute the layers again; see [`TransformerOptions`].
    pub checkpoint: bool,
}

impl TransformerDecoder {
    /// Makes a decoder for `(batch, positions, dims)`.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`].
    pub fn new(
        num_layers: usize,
        dims: usize,
        num_heads: usize,
        options: &TransformerOptions,
    ) -> Result<Self> {
        let layer = |_| TransformerDecoderLayer::new(dims, num_heads, options);
        let layers = (0..num_layers).map(layer).collect::<Result<_>>()?;
        let (ln, checkpoint) = (LayerNorm::new(dims)?, options.checkpoint);
        Ok(TransformerDecoder { layers, ln, checkpoint })
    }

    /// Computes the decoder. `memory` is the encoder's result.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::forward`].
    pub fn forward(
        &self,
        x: &Array,
        memory: &Array,
        x_mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Array> {
        let x = self.layers.iter().try_fold(x.clone(), |x, layer| {
            let layer = layer.clone();
            let call = move |a: &[Array], [x_mask, memory_mask]: [AttentionMask<'_>; 2]| {
                layer.forward(&a[0], &a[1], x_mask, memory_mask)
            };
            called(self.checkpoint, call, [&x, memory], [x_mask, memory_mask])
        })?;
        self.ln.forward(&x)
    }
}

/// A transformer of encoder and decoder (Vaswani et al., "Attention is all you need", 2017).
///
/// ```
/// use ultramarine::{Array, Dtype, fast::AttentionMask};
/// use ultramarine_nn::{Transformer, TransformerOptions};
/// let model = Transformer::new(16, 4, 1, 1, &TransformerOptions::default())?;
/// let source = Array::ones(&[1, 7, 16], Dtype::Float32)?;
/// let target = Array::ones(&[1, 5, 16], Dtype::Float32)?;
/// let (none, causal) = (AttentionMask::None, AttentionMask::Causal);
/// assert_eq!(model.forward(&source, &target, none, causal, none)?.shape(), [1, 5, 16]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Transformer {
    /// The encoder.
    pub encoder: TransformerEncoder,
    /// The decoder.
    pub decoder: TransformerDecoder,
}

impl Transformer {
    /// Makes a transformer with the given numbers of encoder and decoder layers. Usual values are 512 dims, 8 heads and
    /// 6 layers each.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`].
    pub fn new(
        dims: usize,
        num_heads: usize,
        num_encoder_layers: usize,
        num_decoder_layers: usize,
        options: &TransformerOptions,
    ) -> Result<Self> {
        Ok(Transformer {
            encoder: TransformerEncoder::new(num_encoder_layers, dims, num_heads, options)?,
            decoder: TransformerDecoder::new(num_decoder_layers, dims, num_heads, options)?,
        })
    }

    /// Computes the transformer: from `(batch, n, dims)` and `(batch, m, dims)` to `(batch, m, dims)`.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::forward`].
    pub fn forward(
        &self,
        src: &Array,
        tgt: &Array,
        src_mask: AttentionMask<'_>,
        tgt_mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Array> {
        let memory = self.encoder.forward(src, src_mask)?;
        self.decoder.forward(tgt, &memory, tgt_mask, memory_mask)
    }
}
