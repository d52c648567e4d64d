//! complex64 against a small float64 complex arithmetic, inverse functions by
//! their round trip, branch cuts and infinities by value.

use super::run;
use ultramarine_abi::schema::{binary as b, unary as u};
use ultramarine_cpu::dtype::{Bool, c64};
use ultramarine_cpu::{elementwise::TileOp, level::Level};
use ultramarine_test_support::Rng;

type Z = (f64, f64);

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

fn z(re: f32, im: f32) -> c64 {
    c64 { re, im }
}

fn mul(x: Z, y: Z) -> Z {
    (x.0 * y.0 - x.1 * y.1, x.0 * y.1 + x.1 * y.0)
}

fn exp(x: Z) -> Z {
    (x.0.exp() * x.1.cos(), x.0.exp() * x.1.sin())
}

fn div(x: Z, y: Z) -> Z {
    let n = y.0 * y.0 + y.1 * y.1;
    ((x.0 * y.0 + x.1 * y.1) / n, (x.1 * y.0 - x.0 * y.1) / n)
}

fn near(got: c64, want: Z, tolerance: f64) -> bool {
    let error = (got.re as f64 - want.0).hypot(got.im as f64 - want.1);
    error <= tolerance * want.0.hypot(want.1).max(1.0e-30)
}

fn samples() -> Vec<c64> {
    let mut random = Rng::new(1);
    let mut next = |r: f64| random.uniform(-r, r) as f32;
    (0..3000)
        .map(|i| if i % 2 == 0 { z(next(3.0), next(3.0)) } else { z(next(0.3), next(0.3)) })
        .collect()
}

fn unary(code: u32, x: &[c64]) -> Vec<c64> {
    run(Level::detected(), TileOp::Unary(code), x, &[])
}

#[test]
fn functions_against_exponentials() {
    let sum = |x: Z, y: Z| (x.0 + y.0, x.1 + y.1);
    let neg = |x: Z| (-x.0, -x.1);
    let half = |x: Z| (x.0 / 2.0, x.1 / 2.0);
    let sinh = |x: Z| half(sum(exp(x), neg(exp(neg(x)))));
    let cosh = |x: Z| half(sum(exp(x), exp(neg(x))));
    let i = |x: Z| (-x.1, x.0);
    let over_i = |x: Z| (x.1, -x.0);
    let cases: &[(u32, &dyn Fn(Z) -> Z)] = &[
        (u::EXP, &exp),
        (u::SINH, &sinh),
        (u::COSH, &cosh),
        (u::TANH, &|x| div(sinh(x), cosh(x))),
        (u::SIN, &|x| over_i(sinh(i(x)))),
        (u::COS, &|x| cosh(i(x))),
        (u::TAN, &|x| over_i(div(sinh(i(x)), cosh(i(x))))),
        (u::SQUARE, &|x| mul(x, x)),
        (u::RECIPROCAL, &|x| div((1.0, 0.0), x)),
        (u::SIGN, &|x| (x.0 / x.0.hypot(x.1), x.1 / x.0.hypot(x.1))),
        (u::NEGATIVE, &|x| (-x.0, -x.1)),
        (u::CONJUGATE, &|x| (x.0, -x.1)),
    ];
    let x = samples();
    for (code, f) in cases {
        for (x, y) in x.iter().zip(unary(*code, &x)) {
            let want = f((x.re as f64, x.im as f64));
            assert!(
                near(y, want, 3.0e-7),
                "{} {x:?}: {y:?}, not {want:?}",
                u::NAMES[*code as usize]
            );
        }
    }
}

#[test]
fn inverses_come_back() {
    let x = samples();
    for (inverse, code, tolerance) in [
        (u::LOG, u::EXP, 4.0e-7),
        (u::ARCSIN, u::SIN, 2.0e-6),
        (u::ARCCOS, u::COS, 4.0e-5),
        (u::ARCTAN, u::TAN, 4.0e-5),
        (u::ARCSINH, u::SINH, 2.0e-6),
        (u::ARCCOSH, u::COSH, 4.0e-5),
        (u::ARCTANH, u::TANH, 4.0e-5),
        (u::SQRT, u::SQUARE, 3.0e-7),
    ] {
        for (x, y) in x.iter().zip(unary(code, &unary(inverse, &x))) {
            let near = near(y, (x.re as f64, x.im as f64), tolerance);
            assert!(near, "{} {x:?} {y:?}", u::NAMES[inverse as usize]);
        }
    }
    let (log, root) = (unary(u::LOG, &x), unary(u::SQRT, &x));
    for (code, scale) in [(u::LOG2, std::f64::consts::LN_2), (u::LOG10, std::f64::consts::LN_10)] {
        for (y, l) in unary(code, &x).into_iter().zip(&log) {
            assert!(near(y, (l.re as f64 / scale, l.im as f64 / scale), 3.0e-7));
        }
    }
    for (y, r) in unary(u::RSQRT, &x).into_iter().zip(&root) {
        assert!(near(y, div((1.0, 0.0), (r.re as f64, r.im as f64)), 4.0e-7));
    }
    // ln(1 + x) is small with x, and as exact.
    let tiny: Vec<c64> = x.iter().map(|x| z(x.re * 1.0e-5, x.im * 1.0e-5)).collect();
    for (y, x) in unary(u::LOG1P, &tiny).into_iter().zip(&tiny) {
        let x = (x.re as f64, x.im as f64);
        let square = mul(x, x);
        assert!(near(y, (x.0 - 0.5 * square.0, x.1 - 0.5 * square.1), 2.0e-7));
    }
}

fn same(x: f32, y: f32) -> bool {
    x.is_nan() && y.is_nan()
        || x == y && x.is_sign_negative() == y.is_sign_negative()
        || x != 0.0 && (x - y).abs() <= 2.0e-7 * y.abs()
}

#[test]
fn branch_cuts_zeros_and_infinities() {
    use std::f32::consts::{FRAC_PI_2 as Q, PI};
    let cases: &[(u32, c64, c64)] = &[
        (u::SQRT, z(-1.0, 0.0), z(0.0, 1.0)),
        (u::SQRT, z(-1.0, -0.0), z(0.0, -1.0)),
        (u::SQRT, z(0.0, -0.0), z(0.0, -0.0)),
        (u::SQRT, z(-INF, 2.0), z(0.0, INF)),
        (u::SQRT, z(INF, 1.0), z(INF, 0.0)),
        (u::LOG, z(-1.0, 0.0), z(0.0, PI)),
        (u::LOG, z(-1.0, -0.0), z(0.0, -PI)),
        (u::LOG, z(0.0, 0.0), z(-INF, 0.0)),
        (u::LOG, z(-INF, 2.0), z(INF, PI)),
        (u::LOG1P, z(-1.0, 0.0), z(-INF, 0.0)),
        (u::LOG1P, z(-2.0, 0.0), z(0.0, PI)),
        (u::EXP, z(-INF, 2.0), z(-0.0, 0.0)),
        (u::EXP, z(2.0, -0.0), z(7.389_056, -0.0)),
        (u::RECIPROCAL, z(0.0, 0.0), z(INF, NAN)),
        (u::RECIPROCAL, z(INF, 1.0), z(0.0, 0.0)),
        (u::SIGN, z(-0.0, -0.0), z(0.0, 0.0)),
        (u::SIGN, z(INF, 1.0), z(NAN, NAN)),
        (u::TANH, z(INF, 1.0), z(1.0, 0.0)),
        (u::TANH, z(100.0, 3.0), z(1.0, -0.0)),
        (u::ARCSIN, z(2.0, 0.0), z(Q, 1.316_958)),
        (u::ARCSIN, z(2.0, -0.0), z(Q, -1.316_958)),
        (u::ARCSIN, z(-INF, 2.0), z(-Q, INF)),
        (u::ARCCOS, z(-2.0, 0.0), z(PI, -1.316_958)),
        (u::ARCCOS, z(2.0, -0.0), z(0.0, 1.316_958)),
        (u::ARCCOSH, z(-2.0, 0.0), z(1.316_958, PI)),
        (u::ARCCOSH, z(0.0, -0.0), z(0.0, -Q)),
        (u::ARCSINH, z(0.0, 2.0), z(1.316_958, Q)),
        (u::ARCTAN, z(0.0, 2.0), z(Q, 0.549_306_1)),
        (u::ARCTANH, z(2.0, 0.0), z(0.549_306_1, Q)),
        (u::ARCTANH, z(2.0, -0.0), z(0.549_306_1, -Q)),
        (u::ARCTANH, z(-1.0, 0.0), z(-INF, 0.0)),
        (u::SIN, z(NAN, 1.0), z(NAN, NAN)),
        (u::ROUND, z(0.5, 1.5), z(0.0, 2.0)),
    ];
    for &(code, x, want) in cases {
        let got = unary(code, &[x])[0];
        let name = u::NAMES[code as usize];
        assert!(
            same(got.re, want.re) && same(got.im, want.im),
            "{name} {x:?}: {got:?}, not {want:?}"
        );
    }
    let size: Vec<f32> = run(
        Level::detected(),
        TileOp::Unary(u::ABS),
        &[z(3.0, -4.0), z(1.0e30, 1.0e30), z(NAN, INF)],
        &[],
    );
    assert!(size[0] == 5.0 && size[1].is_finite() && size[2] == INF);
}

#[test]
fn binary_ops() {
    let (x, mut y) = (samples(), samples());
    y.reverse();
    let wide = |z: c64| (z.re as f64, z.im as f64);
    type Case = (u32, fn(Z, Z) -> Z, f64);
    let cases: [Case; 6] = [
        (b::ADD, |x, y| (x.0 + y.0, x.1 + y.1), 1.0e-6),
        (b::SUBTRACT, |x, y| (x.0 - y.0, x.1 - y.1), 1.0e-6),
        (b::MULTIPLY, mul, 3.0e-7),
        (b::DIVIDE, div, 2.0e-7),
        (b::FLOOR_DIVIDE, div, 2.0e-7),
        (b::POWER, |x, y| exp(mul(y, (x.0.hypot(x.1).ln(), x.1.atan2(x.0)))), 4.0e-7),
    ];
    for &level in Level::available() {
        for (code, f, tolerance) in cases {
            let got: Vec<c64> = run(level, TileOp::Binary(code), &x, &y);
            for ((&x, &y), got) in x.iter().zip(&y).zip(got) {
                let want = f(wide(x), wide(y));
                assert!(
                    near(got, want, tolerance),
                    "{} {x:?} {y:?} {got:?} {want:?}",
                    b::NAMES[code as usize]
                );
            }
        }
        let got: Vec<c64> = run(level, TileOp::Binary(b::LOGADDEXP), &x, &y);
        for ((&x, &y), got) in x.iter().zip(&y).zip(got) {
            let (a, b) = (exp(wide(x)), exp(wide(y)));
            let want = (a.0 + b.0, a.1 + b.1);
            let scale = a.0.hypot(a.1) + b.0.hypot(b.1);
            let got = exp(wide(got));
            assert!((got.0 - want.0).hypot(got.1 - want.1) < 1.0e-5 * scale);
        }
    }
}

#[test]
fn order_is_by_real_then_imaginary_part() {
    let x =
        [z(1.0, 2.0), z(1.0, 3.0), z(2.0, 0.0), z(NAN, 0.0), z(1.0, NAN), z(0.0, 0.0), z(1.0, 1.0)];
    let y = [
        z(1.0, 3.0),
        z(1.0, 2.0),
        z(1.0, 9.0),
        z(1.0, 1.0),
        z(1.0, 1.0),
        z(-0.0, 0.0),
        z(NAN, 1.0),
    ];
    let cases = [
        (b::LESS, [1, 0, 0, 0, 0, 0, 0]),
        (b::LESS_EQUAL, [1, 0, 0, 0, 0, 1, 0]),
        (b::GREATER, [0, 1, 1, 0, 0, 0, 0]),
        (b::GREATER_EQUAL, [0, 1, 1, 0, 0, 1, 0]),
        (b::EQUAL, [0, 0, 0, 0, 0, 1, 0]),
        (b::NOT_EQUAL, [1, 1, 1, 1, 1, 0, 1]),
        (b::LOGICAL_AND, [1, 1, 1, 1, 1, 0, 1]),
        (b::LOGICAL_OR, [1, 1, 1, 1, 1, 0, 1]),
    ];
    for &level in Level::available() {
        for (code, want) in cases {
            let got: Vec<Bool> = run(level, TileOp::Binary(code), &x, &y);
            assert_eq!(got, want.map(Bool), "{}", b::NAMES[code as usize]);
        }
        let max: Vec<c64> = run(level, TileOp::Binary(b::MAXIMUM), &x, &y);
        let min: Vec<c64> = run(level, TileOp::Binary(b::MINIMUM), &x, &y);
        assert_eq!((max[0], max[1], max[2]), (y[0], x[1], x[2]));
        assert_eq!((min[0], min[1], min[2]), (x[0], y[1], y[2]));
        // NaN in either part and on either side is passed on.
        assert!(
            max[3].re.is_nan() && min[3].re.is_nan() && max[4].im.is_nan() && min[4].im.is_nan()
        );
        assert!(max[6].re.is_nan() && min[6].re.is_nan());
        let nans: Vec<Bool> = run(
            level,
            TileOp::Binary(b::EQUAL_NAN),
            &[z(NAN, 1.0), z(NAN, 1.0)],
            &[z(2.0, NAN), z(1.0, 1.0)],
        );
        assert_eq!(nans, [Bool(1), Bool(0)]);
    }
}

/// The functions in lanes against the scalar ones in float64, each part to a unit in the last
/// place, at every level: of all magnitudes, near the axes, the unit circle and multiples of pi/2.
#[test]
fn lanes_agree_with_scalars() {
    use ultramarine_cpu::tested::elements::complex64_math as m;
    let mut random = Rng::new(9);
    let mut x = samples();
    for i in 0..40_000 {
        let mut part = |i: usize| -> f32 {
            let size = random.uniform(-1.0, 1.0) as f32;
            match i % 5 {
                0 => size * 12.0,
                1 => size * 2f32.powi(random.below(60) as i32 - 30),
                2 => f32::from_bits(random.bits() as u32),
                3 => (random.below(9) as f32 - 4.0) * std::f32::consts::FRAC_PI_2,
                _ => [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 89.0, -104.0, 300.5][random.below(10)],
            }
        };
        x.push(z(part(i), part(i / 5)));
        let (angle, size) = (part(0), 1.0 + part(0) * 1.0e-6);
        x.push(z(size * angle.cos(), size * angle.sin()));
    }
    type Case = (u32, fn(m::C) -> m::C);
    let cases: [Case; 12] = [
        (u::SQRT, m::sqrt),
        (u::RECIPROCAL, m::reciprocal),
        (u::EXP, m::exp),
        (u::LOG, m::log),
        (u::LOG2, m::log2),
        (u::LOG10, m::log10),
        (u::SIN, m::sin),
        (u::COS, m::cos),
        (u::TAN, m::tan),
        (u::SINH, m::sinh),
        (u::COSH, m::cosh),
        (u::TANH, m::tanh),
    ];
    // Parts that are zero, infinite or NaN are the same; others differ by a unit at most.
    let near = |got: f32, want: f32| {
        let steps = (got.to_bits() as i32).abs_diff(want.to_bits() as i32);
        got.is_nan() && want.is_nan() || steps <= 1
    };
    for &level in Level::available() {
        for (code, f) in cases {
            let got: Vec<c64> = run(level, TileOp::Unary(code), &x, &[]);
            for (&x, got) in x.iter().zip(got) {
                let want: c64 = f(x.into()).into();
                let name = u::NAMES[code as usize];
                assert!(
                    near(got.re, want.re) && near(got.im, want.im),
                    "{name} {x:?} at {level:?}: {got:?}, not {want:?}"
                );
            }
        }
        let y: Vec<c64> = x.iter().rev().copied().collect();
        let got: Vec<c64> = run(level, TileOp::Binary(b::DIVIDE), &x, &y);
        for ((&x, &y), got) in x.iter().zip(&y).zip(got) {
            let want: c64 = m::divide(x.into(), y.into()).into();
            assert!(near(got.re, want.re) && near(got.im, want.im), "{x:?} / {y:?}: {got:?}");
        }
    }
}
