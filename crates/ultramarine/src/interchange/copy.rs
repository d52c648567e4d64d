//! Copies in host memory, also of misaligned elements.

use crate::shape::{self, Shape};
use crate::{
    array::Array, backend, backend::buffer::Buffer, dtype::Dtype, error::Result, node::Value,
};
use ultramarine_abi::dlpack::Checked;

/// Copies foreign elements to a row-major array in memory of its own.
///
/// # Safety
/// `first` is the first of elements with this layout, and no thread writes to them during the copy.
pub(super) unsafe fn of_host(
    first: *const u8,
    dims: &Shape,
    strides: &[isize],
    dtype: Dtype,
    checked: &Checked,
) -> Result<Array> {
    let packed = checked.contiguous || checked.elements == 0;
    let bytes = if packed { checked.bytes } else { checked.elements * dtype.size() };
    let buffer = Buffer::new(bytes, backend::host())?;
    // SAFETY: the elements are there, and the buffer is new and has room for them all.
    unsafe {
        if packed {
            std::ptr::copy_nonoverlapping(first, buffer.as_ptr(), bytes);
        } else {
            gather(first, dims, strides, dtype.size(), buffer.as_ptr());
        }
    }
    let value = Value { buffer, offset: 0, strides: shape::contiguous_strides(dims) };
    Ok(Array::given(value, dims.clone(), dtype))
}

/// Copies elements of `size` bytes to `to`, in row-major order. Returns the end of the written
/// bytes.
///
/// # Safety
/// The elements are valid, and `to` has room for all of them without overlap. Alignment is not
/// required.
unsafe fn gather(
    from: *const u8,
    dims: &[usize],
    strides: &[isize],
    size: usize,
    mut to: *mut u8,
) -> *mut u8 {
    let ([n, dims @ ..], [stride, strides @ ..]) = (dims, strides) else {
        // SAFETY: an element, and room for it.
        return unsafe {
            std::ptr::copy_nonoverlapping(from, to, size);
            to.add(size)
        };
    };
    for i in 0..*n {
        let at = from.wrapping_offset(i as isize * stride * size as isize);
        // SAFETY: the part of the elements with this index.
        to = unsafe { gather(at, dims, strides, size, to) };
    }
    to
}
