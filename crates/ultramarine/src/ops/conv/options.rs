//! Options of convolutions.

/// Where a convolution places its windows, and its other options. Options that are not set have their defaults. Sizes
/// are one number for all spatial axes, or one number for each axis.
///
/// ```
/// use ultramarine::{Array, Convolution, Dtype, conv2d};
/// let (x, w) = (Array::ones(&[1, 8, 8, 3], Dtype::Float32)?, Array::ones(&[4, 3, 3, 3], Dtype::Float32)?);
/// assert_eq!(conv2d(&x, &w, ())?.shape(), [1, 6, 6, 4]);
/// assert_eq!(conv2d(&x, &w, Convolution::default().stride(2).padding([1, 0]))?.shape(), [1, 4, 3, 4]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Distance between windows; 1 by default.
    pub stride: Vec<i64>,
    /// Zeros before the first element. A negative number leaves out elements instead. 0 by default.
    pub padding_low: Vec<i64>,
    /// Zeros after the last element. A negative number leaves out elements instead. 0 by default.
    pub padding_high: Vec<i64>,
    /// Distance between the taps of the kernel; 1 by default.
    pub kernel_dilation: Vec<i64>,
    /// Distance between the elements of the input, with zeros inserted between them; 1 by default. Transposed
    /// convolutions do not accept it.
    pub input_dilation: Vec<i64>,
    /// Additional elements at the end of the output; 0 by default. Only transposed convolutions accept it.
    pub output_padding: Vec<i64>,
    /// Number of groups of channels. Each group of input channels produces one group of outputs. 1 by default.
    pub groups: i64,
    /// Reverses the kernel along its spatial axes, as the convolution of signal processing does. Transposed
    /// convolutions do not accept it.
    pub flip: bool,
}

impl Default for Convolution {
    fn default() -> Self {
        Convolution {
            stride: Vec::new(),
            padding_low: Vec::new(),
            padding_high: Vec::new(),
            kernel_dilation: Vec::new(),
            input_dilation: Vec::new(),
            output_padding: Vec::new(),
            groups: 1,
            flip: false,
        }
    }
}

macro_rules! setters {
    ($($name:ident $what:literal [$($field:ident)*];)*) => {
        impl Convolution {
            $(
                #[doc = concat!("Sets the ", $what, ".")]
                #[must_use]
                pub fn $name(mut self, sizes: impl Into<Sizes>) -> Self {
                    let Sizes(sizes) = sizes.into();
                    $(self.$field.clone_from(&sizes);)*
                    self
                }
            )*

            /// Sets the number of groups of channels; 1 by default. The numbers of input and output channels must both
            /// be multiples of it. As many groups as channels make a depthwise convolution.
            #[must_use]
            pub fn groups(mut self, groups: impl TryInto<i64>) -> Self {
                self.groups = number(groups);
                self
            }

            /// Sets whether the kernel is reversed along its spatial axes. The default is false, which computes a
            /// cross-correlation, as other libraries for neural networks do.
            #[must_use]
            pub fn flip(mut self, flip: bool) -> Self {
                self.flip = flip;
                self
            }
        }
    };
}

setters! {
    stride "stride" [stride];
    padding "padding on both sides" [padding_low padding_high];
    padding_low "padding before the first element" [padding_low];
    padding_high "padding behind the last element" [padding_high];
    dilation "dilation of the kernel" [kernel_dilation];
    input_dilation "dilation of the input" [input_dilation];
    output_padding "padding of the output" [output_padding];
}

/// The default options.
impl From<()> for Convolution {
    fn from((): ()) -> Self {
        Convolution::default()
    }
}

impl From<&Convolution> for Convolution {
    fn from(how: &Convolution) -> Self {
        how.clone()
    }
}

/// Sizes of a convolution's spatial axes, as its options take them (`impl Into<Sizes>`): one number for all of them, or one
/// for each, in an array, a slice or a `Vec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Vec<i64>);

/// Sizes that do not fit i64 are clamped, because no array has them.
fn number(size: impl TryInto<i64>) -> i64 {
    size.try_into().unwrap_or(i64::MAX)
}

macro_rules! from_integers {
    ($($t:ty)*) => {$(
        impl From<$t> for Sizes {
            fn from(size: $t) -> Sizes {
                Sizes(vec![number(size)])
            }
        }

        impl From<&[$t]> for Sizes {
            fn from(sizes: &[$t]) -> Sizes {
                Sizes(sizes.iter().map(|size| number(*size)).collect())
            }
        }

        impl From<Vec<$t>> for Sizes {
            fn from(sizes: Vec<$t>) -> Sizes {
                Sizes::from(&sizes[..])
            }
        }

        impl<const N: usize> From<[$t; N]> for Sizes {
            fn from(sizes: [$t; N]) -> Sizes {
                Sizes::from(&sizes[..])
            }
        }
    )*};
}
from_integers! { i32 i64 isize usize }
