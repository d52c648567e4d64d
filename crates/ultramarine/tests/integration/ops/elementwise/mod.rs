//! Elementwise functions: dtypes, errors, values, rules for complex numbers.

mod operators;
mod xlogy;

use crate::support::arrays::assert_near_complex;
use Dtype::*;
use ultramarine::transforms::{jvp, vjp, vmap};
use ultramarine::{Array, Complex32, Dtype, Error, Result, Scalar, where_};
use ultramarine_test_support::Tolerance;

type Unary = fn(&Array) -> Result<Array>;
type Binary = fn(&Array, &Array) -> Result<Array>;

const TYPES: [Dtype; 9] = [Bool, Uint8, Int8, Int32, Uint64, Float16, Bfloat16, Float32, Complex64];

/// What a function does with the nine types.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Inexact,
    Real,
    Keep,
    KeepReal,
    ToReal,
    Predicate,
}

macro_rules! table {
    ($($name:ident $rule:ident $reference:expr;)*) => {
        /// Name, function, dtype rule and a float64 reference.
        const UNARY: &[(&str, Unary, Rule, fn(f64) -> f64)] =
            &[$((stringify!($name), Array::$name, Rule::$rule, $reference)),*];
    };
}

table! {
    abs ToReal f64::abs;
    sign Keep |x| if x == 0.0 { 0.0 } else { x.signum() };
    square Keep |x| x * x;
    sqrt Inexact f64::sqrt;
    rsqrt Inexact |x| 1.0 / x.sqrt();
    reciprocal Inexact |x| 1.0 / x;
    exp Inexact f64::exp;
    expm1 Real f64::exp_m1;
    log Inexact f64::ln;
    log2 Inexact f64::log2;
    log10 Inexact f64::log10;
    log1p Inexact f64::ln_1p;
    sin Inexact f64::sin;
    cos Inexact f64::cos;
    tan Inexact f64::tan;
    arcsin Inexact f64::asin;
    arccos Inexact f64::acos;
    arctan Inexact f64::atan;
    sinh Inexact f64::sinh;
    cosh Inexact f64::cosh;
    tanh Inexact f64::tanh;
    arcsinh Inexact f64::asinh;
    arccosh Inexact f64::acosh;
    arctanh Inexact f64::atanh;
    sigmoid Real |x| 1.0 / (1.0 + (-x).exp());
    floor KeepReal f64::floor;
    ceil KeepReal f64::ceil;
    trunc KeepReal f64::trunc;
    degrees Inexact f64::to_degrees;
    radians Inexact f64::to_radians;
    conjugate Keep |x| x;
    real ToReal |x| x;
    imag ToReal |_| 0.0;
    isnan Predicate |x| x.is_nan() as u8 as f64;
    isinf Predicate |x| x.is_infinite() as u8 as f64;
    isfinite Predicate |x| x.is_finite() as u8 as f64;
    isposinf Predicate |x| (x == f64::INFINITY) as u8 as f64;
    isneginf Predicate |x| (x == f64::NEG_INFINITY) as u8 as f64;
    logical_not Predicate |x| (x == 0.0) as u8 as f64;
}

#[test]
fn unary_types() -> Result<()> {
    for (name, f, rule, _) in UNARY {
        for dtype in TYPES {
            let got = f(&Array::ones(&[2], dtype)?).map(|y| y.dtype());
            let complex = dtype == Complex64;
            let expected = match rule {
                Rule::Real | Rule::KeepReal if complex => None,
                Rule::Inexact | Rule::Real => Some(dtype.to_inexact()),
                Rule::Keep | Rule::KeepReal => Some(dtype),
                Rule::ToReal => Some(if complex { Float32 } else { dtype }),
                Rule::Predicate => Some(Bool),
            };
            match expected {
                Some(expected) => assert_eq!(got?, expected, "{name} of {dtype}"),
                None => assert!(matches!(got, Err(Error::Value(_))), "{name} of {dtype}"),
            }
        }
    }
    let ones = |d| Array::ones(&[2], d);
    assert!(matches!(ones(Bool)?.negative(), Err(Error::Value(_))));
    assert_eq!(ones(Uint8)?.negative()?.to_vec::<u8>()?, [255, 255]);
    assert!(matches!(ones(Float16)?.bitwise_invert(), Err(Error::Value(_))));
    assert_eq!(ones(Bool)?.bitwise_invert()?.dtype(), Bool);
    assert!(matches!(ones(Complex64)?.erf(), Err(Error::Value(_))));
    assert!(matches!(ones(Complex64)?.erfinv(), Err(Error::Value(_))));
    assert!(matches!(ones(Complex64)?.nan_to_num(0.0, None, None), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn unary_values() -> Result<()> {
    let data = [
        -2.5f32,
        -1.0,
        -0.75,
        -0.0,
        0.0,
        0.3,
        0.5,
        1.0,
        1.5,
        7.25,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let x = Array::from_slice(&data, &[13])?;
    // The same behind other strides.
    let strided = Array::from_slice(&data.map(|v| [v, 9.0]).concat(), &[13, 2])?;
    let strided = strided.slice(&[12, 0], &[isize::MIN, 1], &[-1, 1])?.squeeze(1)?;
    for (name, f, _, reference) in UNARY {
        let got = f(&x)?.astype(Float32).to_vec::<f32>()?;
        for (v, y) in data.iter().zip(&got) {
            let exact = reference(*v as f64);
            let ok = (exact.is_nan() && y.is_nan())
                || exact as f32 == *y
                || (*y as f64 - exact).abs() <= 4e-7 * exact.abs();
            let unsure = *name == "sign" && v.is_nan();
            assert!(ok || unsure, "{name}({v}) = {y}, not {exact}");
        }
        let mut reversed = f(&strided)?.astype(Float32).to_vec::<f32>()?;
        reversed.reverse();
        let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&reversed), bits(&got), "{name} with strides");
    }
    let erf = Array::from_slice(&[0.5f32, -1.0], &[2])?.erf()?;
    assert!((erf.to_vec::<f32>()?[0] - 0.520_499_9).abs() < 1e-6);
    assert!((erf.erfinv()?.to_vec::<f32>()?[1] + 1.0).abs() < 1e-5);
    Ok(())
}

#[test]
fn rounding() -> Result<()> {
    let x = Array::from_slice(&[2.5f32, 3.5, -2.5, 1234.567], &[4])?;
    assert_eq!(x.round(0)?.to_vec::<f32>()?, [2.0, 4.0, -2.0, 1235.0]);
    assert_eq!(x.round(2)?.to_vec::<f32>()?[3], 1234.57);
    assert_eq!(x.round(-1)?.to_vec::<f32>()?, [0.0, 0.0, -0.0, 1230.0]);
    let i = Array::from_slice(&[25i32, 35, -15, 14], &[4])?;
    assert_eq!(i.round(-1)?.to_vec::<i32>()?, [20, 40, -20, 10]);
    assert_eq!(i.round(1)?.to_vec::<i32>()?, [25, 35, -15, 14]);
    let bad = Array::from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0], &[4])?;
    assert_eq!(bad.nan_to_num(0.0, None, None)?.to_vec::<f32>()?, [0.0, f32::MAX, f32::MIN, 1.0]);
    let half = bad.astype(Float16).nan_to_num(7.0, Some(8.0), None)?.astype(Float32);
    assert_eq!(half.to_vec::<f32>()?, [7.0, 8.0, -65504.0, 1.0]);
    Ok(())
}

macro_rules! binary {
    ($($name:ident [$($dtype:tt)*];)*) => {
        const BINARY: &[(&str, Binary, [Option<Dtype>; 7])] =
            &[$((stringify!($name), |a, b| a.$name(b), [$(binary!(@ $dtype)),*])),*];
    };
    (@ -) => { None };
    (@ $dtype:ident) => { Some($dtype) };
}

const PAIRS: [(Dtype, Dtype); 7] = [
    (Bool, Bool),
    (Int32, Int32),
    (Uint8, Int8),
    (Int32, Uint64),
    (Bool, Float16),
    (Float32, Float32),
    (Complex64, Float32),
];

binary! {
    add [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    subtract [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    multiply [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    divide [Float32 Float32 Float32 Float32 Float16 Float32 Complex64];
    floor_divide [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    remainder [Bool Int32 Int16 Float32 Float16 Float32 -];
    power [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    maximum [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    minimum [Bool Int32 Int16 Float32 Float16 Float32 Complex64];
    logaddexp [Float32 Float32 Float32 Float32 Float16 Float32 Complex64];
    arctan2 [Float32 Float32 Float32 Float32 Float16 Float32 -];
    equal [Bool Bool Bool Bool Bool Bool Bool];
    not_equal [Bool Bool Bool Bool Bool Bool Bool];
    less [Bool Bool Bool Bool Bool Bool Bool];
    greater_equal [Bool Bool Bool Bool Bool Bool Bool];
    logical_and [Bool Bool Bool Bool Bool Bool Bool];
    logical_xor [Bool Bool Bool Bool Bool Bool Bool];
    bitwise_and [Bool Int32 Int16 - - - -];
    bitwise_xor [Bool Int32 Int16 - - - -];
    left_shift [Uint8 Int32 Int16 - - - -];
    right_shift [Uint8 Int32 Int16 - - - -];
}

#[test]
fn binary_types() -> Result<()> {
    for (name, f, expected) in BINARY {
        for ((a, b), expected) in PAIRS.iter().zip(expected) {
            let got = f(&Array::ones(&[2, 1], *a)?, &Array::ones(&[3], *b)?);
            match expected {
                Some(expected) => {
                    let got = got?;
                    assert_eq!((got.dtype(), got.shape()), (*expected, &[2usize, 3][..]), "{name}");
                }
                None => {
                    let bits = name.contains("bitwise") || name.contains("shift");
                    let kind = match got {
                        Err(Error::Runtime(_)) => bits,
                        Err(Error::Value(_)) => !bits,
                        _ => false,
                    };
                    assert!(kind, "{name} of {a}, {b}");
                }
            }
        }
        let odd = f(&Array::ones(&[2, 3], Int32)?, &Array::ones(&[4], Int32)?);
        assert!(matches!(odd, Err(Error::Value(_))), "{name}");
    }
    Ok(())
}

#[test]
fn binary_values() -> Result<()> {
    let i = |v: &[i32]| Array::from_slice(v, &[v.len()]);
    let (a, b) = (i(&[-7, 7, -7, 7, 5, -5])?, i(&[2, -2, -2, 3, 0, 0])?);
    assert_eq!(a.floor_divide(&b)?.to_vec::<i32>()?, [-4, -4, 3, 2, 0, 0]);
    let (quotient, rest) = a.slice(&[0], &[4], &[1])?.divmod(&b.slice(&[0], &[4], &[1])?)?;
    assert_eq!(quotient.to_vec::<i32>()?, [-4, -4, 3, 2]);
    assert_eq!(rest.to_vec::<i32>()?, [1, -1, -1, 1]);
    assert_eq!(a.remainder(&b)?.to_vec::<i32>()?, [1, -1, -1, 1, 5, -5]);
    let powers = i(&[2, -2, 1, -1, 0, 3])?.power(&i(&[-1, -2, -3, -3, -1, 3])?)?;
    assert_eq!(powers.to_vec::<i32>()?[5], 27);
    let x = Array::from_slice(&[1.5f32, -2.0, 3.0], &[3])?;
    let two = x.scalar_like(2)?;
    assert_eq!(x.power(&two)?.to_vec::<f32>()?, [2.25, 4.0, 9.0]);
    assert_eq!(x.power(&x.scalar_like(3)?)?.to_vec::<f32>()?, [3.375, -8.0, 27.0]);
    // The constant's shape counts.
    assert_eq!(x.power(&two.broadcast_to(&[2, 1])?)?.shape(), [2, 3]);
    assert_eq!(i(&[1])?.left_shift(&i(&[4])?)?.to_vec::<i32>()?, [16]);
    assert_eq!(i(&[-8])?.right_shift(&i(&[40])?)?.to_vec::<i32>()?, [-1]);
    let xor = i(&[1, 0, 2])?.logical_xor(&i(&[0, 0, 3])?)?;
    assert_eq!(xor.to_vec::<bool>()?, [true, false, false]);
    Ok(())
}

#[test]
fn closeness() -> Result<()> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let a = Array::from_slice(&[1.0, inf, nan, inf, 1e-9, 1.0], &[6])?;
    let b = Array::from_slice(&[1.000001, inf, nan, -inf, 0.0, inf], &[6])?;
    let close = a.isclose(&b, 1e-5, 1e-8, false)?;
    assert_eq!(close.to_vec::<bool>()?, [true, true, false, false, true, false]);
    let close = a.isclose(&b, 1e-5, 1e-8, true)?;
    assert_eq!(close.to_vec::<bool>()?, [true, true, true, false, true, false]);
    assert!(!a.allclose(&b, 1e-5, 1e-8, true)?.item::<bool>()?);
    assert!(a.allclose(&a, 1e-5, 1e-8, true)?.item::<bool>()?);
    assert!(!a.array_equal(&a, false)?.item::<bool>()?);
    assert!(a.array_equal(&a, true)?.item::<bool>()?);
    let one = Array::from_slice(&[1i32], &[1])?;
    assert!(one.array_equal(&Array::ones(&[1], Float32)?, false)?.item::<bool>()?);
    assert!(!one.array_equal(&Array::ones(&[1, 1], Int32)?, false)?.item::<bool>()?);
    let empty = Array::zeros(&[0, 3], Float32)?;
    assert!(empty.array_equal(&empty, false)?.item::<bool>()?);
    Ok(())
}

#[test]
fn numbers_adopt_the_dtype() -> Result<()> {
    let ones = |d| Array::ones(&[1], d);
    assert_eq!((&ones(Uint8)? + 255)?.to_vec::<u8>()?, [0]);
    for (dtype, v) in [(Uint8, 300i64), (Uint8, -1), (Int8, 128), (Uint32, -1), (Int32, 1 << 31)] {
        assert!(matches!(&ones(dtype)? + v, Err(Error::Value(_))), "{dtype} {v}");
    }
    assert_eq!((&ones(Uint64)? + -1)?.to_vec::<u64>()?, [0]);
    assert_eq!((&ones(Bool)? + 1)?.to_vec::<i32>()?, [2]);
    assert_eq!((&ones(Bool)? * 1.5)?.to_vec::<f32>()?, [1.5]);
    assert_eq!((&ones(Float16)? + 1e9)?.dtype(), Float16);
    assert_eq!((1i64 - &ones(Float32)?)?.to_vec::<f32>()?, [0.0]);
    assert_eq!((7i64 % &(&ones(Int32)? * 4)?)?.to_vec::<i32>()?, [3]);
    assert_eq!((-&ones(Float32)?)?.to_vec::<f32>()?, [-1.0]);
    assert_eq!((!&ones(Bool)?)?.to_vec::<bool>()?, [false]);
    assert_eq!((&ones(Int32)? | 6)?.to_vec::<i32>()?, [7]);
    assert_eq!(ones(Int32)?.scalar_like(Complex32::new(0.0, 1.0))?.dtype(), Complex64);
    assert_eq!(ones(Int32)?.scalar_like(true)?.dtype(), Bool);
    Ok(())
}

fn c(re: f32, im: f32) -> Complex32 {
    Complex32::new(re, im)
}

fn near(name: &str, got: &Array, expected: Complex32) -> Result<()> {
    let expected = [(f64::from(expected.re), f64::from(expected.im))];
    assert_near_complex(name, got, &expected, Tolerance::mixed(2e-5));
    Ok(())
}

/// Products with 1+2i at 3+4i, by MLX's convention: the cotangent times the conjugate
/// of the derivative (for functions of real value: of the gradient).
#[test]
fn complex_derivatives() -> Result<()> {
    let z = Array::from_slice(&[c(3.0, 4.0)], &[1])?;
    let one_two = Array::from_slice(&[c(1.0, 2.0)], &[1])?;
    let table: [(&str, Unary, Complex32, Complex32); 19] = [
        ("abs", Array::abs, c(0.6, 0.8), c(2.2, 0.0)),
        ("negative", Array::negative, c(-1.0, -2.0), c(-1.0, -2.0)),
        ("sign", Array::sign, c(0.0, 0.0), c(0.0, 0.0)),
        ("square", Array::square, c(22.0, 4.0), c(-10.0, 20.0)),
        ("sqrt", Array::sqrt, c(0.0, 0.5), c(0.4, 0.3)),
        ("rsqrt", Array::rsqrt, c(0.08, -0.06), c(-0.096, 0.028)),
        ("reciprocal", Array::reciprocal, c(0.088, -0.016), c(-0.0656, 0.0608)),
        ("exp", Array::exp, c(-43.530_35, -11.056_782), c(17.272_785, -41.458_35)),
        ("log", Array::log, c(-0.2, 0.4), c(0.44, 0.08)),
        ("log10", Array::log10, c(-0.086_858_89, 0.173_717_78), c(0.191_089_56, 0.034_743_555)),
        ("sin", Array::sin, c(-34.737_25, -50.218_735), c(-19.332_638, -57.921_043)),
        ("arcsin", Array::arcsin, c(0.393_790_78, 0.206_327_84), c(-0.071_212_19, 0.438_829_3)),
        ("arctan", Array::arctan, c(-0.088_235_3, 0.019_607_844), c(0.068_627_454, -0.058_823_53)),
        ("tanh", Array::tanh, c(-0.021_042_477, 0.007_032_514), c(0.018_251_479, -0.012_614_449)),
        ("arccosh", Array::arccosh, c(-0.206_327_81, 0.393_790_75), c(0.438_829_3, 0.071_212_2)),
        ("arctanh", Array::arctanh, c(0.0875, -0.0125), c(-0.0625, 0.0625)),
        ("conjugate", Array::conjugate, c(1.0, -2.0), c(1.0, -2.0)),
        ("real", Array::real, c(1.0, 0.0), c(1.0, 0.0)),
        ("imag", Array::imag, c(0.0, 1.0), c(2.0, 0.0)),
    ];
    for (name, f, reverse, forward) in table {
        let primals = [z.clone()];
        let real = f(&z)?.dtype() == Float32;
        let cotangent = if real { Array::ones(&[1], Float32)? } else { one_two.clone() };
        let (_, got) = vjp(|p| Ok(vec![f(&p[0])?]), &primals, &[cotangent])?;
        near(name, &got[0], reverse)?;
        let (_, got) = jvp(|p| Ok(vec![f(&p[0])?]), &primals, std::slice::from_ref(&one_two))?;
        near(name, &got[0], forward)?;
    }
    let w = Array::from_slice(&[c(1.0, -2.0)], &[1])?;
    let table: [(&str, Binary, [Complex32; 2], Complex32); 5] = [
        ("subtract", |a, b| a.subtract(b), [c(1.0, 2.0), c(-1.0, -2.0)], c(0.0, 0.0)),
        ("multiply", |a, b| a.multiply(b), [c(-3.0, 4.0), c(11.0, 2.0)], c(0.0, 10.0)),
        ("divide", |a, b| a.divide(b), [c(1.0, 0.0), c(1.0, 2.0)], c(0.4, 2.8)),
        // MLX forgets the conjugate of power.
        (
            "power",
            |a, b| a.power(b),
            [c(21.08314, -24.00021), c(-128.031, 34.823_7)],
            c(72.827_515, -79.064_224),
        ),
        ("maximum", |a, b| a.maximum(b), [c(1.0, 2.0), c(0.0, 0.0)], c(1.0, 2.0)),
    ];
    for (name, f, reverse, forward) in table {
        let primals = [z.clone(), w.clone()];
        let run = |p: &[Array]| Ok(vec![f(&p[0], &p[1])?]);
        let (_, got) = vjp(run, &primals, std::slice::from_ref(&one_two))?;
        near(name, &got[0], reverse[0])?;
        near(name, &got[1], reverse[1])?;
        let (_, got) = jvp(run, &primals, &[one_two.clone(), one_two.clone()])?;
        near(name, &got[0], forward)?;
    }
    Ok(())
}

/// Products at points where two branches meet, as MLX has them.
#[test]
fn derivatives_at_ties() -> Result<()> {
    let a = Array::from_slice(&[1.0f32, 2.0, 5.0], &[3])?;
    let b = Array::from_slice(&[1.0f32, 3.0, 2.0], &[3])?;
    let ones = Array::ones(&[3], Float32)?;
    let table: [(&str, Binary, [[f32; 3]; 2]); 4] = [
        ("maximum", |a, b| a.maximum(b), [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]),
        ("minimum", |a, b| a.minimum(b), [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
        ("remainder", |a, b| a.remainder(b), [[1.0; 3], [-1.0, 0.0, -2.0]]),
        ("floor_divide", |a, b| a.floor_divide(b), [[0.0; 3], [0.0; 3]]),
    ];
    for (name, f, expected) in table {
        let run = |p: &[Array]| Ok(vec![f(&p[0], &p[1])?]);
        let (_, got) = vjp(run, &[a.clone(), b.clone()], std::slice::from_ref(&ones))?;
        assert_eq!(got[0].to_vec::<f32>()?, expected[0], "{name}");
        assert_eq!(got[1].to_vec::<f32>()?, expected[1], "{name}");
    }
    // 0 ** b is flat in b; a square has no 0 * infinity.
    let base = Array::from_slice(&[0.0f32, 2.0], &[2])?;
    let twos = Array::from_slice(&[2.0f32, 2.0], &[2])?;
    let run = |p: &[Array]| Ok(vec![p[0].power(&p[1])?]);
    let one = Array::ones(&[2], Float32)?;
    let (_, got) = vjp(run, &[base, twos], &[one])?;
    assert_eq!(got[0].to_vec::<f32>()?, [0.0, 4.0]);
    let by_exponent = got[1].to_vec::<f32>()?;
    assert!(by_exponent[0] == 0.0 && (by_exponent[1] - 4.0 * 2f32.ln()).abs() < 1e-5);
    Ok(())
}

/// A mapped function gives what calls for each row give.
#[test]
fn mapped_with_every_combination_of_axes() -> Result<()> {
    let a = Array::from_slice(&(1..13).map(|v| v as f32 / 4.0).collect::<Vec<_>>(), &[4, 3])?;
    let b = Array::from_slice(&(1..13).map(|v| v as f32 / 5.0).collect::<Vec<_>>(), &[3, 4])?;
    let row = Array::from_slice(&[0.5f32, 1.0, 2.0], &[3])?;
    let f =
        |p: &[Array]| Ok(vec![where_(&p[0].less(&p[1])?, &p[0].exp()?, &p[1].multiply(&p[0])?)?]);
    let cases: [([Array; 2], [Option<isize>; 2]); 4] = [
        ([a.clone(), b.clone()], [Some(0), Some(1)]),
        ([a.clone(), a.clone()], [Some(0), Some(-2)]),
        ([a.clone(), row.clone()], [Some(0), None]),
        ([row, b], [None, Some(1)]),
    ];
    for (inputs, axes) in cases {
        let mapped = vmap(f, &inputs, axes, 0)?;
        for i in 0..4 {
            let at = |k: usize| match axes[k] {
                Some(axis) => Ok::<_, Error>(inputs[k].unstack(axis)?[i].clone()),
                None => Ok(inputs[k].clone()),
            };
            let alone = f(&[at(0)?, at(1)?])?;
            assert_eq!(mapped[0].unstack(0)?[i].to_vec::<f32>()?, alone[0].to_vec::<f32>()?);
        }
    }
    Ok(())
}

#[test]
fn constants_stay_constants() -> Result<()> {
    // A fill of a huge shape costs nothing while it is only viewed.
    let huge = Array::full(&[1 << 20, 1 << 20], Scalar::from_f64(Float32, 2.0))?;
    let view = huge.transpose()?.slice(&[0, 0], &[2, 2], &[1, 1])?.astype(Int32);
    assert_eq!(view.to_vec::<i32>()?, [2; 4]);
    Ok(())
}
