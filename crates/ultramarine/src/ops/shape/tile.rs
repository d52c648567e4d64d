//! Repeated elements, and elements shifted around an axis.

use crate::array::Array;
use crate::error::{Result, ensure};
use crate::ops::shape::{
    axes::{Axes, Axis},
    concatenate::concatenate,
    reshape::out_of_bounds,
};
use crate::shape::{self, Shape};

impl Array {
    /// Repeats each element `repeats` times in succession along an axis (`..`: of the flattened
    /// array).
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 2], &[2])?;
    /// assert_eq!(x.repeat(2, 0)?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// assert_eq!(x.tile(&[2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Index`] for the axis; [`crate::Error::Value`] when the result is too large.
    pub fn repeat(&self, repeats: usize, axis: impl Into<Axis>) -> Result<Array> {
        let Some(axis) = axis.into().number() else {
            return self.flatten(0, -1)?.repeat(repeats, Some(0));
        };
        let at = out_of_bounds("repeat", axis, self.ndim())?;
        if repeats == 1 {
            return Ok(self.clone());
        }
        let mut shape = Shape::from_slice(self.shape());
        shape.insert(at + 1, repeats);
        let mut flat = Shape::from_slice(self.shape());
        flat[at] = flat[at].saturating_mul(repeats);
        shape::check("repeat", &flat)?;
        self.expand_dims([at as isize + 1])?.broadcast_to(&shape)?.reshape(&flat)
    }

    /// Repeats the whole array `reps[i]` times along axis `i`. Missing axes and missing counts at
    /// the front count as 1.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when the result is too large.
    pub fn tile(&self, reps: &[usize]) -> Result<Array> {
        let ndim = self.ndim().max(reps.len());
        let (lead, missing) = (ndim - self.ndim(), ndim - reps.len());
        let (mut cut, mut wide, mut flat) = (Shape::new(), Shape::new(), Shape::new());
        for i in 0..ndim {
            let n = if i < lead { 1 } else { self.shape()[i - lead] };
            let r = if i < missing { 1 } else { reps[i - missing] };
            if r != 1 {
                cut.push(1);
                wide.push(r);
            }
            cut.push(n);
            wide.push(n);
            flat.push(n.saturating_mul(r));
        }
        shape::check("tile", &flat)?;
        self.reshape(&cut)?.broadcast_to(&wide)?.reshape(&flat)
    }

    /// Shifts the elements by `shifts[i]` positions along `axes[i]`. Elements shifted beyond the
    /// end re-enter at the front. Several shifts of one axis add up. `..` rolls the flattened array
    /// by the sum of the shifts.
    ///
    /// # Errors
    /// [`crate::Error::Index`] for an axis; [`crate::Error::Value`] for fewer shifts than axes
    /// (unless there is one axis).
    pub fn roll(&self, shifts: &[isize], axes: impl Into<Axes>) -> Result<Array> {
        let Some(axes) = axes.into().named(self.ndim()) else {
            return self.flatten(0, -1)?.roll(shifts, 0)?.reshape(self.shape());
        };
        if let [axis] = axes[..] {
            return self.rolled(shifts, axis);
        }
        ensure!(
            shifts.len() >= axes.len(),
            "roll",
            "At least one shift value per axis is required, {} provided for {} axes. Pass a shift for each axis.",
            shifts.len(),
            axes.len()
        );
        let mut pairs = shifts.iter().zip(&axes);
        pairs.try_fold(self.clone(), |a, (shift, axis)| a.rolled(&[*shift], *axis))
    }

    /// The elements shifted along one axis by the sum of the shifts.
    fn rolled(&self, shifts: &[isize], axis: isize) -> Result<Array> {
        let at = shape::normalize_axis("roll", axis, self.ndim())?;
        let n = self.shape()[at];
        if n == 0 {
            return Ok(self.clone());
        }
        // A sum of remainders cannot overflow, while the sum of the shifts might.
        let part = |shift: &isize| shift.rem_euclid(n as isize) as usize;
        let shift = shifts.iter().fold(0, |sum, s| (sum + part(s)) % n);
        if shift == 0 {
            return Ok(self.clone());
        }
        let parts = [self.along(at, n - shift, n, 1)?, self.along(at, 0, n - shift, 1)?];
        concatenate(&parts, at as isize)
    }
}
