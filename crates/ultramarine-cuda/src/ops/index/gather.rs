//! GATHER and GATHER_AXIS. Elements are moved without interpreting them.
//!
//! A thread moves words of up to 16 bytes; the width depends on how much of a slice is contiguous
//! in source and output. One or two index arrays are read by the kernel that moves the slices. With
//! more arrays, offsets are first written to the workspace.

use super::{MOST, OffsetKernels, Picks, rank_of, widen, word};
use crate::launch::{Axes, Dtype, Grid, Job, OpRequest, RankVariant, View, Work, launch};
use crate::ops::headers;
use crate::program::{Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{AxisAttrs, GatherAttrs};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/index/indices.cuh"),
    include_str!("../../../kernels/index/gather.cuh"),
];

struct Gather {
    picks: Picks,
    /// The arrays' dtype, if the kernel that moves slices reads them.
    direct: Option<Dtype>,
    bytes: u64,
    kernels: Kernels<Variant>,
    offsets: OffsetKernels,
}

struct GatherAxis {
    axis: usize,
    index: Dtype,
    bytes: u64,
    kernels: Kernels<RankVariant>,
}

/// Identifies a kernel of a gather.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    /// Number of index arrays that the kernel reads.
    arrays: usize,
    /// Ranks of the positions and of a slice.
    ranks: [usize; 2],
    /// Bytes of a word.
    word: u64,
    small: bool,
}

/// GATHER.
pub fn prepare_gather(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: GatherAttrs = request.attributes()?;
    let (source, out) = (request.input(0)?, request.output(0)?);
    let arrays = attributes.n_indices as usize;
    if source.dtype != out.dtype || request.inputs.len() != 1 + arrays {
        return Err(Failure::invalid(format!(
            "{} inputs, {} to {}: expected a source and {arrays} index arrays, and one dtype",
            request.inputs.len(),
            source.dtype.name(),
            out.dtype.name()
        )));
    }
    let (split, axes) = (attributes.index_ndim, &attributes.axes);
    let picks = Picks::of(request, attributes.n_indices, split, axes, source.ndim, out)?;
    let direct = super::one_dtype(request, arrays).filter(|_| arrays <= 2);
    Ok(Box::new(Gather {
        picks,
        direct,
        bytes: source.dtype.bytes(),
        kernels: Kernels::default(),
        offsets: OffsetKernels::default(),
    }))
}

impl Gather {
    /// Moves the slices; the kernel reads the `N` index arrays itself.
    fn move_picked<const N: usize, const K: usize>(&self, job: &Job<'_>, x: Dtype) -> Result<()> {
        let (source, out, picks) = (job.input(0)?, job.output(0)?, &self.picks);
        let strides: Vec<Vec<i64>> =
            (0..N).map(|k| Ok(picks.strides(job.input(1 + k)?))).collect::<Result<_>>()?;
        let over: [&[i64]; K] =
            core::array::from_fn(
                |k| if k < N { &strides[k][..] } else { &out.strides[..picks.split] },
            );
        let mut positions = Axes::join(&out.shape[..picks.split], over);
        let steps: Vec<i64> = picks.axes.iter().map(|axis| source.strides[*axis]).collect();
        let moved = Moved::of(self, source, out, &steps);
        positions.stride[N].iter_mut().for_each(|s| *s /= moved.factor);
        let small = moved.small && positions.is_small();
        let (p, s) = (rank_of(positions.count), rank_of(moved.slice.count));
        let variant = Variant { arrays: N, ranks: [p, s], word: moved.bytes(self), small };
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let (w, x, i) = (word(moved.bytes(self)), x.tag(), index(!small));
            let parameters = format!(
                "const {w} *source, {w} *out, const Picks<{N}> picks, const Walk<{K}, {p}> walk, const Walk<2, {s}> slice"
            );
            let place = format!("Picked<{x}, {N}, {p}, {i}>");
            let body = format!(
                "{place} where = {{picks, walk}}; gather_slices<{w}, {place}, {s}, {i}>(source, out, where, ({i})walk.n, slice);"
            );
            let arguments = format!("{w}, {place}, {s}, {i}");
            Source::with_body(HEADERS, "gather_slices", arguments, parameters, body)
        })?;
        let mut given = Vec::with_capacity(4 * N);
        for k in 0..N {
            given.push(job.input(1 + k)?.address);
        }
        given.extend((0..N).map(|k| source.shape[picks.axes[k]] as u64));
        given.extend((0..N).map(|k| picks.limit(k, source, out) as u64));
        given.extend((0..N).map(|k| (steps[k] / moved.factor) as u64));
        let (outer, inner) = (positions.parameter_in(p), moved.slice.parameter_in(s));
        let grid = Grid::over(job.device, positions.len() * moved.slice.len(), 4);
        launch!(job, &kernel, grid; source.address, out.address, given[..], outer[..], inner[..])
    }

    /// Moves the slices whose offsets were written to the workspace.
    fn move_placed(&self, job: &Job<'_>) -> Result<()> {
        let (source, out, picks) = (job.input(0)?, job.output(0)?, &self.picks);
        let mut positions = Axes::join(&out.shape[..picks.split], [&out.strides[..picks.split]]);
        let mut steps: Vec<i64> = picks.axes.iter().map(|axis| source.strides[*axis]).collect();
        let moved = Moved::of(self, source, out, &steps);
        positions.stride[0].iter_mut().for_each(|s| *s /= moved.factor);
        steps.iter_mut().for_each(|s| *s /= moved.factor);
        let small = moved.small && positions.is_small() && picks.is_small(job);
        let at = job.scratch()?;
        self.offsets.write(job, picks, source, out, &steps, None, at, small)?;
        let (p, s) = (rank_of(positions.count), rank_of(moved.slice.count));
        let variant = Variant { arrays: 0, ranks: [p, s], word: moved.bytes(self), small };
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let (w, i) = (word(moved.bytes(self)), index(!small));
            let parameters = format!(
                "const {w} *source, {w} *out, const {i} *places, const Walk<1, {p}> walk, const Walk<2, {s}> slice"
            );
            let place = format!("Placed<{p}, {i}>");
            let body = format!(
                "{place} where = {{places, walk}}; gather_slices<{w}, {place}, {s}, {i}>(source, out, where, ({i})walk.n, slice);"
            );
            let arguments = format!("{w}, {place}, {s}, {i}");
            Source::with_body(HEADERS, "gather_slices", arguments, parameters, body)
        })?;
        let (outer, inner) = (positions.parameter_in(p), moved.slice.parameter_in(s));
        let grid = Grid::over(job.device, positions.len() * moved.slice.len(), 4);
        launch!(job, &kernel, grid; source.address, out.address, at, outer[..], inner[..])
    }
}

/// The way in which slices are moved.
struct Moved {
    slice: Axes<2>,
    /// Elements per word.
    factor: i64,
    small: bool,
}

impl Moved {
    fn of(plan: &Gather, source: &View<'_>, out: &View<'_>, steps: &[i64]) -> Self {
        let split = plan.picks.split;
        let mut slice = Axes::join(&out.shape[split..], [source.strides, &out.strides[split..]]);
        let mut others = steps.to_vec();
        others.extend(
            out.strides[..split].iter().zip(out.shape).filter(|(_, n)| **n != 1).map(|(s, _)| *s),
        );
        let factor = widen(&mut slice, plan.bytes, &others, [source.address, out.address]);
        let words = factor as u64;
        let small = out.len() / words <= MOST
            && source.span() / words <= MOST
            && out.span() / words <= MOST;
        Self { slice, factor, small }
    }

    fn bytes(&self, plan: &Gather) -> u64 {
        self.factor as u64 * plan.bytes
    }
}

impl Work for Gather {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(match self.direct {
            Some(_) => 0,
            None => 8 * self.picks.positions(job.output(0)?),
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        match (self.direct, self.picks.arrays) {
            (Some(x), 1) => self.move_picked::<1, 2>(job, x),
            (Some(x), 2) => self.move_picked::<2, 3>(job, x),
            _ => self.move_placed(job),
        }
    }
}

/// GATHER_AXIS.
pub fn prepare_gather_axis(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: AxisAttrs = request.attributes()?;
    let axis = attributes.axis as usize;
    request.elementwise(2)?;
    let (source, indices, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    if source.dtype != out.dtype || !indices.dtype.is_integer() || axis >= out.ndim {
        return Err(Failure::invalid(format!(
            "axis {axis} of rank {}, {} by {} to {}: expected one dtype, and integers",
            out.ndim,
            source.dtype.name(),
            indices.dtype.name(),
            out.dtype.name()
        )));
    }
    let bytes = source.dtype.bytes();
    Ok(Box::new(GatherAxis { axis, index: indices.dtype, bytes, kernels: Kernels::default() }))
}

/// The tensor's strides, with 0 along axes where it has one element.
pub fn broadcast(view: &View<'_>) -> Vec<i64> {
    let each = view.shape.iter().zip(view.strides);
    each.map(|(size, stride)| if *size == 1 { 0 } else { *stride }).collect()
}

impl Work for GatherAxis {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, indices, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let mut still = broadcast(source);
        still[self.axis] = 0;
        let axes = Axes::join(out.shape, [&still[..], &broadcast(indices), out.strides]);
        let (size, step) = (source.shape[self.axis], source.strides[self.axis]);
        let small = axes.is_small() && source.span() <= MOST;
        let (words, variant) = (axes.parameter(), RankVariant { wide: !small, ..axes.variant() });
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let (w, x) = (word(self.bytes), self.index.tag());
            let RankVariant { rank, .. } = variant;
            let parameters = format!(
                "const {w} *source, const {x}::T *indices, {w} *out, i64 size, i64 step, const Walk<3, {rank}> w"
            );
            let arguments = format!("{w}, {x}, {rank}, {}", variant.index());
            Source::instance(HEADERS, "gather_axis", arguments, parameters)
        })?;
        let grid = Grid::over(job.device, axes.len(), 4);
        launch!(job, &kernel, grid; source.address, indices.address, out.address, size, step, words[..])
    }
}
