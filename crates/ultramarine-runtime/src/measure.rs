//! Measures the cost of a call of a backend, for the benchmarks.

use crate::backend::{Exec, Operand, value::Value};
use crate::{
    device::Device, devices::get, dtype::Dtype, error::Result, host_table, stream::default_stream,
};
use std::time::{Duration, Instant};
use ultramarine_abi::schema::{BinaryAttrs, binary, op};

/// Measures the time of `rounds` commands that add two one-element arrays on a device. The three
/// times are:
///
/// - the bare call of the table's function, without a command;
/// - the call, with making the command;
/// - the call, with making the command and looking up its plan.
///
/// # Errors
/// Those of an addition on the device.
pub fn submits(device: Device, rounds: u32) -> Result<[Duration; 3]> {
    let exec = Exec::new(get(device)?, default_stream(device)?)?;
    let values: Vec<Value> =
        (0..3).map(|_| exec.alloc(&[1], Dtype::Float32)).collect::<Result<_>>()?;
    let operand = |i: usize| Operand { value: &values[i], shape: &[1], dtype: Dtype::Float32 };
    let (inputs, outputs) = ([operand(0), operand(1)], [operand(2)]);
    let attributes = BinaryAttrs::new(binary::ADD);
    let plan = exec.plan(op::BINARY, &attributes, &inputs, &outputs)?;
    let time = |work: &dyn Fn() -> Result<()>| -> Result<Duration> {
        let start = Instant::now();
        (0..rounds).try_for_each(|_| work())?;
        let taken = start.elapsed();
        exec.settle()?;
        Ok(taken)
    };
    let kernels = plan.kernels;
    let bare = || {
        let mut error = std::ptr::null_mut();
        let Some(submit) = kernels.table.submit else { return Ok(()) };
        let (none, no_stream) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: no commands, so nothing is read.
        let code = unsafe { submit(kernels.handle, no_stream, none, 0, &mut error) };
        host_table::check("submit", code, error)
    };
    Ok([
        time(&bare)?,
        time(&|| exec.submit(&plan, "add", &inputs, &outputs, &[]))?,
        time(&|| exec.run(op::BINARY, &attributes, &inputs, &outputs, &[]))?,
    ])
}
