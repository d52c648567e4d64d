//! The backend in C, built with the C compiler and opened: its numbers beside the CPU's,
//! its two devices beside each other, its memory back where it came from.

use crate::support::arrays::f64s;
use crate::support::{minimal, workshop};
use std::process::Command;
use ultramarine::{
    Array, Complex32, Device, Dtype, Result, Stream, default_stream, memory, op_counts, stats,
    where_, with_stream,
};
use ultramarine_abi::{BackendScore, DeviceIdentity, identity, inline_str, status};
use ultramarine_test_support::{Tolerance, assert_close, own_process};

type Unary = fn(&Array) -> Result<Array>;
type Binary = fn(&Array, &Array) -> Result<Array>;

/// Loads the backend; the streams of its two devices.
fn devices() -> (Stream, Stream) {
    let loaded = ultramarine::backends::load(minimal::library()).expect("it loads");
    assert_eq!((&loaded.name[..], loaded.dlpack_device_type), ("minimal", 12));
    let [a, b]: [Device; 2] = loaded.devices.try_into().expect("two devices");
    let stream = |d| default_stream(d).expect("a stream");
    (stream(a), stream(b))
}

/// Evaluates on the device and on the CPU.
fn both(gpu: Stream, f: impl Fn() -> Result<Array>) -> Result<(Array, Array)> {
    let on_device = with_stream(gpu, &f)?;
    on_device.eval()?;
    Ok((on_device, f()?))
}

/// Equal, or within a few units in the last place; NaN is NaN.
fn assert_equal(name: &str, got: &Array, want: &Array) -> Result<()> {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()), "{name}");
    let bound = Tolerance { absolute: 0.0, relative: 1e-6 };
    assert_close(name, &f64s(got), &f64s(want), bound);
    Ok(())
}

fn floats() -> Result<Array> {
    let data: Vec<f32> = [-2.5, -1.0, -0.75, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 7.25, 1e-20, 3e9]
        .into_iter()
        .chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN])
        .collect();
    Array::from_slice(&data, &[4, 4])
}

fn ints() -> Result<Array> {
    let data = [0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 33, 1000, -1000, i32::MAX, i32::MIN, 65536];
    Array::from_slice(&data, &[4, 4])
}

macro_rules! functions {
    ($($name:ident)*) => { [$((stringify!($name), Array::$name)),*] };
    (reduce: $($name:ident)*) => {
        [$((stringify!($name), |a, axes| a.$name(axes))),*]
    };
    (binary: $($name:ident)*) => { [$((stringify!($name), |a, b| a.$name(b))),*] };
}

#[test]
fn unary_functions() -> Result<()> {
    own_process!();
    let (gpu, _) = devices();
    let table: [(&str, Unary); 36] = functions!(
        abs negative sign square sqrt rsqrt reciprocal exp expm1 log log2 log10 log1p sin cos tan arcsin
        arccos arctan sinh cosh tanh arcsinh arccosh arctanh erf erfinv sigmoid floor ceil trunc
        logical_not isnan isinf isfinite conjugate);
    let before = stats().commands;
    let x = floats()?;
    for (name, f) in table {
        for x in [&x, &x.transpose_axes([1, 0])?] {
            let (got, want) = both(gpu, || f(x))?;
            assert_equal(name, &got, &want)?;
        }
    }
    assert!(stats().commands > before);
    let (got, want) = both(gpu, || x.round(0))?;
    assert_equal("round", &got, &want)?;
    let n = ints()?;
    let table: [(&str, Unary); 7] =
        functions!(abs negative sign square bitwise_invert logical_not floor);
    for (name, f) in table {
        let (got, want) = both(gpu, || f(&n))?;
        assert_equal(name, &got, &want)?;
    }
    Ok(())
}

#[test]
fn binary_functions() -> Result<()> {
    own_process!();
    let (gpu, _) = devices();
    let float_only: [(&str, Binary); 5] =
        functions!(binary: divide power logaddexp arctan2 floor_divide);
    let common: [(&str, Binary); 14] = functions!(
        binary: add subtract multiply remainder maximum minimum equal not_equal less less_equal greater
        greater_equal logical_and logical_or);
    let int_only: [(&str, Binary); 6] = functions!(
        binary: floor_divide bitwise_and bitwise_or bitwise_xor left_shift right_shift);
    // Every value with every other: rows against columns, broadcast by zero strides.
    for (x, own) in [(floats()?, &float_only[..]), (ints()?, &int_only[..])] {
        let (rows, columns) = (x.reshape(&[16, 1])?, x.reshape(&[1, 16])?);
        for (name, f) in common.iter().chain(own) {
            let (got, want) = both(gpu, || f(&rows, &columns))?;
            assert_equal(&format!("{name} of {}", x.dtype()), &got, &want)?;
        }
    }
    let base = ints()?;
    let exponents = Array::from_slice(&[0, 1, 2, 5, 31, -1], &[6, 1])?;
    let (got, want) = both(gpu, || base.reshape(&[1, 16])?.power(&exponents))?;
    assert_equal("power of int32", &got, &want)?;
    let bools = Array::from_slice(&[true, false, true, true], &[2, 2])?;
    for (name, f) in [
        ("logical_and", (|a, b| a.logical_and(b)) as Binary),
        ("logical_or", |a, b| a.logical_or(b)),
        ("equal", |a, b| a.equal(b)),
        ("bitwise_xor", |a, b| a.bitwise_xor(b)),
        ("add", |a, b| a.add(b)),
        ("multiply", |a, b| a.multiply(b)),
    ] {
        let (got, want) = both(gpu, || f(&bools, &bools.transpose_axes([1, 0])?))?;
        assert_equal(name, &got, &want)?;
    }
    Ok(())
}

#[test]
fn copies_fills_and_choices() -> Result<()> {
    own_process!();
    let (gpu, _) = devices();
    let bools = Array::from_slice(&[true, false, true, false], &[2, 2])?;
    for x in [floats()?, ints()?, bools.clone()] {
        for dtype in [Dtype::Float32, Dtype::Int32, Dtype::Bool] {
            let (got, want) = both(gpu, || Ok(x.astype(dtype)))?;
            assert_equal(&format!("{} to {dtype}", x.dtype()), &got, &want)?;
        }
    }
    // Elements of every dtype are moved as they are.
    let wide = Array::from_slice(&[1u64 << 63, 2, 3, 4, 5, 6], &[2, 3])?;
    let moved = with_stream(gpu, || wide.transpose_axes([1, 0])?.to_contiguous())?;
    assert_eq!(moved.to_vec::<u64>()?, [1 << 63, 4, 2, 5, 3, 6]);
    let complex = Complex32::new(1.0, -2.0);
    let filled = with_stream(gpu, || Array::full(&[3], complex))?;
    assert_eq!(filled.to_vec::<Complex32>()?, [complex; 3]);
    let chosen = with_stream(gpu, || {
        where_(&bools, &floats()?.slice(&[0, 0], &[2, 2], &[1, 1])?, Array::scalar(9.0f32))
    })?;
    assert_eq!(chosen.to_vec::<f32>()?[1], 9.0);
    Ok(())
}

#[test]
fn reductions_and_products() -> Result<()> {
    own_process!();
    let (gpu, _) = devices();
    let data: Vec<f32> = (0..120).map(|i| ((i * 37 % 41) as f32 - 20.0) / 8.0).collect();
    let x = Array::from_slice(&data, &[2, 3, 4, 5])?;
    let n = x.astype(Dtype::Int32);
    type Reduce = fn(&Array, Option<&[isize]>) -> Result<Array>;
    let table: [(&str, Reduce); 6] = functions!(reduce: sum prod min max all any);
    for (name, f) in table {
        for axes in [None, Some(&[1isize, 3][..]), Some(&[0]), Some(&[-1]), Some(&[1, 2])] {
            for x in [&x, &n, &x.transpose_axes([3, 1, 0, 2])?] {
                let (got, want) = both(gpu, || f(x, axes))?;
                assert_equal(&format!("{name} over {axes:?}"), &got, &want)?;
            }
        }
    }
    let mut with_nan = data.clone();
    with_nan[60] = f32::NAN;
    let (got, want) = both(gpu, || Array::from_slice(&with_nan, &[4, 30])?.max(1))?;
    assert_equal("max with NaN", &got, &want)?;

    // Row-major products as they are; others after a copy that the host makes.
    let a = x.reshape(&[6, 4, 5])?;
    let b = x.reshape(&[6, 5, 4])?;
    let before = stats().contiguous_copies;
    let (got, want) = both(gpu, || a.matmul(&b))?;
    assert_equal("matmul", &got, &want)?;
    assert_eq!(stats().contiguous_copies, before);
    let (got, want) = both(gpu, || a.matmul(&a.transpose_axes([0, 2, 1])?))?;
    assert_equal("matmul with a transpose", &got, &want)?;
    assert_eq!(stats().contiguous_copies - before, 1);
    Ok(())
}

#[test]
fn two_devices() -> Result<()> {
    own_process!();
    let (first, second) = devices();
    let x = with_stream(first, || floats()?.add(&floats()?))?;
    let y = with_stream(second, || floats()?.add(&floats()?))?;
    let error = with_stream(second, || x.add(&y)).expect_err("they do not mix").to_string();
    for part in [first.device.to_string(), second.device.to_string(), "copy(x, device)".into()] {
        assert!(error.contains(&part), "{error}");
    }
    let sum = x.copy_to(second.device)?.add(&y)?;
    assert_eq!(sum.device(), second.device);
    assert_equal("sum of both", &sum, &y.add(&y)?)?;
    Ok(())
}

/// What its own kernels lack runs elsewhere with the same results; how is counted. All memory comes back.
#[test]
fn fallback_and_memory() -> Result<()> {
    own_process!();
    let (first, second) = devices();
    let at_first = memory::active_on(Some(first.device))?;
    let at_second = memory::active_on(Some(second.device))?;
    let ways = |op: &str| {
        let all = op_counts().into_iter().filter(|c| c.device == first.device && c.op == op);
        all.fold((0, 0, 0), |n, c| (n.0 + c.native, n.1 + c.decomposed, n.2 + c.cpu))
    };
    let (sorts, adds) = (ways("sort"), ways("add"));
    {
        let x = with_stream(first, || floats()?.add(&floats()?))?;
        let sorted = with_stream(first, || x.sort(Some(1)))?;
        assert_equal("sort", &sorted, &floats()?.add(&floats()?)?.sort(Some(1))?)?;
        let there = sorted.copy_to(second.device)?;
        there.eval()?;
        assert!(memory::active_on(Some(first.device))? > at_first);
        assert!(memory::active_on(Some(second.device))? > at_second);
    }
    assert_eq!(memory::active_on(Some(first.device))?, at_first, "left over");
    assert_eq!(memory::active_on(Some(second.device))?, at_second, "left over");
    assert_eq!(ways("sort"), (sorts.0, sorts.1, sorts.2 + 1));
    assert_eq!(ways("add"), (adds.0 + 1, adds.1, adds.2));
    Ok(())
}

/// Compositions that are tried in vain are no failures of the work that nobody waits for.
#[test]
fn an_operation_that_falls_back_leaves_no_error() -> Result<()> {
    own_process!();
    let (first, _) = devices();
    let x = with_stream(first, || floats()?.add(&floats()?))?;
    let sorted = with_stream(first, || x.sort(Some(1)))?;
    ultramarine::async_eval(std::slice::from_ref(&sorted))?;
    ultramarine::synchronize(first)?;
    assert_equal("sort", &sorted, &floats()?.add(&floats()?)?.sort(Some(1))?)
}

#[test]
fn score_and_identities() {
    // SAFETY: all-zero is a valid value of both.
    let (mut devices, mut reported): ([DeviceIdentity; 3], BackendScore) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    for d in &mut devices {
        d.size = size_of::<DeviceIdentity>() as u32;
    }
    reported.size = size_of::<BackendScore>() as u32;
    reported.device_capacity = 3;
    reported.device_stride = size_of::<DeviceIdentity>() as u32;
    reported.devices = devices.as_mut_ptr();
    // SAFETY: the struct and its places are as the contract wants them.
    assert_eq!(unsafe { minimal::score()(&mut reported) }, status::OK);
    assert_eq!((reported.score, reported.device_count), (1, 2));
    assert_ne!(devices[0].uuid, devices[1].uuid);
    for (i, d) in devices[..2].iter().enumerate() {
        assert_eq!((d.known, inline_str(&d.name)), (identity::UUID, format!("Minimal {i}")));
    }
    assert_eq!(devices[2].known, 0);
}

/// Its own check, in C, under AddressSanitizer and UndefinedBehaviorSanitizer.
#[test]
fn sanitizers() {
    let scratch = workshop::Scratch::new("minimal-check").expect("a directory");
    let out = scratch.path().join("check");
    let mut command = minimal::cc();
    command.args(["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    for file in ["check.c", "minimal.c"] {
        command.arg(minimal::directory().join(file));
    }
    workshop::run(command.arg("-lm").arg("-o").arg(&out)).expect("it builds");
    workshop::run(&mut Command::new(&out)).expect("it finds nothing");
}

/// All the others again, in a process where what host and backend do is watched.
#[test]
fn under_validation() {
    let tests = module_path!().split_once("::").map_or("", |(_, inside)| inside);
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env("ULTRAMARINE_VALIDATE", "1").args([tests, "--nocapture", "--skip", "sanitizers"]);
    let output = command.args(["--skip", "under_validation"]).output().expect("it starts");
    let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    let ran = String::from_utf8_lossy(out).contains("test result: ok. 9 passed");
    assert!(output.status.success() && ran && !err.contains("validation:"), "{err}");
}

/// The guide shows pieces of real files: its blocks stand there, with gaps where they say `...`.
#[test]
fn the_guide_shows_real_code() {
    let root = minimal::directory().join("../../..");
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of the project");
    let guide = read("docs/write-a-backend.md");
    for (language, path, least) in [
        ("c", "examples/backends/minimal/minimal.c", 9),
        ("cpp", "crates/ultramarine-abi/tests/integration/plugins/in_cpp.cpp", 1),
        ("rust", "crates/ultramarine-abi/examples/in_rust.rs", 2),
        ("toml", "examples/backends/package/pyproject.toml", 1),
    ] {
        let source = read(path);
        let mut blocks = 0;
        for block in guide.split(&format!("```{language}\n")).skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let mut at = 0;
            for piece in block.split("  ...\n") {
                let found = source[at..].find(piece);
                at += found.unwrap_or_else(|| panic!("not in {path}:\n{piece}")) + piece.len();
            }
            blocks += 1;
        }
        assert!(blocks >= least, "{blocks} blocks of {language}");
    }
}
