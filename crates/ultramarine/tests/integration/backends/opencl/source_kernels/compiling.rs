//! Errors of the compiler and of the call; kernels compiled once.

use super::*;
use crate::opencl_process;
use ultramarine::{Error, fast::Template};

#[test]
fn errors_of_the_compiler_count_the_users_lines() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "float v = x[0];\nfloat w = nowhere(v);\ny[0] = w;";
    let k = kernel("broken", &["x"], &["y"], body)?;
    let x = Array::scalar(1.0f32);
    // Twice: a failure is not taken for a kernel.
    for _ in 0..2 {
        let outputs = with_stream(gpu, || k.call(&[&x], &line(1)))?;
        let failed = outputs[0].eval().expect_err("it does not compile");
        assert!(matches!(failed.root(), Error::Runtime(_)), "{failed:?}");
        let text = failed.to_string();
        assert!(text.contains("[broken] The kernel does not compile as opencl-c"), "{text}");
        assert!(text.contains("broken:2:") && text.contains("nowhere"), "{text}");
        assert!(text.contains("  1 | float v = x[0];\n> 2 | float w = nowhere(v);\n"), "{text}");
    }
    // In the header.
    let k = kernel("head", &["x"], &["y"], "y[0] = 1;")?.header("\n\nint bad = ;\n");
    let text = error(with_stream(gpu, || k.call(&[&x], &line(1)))?[0].eval());
    assert!(text.contains("head_header:3:"), "{text}");
    // And what is right compiles after all of that.
    let k = kernel("broken", &["x"], &["y"], "y[0] = x[0];")?;
    assert_eq!(run(gpu, &k, &[&x], &line(1))?.to_vec::<f32>()?, [1.0]);
    Ok(())
}

#[test]
fn concurrent_first_uses() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let k = kernel("together", &["x"], &["y"], "y[0] = x[0] + 41;")?;
    let results: Vec<f32> = std::thread::scope(|scope| {
        let one = || {
            let stream = ultramarine::new_stream(gpu.device)?;
            let outputs = with_stream(stream, || k.call(&[&Array::scalar(1.0f32)], &line(1)))?;
            outputs[0].to_vec::<f32>().map(|v| v[0])
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        let results = threads.into_iter().map(|t| t.join().expect("no panic"));
        results.collect::<Result<Vec<_>>>()
    })?;
    assert_eq!(results, [42.0; 4]);
    Ok(())
}

#[test]
fn devices_without_the_language() -> Result<()> {
    opencl_process!();
    let x = Array::scalar(1.0f32);
    let k = Kernel::new("k", &["x"], &["y"])?.source("cuda-c", "").source("msl", "");
    let text = error(with_stream(default_stream(Device::CPU)?, || k.call(&[&x], &line(1))));
    assert_eq!(
        text,
        "[k] The kernel is in cuda-c, msl, but cpu:0 (backend cpu) takes: none. Add a source in one of these."
    );
    let Some(gpu) = gpu() else { return Ok(()) };
    let failed = with_stream(gpu, || k.call(&[&x], &line(1))).expect_err("it takes OpenCL C");
    assert!(matches!(failed, Error::Runtime(_)));
    let text = failed.to_string();
    assert!(text.contains("in cuda-c, msl, but gpu:0 (backend opencl) takes: opencl-c."), "{text}");
    Ok(())
}

#[test]
fn calls_that_do_not_fit_the_definition() -> Result<()> {
    opencl_process!();
    assert!(error(Kernel::new("k", &["x"], &[])).contains("at least one output"));
    for names in [["x", "x"], ["a b", "y"], ["um_x", "y"], ["1x", "y"], ["", "y"]] {
        assert!(matches!(Kernel::new("k", &names, &["out"]), Err(Error::Value(_))), "{names:?}");
    }
    let Some(gpu) = gpu() else { return Ok(()) };
    let k = kernel("k", &["x"], &["y"], "y[0] = x[0];")?;
    let x = Array::scalar(1.0f32);
    let call = |inputs: &[&Array], launch: &Launch| {
        let failed = with_stream(gpu, || k.call(inputs, launch)).expect_err("a wrong call");
        assert!(matches!(failed, Error::Value(_)), "{failed:?}");
        failed.to_string()
    };
    assert_eq!(
        call(&[], &line(1)),
        "[k] Expected `inputs` to have size 1 but got size 0. Pass an array for each of `input_names`."
    );
    let none = Launch::new([1, 1, 1], [1, 1, 1]);
    assert!(call(&[&x], &none).contains("to have size 1 but got size 0"));
    let two = line(1).output(&[1], Dtype::Float32);
    assert!(call(&[&x], &two).contains("to have size 1 but got size 2"));
    let empty = Launch::new([1, 1, 1], [0, 1, 1]).output(&[1], Dtype::Float32);
    assert!(call(&[&x], &empty).contains("(0, 1, 1) has no threads"));
    for name in ["x", "y", "um_t", "a b"] {
        call(&[&x], &line(1).template(name, Template::Int(1)));
    }
    call(&[&x], &line(1).template("T", Template::Int(1)).template("T", Template::Int(2)));
    let stored = Template::Dtype(Dtype::STORAGE[0]);
    let failed = with_stream(gpu, || k.call(&[&x], &line(1).template("T", stored)));
    assert!(matches!(&failed, Err(Error::Type(t)) if t.contains("view(uint8)")), "{failed:?}");
    let stored = Launch::new([1, 1, 1], [1, 1, 1]).output(&[1], Dtype::STORAGE[0]);
    assert!(matches!(with_stream(gpu, || k.call(&[&x], &stored)), Err(Error::Type(_))));
    Ok(())
}

#[test]
fn groups_that_are_too_large() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let k = kernel("large", &[], &["y"], "y[0] = 1;")?;
    let launch = Launch::new([1 << 20, 1, 1], [1 << 20, 1, 1]).output(&[1], Dtype::Float32);
    let outputs = with_stream(gpu, || k.call(&[], &launch))?;
    let failed = outputs[0].eval().expect_err("no device takes a million");
    assert!(matches!(failed.root(), Error::Value(_)), "{failed:?}");
    assert!(failed.to_string().contains("has 1048576 threads, but gpu:0"), "{failed}");
    let much = kernel("much", &[], &["y"], "y[0] = 1;")?.shared_memory(1 << 30);
    let outputs = with_stream(gpu, || much.call(&[], &line(1)))?;
    assert!(error(outputs[0].eval()).contains("1073741824 bytes of shared memory"));
    Ok(())
}

#[test]
fn the_whole_source_can_be_read() -> Result<()> {
    let k = kernel("seen", &["x"], &["y"], "y[0] = x[0];")?;
    let text = k.whole_source("opencl-c", &[&Array::scalar(1.0f32)], &line(1))?;
    assert!(
        text.contains("__kernel void um_kernel_seen(\n    __global const um_float32 *x,"),
        "{text}"
    );
    assert!(text.contains("#line 1 \"seen\"\ny[0] = x[0];\n}"), "{text}");
    assert!(
        error(k.whole_source("msl", &[&Array::scalar(1.0f32)], &line(1)))
            .contains("no source in msl")
    );
    Ok(())
}
