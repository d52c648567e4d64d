//! Convolutions.

use super::base::{Layer, Module};
use super::linear::with_bias;
use super::param::Param;
use crate::init::drawn_uniform;
use ultramarine::{Array, Dtype, Error, Result, conv1d, conv2d, conv3d};

/// A size for each of the spatial axes. A single number applies to all axes.
///
/// ```
/// use ultramarine_nn::PerAxis;
/// assert_eq!(PerAxis::<2>::from(3), PerAxis::from([3, 3]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerAxis<const N: usize>(pub [usize; N]);

impl<const N: usize> From<usize> for PerAxis<N> {
    fn from(size: usize) -> Self {
        PerAxis([size; N])
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis<N> {
    fn from(sizes: [usize; N]) -> Self {
        PerAxis(sizes)
    }
}

impl From<(usize, usize)> for PerAxis<2> {
    fn from((a, b): (usize, usize)) -> Self {
        PerAxis([a, b])
    }
}

impl From<(usize, usize, usize)> for PerAxis<3> {
    fn from((a, b, c): (usize, usize, usize)) -> Self {
        PerAxis([a, b, c])
    }
}

impl<const N: usize> Module for PerAxis<N> {
    fn visit(&self, _: &mut super::base::Visitor<'_>) {}
    fn visit_mut(&mut self, _: &mut super::base::VisitorMut<'_>) {}
}

/// A weight `(outputs, kernel..., inputs)`, drawn uniformly from ±1 / sqrt(inputs of an output).
pub(super) fn drawn_weight(outputs: usize, kernel: &[usize], inputs: usize) -> Result<Param> {
    let fan = (inputs * kernel.iter().product::<usize>()).max(1) as f64;
    let shape = [&[outputs], kernel, &[inputs]].concat();
    Ok(drawn_uniform(&shape, 1.0 / fan.sqrt())?.into())
}

/// A bias of zeros.
pub(super) fn zeros_bias(outputs: usize) -> Result<Option<Param>> {
    Ok(Some(Array::zeros(&[outputs], Dtype::Float32)?.into()))
}

/// Methods of layers with and without transposition: each sets a size, by one number or by one for each axis.
macro_rules! setters {
    ($n:literal: $($field:ident $what:literal),*) => {
        /// Returns the layer without a bias.
        #[must_use]
        pub fn without_bias(mut self) -> Self {
            self.bias = None;
            self
        }
        $(
            #[doc = concat!("Sets the ", $what, ".")]
            #[must_use]
            pub fn $field(mut self, size: impl Into<PerAxis<$n>>) -> Self {
                self.$field = size.into();
                self
            }
        )*
    };
}

/// Converts the sizes of a layer to the core's options.
macro_rules! options {
    ($layer:ident: $($field:ident)*) => {
        ultramarine::Convolution::default()$(.$field($layer.$field.0))*
    };
}
pub(super) use {options, setters};

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident $n:literal $function:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Clone, Debug)]
        pub struct $name {
            /// `(out_channels, kernel..., in_channels / groups)`.
            pub weight: Param,
            /// `(out_channels)`, initially zeros.
            pub bias: Option<Param>,
            /// Distance between windows; 1 by default.
            pub stride: PerAxis<$n>,
            /// Zeros added on both sides; 0 by default.
            pub padding: PerAxis<$n>,
            /// Distance between the taps of the kernel; 1 by default.
            pub dilation: PerAxis<$n>,
            /// Number of groups of channels. Each group of input channels produces one group of outputs. 1 by default.
            pub groups: usize,
        }

        impl $name {
            /// Makes a layer with a bias and a random weight.
            ///
            /// # Errors
            /// [`Error::Value`] for sizes that are too large.
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
                    groups: 1,
                })
            }

            setters! { $n: stride "stride", padding "padding", dilation "dilation" }

            /// Sets the number of groups, and redraws the weight in its new shape.
            ///
            /// # Errors
            /// [`Error::Value`] if the number of input channels is not a multiple of the number of groups.
            pub fn groups(mut self, groups: usize) -> Result<Self> {
                let [outputs, kernel @ .., inputs] = self.weight.shape() else { return Ok(self) };
                let channels = inputs * self.groups;
                if groups == 0 || !channels.is_multiple_of(groups) {
                    let text = format!(
                        "{channels} input channels cannot be divided into {groups} groups. Pass a divisor."
                    );
                    return Err(Error::value(stringify!($name), text));
                }
                self.weight = drawn_weight(*outputs, kernel, channels / groups)?;
                self.groups = groups;
                Ok(self)
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                let how = options!(self: stride padding dilation).groups(self.groups);
                with_bias($function(x, &self.weight, how)?, self.bias.as_ref())
            }
        }
    )*};
}

convolutions! {
    /// A convolution along one axis: from `(batch, length, in_channels)` to `(batch, length',
    /// out_channels)`. See [`Conv2d`] for an example.
    Conv1d 1 conv1d;
    /// A convolution along two axes: from `(batch, height, width, in_channels)` to `(batch, height', width', out_channels)`.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// use ultramarine_nn::{Conv2d, Layer};
    /// let layer = Conv2d::new(3, 8, 3)?.stride(2).padding(1);
    /// let x = Array::ones(&[1, 8, 8, 3], Dtype::Float32)?;
    /// assert_eq!(layer.forward(&x)?.shape(), [1, 4, 4, 8]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    Conv2d 2 conv2d;
    /// A convolution along three axes: from `(batch, depth, height, width, in_channels)` to
    /// `(batch, depth', height', width', out_channels)`. See [`Conv2d`] for an example.
    Conv3d 3 conv3d;
}
