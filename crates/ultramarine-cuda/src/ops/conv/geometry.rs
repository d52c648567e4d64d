//! Convolutions in the form in which kernels compute them: sizes and strides, without reversal and
//! without input dilation.

use super::Role;
use crate::launch::{Axes, Job, View};
use ultramarine_abi::helper::{Failure, Result};

/// Limit of 32-bit arithmetic, with room for a tile and for a grid's stride.
pub const SMALL: i64 = 1 << 30;

/// The largest position: `no_row` of `conv/sizes.cuh` is twice as far below all positions.
const FAR: i64 = 1 << 61;

/// Rows, columns and length of sums from which a library call is worth it.
const WORTH: i64 = 16;

/// A tensor: the address of its first element, and strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    pub address: u64,
    pub strides: [i64; 6],
}

impl Tensor {
    /// Moves the address by a number of elements.
    fn moved(&mut self, elements: i64, bytes: u64) {
        self.address = self.address.wrapping_add((elements as u64).wrapping_mul(bytes));
    }
}

/// A spatial axis. Output `o` meets tap `k` of the kernel at position `o * stride - low + k * spread` of the input,
/// which has `gaps - 1` zeros between its elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub input: i64,
    pub output: i64,
    pub taps: i64,
    pub stride: i64,
    pub low: i64,
    pub spread: i64,
    pub gaps: i64,
}

/// A convolution in the form in which kernels compute it: sizes, strides and addresses, without
/// reversal and without input dilation. The axes of `x` and `y` are (n, d, h, w, group, channel),
/// those of `w` are (group, output, d, h, w, channel).
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    pub batch: i64,
    pub groups: i64,
    /// Channels and outputs of a group.
    pub channels: i64,
    pub outputs: i64,
    pub axes: [Axis; 3],
    pub x: Tensor,
    pub w: Tensor,
    pub y: Tensor,
    /// Bytes of an element.
    pub bytes: u64,
}

/// A tensor of positions and channels, with its channel axis split into groups.
fn with_groups(view: &View<'_>, each: i64) -> Tensor {
    let s = view.strides;
    Tensor { address: view.address, strides: [s[0], s[1], s[2], s[3], each * s[4], s[4]] }
}

impl Convolution {
    /// The convolution of a command. The gradient with respect to the input is a convolution of the cotangent with the
    /// reversed kernel, in which the strides become the input dilation (Dumoulin and Visin, A guide to convolution
    /// arithmetic for deep learning, 2016).
    pub fn of(job: &Job<'_>, role: Role, flip: bool) -> Result<Self> {
        let ([a, b], c) = ([job.input(0)?, job.input(1)?], job.output(0)?);
        let [x, w, y] = match role {
            Role::Output => [a, b, c],
            Role::Input => [c, a, b],
            Role::Weight => [a, c, b],
        };
        let (xs, ws, ys) = (x.shape, w.shape, y.shape);
        let groups = xs[4] / ws[4];
        let fits = groups * ws[4] == xs[4] && ws[0] % groups.max(1) == 0;
        if !fits || xs[0] != ys[0] || ws[0] != ys[4] {
            return Err(Failure::invalid(format!(
                "a convolution of {xs:?} and {ws:?} into {ys:?}"
            )));
        }
        let mut scalars = [0; 12];
        for (i, place) in scalars.iter_mut().enumerate() {
            *place = job.scalar(i)? as i64;
        }
        let axes = [0, 1, 2].map(|d| Axis {
            input: xs[1 + d],
            output: ys[1 + d],
            taps: ws[1 + d],
            stride: scalars[d],
            low: scalars[3 + d],
            spread: scalars[6 + d],
            gaps: scalars[9 + d],
        });
        if axes.iter().any(|a| a.stride < 1 || a.spread < 1 || a.gaps < 1) {
            return Err(Failure::invalid("a convolution whose steps are below 1"));
        }
        if axes.iter().any(|a| a.reach().is_none_or(|places| places > FAR)) {
            return Err(Failure::invalid("a convolution whose steps or padding are too large"));
        }
        let (channels, outputs, s) = (ws[4], ws[0] / groups, w.strides);
        let strides = [outputs * s[0], s[0], s[1], s[2], s[3], s[4]];
        let mut conv = Self {
            batch: xs[0],
            groups,
            channels,
            outputs,
            axes,
            x: with_groups(x, channels),
            w: Tensor { address: w.address, strides },
            y: with_groups(y, outputs),
            bytes: x.dtype.bytes(),
        };
        if flip != (role == Role::Input) {
            conv.reverse();
        }
        Ok(if role == Role::Input { conv.backwards() } else { conv })
    }

    /// Reverses the kernel.
    fn reverse(&mut self) {
        for (d, axis) in self.axes.iter().enumerate() {
            let stride = self.w.strides[2 + d];
            self.w.moved((axis.taps - 1) * stride, self.bytes);
            self.w.strides[2 + d] = -stride;
        }
    }

    /// The gradient with respect to the input, of a convolution whose kernel was reversed.
    fn backwards(self) -> Self {
        let axes = self.axes.map(|a| Axis {
            input: a.output,
            output: a.input,
            taps: a.taps,
            stride: a.gaps,
            low: (a.taps - 1) * a.spread - a.low,
            spread: a.spread,
            gaps: a.stride,
        });
        let [g, o, d, h, w, c] = self.w.strides;
        Self {
            channels: self.outputs,
            outputs: self.channels,
            axes,
            x: self.y,
            w: Tensor { strides: [g, c, d, h, w, o], ..self.w },
            y: self.x,
            ..self
        }
    }

    /// Number of output positions.
    pub fn rows(&self) -> i64 {
        self.batch * self.axes.iter().map(|a| a.output).product::<i64>()
    }

    pub fn taps(&self) -> i64 {
        self.axes.iter().map(|a| a.taps).product()
    }

    /// Sizes of the axes of `x`, `w` and `y`.
    pub fn shapes(&self) -> [[i64; 6]; 3] {
        let [i, t, o] = [0, 1, 2].map(|of| self.axes.map(|a| [a.input, a.taps, a.output][of]));
        [
            [self.batch, i[0], i[1], i[2], self.groups, self.channels],
            [self.groups, self.outputs, t[0], t[1], t[2], self.channels],
            [self.batch, o[0], o[1], o[2], self.groups, self.outputs],
        ]
    }

    /// True if each output reads only the input at its own position, so that the convolution is a matrix product, and if
    /// this product is large enough for a library call.
    pub fn is_worth_a_call(&self) -> bool {
        let own = |a: &Axis| a.taps == 1 && a.stride == 1 && a.low == 0 && a.input == a.output;
        let large = [self.rows(), self.channels, self.outputs].iter().all(|n| *n >= WORTH);
        large && self.axes.iter().all(own)
    }

    /// True if 32-bit arithmetic can address all elements and count them.
    pub fn is_small(&self) -> bool {
        let of_x = |d: usize| {
            let steps = self.x.strides[1 + d].saturating_abs().max(1);
            self.axes[d].reach().unwrap_or(i64::MAX).saturating_mul(steps)
        };
        let [xs, ws, ys] = self.shapes();
        let reach = |size: [i64; 6], t: &Tensor| -> i64 {
            let far = |(n, s): (&i64, &i64)| (n - 1).saturating_mul(s.saturating_abs());
            size.iter().zip(&t.strides).map(far).fold(0, i64::saturating_add)
        };
        let count = |size: [i64; 6]| size.into_iter().fold(1, i64::saturating_mul);
        let all = [
            (0..3).map(of_x).fold(reach(xs, &self.x), i64::saturating_add),
            reach(ws, &self.w),
            reach(ys, &self.y),
            count(ws),
            count(ys),
        ];
        all.into_iter().all(|n| n <= SMALL)
    }

    /// The fields of `Convolution` in `conv/sizes.cuh`, in order.
    pub fn words(&self) -> Vec<i64> {
        let mut words = vec![self.batch, self.groups, self.channels, self.outputs];
        let lists: [fn(&Axis) -> i64; 6] =
            [|a| a.input, |a| a.output, |a| a.taps, |a| a.stride, |a| a.low, |a| a.spread];
        for list in lists {
            words.extend(self.axes.iter().map(list));
        }
        for tensor in [&self.x, &self.w, &self.y] {
            words.extend_from_slice(&tensor.strides);
        }
        words
    }

    /// Splits the convolution into convolutions without input dilation: outputs are grouped by which taps meet elements.
    /// Outputs that meet none have a kernel of size 0.
    pub fn phases(&self) -> Vec<Self> {
        let [depth, height, width] = self.axes.map(|axis| axis.phases());
        let mut all = Vec::new();
        for d in &depth {
            for h in &height {
                for w in &width {
                    let mut part = *self;
                    for (i, phase) in [d, h, w].into_iter().enumerate() {
                        part.axes[i] = phase.axis;
                        let step = part.y.strides[1 + i];
                        part.y.moved(phase.outputs[0] * step, self.bytes);
                        part.y.strides[1 + i] = phase.outputs[1] * step;
                        let step = part.w.strides[2 + i];
                        part.w.moved(phase.taps[0] * step, self.bytes);
                        part.w.strides[2 + i] = phase.taps[1] * step;
                    }
                    all.push(part);
                }
            }
        }
        all
    }
}

/// A class of an axis's outputs: `outputs` and `taps` each hold the first index and the step to the
/// next.
struct Phase {
    axis: Axis,
    outputs: [i64; 2],
    taps: [i64; 2],
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Axis {
    /// The largest distance of a position from 0, in either direction. `None` if it does not fit in
    /// 64 bits.
    fn reach(&self) -> Option<i64> {
        let last = (self.output - 1).checked_mul(self.stride)?;
        let taps = (self.taps - 1).checked_mul(self.spread)?;
        let dilated = self.input.checked_mul(self.gaps)?;
        last.checked_add(taps)?.checked_add(self.low.checked_abs()?)?.checked_add(dilated)
    }

    fn phases(&self) -> Vec<Phase> {
        let gaps = self.gaps;
        if gaps == 1 || self.input == 1 {
            return vec![Phase { axis: Axis { gaps: 1, ..*self }, outputs: [0, 1], taps: [0, 1] }];
        }
        let (step, hop) = (gaps / gcd(self.stride, gaps), gaps / gcd(self.spread, gaps));
        let class = |first: i64| {
            // The position at which the first output of the class meets the first tap.
            let at = first * self.stride - self.low;
            let meets = |tap: &i64| (at + tap * self.spread).rem_euclid(gaps) == 0;
            let tap = (0..hop.min(self.taps)).find(meets);
            let (tap, taps) =
                (tap.unwrap_or(0), tap.map_or(0, |t| (self.taps - t + hop - 1) / hop));
            let axis = Axis {
                output: (self.output - first + step - 1) / step,
                taps,
                stride: step * self.stride / gaps,
                low: -(at + tap * self.spread).div_euclid(gaps),
                spread: hop * self.spread / gaps,
                gaps: 1,
                ..*self
            };
            Phase { axis, outputs: [first, step], taps: [tap, hop] }
        };
        (0..step.min(self.output)).map(class).collect()
    }
}

/// Number of elements from one position to the next, if that is the same for all positions.
pub fn pitch(tensor: &Tensor, shape: [i64; 6]) -> Option<i64> {
    let axes = Axes::<1>::join(&shape[..4], [&tensor.strides[..4]]);
    match axes.count {
        0 => Some(0),
        1 => Some(axes.stride[0][0]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_meet_each_output_and_tap_that_meet_once() {
        let mut seen = 0;
        for (gaps, stride, spread, low) in
            [(1, 2, 3, 1), (2, 1, 1, 1), (3, 1, 2, 2), (4, 2, 2, 3), (4, 6, 1, -2), (5, 5, 1, 0)]
        {
            let axis = Axis { input: 7, output: 11, taps: 5, stride, low, spread, gaps };
            let mut found = Vec::new();
            for phase in axis.phases() {
                for o in 0..phase.axis.output {
                    for t in 0..phase.axis.taps {
                        let at = o * phase.axis.stride - phase.axis.low + t * phase.axis.spread;
                        let tap = phase.taps[0] + t * phase.taps[1];
                        found.push((phase.outputs[0] + o * phase.outputs[1], tap, at));
                    }
                }
            }
            found.sort_unstable();
            let mut wanted = Vec::new();
            for o in 0..axis.output {
                for t in 0..axis.taps {
                    let at = o * stride - low + t * spread;
                    if at.rem_euclid(gaps) == 0 {
                        wanted.push((o, t, at.div_euclid(gaps)));
                    }
                }
            }
            assert_eq!(found, wanted, "{axis:?}");
            seen += wanted.len();
        }
        assert!(seen > 100);
    }
}
