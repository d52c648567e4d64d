//! Layers. The files have the same names as those of the Python package.

pub mod activation_functions;
pub mod activations;
pub mod base;
pub mod containers;
pub mod convolution;
pub mod convolution_transpose;
pub mod dropout;
pub mod embedding;
mod fields;
pub mod linear;
pub mod normalization;
mod operators;
mod param;
pub mod pooling;
pub mod positional_encoding;
pub mod quantized;
pub mod recurrent;
pub mod transformer;
pub mod upsample;
pub(crate) mod weights;

pub use activation_functions::*;
pub use activations::*;
pub use base::{Layer, Leaf, LeafMut, Mode, Module, Visitor, VisitorMut};
pub use containers::{Activation, IntoLayer, Sequential, SequentialLayer};
pub use convolution::{Conv1d, Conv2d, Conv3d, PerAxis};
pub use convolution_transpose::{ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use dropout::{Dropout, Dropout2d, Dropout3d};
pub use embedding::Embedding;
pub use linear::{Bilinear, Identity, Linear};
pub use normalization::{BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm};
pub use param::{Param, State, Training};
pub use pooling::{AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d};
pub use positional_encoding::{ALiBi, RoPE, SinusoidalPositionalEncoding};
pub use quantized::{
    MaybeQuantized, QQLinear, Quantizable, QuantizedEmbedding, QuantizedLinear, ToQuantized,
    quantize, quantize_where,
};
pub use recurrent::{GRU, LSTM, RNN};
pub use transformer::{
    AttentionSizes, MultiHeadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer,
    TransformerEncoder, TransformerEncoderLayer, TransformerOptions,
};
pub use upsample::{Interpolation, Upsample};
