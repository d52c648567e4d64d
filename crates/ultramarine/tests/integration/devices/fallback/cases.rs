//! Computations of every family of operations, with operands of each dtype, and the comparison of results.

use half::{bf16, f16};
use ultramarine::{
    Array, Complex32, Convolution, Dtype, Index, KeepDims, Result, Update, concatenate,
    conv_general, conv1d, random, where_,
};
use ultramarine_test_support::{Tolerance, compare};

fn shaped(a: &Array, shape: &[usize]) -> Array {
    a.reshape(shape).expect("as many elements")
}

/// An element as numbers that can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    Int(i128),
    Float(f64),
    Complex(f64, f64),
}

fn elements(a: &Array) -> Vec<Element> {
    macro_rules! read {
        ($t:ty, |$v:ident| $e:expr) => {
            a.to_vec::<$t>().expect("a value").into_iter().map(|$v| $e).collect()
        };
    }
    use Element::*;
    match a.dtype() {
        Dtype::Bool => read!(bool, |v| Int(v as i128)),
        Dtype::Uint8 => read!(u8, |v| Int(v as i128)),
        Dtype::Uint16 => read!(u16, |v| Int(v as i128)),
        Dtype::Uint32 => read!(u32, |v| Int(v as i128)),
        Dtype::Uint64 => read!(u64, |v| Int(v as i128)),
        Dtype::Int8 => read!(i8, |v| Int(v as i128)),
        Dtype::Int16 => read!(i16, |v| Int(v as i128)),
        Dtype::Int32 => read!(i32, |v| Int(v as i128)),
        Dtype::Int64 => read!(i64, |v| Int(v as i128)),
        Dtype::Float16 => read!(f16, |v| Float(v.to_f64())),
        Dtype::Bfloat16 => read!(bf16, |v| Float(v.to_f64())),
        Dtype::Float32 => read!(f32, |v| Float(v as f64)),
        Dtype::Float64 => read!(f64, |v| Float(v)),
        Dtype::Complex64 => read!(Complex32, |v| Complex(v.re as f64, v.im as f64)),
        other => panic!("no operation of these tests gives {other}"),
    }
}

/// Equal, NaN to NaN and zeros by their signs; or within `tolerance` of each other.
pub fn same(a: f64, b: f64, tolerance: f64) -> bool {
    let exact = a.is_nan() && b.is_nan() || a == b && a.is_sign_negative() == b.is_sign_negative();
    exact || tolerance > 0.0 && compare(&[a], &[b], Tolerance::mixed(tolerance)).is_ok()
}

pub fn agree(got: &Array, want: &Array, exact: bool) -> std::result::Result<(), String> {
    let tolerance = if exact { 0.0 } else { tolerance(got.dtype()) };
    if (got.shape(), got.dtype()) != (want.shape(), want.dtype()) {
        return Err(format!("{:?} {} instead of {:?}", got.shape(), got.dtype(), want.shape()));
    }
    for (i, (a, b)) in elements(got).into_iter().zip(elements(want)).enumerate() {
        let fine = match (a, b) {
            (Element::Float(a), Element::Float(b)) => same(a, b, tolerance),
            (Element::Complex(a, c), Element::Complex(b, d)) => {
                same(a, b, tolerance) && same(c, d, tolerance)
            }
            (a, b) => a == b,
        };
        if !fine {
            return Err(format!("element {i}: {a:?} instead of {b:?}"));
        }
    }
    Ok(())
}

/// Numbers of every sort that the dtype has, in a 4 x 6 array.
fn operand(dtype: Dtype, turn: usize) -> Array {
    let shape = [4, 6];
    let floats = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1.5,
        -2.5,
        0.5,
        3.0,
        -0.25,
        7.0,
        1e-3,
        -88.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        2.0,
        -3.5,
        0.75,
        100.0,
        65000.0,
        -7.25,
        1.25,
        -0.5,
        9.0,
    ];
    let rotated = |i: usize| (i * (1 + 4 * turn) + 5 * turn) % 24;
    if dtype.is_complex() {
        let z: Vec<Complex32> = (0..24)
            .map(|i| Complex32::new(floats[rotated(i)] as f32, floats[(i * 7 + 3) % 24] as f32))
            .collect();
        return Array::from_slice(&z, &shape).expect("24 elements");
    }
    if dtype.is_inexact() {
        let x: Vec<f64> = (0..24).map(|i| floats[rotated(i)]).collect();
        return Array::from_slice(&x, &shape).expect("24 elements").astype(dtype);
    }
    let ints: [i64; 24] = [
        0,
        1,
        -1,
        2,
        5,
        -7,
        127,
        -128,
        3,
        40,
        32767,
        -32768,
        255,
        8,
        i32::MAX as i64,
        i32::MIN as i64,
        100,
        65535,
        -3,
        12,
        i64::MAX,
        i64::MIN,
        31,
        6,
    ];
    let x: Vec<i64> = (0..24).map(|i| ints[rotated(i)]).collect();
    let x = Array::from_slice(&x, &shape).expect("24 elements");
    // Bools of both sorts.
    let x =
        if dtype == Dtype::Bool { x.bitwise_and(Array::scalar(1i64)).expect("ints") } else { x };
    x.astype(dtype)
}

type Make = Box<dyn Fn(&[Array]) -> Result<Array>>;

/// A computation, whose operands are made on the CPU.
pub struct Case {
    pub name: String,
    pub inputs: Vec<Array>,
    pub make: Make,
    /// The same bits; else what a rearranged sum or an identity may differ by.
    pub exact: bool,
}

/// Errors that a rearranged sum or an identity may have.
fn tolerance(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Float16 => 2e-3,
        Dtype::Bfloat16 => 2e-2,
        Dtype::Float64 => 1e-14,
        d if d.is_inexact() => 2e-6,
        _ => 0.0,
    }
}

macro_rules! unaries {
    ($out:ident, $operand:ident, $dtype:ident, $exact:expr, $($name:ident)*) => {$(
        let x = $operand($dtype, 0);
        if x.$name().is_ok() {
            $out.push(Case {
                name: format!("{} {}", stringify!($name), $dtype),
                inputs: vec![x],
                make: Box::new(|i| i[0].$name()),
                exact: $exact,
            });
        }
    )*};
}

macro_rules! binaries {
    ($out:ident, $operand:ident, $dtype:ident, $exact:expr, $($name:ident)*) => {$(
        let (x, y) = ($operand($dtype, 0), $operand($dtype, 1));
        if x.$name(&y).is_ok() {
            $out.push(Case {
                name: format!("{} {}", stringify!($name), $dtype),
                inputs: vec![x, y],
                make: Box::new(|i| i[0].$name(&i[1])),
                exact: $exact,
            });
        }
    )*};
}

/// One element of [`operand`], 0-d.
fn item(dtype: Dtype, turn: usize) -> Array {
    let flat = operand(dtype, turn).reshape(&[24]).expect("24 elements");
    flat.take(Array::scalar(4i32), Some(0)).expect("an element")
}

fn elementwise_cases(operand: fn(Dtype, usize) -> Array, dtype: Dtype, out: &mut Vec<Case>) {
    unaries! { out, operand, dtype, true, abs negative sign square sqrt reciprocal floor ceil trunc isnan
    isinf isfinite logical_not bitwise_invert conjugate real imag }
    unaries! { out, operand, dtype, false, rsqrt exp expm1 log log2 log10 log1p sin cos tan arcsin arccos
    arctan sinh cosh tanh arcsinh arccosh arctanh erf erfinv sigmoid }
    binaries! { out, operand, dtype, true, add subtract multiply floor_divide remainder maximum minimum
    equal not_equal less less_equal greater greater_equal logical_and logical_or bitwise_and
    bitwise_or bitwise_xor left_shift right_shift }
    binaries! { out, operand, dtype, false, divide power logaddexp arctan2 }
    let (x, y) = (operand(dtype, 0), operand(dtype, 1));
    let mut case = |name: &str, inputs: &[&Array], exact: bool, make: Make| {
        out.push(Case {
            name: format!("{name} {dtype}"),
            inputs: inputs.iter().map(|a| (*a).clone()).collect(),
            make,
            exact,
        });
    };
    let condition = operand(Dtype::Bool, 0);
    case("where", &[&condition, &x, &y], true, Box::new(|i| where_(&i[0], &i[1], &i[2])));
    case("round", &[&x], true, Box::new(|i| i[0].round(0)));
    case("equal_nan", &[&x, &x], true, Box::new(|i| i[0].array_equal(&i[1], true)));
    for to in Dtype::ALL {
        case(&format!("to {to}, of"), &[&x], true, Box::new(move |i| Ok(i[0].astype(to))));
    }
}

fn other_cases(dtype: Dtype, out: &mut Vec<Case>) {
    let (x, y) = (operand(dtype, 0), operand(dtype, 1));
    // Without infinities and NaN, where sums would have nothing but them.
    let small = match dtype {
        Dtype::Complex64 => Array::arange(0.0, 24.0, 1.0, Dtype::Float32)
            .and_then(|a| a.reshape(&[4, 6]))
            .map(|a| a.astype(dtype)),
        _ => Array::arange(-11.0, 13.0, 1.0, Dtype::Int32)
            .and_then(|a| a.reshape(&[4, 6]))
            .map(|a| a.astype(dtype)),
    }
    .expect("24 numbers");
    small.eval().expect("a range");
    let mut case = |name: &str, inputs: &[&Array], exact: bool, make: Make| {
        out.push(Case {
            name: format!("{name} {dtype}"),
            inputs: inputs.iter().map(|a| (*a).clone()).collect(),
            make,
            exact,
        });
    };
    for axes in [&[0][..], &[1], &[0, 1]] {
        case("sum", &[&small], false, Box::new(move |i| i[0].sum(Some(axes))));
        case("prod", &[&small], false, Box::new(move |i| i[0].prod(KeepDims(Some(axes)))));
        case("max", &[&small], true, Box::new(move |i| i[0].max(Some(axes))));
        case("min", &[&small], true, Box::new(move |i| i[0].min(Some(axes))));
        case("all", &[&x], true, Box::new(move |i| i[0].all(Some(axes))));
        case("any", &[&x], true, Box::new(move |i| i[0].any(Some(axes))));
    }
    for axis in [0, 1] {
        case("argmin", &[&x], true, Box::new(move |i| i[0].argmin(Some(axis))));
        case("argmax", &[&x], true, Box::new(move |i| i[0].argmax(KeepDims(Some(axis)))));
        case("sort", &[&x], true, Box::new(move |i| i[0].sort(Some(axis))));
        case("argsort", &[&x], true, Box::new(move |i| i[0].argsort(Some(axis))));
        let parted = move |x: &Array| x.partition(1, Some(axis))?.sort(Some(axis));
        case("partition", &[&x], true, Box::new(move |i| parted(&i[0])));
        let places = move |x: &Array| x.argpartition(1, Some(axis))?.sort(Some(axis));
        case("argpartition", &[&x], true, Box::new(move |i| places(&i[0])));
        for (reverse, inclusive) in [(false, true), (true, true), (false, false), (true, false)] {
            let scan = move |f: fn(&Array, Option<isize>, bool, bool) -> Result<Array>| -> Make {
                Box::new(move |i| f(&i[0], Some(axis), reverse, inclusive))
            };
            case("cumsum", &[&small], false, scan(Array::cumsum));
            case("cumprod", &[&small], false, scan(Array::cumprod));
            case("cummax", &[&small], true, scan(Array::cummax));
            case("cummin", &[&small], true, scan(Array::cummin));
            if dtype.is_floating() {
                case("logcumsumexp", &[&small], false, scan(Array::logcumsumexp));
            }
        }
    }
    let at = Array::from_slice(&[2i32, 0, -1], &[3]).expect("3 indices");
    let narrow = Array::from_slice(&[2u8, 0, 3], &[3]).expect("3 indices");
    let along = Array::from_slice(&[0i64, 3, -1, 2, 1, 0], &[1, 6]).expect("6 indices");
    case("take rows", &[&x, &at], true, Box::new(|i| i[0].take(&i[1], Some(0))));
    case("take by uint8", &[&x, &narrow], true, Box::new(|i| i[0].take(&i[1], Some(0))));
    case("take along", &[&x, &along], true, Box::new(|i| i[0].take_along_axis(&i[1], Some(0))));
    case(
        "put along",
        &[&x, &along, &y],
        true,
        Box::new(|i| {
            i[0].put_along_axis(&i[1], &i[2].take(Array::scalar(1i32), Some(0))?, Some(0))
        }),
    );
    // Sums, of which one index occurs twice, and extremes.
    let rows = Array::from_slice(&[2i32, 0, -1, 2], &[4]).expect("4 indices");
    for kind in [Update::Set, Update::Add, Update::Multiply, Update::Minimum, Update::Maximum] {
        case(
            "scatter",
            &[&small, &rows, &y],
            true,
            Box::new(move |i| i[0].index_update(&[Index::Array(i[1].clone())], &i[2], kind)),
        );
    }
    case("concatenate", &[&x, &y], true, Box::new(|i| concatenate(i, 0)));
    case(
        "update",
        &[&x, &y],
        true,
        Box::new(|i| {
            let row = i[1].take(Array::scalar(1i32), Some(0))?;
            i[0].slice_update(&row, &[1, 0], &[4, 6], &[2, 1])
        }),
    );
    let start = Array::from_slice(&[1u16, 9], &[2]).expect("2 starts");
    case("window", &[&x, &start], true, Box::new(|i| i[0].slice_at(&i[1], [1, 0], &[2, 3])));
    case(
        "window update",
        &[&x, &y, &start],
        true,
        Box::new(|i| {
            let row = i[1].take(Array::scalar(1i32), Some(0))?;
            i[0].slice_update_at(&row.slice(&[5], &[1], &[-2])?, &i[2], [1, 0])
        }),
    );
    case("transpose", &[&x], true, Box::new(|i| Ok(i[0].transpose_axes([1, 0])?.contiguous())));
    if dtype.is_inexact() {
        let turned = small.transpose_axes([1, 0]).expect("2 axes");
        case("matmul", &[&small, &turned], false, Box::new(|i| i[0].matmul(&i[1])));
        let stack = small.reshape(&[2, 2, 6]).expect("24 elements");
        case(
            "matmuls",
            &[&stack, &stack],
            false,
            Box::new(|i| i[0].transpose_axes([0, 2, 1])?.matmul(&i[1])),
        );
    }
    if dtype.is_inexact() && !dtype.is_complex() {
        let (line, kernel) = (shaped(&small, &[2, 4, 3]), shaped(&small, &[4, 2, 3]));
        case(
            "conv1d",
            &[&line, &kernel],
            false,
            Box::new(|i| conv1d(&i[0], &i[1], Convolution::default().padding(1))),
        );
        let (image, kernel) = (shaped(&small, &[1, 4, 3, 2]), shaped(&small, &[4, 3, 2, 1]));
        let how = Convolution::default().stride([2, 1]).padding_low([2, -1]).padding_high([-1, 3]);
        let how = how.dilation([1, 2]).input_dilation([2, 3]).groups(2).flip(true);
        let general = move |i: &[Array]| conv_general(&i[0], &i[1], &how);
        case("conv_general", &[&image, &kernel], false, Box::new(general));
    }
    if dtype != Dtype::Bool {
        case("arange", &[], true, Box::new(move |_| Array::arange(3.0, 40.0, 2.0, dtype)));
    }
    case("full", &[], true, Box::new(move |_| Array::ones(&[3, 2], dtype)));
    if matches!(dtype, Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32) {
        let key = random::key(7).expect("a key");
        for n in [1, 6, 7] {
            case(
                "bits",
                &[&key],
                true,
                Box::new(move |i| random::bits(&[n], dtype.size(), Some(&i[0]))),
            );
        }
    }
}

/// The computations with operands of these dtypes.
pub fn cases(dtypes: &[Dtype]) -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in dtypes {
        elementwise_cases(operand, *dtype, &mut out);
        elementwise_cases(item, *dtype, &mut out);
        other_cases(*dtype, &mut out);
    }
    out
}
