//! Convolutions: all windows as the rows of a matrix, times the weights.

use crate::array::Array;
use crate::error::{Result, ensure};
use crate::ops::rules::decomposition::{Candidates, Decompose, wider};
use crate::ops::{
    conv::convolve::Convolve, matmul::Matmul, rules::builders::like, shape::pad::PadMode,
};
use crate::shape::{self, Shape, contiguous_strides};
use smallvec::smallvec;

/// Most elements of the windows that are written out.
const MAX_WINDOWS: usize = 1 << 28;

/// Candidates for a convolution: in a wider dtype, or as a product of matrices.
pub(crate) fn candidates(of: &Convolve, d: &Decompose<'_>, candidates: &mut Candidates) {
    let [x, w] = d.inputs else { return };
    let output = [d.shape[1], d.shape[2], d.shape[3]];
    match wider(x.dtype()) {
        Some(wide) => {
            let (x, w) = (x.astype(wide), w.astype(wide));
            candidates.add(of.of(&x, &w, output).map(|y| y.astype(d.dtype)));
            candidates.add(product(of, &x, &w, output).map(|y| y.astype(d.dtype)));
        }
        None => candidates.add(product(of, x, w, output)),
    }
}

/// The input as windows see it along `axis`: dilated, and `length` elements from the first one
/// of the first window on.
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
        let gaps = x.reshape(&shape)?.pad(&zeros, PadMode::Constant, &like(&x, 0.0))?;
        shape.remove(axis + 1);
        shape[axis] = n * by;
        x = gaps.reshape(&shape)?;
    }
    // Gaps behind the last element are more zeros.
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
    x.pad(&widths(axis, low, high), PadMode::Constant, &like(&x, 0.0))
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
    let w = if of.flip { w.flip(Some(&[1, 2, 3]))? } else { w.clone() };
    let w = w.reshape(&[groups, filters, taps * channels])?.swapaxes(1, 2)?;
    let sums = Array::of(Matmul, &[&windows, &w], smallvec![groups, pixels, filters], x.dtype());
    let [d, h, k] = output;
    sums.swapaxes(0, 1)?.reshape(&[x.shape()[0], d, h, k, groups * filters])
}
