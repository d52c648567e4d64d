//! Indices resolved against a shape: views for integers and slices, and the positions of index arrays.

use crate::error::{Error, Result, bail};
use crate::ops::index::gather::{common, gathered, spread};
use crate::ops::index::{entry::Index, indexing::Update};
use crate::ops::shape::view::{View, on_hand};
use crate::ops::{index::scatter::scatter, rules::shapeless::shapeless};
use crate::shape::{IndexRange, MAX_NDIM, Shape, Strides};
use crate::{array::Array, dtype::Dtype, node::Value, scalar::Scalar};
use smallvec::SmallVec;
use ultramarine_abi::schema::scatter as kind;

/// An index resolved against a shape: an entry for each axis, and the positions of new axes.
pub(super) struct Resolved {
    /// `start`, `stop`, `step` for each axis. The slice of an integer has size 1; that of an index array is the whole
    /// axis.
    pub start: Vec<isize>,
    pub stop: Vec<isize>,
    pub step: Vec<isize>,
    /// True if the slices select the whole array.
    pub whole: bool,
    /// Axes with integers, and those integers.
    pub ints: Vec<(usize, i64)>,
    /// Index arrays (of one shape and dtype) and their axes.
    pub arrays: Vec<Array>,
    pub axes: Vec<u8>,
    /// Axes of the result: `None` for a new axis, else the axis of the array.
    pub order: Vec<Option<usize>>,
    /// Position in `order` at which the index arrays' dimensions are inserted.
    pub place: usize,
}

fn too_many(ndim: usize) -> Error {
    if ndim == 0 {
        return Error::Value(
            "too many indices for array: array is 0-dimensional. Use item(), or index by `...`."
                .into(),
        );
    }
    let text = format!("Too many indices for array with {ndim} dimensions. Pass {ndim} at most.");
    Error::Value(text.into())
}

/// Converts a position to one counted from the start.
fn within(i: i64, axis: usize, n: usize) -> Result<i64> {
    let at = if i < 0 { i.saturating_add(n as i64) } else { i };
    match (0..n as i64).contains(&at) {
        true => Ok(at),
        false => {
            let text = format!(
                "Index {i} is out of bounds for axis {axis} with size {n}. {}",
                IndexRange(n)
            );
            Err(Error::Index(text.into()))
        }
    }
}

/// Start and stop of a slice of an axis of size `n`, clamped to the axis. -1 is before the first element.
fn ends(n: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> (i64, i64) {
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let place = |p: Option<i64>, missing: i64| match p {
        None => missing,
        Some(p) if p < 0 => p.saturating_add(n).clamp(low, high),
        Some(p) => p.clamp(low, high),
    };
    let (first, last) = if step > 0 { (0, n) } else { (n - 1, -1) };
    (place(start, first), place(stop, last))
}

/// The first position of a slice of an axis of size `n`, its step and its length. `None` if the step is zero.
fn part(
    n: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Option<(usize, isize, usize)> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return None;
    }
    let (start, stop) = ends(n as i64, start, stop, step);
    let span = if step > 0 { stop - start } else { start - stop };
    let length = span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()) as usize;
    Some((if length > 0 { start as usize } else { 0 }, step as isize, length))
}

/// The axis of the first entry after an ellipsis at `axis`.
fn end_of_ellipsis(behind: &[Index], axis: usize, ndim: usize) -> Option<usize> {
    if behind.iter().any(|entry| matches!(entry, Index::Ellipsis)) {
        return None;
    }
    let used = behind.iter().filter(|entry| !matches!(entry, Index::NewAxis)).count();
    ndim.checked_sub(used).filter(|end| *end >= axis)
}

/// A view by integers, slices and new axes. The axes are added one after the other.
struct Axes<'a> {
    sizes: &'a [usize],
    strides: &'a [isize],
    /// Offset in elements from the array's first element to the view's.
    first: isize,
    shape: Shape,
    out: Strides,
}

impl Axes<'_> {
    fn keep(&mut self, axis: usize) -> Option<()> {
        self.shape.push(*self.sizes.get(axis)?);
        self.out.push(self.strides[axis]);
        Some(())
    }

    fn int(&mut self, axis: usize, i: i64) -> Option<()> {
        let at = within(i, axis, *self.sizes.get(axis)?).ok()?;
        self.first += at as isize * self.strides[axis];
        Some(())
    }

    fn slice(
        &mut self,
        axis: usize,
        start: Option<i64>,
        stop: Option<i64>,
        step: Option<i64>,
    ) -> Option<()> {
        let (first, step, length) = part(*self.sizes.get(axis)?, start, stop, step)?;
        let stride = self.strides[axis];
        self.first += first as isize * stride;
        self.shape.push(length);
        // A step that is never taken could overflow when multiplied by the stride.
        self.out.push(if length > 1 { step * stride } else { stride });
        Some(())
    }
}

/// `x[entries]` for integers, slices and new axes of an array whose views can be made at once: makes one view without
/// temporary lists. `None` for other arrays and entries, and for invalid entries.
pub(super) fn viewed(a: &Array, entries: &[Index]) -> Option<Array> {
    // A view of a constant may itself be a constant.
    let (value, place) = on_hand(a).filter(|_| !a.node().op.is_constant())?;
    let (sizes, strides) = (a.shape(), &value.strides[..]);
    let mut axes = Axes { sizes, strides, first: 0, shape: Shape::new(), out: Strides::new() };
    let mut axis = 0;
    for (i, entry) in entries.iter().enumerate() {
        match entry {
            Index::NewAxis => {
                axes.shape.push(1);
                axes.out.push(1);
                continue;
            }
            Index::Ellipsis => {
                let end = end_of_ellipsis(&entries[i + 1..], axis, sizes.len())?;
                (axis..end).try_for_each(|axis| axes.keep(axis))?;
                axis = end;
                continue;
            }
            Index::Full => axes.keep(axis)?,
            Index::Int(i) => axes.int(axis, *i)?,
            Index::Slice { start, stop, step } => {
                axes.slice(axis, *start, *stop, *step)?;
            }
            Index::Array(_) | Index::Mask(_) => return None,
        }
        axis += 1;
    }
    (axis..sizes.len()).try_for_each(|axis| axes.keep(axis))?;
    let Axes { first, shape, out, .. } = axes;
    if shape.len() > MAX_NDIM {
        return None;
    }
    if shape[..] == *sizes && out[..] == *strides {
        return Some(a.clone());
    }
    // The offset must not point outside the buffer, even for an empty view.
    let first = if shape.contains(&0) { 0 } else { first };
    let offset = value.offset.wrapping_add_signed(first * a.itemsize() as isize);
    let value = Value { buffer: value.buffer.clone(), offset, strides: out };
    Some(Array::given_at(place, value, shape, a.dtype()))
}

/// Appends axes that the slice selects completely.
fn whole(
    sizes: &[usize],
    start: &mut SmallVec<[usize; 4]>,
    step: &mut Strides,
    shapes: [&mut Shape; 2],
) {
    start.resize(start.len() + sizes.len(), 0);
    step.resize(step.len() + sizes.len(), 1);
    shapes.into_iter().for_each(|shape| shape.extend_from_slice(sizes));
}

/// The slice that `x[entries] = v` writes to, for integers, slices and new axes, with its shape and the shape to which
/// `v` is broadcast. `None` for other entries, and for invalid ones.
pub(super) fn written(of: &[usize], entries: &[Index]) -> Option<(View, Shape, Shape)> {
    let mut start: SmallVec<[usize; 4]> = SmallVec::new();
    let (mut step, mut region, mut result) = (Strides::new(), Shape::new(), Shape::new());
    for (i, entry) in entries.iter().enumerate() {
        let axis = region.len();
        let (first, by, length) = match entry {
            Index::NewAxis => {
                result.push(1);
                continue;
            }
            Index::Ellipsis => {
                let end = end_of_ellipsis(&entries[i + 1..], axis, of.len())?;
                whole(&of[axis..end], &mut start, &mut step, [&mut region, &mut result]);
                continue;
            }
            Index::Int(i) => {
                start.push(usize::try_from(within(*i, axis, *of.get(axis)?).ok()?).ok()?);
                step.push(1);
                region.push(1);
                continue;
            }
            Index::Full => (0, 1, *of.get(axis)?),
            Index::Slice { start, stop, step } => part(*of.get(axis)?, *start, *stop, *step)?,
            Index::Array(_) | Index::Mask(_) => return None,
        };
        start.push(first);
        step.push(if length > 1 { by } else { 1 });
        region.push(length);
        result.push(length);
    }
    whole(&of[region.len()..], &mut start, &mut step, [&mut region, &mut result]);
    Some((View::Slice { start, step }, region, result))
}

impl Resolved {
    pub fn new(of: &[usize], entries: &[Index], op: &str) -> Result<Resolved> {
        let ndim = of.len();
        let used =
            entries.iter().filter(|e| !matches!(e, Index::NewAxis | Index::Ellipsis)).count();
        if used > ndim {
            return Err(too_many(ndim));
        }
        if entries.iter().filter(|e| matches!(e, Index::Ellipsis)).count() > 1 {
            let text =
                "An index can only have a single ellipsis (...). Write `:` for the other axes.";
            return Err(Error::Value(text.into()));
        }
        let mut p = Resolved {
            start: vec![0; ndim],
            stop: of.iter().map(|n| *n as isize).collect(),
            step: vec![1; ndim],
            whole: true,
            ints: Vec::new(),
            arrays: Vec::new(),
            axes: Vec::new(),
            order: Vec::new(),
            place: 0,
        };
        // Positions in `order` of the integers and arrays.
        let mut positions = Vec::new();
        let mut axis = 0;
        for entry in entries {
            match entry {
                Index::NewAxis => p.order.push(None),
                Index::Ellipsis => {
                    let left = ndim - used;
                    p.order.extend((axis..axis + left).map(Some));
                    axis += left;
                }
                Index::Full => {
                    p.order.push(Some(axis));
                    axis += 1;
                }
                Index::Slice { start, stop, step } => {
                    p.slice(axis, of[axis], *start, *stop, *step)?;
                    p.order.push(Some(axis));
                    axis += 1;
                }
                // In a shapeless trace, the present sizes must not turn a position from the end into one from the
                // start, or the only element into the whole axis.
                Index::Int(i) if (*i < 0 || of[axis] == 1) && shapeless() => {
                    within(*i, axis, of[axis])?;
                    p.arrays.push(Array::scalar(*i));
                    p.axes.push(axis as u8);
                    positions.push(p.order.len());
                    axis += 1;
                }
                Index::Int(i) => {
                    p.ints.push((axis, within(*i, axis, of[axis])?));
                    positions.push(p.order.len());
                    axis += 1;
                }
                Index::Array(a) => {
                    p.arrays.push(a.clone());
                    p.axes.push(axis as u8);
                    positions.push(p.order.len());
                    axis += 1;
                }
                Index::Mask(_) => {
                    bail!(
                        "index",
                        "Boolean masks beside other indices are not supported. Index by the mask alone, then index the result."
                    );
                }
            }
        }
        p.order.extend((axis..ndim).map(Some));
        p.arrays = common(op, &p.arrays)?;
        if positions.windows(2).all(|w| w[0] == w[1]) {
            p.place = positions.first().copied().unwrap_or(0);
        }
        Ok(p)
    }

    fn slice(
        &mut self,
        axis: usize,
        n: usize,
        start: Option<i64>,
        stop: Option<i64>,
        step: Option<i64>,
    ) -> Result<()> {
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(Error::Value(
                "slice step cannot be zero. Pass a positive or negative step.".into(),
            ));
        }
        let n = n as i64;
        let (start, stop) = ends(n, start, stop, step);
        self.whole &= step == 1 && start == 0 && stop == n;
        // A stop before the first element must not be read as a position from the end.
        self.start[axis] = start as isize;
        self.stop[axis] = if stop < 0 { isize::MIN } else { stop as isize };
        self.step[axis] = step as isize;
        if step < 0 && start < 0 {
            // A slice of an empty axis is empty.
            (self.start[axis], self.stop[axis], self.step[axis]) = (0, 0, 1);
        }
        Ok(())
    }

    /// The part of `a` that the slices select. The axes of integers have size 1 if `ints` is set, else they stay whole.
    pub fn sliced(&self, a: &Array, ints: bool) -> Result<Array> {
        if self.whole && (!ints || self.ints.is_empty()) {
            return Ok(a.clone());
        }
        let (start, stop) = self.bounds(ints);
        a.slice(&start, &stop, &self.step)
    }

    pub fn bounds(&self, ints: bool) -> (Vec<isize>, Vec<isize>) {
        let (mut start, mut stop) = (self.start.clone(), self.stop.clone());
        if ints {
            for (axis, at) in &self.ints {
                (start[*axis], stop[*axis]) = (*at as isize, *at as isize + 1);
            }
        }
        (start, stop)
    }

    /// The common shape of the index arrays.
    pub fn index_shape(&self) -> &[usize] {
        self.arrays.first().map_or(&[], |a| a.shape())
    }

    /// Axes of the array that are kept, before and after the position of the index.
    pub fn kept(&self) -> (Vec<usize>, Vec<usize>) {
        let some = |part: &[Option<usize>]| part.iter().flatten().copied().collect();
        (some(&self.order[..self.place]), some(&self.order[self.place..]))
    }

    /// `part` combined with updates of the shape (axes before, index, axes after).
    pub fn scattered(
        &self,
        part: &Array,
        updates: Array,
        before: usize,
        kind: Update,
    ) -> Result<Array> {
        let (code, updates) = kind.scatter(updates)?;
        if let ([positions], true) = (&self.arrays[..], self.ints.is_empty())
            && matches!(code, kind::SET | kind::SUM)
            && let Some(spread) = spread(part.shape(), positions, self.axes[0] as usize)?
        {
            let updates = updates.reshape(spread.shape())?;
            return part.put_axis(&spread, &updates, self.axes[0] as usize, code);
        }
        let (k, n) = (self.index_shape().len(), updates.ndim());
        let order: Vec<isize> = (before..before + k)
            .chain(0..before)
            .chain(before + k..n)
            .map(|a| a as isize)
            .collect();
        let updates = updates.transpose_axes(&order)?;
        let mut axes = self.axes.clone();
        let mut indices = self.arrays.clone();
        for (axis, at) in &self.ints {
            axes.push(*axis as u8);
            indices.push(constant(*at, self.arrays[0].dtype()));
        }
        let indices = common("scatter", &indices)?;
        let updates = updates.reshape(&gathered(part.shape(), self.index_shape(), &axes))?;
        scatter(part, &indices, &updates, &axes, code)
    }

    /// Shape of the result. `sizes` are the sizes of the axes after slicing.
    pub fn result(&self, sizes: &[usize]) -> Shape {
        let size = |o: &Option<usize>| o.map_or(1, |a| sizes[a]);
        let (before, after) = self.order.split_at(self.place);
        (before.iter().map(size))
            .chain(self.index_shape().iter().copied())
            .chain(after.iter().map(size))
            .collect()
    }
}

/// A 0-d index, in `dtype` if that dtype can hold it.
fn constant(at: i64, dtype: Dtype) -> Array {
    let fits = crate::iinfo(dtype).is_some_and(|i| i128::from(at) <= i.max);
    Array::scalar(Scalar::from_i64(if fits { dtype } else { Dtype::Int64 }, at))
}
