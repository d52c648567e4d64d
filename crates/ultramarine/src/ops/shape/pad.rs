//! Padding: with a constant, the edge, or mirror images.

use crate::error::{Error, Result, bail};
use crate::ops::rules::shapeless::shapeless;
use crate::ops::{
    create::fill, elementwise::operand::Operand, select::where_, shape::concatenate::concatenate,
};
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype, placement::follow};
use smallvec::SmallVec;

/// Values of the elements that [`Array::pad`] adds. The examples pad `[1, 2, 3]` by two elements on
/// either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// A constant: `[v, v, 1, 2, 3, v, v]`.
    Constant,
    /// The nearest element: `[1, 1, 1, 2, 3, 3, 3]`.
    Edge,
    /// Elements mirrored at the edge, which is not repeated: `[3, 2, 1, 2, 3, 2, 1]`.
    Reflect,
    /// Elements mirrored at the edge, which is repeated: `[2, 1, 1, 2, 3, 3, 2]`.
    Symmetric,
}

impl PadMode {
    /// Returns the mode of a name: `"constant"`, `"edge"`, `"reflect"` or `"symmetric"`.
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    pub fn from_name(name: &str) -> Result<PadMode> {
        Ok(match name {
            "constant" => PadMode::Constant,
            "edge" => PadMode::Edge,
            "reflect" => PadMode::Reflect,
            "symmetric" => PadMode::Symmetric,
            _ => {
                return Err(Error::Value(
                    format!(
                        "[pad] Invalid padding mode '{name}'. Use 'constant', 'edge', 'reflect' or 'symmetric'."
                    )
                    .into(),
                ));
            }
        })
    }
}

impl Array {
    /// Adds elements before and after each axis. `widths` has a pair (before, after) for each axis.
    /// The mode gives the values; `value` is that of [`PadMode::Constant`], converted to the
    /// array's dtype.
    ///
    /// # Errors
    /// [`Error::Value`] for another number of pairs, a value that cannot be broadcast,
    /// or mirrored padding of an empty axis.
    ///
    /// ```
    /// use ultramarine::{Array, PadMode};
    /// let x = Array::from_slice(&[1, 2], &[2])?;
    /// assert_eq!(x.pad(&[(1, 2)], PadMode::Constant, 0)?.to_vec::<i32>()?, [0, 1, 2, 0, 0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn pad(
        &self,
        widths: &[(usize, usize)],
        mode: PadMode,
        value: impl Operand,
    ) -> Result<Array> {
        self.padded(widths, mode, &*value.beside(self)?)
    }

    fn padded(&self, widths: &[(usize, usize)], mode: PadMode, value: &Array) -> Result<Array> {
        if widths.len() != self.ndim() {
            return Err(Error::Value(
                format!(
                    "[pad] Invalid number of padding sizes, {}, for array with {} dimensions. Pass a pair (before, after) for each dimension.",
                    widths.len(),
                    self.ndim()
                )
                .into(),
            ));
        }
        self.computable("pad")?;
        value.computable("pad")?;
        if widths.iter().all(|w| *w == (0, 0)) {
            return Ok(self.clone());
        }
        let shape: Shape = (self.shape().iter().zip(widths))
            .map(|(n, (low, high))| n.saturating_add(*low).saturating_add(*high))
            .collect();
        shape::check("pad", &shape)?;
        if mode != PadMode::Constant {
            let mut a = self.clone();
            for (axis, (low, high)) in widths.iter().enumerate() {
                a = a.mirrored(axis, *low, *high, mode)?;
            }
            return Ok(a);
        }
        let start: SmallVec<[isize; 8]> = widths.iter().map(|w| w.0 as isize).collect();
        let stop: SmallVec<[isize; 8]> =
            start.iter().zip(self.shape()).map(|(a, n)| a + *n as isize).collect();
        let value = value.astype(self.dtype());
        // Give the base memory of its own, because the elements are written into it.
        let base = match value.node().constant().filter(|_| value.ndim() == 0 && !shapeless()) {
            Some(number) => fill::filled(shape, number),
            None => value.broadcast_to(&shape)?,
        };
        base.slice_update(self, &start, &stop, &SmallVec::<[isize; 8]>::from_elem(1, self.ndim()))
    }

    /// Pads one axis from the axis' own elements.
    fn mirrored(&self, axis: usize, low: usize, high: usize, mode: PadMode) -> Result<Array> {
        let n = self.shape()[axis];
        if low + high == 0 {
            return Ok(self.clone());
        }
        if n == 0 {
            if mode == PadMode::Edge {
                let mut shape = Shape::from_slice(self.shape());
                shape[axis] = low + high;
                return Array::zeros(&shape, self.dtype());
            }
            let name = if mode == PadMode::Reflect { "reflect" } else { "symmetric" };
            bail!("pad", "Cannot pad empty axis {axis} using mode '{name}'. Use mode 'constant'.");
        }
        // Edge padding, and mirroring of a single element, repeat that element.
        if mode == PadMode::Edge || n == 1 {
            let edge = |from: usize, size: usize| {
                let mut shape = Shape::from_slice(self.shape());
                shape[axis] = size;
                self.along(axis, from, from + 1, 1)?.broadcast_to(&shape)
            };
            return concatenate(&[edge(0, low)?, self.clone(), edge(n - 1, high)?], axis as isize);
        }
        // A reflection does not repeat the edge element.
        let skip = (mode == PadMode::Reflect) as usize;
        let period = n - skip;
        if low <= period && high <= period {
            let left = self.along(axis, skip, skip + low, -1)?;
            let right = self.along(axis, n - skip - high, n - skip, -1)?;
            return concatenate(&[left, self.clone(), right], axis as isize);
        }
        // Images of the array alternate between forward and reversed. Two images are one cycle; the
        // result begins at the `low`-th element from the cycle's end.
        let cycle = 2 * period;
        let first = (cycle - low % cycle) % cycle;
        let _home = follow(&[self]);
        let number = |i: usize| Array::scalar(i as i64);
        let stop = (first + low + n + high) as f64;
        let phase = Array::arange(first as f64, stop, 1.0, Dtype::Int64)?;
        let phase = phase.remainder(number(cycle))?;
        let back = number(cycle + skip - 1).subtract(&phase)?;
        self.take(&where_(&phase.less(number(n))?, &phase, &back)?, Some(axis as isize))
    }
}
