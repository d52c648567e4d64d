//! The step between a transform of n real numbers and the complex transform of n / 2 elements that computes it.
//!
//! With `z[j] = x[2j] + i x[2j+1]` and Z its transform of h = n / 2 elements, the transform of x is
//! `X[k] = E[k] + w^k O[k]`, where `E[k] = (Z[k] + conj Z[h-k]) / 2`, `O[k] = -i (Z[k] - conj Z[h-k]) / 2` and
//! `w = e^(-2 pi i / n)`; the way back is the same with conjugate factors. (Press et al., Numerical
//! Recipes, section 12.3.)

use crate::dtype::c64;
use crate::level::{Body, Isa};

/// `-i w^k` for k up to n / 4, real and imaginary parts apart.
pub struct Twiddles {
    re: Box<[f32]>,
    im: Box<[f32]>,
}

impl Twiddles {
    /// Makes the factors for transforms of `n` real numbers; n is even.
    pub fn new(n: usize) -> Twiddles {
        let angle = |k: usize| std::f64::consts::TAU * k as f64 / n as f64;
        let all = || (0..=n / 4).map(angle);
        Twiddles {
            re: all().map(|a| -a.sin() as f32).collect(),
            im: all().map(|a| -a.cos() as f32).collect(),
        }
    }
}

/// The step for one line, in place or from one memory to another.
pub struct Fold<'a> {
    /// Half of the length.
    pub half: usize,
    /// After the complex transform: `half` numbers; before it (`back`): `half + 1`.
    pub source: *const c64,
    /// `half + 1` numbers, or `half`.
    pub target: *mut c64,
    /// Before a backward transform.
    pub back: bool,
    pub scale: f32,
    pub twiddles: &'a Twiddles,
}

/// Pairs of elements, from the front and the back, that are computed at a time.
const WIDE: usize = 8;

/// Safety of calling: the source and the target are valid, and either identical or disjoint.
impl Body for Fold<'_> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Fold { half, source, target, back, scale, twiddles } = self;
        // SAFETY: elements 0 and `half` of the source (of `half` numbers: 0 only) and of the
        // target, by the contract.
        unsafe {
            let first = *source;
            if back {
                let (a, b) = (first.re, (*source.add(half)).re);
                *target = c64 { re: scale * (a + b), im: scale * (a - b) };
            } else {
                *target = c64 { re: scale * (first.re + first.im), im: 0.0 };
                *target.add(half) = c64 { re: scale * (first.re - first.im), im: 0.0 };
            }
        }
        let factor = if back { scale } else { 0.5 * scale };
        let sign = if back { -1.0 } else { 1.0 };
        // k < half - k.
        let pairs = half.saturating_sub(1) / 2;
        let mut k = 1;
        while k + WIDE <= pairs + 1 {
            // SAFETY: k + WIDE - 1 <= pairs, so all places are below `half`.
            unsafe { some::<WIDE>(half, source, target, k, factor, sign, twiddles) };
            k += WIDE;
        }
        while k <= pairs {
            // SAFETY: as above.
            unsafe { some::<1>(half, source, target, k, factor, sign, twiddles) };
            k += 1;
        }
        if half >= 2 && half % 2 == 0 {
            // SAFETY: the element in the middle, its own partner.
            unsafe {
                let middle = *source.add(half / 2);
                let twice = 2.0 * factor;
                *target.add(half / 2) = c64 { re: twice * middle.re, im: -twice * middle.im };
            }
        }
    }
}

/// Computes elements k to k + N - 1 and their partners from the end. All are read before any is written.
///
/// # Safety
/// 1 <= k, k + N - 1 < half - k - N + 1, and source and target are [`Fold`]'s.
#[inline(always)]
unsafe fn some<const N: usize>(
    half: usize,
    source: *const c64,
    target: *mut c64,
    k: usize,
    factor: f32,
    sign: f32,
    twiddles: &Twiddles,
) {
    let back = half - k - (N - 1);
    // SAFETY: by this function's contract, here and below.
    let (front, rear) =
        unsafe { (*(source.add(k) as *const [c64; N]), *(source.add(back) as *const [c64; N])) };
    let (wr, wi) = (&twiddles.re[k..k + N], &twiddles.im[k..k + N]);
    let mut low = [c64::default(); N];
    let mut high = [c64::default(); N];
    for j in 0..N {
        let (p, q) = (front[j], rear[N - 1 - j]);
        // The partner's conjugate is added and subtracted.
        let (sr, si) = (factor * (p.re + q.re), factor * (p.im - q.im));
        let (dr, di) = (factor * (p.re - q.re), factor * (p.im + q.im));
        let (wr, wi) = (wr[j], sign * wi[j]);
        let (tr, ti) = (dr * wr - di * wi, dr * wi + di * wr);
        low[j] = c64 { re: sr + tr, im: si + ti };
        high[N - 1 - j] = c64 { re: sr - tr, im: ti - si };
    }
    // SAFETY: as above.
    unsafe {
        *(target.add(k) as *mut [c64; N]) = low;
        *(target.add(back) as *mut [c64; N]) = high;
    }
}

/// Multiplies numbers.
pub struct Scale<'a> {
    pub values: &'a mut [c64],
    pub by: f32,
}

impl Body for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        for v in self.values {
            *v = c64 { re: v.re * self.by, im: v.im * self.by };
        }
    }
}
