//! float32 error function and its inverse, branch-free, from own fits.

use super::poly::{fma, poly};
use super::{exp32::exp, log32::log};
use crate::level::Isa;

/// Error function: x p(x^2) up to 0.94, above it 1 - e^q(|x|).
#[inline(always)]
pub(super) fn erf<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let p = poly!(
        fma::<I>,
        z,
        8.193_777e-5,
        -8.099_876_6e-4,
        0.005_197_155,
        -0.026_857_791,
        0.112_836_66,
        -0.376_126_32,
        0.128_379_17,
    );
    let near = fma::<I>(x, p, x);
    let c = if a > 4.05 { 4.05 } else { a };
    let q = poly!(
        fma::<I>,
        c,
        -2.121_794_6e-5,
        4.358_849_8e-4,
        -0.004_177_963_4,
        0.025_137_624,
        -0.108_308_28,
        -0.633_321_2,
        -1.129_527_7,
        1.773_351e-4,
    );
    let far = (1.0 - exp::<I>(q)).copysign(x);
    if a < 0.94 { near } else { far }
}

/// Inverse error function: x p(w) with w = -ln(1 - x^2), in sqrt(w) for w > 5.
#[inline(always)]
pub(super) fn erfinv<I: Isa>(x: f32) -> f32 {
    let w = -log::<I>((1.0 - x) * (1.0 + x));
    let near = poly!(
        fma::<I>,
        w - 2.5,
        -8.791_057e-9,
        2.323_264_4e-8,
        4.661_706_6e-7,
        -3.462_704_9e-6,
        -4.963_347_7e-6,
        2.183_444_5e-4,
        -0.001_252_741_9,
        -0.004_177_387,
        0.246_640_28,
        1.501_409_4,
    );
    let far = poly!(
        fma::<I>,
        w.sqrt() - 3.0,
        -1.654_285_3e-4,
        8.610_835e-5,
        0.001_300_224_9,
        -0.003_660_137_8,
        0.005_761_799_4,
        -0.007_625_304_6,
        0.009_435_622,
        1.001_674_2,
        2.832_977,
    );
    let y = x * if w < 5.0 { near } else { far };
    if x.abs() == 1.0 { f32::INFINITY.copysign(x) } else { y }
}
