//! Positions in sorted arrays, and positions of nonzero elements.

use crate::error::{Result, bail, ensure};
use crate::ops::rules::{batching::all_batched, builders::flat};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, elementwise::operand::Operand, no_derivatives, select::where_,
};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, placement::follow};
use ultramarine_abi::schema::{SearchAttrs, op};

/// The side of equal elements on which a value is inserted; see [`Array::searchsorted`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Before them: the number of elements that are less than the value.
    #[default]
    Left,
    /// After them: the number of elements that are less than or equal to the value.
    Right,
}

impl Side {
    /// Returns the side of a name: `"left"` or `"right"`.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a name other than `left` and `right`.
    pub fn from_name(name: &str) -> Result<Side> {
        match name {
            "left" => Ok(Side::Left),
            "right" => Ok(Side::Right),
            _ => {
                bail!("searchsorted", "Invalid side '{name}'. Expected 'left' or 'right'.")
            }
        }
    }
}

impl Array {
    /// Returns the indices at which `values` are inserted into this 1-d array so that it stays
    /// sorted: uint32, of the values' shape. The array is sorted in ascending order, NaN last. Both
    /// are compared in their promoted dtype. No derivative flows through it.
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
    /// [`crate::Error::Value`] when the array has another number of dimensions than one.
    pub fn searchsorted(&self, values: impl Operand, side: Side) -> Result<Array> {
        self.searched(&*values.beside(self)?, side)
    }

    fn searched(&self, values: &Array, side: Side) -> Result<Array> {
        const OP: &str = "searchsorted";
        if self.ndim() != 1 {
            let n = self.ndim();
            bail!(OP, "The sorted sequence must be 1-D but has {n} dimensions. Flatten it.");
        }
        self.computable(OP)?;
        values.computable(OP)?;
        let _home = follow(&[self, values]);
        let dtype = self.dtype().promote(values.dtype());
        if self.size() == 0 {
            return Array::zeros(values.shape(), Dtype::Uint32);
        }
        SearchSorted { right: side == Side::Right }.of(&self.astype(dtype), &values.astype(dtype))
    }

    /// Returns the indices of the elements that are not 0: an array for each dimension, int32
    /// (int64 for arrays too large for it), in row-major order. The sizes depend on the values, so
    /// this array is evaluated.
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
    /// [`crate::Error::Value`] for an array without dimensions, and while the array is traced.
    pub fn nonzero(&self) -> Result<Vec<Array>> {
        const OP: &str = "nonzero";
        ensure!(
            self.ndim() != 0,
            OP,
            "Expected at least 1 dimension, got a scalar. Reshape it to (1,)."
        );
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

attributes! {
    /// Positions of values in sorted rows. The operands have one dtype: rows `(b..., n)`, and values whose first axes
    /// are `b...`.
    #[derive(Clone, Debug)]
    pub(crate) struct SearchSorted {
        /// Inserts values after the elements that equal them.
        right: bool,
    }
}

impl SearchSorted {
    fn of(&self, rows: &Array, values: &Array) -> Result<Array> {
        let shape = Shape::from_slice(values.shape());
        Array::try_of(self.clone(), &[rows, values], shape, Dtype::Uint32)
    }

    /// A binary search of all values at once, as ordinary operations: a gather and a comparison
    /// for each bit of the length.
    fn bisected(&self, rows: &Array, values: &Array) -> Result<Array> {
        let axis = rows.ndim() - 1;
        let n = rows.shape()[axis];
        let mut line = Shape::from_slice(&values.shape()[..axis]);
        line.push(shape::size(&values.shape()[axis..]));
        let flat = values.reshape(&line)?;
        // The index dtype must hold twice the length.
        let index = if n < 1 << 31 { Dtype::Uint32 } else { Dtype::Int64 };
        let number = |v: usize| Array::scalar(v as i64).astype(index);
        // The number of elements known so far to come before each value.
        let mut passed = Array::zeros(&line, index)?;
        let mut step = n.checked_ilog2().map_or(0, |bits| 1usize << bits);
        while step > 0 {
            let next = passed.add(number(step))?;
            let last = next.minimum(number(n))?.subtract(number(1))?;
            let element = rows.gather_axis(&last, axis);
            let passes = match self.right {
                false => before(&element, &flat)?,
                true => before(&flat, &element)?.logical_not()?,
            };
            let passes = passes.logical_and(&next.less_equal(number(n))?)?;
            passed = where_(&passes, &next, &passed)?;
            step /= 2;
        }
        passed.astype(Dtype::Uint32).reshape(values.shape())
    }
}

/// True if sorting puts `a` before `b`. NaN comes last.
fn before(a: &Array, b: &Array) -> Result<Array> {
    let less = a.less(b)?;
    if !a.dtype().is_inexact() {
        return Ok(less);
    }
    less.logical_or(&b.isnan()?.logical_and(&a.isnan()?.logical_not()?)?)
}

impl Rules for SearchSorted {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(rows, a), (values, b)], _)) = node.of() else { return false };
        node.is_computable()
            && a == b
            && rows.split_last().is_some_and(|(n, batch)| *n > 0 && values.starts_with(batch))
            && node.gives(values, Dtype::Uint32)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, op::SEARCHSORTED, &SearchAttrs::new(self.right.into()), &[])
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        candidates.add(self.bisected(&d.inputs[0], &d.inputs[1]));
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let (rows, values) = (r.inputs[0], r.inputs[1]);
        let fits = rows.split_last().is_some_and(|(n, b)| *n > 0 && values.starts_with(b));
        ensure!(
            fits,
            self.name(),
            "Cannot search values of shape {} in rows of shape {}. Give both the same leading axes, and rows at least one element.",
            Show(values),
            Show(rows)
        );
        r.same(Shape::from_slice(values))
    }

    no_derivatives!();

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (None, Some(at)) = (v.axes[0], v.axes[1]) else {
            let operands = all_batched(v)?;
            return Ok((self.of(&operands[0], &operands[1])?, Some(0)));
        };
        // The rows are shared by all: the mapped axis becomes an axis of the values.
        let to = at.max(v.inputs[0].ndim() - 1);
        let values = v.inputs[1].moveaxis(at as isize, to as isize)?;
        Ok((self.of(&v.inputs[0], &values)?, Some(to)))
    }
}

/// The positions of the true elements of `hit`, whose running count is `rank`, in order. They are followed by `n`,
/// until there are as many as elements.
pub(crate) fn packed(hit: &Array, rank: &Array, n: usize, dtype: Dtype) -> Result<Array> {
    if n == 0 {
        return Array::zeros(&[0], dtype);
    }
    let number = |v: usize| Array::scalar(v as i64).astype(dtype);
    // Values without a match go to an extra position after the others.
    let place = where_(hit, &rank.astype(dtype).subtract(number(1))?, number(n))?;
    let from = Array::arange(0.0, n as f64, 1.0, dtype)?;
    let none = number(n).broadcast_to(&[n + 1])?;
    none.put_along_axis(&place, &from, Some(0))?.along(0, 0, n, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_finds_as_the_bisection_does() -> Result<()> {
        let n = f32::NAN;
        let rows = [-1.0f32, -0.0, 0.0, 2.5, 7.0, n, 1.0, 1.0, 1.0, 1.0, n, n];
        let rows = Array::from_slice(&rows, &[2, 6])?;
        let values = [0.0f32, n, 9.0, -3.0, 2.5, 1.0, 1.0, n, 0.5, 2.0, -0.0, 1.0];
        let values = Array::from_slice(&values, &[2, 3, 2])?;
        for dtype in [Dtype::Float32, Dtype::Float16, Dtype::Int8, Dtype::Bool, Dtype::Complex64] {
            let (rows, values) = (rows.astype(dtype).sort(Some(1))?, values.astype(dtype));
            for right in [false, true] {
                let search = SearchSorted { right };
                let found = search.of(&rows, &values)?.to_vec::<u32>()?;
                assert_eq!(found, search.bisected(&rows, &values)?.to_vec::<u32>()?, "{dtype:?}");
            }
        }
        Ok(())
    }
}
