//! The location of an evaluated array's elements.

use super::buffer::BufferRef;
use crate::shape::Strides;

/// The elements of an evaluated array: a strided view of a [`Buffer`](super::buffer::Buffer).
pub struct Value {
    /// The memory.
    pub buffer: BufferRef,
    /// Bytes from the buffer's start to the first element.
    pub offset: usize,
    /// Strides in elements.
    pub strides: Strides,
}

impl Clone for Value {
    #[inline]
    fn clone(&self) -> Value {
        // Copy the strides as one slice instead of element by element, because each operand of each
        // command is cloned.
        let strides = Strides::from_slice(&self.strides);
        Value { buffer: self.buffer.clone(), offset: self.offset, strides }
    }
}

impl Value {
    /// Address of the first element for the host.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.buffer.as_ptr().wrapping_add(self.offset)
    }
}
