//! Typed views of tensors in host memory.

use crate::{
    dtype::{Dtype, Number},
    error::{Error, Result},
    tensor::{Show, Tensor, layout},
};
use std::fmt;
use std::marker::PhantomData;

/// The elements of an operand, for reading. Strides are in elements and may be negative or 0.
/// [`CpuCall::input`](crate::CpuCall::input) gives one.
#[derive(Clone)]
pub struct View<'a, T> {
    tensor: Tensor,
    life: PhantomData<&'a [T]>,
}

/// The elements of an output, for writing. [`CpuCall::output`](crate::CpuCall::output) gives one.
pub struct ViewMut<'a, T> {
    tensor: Tensor,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: a view is a shared slice with gaps, of elements that are Sync.
unsafe impl<T: Number> Send for View<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Number> Sync for View<'_, T> {}
// SAFETY: it is an exclusive slice with gaps, of elements that are Send.
unsafe impl<T: Number> Send for ViewMut<'_, T> {}
// SAFETY: nothing can be written through a shared reference.
unsafe impl<T: Number> Sync for ViewMut<'_, T> {}

/// Checks that a tensor's elements are `T`. Those of bool tensors are u8.
fn check<T: Number>(tensor: &Tensor) -> Result<()> {
    let dtype = tensor.dtype()?;
    if dtype == T::DTYPE || (dtype == Dtype::Bool && T::DTYPE == Dtype::Uint8) {
        return Ok(());
    }
    Err(Error::runtime(format!("A view of {} of a tensor of {dtype}.", T::DTYPE)))
}

layout!(impl<T: Number> View<'_, T>);
layout!(impl<T: Number> ViewMut<'_, T>);

impl<'a, T: Number> View<'a, T> {
    /// # Safety
    /// The tensor's elements are readable and unchanged for `'a`.
    pub(crate) unsafe fn new(tensor: Tensor) -> Result<Self> {
        check::<T>(&tensor)?;
        Ok(Self { tensor, life: PhantomData })
    }

    /// Returns the address of the element with index 0 in all axes.
    pub fn as_ptr(&self) -> *const T {
        self.tensor.data.cast()
    }

    /// Returns true if the elements are row-major without gaps.
    pub fn is_row_contiguous(&self) -> bool {
        self.tensor.is_row_contiguous()
    }

    /// Returns the elements as a slice if they are row-major without gaps, else `None`.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        if self.is_empty() {
            return Some(&[]);
        }
        // SAFETY: by the constructor's contract, that many elements are there. Any bytes are a
        // valid T.
        self.is_row_contiguous()
            .then(|| unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) })
    }

    /// Returns the element at an index in each axis; `None` if there is no such element.
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let fits =
            index.len() == self.shape().len() && index.iter().zip(self.shape()).all(|(i, n)| i < n);
        let at =
            || -> isize { index.iter().zip(self.strides()).map(|(&i, &s)| i as isize * s).sum() };
        // SAFETY: an element of the tensor, as the index is within its shape.
        fits.then(|| unsafe { self.as_ptr().offset(at()).read() })
    }

    /// Returns the same elements broadcast to a larger shape: they are repeated along axes of size
    /// 1 and along missing axes.
    ///
    /// # Errors
    /// An [`Error`] if they cannot be broadcast to the shape.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<View<'a, T>> {
        let refuse = || {
            Error::value(format!(
                "[broadcast_to] Shape {} cannot be broadcast to {}. Make sizes equal or 1, counted from the last axis.",
                Show(self.shape()),
                Show(shape)
            ))
        };
        let new = shape.len().checked_sub(self.shape().len()).ok_or_else(refuse)?;
        let mut tensor = Tensor { strides: vec![0; shape.len()], ..self.tensor.clone() };
        for (i, &n) in shape.iter().enumerate().skip(new) {
            match self.shape()[i - new] {
                same if same == n => tensor.strides[i] = self.strides()[i - new],
                1 => {}
                _ => return Err(refuse()),
            }
        }
        tensor.shape = shape.to_vec();
        Ok(Self { tensor, life: PhantomData })
    }

    /// Iterates over the elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = T> + 'a {
        self.rows().flatten()
    }

    /// Iterates over the rows: the last axis, for all indices of the other axes in row-major order.
    /// A tensor without axes is one row of one element.
    pub fn rows(&self) -> Rows<'a, T> {
        Rows { walk: Walk::new(&self.tensor), life: PhantomData }
    }
}

impl<'a, T: Number> ViewMut<'a, T> {
    /// # Safety
    /// The tensor's elements are readable and writable for `'a`. The view has exclusive access to
    /// them, and no two elements share memory.
    pub(crate) unsafe fn new(tensor: Tensor) -> Result<Self> {
        check::<T>(&tensor)?;
        Ok(Self { tensor, life: PhantomData })
    }

    /// Returns the address of the element with index 0 in all axes.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.tensor.data.cast()
    }

    /// Returns true if the elements are row-major without gaps, as in outputs that the host
    /// allocates.
    pub fn is_row_contiguous(&self) -> bool {
        self.tensor.is_row_contiguous()
    }

    /// Returns the elements as a slice if they are row-major without gaps, else `None`.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        if self.is_empty() {
            return Some(&mut []);
        }
        let n = self.len();
        // SAFETY: by the constructor's contract, that many elements are there, with exclusive
        // access. Any bytes are a valid T.
        self.is_row_contiguous()
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), n) })
    }

    /// Writes the element at an index in each axis. Returns false if there is no such element.
    pub fn set(&mut self, index: &[usize], value: T) -> bool {
        let fits =
            index.len() == self.shape().len() && index.iter().zip(self.shape()).all(|(i, n)| i < n);
        if fits {
            let at: isize = index.iter().zip(self.strides()).map(|(&i, &s)| i as isize * s).sum();
            // SAFETY: an element of the tensor, as the index is within its shape.
            unsafe { self.as_mut_ptr().offset(at).write(value) };
        }
        fits
    }

    /// Iterates over the rows for writing: the last axis, for all indices of the other axes in
    /// row-major order. A tensor without axes is one row of one element.
    pub fn rows_mut(&mut self) -> RowsMut<'_, T> {
        RowsMut { walk: Walk::new(&self.tensor), life: PhantomData }
    }

    /// Returns the tensor of the view.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }
}

impl<T: Number> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} {})", T::DTYPE, Show(self.shape()))
    }
}

impl<T: Number> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewMut({} {})", T::DTYPE, Show(self.shape()))
    }
}

/// Iterates over the first elements of a tensor's rows, without touching the memory.
struct Walk {
    data: *mut u8,
    item: usize,
    /// Size, stride and index of the outer axes.
    outer: Vec<(usize, isize, usize)>,
    length: usize,
    stride: isize,
    /// The number of remaining rows.
    left: usize,
}

impl Walk {
    fn new(tensor: &Tensor) -> Self {
        let axes = tensor.shape.len();
        let (length, stride) = match axes {
            0 => (1, 0),
            _ => (tensor.shape[axes - 1], tensor.strides[axes - 1]),
        };
        let outer = axes.saturating_sub(1);
        let zip = tensor.shape[..outer].iter().zip(&tensor.strides[..outer]);
        let empty = tensor.elements() == 0;
        Self {
            data: tensor.data.cast(),
            item: usize::from(tensor.dl.bits / 8),
            outer: zip.map(|(&n, &s)| (n, s, 0)).collect(),
            length,
            stride,
            left: if empty { 0 } else { tensor.shape[..outer].iter().product() },
        }
    }

    /// Returns the first element of the next row.
    fn next(&mut self) -> Option<*mut u8> {
        self.left = self.left.checked_sub(1)?;
        let here = self.data;
        for (n, stride, index) in self.outer.iter_mut().rev() {
            *index += 1;
            let bytes = *stride * self.item as isize;
            self.data = self.data.wrapping_offset(bytes);
            if *index < *n {
                break;
            }
            self.data = self.data.wrapping_offset(-bytes * *n as isize);
            *index = 0;
        }
        Some(here)
    }
}

/// The rows of a [`View`], each an iterator over values. [`View::rows`] makes it.
pub struct Rows<'a, T> {
    walk: Walk,
    life: PhantomData<&'a [T]>,
}

impl<'a, T: Number> Iterator for Rows<'a, T> {
    type Item = Row<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.walk.next()?.cast();
        Some(Row { at, stride: self.walk.stride, left: self.walk.length, life: PhantomData })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.left, Some(self.walk.left))
    }
}

/// The rows of a [`ViewMut`], each an iterator over elements. [`ViewMut::rows_mut`] makes it.
pub struct RowsMut<'a, T> {
    walk: Walk,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T: Number> Iterator for RowsMut<'a, T> {
    type Item = RowMut<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.walk.next()?.cast();
        Some(RowMut { at, stride: self.walk.stride, left: self.walk.length, life: PhantomData })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.left, Some(self.walk.left))
    }
}

/// A row for reading: an iterator over its values, or a slice by [`Row::as_slice`].
pub struct Row<'a, T> {
    at: *const T,
    stride: isize,
    left: usize,
    life: PhantomData<&'a [T]>,
}

impl<'a, T: Number> Row<'a, T> {
    /// Returns the remaining elements as a slice if they are adjacent, else `None`.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        // SAFETY: that many elements of the row, side by side.
        (self.stride == 1 || self.left <= 1)
            .then(|| unsafe { std::slice::from_raw_parts(self.at, self.left) })
    }
}

impl<T: Number> Iterator for Row<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: an element of the row: `left` counts them.
        let value = unsafe { self.at.read() };
        self.at = self.at.wrapping_offset(self.stride);
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Number> ExactSizeIterator for Row<'_, T> {}

/// A row for writing: an iterator over its elements, or a slice by [`RowMut::into_slice`].
pub struct RowMut<'a, T> {
    at: *mut T,
    stride: isize,
    left: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T: Number> RowMut<'a, T> {
    /// Returns the remaining elements as a slice if they are adjacent.
    ///
    /// # Errors
    /// The row itself, if they are not.
    pub fn into_slice(self) -> std::result::Result<&'a mut [T], Self> {
        if self.stride != 1 && self.left > 1 {
            return Err(self);
        }
        // SAFETY: that many adjacent elements of the row, to which nothing else has access.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.at, self.left) })
    }
}

impl<'a, T: Number> Iterator for RowMut<'a, T> {
    type Item = &'a mut T;

    fn next(&mut self) -> Option<&'a mut T> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: an element of the row (`left` counts them), handed out once.
        let element = unsafe { &mut *self.at };
        self.at = self.at.wrapping_offset(self.stride);
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Number> ExactSizeIterator for RowMut<'_, T> {}
