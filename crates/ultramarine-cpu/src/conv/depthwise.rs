//! Each channel by itself: a loop over channels for each tap of a pixel.

use super::{Conv, compact, for_storage};
use crate::level::{Body, Isa, at};
use crate::matmul::simd::{Num, Storage};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use std::marker::PhantomData;

/// Channels whose sums are kept in registers.
const WIDE: usize = 64;
/// Multiply-adds of a task.
const TASK: usize = 1 << 18;

/// Runs a depthwise convolution without input dilation.
///
/// # Safety
/// Its tensors are valid; the input's channels lie next to each other.
pub(super) unsafe fn run(conv: &Conv<'_>) {
    // SAFETY: passed on, with the dtype's type.
    unsafe { for_storage!(conv.dtype, S => typed::<S>(conv)) }
}

/// # Safety
/// As [`run`]; elements are `S`.
unsafe fn typed<S: Storage>(conv: &Conv<'_>) {
    let (channels, taps) = (conv.groups, conv.taps());
    let [kd, kh, kw] = conv.axes.map(|a| a.kernel as usize);
    // SAFETY: the weight is valid.
    let (w, _memory) = unsafe { compact(conv.cx, conv.dtype, &conv.w, [channels, kd, kh, kw, 1]) };
    // The weights of all channels for a tap, next to each other, as they are summed.
    let transposed = Scratch::new(Slot::Call, taps * channels * size_of::<S::Acc>());
    let weights = transposed.get() as *mut S::Acc;
    for c in 0..channels {
        for t in 0..taps {
            // SAFETY: both have `taps * channels` elements.
            unsafe {
                *weights.add(t * channels + c) = (*(w.data as *const S).add(c * taps + t)).widen()
            }
        }
    }
    let pixels = conv.pixels();
    let step = (TASK / (taps * channels)).clamp(1, pixels);
    let weights = Shared(weights);
    let task = |i: usize| {
        let pixels = i * step..pixels.min((i + 1) * step);
        let body = Pixels::<S> { conv, weights: weights.get(), pixels, storage: PhantomData };
        at(conv.cx.level, body);
    };
    conv.cx.par.run(pixels.div_ceil(step), task);
}

/// Some pixels of the output.
struct Pixels<'a, S: Storage> {
    conv: &'a Conv<'a>,
    weights: *const S::Acc,
    pixels: std::ops::Range<usize>,
    storage: PhantomData<S>,
}

impl<S: Storage> Body for Pixels<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let conv = self.conv;
        let [d, h, w] = conv.axes.map(|a| a.output as usize);
        // Of each tap that meets the input: the input's address and the tap's number.
        let mut met: Vec<(*const u8, usize)> = Vec::with_capacity(conv.taps());
        let axis = &conv.axes[2];
        let step = axis.stride as isize * conv.x.strides[3];
        // Pixels of a line all of whose taps lie inside along the last axis meet the same taps, a step apart.
        let whole = axis.outputs(0).start..axis.outputs(axis.kernel as usize - 1).end;
        // The pixel that the list was made for.
        let mut made = None;
        for m in self.pixels.clone() {
            let index = [m / (d * h * w), m / (h * w) % d, m / w % h, m % w];
            let to = conv.y.at(&index);
            let o = index[3];
            let first = made.filter(|first| {
                *first <= m
                    && m - first <= o
                    && whole.contains(&(o - (m - first)))
                    && whole.contains(&o)
            });
            let first = first.unwrap_or_else(|| {
                met.clear();
                taps(conv, index, &mut met);
                m
            });
            made = Some(first);
            let shift = (m - first) as isize * step;
            let mut c = 0;
            while c + WIDE <= conv.groups {
                // SAFETY: WIDE channels of pixels of the input and the output.
                unsafe { self.channels::<I, WIDE>(&met, shift, c, to) };
                c += WIDE;
            }
            while c + 16 <= conv.groups {
                // SAFETY: 16 channels, as above.
                unsafe { self.channels::<I, 16>(&met, shift, c, to) };
                c += 16;
            }
            while c < conv.groups {
                // SAFETY: one channel, as above.
                unsafe { self.channels::<I, 1>(&met, shift, c, to) };
                c += 1;
            }
        }
    }
}

/// Lists the taps of a pixel that meet the input.
#[inline(always)]
fn taps(conv: &Conv<'_>, index: [usize; 4], met: &mut Vec<(*const u8, usize)>) {
    let [a, b, c] = conv.axes;
    let s = conv.x.strides;
    let image = conv.x.data.wrapping_offset(index[0] as isize * s[0]) as *const u8;
    let [depth, height, width] = conv.axes.map(|a| a.kernel as usize);
    for kd in 0..depth {
        let Some(z) = a.meets(index[1], kd) else { continue };
        for kh in 0..height {
            let Some(y) = b.meets(index[2], kh) else { continue };
            let line = image.wrapping_offset(z as isize * s[1] + y as isize * s[2]);
            for kw in 0..width {
                let Some(x) = c.meets(index[3], kw) else { continue };
                let tap = (kd * height + kh) * width + kw;
                met.push((line.wrapping_offset(x as isize * s[3]), tap));
            }
        }
    }
}

impl<S: Storage> Pixels<'_, S> {
    /// Sums `N` channels from `c` on of a pixel, so many bytes behind the one whose taps are listed.
    ///
    /// # Safety
    /// The addresses are of pixels of the input, and of the output.
    #[inline(always)]
    unsafe fn channels<I: Isa, const N: usize>(
        &self,
        met: &[(*const u8, usize)],
        shift: isize,
        c: usize,
        to: *mut u8,
    ) {
        let conv = self.conv;
        let mut sums = [S::Acc::default(); N];
        for (from, tap) in met {
            // SAFETY: N channels of a pixel, and their weights.
            let (x, w) = unsafe {
                let w = self.weights.add(tap * conv.groups + c);
                (
                    (from.wrapping_offset(shift) as *const S)
                        .add(c)
                        .cast::<[S; N]>()
                        .read_unaligned(),
                    w.cast::<[S::Acc; N]>().read_unaligned(),
                )
            };
            for i in 0..N {
                sums[i] = if I::FMA {
                    sums[i].mul_acc::<true>(x[i].widen(), w[i])
                } else {
                    sums[i].mul_acc::<false>(x[i].widen(), w[i])
                };
            }
        }
        let step = conv.y.strides[4];
        let to = to.wrapping_offset(c as isize * step);
        if step == size_of::<S>() as isize {
            // SAFETY: N elements of the output, one behind another.
            unsafe { S::narrow_row(&sums, core::slice::from_raw_parts_mut(to as *mut S, N)) };
            return;
        }
        for (i, sum) in sums.iter().enumerate() {
            let to = to.wrapping_offset(i as isize * step) as *mut S;
            // SAFETY: an element of the output.
            unsafe { to.write(S::narrow(*sum)) }
        }
    }
}
