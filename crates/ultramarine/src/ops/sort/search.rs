//! Positions in sorted arrays, and positions of elements that are not zero.

use crate::{
    array::Array,
    dtype::Dtype,
    error::{Error, Result},
    ops::{rules::builders::flat, select::where_},
    placement::follow,
};

/// On which side of elements that equal it a value goes; see [`Array::searchsorted`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Before them: the number of elements that are less than the value.
    #[default]
    Left,
    /// Behind them: the number of elements that are less than the value or equal to it.
    Right,
}

impl Side {
    /// The side of a name.
    ///
    /// # Errors
    /// [`Error::Value`] for a name other than `left` and `right`.
    pub fn from_name(name: &str) -> Result<Side> {
        match name {
            "left" => Ok(Side::Left),
            "right" => Ok(Side::Right),
            _ => {
                let text = format!("Invalid side '{name}'. Expected 'left' or 'right'.");
                Err(Error::value("searchsorted", text))
            }
        }
    }
}

/// True if sorting puts `a` before `b`: NaN comes last.
fn before(a: &Array, b: &Array) -> Result<Array> {
    let less = a.less(b)?;
    if !a.dtype().is_inexact() {
        return Ok(less);
    }
    less.logical_or(&b.isnan()?.logical_and(&a.isnan()?.logical_not()?)?)
}

impl Array {
    /// The indices (uint32) at which `values` go into this array of one dimension, which is
    /// sorted in ascending order, NaN last, so that it stays sorted; the shape is that of the
    /// values. Both are compared in their promoted dtype. No derivative flows through it.
    ///
    /// A binary search of all values at once, as ordinary operations: a gather and a
    /// comparison for each bit of the length.
    ///
    /// ```
    /// use ultramarine::{Array, Side};
    /// let a = Array::from_slice(&[1, 2, 2, 4], &[4])?;
    /// let at = a.searchsorted(&Array::from_slice(&[0, 2, 5], &[3])?, Side::Right)?;
    /// assert_eq!(at.to_vec::<u32>()?, [0, 3, 4]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when the array has another number of dimensions than one.
    pub fn searchsorted(&self, values: &Array, side: Side) -> Result<Array> {
        const OP: &str = "searchsorted";
        if self.ndim() != 1 {
            let n = self.ndim();
            let text = format!("The sorted sequence must be 1-D but has {n} dimensions.");
            return Err(Error::value(OP, text));
        }
        self.computable(OP)?;
        values.computable(OP)?;
        let _home = follow(&[self, values]);
        let dtype = self.dtype().promote(values.dtype());
        let sorted = self.astype(dtype).stop_gradient();
        let values = values.astype(dtype).stop_gradient();
        let n = self.size();
        // Twice the length must fit.
        let index = if n < 1 << 31 { Dtype::Uint32 } else { Dtype::Int64 };
        let number = |v: usize| Array::scalar(v as i64).astype(index);
        // How many elements are known to come before each value.
        let mut passed = Array::zeros(values.shape(), index)?;
        let mut step = n.checked_ilog2().map_or(0, |bits| 1usize << bits);
        while step > 0 {
            let next = passed.add(&number(step))?;
            let last = next.minimum(&number(n))?.subtract(&number(1))?;
            let element = sorted.take(&last, Some(0))?;
            let passes = match side {
                Side::Left => before(&element, &values)?,
                Side::Right => before(&values, &element)?.logical_not()?,
            };
            let passes = passes.logical_and(&next.less_equal(&number(n))?)?;
            passed = where_(&passes, &next, &passed)?;
            step /= 2;
        }
        Ok(passed.astype(Dtype::Uint32))
    }

    /// Where the elements are not zero: an array of indices (int32; int64 for more elements than
    /// that counts) for each dimension, in row-major order. The sizes depend on the values, so this
    /// array is evaluated.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let a = Array::from_slice(&[0, 5, 7, 0], &[2, 2])?;
    /// let at = a.nonzero()?;
    /// assert_eq!(at[0].to_vec::<i32>()?, [0, 1]);
    /// assert_eq!(at[1].to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] for an array without dimensions, and while the array is traced.
    pub fn nonzero(&self) -> Result<Vec<Array>> {
        const OP: &str = "nonzero";
        if self.ndim() == 0 {
            return Err(Error::value(OP, "An array without dimensions has no indices."));
        }
        self.computable(OP)?;
        let _home = follow(&[self]);
        let dtype = if self.size() < 1 << 31 { Dtype::Int32 } else { Dtype::Int64 };
        let hit = flat(&self.astype(Dtype::Bool))?;
        let n = hit.size();
        let rank = hit.astype(dtype).cumsum(Some(0), false, true)?;
        let count = match n {
            0 => 0,
            _ => rank.along(0, n - 1, n, 1)?.astype(Dtype::Int64).item::<i64>()? as usize,
        };
        let mut left = packed(&hit, &rank, n, dtype)?.along(0, 0, count, 1)?;
        let mut out = Vec::with_capacity(self.ndim());
        for size in self.shape().iter().rev() {
            let size = Array::scalar((*size).max(1) as i64).astype(dtype);
            out.push(left.remainder(&size)?);
            left = left.floor_divide(&size)?;
        }
        out.reverse();
        Ok(out)
    }
}

/// The positions of the `true` ones among `hit`, whose running count is `rank`, in order; then `n`
/// until there are as many as elements.
pub(crate) fn packed(hit: &Array, rank: &Array, n: usize, dtype: Dtype) -> Result<Array> {
    if n == 0 {
        return Array::zeros(&[0], dtype);
    }
    let number = |v: usize| Array::scalar(v as i64).astype(dtype);
    // What is not hit goes to a place behind the others.
    let place = where_(hit, &rank.astype(dtype).subtract(&number(1))?, &number(n))?;
    let from = Array::arange(0.0, n as f64, 1.0, dtype)?;
    let none = number(n).broadcast_to(&[n + 1])?;
    none.put_along_axis(&place, &from, Some(0))?.along(0, 0, n, 1)
}
