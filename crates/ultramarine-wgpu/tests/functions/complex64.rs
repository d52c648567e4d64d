//! complex64, against float64: errors are relative to the modulus.

use super::device::{Random, apply, device, distance};
use num_complex::{Complex32, Complex64};

fn unit(x: f64) -> f64 {
    let exponent = (x.abs().max(f32::MIN_POSITIVE.into()).to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent - 23)
}

fn operands() -> Vec<Complex32> {
    let mut random = Random(3);
    let mut z = Vec::new();
    let mut push = |re: f64, im: f64| z.push(Complex32::new(re as f32, im as f32));
    for _ in 0..20_000 {
        let mut sized = |size: f64| {
            let sign = if random.bits() & 1 == 0 { 1.0 } else { -1.0 };
            sign * 10f64.powf(random.between(-size, size))
        };
        push(sized(6.0), sized(6.0));
        push(sized(30.0), sized(30.0));
        push(random.between(-4.0, 4.0), random.between(-4.0, 4.0));
        push(random.between(-60.0, 60.0), random.between(-60.0, 60.0));
        // Near the unit circle and the branch points.
        let (angle, off) = (random.between(-3.2, 3.2), 10f64.powf(random.between(-6.0, -1.0)));
        push(angle.cos() * (1.0 + off), angle.sin());
        push(1.0 - off, off * random.between(-1.0, 1.0));
        push(off * random.between(-1.0, 1.0), off - 1.0);
    }
    z
}

type Reference = fn(Complex64) -> Complex64;

fn log1p(z: Complex64) -> Complex64 {
    let near = z.norm() < 0.1;
    let size = 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p();
    let sum = z + 1.0;
    Complex64::new(if near { size } else { sum.norm().ln() }, sum.arg())
}

fn arctanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re.abs(), z.im);
    let re = 0.25 * (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p();
    let im = 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y);
    Complex64::new(re.copysign(z.re), im)
}

/// W. Kahan's, which loses nothing near the branch points.
fn arcsin(z: Complex64) -> Complex64 {
    let (minus, plus) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    let re = z.re.atan2((minus * plus).re);
    Complex64::new(re, libm::asinh((minus.conj() * plus).im))
}

fn arccos(z: Complex64) -> Complex64 {
    let (minus, plus) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    Complex64::new(2.0 * minus.re.atan2(plus.re), libm::asinh((plus.conj() * minus).im))
}

fn arccosh(z: Complex64) -> Complex64 {
    let w = arccos(z);
    Complex64::new(w.im.abs(), w.re.copysign(z.im))
}

fn turned(f: Reference, z: Complex64) -> Complex64 {
    let w = f(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

fn tanh(z: Complex64) -> Complex64 {
    if z.re.abs() > 300.0 {
        return Complex64::new(1f64.copysign(z.re), 0.0);
    }
    let (s, c) = (z.re.sinh(), z.im.cos());
    Complex64::new(s * z.re.cosh(), z.im.sin() * c) / (s * s + c * c)
}

const UNARY: &[(&str, Reference, f64)] = &[
    ("sign", |z| z / z.norm(), 3.0),
    ("sqrt", |z| z.sqrt(), 2.0),
    ("rsqrt", |z| z.sqrt().inv(), 4.0),
    ("reciprocal", |z| z.inv(), 3.0),
    ("exp", |z| z.exp(), 2.0),
    ("log", |z| z.ln(), 4.0),
    ("log2", |z| z.ln() / std::f64::consts::LN_2, 5.0),
    ("log10", |z| z.ln() / std::f64::consts::LN_10, 6.0),
    ("log1p", log1p, 4.0),
    ("sin", |z| z.sin(), 3.0),
    ("cos", |z| z.cos(), 3.0),
    ("tan", |z| turned(tanh, z), 6.0),
    ("arcsin", arcsin, 4.0),
    ("arccos", arccos, 4.0),
    ("arctan", |z| turned(arctanh, z), 4.0),
    ("sinh", |z| z.sinh(), 3.0),
    ("cosh", |z| z.cosh(), 3.0),
    ("tanh", tanh, 6.0),
    ("arcsinh", |z| turned(arcsin, z), 4.0),
    ("arccosh", arccosh, 4.0),
    ("arctanh", arctanh, 4.0),
];

/// The larger part's error, in units of the last place of `at`.
fn error(got: Complex32, want: Complex64, at: f64) -> f64 {
    let part = |got: f32, want: f64| distance(got.into(), want, unit(at));
    part(got.re, want.re).max(part(got.im, want.im))
}

#[test]
fn functions_are_accurate() {
    let Some(device) = device() else { return };
    let z = operands();
    let mut wrong = Vec::new();
    for &(name, reference, bound) in UNARY {
        let got = apply(&device, name, &[&z]);
        for (&z, &got) in z.iter().zip(&got) {
            let want = reference(Complex64::new(z.re.into(), z.im.into()));
            let at = want.norm();
            if at < f64::from(f32::MAX) && error(got, want, at) > bound {
                let error = error(got, want, at);
                wrong.push(format!("{name} of {z}: {error:.2} ulp, {got}, not {want}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn binary_functions_are_accurate() {
    let Some(device) = device() else { return };
    let mut random = Random(4);
    let mut all = |size: f64| -> Vec<Complex32> {
        let mut part = || random.between(-size, size) as f32;
        (0..50_000).map(|_| Complex32::new(part(), part())).collect()
    };
    let (x, y) = (all(4.0), all(6.0));
    let wide = |z: Complex32| Complex64::new(z.re.into(), z.im.into());
    for (name, reference, bound) in [
        ("multiply", (|x, y| x * y) as fn(Complex64, Complex64) -> Complex64, 2.0),
        ("divide", |x, y| x / y, 4.0),
        ("power", |x, y| (y * x.ln()).exp(), 10.0),
    ] {
        let got = apply(&device, name, &[&x, &y]);
        for i in 0..x.len() {
            let want = reference(wide(x[i]), wide(y[i]));
            let at = if name == "multiply" {
                wide(x[i]).norm() * wide(y[i]).norm()
            } else {
                want.norm()
            };
            let error = error(got[i], want, at);
            assert!(error <= bound, "{name} of {}, {}: {error:.2} ulp, {}", x[i], y[i], got[i]);
        }
    }
}

#[test]
fn special_values() {
    let Some(device) = device() else { return };
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let c = Complex32::new;
    let check = |name: &str, cases: &[(Complex32, Complex32)]| {
        let z: Vec<Complex32> = cases.iter().map(|case| case.0).collect();
        let got = apply(&device, name, &[&z]);
        for (&(z, want), got) in cases.iter().zip(got) {
            let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(
                same(got.re, want.re) && same(got.im, want.im),
                "{name} of {z}: {got}, not {want}"
            );
        }
    };
    let (pi, half) = (std::f32::consts::PI, std::f32::consts::FRAC_PI_2);
    check(
        "exp",
        &[(c(0.0, -0.0), c(1.0, -0.0)), (c(-inf, inf), c(0.0, 0.0)), (c(nan, 0.0), c(nan, 0.0))],
    );
    check(
        "log",
        &[(c(0.0, 0.0), c(-inf, 0.0)), (c(-0.0, -0.0), c(-inf, -pi)), (c(inf, nan), c(inf, nan))],
    );
    check(
        "sqrt",
        &[
            (c(-0.0, -0.0), c(0.0, -0.0)),
            (c(-4.0, -0.0), c(0.0, -2.0)),
            (c(-inf, 1.0), c(0.0, inf)),
            (c(nan, inf), c(inf, inf)),
        ],
    );
    check(
        "reciprocal",
        &[(c(0.0, 0.0), c(inf, nan)), (c(inf, 1.0), c(0.0, 0.0)), (c(nan, 1.0), c(nan, nan))],
    );
    check(
        "arcsin",
        &[
            (c(2.0, 0.0), c(half, 1.316_958)),
            (c(2.0, -0.0), c(half, -1.316_958)),
            (c(inf, 0.0), c(half, inf)),
        ],
    );
    check(
        "arctanh",
        &[(c(0.0, -0.0), c(0.0, -0.0)), (c(1.0, 0.0), c(inf, 0.0)), (c(inf, -1.0), c(0.0, -half))],
    );
    check(
        "tanh",
        &[
            (c(inf, 1.0), c(1.0, 0.0)),
            (c(-500.0, 2.0), c(-1.0, -0.0)),
            (c(0.0, -0.0), c(0.0, -0.0)),
        ],
    );
    check("sin", &[(c(0.0, -0.0), c(0.0, -0.0)), (c(-0.0, 0.0), c(-0.0, 0.0))]);
}
