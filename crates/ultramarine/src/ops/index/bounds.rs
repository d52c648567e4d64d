//! Bounds checks of index arrays, which read the indices on the host. They run under `ULTRAMARINE_VALIDATE=1`, where an
//! index out of bounds is an error. Otherwise no check runs: reads are clamped to the axis, and writes out of bounds
//! are dropped.

use crate::backend::{Exec, Operand};
use crate::error::{Error, Result};
use crate::ops::{Call, matmul::picks::Picks};
use crate::{dtype::Dtype, scalar::Scalar, shape};
use smallvec::SmallVec;
use std::sync::OnceLock;
use ultramarine_runtime::validation_layer;

/// Checks the index arrays of a call: its operands from 1 on, each of which addresses one of `axes` of operand 0. They
/// are read on the host, so the check waits for a device that runs ahead.
///
/// # Errors
/// [`Error::Index`] for the first index that is out of bounds.
#[inline]
pub(in crate::ops) fn validate(op: &str, exec: &Exec, call: &Call<'_>, axes: &[u8]) -> Result<()> {
    if !is_on() {
        return Ok(());
    }
    let source = call.descs[0].0;
    let each = axes.iter().enumerate().map(|(i, axis)| (i + 1, *axis, source[*axis as usize]));
    check(op, exec, call, each)
}

/// Checks the indices of a gathered product, which are its last operands. They address the first axis of operands 0 and
/// 1.
pub(in crate::ops) fn validate_picks(
    op: &str,
    exec: &Exec,
    call: &Call<'_>,
    picks: Picks,
) -> Result<()> {
    if !is_on() {
        return Ok(());
    }
    let given = [(picks.lhs, 0), (picks.rhs, 1)].into_iter().filter(|(there, _)| *there);
    let first = call.inputs.len() - picks.count();
    let each = given.enumerate().map(|(i, (_, of))| (first + i, 0, call.descs[of].0[0]));
    check(op, exec, call, each)
}

fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(validation_layer::is_enabled)
}

/// Checks operands that are indices. Each is given as its operand number, the axis that it addresses, and the size of
/// that axis.
#[cold]
fn check(
    op: &str,
    exec: &Exec,
    call: &Call<'_>,
    each: impl Iterator<Item = (usize, u8, usize)>,
) -> Result<()> {
    for (operand, axis, size) in each {
        if let Some(outside) = first_outside(exec, call.operand(operand), size as i128)? {
            return Err(Error::index(
                op,
                format!(
                    "index {outside} is out of bounds for axis {axis} with size {size}. \
                     Correct the index. (It is an error because of ULTRAMARINE_VALIDATE=1.)"
                ),
            ));
        }
    }
    Ok(())
}

/// The first element that is not a valid position along an axis of the given size.
fn first_outside(exec: &Exec, indices: Operand<'_>, size: i128) -> Result<Option<i128>> {
    let mut found = None;
    each(exec, indices, |index| {
        let outside = index >= size || index < -size;
        found = outside.then_some(index);
        !outside
    })?;
    Ok(found)
}

/// The elements of an array of integers, read on the host.
pub(super) fn integers(exec: &Exec, of: Operand<'_>) -> Result<SmallVec<[i128; 4]>> {
    let mut all = SmallVec::new();
    each(exec, of, |value| {
        all.push(value);
        true
    })?;
    Ok(all)
}

/// Calls `f` with the elements of an array of integers, read on the host, in row-major order, until it returns false.
fn each(exec: &Exec, of: Operand<'_>, mut f: impl FnMut(i128) -> bool) -> Result<()> {
    if of.shape.contains(&0) {
        return Ok(());
    }
    let value = exec.on_host(&of)?;
    value.buffer.ready()?;
    let width = of.dtype.size();
    let mut place: SmallVec<[usize; 4]> = SmallVec::from_elem(0, of.shape.len());
    for _ in 0..shape::size(of.shape) {
        let steps = place.iter().zip(&value.strides).map(|(i, stride)| *i as isize * stride);
        let mut bits = [0u8; 8];
        // SAFETY: the value has an element of `width` bytes, at most 8, at each position within the shape. The buffer
        // is in host memory, the device's writes were waited for, and `value` keeps the buffer alive.
        unsafe {
            let at = value.data().offset(steps.sum::<isize>() * width as isize);
            std::ptr::copy_nonoverlapping(at, bits.as_mut_ptr(), width);
        }
        let bits = u64::from_le_bytes(bits);
        let element = match of.dtype {
            Dtype::Uint64 => i128::from(bits),
            dtype => i128::from(Scalar::from_bits(dtype, bits).to_i64()),
        };
        if !f(element) {
            return Ok(());
        }
        for (at, n) in place.iter_mut().zip(of.shape).rev() {
            *at += 1;
            if *at < *n {
                break;
            }
            *at = 0;
        }
    }
    Ok(())
}
