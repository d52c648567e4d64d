//! Kernels in source form on the OpenCL backend: signatures, layouts, dtypes, errors, transforms.

mod arguments;
mod compiling;
mod dtypes;
mod transforms;

use crate::support::opencl::register_stream as gpu;
use ultramarine::fast::{Kernel, Launch};
use ultramarine::{Array, Device, Dtype, Result, Stream, default_stream, with_stream};

/// A kernel in OpenCL C.
pub fn kernel(name: &str, inputs: &[&str], outputs: &[&str], body: &str) -> Result<Kernel> {
    Ok(Kernel::new(name, inputs, outputs)?.source("opencl-c", body))
}

/// Calls a kernel of one output on the device.
pub fn run(gpu: Stream, kernel: &Kernel, inputs: &[&Array], launch: &Launch) -> Result<Array> {
    let outputs = with_stream(gpu, || kernel.call(inputs, launch))?;
    assert_eq!(outputs.len(), 1);
    outputs[0].eval()?;
    assert_eq!(outputs[0].value()?.buffer.device(), gpu.device);
    Ok(outputs[0].clone())
}

/// `n` threads for one float32 output of that size.
pub fn line(n: usize) -> Launch {
    Launch::new([n as u32, 1, 1], [64, 1, 1]).output(&[n], Dtype::Float32)
}

/// 0, 1, 2 ... in a shape.
pub fn count(shape: &[usize]) -> Result<Array> {
    let n: usize = shape.iter().product();
    Array::from_slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>(), shape)
}

/// The text of an error.
pub fn error<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    outcome.expect_err("an error").to_string()
}
