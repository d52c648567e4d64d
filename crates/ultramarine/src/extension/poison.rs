//! Detection of outputs that a primitive leaves unwritten. Their memory is filled with a pattern before the evaluation;
//! elements that still hold the pattern afterwards may be unwritten. The evaluation then runs once more with another
//! pattern, so that a value which happens to equal the pattern is not reported.

use super::call::Output;
use crate::backend::{self, Exec, Operand};
use crate::error::{Error, Result};
use crate::shape::{self, Shape};
use crate::{backend::buffer::Buffer, dtype::Dtype, node::Value};
use std::sync::atomic::{AtomicU8, Ordering};

/// 0: not read yet, 1: off, 2: on.
static POISON: AtomicU8 = AtomicU8::new(0);

/// Returns true if outputs of primitives are filled with a pattern before evaluations, to find elements that stay
/// unwritten. It is off unless the environment variable `ULTRAMARINE_POISON` is set to a value other than `0`, or
/// [`set_poison`] switched it on.
pub fn poison() -> bool {
    match POISON.load(Ordering::Relaxed) {
        0 => {
            let on =
                std::env::var_os("ULTRAMARINE_POISON").is_some_and(|v| v != "0" && !v.is_empty());
            set_poison(on);
            on
        }
        state => state == 2,
    }
}

/// Switches [`poison`] on or off for the process. This debug mode is slower, and does not reuse the memory of operands
/// for outputs.
pub fn set_poison(on: bool) {
    POISON.store(1 + on as u8, Ordering::Relaxed);
}

/// The pattern that outputs are filled with.
#[derive(Clone, Copy)]
pub(super) struct Pattern(u8);

/// The patterns of the two runs.
pub(super) const PATTERNS: [Pattern; 2] = [Pattern(0xa5), Pattern(0x5b)];

impl Pattern {
    /// Memory of the device of `exec`, filled.
    pub fn memory(&self, exec: &Exec, shape: &[usize], dtype: Dtype) -> Result<Value> {
        let bytes = dtype.bytes_of(shape::size(shape));
        let host = Buffer::new(bytes, backend::host())?;
        // SAFETY: new memory of that many bytes, which nothing else uses.
        unsafe { host.as_ptr().write_bytes(self.0, bytes) };
        let buffer = match exec.device.is_host() {
            true => host,
            false => backend::copy_buffer(&host, exec.device, Some(exec))?,
        };
        Ok(Value { buffer, offset: 0, strides: shape::contiguous_strides(shape) })
    }

    /// For each output, the elements that still hold the pattern, in the order of memory.
    pub fn left(
        &self,
        exec: &Exec,
        outputs: &[Output],
        results: &[(Shape, Dtype)],
    ) -> Result<Vec<Vec<bool>>> {
        let of = |(output, (shape, dtype)): (&Output, &(Shape, Dtype))| {
            if !output.own || shape.contains(&0) {
                return Ok(Vec::new());
            }
            let written = Operand { value: &output.value, shape, dtype: *dtype };
            let value = exec.on_host(&written)?;
            let bytes = value.buffer.bytes();
            // SAFETY: the bytes of an output, which were written or filled.
            let bytes = unsafe { std::slice::from_raw_parts(value.buffer.as_ptr(), bytes) };
            Ok(bytes.chunks(dtype.size()).map(|e| e.iter().all(|b| *b == self.0)).collect())
        };
        outputs.iter().zip(results).map(of).collect()
    }
}

/// Checks that no element kept the patterns of both runs, so that each element was written.
pub(super) fn check_written(name: &str, before: &[Vec<bool>], after: &[Vec<bool>]) -> Result<()> {
    for (i, (a, b)) in before.iter().zip(after).enumerate() {
        let left = a.iter().zip(b).filter(|(a, b)| **a && **b).count();
        if left > 0 {
            let text = format!(
                "left {left} of {} elements of output {i} unwritten. Write every element.",
                a.len()
            );
            return Err(Error::runtime(name, text));
        }
    }
    Ok(())
}
