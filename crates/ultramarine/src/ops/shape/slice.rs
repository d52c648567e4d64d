//! Views that pick elements: slices, diagonals, strided views and parts. Also the view of elements'
//! bytes as another type.

use crate::error::{Error, Result, bail, ensure};
use crate::ops::shape::{
    axes::{Axes, Axis, one},
    reshape::{out_of_bounds, view},
    view::View,
};
use crate::shape::{self, Shape, Show, Strides};
use crate::{array::Array, dtype::Dtype};
use smallvec::SmallVec;

impl Array {
    /// Returns the elements of Python's `x[start:stop:step, ...]`, with one triple for each axis.
    /// Negative positions count from the end; positions outside are clamped. With a negative step,
    /// "down to the first element" is any `stop` below `-n`, such as `isize::MIN`. [`Array::index`]
    /// has a shorter notation.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::arange(0.0, 6.0, 1.0, Dtype::Int32)?.reshape(&[2, 3])?;
    /// assert_eq!(x.slice(&[0, -2], &[2, 3], &[1, 1])?.to_vec::<i32>()?, [1, 2, 4, 5]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when the lists' lengths are not the number of axes, or a step
    /// is zero.
    pub fn slice(&self, start: &[isize], stop: &[isize], step: &[isize]) -> Result<Array> {
        let (view_, shape) = slice_view("slice", self.shape(), start, stop, step)?;
        if shape[..] == *self.shape() && step.iter().zip(&shape).all(|(s, n)| *s > 0 || *n <= 1) {
            return Ok(self.clone());
        }
        view(view_, self, shape)
    }

    /// Elements `start..stop` along one axis; both must be in range. With a negative step the
    /// elements come in reverse, beginning with the last.
    pub(crate) fn along(
        &self,
        axis: usize,
        start: usize,
        stop: usize,
        step: isize,
    ) -> Result<Array> {
        let n = self.ndim();
        let (mut first, mut steps) = (Strides::from_elem(0, n), Strides::from_elem(1, n));
        let mut last = Strides::from_elem(isize::MAX, n);
        // An empty slice is the same in both directions.
        let step = if start == stop { 1 } else { step };
        if step > 0 {
            (first[axis], last[axis]) = (start as isize, stop as isize);
        } else {
            first[axis] = stop as isize - 1;
            last[axis] = if start == 0 { isize::MIN } else { start as isize - 1 };
        }
        steps[axis] = step;
        self.slice(&first, &last, &steps)
    }

    /// Reverses the order of the elements along `axes` (`..`: all). No element is copied.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn flip(&self, axes: impl Into<Axes>) -> Result<Array> {
        let n = self.ndim();
        let axes = axes.into().named(n);
        let mut step = Strides::from_elem(1, n);
        match axes {
            None => step.iter_mut().for_each(|s| *s = -1),
            Some(axes) => {
                for a in axes {
                    step[out_of_bounds("flip", a, n)?] = -1;
                }
            }
        }
        let start: Strides = step.iter().map(|s| if *s < 0 { isize::MAX } else { 0 }).collect();
        let stop: Strides =
            step.iter().map(|s| if *s < 0 { isize::MIN } else { isize::MAX }).collect();
        self.slice(&start, &stop, &step)
    }

    /// Returns a view of shape `shape` over the elements in row-major order, from element `offset`
    /// on. `strides` are in elements and may be negative or zero, so elements may occur more than
    /// once.
    ///
    /// # Errors
    /// [`Error::Value`] when the view would reach outside of the elements.
    pub fn as_strided(&self, shape: &[usize], strides: &[isize], offset: usize) -> Result<Array> {
        shape::check("as_strided", shape)?;
        let inside = || -> Option<bool> {
            if shape.len() != strides.len() {
                return None;
            }
            if shape.contains(&0) {
                return Some(true);
            }
            let offset = i64::try_from(offset).ok()?;
            let (low, high) = shape::element_range(shape::axes(shape, strides))?;
            let highest = usize::try_from(offset.checked_add(high)?).ok()?;
            Some(offset.checked_add(low)? >= 0 && highest < self.size())
        };
        ensure!(
            inside() == Some(true),
            "as_strided",
            "Shape {} with strides {strides:?} and offset {offset} reaches outside the array, which has {} elements. Choose smaller sizes, strides or offset.",
            Show(shape),
            self.size()
        );
        // Strides that are never applied can have any value, and could overflow later.
        let idle = shape.contains(&0);
        let strides: Strides =
            strides.iter().zip(shape).map(|(s, n)| if idle || *n == 1 { 0 } else { *s }).collect();
        view(View::Strided { strides, offset }, self, Shape::from_slice(shape))
    }

    /// Returns the diagonals of the planes of two axes, as the last axis of the result. A positive
    /// `offset` gives diagonals above the main one, a negative one those below.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::arange(0.0, 6.0, 1.0, Dtype::Int32)?.reshape(&[2, 3])?;
    /// assert_eq!(x.diagonal(0, 0, 1)?.to_vec::<i32>()?, [0, 4]);
    /// assert_eq!(x.diagonal(1, 0, 1)?.to_vec::<i32>()?, [1, 5]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] with fewer than two axes or equal ones, [`Error::Index`] for an
    /// axis out of range.
    pub fn diagonal(
        &self,
        offset: isize,
        axis1: impl Into<Axis>,
        axis2: impl Into<Axis>,
    ) -> Result<Array> {
        let (axis1, axis2) = (one("diagonal", axis1)?, one("diagonal", axis2)?);
        let ndim = self.ndim();
        ensure!(
            ndim >= 2,
            "diagonal",
            "Array must have at least two dimensions, but got {ndim} dimensions. Reshape or expand it."
        );
        let a = shape::normalize_axis("diagonal", axis1, ndim)?;
        let b = shape::normalize_axis("diagonal", axis2, ndim)?;
        ensure!(
            a != b,
            "diagonal",
            "axis1 and axis2 cannot be the same axis, {a}. Pass two different axes."
        );
        let own = self.shape();
        // Outside of the plane all diagonals are empty.
        let offset = offset.clamp(-(own[a] as isize), own[b] as isize);
        let mut shape: Shape = (0..ndim).filter(|i| *i != a && *i != b).map(|i| own[i]).collect();
        shape.push(diagonal_len(own[a], own[b], offset));
        view(View::Diagonal { offset, a, b }, self, shape)
    }

    /// Returns the sums of the diagonals of the planes of two axes; see [`Array::diagonal`].
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// assert_eq!(Array::identity(3, Dtype::Float32)?.trace(0, 0, 1)?.item::<f32>()?, 3.0);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::diagonal`].
    pub fn trace(
        &self,
        offset: isize,
        axis1: impl Into<Axis>,
        axis2: impl Into<Axis>,
    ) -> Result<Array> {
        self.diagonal(offset, axis1, axis2)?.sum(-1)
    }

    /// Returns the elements' bits as another type. If the sizes of the dtypes differ, the last axis
    /// changes its size. As bool, a byte is true unless it is zero.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::from_slice(&[1.0f32, -1.0], &[2])?;
    /// assert_eq!(x.view(Dtype::Uint32)?.to_vec::<u32>()?, [0x3f80_0000, 0xbf80_0000]);
    /// assert_eq!(x.view(Dtype::Uint8)?.shape(), [8]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when the last axis' bytes are no multiple of the new size.
    pub fn view(&self, dtype: Dtype) -> Result<Array> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        if dtype == Dtype::Bool {
            return Ok(self.view(Dtype::Uint8)?.astype(Dtype::Bool));
        }
        let (from, to) = (self.itemsize(), dtype.size());
        let mut shape = Shape::from_slice(self.shape());
        if from != to {
            let Some(last) = shape.last_mut() else {
                bail!(
                    "view",
                    "Changing the type of a scalar is only allowed for types with the same size: {} has {from} bytes, {dtype} has {to}. Reshape it to (1,) to make it smaller.",
                    self.dtype()
                );
            };
            let bytes = *last * from;
            ensure!(
                bytes % to == 0,
                "view",
                "When viewing as a larger dtype, the size in bytes of the last axis must be a \
                 multiple of the requested type size, but {bytes} is no multiple of {to}. Pad or \
                 slice the last axis."
            );
            *last = bytes / to;
            shape::check("view", &shape)?;
        }
        Array::try_of(View::Bitcast, &[self], shape, dtype)
    }

    /// Returns the parts along an axis, without that axis: an array `(k, m, n)` gives k arrays `(m,
    /// n)` for axis 0. It undoes [`stack`](crate::stack).
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn unstack(&self, axis: impl Into<Axis>) -> Result<Vec<Array>> {
        let at = out_of_bounds("unstack", one("unstack", axis)?, self.ndim())?;
        (0..self.shape()[at]).map(|i| self.along(at, i, i + 1, 1)?.squeeze([at as isize])).collect()
    }

    /// Returns `sections` parts of equal size along an axis.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] when its size is not a multiple
    /// of `sections`.
    pub fn split(&self, sections: usize, axis: impl Into<Axis>) -> Result<Vec<Array>> {
        let axis = one("split", axis)?;
        let at = out_of_bounds("split", axis, self.ndim())?;
        ensure!(
            sections != 0,
            "split",
            "num_splits must be positive and non-zero but got 0. Pass a positive number."
        );
        let n = self.shape()[at];
        if !n.is_multiple_of(sections) {
            return Err(Error::Value(format!(
                "Array split does not result in sub arrays with equal size: attempting {sections} \
                 splits along axis {axis} for shape {}. Pass a divisor of the size, or indices to split at.",
                Show(self.shape())
            ).into()));
        }
        let part = n / sections;
        (0..sections).map(|i| self.along(at, i * part, (i + 1) * part, 1)).collect()
    }

    /// Returns the parts along an axis, cut before each of `indices`. Negative indices count from
    /// the end; indices outside are clamped. `k` indices give `k + 1` parts, of which some may be
    /// empty.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let parts = Array::arange(0.0, 5.0, 1.0, Dtype::Int32)?.split_at(&[1, 3], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn split_at(&self, indices: &[isize], axis: impl Into<Axis>) -> Result<Vec<Array>> {
        let at = out_of_bounds("split", one("split", axis)?, self.ndim())?;
        let n = self.shape()[at];
        let place = |i: isize| {
            (if i < 0 { i.saturating_add(n as isize) } else { i }).clamp(0, n as isize) as usize
        };
        let mut cuts = vec![0];
        cuts.extend(indices.iter().map(|i| place(*i)));
        cuts.push(n);
        // A cut before its predecessor gives an empty part.
        cuts.windows(2).map(|w| self.along(at, w[0], w[1].max(w[0]), 1)).collect()
    }
}

/// Length of a diagonal of a plane.
pub(crate) fn diagonal_len(rows: usize, columns: usize, offset: isize) -> usize {
    let skip = offset.unsigned_abs();
    if offset >= 0 {
        rows.min(columns.saturating_sub(skip))
    } else {
        rows.saturating_sub(skip).min(columns)
    }
}

/// The view of a slice with Python's positions, and its shape.
pub(crate) fn slice_view(
    op: &str,
    from: &[usize],
    start: &[isize],
    stop: &[isize],
    step: &[isize],
) -> Result<(View, Shape)> {
    ensure!(
        [start.len(), stop.len(), step.len()] == [from.len(); 3],
        op,
        "Invalid number of indices or strides for array with dimension {}. Pass a start, a stop and a step for each axis.",
        from.len()
    );
    let (mut first, mut steps) = (SmallVec::<[usize; 4]>::new(), Strides::new());
    let mut shape = Shape::new();
    for (i, &n) in from.iter().enumerate() {
        let (n, step) = (n as isize, step[i]);
        ensure!(
            step != 0,
            op,
            "The step of a slice must not be zero. Pass a positive or negative step."
        );
        let wrap = |p: isize| if p < 0 { p.saturating_add(n) } else { p };
        let (a, length) = if step > 0 {
            let (a, b) = (wrap(start[i]).clamp(0, n), wrap(stop[i]).clamp(0, n));
            (a, (b - a).max(0) as usize)
        } else {
            let (a, b) = (wrap(start[i]).clamp(-1, n - 1), wrap(stop[i]).clamp(-1, n - 1));
            (a, (a - b).max(0) as usize)
        };
        let length = length.div_ceil(step.unsigned_abs());
        shape.push(length);
        first.push(if length == 0 { 0 } else { a as usize });
        // A step that is never taken could overflow when multiplied by the stride.
        steps.push(if length <= 1 { 1 } else { step });
    }
    Ok((View::Slice { start: first, step: steps }, shape))
}
