//! The distinct elements of an array.

use crate::error::{Result, bail};
use crate::ops::{rules::builders::flat, select::where_, sort::search::packed};
use crate::{array::Array, dtype::Dtype, placement::follow};

/// Results of [`Array::unique`]. `values`, `index` and `counts` have one axis and the same number
/// of elements.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The elements in ascending order, each once.
    pub values: Array,
    /// The position of each value's first occurrence in the flattened array: uint32.
    pub index: Array,
    /// The position in `values` of each element of the array, in the array's shape: uint32.
    pub inverse: Array,
    /// The number of occurrences of each value: int32.
    pub counts: Array,
}

/// The flattened array in sorted order.
struct Ordered {
    flat: Array,
    /// Indices that sort the array.
    order: Array,
    /// True if an element differs from the one before it.
    new: Array,
    /// The number of distinct elements up to each element: int32.
    rank: Array,
}

impl Ordered {
    /// NaN differs from NaN.
    fn of(a: &Array) -> Result<Ordered> {
        let flat = flat(a)?;
        let order = flat.argsort(Some(0))?;
        let sorted = flat.take(&order, Some(0))?;
        let n = flat.size();
        let first = Array::ones(&[n.min(1)], Dtype::Bool)?;
        let new = match n {
            0 => first,
            _ => {
                let rest = sorted.along(0, 1, n, 1)?.not_equal(&sorted.along(0, 0, n - 1, 1)?)?;
                crate::concatenate(&[first, rest], 0)?
            }
        };
        let rank = new.astype(Dtype::Int32).cumsum(Some(0), false, true)?;
        Ok(Ordered { flat, order, new, rank })
    }

    /// The first `size` different elements, then `fill`.
    fn unique(&self, a: &Array, size: usize, fill: Option<&Array>) -> Result<Unique> {
        let n = self.flat.size();
        if n == 0 {
            let none = Array::zeros(&[size], Dtype::Uint32)?;
            let values = fill.unwrap_or(&self.flat).astype(a.dtype()).broadcast_to(&[size])?;
            let inverse = Array::zeros(a.shape(), Dtype::Uint32)?;
            let counts = none.astype(Dtype::Int32);
            return Ok(Unique { values, index: none, inverse, counts });
        }
        // Position in the sorted array at which each value begins; n for values that do not exist.
        let end = Array::scalar(n as u32);
        let starts = packed(&self.new, &self.rank, n, Dtype::Uint32)?;
        let begin = |from: usize| -> Result<Array> {
            let (from, to) = (from.min(n), (from + size).min(n));
            let part = starts.along(0, from, to, 1)?;
            let rest = end.broadcast_to(&[size - (to - from)])?;
            crate::concatenate(&[part, rest], 0)
        };
        let (begins, ends) = (begin(0)?, begin(1)?);
        let there = begins.less(&end)?;
        let begins = where_(&there, &begins, Array::scalar(0u32))?;
        let index = self.order.take(&begins, Some(0))?;
        let values = self.flat.take(&index, Some(0))?;
        let values = match fill {
            Some(fill) => where_(&there, &values, fill.astype(a.dtype()))?,
            None => values,
        };
        let counts = where_(&there, &ends.subtract(&begins)?, Array::scalar(0u32))?;
        let most = Array::scalar(size.saturating_sub(1) as i64).astype(Dtype::Uint32);
        let rank = self.rank.subtract(Array::scalar(1i32))?.astype(Dtype::Uint32).minimum(&most)?;
        let inverse = Array::zeros(&[n], Dtype::Uint32)?
            .put_along_axis(&self.order, &rank, Some(0))?
            .reshape(a.shape())?;
        Ok(Unique { values, index, inverse, counts: counts.astype(Dtype::Int32) })
    }
}

impl Array {
    /// Returns the first `size` different elements of the flattened array, in ascending order.
    ///
    /// Because the size is given, the result can stay lazy. If there are more distinct elements, the largest are left
    /// out, and have `size - 1` in `inverse`. If there are fewer, the rest of `values` is `fill` (`None`: the smallest
    /// element), and the rest of `counts` is 0. NaN differs from NaN. Derivatives of `values` go to the first
    /// occurrence of each value.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let a = Array::from_slice(&[2, 1, 2, 3, 1], &[5])?;
    /// let u = a.unique(4, Some(&Array::scalar(0)))?;
    /// assert_eq!(u.values.to_vec::<i32>()?, [1, 2, 3, 0]);
    /// assert_eq!(u.counts.to_vec::<i32>()?, [2, 2, 1, 0]);
    /// assert_eq!(u.inverse.to_vec::<u32>()?, [1, 0, 1, 2, 0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a `fill` that does not have exactly one element, or if `fill` is `None`, the array
    /// is empty and `size` is not 0.
    pub fn unique(&self, size: usize, fill: Option<&Array>) -> Result<Unique> {
        const OP: &str = "unique";
        self.computable(OP)?;
        if let Some(fill) = fill.filter(|f| f.size() != 1) {
            let shape = crate::shape::Show(fill.shape());
            bail!(OP, "Fill value must have one element, but got shape {shape}. Pass a number.");
        }
        if fill.is_none() && self.size() == 0 && size > 0 {
            bail!(
                OP,
                "A fill value is required for an empty input with a non-zero size. Pass `fill_value`."
            );
        }
        let _home = follow(&[self]);
        let fill = fill.map(|f| f.reshape(&[0usize; 0])).transpose()?;
        Ordered::of(self)?.unique(self, size, fill.as_ref())
    }

    /// Returns all different elements of the flattened array, as [`Array::unique`] does. Their
    /// number depends on the values, so this array is evaluated.
    ///
    /// # Errors
    /// [`crate::Error::Value`] while the array is traced.
    pub fn unique_all(&self) -> Result<Unique> {
        self.computable("unique_all")?;
        let _home = follow(&[self]);
        let ordered = Ordered::of(self)?;
        let n = self.size();
        let count = match n {
            0 => 0,
            _ => ordered.rank.along(0, n - 1, n, 1)?.item::<i32>()? as usize,
        };
        ordered.unique(self, count, None)
    }
}
