//! Units in the last place of the float32 functions, against float64: the standard
//! library's, and those of `float64` that it has not.

use super::run;
use ultramarine_abi::schema::{binary as b, unary as u};
use ultramarine_cpu::elementwise::TileOp;
use ultramarine_cpu::level::{IsaBaseline, Level};
use ultramarine_cpu::tested::elements::float64;
use ultramarine_test_support::Rng;

/// Distance of `got` from the exact `want`, in units of the last place of float32.
fn ulps(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = want as f32;
    if got == rounded {
        return 0.0;
    }
    // Infinity counts as the next number after the largest.
    let wide = |x: f32| if x.is_infinite() { 2f64.powi(128).copysign(x as f64) } else { x as f64 };
    let want = if rounded.is_infinite() { wide(rounded) } else { want };
    let exponent = (want.abs().max(f32::MIN_POSITIVE as f64).to_bits() >> 52) as i32 - 1023;
    (wide(got) - want).abs() / 2f64.powi(exponent - 23)
}

fn inputs() -> Vec<f32> {
    let mut random = Rng::new(1);
    // Every 4096th bit pattern: all exponents, both signs, NaNs and denormals.
    let mut x: Vec<f32> =
        (0..1 << 20).map(|i: u32| f32::from_bits((i << 12) | ((i * 77) & 0xfff))).collect();
    for (low, high) in [(-1.0, 1.0), (0.0, 2.0), (-0.02, 0.02), (-10.0, 10.0), (-110.0, 110.0)] {
        x.extend((0..200_000).map(|_| random.uniform(low, high) as f32));
    }
    for special in
        [0.0, 1.0, 0.5, 2.0, 88.7, 89.4, 103.9, 1.0e-38, 1.0e-45, 3.0e38, 1.0e6, f32::INFINITY]
    {
        let bits = f32::to_bits(special);
        for near in bits.saturating_sub(40)..=bits + 40 {
            x.extend([f32::from_bits(near), -f32::from_bits(near)]);
        }
    }
    x
}

type Reference = fn(f64) -> f64;

const UNARY: &[(u32, Reference, f64)] = &[
    (u::SQRT, f64::sqrt, 0.5),
    (u::RSQRT, |x| 1.0 / x.sqrt(), 1.6),
    (u::RECIPROCAL, |x| 1.0 / x, 0.5),
    (u::EXP, f64::exp, 1.1),
    (u::EXPM1, f64::exp_m1, 1.7),
    (u::LOG, f64::ln, 1.0),
    (u::LOG2, f64::log2, 1.8),
    (u::LOG10, f64::log10, 2.0),
    (u::LOG1P, f64::ln_1p, 1.5),
    (u::SIN, f64::sin, 1.6),
    (u::COS, f64::cos, 1.6),
    (u::TAN, f64::tan, 0.6),
    (u::ARCSIN, f64::asin, 1.4),
    (u::ARCCOS, f64::acos, 1.2),
    (u::ARCTAN, f64::atan, 1.4),
    (u::SINH, f64::sinh, 1.6),
    (u::COSH, f64::cosh, 1.6),
    (u::TANH, f64::tanh, 2.5),
    (u::ARCSINH, float64::arcsinh::<IsaBaseline>, 1.9),
    (u::ARCCOSH, float64::arccosh::<IsaBaseline>, 2.0),
    (u::ARCTANH, float64::arctanh::<IsaBaseline>, 1.9),
    (u::ERF, float64::erf::<IsaBaseline>, 1.3),
    (u::ERFINV, float64::erfinv::<IsaBaseline>, 3.5),
    (u::SIGMOID, float64::sigmoid::<IsaBaseline>, 2.4),
];

#[test]
fn unary_functions_are_accurate() {
    let x = inputs();
    let mut wrong = Vec::new();
    for &(code, reference, bound) in UNARY {
        for &level in Level::available() {
            let got: Vec<f32> = run(level, TileOp::Unary(code), &x, &[]);
            let (error, at) = x
                .iter()
                .zip(&got)
                .map(|(&x, &y)| (ulps(y, reference(x as f64)), (x, y)))
                .fold((0.0, (0.0, 0.0)), |worst, next| if next.0 > worst.0 { next } else { worst });
            if error > bound {
                wrong.push(format!(
                    "{} {level:?}: {error:.2} ulp at {:e} ({:e}, exactly {:e})",
                    u::NAMES[code as usize],
                    at.0,
                    at.1,
                    reference(at.0 as f64)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Functions with f(-0) = -0.
pub(super) const ODD: [u32; 17] = [
    u::SIN,
    u::TAN,
    u::ARCSIN,
    u::ARCTAN,
    u::SINH,
    u::TANH,
    u::ARCSINH,
    u::ARCTANH,
    u::ERF,
    u::ERFINV,
    u::EXPM1,
    u::LOG1P,
    u::SQRT,
    u::FLOOR,
    u::CEIL,
    u::ROUND,
    u::TRUNC,
];

#[test]
fn zeros_keep_their_sign() {
    for code in ODD {
        for &level in Level::available() {
            let got: Vec<f32> = run(level, TileOp::Unary(code), &[0.0f32, -0.0], &[]);
            let bits: Vec<u32> = got.iter().map(|x| x.to_bits()).collect();
            assert_eq!(bits, [0, 1 << 31], "{} {level:?}", u::NAMES[code as usize]);
        }
    }
}

fn power(x: f64, y: f64) -> f64 {
    x.powf(y)
}

#[test]
fn binary_functions_are_accurate() {
    let mut random = Rng::new(1);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        1.0e-40,
        -1.0e-40,
        3.0e38,
        -3.0e38,
        16_777_217.0,
        1.5,
        -1.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
    ];
    for a in specials {
        for b in specials {
            x.push(a);
            y.push(b);
        }
    }
    for _ in 0..400_000 {
        x.push(f32::from_bits(random.bits() as u32));
        y.push(f32::from_bits(random.bits() as u32));
        x.push(random.uniform(-3.0, 3.0) as f32);
        y.push(random.uniform(-3.0, 3.0) as f32);
        x.push(random.uniform(0.0, 30.0) as f32);
        y.push(random.uniform(-30.0, 30.0) as f32);
        x.push(random.uniform(0.99, 1.01) as f32);
        y.push(random.uniform(-9000.0, 9000.0) as f32);
        x.push(random.uniform(-9.0, 9.0) as f32);
        y.push(random.uniform(-20.0, 20.0).round() as f32);
    }
    type Reference = fn(f64, f64) -> f64;
    let cases: [(u32, Reference, f64); 3] = [
        (b::POWER, power, 0.6),
        (b::ARCTAN2, f64::atan2, 2.0),
        (b::LOGADDEXP, float64::logaddexp::<IsaBaseline>, 2.5),
    ];
    let mut wrong = Vec::new();
    for (code, reference, bound) in cases {
        for &level in Level::available() {
            let got: Vec<f32> = run(level, TileOp::Binary(code), &x, &y);
            let mut worst = (bound, String::new());
            for ((&x, &y), &z) in x.iter().zip(&y).zip(&got) {
                let want = reference(x as f64, y as f64);
                // Where the larger operand and the logarithm cancel, the error is
                // that of the operand.
                let scale = if code == b::LOGADDEXP && want.is_finite() {
                    let size = x.abs().max(y.abs()) as f64;
                    (want.abs() / size.max(f64::MIN_POSITIVE)).min(1.0)
                } else {
                    1.0
                };
                let error = ulps(z, want) * scale;
                if error > worst.0 {
                    worst = (error, format!("({x:e}, {y:e}): {z:e}, exactly {want:e}"));
                }
            }
            if worst.0 > bound {
                wrong.push(format!(
                    "{} {level:?}: {:.2} ulp at {}",
                    b::NAMES[code as usize],
                    worst.0,
                    worst.1
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
