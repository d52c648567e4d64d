//! SCATTER and SCATTER_AXIS. Updates are combined with the existing elements; several updates of one element are
//! combined in their order. On GPUs, [`Combined`] does this. On CPUs, each invocation loops over all updates of
//! its elements.

use super::places::{Indexed, Places};
use super::sorted::{Combined, Updates};
use super::{index_tensor, kernel, step_of};
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::ops::copy::Copy;
use crate::program::Kernel;
use crate::shader::Tensor;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{self, ScatterAttrs, ScatterAxisAttrs, scatter};

/// How an update is combined with the existing value. If either is NaN, the result of an extreme is the
/// update.
fn combine(request: &OpRequest<'_>, op: u32, dtype: Dtype) -> Result<String> {
    let row = schema::find(request.op).and_then(|row| row.code(op));
    if row.is_none_or(|row| row.dtypes & dtype.bit() == 0) {
        return Err(request.unknown(Some(op)));
    }
    if op != scatter::SET {
        request.computes(&[dtype])?;
    }
    let less = |x: &str, y: &str| match dtype {
        Dtype::Complex64 => format!("less_complex({x}, {y})"),
        _ => format!("{x} < {y}"),
    };
    let value = match op {
        scatter::SET => "update".to_owned(),
        scatter::SUM if dtype == Dtype::Bool => "there | update".to_owned(),
        scatter::PROD if dtype == Dtype::Bool => "there & update".to_owned(),
        scatter::SUM => "there + update".to_owned(),
        scatter::PROD if dtype == Dtype::Complex64 => {
            "vec2<f32>(there.x * update.x - there.y * update.y, there.x * update.y + there.y * update.x)".to_owned()
        }
        scatter::PROD => "there * update".to_owned(),
        scatter::MIN => format!("select(update, there, {})", less("there", "update")),
        _ => format!("select(update, there, {})", less("update", "there")),
    };
    let register = dtype.register();
    Ok(format!(
        "fn combine(there: {register}, update: {register}) -> {register} {{ return {value}; }}"
    ))
}

/// The dtype in which updates are combined. Updates that only replace are moved as words.
fn combined(op: u32, dtype: Dtype) -> Dtype {
    if op == scatter::SET { dtype.word() } else { dtype }
}

struct Scatter {
    copy: Copy,
    places: Places,
    kernel: Arc<Kernel>,
    /// For updates that overlap only if their offsets are equal.
    combined: Option<Combined>,
}

/// The parallel implementation, on devices that profit from it.
fn parallel(
    request: &OpRequest<'_>,
    op: u32,
    dtype: Dtype,
    item: &str,
) -> Result<Option<Combined>> {
    let wanted = request.device.context.properties.gpu_kernels;
    wanted.then(|| Combined::new(request, op, dtype, item)).transpose()
}

/// True if loops can process all updates, whatever their offsets are.
fn fits_loops(job: &Job<'_>, pieces: u64) -> bool {
    pieces <= job.device.context.properties.iterations.into()
}

pub(super) fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: ScatterAttrs = request.attributes()?;
    let (source, out) = (request.input(0)?, request.output(0)?);
    let updates = request.input(request.inputs.len() - 1)?;
    let fits = request.inputs.len() == 2 + attributes.n_indices as usize
        && [source.dtype, updates.dtype] == [out.dtype; 2]
        && source.ndim == out.ndim
        && updates.ndim == attributes.index_ndim as usize + out.ndim;
    if !fits {
        return Err(Failure::invalid("source, index arrays, updates and output do not fit"));
    }
    combine(request, attributes.op, out.dtype)?;
    let dtype = combined(attributes.op, out.dtype);
    let item = combine(request, attributes.op, dtype)?;
    let given = (attributes.n_indices, attributes.index_ndim, &attributes.axes);
    let places = Places::of(request, given, out.ndim, true)?;
    let tensors = [Tensor { name: "u", dtype }, Tensor { name: "out", dtype }];
    let kernel = kernel(request, &tensors, true, &item, "scatter(i);")?;
    let copy = Copy::new(request.device, out.dtype, out.dtype)?;
    let combined = parallel(request, attributes.op, dtype, &item)?;
    Ok(Box::new(Scatter { copy, places, kernel, combined }))
}

impl Work for Scatter {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let updates = job.input(job.inputs.len() - 1)?;
        let positions = u64::from(self.places.positions(updates.shape)?);
        let each = updates.len() / positions;
        Ok(self.combined.as_ref().map_or(4 * positions, |c| c.workspace(positions, each)))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, out, places) = (job.input(0)?, job.output(0)?, job.scratch()?);
        let last = job.inputs.len() - 1;
        let updates = job.input(last)?;
        self.copy.run_views(job, source, out)?;
        let of = Indexed { arrays: &job.inputs[1..last], whole: out, slices: updates.shape };
        self.places.run(job, &of, &places)?;
        let n = self.places.index_ndim();
        let slice: Vec<_> = (n..updates.shape.len())
            .map(|d| (updates.shape[d], [out.strides[d - n], updates.strides[d]]))
            .collect();
        let (off, along) = self.places.split(&slice);
        let (off, along) = (Axes::join([0, 0], off), Axes::join([0, 0], along));
        let positions = (0..n).map(|d| (updates.shape[d], [updates.strides[d]]));
        let each = along.elements()?;
        let pieces = self.places.positions(updates.shape)?.into();
        if let Some(combined) =
            self.combined.as_ref().filter(|_| each == 1 && fits_loops(job, pieces))
        {
            let pieces = Axes::join([updates.offset], positions);
            return combined.run(job, &places, &Updates { updates, out, pieces, piece: off });
        }
        let all = count([self.places.positions(updates.shape)?.into(), each.into()])?;
        let mut words = vec![0, 0, each, 0, 0];
        let positions = Axes::join([updates.offset], positions);
        positions.words(&mut words);
        // The index in words is one higher, because word 0 is the number of invocations.
        words[3] = words.len() as u32 + 1;
        off.words(&mut words);
        words[4] = words.len() as u32 + 1;
        along.words(&mut words);
        let blocks = [&updates.block, &out.block, &places];
        // An update takes one iteration of the loop, and each of two walks takes one per axis and
        // one more.
        let turns = 3 + positions.list.len().max(1) + along.list.len().max(1);
        let turns = turns as u32;
        in_parts(job, all, turns, |first, end| {
            words[..2].copy_from_slice(&[first, end]);
            job.launch(&self.kernel, &blocks, off.elements()?, &words)
        })
    }
}

/// Calls `part` for ranges of the updates, each as long as an invocation may loop.
fn in_parts(
    job: &Job<'_>,
    updates: u32,
    turns: u32,
    mut part: impl FnMut(u32, u32) -> Result<()>,
) -> Result<()> {
    let most = job.device.context.properties.iterations / turns;
    let mut first = 0;
    while first < updates {
        let end = first.saturating_add(most).min(updates);
        part(first, end)?;
        first = end;
    }
    Ok(())
}

struct ScatterAxis {
    copy: Copy,
    kernel: Arc<Kernel>,
    axis: usize,
    /// The kernel that computes the offsets of updates, and the implementation that combines them.
    combined: Option<(Arc<Kernel>, Combined)>,
}

pub(super) fn prepare_axis(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(3)?;
    let attributes: ScatterAxisAttrs = request.attributes()?;
    let (source, indices) = (request.input(0)?, request.input(1)?);
    let (updates, out) = (request.input(2)?, request.output(0)?);
    let axis = attributes.axis as usize;
    if [source.dtype, updates.dtype] != [out.dtype; 2] || axis >= out.ndim {
        return Err(Failure::invalid("source, updates, output and axis do not fit"));
    }
    combine(request, attributes.op, out.dtype)?;
    let dtype = combined(attributes.op, out.dtype);
    let (given, load) = index_tensor(indices.dtype)?;
    let item = combine(request, attributes.op, dtype)?;
    let items = format!("{load}\n{item}");
    let tensors = [given, Tensor { name: "u", dtype }, Tensor { name: "out", dtype }];
    let combined = match parallel(request, attributes.op, dtype, &item)? {
        Some(combined) => {
            Some((kernel(request, &[given], true, &load, "axis_places(i);")?, combined))
        }
        None => None,
    };
    let kernel = kernel(request, &tensors, false, &items, "scatter_axis(i);")?;
    let copy = Copy::new(request.device, out.dtype, out.dtype)?;
    Ok(Box::new(ScatterAxis { copy, kernel, axis, combined }))
}

impl Work for ScatterAxis {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let Some((_, combined)) = &self.combined else { return Ok(0) };
        let pieces = self.pieces(job)?;
        Ok(if self.is_short_of_lanes(job)? { combined.workspace(pieces, 1) } else { 0 })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, indices) = (job.input(0)?, job.input(1)?);
        let (updates, out, axis) = (job.input(2)?, job.output(0)?, self.axis);
        self.copy.run_views(job, source, out)?;
        let others = (0..out.shape.len()).filter(|d| *d != axis);
        let of_lane = others
            .map(|d| (out.shape[d], [out.strides[d], step_of(indices, d), step_of(updates, d)]));
        let of_lane: Vec<_> = of_lane.collect();
        let offsets = [out.offset, indices.offset, updates.offset];
        let lanes = Axes::join(offsets, of_lane.iter().copied());
        let length = indices.shape[axis].max(updates.shape[axis]);
        let steps = [out.strides[axis], step_of(indices, axis), step_of(updates, axis)];
        let size = out.shape[axis] as u32;
        if let Some((find, combined)) = &self.combined
            && self.is_short_of_lanes(job)?
        {
            let work = job.scratch()?;
            let pieces = of_lane.iter().map(|(n, [_, _, update])| (*n, [*update]));
            let pieces = Axes::join([updates.offset], pieces.chain([(length, [steps[2]])]));
            let mut words = vec![length as u32, size, steps[0] as u32, steps[1] as u32];
            lanes.words(&mut words);
            job.launch(find, &[&indices.block, &work], pieces.elements()?, &words)?;
            let piece = Axes::join([0, 0], []);
            return combined.run(job, &work, &Updates { updates, out, pieces, piece });
        }
        let mut words = vec![0, 0, size];
        words.extend(steps.map(|step| step as u32));
        let blocks = [&indices.block, &updates.block, &out.block];
        lanes.words(&mut words);
        in_parts(job, count([length])?, 1, |first, end| {
            words[..2].copy_from_slice(&[first, end]);
            job.launch(&self.kernel, &blocks, lanes.elements()?, &words)
        })
    }
}

impl ScatterAxis {
    /// All updates, as pieces.
    fn pieces(&self, job: &Job<'_>) -> Result<u64> {
        let (indices, updates) = (job.input(1)?, job.input(2)?);
        let length = indices.shape[self.axis].max(updates.shape[self.axis]) as u64;
        let out = job.output(0)?;
        Ok(length * (out.len() / out.shape[self.axis] as u64))
    }

    /// True if there are too few lanes to keep the device busy with one invocation per lane.
    fn is_short_of_lanes(&self, job: &Job<'_>) -> Result<bool> {
        let out = job.output(0)?;
        let lanes = out.len() / out.shape[self.axis] as u64;
        let few = lanes < job.device.context.properties.parallelism();
        Ok(few && fits_loops(job, self.pieces(job)?))
    }
}
