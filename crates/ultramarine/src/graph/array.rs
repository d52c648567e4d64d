//! The array: a handle to a node of the lazy graph.

use crate::backend::buffer::BufferRef;
use crate::dtype::{Dtype, Element};
use crate::error::{Error, Result, bail, ensure};
use crate::node::{Node, Value};
use crate::shape::{self, Shape, Show};
use crate::{device::Device, placement, stream::Stream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A lazy, immutable, n-dimensional array.
///
/// Operations build a graph. [`Array::eval`] runs the graph, as does any function that needs the
/// values. Cloning is cheap, because clones share the array. Arrays can be shared between threads.
///
/// ```
/// use ultramarine::Array;
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
/// let y = (&x * 2.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub struct Array {
    node: Arc<Node>,
}

impl Clone for Array {
    #[inline]
    fn clone(&self) -> Self {
        Array::from_node(self.node.clone())
    }
}

impl AsRef<Array> for Array {
    fn as_ref(&self) -> &Array {
        self
    }
}

impl Drop for Array {
    #[inline]
    fn drop(&mut self) {
        // If this is the node's only reference, its count of handles is not needed any more.
        if Arc::strong_count(&self.node) > 1 {
            self.node.handles.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Array {
    #[inline]
    pub(crate) fn from_node(node: Arc<Node>) -> Array {
        node.handles.fetch_add(1, Ordering::Relaxed);
        Array { node }
    }

    /// Makes the first handle of a node that has no other references yet.
    #[inline]
    pub(crate) fn of_new(node: Arc<Node>) -> Array {
        node.handles.store(1, Ordering::Relaxed);
        Array { node }
    }

    #[inline]
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Makes an array without a value. Its evaluation raises the error.
    #[cold]
    pub(crate) fn failed(error: Error, shape: Shape, dtype: Dtype) -> Array {
        let place = placement::place_value(Device::CPU);
        Array { node: Node::with_outcome(Err(Arc::new(error)), shape, dtype, place) }
    }

    /// Returns the array, or the error if the array could not be placed.
    pub(crate) fn placed(self) -> Result<Array> {
        match self.node.outcome() {
            Some(Err(error)) if self.node.op.is_given() => Err(Error::clone(error)),
            _ => Ok(self),
        }
    }

    #[inline]
    pub(crate) fn given(value: Value, shape: Shape, dtype: Dtype) -> Array {
        let place = placement::place_value(value.buffer.device());
        Array::given_at(place, value, shape, dtype)
    }

    /// Makes an array that has a value and belongs to `place`.
    pub(crate) fn given_at(
        place: placement::Place,
        value: Value,
        shape: Shape,
        dtype: Dtype,
    ) -> Array {
        Array { node: Node::with_outcome(Ok(value), shape, dtype, place) }
    }

    /// Makes an array over a buffer. `lay` fills in sizes and strides.
    #[inline]
    pub(crate) fn laid_out(
        buffer: BufferRef,
        offset: usize,
        dtype: Dtype,
        lay: impl FnOnce(&mut Shape, &mut shape::Strides),
    ) -> Array {
        let place = placement::place_value(buffer.device());
        Array { node: Node::laid_out((buffer, offset), dtype, place, lay) }
    }

    /// Returns true if both are handles of the same array, that is, of the result of the same
    /// operation. Equal elements are not enough.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::scalar(1.0f32);
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&Array::scalar(1.0f32)));
    /// ```
    #[must_use]
    pub fn is_same(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }

    /// Returns an array of shape `shape` with a copy of the slice's elements, in row-major order.
    /// The Rust type gives the dtype ([`Element`]).
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!((x.dtype(), x.shape()), (Dtype::Int32, &[2, 3][..]));
    /// assert!(Array::from_slice(&[1, 2, 3], &[2, 2]).is_err());
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when `shape` holds another number of elements,
    /// [`Error::Memory`] when there is no memory.
    pub fn from_slice<T: Element>(data: &[T], shape: &[usize]) -> Result<Array> {
        shape::check("array", shape)?;
        if shape::size(shape) != data.len() {
            bail!(
                "array",
                "{} elements do not fill shape {}. Pass {} elements, or another shape.",
                data.len(),
                Show(shape),
                shape::size(shape)
            );
        }
        // SAFETY: elements are plain data, readable as bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(data.as_ptr() as *const u8, size_of_val(data)) };
        Array::from_bytes(bytes, shape, T::DTYPE)
    }

    /// Returns an array over existing memory, on the device of the buffer, without a copy. `offset`
    /// is in bytes from the beginning of the buffer. `strides` are in elements, and may be negative
    /// or zero.
    ///
    /// # Errors
    /// [`Error::Value`] if shape, strides and `offset` lead outside the buffer, or the address is
    /// misaligned for the dtype.
    pub fn from_buffer(
        buffer: BufferRef,
        offset: usize,
        shape: &[usize],
        strides: &[isize],
        dtype: Dtype,
    ) -> Result<Array> {
        shape::check("array", shape)?;
        let fits = || -> Option<bool> {
            if shape.len() != strides.len() {
                return None;
            }
            if shape.contains(&0) {
                return Some(offset <= buffer.bytes());
            }
            if dtype.is_packed() && !shape::is_contiguous(shape, strides) {
                return None;
            }
            let offset = i64::try_from(offset).ok()?;
            let (first, end) = shape::byte_range(shape::axes(shape, strides), dtype.bits())?;
            let end = usize::try_from(offset.checked_add(end)?).ok()?;
            Some(offset.checked_add(first)? >= 0 && end <= buffer.bytes())
        };
        ensure!(
            fits() == Some(true),
            "array",
            "Shape {} with strides {strides:?} and offset {offset} reaches outside the buffer, which has {} bytes. Choose smaller sizes, strides or offset.",
            Show(shape),
            buffer.bytes()
        );
        if !(buffer.as_ptr() as usize + offset).is_multiple_of(alignment(dtype)) {
            bail!(
                "array",
                "The memory is not aligned for {dtype}. Copy it to a multiple of {} bytes.",
                alignment(dtype)
            );
        }
        // Replace the strides of an empty array, because they may have any value and could overflow
        // later.
        let mut own = shape::contiguous_strides(shape);
        if !shape.contains(&0) {
            for ((to, from), n) in own.iter_mut().zip(strides).zip(shape) {
                *to = if *n == 1 { *to } else { *from };
            }
        }
        let value = Value { buffer, offset, strides: own };
        Ok(Array::given(value, Shape::from_slice(shape), dtype))
    }

    /// Returns the sizes of the dimensions; empty for a 0-d array.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.node.shape
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.node.shape.len()
    }

    /// Returns the number of elements: the product of the sizes, 1 for a 0-d array.
    pub fn size(&self) -> usize {
        self.node.size()
    }

    /// Returns the element type.
    #[inline]
    pub fn dtype(&self) -> Dtype {
        self.node.dtype
    }

    /// Returns the size of an element in bytes; see [`Dtype::size`].
    pub fn itemsize(&self) -> usize {
        self.node.dtype.size()
    }

    /// Returns the size of all elements in bytes: `size() * itemsize()`.
    pub fn nbytes(&self) -> usize {
        self.node.bytes()
    }

    /// Returns the stream that computes this array. It was chosen when the array was made; see
    /// [`with_stream`](crate::with_stream).
    pub fn stream(&self) -> Stream {
        self.node.place.stream
    }

    /// Returns the device that computes this array: that of its [`stream`](Array::stream).
    pub fn device(&self) -> Device {
        self.node.place.stream.device
    }

    /// Returns true if evaluation has ended, in values or in an error. A device may still be
    /// computing the values; see [`Array::is_available`].
    pub fn is_evaluated(&self) -> bool {
        self.node.is_done()
    }

    /// Returns true if the values can be read without waiting: the array is evaluated, and its
    /// device has completed the work.
    pub fn is_available(&self) -> bool {
        self.node.value().is_some_and(|v| v.buffer.written().is_none())
    }
}

/// The alignment in bytes of an element of this dtype.
pub(crate) fn alignment(dtype: Dtype) -> usize {
    if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() }
}
