//! Arithmetic, rounding, comparisons and predicates of the floating types, the
//! float64 functions, and the halves against one rounding of float32.

use super::run;
use half::{bf16, f16};
use ultramarine_abi::schema::{binary as b, unary as u};
use ultramarine_cpu::tested::elements::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use ultramarine_cpu::{dtype::Bool, elementwise::TileOp, level::Level};
use ultramarine_test_support::Rng;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

const X: [f64; 17] =
    [NAN, 1.0, 5.0, -5.0, 5.0, -5.0, 0.0, -0.0, INF, 1.0, 5.0, 1.0, -1.0, -INF, 2.5, 0.0, -0.0];
const Y: [f64; 17] =
    [1.0, NAN, 3.0, 3.0, -3.0, -3.0, 3.0, 3.0, 2.0, INF, 0.0, -INF, INF, -INF, 2.5, -0.0, 0.0];

fn same(x: f64, y: f64) -> bool {
    x.is_nan() && y.is_nan() || x.to_bits() == y.to_bits()
}

fn reference(code: u32, x: f64, y: f64) -> f64 {
    match code {
        b::ADD => x + y,
        b::SUBTRACT => x - y,
        b::MULTIPLY => x * y,
        b::DIVIDE => x / y,
        b::FLOOR_DIVIDE => (x / y).floor(),
        b::REMAINDER => {
            let r = x % y;
            match r {
                0.0 => r.copysign(y),
                _ if r < 0.0 && y > 0.0 || r > 0.0 && y < 0.0 => r + y,
                _ => r,
            }
        }
        b::MAXIMUM if x.is_nan() || y.is_nan() => NAN,
        b::MAXIMUM => {
            if x > y {
                x
            } else {
                y
            }
        }
        b::MINIMUM if x.is_nan() || y.is_nan() => NAN,
        b::MINIMUM => {
            if x < y {
                x
            } else {
                y
            }
        }
        b::EQUAL => (x == y) as u8 as f64,
        b::NOT_EQUAL => (x != y) as u8 as f64,
        b::LESS => (x < y) as u8 as f64,
        b::LESS_EQUAL => (x <= y) as u8 as f64,
        b::GREATER => (x > y) as u8 as f64,
        b::GREATER_EQUAL => (x >= y) as u8 as f64,
        b::LOGICAL_AND => (x != 0.0 && y != 0.0) as u8 as f64,
        b::LOGICAL_OR => (x != 0.0 || y != 0.0) as u8 as f64,
        _ => (x == y || x.is_nan() && y.is_nan()) as u8 as f64,
    }
}

const BINARY: [u32; 19] = [
    b::ADD,
    b::SUBTRACT,
    b::MULTIPLY,
    b::DIVIDE,
    b::FLOOR_DIVIDE,
    b::REMAINDER,
    b::MAXIMUM,
    b::MINIMUM,
    b::EQUAL,
    b::NOT_EQUAL,
    b::LESS,
    b::LESS_EQUAL,
    b::GREATER,
    b::GREATER_EQUAL,
    b::LOGICAL_AND,
    b::LOGICAL_OR,
    b::EQUAL_NAN,
    b::EQUAL_NAN,
    b::EQUAL_NAN,
];

macro_rules! check_binary {
    ($t:ty, $from:expr, $to:expr) => {{
        let x: Vec<$t> = X.into_iter().map($from).collect();
        let y: Vec<$t> = Y.into_iter().map($from).collect();
        for &level in Level::available() {
            for code in BINARY {
                let op = TileOp::Binary(code);
                let got: Vec<f64> = if code >= b::EQUAL {
                    run::<$t, Bool>(level, op, &x, &y).iter().map(|b| b.0 as f64).collect()
                } else {
                    run::<$t, $t>(level, op, &x, &y).iter().map(|&x| $to(x)).collect()
                };
                for i in 0..X.len() {
                    let want = reference(code, $to(x[i]), $to(y[i]));
                    let want = if code < b::EQUAL { $to($from(want)) } else { want };
                    let name = b::NAMES[code as usize];
                    assert!(same(got[i], want), "{name} {} {}: {}, not {want}", X[i], Y[i], got[i]);
                }
            }
        }
    }};
}

#[test]
fn arithmetic_and_comparisons_at_specials() {
    check_binary!(f64, |x: f64| x, |x: f64| x);
    check_binary!(f32, |x: f64| x as f32, |x: f32| x as f64);
    check_binary!(f16, f16::from_f64, f16::to_f64);
    check_binary!(bf16, bf16::from_f64, bf16::to_f64);
}

/// Where x / y is just below an integer, the rounded quotient may be that integer.
#[test]
fn floored_quotients_of_halves_are_rounded_first() {
    let mut random = Rng::new(1);
    macro_rules! check {
        ($t:ty) => {{
            let mut draw = |low, high| -> Vec<$t> {
                (0..20_000).map(|_| <$t>::from_f64(random.uniform(low, high))).collect()
            };
            let (x, y) = (draw(-12.0, 12.0), draw(0.5, 4.0));
            for &level in Level::available() {
                let got: Vec<$t> = run(level, TileOp::Binary(b::FLOOR_DIVIDE), &x, &y);
                for i in 0..x.len() {
                    let quotient = <$t>::from_f32(x[i].to_f32() / y[i].to_f32());
                    let want = quotient.to_f32().floor();
                    assert_eq!(got[i].to_f32(), want, "{} // {}", x[i], y[i]);
                }
            }
            let exact = |i: usize| (x[i].to_f64() / y[i].to_f64()).floor();
            let rounded = |i: usize| <$t>::from_f64(x[i].to_f64() / y[i].to_f64()).to_f64().floor();
            assert!((0..x.len()).any(|i| exact(i) != rounded(i)), "no case that matters");
        }};
    }
    check!(f16);
    check!(bf16);
}

#[test]
fn predicates_signs_and_rounding() {
    let x = [NAN, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, INF, -INF, 1.0e300, 4.5e15, -2.7];
    type Case = (u32, fn(f64) -> f64);
    let cases: [Case; 12] = [
        (u::ABS, f64::abs),
        (u::NEGATIVE, |x| -x),
        (u::SIGN, |x| (x > 0.0) as i32 as f64 - (x < 0.0) as i32 as f64),
        (u::SQUARE, |x| x * x),
        (u::FLOOR, f64::floor),
        (u::CEIL, f64::ceil),
        (u::ROUND, f64::round_ties_even),
        (u::TRUNC, f64::trunc),
        (u::LOGICAL_NOT, |x| (x == 0.0) as u8 as f64),
        (u::ISNAN, |x| x.is_nan() as u8 as f64),
        (u::ISINF, |x| x.is_infinite() as u8 as f64),
        (u::ISFINITE, |x| x.is_finite() as u8 as f64),
    ];
    for &level in Level::available() {
        for (code, f) in cases {
            let op = TileOp::Unary(code);
            let predicate = matches!(code, u::LOGICAL_NOT..=u::ISFINITE);
            let got: Vec<f64> = if predicate {
                run::<f64, Bool>(level, op, &x, &x).iter().map(|b| b.0 as f64).collect()
            } else {
                run(level, op, &x, &x)
            };
            let narrow = x.map(|x| x as f32);
            let got32: Vec<f64> = if predicate {
                run::<f32, Bool>(level, op, &narrow, &narrow).iter().map(|b| b.0 as f64).collect()
            } else {
                run::<f32, f32>(level, op, &narrow, &narrow).iter().map(|&x| x as f64).collect()
            };
            for i in 0..x.len() {
                let name = u::NAMES[code as usize];
                // The sign of a zero sign is of no interest.
                let equal = |a: f64, b: f64| same(a, b) || code == u::SIGN && a == b;
                assert!(equal(got[i], f(x[i])), "{name} {}: {}", x[i], got[i]);
                let want = f(narrow[i] as f64) as f32 as f64;
                assert!(equal(got32[i], want), "{name} {}: {}", narrow[i], got32[i]);
            }
        }
    }
}

#[test]
fn float64_functions_fit_their_inverses() {
    let mut random = Rng::new(1);
    let x: Vec<f64> = (0..2000)
        .map(|_| random.uniform(-0.999, 0.999))
        .chain([0.0, -0.0, 1.0e-300, 1.0 - 1.0e-14])
        .collect();
    let unary =
        |code: u32, x: &[f64]| -> Vec<f64> { run(Level::detected(), TileOp::Unary(code), x, &[]) };
    for (inverse, code) in [
        (u::ERFINV, u::ERF),
        (u::ARCSIN, u::SIN),
        (u::ARCTAN, u::TAN),
        (u::ARCTANH, u::TANH),
        (u::ARCSINH, u::SINH),
        (u::LOG1P, u::EXPM1),
        (u::EXPM1, u::LOG1P),
    ] {
        for (&x, y) in x.iter().zip(unary(code, &unary(inverse, &x))) {
            let name = u::NAMES[code as usize];
            assert!((x - y).abs() <= 8.0 * f64::EPSILON * x.abs(), "{name} {x:e} {y:e}");
        }
    }
    for (&x, y) in x.iter().zip(unary(u::SIGMOID, &x)) {
        assert!((y - 1.0 / (1.0 + (-x).exp())).abs() < 4.0 * f64::EPSILON);
    }
    let ends = unary(u::ERFINV, &[1.0, -1.0, 1.5, NAN]);
    assert!(ends[0] == INF && ends[1] == -INF && ends[2].is_nan() && ends[3].is_nan());
    let sums: Vec<f64> = run(
        Level::Baseline,
        TileOp::Binary(b::LOGADDEXP),
        &[INF, -INF, 0.0, NAN, 1000.0],
        &[INF, -INF, 0.0, 1.0, 0.0],
    );
    assert!(sums[0] == INF && sums[1] == -INF && sums[3].is_nan() && sums[4] == 1000.0);
    assert!((sums[2] - std::f64::consts::LN_2).abs() < 1.0e-15);
}

#[test]
fn halves_convert_like_the_reference() {
    for bits in 0..=u16::MAX {
        let (wide, want) = (f16_to_f32(bits), f16::from_bits(bits).to_f32());
        assert!(wide.to_bits() == want.to_bits() || wide.is_nan() && want.is_nan(), "{bits:x}");
        let (wide, want) = (bf16_to_f32(bits), bf16::from_bits(bits).to_f32());
        assert!(wide.to_bits() == want.to_bits() || wide.is_nan() && want.is_nan(), "{bits:x}");
    }
    let mut random = Rng::new(1);
    let patterns = (0..1 << 22).map(|i: u32| i << 10);
    let ties = (0..1 << 16)
        .flat_map(|i: u32| [(i << 13) + 0x1000, (i << 13) + 0x0fff, (i << 13) + 0x1001]);
    for bits in patterns.chain(ties).chain((0..100_000).map(|_| random.bits() as u32)) {
        let x = f32::from_bits(bits);
        if x.is_nan() {
            assert!(
                f16::from_bits(f32_to_f16(x)).is_nan() && bf16::from_bits(f32_to_bf16(x)).is_nan()
            );
        } else {
            assert_eq!(f32_to_f16(x), f16::from_f32(x).to_bits(), "{x:e}");
            assert_eq!(f32_to_bf16(x), bf16::from_f32(x).to_bits(), "{x:e}");
        }
    }
}

/// An op of halves is that of float32, rounded once.
#[test]
fn half_ops_round_float32_once() {
    let x: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let wide: Vec<f32> = x.iter().map(|x| x.to_f32()).collect();
    for &level in Level::available() {
        for code in [u::EXP, u::TANH, u::SIN, u::LOG, u::SQRT, u::ERF, u::SIGN] {
            let got: Vec<f16> = run(level, TileOp::Unary(code), &x, &[]);
            let want: Vec<f32> = run(level, TileOp::Unary(code), &wide, &[]);
            for (g, w) in got.iter().zip(want) {
                assert!(g.to_bits() == f16::from_f32(w).to_bits() || g.is_nan() && w.is_nan());
            }
        }
    }
}
