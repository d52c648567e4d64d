//! The array: a handle to a node of the lazy graph.

use crate::{
    backend,
    backend::buffer::{Buffer, BufferRef},
    device::Device,
    dtype::{Dtype, Element},
    error::{Error, Result},
    eval, interchange,
    node::{Inputs, Node, Value},
    ops::{self, Op},
    placement,
    scalar::Scalar,
    shape::{self, Shape, Show},
    stream::Stream,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A lazy, immutable, n-dimensional array.
///
/// Operations build a graph; [`Array::eval`] (or anything that needs the values)
/// runs it. Cloning is cheap: clones are the same array. Arrays may be shared
/// between threads.
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

impl Drop for Array {
    #[inline]
    fn drop(&mut self) {
        // Where this is the node's only reference, nobody will ask for its handles any more.
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

    #[inline]
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// A lazy array: `op` of `inputs`, placed as [`crate::placement`] says. The caller
    /// has inferred shape and dtype. Here, and only here, operations are kept from storage
    /// dtypes.
    pub(crate) fn lazy(op: Op, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Result<Array> {
        if dtype.is_storage() || inputs.iter().any(|a| a.dtype().is_storage()) {
            ops::copy::storage::admit(&op, inputs, dtype)?;
        }
        let place = placement::place(&op, inputs)?;
        let inputs: Inputs = inputs.iter().map(|a| a.node.clone()).collect();
        Ok(Array::from_node(Node::new(op, inputs, shape, dtype, place)))
    }

    /// A lazy array whose error, if it cannot be placed, is raised by whoever needs it.
    pub(crate) fn lazy_or_failed(op: Op, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Array {
        Array::lazy(op, inputs, shape.clone(), dtype)
            .unwrap_or_else(|error| Array::failed(error, shape, dtype))
    }

    /// An array that is nothing but an error, for whoever needs it.
    #[cold]
    pub(crate) fn failed(error: Error, shape: Shape, dtype: Dtype) -> Array {
        let place = placement::place_value(Device::CPU);
        Array { node: Node::with_outcome(Err(Arc::new(error)), shape, dtype, place) }
    }

    /// The error if the array could not be placed.
    pub(crate) fn placed(self) -> Result<Array> {
        match self.node.outcome() {
            Some(Err(error)) if matches!(self.node.op, Op::Given) => Err(Error::clone(error)),
            _ => Ok(self),
        }
    }

    #[inline]
    pub(crate) fn given(value: Value, shape: Shape, dtype: Dtype) -> Array {
        let place = placement::place_value(value.buffer.device());
        Array { node: Node::with_outcome(Ok(value), shape, dtype, place) }
    }

    /// An array over a buffer; `lay` fills in sizes and strides.
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

    /// Makes an array of a slice's elements, in row-major order.
    ///
    /// # Errors
    /// [`Error::Value`] when `shape` holds another number of elements,
    /// [`Error::Memory`] when there is no memory.
    pub fn from_slice<T: Element>(data: &[T], shape: &[usize]) -> Result<Array> {
        shape::check("array", shape)?;
        if shape::size(shape) != data.len() {
            return Err(Error::value(
                "array",
                format!("{} elements do not fill shape {}.", data.len(), Show(shape)),
            ));
        }
        // SAFETY: elements are plain data, readable as bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(data.as_ptr() as *const u8, size_of_val(data)) };
        Array::from_bytes(bytes, shape, T::DTYPE)
    }

    /// Makes an array of the bytes of its elements: row-major, native byte order.
    /// For bool, any non-zero byte is true.
    ///
    /// # Errors
    /// [`Error::Value`] when the number of bytes does not fit shape and dtype,
    /// [`Error::Memory`] when there is no memory.
    pub fn from_bytes(bytes: &[u8], shape: &[usize], dtype: Dtype) -> Result<Array> {
        shape::check("array", shape)?;
        let wanted = dtype.bytes_of(shape::size(shape));
        if bytes.len() != wanted {
            return Err(Error::value(
                "array",
                format!(
                    "{} bytes for shape {} of {dtype}, which takes {wanted}.",
                    bytes.len(),
                    Show(shape)
                ),
            ));
        }
        let buffer = Buffer::new(wanted, backend::host())?;
        // SAFETY: the buffer is new, so nobody else sees it, and has `wanted` bytes.
        let target = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), wanted) };
        target.copy_from_slice(bytes);
        if dtype == Dtype::Bool {
            target.iter_mut().for_each(|b| *b = (*b != 0) as u8);
        }
        let value = Value { buffer, offset: 0, strides: shape::contiguous_strides(shape) };
        Ok(Array::given(value, Shape::from_slice(shape), dtype))
    }

    /// An array over memory that exists already, on whatever device the buffer has.
    ///
    /// # Errors
    /// [`Error::Value`] when shape, strides (in elements) and `offset` (in bytes)
    /// lead outside of the buffer, or the address is misaligned for the dtype.
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
        if fits() != Some(true) {
            return Err(Error::value(
                "array",
                format!(
                    "Shape {} with strides {strides:?} and offset {offset} leaves a buffer of {} bytes.",
                    Show(shape),
                    buffer.bytes()
                ),
            ));
        }
        if !(buffer.as_ptr() as usize + offset).is_multiple_of(interchange::alignment(dtype)) {
            return Err(Error::value("array", format!("The memory is not aligned for {dtype}.")));
        }
        // Strides that lead nowhere may be anything, and later overflow.
        let mut own = shape::contiguous_strides(shape);
        if !shape.contains(&0) {
            for ((to, from), n) in own.iter_mut().zip(strides).zip(shape) {
                *to = if *n == 1 { *to } else { *from };
            }
        }
        let value = Value { buffer, offset, strides: own };
        Ok(Array::given(value, Shape::from_slice(shape), dtype))
    }

    /// A 0-d array of one value.
    pub fn scalar(value: impl Into<Scalar>) -> Array {
        ops::create::fill::filled(Shape::new(), value.into())
    }

    /// Sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.node.shape
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.node.shape.len()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.node.size()
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> Dtype {
        self.node.dtype
    }

    /// Bytes of an element, see [`Dtype::size`].
    pub fn itemsize(&self) -> usize {
        self.node.dtype.size()
    }

    /// Bytes of all elements.
    pub fn nbytes(&self) -> usize {
        self.node.bytes()
    }

    /// The stream that computes it.
    pub fn stream(&self) -> Stream {
        self.node.stream
    }

    /// The device that computes it.
    pub fn device(&self) -> Device {
        self.node.stream.device
    }

    /// Whether it has its values (or an error) already; a device may still be at work on them.
    pub fn is_evaluated(&self) -> bool {
        self.node.is_done()
    }

    /// Whether its values are there: nothing has to be waited for.
    pub fn is_available(&self) -> bool {
        self.node.value().is_some_and(|v| v.buffer.written().is_none())
    }

    /// Computes it, if that has not happened yet.
    ///
    /// # Errors
    /// Whatever fails on the way: [`Error::Memory`], [`Error::Runtime`] ...
    pub fn eval(&self) -> Result<()> {
        match self.node.value() {
            Some(value) => value.buffer.ready(),
            None => eval::eval(std::slice::from_ref(self)),
        }
    }

    /// The evaluated value.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn value(&self) -> Result<&Value> {
        self.eval()?;
        self.node.value().ok_or_else(|| Error::runtime("eval", "the array has no value"))
    }

    /// The evaluated value in memory that the host can address: its own, if it is that, else a
    /// copy that others share, which must not be written to. The second part says whether
    /// it is the array's own.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn host_value(&self) -> Result<(Value, bool)> {
        let value = self.value()?;
        if !value.buffer.as_ptr().is_null() || value.buffer.bytes() == 0 {
            return Ok((value.clone(), true));
        }
        Ok((crate::array::host_value(self)?, false))
    }

    /// Evaluates and returns a row-major array with the same elements (itself when
    /// it is one already), in host memory.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn to_contiguous(&self) -> Result<Array> {
        let value = self.value()?;
        if shape::is_contiguous(self.shape(), &value.strides) {
            return Ok(self.clone());
        }
        // Where the memory is, whatever device is the default one: nothing travels for this.
        let here = crate::default_stream(value.buffer.device())?;
        let copy = crate::with_stream(here, || ops::copy::contiguous(self));
        copy.eval()?;
        Ok(copy)
    }

    /// Calls `f` with the elements' bytes in row-major order (bool: 0 or 1 each).
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let array = self.to_contiguous()?;
        let value = crate::array::host_value(&array)?;
        // SAFETY: evaluated values are immutable, contiguous and kept by `value`.
        Ok(f(unsafe { std::slice::from_raw_parts(value.data(), array.nbytes()) }))
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`Error::Type`] when `T` is not the array's type; else as [`Array::eval`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::type_(
                "to_vec",
                format!(
                    "asked for {} of an array of {}; use astype first.",
                    T::DTYPE,
                    self.dtype()
                ),
            ));
        }
        self.with_bytes(|bytes| {
            let n = self.size();
            let mut out = Vec::<T>::with_capacity(n);
            // SAFETY: `bytes` are n elements of T, and `out` has room for them. Memory
            // from outside may hold any bytes, of which a bool can be but two.
            unsafe {
                let target = out.as_mut_ptr() as *mut u8;
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
                if T::DTYPE == Dtype::Bool {
                    let target = std::slice::from_raw_parts_mut(target, n);
                    target.iter_mut().for_each(|b| *b = (*b != 0) as u8);
                }
                out.set_len(n);
            }
            out
        })
    }

    /// The only element of an array of size 1.
    ///
    /// # Errors
    /// [`Error::Value`] for another size, [`Error::Type`] for another type.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.size() != 1 {
            return Err(Error::value(
                "item",
                format!("Array of shape {} has not one element.", Show(self.shape())),
            ));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    /// The only element of an array of size 1, as a [`Scalar`].
    ///
    /// # Errors
    /// [`Error::Value`] for another size; else as [`Array::eval`].
    pub fn item_scalar(&self) -> Result<Scalar> {
        if self.size() != 1 {
            return Err(Error::value("item", "item can only be called on arrays of size 1."));
        }
        if self.dtype() == Dtype::Float4E2m1fnX2 {
            let text =
                "an element of float4_e2m1fn_x2 is two numbers: convert with astype(float32).";
            return Err(Error::value("item", text));
        }
        self.with_bytes(|bytes| {
            let mut bits = [0u8; 8];
            bits[..bytes.len()].copy_from_slice(bytes);
            Scalar::from_bits(self.dtype(), u64::from_le_bytes(bits))
        })
    }
}

/// The array's value in host memory: its own, or a mirror.
///
/// # Errors
/// When the copy from the device fails.
pub(crate) fn host_value(array: &Array) -> Result<Value> {
    backend::on_device(array.value()?, backend::host(), None)
}
