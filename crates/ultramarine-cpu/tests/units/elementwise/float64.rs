//! The float64 functions against correctly rounded results, which `python/tools/float64_table.py`
//! computes, and at their special values.

use super::accuracy::ODD;
use super::run;
use std::collections::BTreeMap;
use ultramarine_abi::schema::{binary as b, unary as u};
use ultramarine_cpu::elementwise::TileOp;
use ultramarine_cpu::level::Level;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
/// The smallest positive number.
const LEAST: f64 = 5.0e-324;

/// Units in the last place that a function may be off, with a fused multiply-add and without.
const BOUNDS: &[(TileOp, f64, f64)] = &[
    (TileOp::Unary(u::EXP), 0.8, 0.8),
    (TileOp::Unary(u::EXPM1), 0.8, 0.8),
    (TileOp::Unary(u::LOG), 0.7, 0.7),
    (TileOp::Unary(u::LOG2), 0.7, 0.8),
    (TileOp::Unary(u::LOG10), 0.7, 0.7),
    (TileOp::Unary(u::LOG1P), 0.7, 0.7),
    (TileOp::Unary(u::SIN), 0.8, 0.8),
    (TileOp::Unary(u::COS), 0.8, 0.8),
    (TileOp::Unary(u::TAN), 1.0, 1.1),
    (TileOp::Unary(u::ARCSIN), 0.7, 0.7),
    (TileOp::Unary(u::ARCCOS), 0.7, 0.7),
    (TileOp::Unary(u::ARCTAN), 0.7, 0.7),
    (TileOp::Unary(u::SINH), 0.7, 0.7),
    (TileOp::Unary(u::COSH), 1.0, 1.0),
    (TileOp::Unary(u::TANH), 0.7, 0.7),
    (TileOp::Unary(u::ARCSINH), 1.1, 1.2),
    (TileOp::Unary(u::ARCCOSH), 1.6, 1.6),
    (TileOp::Unary(u::ARCTANH), 0.7, 0.7),
    (TileOp::Unary(u::ERF), 1.3, 1.5),
    (TileOp::Unary(u::ERFINV), 2.0, 3.0),
    (TileOp::Unary(u::SIGMOID), 2.0, 2.0),
    (TileOp::Binary(b::POWER), 0.8, 1.0),
    (TileOp::Binary(b::ARCTAN2), 1.5, 1.5),
    // Of sums above the operands: where they cancel, the error is the operands'.
    (TileOp::Binary(b::LOGADDEXP), 1.2, 1.2),
];

fn name(op: TileOp) -> &'static str {
    match op {
        TileOp::Unary(code) => u::NAMES[code as usize],
        TileOp::Binary(code) => b::NAMES[code as usize],
        _ => unreachable!("a function"),
    }
}

/// Operands, correctly rounded results, and thousandths of a unit beyond them.
#[derive(Default)]
struct Column {
    x: Vec<f64>,
    y: Vec<f64>,
    want: Vec<f64>,
    beyond: Vec<f64>,
}

fn table() -> BTreeMap<&'static str, Column> {
    let mut table = BTreeMap::<_, Column>::new();
    for line in include_str!("float64.table").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let bits = |i: usize| f64::from_bits(u64::from_str_radix(words[i], 16).unwrap());
        let n = words.len();
        let column = table.entry(words[0]).or_default();
        column.x.push(bits(1));
        column.y.push(bits(n - 3));
        column.want.push(bits(n - 2));
        column.beyond.push(words[n - 1].parse().unwrap());
    }
    table
}

/// The unit in the last place of `x`.
fn unit(x: f64) -> f64 {
    let exponent = (x.abs().to_bits() >> 52).max(1);
    f64::from_bits(exponent << 52) * f64::EPSILON
}

#[test]
fn functions_are_accurate() {
    let table = table();
    let mut wrong = Vec::new();
    for &(op, fused, apart) in BOUNDS {
        let column = &table[name(op)];
        assert!(column.x.len() >= 72, "{}", name(op));
        for &level in Level::available() {
            let got: Vec<f64> = run(level, op, &column.x, &column.y);
            let has_fma = level > Level::Baseline || cfg!(target_arch = "aarch64");
            let bound = if has_fma { fused } else { apart };
            for (i, &got) in got.iter().enumerate() {
                let want = column.want[i];
                // Exact: neighbours differ by few units.
                let error = ((got - want) / unit(want) - column.beyond[i] / 1000.0).abs();
                if error.is_nan() || error > bound {
                    let (x, y) = (column.x[i], column.y[i]);
                    wrong.push(format!(
                        "{} {level:?}: {error:.2} ulp at {x:e} ({y:e}): {got:e}, not {want:e}",
                        name(op)
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two operands (the second of a unary function is ignored) and the result.
type Case = (f64, f64, f64);

/// Checks results bit by bit; every NaN is the same.
fn check(op: TileOp, cases: &[Case]) {
    // Enough for whole vectors and a rest.
    let repeat = |part: fn(&Case) -> f64| -> Vec<f64> {
        cases.iter().map(part).cycle().take(cases.len().max(19) * 3).collect()
    };
    let (x, y, want) = (repeat(|c| c.0), repeat(|c| c.1), repeat(|c| c.2));
    let mut wrong = Vec::new();
    for &level in Level::available() {
        let got: Vec<f64> = run(level, op, &x, &y);
        for (i, &got) in got.iter().enumerate() {
            let both_nan = got.is_nan() && want[i].is_nan();
            if !both_nan && got.to_bits() != want[i].to_bits() {
                wrong.push(format!(
                    "{} {level:?} of {:e} {:e}: {got:e}, not {:e}",
                    name(op),
                    x[i],
                    y[i],
                    want[i]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Operand and result.
fn unary(code: u32, cases: &[(f64, f64)]) {
    let cases: Vec<Case> = cases.iter().map(|&(x, y)| (x, 0.0, y)).collect();
    check(TileOp::Unary(code), &cases);
}

#[test]
fn exponentials_at_special_values() {
    unary(
        u::EXP,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (NAN, NAN),
            (709.782712893384, 1.797_693_134_862_273_2e308),
            (709.7827128933841, INF),
            (-745.1332191019411, LEAST),
            (-745.1332191019412, 0.0),
            (1.0e308, INF),
            (-1.0e308, 0.0),
            (LEAST, 1.0),
        ],
    );
    unary(
        u::EXPM1,
        &[
            (INF, INF),
            (-INF, -1.0),
            (NAN, NAN),
            (-1000.0, -1.0),
            (710.0, INF),
            (LEAST, LEAST),
            (3.0 * LEAST, 3.0 * LEAST),
            (-1.0e-300, -1.0e-300),
        ],
    );
    unary(u::TANH, &[(INF, 1.0), (-INF, -1.0), (NAN, NAN), (25.0, 1.0), (-LEAST, -LEAST)]);
    unary(
        u::SINH,
        &[(INF, INF), (-INF, -INF), (NAN, NAN), (710.475860073944, INF), (LEAST, LEAST)],
    );
    unary(u::COSH, &[(INF, INF), (-INF, INF), (NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (-711.0, INF)]);
    unary(
        u::SIGMOID,
        &[
            (0.0, 0.5),
            (-0.0, 0.5),
            (INF, 1.0),
            (-INF, 0.0),
            (NAN, NAN),
            (40.0, 1.0),
            (-745.1332191019411, LEAST),
            (-800.0, 0.0),
        ],
    );
    unary(u::ERF, &[(INF, 1.0), (-INF, -1.0), (NAN, NAN), (6.0, 1.0), (-6.0, -1.0)]);
    unary(u::ERFINV, &[(1.0, INF), (-1.0, -INF), (1.5, NAN), (-2.0, NAN), (NAN, NAN)]);
}

#[test]
fn logarithms_at_special_values() {
    for code in [u::LOG, u::LOG2, u::LOG10] {
        unary(
            code,
            &[
                (1.0, 0.0),
                (0.0, -INF),
                (-0.0, -INF),
                (INF, INF),
                (-INF, NAN),
                (-1.0, NAN),
                (-LEAST, NAN),
                (NAN, NAN),
            ],
        );
    }
    let normal = (-1022..1024).map(|k| (f64::from_bits(((k + 1023) as u64) << 52), k as f64));
    let subnormal = (-1074..-1022).map(|k| (f64::from_bits(1 << (k + 1074)), k as f64));
    unary(u::LOG2, &normal.chain(subnormal).collect::<Vec<_>>());
    // Powers of ten that are float64.
    let powers: Vec<(f64, f64)> = (0..=22).map(|k| (10f64.powi(k), k as f64)).collect();
    unary(u::LOG10, &powers);
    unary(
        u::LOG1P,
        &[(-1.0, -INF), (-1.5, NAN), (-INF, NAN), (INF, INF), (NAN, NAN), (-LEAST, -LEAST)],
    );
    unary(u::ARCSINH, &[(INF, INF), (-INF, -INF), (NAN, NAN), (LEAST, LEAST)]);
    unary(u::ARCCOSH, &[(1.0, 0.0), (0.5, NAN), (-2.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)]);
    unary(u::ARCTANH, &[(1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (NAN, NAN)]);
}

#[test]
fn trigonometry_at_special_values() {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    for code in [u::SIN, u::COS, u::TAN] {
        unary(code, &[(INF, NAN), (-INF, NAN), (NAN, NAN)]);
    }
    unary(u::SIN, &[(LEAST, LEAST), (-3.0 * LEAST, -3.0 * LEAST)]);
    unary(u::COS, &[(0.0, 1.0), (-0.0, 1.0), (LEAST, 1.0)]);
    unary(u::ARCSIN, &[(1.0, FRAC_PI_2), (-1.0, -FRAC_PI_2), (1.5, NAN), (-INF, NAN), (NAN, NAN)]);
    unary(
        u::ARCCOS,
        &[(1.0, 0.0), (-1.0, PI), (0.0, FRAC_PI_2), (-0.0, FRAC_PI_2), (-1.5, NAN), (INF, NAN)],
    );
    unary(u::ARCTAN, &[(INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (1.0, FRAC_PI_4), (NAN, NAN)]);
    let three = 3.0 * FRAC_PI_4;
    check(
        TileOp::Binary(b::ARCTAN2),
        &[
            (0.0, 0.0, 0.0),
            (-0.0, 0.0, -0.0),
            (0.0, -0.0, PI),
            (-0.0, -0.0, -PI),
            (0.0, 1.0, 0.0),
            (-0.0, -1.0, -PI),
            (1.0, 0.0, FRAC_PI_2),
            (-1.0, -0.0, -FRAC_PI_2),
            (INF, INF, FRAC_PI_4),
            (-INF, INF, -FRAC_PI_4),
            (INF, -INF, three),
            (-INF, -INF, -three),
            (1.0, INF, 0.0),
            (-1.0, INF, -0.0),
            (1.0, -INF, PI),
            (INF, 1.0, FRAC_PI_2),
            (-INF, -1.0, -FRAC_PI_2),
            (1.0e308, 1.0e308, FRAC_PI_4),
            (LEAST, LEAST, FRAC_PI_4),
            (LEAST, 1.0e308, 0.0),
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
        ],
    );
}

#[test]
fn powers_and_sums_at_special_values() {
    // Above 2^52: odd and even.
    let (odd, even) = (9_007_199_254_740_991.0, 9_007_199_254_740_992.0);
    check(
        TileOp::Binary(b::POWER),
        &[
            (NAN, 0.0, 1.0),
            (1.0, NAN, 1.0),
            (NAN, 1.0, NAN),
            (2.0, NAN, NAN),
            (0.0, -1.0, INF),
            (-0.0, -1.0, -INF),
            (-0.0, -2.0, INF),
            (-0.0, -0.5, INF),
            (0.0, 3.0, 0.0),
            (-0.0, 3.0, -0.0),
            (-0.0, 2.0, 0.0),
            (-0.0, INF, 0.0),
            (0.0, -INF, INF),
            (-1.0, INF, 1.0),
            (-1.0, -INF, 1.0),
            (0.5, INF, 0.0),
            (0.5, -INF, INF),
            (-2.0, INF, INF),
            (2.0, -INF, 0.0),
            (INF, 0.5, INF),
            (INF, -0.5, 0.0),
            (-INF, 3.0, -INF),
            (-INF, 2.0, INF),
            (-INF, -3.0, -0.0),
            (-INF, 0.5, INF),
            (-2.0, 0.5, NAN),
            (-2.0, 3.0, -8.0),
            (-2.0, -2.0, 0.25),
            (-1.0, odd, -1.0),
            (-1.0, even, 1.0),
            (-1.0, 1.0e300, 1.0),
            (2.0, 1023.0, 8.988_465_674_311_58e307),
            (2.0, 1024.0, INF),
            (2.0, -1074.0, LEAST),
            (2.0, -1076.0, 0.0),
            (3.0, 1.0e300, INF),
            (-3.0, -odd, -0.0),
            (LEAST, 1.0, LEAST),
            (10.0, 15.0, 1.0e15),
            (7.0, 1.0e-310, 1.0),
        ],
    );
    check(
        TileOp::Binary(b::LOGADDEXP),
        &[
            (-INF, -INF, -INF),
            (-INF, 3.0, 3.0),
            (3.0, -INF, 3.0),
            (INF, INF, INF),
            (INF, -INF, INF),
            (1.0, INF, INF),
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (NAN, -INF, NAN),
            (NAN, INF, NAN),
            (INF, NAN, NAN),
            (900.0, 0.0, 900.0),
        ],
    );
}

#[test]
fn zeros_keep_their_sign() {
    for code in ODD {
        unary(code, &[(0.0, 0.0), (-0.0, -0.0)]);
    }
}
