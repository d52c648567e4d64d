//! Windows whose position is itself an array, so that it is known only at evaluation.

use crate::backend::{Dispatch, Exec, Operand};
use crate::error::{Result, bail, ensure};
use crate::ops::index::bounds;
use crate::ops::index::gather::{IndexAxes, axes_attr, batch_index, gather};
use crate::ops::index::scatter::scatter;
use crate::ops::rules::batching::batched;
use crate::ops::rules::builders::move_axis;
use crate::ops::rules::shapeless::{cannot, shapeless, zeros_like};
use crate::ops::shape::axes::Axes;
use crate::ops::shape::{concatenate::broadcast_constant, view::View};
use crate::ops::{
    Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes, draft,
};
use crate::placement::follow;
use crate::shape::{self, Shape, Show, Strides};
use crate::{array::Array, dtype::Dtype, node::Value};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{DynamicSliceAttrs, op, scatter as kind};

/// Where a window of an array begins.
enum Place {
    /// At the first element, because the window is as large as the array.
    Whole,
    /// At the first element.
    Front,
    /// At the starts (a 1-d array) along these axes.
    At(Array, IndexAxes),
}

/// The position of a window of shape `size` in an array of shape `from`. It begins at `start` along `axes`, and at 0
/// along the other axes.
fn place(op: &str, from: &[usize], start: &Array, axes: &[isize], size: &[usize]) -> Result<Place> {
    if !start.dtype().is_integer() {
        bail!(
            op,
            "Start indices must be integers, got type {}. Convert them with astype(int32).",
            start.dtype()
        );
    }
    ensure!(
        start.size() == axes.len() && start.ndim() <= 1,
        op,
        "Number of starting indices {} does not match number of axes {}. Pass a vector with one start for each axis.",
        start.size(),
        axes.len()
    );
    let mut known = IndexAxes::new();
    for axis in axes {
        let at = shape::normalize_axis(op, *axis, from.len())? as u8;
        ensure!(
            !known.contains(&at),
            op,
            "Repeat axes not allowed, but axis {at} occurs twice. Name each axis once."
        );
        known.push(at);
    }
    // A shapeless trace may run with other array sizes, while the window keeps its size.
    if size == from && !shapeless() {
        return Ok(Place::Whole);
    }
    let cut = known.iter().any(|a| size[*a as usize] != from[*a as usize]);
    if known.is_empty() || !(cut || shapeless()) {
        return Ok(Place::Front);
    }
    Ok(Place::At(start.reshape(&[axes.len()])?, known))
}

/// Starts, stops and steps of the first elements.
fn front(size: &[usize]) -> [Strides; 3] {
    let all = |n: isize| Strides::from_elem(n, size.len());
    [all(0), size.iter().map(|n| *n as isize).collect(), all(1)]
}

impl Array {
    /// Returns the window of shape `size` that begins at `start`, which has an integer for each of `axes`. Along other
    /// axes the window begins at 0. Starts can be computed values. A window that would extend beyond the array is moved
    /// inside.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when `size` does not fit the array or `start` the axes,
    /// [`crate::Error::Index`] for an axis out of range.
    pub fn slice_at(&self, start: &Array, axes: impl Into<Axes>, size: &[usize]) -> Result<Array> {
        let axes = &axes.into().listed(self.ndim())[..];
        const OP: &str = "slice";
        self.computable(OP)?;
        if size.len() != self.ndim() {
            bail!(
                OP,
                "Invalid slice size {} for array with {} dimensions. Pass a size for each dimension.",
                Show(size),
                self.ndim()
            );
        }
        ensure!(
            !size.iter().zip(self.shape()).any(|(s, n)| s > n),
            OP,
            "Invalid slice size {} for array with shape {}. Pass sizes that are not larger than the array's.",
            Show(size),
            Show(self.shape())
        );
        let _home = follow(&[self]);
        match place(OP, self.shape(), start, axes, size)? {
            Place::Whole => Ok(self.clone()),
            Place::Front => {
                let [start, stop, step] = front(size);
                self.slice(&start, &stop, &step)
            }
            Place::At(start, axes) => DynamicSlice { axes }.apply(self, &start, size),
        }
    }

    /// Returns the array with `update` written over the window of its shape that begins at `start`, as in
    /// [`Array::slice_at`]. An update of lower rank has size 1 along the first axes. If nothing else needs this array,
    /// evaluation writes only the window, in the array's memory.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let cache = Array::zeros(&[4, 2], Dtype::Int32)?;
    /// let position = Array::from_slice(&[2], &[1])?;
    /// let row = Array::from_slice(&[7, 8], &[1, 2])?;
    /// let cache = cache.slice_update_at(&row, &position, 0)?;
    /// assert_eq!(cache.to_vec::<i32>()?, [0, 0, 0, 0, 7, 8, 0, 0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] when the update is larger than the array or `start` does not
    /// fit the axes, [`crate::Error::Index`] for an axis out of range.
    pub fn slice_update_at(
        &self,
        update: &Array,
        start: &Array,
        axes: impl Into<Axes>,
    ) -> Result<Array> {
        let axes = &axes.into().listed(self.ndim())[..];
        const OP: &str = "slice_update";
        self.computable(OP)?;
        update.computable(OP)?;
        let ndim = self.ndim();
        let mut size = Shape::from_elem(1, ndim.saturating_sub(update.ndim()));
        size.extend_from_slice(update.shape());
        ensure!(
            size.len() == ndim && !size.iter().zip(self.shape()).any(|(s, n)| s > n),
            OP,
            "An update of shape {} does not fit an array of shape {}. Pass as many dimensions, none of them larger.",
            Show(update.shape()),
            Show(self.shape())
        );
        let _home = follow(&[self, update]);
        let place = place(OP, self.shape(), start, axes, &size)?;
        let update = update.astype(self.dtype()).reshape(&size)?;
        match place {
            Place::Whole => Ok(update),
            Place::Front => {
                let [start, stop, step] = front(&size);
                self.slice_update(&update, &start, &stop, &step)
            }
            Place::At(start, axes) => DynamicSliceUpdate { axes }.apply(self, &start, &update),
        }
    }
}

attributes! {
    /// DYNAMIC_SLICE. The operands are the source and a 1-d array of starts, one for each of `axes`.
    #[derive(Clone, Debug)]
    pub(crate) struct DynamicSlice {
        axes: IndexAxes,
    }
}

attributes! {
    /// DYNAMIC_SLICE_UPDATE. The operands are the source, a 1-d array of starts, one for each of `axes`, and the
    /// update.
    #[derive(Clone, Debug)]
    pub(crate) struct DynamicSliceUpdate {
        axes: IndexAxes,
    }
}

fn attributes_of(axes: &[u8]) -> DynamicSliceAttrs {
    DynamicSliceAttrs::new(axes.len() as u32, axes_attr(axes))
}

/// A window of shape `size` of `whole`, which has operand 0's shape, for a device without the kernel. The starts are
/// read on the host, which waits for their computation.
fn window(
    exec: &Exec,
    call: &Call<'_>,
    axes: &[u8],
    whole: &Value,
    size: &[usize],
) -> Result<Value> {
    let from = call.descs[0].0;
    let mut start: SmallVec<[usize; 4]> = smallvec![0; from.len()];
    for (first, axis) in bounds::integers(exec, call.operand(1))?.into_iter().zip(axes) {
        let at = *axis as usize;
        start[at] = first.clamp(0, (from[at] - size[at]) as i128) as usize;
    }
    let view = View::Slice { start, step: smallvec![1; from.len()] };
    Ok(view.part(whole, size, call.dtype))
}

impl DynamicSlice {
    fn apply(&self, source: &Array, start: &Array, size: &[usize]) -> Result<Array> {
        let shape = Shape::from_slice(size);
        Array::try_of(self.clone(), &[source, start], shape, source.dtype())
    }
}

impl Rules for DynamicSlice {
    fn name(&self) -> &'static str {
        "dynamic_slice"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, _), (starts, _)], (size, _))) = node.of() else { return false };
        node.follows(op::DYNAMIC_SLICE, None, &[]) && is_window(from, starts, &self.axes, size)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let size = call.shape;
        match call.run(exec, op::DYNAMIC_SLICE, &attributes_of(&self.axes), &[]) {
            Err(_) if exec.take_refusal() => {}
            outcome => return outcome,
        }
        // Copy the window, because a view would prevent writing over the source in place.
        let part = window(exec, call, &self.axes, &call.inputs[0], size)?;
        let out = exec.alloc(size, call.dtype)?;
        exec.copy(Operand { value: &part, shape: size, dtype: call.dtype }, call.output(&out))?;
        exec.count(self.name(), Dispatch::Decomposed);
        Ok(out)
    }

    /// The window keeps its size.
    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        fits(self.name(), r, r.shape)?;
        r.same(Shape::from_slice(r.shape))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let zeros = zeros_like(&v.primals[0], v.cotangent.dtype());
        let write = DynamicSliceUpdate { axes: self.axes.clone() };
        Ok(smallvec![Some(write.apply(&zeros, &v.primals[1], v.cotangent)?)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let size = j.output.shape();
        j.tangents[0].as_ref().map(|t| self.apply(t, &j.primals[1], size)).transpose()
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (source, start) = (&v.inputs[0], &v.inputs[1]);
        if v.axes[1].is_some() {
            let windows = Windows::new(v, &self.axes, v.shape)?;
            return Ok((windows.read(source, v.axes[0])?, Some(0)));
        }
        let Some(at) = v.axes[0] else { return Ok((self.apply(source, start, v.shape)?, None)) };
        let mut size = Shape::from_elem(v.size, 1);
        size.extend_from_slice(v.shape);
        let axes = self.axes.iter().map(|a| a + 1).collect();
        Ok((DynamicSlice { axes }.apply(&move_axis(source, at, 0)?, start, &size)?, Some(0)))
    }
}

impl DynamicSliceUpdate {
    fn apply(&self, source: &Array, start: &Array, update: &Array) -> Result<Array> {
        if update.size() == 0 {
            return Ok(source.clone());
        }
        let update = broadcast_constant(update);
        let shape = Shape::from_slice(source.shape());
        Array::try_of(self.clone(), &[source, start, &update], shape, source.dtype())
    }
}

impl Rules for DynamicSliceUpdate {
    fn name(&self) -> &'static str {
        "dynamic_slice_update"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([source, (starts, _), (size, _)], out)) = node.of() else { return false };
        node.follows(op::DYNAMIC_SLICE_UPDATE, None, &[])
            && source == out
            && is_window(source.0, starts, &self.axes, size)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let size = call.descs[2].0;
        let own = call.donated(exec, 0);
        let out = match &own {
            Some(own) => own.clone(),
            None => exec.alloc(call.shape, call.dtype)?,
        };
        let attributes = attributes_of(&self.axes);
        match call.run_into(exec, out.clone(), op::DYNAMIC_SLICE_UPDATE, &attributes, &[]) {
            Err(_) if exec.take_refusal() => {}
            outcome => return outcome,
        }
        let part = window(exec, call, &self.axes, &out, size)?;
        if own.is_none() {
            exec.copy(call.operand(0), call.output(&out))?;
        }
        exec.copy(call.operand(2), Operand { value: &part, shape: size, dtype: call.dtype })?;
        exec.count(self.name(), Dispatch::Decomposed);
        Ok(out)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        fits(self.name(), r, r.inputs[2])?;
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (c, start, update) = (v.cotangent, &v.primals[1], &v.primals[2]);
        let zeros = || self.apply(c, start, &zeros_like(update, c.dtype()));
        let source = v.wanted[0].then(zeros).transpose()?;
        let read = || DynamicSlice { axes: self.axes.clone() }.apply(c, start, update.shape());
        Ok(smallvec![source, None, v.wanted[2].then(read).transpose()?])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        if j.tangents[0].is_none() && j.tangents[2].is_none() {
            return Ok(None);
        }
        let part = |i: usize| j.tangents[i].clone().unwrap_or_else(|| j.primals[i].zeros_like());
        self.apply(&part(0), &j.primals[1], &part(2)).map(Some)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (start, update) = (&v.inputs[1], &v.inputs[2]);
        let source = batched(&v.inputs[0], v.axes[0], v.size)?;
        let update = batched(update, v.axes[2], v.size)?;
        if v.axes[1].is_some() {
            let windows = Windows::new(v, &self.axes, &update.shape()[1..])?;
            return Ok((windows.write(&source, &update)?, Some(0)));
        }
        let axes = self.axes.iter().map(|a| a + 1).collect();
        Ok((DynamicSliceUpdate { axes }.apply(&source, start, &update)?, Some(0)))
    }
}

/// Returns true if `size` is the shape of a window in an array of shape `from`, with a start for each of `axes`.
fn is_window(from: &[usize], starts: &[usize], axes: &[u8], size: &[usize]) -> bool {
    size.len() == from.len()
        && size.iter().zip(from).all(|(s, n)| s <= n)
        && draft::are_axes(axes, from.len())
        && *starts == [axes.len()]
}

/// Checks that a window of shape `size` fits the array's new size, and that the number of starts is unchanged.
fn fits(name: &str, r: &Refit<'_>, size: &[usize]) -> Result<()> {
    let larger = size.iter().zip(r.inputs[0]).any(|(s, n)| s > n);
    if larger || r.inputs[1] != r.traced[1] { Err(cannot(name)) } else { Ok(()) }
}

/// The windows at mapped starts, one for each position of the mapped axis. They are gathered at index arrays, as slices
/// of single elements or of whole axes.
struct Windows {
    /// The mapped axis.
    size: usize,
    /// Shape of a window.
    window: Shape,
    /// The axes of the unmapped array that windows do not cover completely.
    cut: SmallVec<[usize; 8]>,
    /// Positions of the elements along the mapped axis and each of `cut`; their shape is the mapped axis, then the
    /// window's sizes along `cut`.
    positions: Vec<Array>,
}

impl Windows {
    /// The windows of a mapped operation, whose first operands are the source and the starts.
    fn new(v: &Vmap<'_>, axes: &[u8], window: &[usize]) -> Result<Windows> {
        let starts = batched(&v.inputs[1], v.axes[1], v.size)?;
        let from = v.operands[0].shape();
        let cut: SmallVec<[usize; 8]> =
            (0..from.len()).filter(|i| window[*i] != from[*i]).collect();
        let mut whole = Shape::from_elem(v.size, 1);
        whole.extend(cut.iter().map(|a| window[*a]));
        let mut positions = Vec::new();
        for (k, &axis) in cut.iter().enumerate() {
            let mut aligned = Shape::from_elem(1, 1 + cut.len());
            aligned[1 + k] = window[axis];
            let steps = Array::arange(0.0, window[axis] as f64, 1.0, Dtype::Int64)?;
            let mut at = steps.reshape(&aligned)?;
            if let Some(i) = axes.iter().position(|a| *a as usize == axis) {
                aligned.fill(1);
                aligned[0] = v.size;
                let first = starts.along(1, i, i + 1, 1)?.reshape(&aligned)?;
                at = at.add(&clamped(&first, from[axis] - window[axis])?)?;
            }
            positions.push(at.broadcast_to(&whole)?);
        }
        Ok(Windows { size: v.size, window: Shape::from_slice(window), cut, positions })
    }

    /// The axes that are not cut.
    fn kept(&self) -> impl Iterator<Item = usize> {
        (0..self.window.len()).filter(|i| !self.cut.contains(i))
    }

    /// Reads the windows of an array, which can be mapped along an axis.
    fn read(mut self, source: &Array, mapped: Option<usize>) -> Result<Array> {
        let mut axes: IndexAxes = self.cut.iter().map(|a| *a as u8).collect();
        let source = match mapped {
            Some(at) => {
                let whole = self.whole();
                axes.iter_mut().for_each(|a| *a += 1);
                axes.push(0);
                self.positions.push(batch_index(&whole)?);
                move_axis(source, at, 0)?
            }
            None => source.clone(),
        };
        if axes.is_empty() {
            return batched(&source, None, self.size);
        }
        // Index axes first, then the kept ones.
        let mut shape = self.whole();
        shape.extend(self.kept().map(|a| self.window[a]));
        let taken = gather(&source, &self.positions, &axes)?.reshape(&shape)?;
        let order: SmallVec<[usize; 8]> = self.cut.iter().copied().chain(self.kept()).collect();
        let place =
            |axis: usize| order.iter().position(|a| *a == axis).unwrap_or(axis) as isize + 1;
        let back: SmallVec<[isize; 8]> =
            std::iter::once(0).chain((0..self.window.len()).map(place)).collect();
        taken.transpose_axes(&back)
    }

    /// The mapped array with the mapped updates written into its windows.
    fn write(mut self, source: &Array, update: &Array) -> Result<Array> {
        let whole = self.whole();
        self.positions.push(batch_index(&whole)?);
        let mut axes: IndexAxes = self.cut.iter().map(|a| *a as u8 + 1).collect();
        axes.push(0);
        let order: SmallVec<[isize; 8]> = std::iter::once(0)
            .chain(self.cut.iter().copied().chain(self.kept()).map(|a| a as isize + 1))
            .collect();
        let mut shape = whole;
        shape.push(1);
        let cut = |a: usize| if self.cut.contains(&a) { 1 } else { self.window[a] };
        shape.extend((0..self.window.len()).map(cut));
        let updates = update.transpose_axes(&order)?.reshape(&shape)?;
        scatter(source, &self.positions, &updates, &axes, kind::SET)
    }

    /// Shape of the index arrays.
    fn whole(&self) -> Shape {
        let mut shape = Shape::from_elem(self.size, 1);
        shape.extend(self.cut.iter().map(|a| self.window[*a]));
        shape
    }
}

/// Starts of any integer dtype, clamped to 0 to `last`, as int64.
fn clamped(starts: &Array, last: usize) -> Result<Array> {
    let bound = |n: usize| Array::scalar(n as i64);
    if starts.dtype() == Dtype::Uint64 {
        return Ok(starts.minimum(Array::scalar(last as u64))?.astype(Dtype::Int64));
    }
    starts.astype(Dtype::Int64).clip(Some(&bound(0)), Some(&bound(last)))
}
