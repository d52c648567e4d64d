//! Operations that a device lacks. Partial backends, made of the CPU's own table by taking kernels away, give the CPU's
//! results by decomposition or by fallback to the CPU, and the counts say which.

mod cases;
mod matrices;

use crate::support::partial_backend::{Like, PLAIN, Partial, Request, register};
use cases::{Case, agree, cases};
use std::collections::BTreeMap;
use ultramarine::fft::{self, Norm};
use ultramarine::{
    Array, Device, Dtype, Error, OpCount, Result, default_stream, op_counts, set_fusion,
    set_strict, with_stream,
};
use ultramarine_abi::{
    schema::{binary, op, reduce, unary},
    status,
};
use ultramarine_test_support::own_process;

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
    own_process!();
    let gpu = register(PLAIN, Box::new(|_| status::OK));
    assert_agrees("native", gpu.device, &cases(&ALL));
    let counts = counts(gpu.device);
    assert!(counts.len() > 70, "{} operations", counts.len());
    let fallen_back: Vec<_> = counts.values().filter(|c| c.decomposed + c.cpu > 0).collect();
    assert!(fallen_back.is_empty(), "{fallen_back:?}");
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
        (op::CONVOLVE, 0, "convolve"),
        (op::GATHER_AXIS, 0, "take_along_axis"),
        (op::SCATTER_AXIS, 0, "put_along_axis"),
        (op::DYNAMIC_SLICE, 0, "dynamic_slice"),
        (op::DYNAMIC_SLICE_UPDATE, 0, "dynamic_slice_update"),
        (op::SORT, 0, "sort"),
        (op::PARTITION, 0, "partition"),
        (op::ARG_PARTITION, 0, "argpartition"),
        (op::RANDOM_BITS, 0, "random_bits"),
        (op::ARANGE, 0, "arange"),
    ]);
    all
}

/// Each function is refused in turn, for all dtypes: the device makes up for it.
#[test]
fn one_function_refused() {
    own_process!();
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
    own_process!();
    let cases = cases(&[Dtype::Bool, Dtype::Uint32, Dtype::Float32, Dtype::Complex64]);
    for id in op::FILL..=op::RANDOM_BITS {
        let gpu = register(
            Like { fused: id % 2 == 0, ..PLAIN },
            Box::new(move |r| if r.op == id { status::UNSUPPORTED } else { status::OK }),
        );
        assert_agrees(op::NAMES[id as usize], gpu.device, &cases);
        let fallen_back: u64 = counts(gpu.device).values().map(|c| c.decomposed + c.cpu).sum();
        assert!(fallen_back > 0, "{}", op::NAMES[id as usize]);
    }
}

/// Fourier transforms are matrix products on the device, unless their length has a large prime factor.
#[test]
fn transforms_refused() {
    own_process!();
    let refuses = || {
        Box::new(|r: &Request| match r.op {
            op::FFT => status::UNSUPPORTED,
            _ => status::OK,
        })
    };
    for (lengths, on_device) in
        [(&[1, 2, 3, 5, 12, 64, 256, 258, 300, 1000, 2048][..], true), (&[257, 526], false)]
    {
        let gpu = register(PLAIN, refuses());
        let mut cases = Vec::new();
        for &n in lengths {
            let half = n / 2 + 1;
            let numbers = |n: usize| -> Array {
                let parts: Vec<f32> =
                    (0..12 * n).map(|i| ((i * i + 3 * i) % 101) as f32 / 1000.0 - 0.05).collect();
                let flat = Array::from_slice(&parts, &[6, n, 2]).expect("12 n elements");
                flat.view(Dtype::Complex64).and_then(|a| a.reshape(&[2, 3, n])).expect("pairs")
            };
            let mut case =
                |name: &str, input: Array, make: fn(&Array, usize, isize) -> Result<Array>| {
                    for axis in [-1, 1] {
                        let input = input.swapaxes(-1, axis).expect("3 axes");
                        input.eval().expect("a view");
                        cases.push(Case {
                            name: format!("{name} of {n} along {axis}"),
                            inputs: vec![input],
                            make: Box::new(move |i| make(&i[0], n, axis)),
                            exact: false,
                        });
                    }
                };
            case("fft", numbers(n), |x, _, axis| fft::fft(x, None, axis, Norm::Ortho));
            case("ifft", numbers(n), |x, _, axis| fft::ifft(x, None, axis, Norm::Ortho));
            let real = numbers(n).real().expect("complex");
            case("rfft", real, |x, _, axis| fft::rfft(x, None, axis, Norm::Ortho));
            case("irfft", numbers(half), |x, n, axis| fft::irfft(x, Some(n), axis, Norm::Ortho));
        }
        assert_agrees("transforms", gpu.device, &cases);
        let count = &counts(gpu.device)["fft"];
        assert_eq!((count.native, count.decomposed > 0, count.cpu > 0), (0, on_device, !on_device));
    }
}

#[test]
fn nothing_but_copies() {
    own_process!();
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
    own_process!();
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
    own_process!();
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
    own_process!();
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
    own_process!();
    let gpu = register(
        PLAIN,
        Box::new(|r| if r.strided { status::NEEDS_CONTIGUOUS } else { status::OK }),
    );
    assert_agrees("contiguous", gpu.device, &cases(&[Dtype::Float32, Dtype::Int8]));
    assert!(counts(gpu.device)["contiguous"].cpu > 0);
}

#[test]
fn strict_mode() {
    own_process!();
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
    own_process!();
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
    own_process!();
    let gpu = register(
        PLAIN,
        Box::new(|r| match r.op {
            op::SCATTER | op::SCATTER_AXIS | op::UNARY | op::DYNAMIC_SLICE_UPDATE => {
                status::UNSUPPORTED
            }
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
        let a = base.add(Array::scalar(1f32))?.slice_update(&one, &[0, 0], &[3, 4], &[1, 2])?;
        let start = Array::from_slice(&[2i32], &[1])?;
        let a = a.slice_update_at(&Array::full(&[1, 4], 5f32)?, &start, [0])?;
        let at = Array::from_slice(&[1i32, 0, 2, 1], &[1, 4])?;
        a.put_along_axis(&at, &Array::scalar(7f32), Some(0))?.exp()?.negative()
    };
    let (got, want) = (with_stream(stream, run), with_stream(cpu, run));
    let (got, want) = (got.expect("shapes fit"), want.expect("shapes fit"));
    agree(&got, &want, true).expect("the same");
    assert!(counts(gpu.device).values().any(|c| c.cpu > 0));
}
