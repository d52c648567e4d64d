//! The gradient of a depthwise convolution with respect to the weight: for each tap a sum over pixels, vectorised over
//! channels.

use super::{Conv, Tensor, for_storage};
use crate::level::{Body, Isa, at};
use crate::matmul::mul_acc;
use crate::matmul::simd::{Num, Storage};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use core::marker::PhantomData;
use core::ops::Range;

/// Number of shares into which the output's lines are divided. The sums of the shares are added at the end.
const SHARES: usize = 32;
/// Smallest number of multiply-adds of a share.
const SHARE: usize = 1 << 16;

/// Computes the gradient of a depthwise convolution without input dilation with respect to the weight. `conv` has the
/// cotangent as its output.
///
/// # Safety
/// The tensors are valid, the channels of the input and of the cotangent are adjacent, and the weight may be written.
pub(super) unsafe fn run(conv: &Conv<'_>) {
    // SAFETY: passed on, with the dtype's type.
    unsafe { for_storage!(conv.dtype, S => typed::<S>(conv)) }
}

/// # Safety
/// As [`run`]; elements are `S`.
unsafe fn typed<S: Storage>(conv: &Conv<'_>) {
    let [d, h, _] = conv.axes.map(|a| a.output as usize);
    let (lines, sums) = (conv.batch * d * h, conv.taps() * conv.groups);
    let work = conv.pixels().saturating_mul(sums);
    let shares = SHARES.min(work / SHARE).clamp(1, lines.max(1));
    let memory = Scratch::new(Slot::Call, shares * sums * size_of::<S::Acc>());
    let buffer = Shared(memory.get() as *mut S::Acc);
    conv.run(work, shares, |share| {
        let lines = share * lines / shares..(share + 1) * lines / shares;
        let sums = buffer.get().wrapping_add(share * sums);
        at(conv.cx.level, Lines::<S> { conv, lines, sums, storage: PhantomData });
    });
    for tap in 0..conv.taps() {
        let [d, h, w] = conv.tap(tap);
        for c in 0..conv.groups {
            // SAFETY: the sums of all shares were written above; an element of the weight.
            unsafe {
                let of = |share: usize| *buffer.get().add(share * sums + tap * conv.groups + c);
                let sum = (1..shares).fold(of(0), |sum, share| sum.plus(of(share)));
                let to = conv.w.at(&[c, d, h, w]);
                (to as *mut S).write(S::narrow(sum));
            }
        }
    }
}

/// Some lines of the output, and the sums of each tap over their pixels, for all channels.
struct Lines<'a, S: Storage> {
    conv: &'a Conv<'a>,
    lines: Range<usize>,
    sums: *mut S::Acc,
    storage: PhantomData<S>,
}

/// Pixels of a line that a tap uses: the addresses of the first pixel in the input and in the cotangent, and their
/// number.
#[derive(Clone, Copy)]
struct Met {
    x: *const u8,
    y: *const u8,
    pixels: usize,
}

impl<S: Storage> Body for Lines<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let conv = self.conv;
        for i in 0..conv.taps() * conv.groups {
            // SAFETY: the sums are this task's.
            unsafe { self.sums.add(i).write(S::Acc::default()) }
        }
        let [d, h, _] = conv.axes.map(|a| a.output as usize);
        for line in self.lines.clone() {
            let index = [line / (d * h), line / h % d, line % h];
            for tap in 0..conv.taps() {
                let Some(met) = meets(conv, index, tap) else { continue };
                let mut c = 0;
                while c < conv.groups {
                    let left = conv.groups - c;
                    // SAFETY: this many channels of pixels of the input and the cotangent.
                    unsafe {
                        c += match left {
                            64.. => self.channels::<I, 64>(met, tap, c),
                            16.. => self.channels::<I, 16>(met, tap, c),
                            4.. => self.channels::<I, 4>(met, tap, c),
                            _ => self.channels::<I, 1>(met, tap, c),
                        };
                    }
                }
            }
        }
    }
}

/// The pixels of an output line for which a tap is inside the input.
#[inline(always)]
fn meets(conv: &Conv<'_>, [n, od, oh]: [usize; 3], tap: usize) -> Option<Met> {
    let [d, h, w] = conv.axes;
    let [kd, kh, kw] = conv.tap(tap);
    let (z, y, outputs) = (d.meets(od, kd)?, h.meets(oh, kh)?, w.outputs(kw));
    let x = w.meets(outputs.start, kw).filter(|_| !outputs.is_empty())?;
    let pixel = |t: &Tensor, index: [usize; 4]| t.at(&index) as *const u8;
    Some(Met {
        x: pixel(&conv.x, [n, z, y, x]),
        y: pixel(&conv.y, [n, od, oh, outputs.start]),
        pixels: outputs.len(),
    })
}

impl<S: Storage> Lines<'_, S> {
    /// Adds the products of a tap to the sums of `N` channels from `c` on; returns `N`.
    ///
    /// # Safety
    /// The addresses are of pixels of the input and of the cotangent, which have these channels.
    #[inline(always)]
    unsafe fn channels<I: Isa, const N: usize>(&self, met: Met, tap: usize, c: usize) -> usize {
        let conv = self.conv;
        let x_step = conv.axes[2].stride as isize * conv.x.strides[3];
        let y_step = conv.y.strides[3];
        let at = |from: *const u8| (from as *const S).wrapping_add(c).cast::<[S; N]>();
        // SAFETY: by this function's contract; the sums are this task's.
        unsafe {
            let to = self.sums.add(tap * conv.groups + c).cast::<[S::Acc; N]>();
            let mut sums = to.read_unaligned();
            for i in 0..met.pixels as isize {
                let x = at(met.x.wrapping_offset(i * x_step)).read_unaligned();
                let y = at(met.y.wrapping_offset(i * y_step)).read_unaligned();
                for l in 0..N {
                    sums[l] = mul_acc::<S::Acc, I>(sums[l], x[l].widen(), y[l].widen());
                }
            }
            to.write_unaligned(sums);
        }
        N
    }
}
