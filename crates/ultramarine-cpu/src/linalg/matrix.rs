//! Matrices and vectors of a batch, and the memory in which they are decomposed.

use crate::kernel::View;
use ultramarine_linalg::{Scalar, Work, c32};

/// One matrix `(m, n)` or vector `(m)` of a tensor, with strides in elements.
#[derive(Clone, Copy)]
pub struct Plane {
    data: *mut u8,
    size: usize,
    /// Rows.
    pub m: usize,
    /// Columns; 1 for a vector.
    pub n: usize,
    row: isize,
    column: isize,
}

// SAFETY: sharing the address is harmless; accesses through it are unsafe blocks of their own.
unsafe impl Sync for Plane {}

impl Plane {
    /// The plane for a missing tensor.
    pub const NONE: Plane =
        Plane { data: std::ptr::null_mut(), size: 0, m: 0, n: 0, row: 0, column: 0 };

    /// The first plane of a tensor with `batch` leading axes.
    pub fn new(view: &View<'_>, batch: usize) -> Plane {
        let at = |of: &[i64], i: usize, none: i64| of.get(batch + i).copied().unwrap_or(none);
        Plane {
            data: view.data,
            size: view.dtype.size(),
            m: at(view.shape, 0, 1) as usize,
            n: at(view.shape, 1, 1) as usize,
            row: at(view.strides, 0, 0) as isize,
            column: at(view.strides, 1, 0) as isize,
        }
    }

    /// A matrix without gaps, row after row.
    pub fn dense<T>(data: *mut u8, m: usize, n: usize) -> Plane {
        Plane { data, size: size_of::<T>(), m, n, row: n as isize, column: 1 }
    }

    /// The part of `m` x `n` elements that begins at `(i, j)`.
    pub fn part(self, i: usize, j: usize, m: usize, n: usize) -> Plane {
        debug_assert!(i + m <= self.m && j + n <= self.n);
        let at = i as isize * self.row + j as isize * self.column;
        Plane { m, n, ..self.moved(at) }
    }

    /// The first element.
    pub fn data(&self) -> *mut u8 {
        self.data
    }

    /// Elements from a row to the next, and from a column to the next.
    pub fn strides(&self) -> [isize; 2] {
        [self.row, self.column]
    }

    /// True if the elements of a row are adjacent.
    pub fn has_rows(&self) -> bool {
        self.column == 1
    }

    /// The plane `by` elements further on.
    pub fn moved(self, by: isize) -> Plane {
        Plane { data: self.data.wrapping_offset(by * self.size as isize), ..self }
    }

    /// The transposed matrix.
    pub fn transposed(self) -> Plane {
        Plane { m: self.n, n: self.m, row: self.column, column: self.row, ..self }
    }

    /// The address of element `(i, j)`.
    pub fn place<T>(&self, i: usize, j: usize) -> *mut T {
        debug_assert_eq!(size_of::<T>(), self.size);
        (self.data as *mut T).wrapping_offset(i as isize * self.row + j as isize * self.column)
    }

    /// Copies it into columns without gaps.
    ///
    /// # Safety
    /// It is valid, of elements `T`.
    pub unsafe fn load<T: Copy>(&self, to: &mut [T]) {
        for (j, column) in to[..self.m * self.n].chunks_exact_mut(self.m.max(1)).enumerate() {
            for (i, to) in column.iter_mut().enumerate() {
                // SAFETY: by this function's contract.
                *to = unsafe { *self.place::<T>(i, j) };
            }
        }
    }

    /// Writes `f(i, j)` to each element.
    ///
    /// # Safety
    /// It is valid, of elements `T`, and no other thread's.
    pub unsafe fn store<T>(&self, f: impl Fn(usize, usize) -> T) {
        for i in 0..self.m {
            for j in 0..self.n {
                // SAFETY: by this function's contract.
                unsafe { *self.place::<T>(i, j) = f(i, j) };
            }
        }
    }
}

/// A task's memory, which is reused for one matrix after the other.
#[derive(Default)]
pub struct Scratch<T: Scalar> {
    /// The matrix.
    pub a: Vec<T>,
    /// The first factor, or the other operand.
    pub left: Vec<T>,
    /// The second factor.
    pub right: Vec<T>,
    /// Real values.
    pub reals: Vec<T::Norm>,
    /// Complex values.
    pub complex: Vec<c32>,
    /// Complex vectors.
    pub vectors: Vec<c32>,
    /// Rows.
    pub indices: [Vec<u32>; 2],
    /// The decompositions' own.
    pub work: Work,
}

/// Room for `n` elements with unspecified values.
pub fn resized<T: Copy + Default>(of: &mut Vec<T>, n: usize) -> Result<&mut [T], String> {
    if of.len() < n {
        let missing = n - of.len();
        of.try_reserve_exact(missing).map_err(|_| {
            format!("no memory for a copy of a matrix ({} bytes)", n * size_of::<T>())
        })?;
        of.resize(n, T::default());
    }
    Ok(&mut of[..n])
}
