//! Transposed convolutions.

use super::base::{Layer, Module};
use super::convolution::{PerAxis, drawn_weight, options, setters, zeros_bias};
use super::linear::with_bias;
use super::param::Param;
use ultramarine::{Array, Result, conv_transpose1d, conv_transpose2d, conv_transpose3d};

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident $n:literal $function:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Clone, Debug)]
        pub struct $name {
            /// `(out_channels, kernel..., in_channels)`.
            pub weight: Param,
            /// `(out_channels)`, initially zeros.
            pub bias: Option<Param>,
            /// Distance between windows of the output; 1 by default.
            pub stride: PerAxis<$n>,
            /// Elements of the output that are removed on both sides; 0 by default.
            pub padding: PerAxis<$n>,
            /// Distance between the taps of the kernel; 1 by default.
            pub dilation: PerAxis<$n>,
            /// Additional elements at the end of the output; 0 by default.
            pub output_padding: PerAxis<$n>,
        }

        impl $name {
            /// Makes a layer with a bias and a random weight.
            ///
            /// # Errors
            /// [`Error::Value`](ultramarine::Error::Value) for sizes that are too large.
            pub fn new(
                in_channels: usize,
                out_channels: usize,
                kernel_size: impl Into<PerAxis<$n>>,
            ) -> Result<$name> {
                Ok($name {
                    weight: drawn_weight(out_channels, &kernel_size.into().0, in_channels)?,
                    bias: zeros_bias(out_channels)?,
                    stride: 1.into(),
                    padding: 0.into(),
                    dilation: 1.into(),
                    output_padding: 0.into(),
                })
            }

            setters! {
                $n: stride "stride", padding "padding", dilation "dilation", output_padding "output padding"
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                let how = options!(self: stride padding dilation output_padding);
                with_bias($function(x, &self.weight, how)?, self.bias.as_ref())
            }
        }
    )*};
}

convolutions! {
    /// A transposed convolution along one axis: from `(batch, length, in_channels)` to `(batch,
    /// length', out_channels)`. See [`ConvTranspose2d`] for the sizes.
    ConvTranspose1d 1 conv_transpose1d;
    /// A transposed convolution along two axes: from `(batch, height, width, in_channels)` to `(batch, height', width',
    /// out_channels)`. It is the derivative of a [`Conv2d`](crate::Conv2d) with respect to its input. An axis of n
    /// elements gets `(n - 1) stride - 2 padding + dilation (kernel - 1) + output padding + 1` elements.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// use ultramarine_nn::{ConvTranspose2d, Layer};
    /// let layer = ConvTranspose2d::new(8, 3, 3)?.stride(2).padding(1).output_padding(1);
    /// let x = Array::ones(&[1, 4, 4, 8], Dtype::Float32)?;
    /// assert_eq!(layer.forward(&x)?.shape(), [1, 8, 8, 3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ConvTranspose2d 2 conv_transpose2d;
    /// A transposed convolution along three axes: from `(batch, depth, height, width, in_channels)` to the same with
    /// `out_channels`.
    ConvTranspose3d 3 conv_transpose3d;
}
