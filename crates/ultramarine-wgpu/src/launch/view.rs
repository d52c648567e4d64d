//! Tensors of commands in the form in which kernels address them: a [`View`] is a buffer with an
//! offset, and shape and strides in elements.

use super::Device;
use crate::dtype::Dtype;
use crate::memory::Block;
use crate::shader::vector::FOUR;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result, TensorRef, is_row_major};

/// A tensor of a command in the form in which kernels address it: its buffer, the offset of its
/// first element, shape and strides.
#[derive(Clone)]
pub struct View<'a> {
    /// The buffer.
    pub block: Arc<Block>,
    /// The first element's offset in the buffer, in elements.
    pub offset: i64,
    /// Bytes from that offset to the actual first element. It is not 0 only if bytes are viewed as
    /// another dtype.
    pub misaligned: u64,
    /// Element type.
    pub dtype: Dtype,
    /// Sizes; none is 0.
    pub shape: &'a [i64],
    /// Strides in elements; any sign, 0 for broadcast.
    pub strides: &'a [i64],
}

impl<'a> View<'a> {
    /// The view of a command's tensor.
    pub fn of(tensor: &TensorRef<'a, Device>) -> Result<Self> {
        let buffer = tensor.buffer().ok_or_else(|| Failure::invalid("a tensor has no buffer"))?;
        let dtype = Dtype::of(tensor.dtype()).ok_or_else(|| {
            Failure::invalid("a tensor has a dtype that this backend does not know")
        })?;
        let (offset, misaligned) =
            (tensor.byte_offset() / dtype.bytes(), tensor.byte_offset() % dtype.bytes());
        Ok(Self {
            block: buffer.0.clone(),
            offset: offset as i64,
            misaligned,
            dtype,
            shape: tensor.shape(),
            strides: tensor.strides(),
        })
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().map(|n| *n as u64).product()
    }

    /// True if there are no elements; the host sends no such tensors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> u64 {
        self.len() * self.dtype.bytes()
    }

    /// Bytes from the buffer's start to the first element.
    pub fn byte_offset(&self) -> u64 {
        self.offset as u64 * self.dtype.bytes() + self.misaligned
    }

    /// True if the buffer ends with a whole vector, so that kernels may read the last one. Buffers of other libraries may
    /// not.
    pub fn ends_with_vector(&self) -> bool {
        self.ends_with(FOUR as u64)
    }

    /// Likewise, for vectors of `width` elements.
    pub fn ends_with(&self, width: u64) -> bool {
        self.block.bytes().is_multiple_of(width * self.dtype.bytes())
    }

    /// True if the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_row_major(self.shape, self.strides)
    }

    /// Size and stride of each axis.
    pub fn axes(&self) -> impl Iterator<Item = (i64, i64)> + 'a {
        self.shape.iter().copied().zip(self.strides.iter().copied())
    }
}
