//! Input dilation: the outputs are divided into classes, each a convolution without input dilation.

use super::{Axis, Conv, dense};

/// A class of an axis: outputs `first, first + step, ..` meet taps `tap, tap + hop, ..`
#[derive(Clone, Copy)]
struct Phase {
    axis: Axis,
    /// First output, and the step to the next.
    outputs: [isize; 2],
    /// First tap, and the step to the next.
    taps: [isize; 2],
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The classes of an axis. Classes that meet no tap have a kernel of size 0.
fn of(axis: &Axis) -> Vec<Phase> {
    let s = axis.spread;
    if s == 1 || axis.input == 1 {
        // No zeros lie between the elements, so there is a single class.
        let axis = Axis { spread: 1, ..*axis };
        return vec![Phase { axis, outputs: [0, 1], taps: [0, 1] }];
    }
    let (step, hop) = (s / gcd(axis.stride, s), s / gcd(axis.dilation, s));
    let class = |first: i64| {
        // Position of the first output of the class at the first tap.
        let at = first * axis.stride - axis.low;
        let tap = (0..hop.min(axis.kernel)).find(|k| (at + k * axis.dilation).rem_euclid(s) == 0);
        let kernel = tap.map_or(0, |k| (axis.kernel - k + hop - 1) / hop);
        let tap = tap.unwrap_or(0);
        Phase {
            axis: Axis {
                kernel,
                output: (axis.output - first + step - 1) / step,
                stride: step * axis.stride / s,
                low: -(at + tap * axis.dilation).div_euclid(s),
                dilation: hop * axis.dilation / s,
                spread: 1,
                ..*axis
            },
            outputs: [first as isize, step as isize],
            taps: [tap as isize, hop as isize],
        }
    };
    (0..step.min(axis.output)).map(class).collect()
}

/// Runs a convolution.
///
/// # Safety
/// Its tensors are valid; the input's channels lie next to each other.
pub(super) unsafe fn run(conv: &Conv<'_>) {
    let [depth, height, width] = [0, 1, 2].map(|i| of(&conv.axes[i]));
    for d in &depth {
        for h in &height {
            for w in &width {
                let mut part = *conv;
                for (i, phase) in [d, h, w].into_iter().enumerate() {
                    part.axes[i] = phase.axis;
                    let (y, weight) = (&mut part.y, &mut part.w);
                    y.data = y.data.wrapping_offset(phase.outputs[0] * y.strides[1 + i]);
                    y.strides[1 + i] *= phase.outputs[1];
                    let first = phase.taps[0] * weight.strides[1 + i];
                    weight.data = weight.data.wrapping_offset(first);
                    weight.strides[1 + i] *= phase.taps[1];
                }
                // SAFETY: a part of the outputs, with the taps that they meet.
                unsafe {
                    if part.taps() == 0 {
                        clear(&part);
                    } else {
                        dense(&part);
                    }
                }
            }
        }
    }
}

/// Writes zeros to outputs that meet no tap.
///
/// # Safety
/// The output is valid.
unsafe fn clear(conv: &Conv<'_>) {
    let [d, h, w] = conv.axes.map(|a| a.output as usize);
    let s = conv.y.strides;
    let size = conv.dtype.size();
    let filters = conv.groups * conv.filters;
    let one = |n: usize| {
        for i in 0..d * h * w {
            let at = [n, i / (h * w), i / w % h, i % w];
            let first = conv.y.at(&at);
            for o in 0..filters {
                let to = first.wrapping_offset(o as isize * s[4]);
                // SAFETY: an element of the output; zero bits are the number zero.
                unsafe { to.write_bytes(0, size) }
            }
        }
    };
    conv.cx.par.run(conv.batch, one);
}
