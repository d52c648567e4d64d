//! Makes arrays from elements in host memory. Threads of the host copy the elements.

use super::array::Array;
use crate::backend::{self, buffer::Buffer};
use crate::error::{Result, bail, ensure};
use crate::node::Value;
use crate::shape::{self, Shape, Show};
use crate::{dtype::Dtype, sync::lock};
use std::sync::Mutex;
use ultramarine_runtime::pool;

/// Bytes of the result that one thread copies at a time. One thread copies arrays that are smaller.
const PIECE: usize = 1 << 20;

impl Array {
    /// Returns an array of shape `shape` and element type `dtype` with a copy of the bytes of its
    /// elements, which are row-major and in native byte order. For bool, any byte but 0 is true.
    /// Several threads copy large arrays.
    ///
    /// # Errors
    /// [`crate::Error::Value`] if the number of bytes does not match shape and dtype,
    /// [`crate::Error::Memory`] if there is not enough memory.
    pub fn from_bytes(bytes: &[u8], shape: &[usize], dtype: Dtype) -> Result<Array> {
        made(bytes, shape, dtype, [1, 1], |source, target| {
            target.copy_from_slice(source);
            if dtype == Dtype::Bool {
                target.iter_mut().for_each(|b| *b = (*b != 0) as u8);
            }
        })
    }

    /// Returns an array of float32 from the bytes of float64 numbers, or of complex64 from pairs of
    /// them. The numbers are rounded. In all other respects it works like [`Array::from_bytes`].
    ///
    /// # Errors
    /// As [`Array::from_bytes`]; [`crate::Error::Value`] for another dtype.
    pub fn from_float64_bytes(bytes: &[u8], shape: &[usize], dtype: Dtype) -> Result<Array> {
        if !matches!(dtype, Dtype::Float32 | Dtype::Complex64) {
            bail!(
                "array",
                "Bytes of float64 can become float32 or complex64, not {dtype}. Convert the array with astype."
            );
        }
        made(bytes, shape, dtype, [2, 1], |source, target| {
            let (source, target) = (source.as_chunks::<8>().0, target.as_chunks_mut::<4>().0);
            for (from, to) in source.iter().zip(target) {
                *to = (f64::from_ne_bytes(*from) as f32).to_ne_bytes();
            }
        })
    }
}

/// Makes an array by calling `copy` for each piece. It converts each group of `from` bytes to `to`
/// bytes.
fn made(
    bytes: &[u8],
    shape: &[usize],
    dtype: Dtype,
    [from, to]: [usize; 2],
    copy: impl Fn(&[u8], &mut [u8]) + Sync,
) -> Result<Array> {
    shape::check("array", shape)?;
    let size = dtype.bytes_of(shape::size(shape));
    let wanted = size / to * from;
    ensure!(
        bytes.len() == wanted,
        "array",
        "{} bytes do not fill shape {} of {dtype}. Pass {wanted} bytes.",
        bytes.len(),
        Show(shape)
    );
    let buffer = Buffer::new(size, backend::host())?;
    // SAFETY: the buffer is new, so nothing else uses it, and has `size` bytes.
    let target = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), size) };
    if size <= PIECE {
        copy(bytes, target);
    } else {
        let parts: Vec<_> = (bytes.chunks(PIECE / to * from))
            .zip(target.chunks_mut(PIECE))
            .map(Mutex::new)
            .collect();
        pool::parallel_for(parts.len(), &|i| {
            let (source, target) = &mut *lock(&parts[i]);
            copy(source, target);
        });
    }
    let value = Value { buffer, offset: 0, strides: shape::contiguous_strides(shape) };
    Ok(Array::given(value, Shape::from_slice(shape), dtype))
}
