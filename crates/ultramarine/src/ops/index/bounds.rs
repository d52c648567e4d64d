//! Index arrays under `ULTRAMARINE_VALIDATE=1`: what points outside is an error. Else nothing looks at
//! their values: reads are held to the axis, and writes beyond it are dropped.

use crate::backend::{Exec, Operand};
use crate::error::{Error, Result};
use crate::ops::Call;
use crate::{dtype::Dtype, scalar::Scalar, shape};
use smallvec::SmallVec;
use std::sync::OnceLock;
use ultramarine_runtime::validation_layer;

/// Checks the index arrays of a call, its operands from 1 on, of which each addresses one of `axes`
/// of operand 0. They are read on the host, so a device that runs ahead is waited for.
///
/// # Errors
/// [`Error::Index`] for the first index that is out of bounds.
#[inline]
pub(super) fn validate(op: &str, exec: &Exec, call: &Call<'_>, axes: &[u8]) -> Result<()> {
    static ON: OnceLock<bool> = OnceLock::new();
    if *ON.get_or_init(validation_layer::is_enabled) { check(op, exec, call, axes) } else { Ok(()) }
}

#[cold]
fn check(op: &str, exec: &Exec, call: &Call<'_>, axes: &[u8]) -> Result<()> {
    for (i, axis) in axes.iter().enumerate() {
        let size = call.descs[0].0[*axis as usize];
        if let Some(outside) = first_outside(exec, call.operand(i + 1), size as i128)? {
            return Err(Error::index(
                op,
                format!(
                    "index {outside} is out of bounds for axis {axis} with size {size}. \
                     (ULTRAMARINE_VALIDATE=1 makes this an error.)"
                ),
            ));
        }
    }
    Ok(())
}

/// The first element that is no position along an axis of a size.
fn first_outside(exec: &Exec, indices: Operand<'_>, size: i128) -> Result<Option<i128>> {
    if indices.shape.contains(&0) {
        return Ok(None);
    }
    let value = exec.on_host(&indices)?;
    value.buffer.ready()?;
    let width = indices.dtype.size();
    let mut place: SmallVec<[usize; 4]> = SmallVec::from_elem(0, indices.shape.len());
    for _ in 0..shape::size(indices.shape) {
        let steps = place.iter().zip(&value.strides).map(|(i, stride)| *i as isize * stride);
        let mut bits = [0u8; 8];
        // SAFETY: the value has an element of `width` bytes, at most 8, at each place within the shape;
        // the buffer is the host's, was waited for, and is kept by `value`.
        unsafe {
            let at = value.data().offset(steps.sum::<isize>() * width as isize);
            std::ptr::copy_nonoverlapping(at, bits.as_mut_ptr(), width);
        }
        let bits = u64::from_le_bytes(bits);
        let index = match indices.dtype {
            Dtype::Uint64 => i128::from(bits),
            dtype => i128::from(Scalar::from_bits(dtype, bits).to_i64()),
        };
        if index >= size || index < -size {
            return Ok(Some(index));
        }
        for (at, n) in place.iter_mut().zip(indices.shape).rev() {
            *at += 1;
            if *at < *n {
                break;
            }
            *at = 0;
        }
    }
    Ok(None)
}
