//! float32, against float64.

use super::device::{Random, apply, device, distance};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// The unit in the last place of float32 at `x`.
fn unit(x: f64) -> f64 {
    let exponent = (x.abs().max(f32::MIN_POSITIVE.into()).to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent - 23)
}

/// Infinity counts as the next number after the largest.
fn error(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    let wide = |x: f32| if x.is_infinite() { 2f64.powi(128).copysign(x.into()) } else { x.into() };
    if got == rounded {
        return 0.0;
    }
    if got.is_nan() || want.is_nan() {
        return distance(got.into(), want, 1.0);
    }
    let want = if rounded.is_infinite() { wide(rounded) } else { want };
    (wide(got) - want).abs() / unit(want)
}

fn operands() -> Vec<f32> {
    let mut random = Random(1);
    // Every 16384th bit pattern: all exponents, both signs, NaNs and subnormal numbers.
    let mut x: Vec<f32> =
        (0..1 << 18).map(|i: u32| f32::from_bits((i << 14) | ((i * 77) & 0x3fff))).collect();
    for (low, high) in [(-1.0, 1.0), (0.0, 2.0), (-0.02, 0.02), (-10.0, 10.0), (-110.0, 110.0)] {
        x.extend((0..50_000).map(|_| random.between(low, high) as f32));
    }
    for special in [0.0, 1.0, 0.5, 2.0, 0.785, 88.7, 89.4, 103.9, 1.0e-38, 3.0e38, 1.0e6, INF] {
        let bits = f32::to_bits(special);
        for near in bits.saturating_sub(40)..=bits + 40 {
            x.extend([f32::from_bits(near), -f32::from_bits(near)]);
        }
    }
    x
}

type Reference = fn(f64) -> f64;

/// The inverse error function by Newton's steps from float32's.
fn erfinv_error(got: f32, x: f32) -> f64 {
    if x.abs() >= 1.0 || x.is_nan() || got.is_nan() || x == 0.0 {
        let want = if x.abs() == 1.0 { f64::INFINITY.copysign(x.into()) } else { f64::NAN };
        return distance(got.into(), if x == 0.0 { 0.0 } else { want }, 1.0);
    }
    let (y, a) = (f64::from(got.abs()), f64::from(x.abs()));
    let rest = if a < 0.5 { libm::erf(y) - a } else { (1.0 - a) - libm::erfc(y) };
    rest.abs() * std::f64::consts::PI.sqrt() / 2.0 * (y * y).exp() / unit(y)
}

/// Units in the last place that functions may be off.
const UNARY: &[(&str, Reference, f64)] = &[
    ("sqrt", f64::sqrt, 3.0),
    ("rsqrt", |x| 1.0 / x.sqrt(), 4.0),
    ("exp", f64::exp, 1.1),
    ("expm1", f64::exp_m1, 1.7),
    ("log", f64::ln, 1.0),
    ("log2", f64::log2, 1.8),
    ("log10", f64::log10, 2.0),
    ("log1p", f64::ln_1p, 1.5),
    ("sin", f64::sin, 0.8),
    ("cos", f64::cos, 0.9),
    ("tan", f64::tan, 1.0),
    ("arcsin", f64::asin, 1.4),
    ("arccos", f64::acos, 1.2),
    ("arctan", f64::atan, 0.8),
    ("sinh", f64::sinh, 1.6),
    ("cosh", f64::cosh, 1.6),
    ("tanh", f64::tanh, 2.5),
    ("arcsinh", libm::asinh, 1.9),
    ("arccosh", |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 2.0),
    ("arctanh", libm::atanh, 1.9),
    ("erf", libm::erf, 1.3),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), 2.4),
];

#[test]
fn functions_are_accurate() {
    let Some(device) = device() else { return };
    let x = operands();
    let mut wrong = Vec::new();
    let mut check = |name: &str, bound: f64, got: &[f32], error: &dyn Fn(usize) -> f64| {
        let worst = (0..x.len()).max_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap();
        if error(worst) > bound {
            let (x, got) = (x[worst], got[worst]);
            wrong.push(format!("{name}: {:.2} ulp at {x:e}: {got:e}", error(worst)));
        }
    };
    for &(name, reference, bound) in UNARY {
        let got = apply(&device, name, &[&x]);
        check(name, bound, &got, &|i| error(got[i], reference(x[i].into())));
    }
    let got = apply(&device, "erfinv", &[&x]);
    check("erfinv", 3.5, &got, &|i| erfinv_error(got[i], x[i]));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pairs of all kinds for binary functions.
fn pairs() -> (Vec<f32>, Vec<f32>) {
    let mut random = Random(2);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..100_000 {
        x.push(f32::from_bits(random.bits() as u32));
        y.push(f32::from_bits(random.bits() as u32));
        x.push(random.between(-10.0, 10.0) as f32);
        y.push(random.between(-10.0, 10.0) as f32);
        x.push(random.between(0.999, 1.001) as f32);
        y.push(random.between(-9.0e4, 9.0e4) as f32);
        let (whole, part) =
            (random.between(-50.0, 50.0).round() as f32, 0.37 * random.between(1.0, 50.0) as f32);
        x.push(whole * part);
        y.push(part);
    }
    (x, y)
}

#[test]
fn binary_functions_are_accurate() {
    let Some(device) = device() else { return };
    let (x, y) = pairs();
    for (name, reference, bound) in [
        ("power", f64::powf as fn(f64, f64) -> f64, 2.3),
        ("arctan2", f64::atan2, 0.8),
        ("floor_divide", |x, y| ((x / y) as f32).floor().into(), 0.0),
    ] {
        let got = apply(&device, name, &[&x, &y]);
        for i in 0..x.len() {
            let error = error(got[i], reference(x[i].into(), y[i].into()));
            assert!(
                error <= bound,
                "{name} of {:e}, {:e}: {error:.2} ulp, {:e}",
                x[i],
                y[i],
                got[i]
            );
        }
    }
    let got = apply(&device, "logaddexp", &[&x, &y]);
    for i in 0..x.len() {
        let (a, b) = (f64::from(x[i].max(y[i])), f64::from(x[i].min(y[i])));
        let nan = x[i].is_nan() || y[i].is_nan();
        let want = if nan { f64::NAN } else { a + (b - a).exp().ln_1p() };
        // Where they cancel, the error is the operands'.
        let error =
            distance(got[i].into(), want, unit(want.abs().max(a.abs()).max(b.abs()).max(1.0)));
        assert!(error <= 1.1, "logaddexp of {a:e}, {b:e}: {error:.2} ulp, {:e}", got[i]);
    }
}

#[test]
fn special_values() {
    let Some(device) = device() else { return };
    let check = |name: &str, x: &[f32], y: &[f32], want: &[f32]| {
        let got = match y.is_empty() {
            true => apply(&device, name, &[x]),
            false => apply(&device, name, &[x, y]),
        };
        for i in 0..x.len() {
            let same = got[i].to_bits() == want[i].to_bits() || got[i].is_nan() && want[i].is_nan();
            assert!(same, "{name} of {:e}, number {i}: {:e}, not {:e}", x[i], got[i], want[i]);
        }
    };
    for name in [
        "expm1", "log1p", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh",
        "erf", "erfinv", "sqrt",
    ] {
        check(name, &[0.0, -0.0], &[], &[0.0, -0.0]);
    }
    let least = f32::from_bits(1);
    for name in
        ["expm1", "log1p", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh"]
    {
        check(name, &[least, -3.0 * least], &[], &[least, -3.0 * least]);
    }
    check("sin", &[INF, -INF, NAN], &[], &[NAN, NAN, NAN]);
    check("cos", &[INF, -0.0, NAN], &[], &[NAN, 1.0, NAN]);
    check("tan", &[INF, -INF, NAN], &[], &[NAN, NAN, NAN]);
    check("arccosh", &[1.0, 0.5, INF, -INF], &[], &[0.0, NAN, INF, NAN]);
    check(
        "power",
        &[
            NAN, 1.0, NAN, 0.0, -0.0, -0.0, -0.0, 0.0, -0.0, -0.0, -1.0, 0.5, -2.0, INF, -INF,
            -INF, -2.0, -2.0, 2.0, 2.0, -1.0, -1.0,
        ],
        &[
            0.0,
            NAN,
            1.0,
            -1.0,
            -1.0,
            -2.0,
            -0.5,
            3.0,
            3.0,
            INF,
            INF,
            -INF,
            INF,
            -0.5,
            3.0,
            -3.0,
            0.5,
            3.0,
            128.0,
            -149.0,
            16_777_215.0,
            16_777_216.0,
        ],
        &[
            1.0, 1.0, NAN, INF, -INF, INF, INF, 0.0, -0.0, 0.0, 1.0, INF, INF, 0.0, -INF, -0.0,
            NAN, -8.0, INF, least, -1.0, 1.0,
        ],
    );
    let (pi, half) = (std::f32::consts::PI, std::f32::consts::FRAC_PI_2);
    check(
        "arctan2",
        &[0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 1.0, INF, -INF, INF, 1.0, -1.0, 1.0, least, NAN, 1.0],
        &[0.0, 0.0, -0.0, -0.0, 1.0, -1.0, 0.0, INF, INF, -INF, INF, INF, -INF, least, 1.0, NAN],
        &[
            0.0,
            -0.0,
            pi,
            -pi,
            0.0,
            -pi,
            half,
            half / 2.0,
            -half / 2.0,
            1.5 * half,
            0.0,
            -0.0,
            pi,
            half / 2.0,
            NAN,
            NAN,
        ],
    );
    check(
        "logaddexp",
        &[-INF, -INF, INF, INF, NAN, NAN, 900.0, -INF],
        &[-INF, 3.0, INF, -INF, 1.0, -INF, 0.0, NAN],
        &[-INF, 3.0, INF, INF, NAN, NAN, 900.0, NAN],
    );
}
