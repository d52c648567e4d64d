//! float64, against correctly rounded results: those that the CPU's kernels are tested with.

use super::device::{apply, device};
use std::collections::BTreeMap;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const LEAST: f64 = 5.0e-324;
const TABLE: &str = include_str!("../../../ultramarine-cpu/tests/units/elementwise/float64.table");

/// Units in the last place that functions may be off.
const BOUNDS: &[(&str, f64)] = &[
    ("exp", 0.8),
    ("expm1", 0.8),
    ("log", 0.7),
    ("log2", 0.8),
    ("log10", 0.7),
    ("log1p", 0.7),
    ("sin", 0.8),
    ("cos", 0.8),
    ("tan", 1.1),
    ("arcsin", 0.7),
    ("arccos", 0.7),
    ("arctan", 0.7),
    ("sinh", 0.7),
    ("cosh", 1.0),
    ("tanh", 0.7),
    ("arcsinh", 1.2),
    ("arccosh", 1.6),
    ("arctanh", 0.7),
    ("erf", 1.5),
    ("erfinv", 3.0),
    ("sigmoid", 2.0),
    ("power", 1.0),
    ("arctan2", 1.5),
    ("logaddexp", 1.2),
];

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
    for line in TABLE.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let bits = |i: usize| f64::from_bits(u64::from_str_radix(words[i], 16).unwrap());
        let column = table.entry(words[0]).or_default();
        column.x.push(bits(1));
        if words.len() == 5 {
            column.y.push(bits(2));
        }
        column.want.push(bits(words.len() - 2));
        column.beyond.push(words[words.len() - 1].parse().unwrap());
    }
    table
}

/// The unit in the last place of `x`.
fn unit(x: f64) -> f64 {
    f64::from_bits((x.abs().to_bits() >> 52).max(1) << 52) * f64::EPSILON
}

fn of(name: &str, x: &[f64], y: &[f64]) -> Option<Vec<f64>> {
    let device = device()?;
    Some(if y.is_empty() { apply(&device, name, &[x]) } else { apply(&device, name, &[x, y]) })
}

#[test]
fn functions_are_accurate() {
    let table = table();
    let mut wrong = Vec::new();
    for &(name, bound) in BOUNDS {
        let column = &table[name];
        let Some(got) = of(name, &column.x, &column.y) else { return };
        for (i, &got) in got.iter().enumerate() {
            let want = column.want[i];
            let error = ((got - want) / unit(want) - column.beyond[i] / 1000.0).abs();
            if error.is_nan() || error > bound {
                wrong.push(format!("{name}: {error:.2} ulp at {:e}: {got:e}", column.x[i]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(name: &str, x: &[f64], y: &[f64], want: &[f64]) {
    let Some(got) = of(name, x, y) else { return };
    for i in 0..x.len() {
        let same = got[i].to_bits() == want[i].to_bits() || got[i].is_nan() && want[i].is_nan();
        assert!(same, "{name} of {:e}, number {i}: {:e}, not {:e}", x[i], got[i], want[i]);
    }
}

#[test]
fn huge_angles_are_reduced() {
    // The nearest to a multiple of pi/2 of all, 1e22, and the largest.
    let near = 6_381_956_970_095_103.0 * 2f64.powi(797);
    check(
        "cos",
        &[near, 1.0e22, f64::MAX],
        &[],
        &[-4.687_165_924_254_628e-19, 0.523_214_785_395_139, -0.999_987_689_426_559_9],
    );
    check(
        "sin",
        &[near, 1.0e22, f64::MAX],
        &[],
        &[1.0, -0.852_200_849_767_188_8, 0.004_961_954_789_184_062],
    );
}

#[test]
fn special_values() {
    for name in
        ["expm1", "log1p", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh"]
    {
        let x = [0.0, -0.0, LEAST, -3.0 * LEAST];
        check(name, &x, &[], &x);
    }
    for name in ["erf", "erfinv", "sqrt"] {
        check(name, &[0.0, -0.0], &[], &[0.0, -0.0]);
    }
    let x = [0.0, -0.0, INF, -INF, NAN];
    check("exp", &x, &[], &[1.0, 1.0, INF, 0.0, NAN]);
    check("expm1", &x[2..], &[], &[INF, -1.0, NAN]);
    check("log", &x, &[], &[-INF, -INF, INF, NAN, NAN]);
    check("log1p", &[-1.0, -1.5, INF, -INF, NAN], &[], &[-INF, NAN, INF, NAN, NAN]);
    check("sin", &x[2..], &[], &[NAN, NAN, NAN]);
    check("tanh", &x[2..], &[], &[1.0, -1.0, NAN]);
    check("sinh", &x[2..], &[], &[INF, -INF, NAN]);
    check("cosh", &x[2..], &[], &[INF, INF, NAN]);
    check("arcsinh", &x[2..], &[], &[INF, -INF, NAN]);
    check("arccosh", &[1.0, 0.5, INF, NAN], &[], &[0.0, NAN, INF, NAN]);
    check("arctanh", &[1.0, -1.0, 1.5, NAN], &[], &[INF, -INF, NAN, NAN]);
    check("erf", &x[2..], &[], &[1.0, -1.0, NAN]);
    check("erfinv", &[1.0, -1.0, 1.5, NAN], &[], &[INF, -INF, NAN, NAN]);
    check("sigmoid", &x, &[], &[0.5, 0.5, 1.0, 0.0, NAN]);
    check(
        "power",
        &[NAN, 1.0, NAN, -0.0, -0.0, -0.0, -0.0, -1.0, -INF, -INF, -2.0, -2.0, 2.0, 2.0, -1.0, 3.0],
        &[
            0.0,
            NAN,
            1.0,
            -1.0,
            0.5,
            3.0,
            INF,
            -INF,
            3.0,
            0.5,
            0.5,
            3.0,
            1024.0,
            -1074.0,
            9_007_199_254_740_991.0,
            1.0e300,
        ],
        &[1.0, 1.0, NAN, -INF, 0.0, -0.0, 0.0, 1.0, -INF, INF, NAN, -8.0, INF, LEAST, -1.0, INF],
    );
    check(
        "logaddexp",
        &[-INF, -INF, INF, INF, NAN, INF],
        &[-INF, 3.0, INF, -INF, -INF, NAN],
        &[-INF, 3.0, INF, INF, NAN, NAN],
    );
}
