//! Convolutions in all forms: checks, defaults and padding. Each is one operation over three spatial axes (fewer are axes
//! of size 1).

pub(crate) mod convolve;
mod decompose;

use crate::error::{Result, ensure};
use crate::graph::precision;
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype, ops::rules::builders::flat, placement::follow};
use convolve::{Convolve, Role};
use num_complex::Complex32;
use smallvec::SmallVec;

/// How [`conv_general`] places its windows. Lists have a number for each spatial axis; one
/// number is for all axes, and none is the default: 1, for padding 0.
///
/// ```
/// use ultramarine::Convolution;
/// let how = Convolution { stride: vec![2], padding_high: vec![1, 0], ..Convolution::default() };
/// assert_eq!(how.groups, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// From window to window.
    pub stride: Vec<i64>,
    /// Zeros before the first element; negative: elements that are left out.
    pub padding_low: Vec<i64>,
    /// Zeros behind the last element; negative: elements that are left out.
    pub padding_high: Vec<i64>,
    /// From tap to tap of the kernel.
    pub kernel_dilation: Vec<i64>,
    /// From element to element of the input, with zeros between them.
    pub input_dilation: Vec<i64>,
    /// Groups of channels, each of which goes to a group of the outputs.
    pub groups: i64,
    /// Reverse the kernel along its spatial axes: a convolution as signal processing has it.
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
            groups: 1,
            flip: false,
        }
    }
}

/// The part of the full convolution that [`convolve`] returns, for operands of n >= m elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolveMode {
    /// All: n + m - 1 elements.
    Full,
    /// The middle: n elements.
    Same,
    /// Where the operands overlap completely: n - m + 1 elements.
    Valid,
}

/// Numbers in an error, as MLX shows them.
struct List<'a>(&'a [i64]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "({})", text.join(","))
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

/// Checks ranks, dtype and channels; gives the number of spatial axes.
fn check(x: &Array, w: &Array, groups: i64) -> Result<usize> {
    [x, w].into_iter().try_for_each(|a| a.computable("conv"))?;
    ensure!(
        (3..=5).contains(&x.ndim()),
        "conv",
        "Only works for inputs with 1-3 spatial dimensions. The inputs must be in the format [N, ..., C_in]"
    );
    let n = x.ndim() - 2;
    ensure!(
        x.dtype().is_inexact() && !x.dtype().is_complex(),
        "conv",
        "Invalid input array with type {}. Convolution currently only supports floating point types",
        x.dtype()
    );
    ensure!(
        w.ndim() == x.ndim(),
        "conv",
        "Invalid weight array with {} dimensions for {n}D convolution. Expected an array with {} dimensions following the format [C_out, ..., C_in].",
        w.ndim(),
        n + 2
    );
    ensure!(groups >= 1, "conv", "The number of groups must be positive. Got {groups} groups.");
    let (channels, filters) = (x.shape()[n + 1], w.shape()[0]);
    let (own, groups) = (w.shape()[n + 1], groups as usize);
    ensure!(
        groups != 1 || channels == own,
        "conv",
        "Expect the input channels in the input and weight array to match but got shapes - input: {} and weight: {}",
        Show(x.shape()),
        Show(w.shape())
    );
    ensure!(
        channels % groups == 0,
        "conv",
        "The input channels must be divisible by the number of groups. Got input with shape {} and {groups} groups.",
        Show(x.shape())
    );
    ensure!(
        filters % groups == 0,
        "conv",
        "If groups > 1, the output channels must be divisible by the number of groups. Got {filters} output channels and {groups} groups."
    );
    ensure!(
        own.checked_mul(groups) == Some(channels),
        "conv",
        "Given groups={groups} and weights of shape {}, expected to have {} input channels but got {channels} input channels instead.",
        Show(w.shape()),
        own.saturating_mul(groups)
    );
    Ok(n)
}

/// The convolution of `(n, .., c)` with a weight `(o, .., c / groups)`, of 1 to 3 spatial axes:
/// `(n, .., o)`. Without `flip` this is a cross-correlation.
///
/// ```
/// # use ultramarine::{Array, Convolution, Dtype, conv_general};
/// let x = Array::from_slice(&[0f32, 1., 2., 3., 4.], &[1, 5, 1])?;
/// let w = Array::from_slice(&[0f32, 1., 2.], &[1, 3, 1])?;
/// let how = Convolution { flip: true, ..Convolution::default() };
/// assert_eq!(conv_general(&x, &w, &how)?.to_vec::<f32>()?, [1., 4., 7.]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for an input that is not floating point, for shapes, groups or lists that do
/// not fit, and where the kernel is larger than the padded input.
pub fn conv_general(x: &Array, w: &Array, how: &Convolution) -> Result<Array> {
    let n = check(x, w, how.groups)?;
    let stride = spread(&how.stride, 1, n);
    let low = spread(&how.padding_low, 0, n);
    let high = spread(&how.padding_high, 0, n);
    let kernel_dilation = spread(&how.kernel_dilation, 1, n);
    let input_dilation = spread(&how.input_dilation, 1, n);
    ensure!(
        low.len() == n && high.len() == n,
        "conv",
        "Invalid padding {} | {} for {n}D convolution.",
        List(&low),
        List(&high)
    );
    let lists = [
        ("strides", "Stride sizes", "strides", &stride),
        ("kernel dilation", "Kernel dilation sizes", "kernel dilation", &kernel_dilation),
        ("input dilation", "Input dilation sizes", "input dilation", &input_dilation),
    ];
    for (name, _, _, list) in lists {
        ensure!(list.len() == n, "conv", "Invalid {name} {} for {n}D convolution.", List(list));
    }
    for (_, sizes, name, list) in lists {
        let positive = list.iter().all(|v| *v >= 1);
        ensure!(positive, "conv", "{sizes} must be positive. Got {name} {}.", List(list));
    }
    let mut made = Convolve {
        result: Role::Output,
        stride: [1; 3],
        low: [0; 3],
        kernel_dilation: [1; 3],
        input_dilation: [1; 3],
        groups: how.groups as usize,
        flip: how.flip,
        precision: precision::of_product(&[&x, &w]),
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
            "Spatial dimensions of input after padding cannot be smaller than weight spatial dimensions. Got error at axis {} for input with shape {}, padding low {}, padding high {}, and weight of shape {}.",
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

/// The convolution of `(n, l, c)` with a weight `(o, k, c / groups)`: `(n, out, o)`, where `out`
/// is `(l + 2 padding - dilation (k - 1) - 1) / stride + 1`.
///
/// ```
/// # use ultramarine::{Array, Dtype, conv1d};
/// let x = Array::ones(&[1, 5, 2], Dtype::Float32)?;
/// let w = Array::ones(&[3, 3, 2], Dtype::Float32)?;
/// assert_eq!(conv1d(&x, &w, 1, 1, 1, 1)?.shape(), [1, 5, 3]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// As [`conv_general`].
pub fn conv1d(
    x: &Array,
    w: &Array,
    stride: i64,
    padding: i64,
    dilation: i64,
    groups: i64,
) -> Result<Array> {
    forward(x, w, &[stride], &[padding], &[dilation], groups)
}

/// The convolution of `(n, h, w, c)` with a weight `(o, kh, kw, c / groups)`, as [`conv1d`] along
/// each of two axes.
///
/// # Errors
/// As [`conv_general`].
pub fn conv2d(
    x: &Array,
    w: &Array,
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    groups: i64,
) -> Result<Array> {
    forward(x, w, &stride, &padding, &dilation, groups)
}

/// The convolution of `(n, d, h, w, c)` with a weight `(o, kd, kh, kw, c / groups)`, as [`conv1d`]
/// along each of three axes.
///
/// # Errors
/// As [`conv_general`].
pub fn conv3d(
    x: &Array,
    w: &Array,
    stride: [i64; 3],
    padding: [i64; 3],
    dilation: [i64; 3],
    groups: i64,
) -> Result<Array> {
    forward(x, w, &stride, &padding, &dilation, groups)
}

fn forward(
    x: &Array,
    w: &Array,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    groups: i64,
) -> Result<Array> {
    let how = Convolution {
        stride: stride.to_vec(),
        padding_low: padding.to_vec(),
        padding_high: padding.to_vec(),
        kernel_dilation: dilation.to_vec(),
        groups,
        ..Convolution::default()
    };
    conv_general(x, w, &how)
}

/// The transposed convolution of `(n, l, c)` with a weight `(o, k, c / groups)`: `(n, out, o)`,
/// where `out` is `stride (l - 1) - 2 padding + dilation (k - 1) + 1 + output_padding`. It maps as
/// the derivative of [`conv1d`] does.
///
/// ```
/// # use ultramarine::{Array, conv_transpose1d};
/// let x = Array::from_slice(&[1f32, 2.], &[1, 2, 1])?;
/// let w = Array::from_slice(&[1f32, 10., 100.], &[1, 3, 1])?;
/// let y = conv_transpose1d(&x, &w, 2, 0, 1, 0, 1)?;
/// assert_eq!(y.to_vec::<f32>()?, [1., 10., 102., 20., 200.]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// As [`conv_general`].
pub fn conv_transpose1d(
    x: &Array,
    w: &Array,
    stride: i64,
    padding: i64,
    dilation: i64,
    output_padding: i64,
    groups: i64,
) -> Result<Array> {
    transposed(x, w, [&[stride], &[padding], &[dilation], &[output_padding]], groups)
}

/// As [`conv_transpose1d`], along two axes.
///
/// # Errors
/// As [`conv_general`].
pub fn conv_transpose2d(
    x: &Array,
    w: &Array,
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    output_padding: [i64; 2],
    groups: i64,
) -> Result<Array> {
    transposed(x, w, [&stride, &padding, &dilation, &output_padding], groups)
}

/// As [`conv_transpose1d`], along three axes.
///
/// # Errors
/// As [`conv_general`].
pub fn conv_transpose3d(
    x: &Array,
    w: &Array,
    stride: [i64; 3],
    padding: [i64; 3],
    dilation: [i64; 3],
    output_padding: [i64; 3],
    groups: i64,
) -> Result<Array> {
    transposed(x, w, [&stride, &padding, &dilation, &output_padding], groups)
}

fn transposed(x: &Array, w: &Array, lists: [&[i64]; 4], groups: i64) -> Result<Array> {
    let n = check(x, w, groups)?;
    let [stride, padding, dilation, more] = lists;
    let (stride, dilation) = (spread(stride, 1, n), spread(dilation, 1, n));
    let (padding, more) = (spread(padding, 0, n), spread(more, 0, n));
    let named = [
        ("strides", &stride),
        ("padding", &padding),
        ("dilation", &dilation),
        ("output padding", &more),
    ];
    for (name, list) in named {
        ensure!(list.len() == n, "conv", "Invalid {name} {} for {n}D convolution.", List(list));
    }
    let low: Vec<i64> = (0..n)
        .map(|i| {
            let taps = w.shape()[1 + i] as i64 - 1;
            dilation[i].saturating_mul(taps).saturating_sub(padding[i])
        })
        .collect();
    let how = Convolution {
        stride: Vec::new(),
        padding_high: low.iter().zip(&more).map(|(l, m)| l.saturating_add(*m)).collect(),
        padding_low: low,
        kernel_dilation: dilation.to_vec(),
        input_dilation: stride.to_vec(),
        groups,
        flip: true,
    };
    conv_general(x, w, &how)
}

/// The discrete convolution of two vectors, the shorter of which is reversed.
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
    ensure!(a.ndim() == 1 && v.ndim() == 1, "convolve", "Inputs must be 1D.");
    ensure!(a.size() != 0 && v.size() != 0, "convolve", "Inputs cannot be empty.");
    let (long, short) = if v.size() > a.size() { (v, a) } else { (a, v) };
    let m = short.size() as i64;
    let (low, high) = match mode {
        ConvolveMode::Full => (m - 1, m - 1),
        ConvolveMode::Valid => (0, 0),
        // As NumPy: the extra one of an even length is in front.
        ConvolveMode::Same => (m / 2, m - 1 - m / 2),
    };
    let how = Convolution {
        padding_low: vec![low],
        padding_high: vec![high],
        flip: true,
        ..Convolution::default()
    };
    let line = |a: &Array| a.reshape(&[1, a.size(), 1]);
    flat(&conv_general(&line(long)?, &line(short)?, &how)?)
}
