//! Differences of neighbouring elements.

use crate::error::{Error, Result};
use crate::ops::shape::axes::{Axis, one};
use crate::{
    array::Array,
    dtype::Dtype,
    ops::rules::builders::bin,
    shape::{AxisRange, from_start},
};
use ultramarine_abi::schema::binary;

impl Array {
    /// Returns the differences of neighbouring elements along an axis, applied `n` times. Each time
    /// the axis becomes shorter by one element, unless it is empty. For bool the result is true
    /// where neighbours differ.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 4, 9, 16], &[4])?;
    /// assert_eq!(x.diff(1, -1)?.to_vec::<i32>()?, [3, 5, 7]);
    /// assert_eq!(x.diff(2, -1)?.to_vec::<i32>()?, [2, 2]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn diff(&self, n: usize, axis: impl Into<Axis>) -> Result<Array> {
        let axis = one("diff", axis)?;
        self.computable("diff")?;
        let at = from_start(axis, self.ndim()).ok_or_else(|| {
            let ndim = self.ndim();
            let text = format!("Axis {axis} is out of bounds for array with {ndim} dimensions.");
            Error::index("diff", format!("{text} {}", AxisRange(ndim)))
        })?;
        let minus = if self.dtype() == Dtype::Bool { binary::NOT_EQUAL } else { binary::SUBTRACT };
        let mut a = self.clone();
        for _ in 0..n.min(self.shape()[at]) {
            let size = a.shape()[at];
            a = bin(minus, &a.along(at, 1, size, 1)?, &a.along(at, 0, size - 1, 1)?)?;
        }
        Ok(a)
    }
}
