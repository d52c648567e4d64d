//! Tensors of commands in the form in which kernels address them: a [`View`] is an address, with
//! shape and strides in elements.

use super::{Device, Dtype};
use core::ops::Range;
use ultramarine_abi::dlpack::element_range;
use ultramarine_abi::helper::{Failure, Result, TensorRef, is_row_major};

/// A tensor of a command in the form in which kernels address it: the address of its first element,
/// shape and strides.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Address on the device of the first element.
    pub address: u64,
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
        let buffer = tensor.buffer().ok_or_else(|| Failure::invalid("a tensor without buffer"))?;
        let dtype = Dtype::of(tensor.dtype())
            .ok_or_else(|| Failure::invalid("a tensor of a dtype that is unknown here"))?;
        let address = buffer.address().wrapping_add(tensor.byte_offset());
        if !address.is_multiple_of(dtype.bytes()) {
            // A kernel that loads from there would lose the context.
            return Err(Failure::invalid(format!(
                "a tensor of {} at {address:#x}, which is no multiple of its {} bytes",
                dtype.name(),
                dtype.bytes()
            )));
        }
        Ok(Self { address, dtype, shape: tensor.shape(), strides: tensor.strides() })
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

    /// True if the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_row_major(self.shape, self.strides)
    }

    /// True if all indices refer to one element.
    pub fn is_scalar(&self) -> bool {
        self.shape.iter().zip(self.strides).all(|(n, stride)| *n == 1 || *stride == 0)
    }

    /// Distance between its lowest and its highest element, in elements.
    pub fn span(&self) -> u64 {
        span(self.shape.iter().copied().zip(self.strides.iter().copied()))
    }

    /// Returns the addresses of its elements.
    pub fn range(&self) -> Range<u64> {
        let axes = self.shape.iter().copied().zip(self.strides.iter().copied());
        let Some((low, high)) = element_range(axes) else { return 0..u64::MAX };
        let at = |element: i64| {
            self.address.wrapping_add_signed(element.wrapping_mul(self.dtype.bytes() as i64))
        };
        at(low)..at(high).wrapping_add(self.dtype.bytes())
    }

    /// True if the address of the first element is a multiple of `bytes`.
    pub fn is_aligned(&self, bytes: u64) -> bool {
        self.address.is_multiple_of(bytes)
    }
}

/// Distance between the lowest and the highest element, in elements, given the size and stride of each axis;
/// `u64::MAX` if it overflows.
pub fn span(axes: impl IntoIterator<Item = (i64, i64)>) -> u64 {
    element_range(axes).map_or(u64::MAX, |(low, high)| high.abs_diff(low))
}
