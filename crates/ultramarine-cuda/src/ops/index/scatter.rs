//! SCATTER and SCATTER_AXIS.
//!
//! The output is first set to the source. Then every update gets the index of its target. The next
//! step depends on the operation; it is deterministic, whatever the order of threads:
//!
//! * updates are combined directly if no two can meet, or if their order cannot affect the result
//!   (sums and extremes of 32- and 64-bit integers, bools); atomic operations are used if they may
//!   meet;
//! * SET finds the last position of each target with an atomic maximum, and only the update at that
//!   position writes;
//! * all others, which are sums of floats, are sorted by target. The sorted positions are divided
//!   into chunks. Each chunk is summed for all elements of its slices, and a target in several
//!   chunks adds the chunks' sums in order. Half dtypes are added in float32 and rounded once;
//! * along an axis with many lanes, or with few updates in each lane, one thread processes each
//!   lane.

use super::gather::broadcast;
use super::{MOST, OffsetKernels, Picks, rank_of, widen, word};
use crate::launch::{Axes, Dtype, Grid, Job, OpRequest, View, Work, launch, rank_for, row_major};
use crate::ops::headers;
use crate::ops::sort::keys::{KeyKernels, KeySort, WorkspaceLayout};
use crate::program::{Kernel, Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ScatterAttrs, ScatterAxisAttrs, op, scatter};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/index/indices.cuh"),
    include_str!("../../../kernels/index/scatter.cuh"),
];

/// How indices address the target.
enum Addressed {
    Slices(Picks),
    Axis(usize, Dtype),
}

struct Scatter {
    addressed: Addressed,
    op: u32,
    dtype: Dtype,
    copy: Box<dyn Work>,
    offsets: OffsetKernels,
    keys: KeyKernels,
    kernels: Kernels<Variant>,
}

/// Identifies a kernel of a scatter: the template, the rank, whether indices have 32 bits, and the
/// number of elements in a pack.
type Variant = (&'static str, usize, bool, i64);

/// The way in which updates are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Strategy {
    /// One thread per lane.
    Lanes,
    /// Words are written; if updates may meet, only the update at the last position writes.
    Words { meet: bool },
    /// Each update separately.
    Each,
    /// Sorted, in chunks of `chunk` positions.
    Sorted { chunk: u64 },
}

/// A command in the form that its kernels use.
struct Layout {
    strategy: Strategy,
    small: bool,
    /// The updates: positions of slices, or of single elements.
    positions: Axes<1>,
    /// A slice in updates and output, in packs of `pack` elements.
    slice: Axes<2>,
    pack: i64,
    /// The targets in the output, and their number.
    targets: Axes<1>,
    count: i64,
    /// Workspace offset of the slices' offsets, if slices' elements become separate positions.
    spread: Option<u64>,
    at: u64,
    winners: u64,
    sort: Option<KeySort>,
    left: u64,
    bytes: u64,
}

/// SCATTER.
pub fn prepare_scatter(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: ScatterAttrs = request.attributes()?;
    let arrays = attributes.n_indices as usize;
    if request.inputs.len() != arrays + 2 {
        return Err(Failure::invalid(format!(
            "{} inputs, expected a source, {arrays} index arrays and updates",
            request.inputs.len()
        )));
    }
    let (rank, updates) = (request.output(0)?.ndim, request.input(1 + arrays)?);
    let (split, axes) = (attributes.index_ndim, &attributes.axes);
    let picks = Picks::of(request, attributes.n_indices, split, axes, rank, updates)?;
    prepare(request, Addressed::Slices(picks), attributes.op)
}

/// SCATTER_AXIS.
pub fn prepare_scatter_axis(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: ScatterAxisAttrs = request.attributes()?;
    request.elementwise(3)?;
    let (axis, indices) = (attributes.axis as usize, request.input(1)?);
    if axis >= indices.ndim || !indices.dtype.is_integer() {
        return Err(Failure::invalid(format!(
            "axis {axis} of rank {} by {}: expected integers",
            indices.ndim,
            indices.dtype.name()
        )));
    }
    prepare(request, Addressed::Axis(axis, indices.dtype), attributes.op)
}

fn prepare(request: &OpRequest<'_>, addressed: Addressed, code: u32) -> Result<Box<dyn Work>> {
    let (source, out) = (request.input(0)?, request.output(0)?);
    let updates = request.input(request.inputs.len() - 1)?;
    if source.dtype != out.dtype || updates.dtype != out.dtype || source.ndim != out.ndim {
        return Err(Failure::invalid(format!(
            "{} of rank {}, updates {}, output {} of rank {}: expected one dtype and rank",
            source.dtype.name(),
            source.ndim,
            updates.dtype.name(),
            out.dtype.name(),
            out.ndim
        )));
    }
    if code as usize >= scatter::NAMES.len() {
        return Err(Failure::unsupported(format!("scatter {code} is unknown")));
    }
    let copy = crate::ops::prepare(&request.part(op::COPY, vec![source], vec![out]))?;
    // Bits are moved unchanged.
    let dtype = if code == scatter::SET { out.dtype.word() } else { out.dtype };
    Ok(Box::new(Scatter {
        addressed,
        op: code,
        dtype,
        copy,
        offsets: OffsetKernels::default(),
        keys: KeyKernels::default(),
        kernels: Kernels::default(),
    }))
}

/// Bytes of the type that is used to accumulate the dtype.
fn accumulator(dtype: Dtype) -> u64 {
    if dtype.is_half() { 4 } else { dtype.bytes() }
}

/// True if the order of updates cannot affect the result, and the device has an atomic operation
/// for it.
fn is_atomic(code: u32, dtype: Dtype) -> bool {
    let integer = dtype.is_integer() && dtype.bytes() >= 4;
    code != scatter::SET && (dtype == Dtype::Bool || (integer && code != scatter::PROD))
}

/// Number of sorted positions in a chunk: there should be enough chunks for the device, but not too
/// many for a target that occurs in all of them.
fn chunk(positions: u64) -> u64 {
    (positions.isqrt() / 4).next_power_of_two().clamp(32, 256)
}

impl Scatter {
    fn updates<'a>(&self, job: &'a Job<'_>) -> Result<&'a View<'a>> {
        job.input(job.inputs.len().saturating_sub(1))
    }

    fn strategy(&self, job: &Job<'_>, positions: u64, targets: u64, meet: bool) -> Strategy {
        if let (Addressed::Axis(axis, _), Ok(updates), Ok(out)) =
            (&self.addressed, self.updates(job), job.output(0))
        {
            let lanes = out.len() / out.shape[*axis] as u64;
            let length = updates.shape[*axis].max(job.inputs[1].shape[*axis]);
            if meet && (length <= 16 || lanes >= job.device.properties.parallelism() / 4) {
                return Strategy::Lanes;
            }
        }
        // A winner for each target takes too much memory if there are many more targets than
        // updates.
        let winners = targets <= 64 * positions + (1 << 20);
        match self.op {
            scatter::SET if !meet || winners => Strategy::Words { meet },
            _ if !meet || is_atomic(self.op, self.dtype) => Strategy::Each,
            _ => Strategy::Sorted { chunk: chunk(positions) },
        }
    }

    fn layout(&self, job: &Job<'_>) -> Result<Layout> {
        let (updates, out) = (self.updates(job)?, job.output(0)?);
        let none: [&[i64]; 2] = [&[], &[]];
        let mut spread = None;
        let (positions, mut slice, targets, meet);
        match &self.addressed {
            Addressed::Slices(picks) => {
                let split = picks.split;
                let n = picks.positions(updates);
                meet = n > 1;
                let within = &updates.shape[split..];
                if meet && picks.axes.iter().any(|axis| within[*axis] != 1) {
                    spread = Some(n);
                    positions = Axes::of([updates]);
                    slice = Axes::join(&[], none);
                    targets = Axes::of([out]);
                } else {
                    positions = Axes::join(&updates.shape[..split], [&updates.strides[..split]]);
                    slice = Axes::join(within, [&updates.strides[split..], out.strides]);
                    let of = |all: &[i64]| picks.axes.iter().map(|a| all[*a]).collect::<Vec<_>>();
                    targets = Axes::join(&of(out.shape), [&of(out.strides)]);
                }
            }
            Addressed::Axis(axis, _) => {
                let mut shape = out.shape.to_vec();
                shape[*axis] = updates.shape[*axis].max(job.input(1)?.shape[*axis]);
                meet = shape[*axis] > 1;
                positions = Axes::join(&shape, [&broadcast(updates)]);
                slice = Axes::join(&[], none);
                targets = Axes::of([out]);
            }
        }
        let strategy = self.strategy(job, positions.len(), targets.len(), meet);
        let mut others: Vec<i64> = positions.stride[0][..positions.count].to_vec();
        others.extend(&targets.stride[0][..targets.count]);
        let addresses = [updates.address, out.address];
        let pack = match strategy {
            Strategy::Each | Strategy::Lanes => 1,
            _ => widen(&mut slice, self.dtype.bytes(), &others, addresses),
        };
        slice.stride.iter_mut().flatten().for_each(|s| *s *= pack);
        let sizes = [positions.len() * slice.len(), targets.len() + 1];
        let small = sizes
            .into_iter()
            .chain(job.inputs.iter().chain([out]).map(View::span))
            .all(|n| n <= MOST);
        let (mut workspace, width) = (WorkspaceLayout::default(), if small { 4 } else { 8 });
        let (mut at, mut winners, mut left, mut sort) = (0, 0, 0, None);
        if strategy != Strategy::Lanes {
            if let Some(n) = &mut spread {
                *n = workspace.take(*n * width);
            }
            at = workspace.take(positions.len() * width);
        }
        match strategy {
            Strategy::Words { meet: true } => winners = workspace.take(targets.len() * width),
            Strategy::Sorted { chunk } => {
                sort = Some(KeySort::of(positions.len(), targets.len(), !small, &mut workspace));
                let elements = slice.len() * pack as u64;
                let chunks = positions.len().div_ceil(chunk);
                left = workspace.take(2 * chunks * elements * accumulator(self.dtype));
            }
            _ => {}
        }
        let count = targets.len() as i64;
        let bytes = workspace.bytes;
        Ok(Layout {
            strategy,
            small,
            positions,
            slice,
            pack,
            targets,
            count,
            spread,
            at,
            winners,
            sort,
            left,
            bytes,
        })
    }

    /// Writes the target index of every update to the workspace.
    fn find_targets(&self, job: &Job<'_>, layout: &Layout, work: u64) -> Result<()> {
        let (updates, out) = (self.updates(job)?, job.output(0)?);
        let (small, at, nowhere) = (layout.small, work + layout.at, layout.count);
        let i = index(!small);
        match (&self.addressed, layout.spread) {
            (Addressed::Slices(picks), None) => {
                let sizes: Vec<i64> = picks.axes.iter().map(|a| out.shape[*a]).collect();
                let steps = row_major(&sizes);
                self.offsets.write(job, picks, out, updates, &steps, Some(nowhere), at, small)
            }
            (Addressed::Slices(picks), Some(first)) => {
                let (all, first) = (row_major(out.shape), work + first);
                let steps: Vec<i64> = picks.axes.iter().map(|a| all[*a]).collect();
                self.offsets.write(
                    job,
                    picks,
                    out,
                    updates,
                    &steps,
                    Some(nowhere),
                    first,
                    small,
                )?;
                let axes = Axes::join(&updates.shape[picks.split..], [&all[..]]);
                let (rank, n) = (rank_of(axes.count), updates.len());
                let variant = ("spread_offsets", rank, small, 1);
                let kernel = self.kernels.get(&job.device.programs, variant, || {
                    let parameters = format!(
                        "const {i} *places, {i} *each, i64 n, i64 nowhere, const Walk<1, {rank}> w"
                    );
                    let body = format!(
                        "spread_offsets<{rank}, {i}>(places, each, ({i})n, ({i})nowhere, w);"
                    );
                    let arguments = format!("{rank}, {i}");
                    Source::with_body(super::HEADERS, "spread_offsets", arguments, parameters, body)
                })?;
                let words = axes.parameter_in(rank);
                let grid = Grid::over(job.device, n, 2);
                launch!(job, &kernel, grid; first, at, n, nowhere, words[..])
            }
            (Addressed::Axis(axis, x), _) => {
                let indices = job.input(1)?;
                let (mut shape, mut still) = (out.shape.to_vec(), row_major(out.shape));
                shape[*axis] = updates.shape[*axis].max(indices.shape[*axis]);
                let (size, step) = (out.shape[*axis], still[*axis]);
                still[*axis] = 0;
                let axes = Axes::join(&shape, [&still[..], &broadcast(indices)]);
                let rank = rank_of(axes.count);
                let variant = ("axis_offsets", rank, small, 1);
                let kernel = self.kernels.get(&job.device.programs, variant, || {
                    let x = x.tag();
                    let parameters = format!(
                        "const {x}::T *indices, {i} *places, i64 size, i64 step, i64 nowhere, const Walk<2, {rank}> w"
                    );
                    let body = format!(
                        "axis_offsets<{x}, {rank}, {i}>(indices, places, size, step, ({i})nowhere, w);"
                    );
                    let arguments = format!("{x}, {rank}, {i}");
                    Source::with_body(super::HEADERS, "axis_offsets", arguments, parameters, body)
                })?;
                let words = axes.parameter_in(rank);
                let grid = Grid::over(job.device, axes.len(), 2);
                launch!(job, &kernel, grid; indices.address, at, size, step, nowhere, words[..])
            }
        }
    }

    /// The kernel of `template` for the layout. `types` are its template arguments before the two that
    /// all kernels have; `@` stands for the type of indices.
    fn kernel(
        &self,
        job: &Job<'_>,
        layout: &Layout,
        template: &'static str,
        types: &str,
        parameters: &str,
    ) -> Result<(Kernel, Vec<u64>)> {
        let axes = [layout.positions.count, layout.slice.count, layout.targets.count];
        let (rank, i) = (rank_of(axes.into_iter().max().unwrap_or(0)), index(!layout.small));
        let variant = (template, rank, layout.small, layout.pack);
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let names = parameters.split(", ").filter_map(|p| p.rsplit([' ', '*']).next());
            let values = names.collect::<Vec<_>>().join(", ");
            let arguments = format!("{types}, {rank}, {i}");
            let body = format!("{template}<{arguments}>({values}, ({i})nowhere, w);");
            let parameters =
                format!("{}, i64 nowhere, const Places<{rank}> w", parameters.replace('@', i));
            Source::with_body(HEADERS, template, arguments, parameters, body)
        })?;
        let mut words = layout.positions.parameter_in(rank);
        words.extend(layout.slice.parameter_in(rank));
        words.extend(layout.targets.parameter_in(rank));
        Ok((kernel, words))
    }

    fn run_words(&self, job: &Job<'_>, layout: &Layout, work: u64, meet: bool) -> Result<()> {
        let (updates, out) = (self.updates(job)?.address, job.output(0)?.address);
        let (at, nowhere, n) = (work + layout.at, layout.count, layout.positions.len());
        let winners = if meet { work + layout.winners } else { 0 };
        if meet {
            let i = index(!layout.small);
            let bytes = nowhere as usize * if layout.small { 4 } else { 8 };
            // SAFETY: the workspace was requested with this size.
            unsafe { job.fill(winners, 0, 1, bytes) }?;
            let variant = ("find_winners", 1, layout.small, 1);
            let kernel = self.kernels.get(&job.device.programs, variant, || {
                let parameters = format!("const {i} *target, {i} *winners, i64 n, i64 nowhere");
                let body = format!("find_winners<{i}>(target, winners, ({i})n, ({i})nowhere);");
                Source::with_body(HEADERS, "find_winners", i, parameters, body)
            })?;
            launch!(job, &kernel, Grid::over(job.device, n, 2); at, winners, n, nowhere)?;
        }
        let (t, w) = (self.dtype.tag(), word(layout.pack as u64 * self.dtype.bytes()));
        let (kernel, words) = self.kernel(
            job,
            layout,
            "scatter_words",
            &format!("{t}::T, {w}"),
            &format!("const {t}::T *updates, {t}::T *out, const @ *target, const @ *winners"),
        )?;
        let grid = Grid::over(job.device, n * layout.slice.len(), 2);
        launch!(job, &kernel, grid; updates, out, at, winners, nowhere, words[..])
    }

    fn run_each(&self, job: &Job<'_>, layout: &Layout, work: u64) -> Result<()> {
        let (updates, out) = (self.updates(job)?.address, job.output(0)?.address);
        let (at, nowhere) = (work + layout.at, layout.count);
        let t = self.dtype.tag();
        let (kernel, words) = self.kernel(
            job,
            layout,
            "scatter_each",
            &format!("{t}, {}", self.op),
            &format!("const {t}::T *updates, {t}::T *out, const @ *target"),
        )?;
        let grid = Grid::over(job.device, layout.positions.len() * layout.slice.len(), 2);
        launch!(job, &kernel, grid; updates, out, at, nowhere, words[..])
    }

    fn run_sorted(&self, job: &Job<'_>, layout: &Layout, work: u64, chunk: u64) -> Result<()> {
        let (updates, out) = (self.updates(job)?.address, job.output(0)?.address);
        let Some(sort) = &layout.sort else { return Err(Failure::invalid("no room for a sort")) };
        sort.run(job, &self.keys, work + layout.at, work)?;
        let [sorted, order] = sort.sorted().map(|at| work + at);
        let (left, nowhere, t) = (work + layout.left, layout.count, self.dtype.tag());
        // There must be no space here, because parameters are split at ", ".
        let types = format!("{t},{},{}", self.op, layout.pack);
        let (kernel, words) = self.kernel(
            job,
            layout,
            "sum_chunks",
            &types,
            &format!("const {t}::T *updates, {t}::T *out, const @ *sorted, const @ *order, Sum<{types}> *left, @ chunk"),
        )?;
        // The kernels' chunk count has the width of their indices. A small number is in the lower
        // half of the word.
        let chunks = layout.positions.len().div_ceil(chunk);
        let grid = Grid::over(job.device, chunks * layout.slice.len(), 1);
        launch!(job, &kernel, grid; updates, out, sorted, order, left, chunk, nowhere, words[..])?;
        if chunks == 1 {
            return Ok(());
        }
        let (kernel, words) = self.kernel(
            job,
            layout,
            "sum_left",
            &types,
            &format!("{t}::T *out, const @ *sorted, const Sum<{types}> *left, @ chunk"),
        )?;
        launch!(job, &kernel, grid; out, sorted, left, chunk, nowhere, words[..])
    }

    fn run_lanes(&self, job: &Job<'_>, layout: &Layout, axis: usize, x: Dtype) -> Result<()> {
        let (indices, updates, out) = (job.input(1)?, self.updates(job)?, job.output(0)?);
        let length = indices.shape[axis].max(updates.shape[axis]);
        let strides = [broadcast(indices), broadcast(updates), out.strides.to_vec()];
        let [index_step, update_step, out_step] = [0, 1, 2].map(|k| strides[k][axis]);
        let mut shape = out.shape.to_vec();
        let size = std::mem::replace(&mut shape[axis], 1);
        let lanes = Axes::join(&shape, [&strides[0][..], &strides[1], &strides[2]]);
        let (words, rank) = (lanes.parameter(), rank_for(lanes.count));
        let variant = ("scatter_lanes", rank, layout.small, 1);
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let (t, x, op, i) = (self.dtype.tag(), x.tag(), self.op, index(!layout.small));
            let parameters = format!(
                "const {x}::T *indices, const {t}::T *updates, {t}::T *out, i64 length, i64 size, i64 index_step, i64 update_step, i64 out_step, const Walk<3, {rank}> w"
            );
            let arguments = format!("{t}, {op}, {x}, {rank}, {i}");
            Source::instance(HEADERS, "scatter_lanes", arguments, parameters)
        })?;
        let grid = Grid::over(job.device, lanes.len(), 1);
        launch!(job, &kernel, grid; indices.address, updates.address, out.address, length, size, index_step, update_step, out_step, words[..])
    }
}

impl Work for Scatter {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(self.layout(job)?.bytes)
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, out) = (job.input(0)?, job.output(0)?);
        if source.address != out.address || source.strides != out.strides {
            self.copy.run(&job.part(*source, *out, 0))?;
        }
        let layout = self.layout(job)?;
        if let (Strategy::Lanes, Addressed::Axis(axis, x)) = (layout.strategy, &self.addressed) {
            return self.run_lanes(job, &layout, *axis, *x);
        }
        let work = job.scratch()?;
        self.find_targets(job, &layout, work)?;
        match layout.strategy {
            Strategy::Words { meet } => self.run_words(job, &layout, work, meet),
            Strategy::Sorted { chunk } => self.run_sorted(job, &layout, work, chunk),
            Strategy::Each | Strategy::Lanes => self.run_each(job, &layout, work),
        }
    }
}
