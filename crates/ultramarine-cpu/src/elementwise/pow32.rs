//! float32 powers: 2^(y log2 x), evaluated in float64, which makes the result
//! correct to half a unit in nearly every case. Branch-free.

use super::poly::{fma64, poly};
use crate::level::Isa;

/// log2 of a float32's magnitude, to 1e-11 of it; infinite at 0 and infinity.
#[inline(always)]
fn log2<I: Isa>(x: f32) -> f64 {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let wide = (x as f64).to_bits();
    let shifted = wide.wrapping_sub(ROOT_HALF);
    let k = (((shifted as i64) >> 32) as i32 >> 20) as f64;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF));
    let y = log2_of_ratio::<I>((m - 1.0) / (m + 1.0), k);
    let y = if x == f32::INFINITY { f64::INFINITY } else { y };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// k + log2 m, to 1e-11, from s = (m - 1) / (m + 1): 2 artanh(s) = ln m.
#[inline(always)]
pub(super) fn log2_of_ratio<I: Isa>(s: f64, k: f64) -> f64 {
    let p = poly!(
        fma64::<I>,
        s * s,
        0.340_747_454_546_733_3,
        0.411_671_748_591_384_8,
        0.577_083_601_882_751_6,
        0.961_796_673_247_668_7,
        2.885_390_081_790_168_5,
    );
    fma64::<I>(s, p, k)
}

/// 2^e, to 2e-9 of it, for |e| < 1000.
#[inline(always)]
pub(super) fn exp2<I: Isa>(e: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    let t = e + MAGIC;
    let r = e - (t - MAGIC);
    let p = poly!(
        fma64::<I>,
        r,
        1.547_804_762_874_697e-4,
        0.001_340_045_847_950_907_8,
        0.009_617_994_423_269_138,
        0.055_503_271_487_214_45,
        0.240_226_515_058_689_42,
        0.693_147_206_741_081_2,
        0.999_999_999_918_959_4,
    );
    p * f64::from_bits(t.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(1023) << 52)
}

/// x^y.
#[inline(always)]
pub(super) fn power<I: Isa>(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let e = y as f64 * log2::<I>(magnitude);
    let e = if e > 160.0 { 160.0 } else { e };
    let e = if e < -160.0 { -160.0 } else { e };
    let r = exp2::<I>(e) as f32;
    // 1^infinity has the exponent NaN.
    let r = if magnitude == 1.0 { 1.0 } else { r };
    let whole = y.trunc() == y;
    let half = 0.5 * y;
    let odd = whole & (half.trunc() != half);
    let r = if odd { r.copysign(x) } else { r };
    let undefined = (x < 0.0) & (x > f32::NEG_INFINITY) & !whole;
    let r = if undefined | x.is_nan() | y.is_nan() { f32::NAN } else { r };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { r }
}
