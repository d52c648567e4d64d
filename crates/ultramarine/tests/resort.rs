//! What becomes of operations that a device lacks: partial backends, made of the CPU's own
//! table by taking kernels away, give the results that the CPU gives, by simpler operations
//! or by way of the host, and the counts say which.

mod partial_backend;

use half::{bf16, f16};
use partial_backend::{Like, PLAIN, Partial, Request, register};
use std::collections::BTreeMap;
use std::sync::Mutex;
use ultramarine::{
    Array, Complex32, Device, Dtype, Error, Index, OpCount, Result, Update, concatenate,
    default_stream, op_counts, random, set_fusion, set_strict, where_, with_stream,
};
use ultramarine_abi::{
    schema::{binary, op, reduce, unary},
    status,
};

/// Fusion and strict mode are the process'.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
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
    }
}

/// Equal, NaN to NaN and zeros by their signs; or within `tolerance` of each other.
fn same(a: f64, b: f64, tolerance: f64) -> bool {
    let exact = a.is_nan() && b.is_nan() || a == b && a.is_sign_negative() == b.is_sign_negative();
    exact || tolerance > 0.0 && (a - b).abs() <= tolerance * (1.0 + b.abs())
}

fn agree(got: &Array, want: &Array, exact: bool) -> std::result::Result<(), String> {
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
        if dtype == Dtype::Bool { x.bitwise_and(&Array::scalar(1i64)).expect("ints") } else { x };
    x.astype(dtype)
}

type Make = Box<dyn Fn(&[Array]) -> Result<Array>>;

/// A computation, whose operands are made on the CPU.
struct Case {
    name: String,
    inputs: Vec<Array>,
    make: Make,
    /// The same bits; else what a rearranged sum or an identity may differ by.
    exact: bool,
}

/// Errors that a rearranged sum or an identity may have.
fn tolerance(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Float16 => 2e-3,
        Dtype::Bfloat16 => 2e-2,
        Dtype::Float64 => 1e-13,
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
    flat.take(&Array::scalar(4i32), Some(0)).expect("an element")
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
        case("sum", &[&small], false, Box::new(move |i| i[0].sum(Some(axes), false)));
        case("prod", &[&small], false, Box::new(move |i| i[0].prod(Some(axes), true)));
        case("max", &[&small], true, Box::new(move |i| i[0].max(Some(axes), false)));
        case("min", &[&small], true, Box::new(move |i| i[0].min(Some(axes), false)));
        case("all", &[&x], true, Box::new(move |i| i[0].all(Some(axes), false)));
        case("any", &[&x], true, Box::new(move |i| i[0].any(Some(axes), false)));
    }
    for axis in [0, 1] {
        case("argmin", &[&x], true, Box::new(move |i| i[0].argmin(Some(axis), false)));
        case("argmax", &[&x], true, Box::new(move |i| i[0].argmax(Some(axis), true)));
        case("sort", &[&x], true, Box::new(move |i| i[0].sort(Some(axis))));
        case("argsort", &[&x], true, Box::new(move |i| i[0].argsort(Some(axis))));
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
            i[0].put_along_axis(&i[1], &i[2].take(&Array::scalar(1i32), Some(0))?, Some(0))
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
            let row = i[1].take(&Array::scalar(1i32), Some(0))?;
            i[0].slice_update(&row, &[1, 0], &[4, 6], &[2, 1])
        }),
    );
    case("transpose", &[&x], true, Box::new(|i| Ok(i[0].transpose_axes(&[1, 0])?.contiguous())));
    if dtype.is_inexact() {
        let turned = small.transpose_axes(&[1, 0]).expect("2 axes");
        case("matmul", &[&small, &turned], false, Box::new(|i| i[0].matmul(&i[1])));
        let stack = small.reshape(&[2, 2, 6]).expect("24 elements");
        case(
            "matmuls",
            &[&stack, &stack],
            false,
            Box::new(|i| i[0].transpose_axes(&[0, 2, 1])?.matmul(&i[1])),
        );
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

fn cases(dtypes: &[Dtype]) -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in dtypes {
        elementwise_cases(operand, *dtype, &mut out);
        elementwise_cases(item, *dtype, &mut out);
        other_cases(*dtype, &mut out);
    }
    out
}

/// Runs all cases on a device and on the CPU; what differs.
fn differences(device: Device, cases: &[Case]) -> Vec<String> {
    let (gpu, cpu) = (default_stream(device).expect("it is there"), Device::CPU);
    let cpu = default_stream(cpu).expect("the CPU is there");
    let mut wrong = Vec::new();
    for case in cases {
        let want = with_stream(cpu, || (case.make)(&case.inputs)).expect("the CPU can");
        let got = with_stream(gpu, || (case.make)(&case.inputs)).expect("shapes were right");
        let outcome = match got.eval() {
            Ok(()) => agree(&got, &want, case.exact),
            Err(error) => Err(error.to_string()),
        };
        if let Err(text) = outcome {
            wrong.push(format!("{}: {text}", case.name));
        }
    }
    wrong
}

fn assert_agrees(what: &str, device: Device, cases: &[Case]) {
    let wrong = differences(device, cases);
    assert!(wrong.is_empty(), "{what}: {} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Counts of a device by operation.
fn counts(device: Device) -> BTreeMap<&'static str, OpCount> {
    op_counts().into_iter().filter(|c| c.device == device).map(|c| (c.op, c)).collect()
}

const ALL: [Dtype; 14] = Dtype::ALL;

#[test]
fn everything_native() {
    let _alone = alone();
    let gpu = register(PLAIN, Box::new(|_| status::OK));
    assert_agrees("native", gpu.device, &cases(&ALL));
    let counts = counts(gpu.device);
    assert!(counts.len() > 70, "{} operations", counts.len());
    let resorted: Vec<_> = counts.values().filter(|c| c.decomposed + c.cpu > 0).collect();
    assert!(resorted.is_empty(), "{resorted:?}");
}

/// Functions whose lack is made good on the device, by op and code.
fn decomposable() -> Vec<(u32, u32, &'static str)> {
    use {binary as b, unary as u};
    let unary = [
        u::ABS,
        u::NEGATIVE,
        u::SIGN,
        u::SQUARE,
        u::RSQRT,
        u::RECIPROCAL,
        u::TAN,
        u::SINH,
        u::COSH,
        u::TANH,
        u::SIGMOID,
        u::FLOOR,
        u::CEIL,
        u::ROUND,
        u::TRUNC,
        u::LOGICAL_NOT,
        u::BITWISE_INVERT,
        u::ISNAN,
        u::ISINF,
        u::ISFINITE,
        u::CONJUGATE,
        u::REAL,
        u::IMAG,
    ];
    let binary = [
        b::ADD,
        b::SUBTRACT,
        b::FLOOR_DIVIDE,
        b::MAXIMUM,
        b::MINIMUM,
        b::LOGADDEXP,
        b::EQUAL,
        b::NOT_EQUAL,
        b::LESS,
        b::LESS_EQUAL,
        b::GREATER,
        b::GREATER_EQUAL,
        b::LOGICAL_AND,
        b::LOGICAL_OR,
        b::BITWISE_AND,
        b::BITWISE_OR,
        b::BITWISE_XOR,
        b::EQUAL_NAN,
    ];
    let reductions =
        [reduce::SUM, reduce::PROD, reduce::MIN, reduce::MAX, reduce::ALL, reduce::ANY];
    let of = |op: u32, codes: &[u32], names: &[&'static str]| -> Vec<_> {
        codes.iter().map(|c| (op, *c, names[*c as usize])).collect()
    };
    let mut all = of(op::UNARY, &unary, unary::NAMES);
    all.extend(of(op::BINARY, &binary, binary::NAMES));
    all.extend(of(op::REDUCE, &reductions, reduce::NAMES));
    all.extend([
        (op::SELECT, 0, "where"),
        (op::ARG_REDUCE, 0, "argmin"),
        (op::ARG_REDUCE, 1, "argmax"),
        (op::SCAN, reduce::SUM, "cumsum"),
        (op::SCAN, reduce::PROD, "cumprod"),
        (op::SCAN, reduce::MIN, "cummin"),
        (op::SCAN, reduce::MAX, "cummax"),
        (op::SCAN, reduce::LOGADDEXP, "logcumsumexp"),
        (op::MATMUL, 0, "matmul"),
        (op::GATHER_AXIS, 0, "take_along_axis"),
        (op::SCATTER_AXIS, 0, "put_along_axis"),
        (op::SORT, 0, "sort"),
        (op::RANDOM_BITS, 0, "random_bits"),
        (op::ARANGE, 0, "arange"),
    ]);
    all
}

/// Each function is refused in turn, for all dtypes: the device makes up for it.
#[test]
fn one_function_refused() {
    let _alone = alone();
    set_fusion(false);
    let cases = cases(&ALL);
    for (id, code, name) in decomposable() {
        let gpu = register(
            PLAIN,
            Box::new(move |r| match r.op == id && r.code == code {
                true => status::UNSUPPORTED,
                false => status::OK,
            }),
        );
        assert_agrees(name, gpu.device, &cases);
        let counts = counts(gpu.device);
        let count = counts.get(name).unwrap_or_else(|| panic!("{name} did not run"));
        assert!(count.native == 0 && count.decomposed > 0, "{count:?}");
        // Nothing else was touched.
        let others: Vec<_> =
            counts.values().filter(|c| c.op != name && c.decomposed + c.cpu > 0).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
    set_fusion(true);
}

/// Every function that there is no identity for, and all of a family: by way of the CPU.
#[test]
fn one_family_refused() {
    let _alone = alone();
    let cases = cases(&[Dtype::Bool, Dtype::Uint32, Dtype::Float32, Dtype::Complex64]);
    for id in op::FILL..=op::RANDOM_BITS {
        let gpu = register(
            Like { fused: id % 2 == 0, ..PLAIN },
            Box::new(move |r| if r.op == id { status::UNSUPPORTED } else { status::OK }),
        );
        assert_agrees(op::NAMES[id as usize], gpu.device, &cases);
        let resorted: u64 = counts(gpu.device).values().map(|c| c.decomposed + c.cpu).sum();
        assert!(resorted > 0, "{}", op::NAMES[id as usize]);
    }
}

#[test]
fn nothing_but_copies() {
    let _alone = alone();
    let same_dtype = |r: &Request| r.op == op::COPY && r.dtypes[0] == r.dtypes[1];
    let gpu = register(
        PLAIN,
        Box::new(move |r| if same_dtype(r) { status::OK } else { status::UNSUPPORTED }),
    );
    let cases: Vec<Case> = cases(&ALL);
    // All through the CPU, so that every bit is its own.
    let exact: Vec<Case> = cases.into_iter().map(|c| Case { exact: true, ..c }).collect();
    assert_agrees("copies", gpu.device, &exact);
    let counts = counts(gpu.device);
    for name in ["add", "exp", "matmul", "sort", "cumsum", "gather"] {
        let c = &counts[name];
        assert!(c.native == 0 && c.cpu > 0, "{c:?}");
    }
}

#[test]
fn not_even_copies() {
    let _alone = alone();
    let gpu = register(PLAIN, Box::new(|_| status::UNSUPPORTED));
    let cases: Vec<Case> = cases(&ALL).into_iter().map(|c| Case { exact: true, ..c }).collect();
    assert_agrees("nothing", gpu.device, &cases);
    // Only what is no more than another name for the same bits stays on the device.
    let counts = counts(gpu.device);
    assert!(counts.values().all(|c| c.native == 0 && c.cpu > 0), "{counts:?}");
    let views = ["astype", "real", "imag"];
    assert!(counts.values().all(|c| c.decomposed == 0 || views.contains(&c.op)), "{counts:?}");
}

/// A device that computes in float32, int32, uint32 and bool only.
#[test]
fn few_dtypes() {
    let _alone = alone();
    for fused in [false, true] {
        let gpu = register(
            Like { fused, ..PLAIN },
            Box::new(|r| {
                let known = ["float32", "int32", "uint32", "bool"];
                // Copies convert from and to the narrow dtypes.
                let narrow = ["float16", "bfloat16", "int8", "uint8", "int16", "uint16"];
                let fits = |d: &&str| known.contains(d) || r.op == op::COPY && narrow.contains(d);
                let moves = r.op == op::COPY && r.dtypes[0] == *r.dtypes.last().unwrap_or(&"");
                if moves || r.op == op::FILL || r.dtypes.iter().all(fits) {
                    status::OK
                } else {
                    status::UNSUPPORTED
                }
            }),
        );
        let narrow = [
            Dtype::Float16,
            Dtype::Bfloat16,
            Dtype::Int8,
            Dtype::Uint8,
            Dtype::Int16,
            Dtype::Uint16,
        ];
        assert_agrees("narrow", gpu.device, &cases(&narrow));
        let before = counts(gpu.device);
        for name in ["exp", "multiply", "sum", "matmul", "cumsum", "sort", "argmax", "where"] {
            assert!(before[name].decomposed > 0 && before[name].cpu == 0, "{:?}", before[name]);
        }
        assert_agrees("wide", gpu.device, &cases(&[Dtype::Complex64, Dtype::Int64]));
    }
}

#[test]
fn contiguous_only() {
    let _alone = alone();
    let gpu = register(
        PLAIN,
        Box::new(|r| match r.strided && r.op != op::COPY {
            true => status::NEEDS_CONTIGUOUS,
            false => status::OK,
        }),
    );
    assert_agrees("contiguous", gpu.device, &cases(&[Dtype::Float32, Dtype::Int8]));
    assert!(counts(gpu.device).values().all(|c| c.decomposed + c.cpu == 0));
}

/// A device that asks for contiguous tensors even of a copy: the CPU makes them.
#[test]
fn contiguous_to_the_last() {
    let _alone = alone();
    let gpu = register(
        PLAIN,
        Box::new(|r| if r.strided { status::NEEDS_CONTIGUOUS } else { status::OK }),
    );
    assert_agrees("contiguous", gpu.device, &cases(&[Dtype::Float32, Dtype::Int8]));
    assert!(counts(gpu.device)["contiguous"].cpu > 0);
}

#[test]
fn strict_mode() {
    let _alone = alone();
    let lacks_sort = |r: &Request| match r.op {
        op::SORT | op::ARG_SORT => status::UNSUPPORTED,
        op::UNARY if r.code == unary::TANH => status::UNSUPPORTED,
        _ => status::OK,
    };
    let gpu = register(Like { name: c"sortless", ..PLAIN }, Box::new(lacks_sort));
    let stream = default_stream(gpu.device).expect("there");
    let x = Array::from_slice(&[3.0f32, 1.0, 2.0], &[3]).expect("3 elements");
    set_strict(true, &[]);
    // Simpler operations on the device are none of the CPU's.
    assert!(with_stream(stream, || x.tanh()).and_then(|y| y.eval()).is_ok());
    let sorted = with_stream(stream, || x.sort(Some(0))).expect("a shape");
    let error = sorted.eval().expect_err("strict");
    assert!(matches!(error, Error::Runtime(_)));
    let text = error.to_string();
    for word in ["[sort]", "sortless", &gpu.device.to_string(), "float32", "allow=[\"sort\"]"] {
        assert!(text.contains(word), "{text}");
    }
    set_strict(true, &["sort"]);
    let sorted = with_stream(stream, || x.sort(Some(0))).expect("a shape");
    assert_eq!(sorted.to_vec::<f32>().expect("allowed"), [1.0, 2.0, 3.0]);
    assert!(with_stream(stream, || x.argsort(Some(0))).and_then(|y| y.eval()).is_err());
    set_strict(false, &[]);
    assert!(with_stream(stream, || x.argsort(Some(0))).and_then(|y| y.eval()).is_ok());
}

#[test]
fn broken_promises() {
    let _alone = alone();
    let x = Array::from_slice(&[1.0f32, 2.0], &[2]).expect("2 elements");
    let fails = |code| {
        let like = Like { submit: code, name: c"promises", ..PLAIN };
        let gpu: Partial = register(like, Box::new(|_| status::OK));
        let stream = default_stream(gpu.device).expect("there");
        with_stream(stream, || x.exp()).and_then(|y| y.eval()).expect_err("it does not work")
    };
    // A refusal comes too late once there is a plan: an error, and no way around it.
    for code in [status::UNSUPPORTED, status::NEEDS_CONTIGUOUS] {
        let text = fails(code).to_string();
        assert!(text.contains("promises") && text.contains("contract"), "{text}");
    }
    assert!(matches!(fails(status::OUT_OF_MEMORY), Error::Memory(_)));
}

/// Operands of ops that were refused are untouched, however the op would have used them.
#[test]
fn operands_survive_a_refusal() {
    let _alone = alone();
    let gpu = register(
        PLAIN,
        Box::new(|r| match r.op {
            op::SCATTER | op::SCATTER_AXIS | op::UNARY => status::UNSUPPORTED,
            op::COPY if r.strided => status::UNSUPPORTED,
            _ => status::OK,
        }),
    );
    let stream = default_stream(gpu.device).expect("there");
    let cpu = default_stream(Device::CPU).expect("there");
    let run = || -> Result<Array> {
        // Each operand's memory may be taken over: nobody else has it.
        let base = Array::arange(0.0, 12.0, 1.0, Dtype::Float32)?.reshape(&[3, 4])?;
        let one = Array::ones(&[3, 2], Dtype::Float32)?;
        let a = base.add(&Array::scalar(1f32))?.slice_update(&one, &[0, 0], &[3, 4], &[1, 2])?;
        let at = Array::from_slice(&[1i32, 0, 2, 1], &[1, 4])?;
        a.put_along_axis(&at, &Array::scalar(7f32), Some(0))?.exp()?.negative()
    };
    let (got, want) = (with_stream(stream, run), with_stream(cpu, run));
    let (got, want) = (got.expect("shapes fit"), want.expect("shapes fit"));
    agree(&got, &want, true).expect("the same");
    assert!(counts(gpu.device).values().any(|c| c.cpu > 0));
}
