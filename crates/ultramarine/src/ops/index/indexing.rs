//! NumPy's indexing: reads `x[...]` and writes to it.
//!
//! Integers and slices give views. Index arrays are broadcast against each other. Their axes stand
//! where the first index array (or the first integer beside them) stood, or in front if a slice or
//! a new axis separates the index arrays.

use crate::error::{Error, Result, bail};
use crate::ops::index::{
    entry::{Entries, Index},
    gather::gather,
    resolve::{Resolved, viewed, written},
};
use crate::ops::rules::shapeless::{SymbolicSize, reshaped, shapeless};
use crate::ops::{elementwise::operand::Operand, rules::builders::bin, select::where_};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype, placement::follow, scalar::Scalar};
use ultramarine_abi::schema::{binary, scatter as kind};

/// How an update combines with the existing elements; see [`Array::index_update`]. Repeated
/// positions are all applied, except for [`Update::Set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Replaces the element. If positions repeat, the last update wins.
    Set,
    /// Adds.
    Add,
    /// Subtracts.
    Subtract,
    /// Multiplies.
    Multiply,
    /// Multiplies by the reciprocal. For integers the reciprocal is truncated, as in MLX, so that
    /// of 2 is 0.
    Divide,
    /// Keeps the smaller value.
    Minimum,
    /// Keeps the larger value.
    Maximum,
}

impl Update {
    /// The scatter's code, and the updates in the form that the scatter takes.
    pub(super) fn scatter(self, updates: Array) -> Result<(u32, Array)> {
        let dtype = updates.dtype();
        Ok(match self {
            Update::Set => (kind::SET, updates),
            Update::Add => (kind::SUM, updates),
            Update::Subtract => {
                let zero = Array::scalar(Scalar::from_i64(dtype, 0));
                (kind::SUM, bin(binary::SUBTRACT, &zero, &updates)?)
            }
            // The updates of a division are already reciprocals here.
            Update::Multiply | Update::Divide => (kind::PROD, updates),
            Update::Minimum => (kind::MIN, updates),
            Update::Maximum => (kind::MAX, updates),
        })
    }

    /// Combines updates elementwise with old elements of the same shape and dtype.
    fn combine(self, old: &Array, updates: Array) -> Result<Array> {
        let (code, updates) = self.scatter(updates)?;
        let code = match code {
            kind::SET => return updates.broadcast_to(old.shape()),
            kind::SUM => binary::ADD,
            kind::PROD => binary::MULTIPLY,
            kind::MIN => binary::MINIMUM,
            _ => binary::MAXIMUM,
        };
        bin(code, old, &updates)
    }
}

/// Fits an update to shape `shape`: superfluous leading axes of size 1 are dropped, the other axes
/// are broadcast.
fn fitted(updates: &Array, shape: &[usize]) -> Result<Array> {
    let extra = updates.ndim().saturating_sub(shape.len());
    let ones = updates.shape()[..extra].iter().take_while(|n| **n == 1).count();
    updates.reshape(&updates.shape()[ones..])?.broadcast_to(shape)
}

impl Array {
    /// Returns `x[entries]`, with entries as [`index!`](crate::index!) writes them: a view for
    /// integers and slices, a copy for index arrays.
    ///
    /// Index arrays out of range are clamped; under `ULTRAMARINE_VALIDATE=1` they fail with
    /// [`Error::Index`] at evaluation. A mask as the only entry selects the elements at its true
    /// positions; one axis replaces the mask's axes. The mask is evaluated, because it decides the
    /// shape.
    ///
    /// # Errors
    /// [`Error::Value`] for too many entries; for boolean masks that do not fit, stand beside other
    /// entries or are traced; and for index arrays that are not integers or cannot be broadcast.
    /// [`Error::Index`] for an integer out of range.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype, index};
    /// let x = Array::arange(0.0, 12.0, 1.0, Dtype::Int32)?.reshape(&[3, 4])?;
    /// assert_eq!(x.index(index![-1])?.to_vec::<i32>()?, [8, 9, 10, 11]);
    /// assert_eq!(x.index(index![.., 0..4; 2])?.to_vec::<i32>()?, [0, 2, 4, 6, 8, 10]);
    /// assert_eq!(x.index(index![x.greater(8)?])?.to_vec::<i32>()?, [9, 10, 11]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn index(&self, entries: impl Entries) -> Result<Array> {
        self.indexed(entries.entries())
    }

    fn indexed(&self, entries: &[Index]) -> Result<Array> {
        if let Some(view) = viewed(self, entries) {
            return Ok(view);
        }
        let _home = follow(&[self]);
        if let [Index::Mask(mask)] = entries {
            return self.masked(mask);
        }
        if let [Index::Array(positions)] = entries
            && self.ndim() > 0
        {
            return self.take(positions, 0);
        }
        let plan = Resolved::new(self.shape(), entries, "gather")?;
        let part = plan.sliced(self, true)?;
        let shape = plan.result(part.shape());
        if plan.arrays.is_empty() {
            let sizes =
                plan.order.iter().map(|o| o.map_or(SymbolicSize::Fixed(1), SymbolicSize::own));
            return if part.shape() == &shape[..] {
                Ok(part)
            } else {
                reshaped(&part, sizes.collect(), &[])
            };
        }
        if let Some(axis) = plan.axes.iter().find(|a| part.shape()[**a as usize] == 0)
            && shape::size(plan.index_shape()) > 0
        {
            if shape::size(&shape) == 0 {
                return part.reshape(&shape);
            }
            return Err(Error::value(
                "gather",
                format!(
                    "Axis {axis} has no elements to index. Pass no indices, or index another axis."
                ),
            ));
        }
        if let ([positions], true) = (&plan.arrays[..], plan.ints.is_empty()) {
            return part.take(positions, Some(plan.axes[0] as isize))?.reshape(&shape);
        }
        let out = gather(&part, &plan.arrays, &plan.axes)?;
        // Move the axes from (index, other axes) to (axes before, index, axes after), then drop the
        // axes of size 1 that arrays and integers leave.
        let k = plan.index_shape().len();
        let (before, after) = plan.kept();
        let gone = (0..self.ndim()).filter(|a| !before.contains(a) && !after.contains(a));
        let order: Vec<isize> = (before.iter().map(|a| k + a))
            .chain(0..k)
            .chain(after.iter().map(|a| k + a))
            .chain(gone.map(|a| k + a))
            .map(|a| a as isize)
            .collect();
        out.transpose_axes(&order)?.reshape(&shape)
    }

    /// Returns the array after `x[entries] = updates`, or `x.at[entries].add(updates)` and the like
    /// for another `kind`. The updates are broadcast to the shape that [`Array::index`] gives, and
    /// converted to the array's dtype. The array itself does not change; if nothing else needs it,
    /// its memory is reused.
    ///
    /// Updates by index arrays out of range are dropped; under `ULTRAMARINE_VALIDATE=1` they fail
    /// with [`Error::Index`] at evaluation. A mask as the only entry takes one update for all its
    /// true positions, or one for each, in order. If there are too few, evaluation fails with
    /// [`Error::Runtime`].
    ///
    /// # Errors
    /// As [`Array::index`], except for masks as the only entry; [`Error::Value`] when the updates
    /// cannot be broadcast or a mask does not fit.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype, Update, index};
    /// let x = Array::zeros(&[2, 3], Dtype::Float32)?;
    /// let y = x.index_update(index![0, ..], 1.5, Update::Set)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.5, 1.5, 1.5, 0.0, 0.0, 0.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn index_update(
        &self,
        entries: impl Entries,
        updates: impl Operand,
        kind: Update,
    ) -> Result<Array> {
        self.updated(entries.entries(), &*updates.beside(self)?, kind)
    }

    fn updated(&self, entries: &[Index], updates: &Array, kind: Update) -> Result<Array> {
        let _home = follow(&[self, updates]);
        self.computable("scatter")?;
        updates.computable("scatter")?;
        let updates = if kind == Update::Divide {
            // Take the reciprocal first, because conversion to integers drops the fraction.
            let one = Array::scalar(Scalar::from_i64(updates.dtype().to_inexact(), 1));
            bin(binary::DIVIDE, &one, updates)?.astype(self.dtype())
        } else {
            updates.astype(self.dtype())
        };
        if let [Index::Mask(mask)] = entries {
            return self.masked_update(mask, &updates, kind);
        }
        if kind == Update::Set
            && !shapeless()
            && let Some((slice, region, shape)) = written(self.shape(), entries)
        {
            let new = fitted(&updates, &shape)?.reshape(&region)?;
            return self.written_over(new, slice, &region);
        }
        let plan = Resolved::new(self.shape(), entries, "scatter")?;
        if plan.arrays.is_empty() {
            let (start, stop) = plan.bounds(true);
            let old = plan.sliced(self, true)?;
            let new = fitted(&updates, &plan.result(old.shape()))?.reshape(old.shape())?;
            let new = kind.combine(&old, new)?.astype(self.dtype());
            return self.slice_update(&new, &start, &stop, &plan.step);
        }
        // Treat integers as index arrays here, so that the array is copied only once.
        let part = plan.sliced(self, false)?;
        let (before, after) = plan.kept();
        let updates = fitted(&updates, &plan.result(part.shape()))?;
        let moved: Shape = (before.iter().map(|a| part.shape()[*a]))
            .chain(plan.index_shape().iter().copied())
            .chain(after.iter().map(|a| part.shape()[*a]))
            .collect();
        let new = plan.scattered(&part, updates.reshape(&moved)?, before.len(), kind)?;
        if plan.whole {
            return Ok(new);
        }
        self.slice_update(&new, &plan.start, &plan.stop, &plan.step)
    }

    /// Checks that a mask has the shape of the array's first axes.
    fn check_mask(&self, op: &str, mask: &Array) -> Result<()> {
        if self.shape().get(..mask.ndim()) == Some(mask.shape()) {
            return Ok(());
        }
        bail!(
            op,
            "The boolean mask should have the same shape as the beginning of the indexed array but the mask has shape {} and the array has shape {}. Index with a mask of the shape of the first axes.",
            Show(mask.shape()),
            Show(self.shape())
        )
    }

    fn masked(&self, mask: &Array) -> Result<Array> {
        self.check_mask("index", mask)?;
        let at = mask.reshape(&[mask.size()])?.nonzero()?;
        let mut flat = Shape::from_elem(mask.size(), 1);
        flat.extend_from_slice(&self.shape()[mask.ndim()..]);
        self.reshape(&flat)?.take(&at[0], Some(0))
    }

    fn masked_update(&self, mask: &Array, updates: &Array, kind: Update) -> Result<Array> {
        self.check_mask("masked_scatter", mask)?;
        let k = mask.ndim();
        let mut wide = Shape::from_slice(mask.shape());
        wide.resize(self.ndim(), 1);
        let condition = mask.reshape(&wide)?;
        let rest = &self.shape()[k..];
        let new = match updates.ndim() {
            n if n <= rest.len() => kind.combine(self, updates.broadcast_to(self.shape())?)?,
            n if n == rest.len() + 1 => {
                // Each true position takes the update with the position's number.
                let rows = updates.shape()[0];
                let mut shape = Shape::from_elem(rows, 1);
                shape.extend_from_slice(rest);
                let updates = updates.broadcast_to(&shape)?;
                let mask = mask.flatten(0, -1)?.astype(Dtype::Int32);
                let count = mask.sum(None)?;
                if rows == 0 {
                    return Ok(self.enough(&count, 0));
                }
                let number = mask.cumsum(Some(0), false, true)?;
                let number = bin(binary::SUBTRACT, &number, &Array::scalar(1i32))?;
                let number = bin(binary::MAXIMUM, &number, &Array::scalar(0i32))?;
                let picked = updates.enough(&count, rows).take(&number, Some(0))?;
                kind.combine(self, picked.reshape(self.shape())?)?
            }
            _ => {
                bail!(
                    "masked_scatter",
                    "Value array shape must be broadcastable with the last {} dimensions of the input; the values have shape {}, the input {}, the mask {}. Reshape the values.",
                    rest.len(),
                    Show(updates.shape()),
                    Show(self.shape()),
                    Show(mask.shape())
                );
            }
        };
        where_(&condition, new.astype(self.dtype()), self)
    }
}
