//! DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE: a window is moved in words of up to 16 bytes, and its starts are read where
//! it is moved.

use super::{MOST, rank_of, widen, word};
use crate::launch::{Axes, Desc, Dtype, Grid, Job, MAX_AXES, OpRequest, View, Work, launch};
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
    /// The axis that each start is about.
    axes: Vec<usize>,
    starts: Dtype,
    bytes: u64,
    /// Of the source into the output, where there is an update.
    copy: Option<Box<dyn Work>>,
    kernels: Kernels<Variant>,
}

/// Identifies a kernel: the axes of a window, the bytes of a word, whether indices have 32 bits.
type Variant = (usize, u64, bool);

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
    /// Moves a window from or to `whole`, of which it begins at the starts.
    fn move_window(
        &self,
        job: &Job<'_>,
        whole: &View<'_>,
        from: &View<'_>,
        to: &View<'_>,
    ) -> Result<()> {
        let starts = job.input(1)?;
        let shape = if self.copy.is_some() { from.shape } else { to.shape };
        let fits = shape.iter().zip(whole.shape).all(|(n, all)| n <= all);
        if !fits || starts.shape[0] != self.axes.len() as i64 {
            return Err(Failure::invalid(format!(
                "a window {shape:?} of {:?} at {:?} starts: expected one within it, and {} starts",
                whole.shape,
                starts.shape,
                self.axes.len()
            )));
        }
        let mut window = Axes::join(shape, [from.strides, to.strides]);
        let limits: Vec<i64> = self.axes.iter().map(|a| whole.shape[*a] - shape[*a] + 1).collect();
        // Where a window has one place, its start does not matter.
        let step = |(a, limit): (&usize, &i64)| if *limit > 1 { whole.strides[*a] } else { 0 };
        let mut steps: Vec<i64> = self.axes.iter().zip(&limits).map(step).collect();
        let factor = widen(&mut window, self.bytes, &steps, [from.address, to.address]);
        steps.iter_mut().for_each(|s| *s /= factor);
        let small = window.is_small() && whole.span() / factor as u64 <= MOST;
        let (rank, bytes) = (rank_of(window.count), factor as u64 * self.bytes);
        let kernel = self.kernels.get(&job.device.programs, (rank, bytes, small), || {
            let (w, x, n, i) = (word(bytes), self.starts.tag(), self.axes.len(), index(!small));
            let parameters = format!(
                "const {w} *source, {w} *out, const Starts<{n}> starts, const Walk<2, {rank}> w"
            );
            let arguments = format!("{w}, {x}, {n}, {}, {rank}, {i}", self.copy.is_some());
            Source::instance(HEADERS, "move_window", arguments, parameters)
        })?;
        let mut given = vec![starts.address, starts.strides[0] as u64];
        given.extend(limits.iter().map(|n| *n as u64));
        given.extend(steps.iter().map(|s| *s as u64));
        let words = window.parameter_in(rank);
        let grid = Grid::over(job.device, window.len(), 4);
        launch!(job, &kernel, grid; from.address, to.address, given[..], words[..])
    }
}

impl Work for DynamicSlice {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, out) = (job.input(0)?, job.output(0)?);
        match &self.copy {
            Some(copy) => {
                if source.address != out.address || source.strides != out.strides {
                    copy.run(&job.part(*source, *out, 0))?;
                }
                self.move_window(job, out, job.input(2)?, out)
            }
            None => self.move_window(job, source, source, out),
        }
    }
}
