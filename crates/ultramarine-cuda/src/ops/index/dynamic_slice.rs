//! DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE. A window is moved in words of up to 16 bytes; the kernel that moves it
//! reads its start indices.

use super::{MOST, rank_of, widen, word};
use crate::launch::{
    Axes, Desc, Dtype, Grid, Job, Kind, MAX_AXES, OpRequest, TOGETHER, Work, as_one, launch,
};
use crate::ops::headers;
use crate::program::{Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{DynamicSliceAttrs, op};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/index/indices.cuh"),
    include_str!("../../../kernels/index/dynamic_slice.cuh"),
];

struct DynamicSlice {
    /// The axis of each start index.
    axes: Vec<usize>,
    starts: Dtype,
    bytes: u64,
    /// For an update, the copy of the source into the output.
    copy: Option<Box<dyn Work>>,
    kernels: Kernels<Variant>,
}

/// Maximum number of windows in a launch: keys and values make two.
const MOST_TOGETHER: usize = 2;

/// Identifies a kernel: the number of a window's axes, the bytes of a word, whether indices have 32 bits, and the number
/// of windows in a launch.
type Variant = (usize, u64, bool, usize);

/// DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: DynamicSliceAttrs = request.attributes()?;
    let (source, starts, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    let updates = request.op == op::DYNAMIC_SLICE_UPDATE;
    let fits = |d: Desc| (d.dtype, d.ndim) == (out.dtype, out.ndim);
    if request.inputs.len() != 2 + usize::from(updates)
        || !fits(source)
        || (updates && !fits(request.input(2)?))
        || starts.ndim != 1
        || !starts.dtype.is_integer()
    {
        return Err(Failure::invalid(format!(
            "{} inputs, the first {} of rank {}, starts {} of rank {}, output {} of rank {}: expected one dtype and \
             rank, and starts of one dimension that are integers",
            request.inputs.len(),
            source.dtype.name(),
            source.ndim,
            starts.dtype.name(),
            starts.ndim,
            out.dtype.name(),
            out.ndim
        )));
    }
    let n = (attributes.n_starts as usize).min(MAX_AXES);
    let axes: Vec<usize> = attributes.axes[..n].iter().map(|a| usize::from(*a)).collect();
    let distinct = |(i, axis): (usize, &usize)| *axis < out.ndim && !axes[..i].contains(axis);
    if n == 0 || n != attributes.n_starts as usize || !axes.iter().enumerate().all(distinct) {
        return Err(Failure::invalid(format!(
            "{} starts along axes {axes:?}, which shall be different ones of {}",
            attributes.n_starts, out.ndim
        )));
    }
    let copy = match updates {
        true => Some(crate::ops::prepare(&request.part(op::COPY, vec![source], vec![out]))?),
        false => None,
    };
    let (starts, bytes) = (starts.dtype, out.dtype.bytes());
    Ok(Box::new(DynamicSlice { axes, starts, bytes, copy, kernels: Kernels::default() }))
}

impl DynamicSlice {
    /// The kernel that moves a window from or to `whole`, as one of `several`; its arguments; and the number
    /// of elements.
    fn window(&self, job: &Job<'_>, several: usize) -> Result<(Variant, Vec<u64>, u64)> {
        let (out, starts) = (job.output(0)?, job.input(1)?);
        let (whole, from) = match self.copy {
            Some(_) => (out, job.input(2)?),
            None => (job.input(0)?, job.input(0)?),
        };
        let shape = if self.copy.is_some() { from.shape } else { out.shape };
        let fits = shape.iter().zip(whole.shape).all(|(n, all)| n <= all);
        if !fits || starts.shape[0] != self.axes.len() as i64 {
            return Err(Failure::invalid(format!(
                "a window {shape:?} of {:?} at {:?} starts: expected one within it, and {} starts",
                whole.shape,
                starts.shape,
                self.axes.len()
            )));
        }
        let mut window = Axes::join(shape, [from.strides, out.strides]);
        let limits: Vec<i64> = self.axes.iter().map(|a| whole.shape[*a] - shape[*a] + 1).collect();
        // If a window fits at only one position, its start does not matter.
        let step = |(a, limit): (&usize, &i64)| if *limit > 1 { whole.strides[*a] } else { 0 };
        let mut steps: Vec<i64> = self.axes.iter().zip(&limits).map(step).collect();
        let factor = widen(&mut window, self.bytes, &steps, [from.address, out.address]);
        steps.iter_mut().for_each(|s| *s /= factor);
        let small = window.is_small() && whole.span() / factor as u64 <= MOST;
        let (rank, bytes) = (rank_of(window.count), factor as u64 * self.bytes);
        let mut words = vec![from.address, out.address, starts.address, starts.strides[0] as u64];
        words.extend(limits.iter().chain(&steps).map(|n| *n as u64));
        words.extend(window.parameter_in(rank));
        Ok(((rank, bytes, small, several), words, window.len()))
    }

    /// Moves several windows in one launch. Returns false if their kernels differ.
    fn move_windows(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let all = as_one(jobs, |job| self.window(job, jobs.len()))?;
        let (Some(job), Some((variant, words, elements))) = (jobs.first(), all) else {
            return Ok(false);
        };
        let kernel = self.kernels.get(&job.device.programs, variant, || self.source(variant))?;
        let grid = Grid::over(job.device, elements, 4).of_several(jobs.len());
        launch!(job, &kernel, grid; words[..])?;
        Ok(true)
    }

    fn source(&self, (rank, bytes, small, several): Variant) -> Source {
        let (w, x, n, i) = (word(bytes), self.starts.tag(), self.axes.len(), index(!small));
        let parameters = format!("const Several<Window<{w}, {n}, {rank}>, {several}> all");
        let arguments = format!("{w}, {x}, {n}, {}, {rank}, {i}, {several}", self.copy.is_some());
        Source::instance(HEADERS, "move_window", arguments, parameters)
    }
}

impl Work for DynamicSlice {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        if let Some(copy) = &self.copy
            && !is_in_place(job)
        {
            copy.run(&job.part(*job.input(0)?, *job.output(0)?, 0))?;
        }
        self.move_windows(std::slice::from_ref(job)).map(|_| ())
    }

    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        let update = job.inputs.get(2).filter(|_| self.copy.is_some() && is_in_place(job))?;
        let fits = update.len() <= TOGETHER && self.axes.len() <= 4;
        let axes = self.axes.iter().fold(1, |number, axis| number << 8 | *axis as u64);
        let number = axes << 16 | u64::from(self.starts as u8) << 8 | self.bytes;
        fits.then_some(Kind { most: MOST_TOGETHER, number })
    }

    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        // A replay may use other memory.
        Ok(jobs.iter().all(is_in_place) && self.move_windows(jobs)?)
    }
}

/// True if an update's output is its source.
fn is_in_place(job: &Job<'_>) -> bool {
    match (job.inputs.first(), job.outputs.first()) {
        (Some(source), Some(out)) => source.address == out.address && source.strides == out.strides,
        _ => false,
    }
}
