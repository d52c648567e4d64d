//! Decompositions of convolutions: all windows become the rows of a matrix, which is multiplied by the weights.

use crate::array::Array;
use crate::error::{Result, ensure};
use crate::ops::rules::decomposition::{Candidates, Decompose, wider};
use crate::ops::{
    conv::convolve::{Convolve, Role, join, split},
    matmul::Matmul,
    rules::builders::like,
    shape::pad::PadMode,
};
use crate::shape::{self, Shape, contiguous_strides};
use smallvec::smallvec;

/// Largest number of elements that the matrix of windows may have.
const MAX_WINDOWS: usize = 1 << 28;

/// Runs the convolution of an input and a weight, with these outputs along the spatial axes.
type Run = fn(&Convolve, &Array, &Array, [usize; 3]) -> Result<Array>;

/// The spatial sizes of an array of five axes.
fn sizes(shape: &[usize]) -> [usize; 3] {
    [shape[1], shape[2], shape[3]]
}

/// Candidates for a convolution or its gradients. A gradient runs as a convolution, in a wider dtype, or as a matrix
/// product.
pub(crate) fn candidates(of: &Convolve, d: &Decompose<'_>, candidates: &mut Candidates) {
    let [a, b] = d.inputs else { return };
    let run: Run = |of, x, w, output| {
        let shape: Shape = smallvec![x.shape()[0], output[0], output[1], output[2], w.shape()[0]];
        of.of(x, w, &shape)
    };
    if of.result != Role::Output {
        candidates.add(as_convolution(of, a, b, d.shape, run));
    }
    match wider(a.dtype()) {
        Some(wide) => {
            let (a, b) = (a.astype(wide), b.astype(wide));
            for run in [run, product] {
                candidates.add(as_convolution(of, &a, &b, d.shape, run).map(|y| y.astype(d.dtype)));
            }
        }
        None => candidates.add(as_convolution(of, a, b, d.shape, product)),
    }
}

/// Runs a convolution, or a gradient as a convolution; see Dumoulin and Visin, A guide to convolution arithmetic for
/// deep learning (2016).
fn as_convolution(of: &Convolve, a: &Array, b: &Array, shape: &[usize], run: Run) -> Result<Array> {
    match of.result {
        Role::Output => run(of, a, b, sizes(shape)),
        Role::Input => to_input(of, a, b, sizes(shape), run),
        Role::Weight => to_weight(of, a, b, sizes(shape), run),
    }
}

/// The gradient with respect to the input: the cotangent, dilated by the strides, is convolved with the reversed
/// kernel.
fn to_input(of: &Convolve, w: &Array, ct: &Array, input: [usize; 3], run: Run) -> Result<Array> {
    let kernel = sizes(w.shape());
    let back = Convolve {
        result: Role::Output,
        stride: of.input_dilation,
        low: [0, 1, 2].map(|i| (kernel[i] as i64 - 1) * of.kernel_dilation[i] - of.low[i]),
        kernel_dilation: of.kernel_dilation,
        input_dilation: of.stride,
        groups: of.groups,
        flip: !of.flip,
        precision: of.precision,
    };
    // Swap filters and channels within each group.
    let w = split(w, 0, of.groups)?.swapaxes(1, 5)?;
    run(&back, ct, &join(&w, 0)?, input)
}

/// The gradient with respect to the weight: the input is convolved with the cotangent. Strides and dilations are
/// exchanged.
fn to_weight(of: &Convolve, x: &Array, ct: &Array, kernel: [usize; 3], run: Run) -> Result<Array> {
    let back = Convolve {
        result: Role::Output,
        stride: of.kernel_dilation,
        low: of.low,
        kernel_dilation: of.stride,
        input_dilation: of.input_dilation,
        groups: of.groups,
        flip: false,
        precision: of.precision,
    };
    // The sum runs over the batch, so the batch becomes the channel axis.
    let x = join(&split(x, 4, of.groups)?.swapaxes(0, 5)?, 4)?;
    let order = |a: &Array| a.transpose_axes([4, 1, 2, 3, 0]);
    let out = order(&run(&back, &x, &order(ct)?, kernel)?)?;
    if of.flip { out.flip([1, 2, 3]) } else { Ok(out) }
}

/// The input as the windows read it along `axis`: dilated, and cut to `length` elements from the start of the first
/// window.
fn seen(of: &Convolve, x: &Array, i: usize, length: usize) -> Result<Array> {
    let axis = 1 + i;
    let widths = |axis: usize, low: i64, high: i64| {
        let mut widths = vec![(0, 0); 5];
        widths[axis] = (low.max(0) as usize, high.max(0) as usize);
        widths
    };
    let mut x = x.clone();
    let by = of.input_dilation[i] as usize;
    let n = x.shape()[axis];
    if by > 1 && n > 1 {
        let mut shape = Shape::from_slice(x.shape());
        shape.insert(axis + 1, 1);
        let mut zeros = vec![(0, 0); 6];
        zeros[axis + 1] = (0, by - 1);
        let gaps = x.reshape(&shape)?.pad(&zeros, PadMode::Constant, like(&x, 0.0))?;
        shape.remove(axis + 1);
        shape[axis] = n * by;
        x = gaps.reshape(&shape)?;
    }
    // Dilation would leave a gap behind the last element too: count it as more zeros.
    let n = x.shape()[axis] as i64;
    let low = of.low[i];
    let (first, last) = ((-low).clamp(0, n), (length as i64 - low).clamp(0, n));
    if first >= last {
        let mut shape = Shape::from_slice(x.shape());
        shape[axis] = length;
        return Array::zeros(&shape, x.dtype());
    }
    let x = x.along(axis, first as usize, last as usize, 1)?;
    let high = length as i64 - low - n;
    x.pad(&widths(axis, low, high), PadMode::Constant, like(&x, 0.0))
}

fn product(of: &Convolve, x: &Array, w: &Array, output: [usize; 3]) -> Result<Array> {
    let (ws, groups) = (w.shape(), of.groups);
    let (filters, channels) = (ws[0] / groups, ws[4]);
    let taps = ws[1] * ws[2] * ws[3];
    let pixels = x.shape()[0] * output.iter().product::<usize>();
    let all = pixels.checked_mul(taps).and_then(|n| n.checked_mul(groups * channels));
    ensure!(all.is_some_and(|n| n <= MAX_WINDOWS), "conv", "too many windows to write them out");
    let _home = crate::placement::follow(&[x, w]);
    let mut x = x.clone();
    for i in 0..3 {
        let length = (output[i] as i64 - 1) * of.stride[i]
            + (ws[1 + i] as i64 - 1) * of.kernel_dilation[i]
            + 1;
        x = seen(of, &x, i, length as usize)?;
    }
    let steps = contiguous_strides(x.shape());
    // Groups, pixels, taps, channels.
    let mut shape: Shape = smallvec![groups, x.shape()[0]];
    let mut strides: shape::Strides = smallvec![channels as isize, steps[0]];
    shape.extend(output);
    strides.extend((0..3).map(|i| steps[1 + i] * of.stride[i] as isize));
    shape.extend(ws[1..4].iter().copied());
    strides.extend((0..3).map(|i| steps[1 + i] * of.kernel_dilation[i] as isize));
    shape.push(channels);
    strides.push(1);
    let windows = x.as_strided(&shape, &strides, 0)?;
    let windows = windows.reshape(&[groups, pixels, taps * channels])?;
    let w = if of.flip { w.flip([1, 2, 3])? } else { w.clone() };
    let w = w.reshape(&[groups, filters, taps * channels])?.swapaxes(1, 2)?;
    let product = Matmul { precision: of.precision };
    let sums = Array::of(product, &[&windows, &w], smallvec![groups, pixels, filters], x.dtype());
    let [d, h, k] = output;
    sums.swapaxes(0, 1)?.reshape(&[x.shape()[0], d, h, k, groups * filters])
}
