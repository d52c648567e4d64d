//! Convolutions in all forms: checks, defaults and padding. Each form is one operation over three spatial axes. If
//! there are fewer, the missing axes have size 1.

pub(crate) mod convolve;
mod decompose;
pub(crate) mod options;

use crate::error::{Result, ensure};
use crate::graph::precision;
use crate::ops::elementwise::operand::{Operand, alone};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype, ops::rules::builders::flat, placement::follow};
use convolve::{Convolve, Role};
use num_complex::Complex32;
use options::Convolution;
use smallvec::SmallVec;

/// Part of the full convolution that [`convolve`] returns, for operands of n and m elements, n >= m. The modes are
/// those of `numpy.convolve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolveMode {
    /// All: n + m - 1 elements.
    Full,
    /// The middle n elements.
    Same,
    /// Where the operands overlap completely: n - m + 1 elements.
    Valid,
}

/// Numbers in an error message, printed as a Python tuple.
struct List<'a>(&'a [i64]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "({}{})", text.join(", "), if text.len() == 1 { "," } else { "" })
    }
}

/// A list with a number for each of `n` axes.
fn spread(list: &[i64], default: i64, n: usize) -> SmallVec<[i64; 3]> {
    match list {
        [] => SmallVec::from_elem(default, n),
        [one] => SmallVec::from_elem(*one, n),
        all => SmallVec::from_slice(all),
    }
}

/// Checks ranks, dtype and channels. Returns the number of spatial axes.
fn check(x: &Array, w: &Array, groups: i64) -> Result<usize> {
    [x, w].into_iter().try_for_each(|a| a.computable("conv"))?;
    ensure!(
        (3..=5).contains(&x.ndim()),
        "conv",
        "Only works for inputs with 1-3 spatial dimensions. The inputs must be in the format [N, ..., C_in], but have {} dimensions. Reshape them.",
        x.ndim()
    );
    let n = x.ndim() - 2;
    ensure!(
        x.dtype().is_inexact() && !x.dtype().is_complex(),
        "conv",
        "Invalid input array with type {}. Convolution currently only supports floating point types. Convert it with astype(float32)",
        x.dtype()
    );
    ensure!(
        w.ndim() == x.ndim(),
        "conv",
        "Invalid weight array with {} dimensions for {n}D convolution. Expected an array with {} dimensions following the format [C_out, ..., C_in]. Reshape it.",
        w.ndim(),
        n + 2
    );
    ensure!(
        groups >= 1,
        "conv",
        "The number of groups must be positive. Got {groups} groups. Pass 1 or more."
    );
    let (channels, filters) = (x.shape()[n + 1], w.shape()[0]);
    let (own, groups) = (w.shape()[n + 1], groups as usize);
    ensure!(
        groups != 1 || channels == own,
        "conv",
        "Expect the input channels in the input and weight array to match but got shapes - input: {} and weight: {}. Pass a weight of shape [C_out, ..., C_in], or `groups`.",
        Show(x.shape()),
        Show(w.shape())
    );
    ensure!(
        channels % groups == 0,
        "conv",
        "The input channels must be divisible by the number of groups. Got input with shape {} and {groups} groups. Pass a divisor of the channels.",
        Show(x.shape())
    );
    ensure!(
        filters % groups == 0,
        "conv",
        "If groups > 1, the output channels must be divisible by the number of groups. Got {filters} output channels and {groups} groups. Pass a divisor of the channels."
    );
    ensure!(
        own.checked_mul(groups) == Some(channels),
        "conv",
        "Given groups={groups} and weights of shape {}, expected to have {} input channels but got {channels} input channels instead. Change the weight or `groups`.",
        Show(w.shape()),
        own.saturating_mul(groups)
    );
    Ok(n)
}

/// Returns the convolution of `x`, `(n, .., c)`, with a weight `(o, .., c / groups)`, over 1 to 3
/// spatial axes: `(n, .., o)`. Without `flip` it is a cross-correlation.
///
/// ```
/// # use ultramarine::{Array, Convolution, Dtype, conv_general};
/// let x = Array::from_slice(&[0f32, 1., 2., 3., 4.], &[1, 5, 1])?;
/// let w = Array::from_slice(&[0f32, 1., 2.], &[1, 3, 1])?;
/// let y = conv_general(&x, &w, Convolution::default().flip(true))?;
/// assert_eq!(y.to_vec::<f32>()?, [1., 4., 7.]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for an input that is not floating point, for shapes, groups or lists that do
/// not fit, and where the kernel is larger than the padded input.
pub fn conv_general(
    x: impl Operand,
    w: impl Operand,
    how: impl Into<Convolution>,
) -> Result<Array> {
    general(&*alone(&x)?, &*alone(&w)?, &how.into())
}

fn general(x: &Array, w: &Array, how: &Convolution) -> Result<Array> {
    ensure!(
        how.output_padding.is_empty(),
        "conv",
        "Only transposed convolutions have an output padding. Leave it out."
    );
    let n = check(x, w, how.groups)?;
    let stride = spread(&how.stride, 1, n);
    let low = spread(&how.padding_low, 0, n);
    let high = spread(&how.padding_high, 0, n);
    let kernel_dilation = spread(&how.kernel_dilation, 1, n);
    let input_dilation = spread(&how.input_dilation, 1, n);
    ensure!(
        low.len() == n && high.len() == n,
        "conv",
        "Invalid padding {} | {} for {n}D convolution. Pass one number, or one for each spatial axis.",
        List(&low),
        List(&high)
    );
    let lists = [
        ("strides", "Stride sizes", "strides", &stride),
        ("kernel dilation", "Kernel dilation sizes", "kernel dilation", &kernel_dilation),
        ("input dilation", "Input dilation sizes", "input dilation", &input_dilation),
    ];
    for (name, _, _, list) in lists {
        ensure!(
            list.len() == n,
            "conv",
            "Invalid {name} {} for {n}D convolution. Pass one number, or one for each spatial axis.",
            List(list)
        );
    }
    for (_, sizes, name, list) in lists {
        let positive = list.iter().all(|v| *v >= 1);
        ensure!(
            positive,
            "conv",
            "{sizes} must be positive. Got {name} {}. Pass 1 or more.",
            List(list)
        );
    }
    let mut made = Convolve {
        result: Role::Output,
        stride: [1; 3],
        low: [0; 3],
        kernel_dilation: [1; 3],
        input_dilation: [1; 3],
        groups: how.groups as usize,
        flip: how.flip,
        precision: precision::of_product(&[x, w]),
    };
    let mut output = [1usize; 3];
    for i in 0..n {
        let at = 3 - n + i;
        (made.stride[at], made.low[at]) = (stride[i], low[i]);
        (made.kernel_dilation[at], made.input_dilation[at]) =
            (kernel_dilation[i], input_dilation[i]);
        let (input, kernel) = (x.shape()[1 + i] as i128, w.shape()[1 + i] as i128);
        let seen = |n: i128, by: i64| 1 + by as i128 * (n - 1);
        let room = seen(input, input_dilation[i]) + low[i] as i128 + high[i] as i128;
        let room = room - seen(kernel, kernel_dilation[i]);
        ensure!(
            room >= 0,
            "conv",
            "Spatial dimensions of input after padding cannot be smaller than weight spatial dimensions. Got error at axis {} for input with shape {}, padding low {}, padding high {}, and weight of shape {}. Pad the input, or use a smaller weight or dilation.",
            i + 1,
            Show(x.shape()),
            List(&low),
            List(&high),
            Show(w.shape())
        );
        let size = room / stride[i] as i128 + 1;
        output[at] = usize::try_from(size).unwrap_or(usize::MAX);
    }
    let mut out = Shape::from_elem(x.shape()[0], 1);
    out.extend(output[3 - n..].iter().copied());
    out.push(w.shape()[0]);
    shape::check("conv", &out)?;
    let _home = follow(&[x, w]);
    let dtype = x.dtype().promote(w.dtype());
    let five = |a: &Array| {
        let mut shape = Shape::from_slice(a.shape());
        (n..3).for_each(|_| shape.insert(1, 1));
        a.reshape(&shape)
    };
    let (x, w) = (five(x)?, five(w)?);
    let outputs = [out[0], output[0], output[1], output[2], w.shape()[0]];
    if dtype.is_complex() {
        // The weight alone is complex.
        let x = x.astype(Dtype::Float32);
        let [re, im] = [w.real()?, w.imag()?].map(|w| made.of(&x, &w, &outputs));
        let i = Array::scalar(Complex32::new(0.0, 1.0));
        return re?.astype(dtype).add(&im?.astype(dtype).multiply(&i)?)?.reshape(&out);
    }
    made.of(&x.astype(dtype), &w.astype(dtype), &outputs)?.reshape(&out)
}

/// Options as a convolution along `N` axes takes them: an empty list, or a list of one number, becomes a list of `N`
/// numbers.
fn along<const N: usize>(how: &Convolution) -> Convolution {
    let all = |list: &[i64], default| spread(list, default, N).to_vec();
    Convolution {
        stride: all(&how.stride, 1),
        padding_low: all(&how.padding_low, 0),
        padding_high: all(&how.padding_high, 0),
        kernel_dilation: all(&how.kernel_dilation, 1),
        ..how.clone()
    }
}

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident $transposed:ident $(#[$transposed_doc:meta])* along $n:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`conv_general`].
        pub fn $name(x: impl Operand, w: impl Operand, how: impl Into<Convolution>) -> Result<Array> {
            general(&*alone(&x)?, &*alone(&w)?, &along::<$n>(&how.into()))
        }

        $(#[$transposed_doc])*
        ///
        /// # Errors
        /// As [`conv_general`]; [`crate::Error::Value`] for an input dilation or a flip.
        pub fn $transposed(x: impl Operand, w: impl Operand, how: impl Into<Convolution>) -> Result<Array> {
            let how = how.into();
            let output_padding = spread(&how.output_padding, 0, $n).to_vec();
            transposed(&*alone(&x)?, &*alone(&w)?, &Convolution { output_padding, ..along::<$n>(&how) })
        }
    )*};
}

convolutions! {
    /// The convolution of `(n, l, c)` with a weight `(o, k, c / groups)`: `(n, out, o)`, where `out`
    /// is `(l + 2 padding - dilation (k - 1) - 1) / stride + 1`.
    ///
    /// ```
    /// # use ultramarine::{Array, Convolution, Dtype, conv1d};
    /// let x = Array::ones(&[1, 5, 2], Dtype::Float32)?;
    /// let w = Array::ones(&[3, 3, 2], Dtype::Float32)?;
    /// assert_eq!(conv1d(&x, &w, ())?.shape(), [1, 3, 3]);
    /// assert_eq!(conv1d(&x, &w, Convolution::default().padding(1))?.shape(), [1, 5, 3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    conv1d
    conv_transpose1d
    /// The transposed convolution of `(n, l, c)` with a weight `(o, k, c / groups)`: `(n, out, o)`,
    /// where `out` is `stride (l - 1) - 2 padding + dilation (k - 1) + 1 + output_padding`. It maps as
    /// the derivative of [`conv1d`] does.
    ///
    /// ```
    /// # use ultramarine::{Array, Convolution, conv_transpose1d};
    /// let x = Array::from_slice(&[1f32, 2.], &[1, 2, 1])?;
    /// let w = Array::from_slice(&[1f32, 10., 100.], &[1, 3, 1])?;
    /// let y = conv_transpose1d(&x, &w, Convolution::default().stride(2))?;
    /// assert_eq!(y.to_vec::<f32>()?, [1., 10., 102., 20., 200.]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    along 1;
    /// The convolution of `(n, h, w, c)` with a weight `(o, kh, kw, c / groups)`, as [`conv1d`] along
    /// each of two axes.
    ///
    /// ```
    /// # use ultramarine::{Array, Convolution, Dtype, conv2d};
    /// let x = Array::ones(&[1, 8, 8, 4], Dtype::Float32)?;
    /// let w = Array::ones(&[6, 3, 3, 2], Dtype::Float32)?;
    /// let how = Convolution::default().stride([2, 1]).padding(1).groups(2);
    /// assert_eq!(conv2d(&x, &w, how)?.shape(), [1, 4, 8, 6]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    conv2d
    conv_transpose2d
    /// As [`conv_transpose1d`], along two axes.
    along 2;
    /// The convolution of `(n, d, h, w, c)` with a weight `(o, kd, kh, kw, c / groups)`, as [`conv1d`]
    /// along each of three axes.
    conv3d
    conv_transpose3d
    /// As [`conv_transpose1d`], along three axes.
    along 3;
}

fn transposed(x: &Array, w: &Array, how: &Convolution) -> Result<Array> {
    let n = check(x, w, how.groups)?;
    ensure!(
        how.input_dilation.is_empty() && !how.flip,
        "conv",
        "Transposed convolutions have neither an input dilation nor a flip. Leave them out."
    );
    let (stride, dilation) = (spread(&how.stride, 1, n), spread(&how.kernel_dilation, 1, n));
    let (low, high) = (spread(&how.padding_low, 0, n), spread(&how.padding_high, 0, n));
    let more = spread(&how.output_padding, 0, n);
    let named = [
        ("strides", &stride),
        ("padding", &low),
        ("padding", &high),
        ("dilation", &dilation),
        ("output padding", &more),
    ];
    for (name, list) in named {
        ensure!(
            list.len() == n,
            "conv",
            "Invalid {name} {} for {n}D convolution. Pass one number, or one for each spatial axis.",
            List(list)
        );
    }
    let rest = |i: usize, padding: i64| {
        let taps = w.shape()[1 + i] as i64 - 1;
        dilation[i].saturating_mul(taps).saturating_sub(padding)
    };
    let how = Convolution {
        stride: Vec::new(),
        padding_low: (0..n).map(|i| rest(i, low[i])).collect(),
        padding_high: (0..n).map(|i| rest(i, high[i]).saturating_add(more[i])).collect(),
        kernel_dilation: dilation.to_vec(),
        input_dilation: stride.to_vec(),
        output_padding: Vec::new(),
        groups: how.groups,
        flip: true,
    };
    general(x, w, &how)
}

/// Returns the discrete convolution of two 1-d arrays; the shorter one is reversed.
///
/// ```
/// # use ultramarine::{Array, ConvolveMode, convolve};
/// let (a, v) = (Array::from_slice(&[1f32, 2., 3.], &[3])?, Array::from_slice(&[0f32, 1.], &[2])?);
/// assert_eq!(convolve(&a, &v, ConvolveMode::Full)?.to_vec::<f32>()?, [0., 1., 2., 3.]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for empty operands, of another rank than 1, or not floating point.
pub fn convolve(a: &Array, v: &Array, mode: ConvolveMode) -> Result<Array> {
    ensure!(a.ndim() == 1 && v.ndim() == 1, "convolve", "Inputs must be 1D. Flatten them.");
    ensure!(
        a.size() != 0 && v.size() != 0,
        "convolve",
        "Inputs cannot be empty. Pass at least one element in each."
    );
    let (long, short) = if v.size() > a.size() { (v, a) } else { (a, v) };
    let m = short.size() as i64;
    let (low, high) = match mode {
        ConvolveMode::Full => (m - 1, m - 1),
        ConvolveMode::Valid => (0, 0),
        // As NumPy: the extra one of an even length is in front.
        ConvolveMode::Same => (m / 2, m - 1 - m / 2),
    };
    let how = Convolution::default().padding_low(low).padding_high(high).flip(true);
    let line = |a: &Array| a.reshape(&[1, a.size(), 1]);
    flat(&general(&line(long)?, &line(short)?, &how)?)
}
