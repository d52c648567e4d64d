//! Reductions composed of other reductions: counts, means, variances, medians.

use crate::error::{Result, bail, ensure};
use crate::ops::reduce::{axes_of, joined, kept, signed};
use crate::ops::rules::builders::{bin, compute_dtype, like, slice_axis, un, without_axis};
use crate::ops::{
    elementwise::unary::Unary,
    rules::shapeless::share,
    select::where_,
    shape::axes::{Axes, KeepDims, Reduced},
};
use crate::{array::Array, dtype::Dtype};
use ultramarine_abi::schema::{binary, unary};

/// How many elements are reduced to one.
fn count(a: &Array, axes: &[usize]) -> usize {
    axes.iter().map(|i| a.shape()[*i]).product()
}

impl Array {
    /// Returns the number of elements over `axes` (`..`: all) that are not 0: int32.
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn count_nonzero(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        let hit = bin(binary::NOT_EQUAL, self, &like(self, 0.0))?;
        hit.astype(Dtype::Int32).sum(axes)
    }

    /// Returns [`Array::min`] and [`Array::max`] over `axes`.
    ///
    /// # Errors
    /// As [`Array::min`].
    pub fn minmax(&self, axes: impl Into<Reduced<Axes>>) -> Result<(Array, Array)> {
        let axes = axes.into();
        Ok((self.min(axes.clone())?, self.max(axes)?))
    }

    /// The array in the dtype in which a statistic of it is computed. Each reader has its own cast, which evaluation
    /// fuses into the reader; a shared cast would be written to memory.
    fn widened(&self) -> Array {
        self.astype(compute_dtype(self.dtype().to_inexact()))
    }

    /// Returns the mean over `axes` (`..`: all): float32 for integers and bool, else the same
    /// dtype. The mean of no elements is NaN. Means of float16 and bfloat16 are computed in
    /// float32, since their sums may overflow.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(x.mean(0)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn mean(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        Ok(self.wide_mean("mean", axes.into())?.astype(self.dtype().to_inexact()))
    }

    fn wide_mean(&self, op: &str, over: Reduced<Axes>) -> Result<Array> {
        let named = axes_of(op, self, over.axes.named(self.ndim()).as_deref())?;
        let a = self.widened();
        let sum = a.sum(Reduced::new(&signed(&named), over.keepdims))?;
        sum.multiply(share(&a, &named, 0, sum.dtype()))
    }

    /// Returns the variance over `axes`: the sum of squared distances from the mean, divided by the
    /// number of elements minus `ddof` (0 for the population's, 1 for the sample's). The result is
    /// real, and float32 for integers. float16 and bfloat16 are computed in float32.
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn var(&self, axes: impl Into<Reduced<Axes>>, ddof: usize) -> Result<Array> {
        Ok(self.narrowed(self.wide_var("var", axes.into(), ddof)?))
    }

    /// Converts a statistic to the array's dtype if that is float16 or bfloat16.
    fn narrowed(&self, statistic: Array) -> Array {
        let dtype = self.dtype();
        if compute_dtype(dtype) == dtype { statistic } else { statistic.astype(dtype) }
    }

    fn wide_var(&self, op: &str, over: Reduced<Axes>, ddof: usize) -> Result<Array> {
        let named = axes_of(op, self, over.axes.named(self.ndim()).as_deref())?;
        let mean = self.wide_mean(op, KeepDims(&signed(&named)).into())?;
        let away = bin(binary::SUBTRACT, &self.widened(), &mean)?;
        let squares = if away.dtype().is_complex() {
            let shape = away.shape().into();
            let op = Unary { code: unary::ABS };
            let size = Array::of(op, &[&away], shape, Dtype::Float32);
            un(unary::SQUARE, &size)
        } else {
            un(unary::SQUARE, &away)
        };
        let sum = squares.sum(Reduced::new(&signed(&named), over.keepdims))?;
        sum.multiply(share(&away, &named, ddof, sum.dtype()))
    }

    /// Returns the standard deviation over `axes`, the square root of [`Array::var`].
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn std(&self, axes: impl Into<Reduced<Axes>>, ddof: usize) -> Result<Array> {
        Ok(self.narrowed(un(unary::SQRT, &self.wide_var("std", axes.into(), ddof)?)))
    }

    /// Returns the median over `axes`. For an even number of elements it is the mean of the middle two. It is NaN if an
    /// element, or a part of it, is NaN. Integers give float32.
    ///
    /// # Errors
    /// As [`Array::sum`]; [`crate::Error::Value`] for an empty array.
    pub fn median(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        let Reduced { axes, keepdims } = axes.into();
        let axes = axes.named(self.ndim());
        let named = axes_of("median", self, axes.as_deref())?;
        if named.is_empty() && axes.is_some() && self.ndim() > 0 {
            bail!("median", "No axes to take the median over. Name an axis, or leave `axis` out.");
        }
        let n = count(self, &named);
        ensure!(
            n != 0,
            "median",
            "Cannot take median along empty axis. Pass at least one element."
        );
        let a = self.astype(self.dtype().to_inexact());
        let sorted = joined(&a, &named)?.sort(Some(-1))?;
        let axis = sorted.ndim() - 1;
        let at = |i: usize| without_axis(&slice_axis(&sorted, axis, i, 1)?, axis);
        let mut middle = at(n / 2)?;
        if n.is_multiple_of(2) {
            // float16 and bfloat16 are added in float32, because the sum may exceed their range.
            let sum = at(n / 2 - 1)?.widened().add(middle.widened())?;
            middle = sum.multiply(like(&sum, 0.5))?.astype(a.dtype());
        }
        // A NaN sorts last. Add the last element times zero: this spoils the middle if the element is NaN, and changes
        // nothing if it is finite. Clamp infinities first, because they must not spoil it.
        let last = at(n - 1)?;
        if let Some(info) = crate::finfo(a.dtype()).filter(|_| a.dtype().is_floating()) {
            let low = bin(binary::MAXIMUM, &last, &like(&last, info.min))?;
            let finite = bin(binary::MINIMUM, &low, &like(&last, info.max))?;
            middle = middle.add(&finite.stop_gradient().multiply(like(&last, 0.0))?)?;
        }
        if a.dtype().is_complex() {
            // Complex numbers with a NaN in either part sort last, too.
            let nan = like(&last, f64::NAN);
            middle = where_(&bin(binary::NOT_EQUAL, &last, &last)?, &nan, &middle)?;
        }
        kept(&middle, self, &named, keepdims)
    }
}
