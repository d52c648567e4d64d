//! Windows whose place is itself an array: only known when the graph is evaluated.

use crate::error::{Result, bail, ensure};
use crate::ops::index::{gather::gather, scatter::scatter};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::scatter as kind;

/// The axes that a window of a given shape does not cover whole, and the elements' positions
/// along each, as index arrays that broadcast to the window's part of those axes.
struct Window {
    axes: SmallVec<[u8; 4]>,
    positions: Vec<Array>,
}

/// The window of shape `size` of an array of shape `from`, that begins at `start` along
/// `axes` (0 along the others). Held inside of the array.
fn window(
    op: &str,
    from: &[usize],
    start: &Array,
    axes: &[isize],
    size: &[usize],
) -> Result<Window> {
    if !start.dtype().is_integer() {
        bail!(op, "Start indices must be integers, got type {}.", start.dtype());
    }
    ensure!(
        start.size() == axes.len() && start.ndim() <= 1,
        op,
        "Number of starting indices {} does not match number of axes {}.",
        start.size(),
        axes.len()
    );
    let mut given: SmallVec<[Option<usize>; 8]> = smallvec![None; from.len()];
    for (i, axis) in axes.iter().enumerate() {
        let at = shape::normalize_axis(op, *axis, from.len())?;
        ensure!(given[at].replace(i).is_none(), op, "Repeat axes not allowed.");
    }
    let cut: SmallVec<[usize; 8]> = (0..from.len()).filter(|i| size[*i] != from[*i]).collect();
    let start = start.reshape(&[axes.len()])?.astype(Dtype::Int64);
    let mut positions = Vec::new();
    for (k, &axis) in cut.iter().enumerate() {
        let mut aligned = Shape::from_elem(1, cut.len());
        aligned[k] = size[axis];
        let steps = Array::arange(0.0, size[axis] as f64, 1.0, Dtype::Int64)?.reshape(&aligned)?;
        let Some(i) = given[axis] else {
            positions.push(steps);
            continue;
        };
        let first = start.along(0, i, i + 1, 1)?.reshape(&[0usize; 0])?;
        let last = Array::scalar((from[axis] - size[axis]) as i64);
        let first = first.clip(Some(&Array::scalar(0i64)), Some(&last))?;
        positions.push(steps.add(&first)?);
    }
    let whole: Shape = cut.iter().map(|a| size[*a]).collect();
    let positions = positions.iter().map(|p| p.broadcast_to(&whole)).collect::<Result<_>>()?;
    Ok(Window { axes: cut.iter().map(|a| *a as u8).collect(), positions })
}

impl Window {
    /// The axes of a gather's result (index axes first, the indexed ones left out) in
    /// the order of the source.
    fn order(&self, ndim: usize) -> SmallVec<[isize; 8]> {
        let n = self.axes.len() as isize;
        let mut rest = n;
        (0..ndim)
            .map(|i| match self.axes.iter().position(|a| *a as usize == i) {
                Some(k) => k as isize,
                None => {
                    rest += 1;
                    rest - 1
                }
            })
            .collect()
    }
}

impl Array {
    /// The window of shape `size` that begins at `start` (integers, one for each of
    /// `axes`; the other axes begin at 0). A window that would leave the array is
    /// moved inside.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when `size` does not fit the array or `start` the axes,
    /// [`crate::Error::Index`] for an axis out of range.
    pub fn slice_at(&self, start: &Array, axes: &[isize], size: &[usize]) -> Result<Array> {
        if size.len() != self.ndim() {
            bail!("slice", "Invalid slice size for array with {} dimensions.", self.ndim());
        }
        ensure!(
            !size.iter().zip(self.shape()).any(|(s, n)| s > n),
            "slice",
            "Invalid slice size {} for array with shape {}.",
            Show(size),
            Show(self.shape())
        );
        let _home = crate::placement::follow(&[self]);
        let window = window("slice", self.shape(), start, axes, size)?;
        if window.axes.is_empty() {
            return Ok(self.clone());
        }
        let taken = gather(self, &window.positions, &window.axes)?;
        // Without the indexed axes, which have size 1 now.
        let n = window.axes.len();
        let mut kept = Shape::from_slice(&taken.shape()[..n]);
        kept.extend(
            (0..self.ndim()).filter(|i| !window.axes.contains(&(*i as u8))).map(|i| size[i]),
        );
        taken.reshape(&kept)?.transpose_axes(&window.order(self.ndim()))
    }

    /// The array with `update` written over the window of its shape that begins at
    /// `start`, as [`Array::slice_at`] has it. An update of fewer dimensions has size 1
    /// along the first ones.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when the update is larger than the array or `start` does not
    /// fit the axes, [`crate::Error::Index`] for an axis out of range.
    pub fn slice_update_at(&self, update: &Array, start: &Array, axes: &[isize]) -> Result<Array> {
        const OP: &str = "slice_update";
        let ndim = self.ndim();
        let mut size = Shape::from_elem(1, ndim.saturating_sub(update.ndim()));
        size.extend_from_slice(update.shape());
        ensure!(
            size.len() == ndim && !size.iter().zip(self.shape()).any(|(s, n)| s > n),
            OP,
            "An update of shape {} does not fit an array of shape {}.",
            Show(update.shape()),
            Show(self.shape())
        );
        let _home = crate::placement::follow(&[self, update]);
        let window = window(OP, self.shape(), start, axes, &size)?;
        let update = update.astype(self.dtype()).reshape(&size)?;
        if window.axes.is_empty() {
            return Ok(update);
        }
        // Into a gather's order: the cut axes first, then all, the cut ones with size 1.
        let whole = (0..ndim).filter(|i| !window.axes.contains(&(*i as u8)));
        let order: SmallVec<[isize; 8]> =
            (window.axes.iter().map(|a| *a as isize)).chain(whole.map(|i| i as isize)).collect();
        let mut shape: Shape = window.axes.iter().map(|a| size[*a as usize]).collect();
        shape.extend((0..ndim).map(|i| if window.axes.contains(&(i as u8)) { 1 } else { size[i] }));
        let update = update.transpose_axes(&order)?.reshape(&shape)?;
        scatter(self, &window.positions, &update, &window.axes, kind::SET)
    }
}
