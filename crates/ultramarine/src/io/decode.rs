//! Conversion of an array's bytes in a file to its bytes in memory.

use crate::dtype::Dtype;
use crate::error::Result;
use crate::shape::{self, Shape, Strides};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Bytes of an array that are read at a time. They fit the near caches.
pub(super) const PIECE: usize = 256 << 10;

/// Layout of an array's elements in a file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub dtype: Dtype,
    pub shape: Shape,
    /// The first axis varies fastest.
    pub fortran: bool,
    /// The elements are big-endian.
    pub swap: bool,
}

impl Layout {
    /// Little-endian elements in row-major order.
    pub fn rows(dtype: Dtype, shape: Shape) -> Layout {
        Layout { dtype, shape, fortran: false, swap: false }
    }

    pub fn strides(&self) -> Strides {
        if self.fortran {
            fortran_strides(&self.shape)
        } else {
            shape::contiguous_strides(&self.shape)
        }
    }

    /// Converts whole elements to their form in memory.
    pub fn finish(&self, elements: &mut [u8]) {
        if self.swap {
            swap_bytes(elements, if self.dtype.is_complex() { 4 } else { self.dtype.size() });
        }
        if self.dtype == Dtype::Bool {
            elements.iter_mut().for_each(|b| *b = (*b != 0) as u8);
        }
    }
}

/// Decodes stored bytes into the bytes of a part of an array. Both are whole numbers of blocks.
pub(super) type DecodeBlocks = dyn Fn(&[u8], &mut [u8]) + Send + Sync;

/// Conversion of a file's bytes to those of the array.
#[derive(Clone)]
pub(super) enum Decode {
    /// The bytes are the same.
    Same,
    /// Each `stored` bytes of the file decode to `made` bytes of the array. `decode` converts many blocks at once, in
    /// any order and on several threads. Neither number is 0.
    Blocks { stored: usize, made: usize, decode: Arc<DecodeBlocks> },
}

impl Decode {
    /// Bytes in the file for `bytes` bytes of an array; `None` if these are not whole blocks, or if the number
    /// overflows.
    pub fn stored(&self, bytes: usize) -> Option<u64> {
        match self {
            Decode::Same => Some(bytes as u64),
            Decode::Blocks { made, .. } if !bytes.is_multiple_of(*made) => None,
            Decode::Blocks { stored, made, .. } => {
                ((bytes / made) as u64).checked_mul(*stored as u64)
            }
        }
    }

    /// Bytes of an array that are decoded at a time, for which the file has at most `most` bytes; at least one block.
    pub fn piece(&self, most: usize) -> usize {
        match self {
            Decode::Same => most,
            Decode::Blocks { stored, made, .. } => (most / stored.max(made)).max(1) * made,
        }
    }

    /// Produces bytes of an array. `read` fills memory with bytes of the file.
    pub fn fill(
        &self,
        target: &mut [u8],
        scratch: &mut Vec<u8>,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Decode::Same => read(target),
            Decode::Blocks { stored, made, decode } => {
                let bytes = target.len() / made * stored;
                if scratch.len() < bytes {
                    scratch.resize(bytes, 0);
                }
                let read = read(&mut scratch[..bytes]);
                read.inspect(|()| decode(&scratch[..bytes], target))
            }
        }
    }
}

impl Debug for Decode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Decode::Same => f.write_str("Same"),
            Decode::Blocks { stored, made, .. } => write!(f, "Blocks({stored} to {made})"),
        }
    }
}

/// Strides of an array without gaps whose first axis varies fastest.
fn fortran_strides(shape: &[usize]) -> Strides {
    let mut next = 1;
    let step = |n: &usize| {
        let stride = next;
        next *= (*n).max(1) as isize;
        stride
    };
    shape.iter().map(step).collect()
}

/// Reverses the bytes of each unit of `unit` bytes.
fn swap_bytes(bytes: &mut [u8], unit: usize) {
    fn swap<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|unit| unit.reverse());
    }
    match unit {
        2 => swap::<2>(bytes),
        4 => swap::<4>(bytes),
        8 => swap::<8>(bytes),
        _ => {}
    }
}
