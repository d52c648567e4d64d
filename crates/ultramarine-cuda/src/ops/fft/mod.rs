//! FFT by cuFFT, except for columns that this crate's own kernel transforms. cuFFT's lines may be any distance apart; other
//! layouts are copied. The factor is applied to the output, or during a copy that is needed anyway.

mod columns;
mod layout;
mod library;

use super::headers;
use crate::launch::{Axes, Desc, Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::ops::matmul::gemm::places;
use crate::program::{Kernels, Source};
use columns::{ColumnKernels, Columns};
use layout::{Layout, Place};
use library::{Plan, Transforms};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{FftAttrs, fft, op};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/fft/around.cuh"),
    include_str!("../../../kernels/fft/columns.cuh"),
];

/// A transform.
struct Fft {
    code: u32,
    axis: usize,
    library: Transforms,
    /// Copies of the input and of the output.
    copies: [Box<dyn Work>; 2],
    scale: Kernels<(&'static str, usize, bool)>,
    half: Kernels<(usize, bool)>,
    columns: ColumnKernels,
}

/// FFT.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let (input, output) = (request.input(0)?, request.output(0)?);
    let FftAttrs { op: code, axis, .. } = request.attributes()?;
    let expected = match code {
        fft::FORWARD | fft::BACKWARD => [Dtype::Complex64; 2],
        fft::REAL => [Dtype::Float32, Dtype::Complex64],
        fft::REAL_BACKWARD => [Dtype::Complex64, Dtype::Float32],
        _ => return Err(Failure::unsupported(format!("code {code} of fft is unknown here"))),
    };
    if [input.dtype, output.dtype] != expected {
        return Err(Failure::unsupported(format!(
            "an fft of {} to {}, expected {} to {}",
            input.dtype.name(),
            output.dtype.name(),
            expected[0].name(),
            expected[1].name()
        )));
    }
    let axis = axis as usize;
    if input.ndim != output.ndim || axis >= input.ndim {
        return Err(Failure::invalid(format!(
            "an fft along axis {axis} of rank {} to rank {}",
            input.ndim, output.ndim
        )));
    }
    let Some(table) = library::library(request.device) else {
        return Err(Failure::unsupported("fft needs cuFFT, which was not found"));
    };
    let copy = |tensor: Desc| {
        let other = Desc { contiguous: false, ..tensor };
        crate::ops::prepare(&request.part(op::COPY, vec![other], vec![other]))
    };
    let library = Transforms::new(table, code);
    let copies = [copy(input)?, copy(output)?];
    let (scale, half, columns) = Default::default();
    Ok(Box::new(Fft { code, axis, library, copies, scale, half, columns }))
}

/// A transform in progress.
struct Steps {
    layout: Layout,
    plan: Arc<Plan>,
    /// Offsets of the copies in the workspace, in bytes.
    copies: [u64; 2],
    /// Offset of the library's own workspace.
    own: u64,
}

impl Steps {
    fn workspace(&self) -> u64 {
        self.own + self.plan.workspace()
    }
}

impl Fft {
    fn is_half(&self) -> bool {
        self.code == fft::REAL_BACKWARD
    }

    /// The length of the transform, after the shapes were checked.
    fn length(&self, views: [&View<'_>; 2]) -> Result<i64> {
        let [from, to] = views.map(|v| v.shape[self.axis]);
        let (n, expected) = match self.code {
            fft::REAL => (from, [from, from / 2 + 1]),
            fft::REAL_BACKWARD => (to, [to / 2 + 1, to]),
            _ => (from, [from, from]),
        };
        let same = (0..views[0].shape.len())
            .all(|d| d == self.axis || views[0].shape[d] == views[1].shape[d]);
        match [from, to] == expected && same {
            true => Ok(n),
            false => Err(Failure::invalid(format!(
                "an fft along axis {} of {:?} to {:?}",
                self.axis, views[0].shape, views[1].shape
            ))),
        }
    }

    /// The columns that this crate's kernel transforms.
    fn columns(&self, views: [&View<'_>; 2]) -> Option<Columns> {
        let is_complex = matches!(self.code, fft::FORWARD | fft::BACKWARD);
        is_complex.then(|| Columns::of(self.axis, views)).flatten()
    }

    /// The steps of the transform. The device's context is current.
    fn steps(&self, job: &Job<'_>, n: i64) -> Result<Steps> {
        let views = [job.input(0)?, job.output(0)?];
        let layout = Layout::of(n, self.axis, views, self.is_half());
        let plan = self.library.plan(job.device, layout.lines)?;
        let (mut copies, mut own) = ([0; 2], 0);
        for t in 0..2 {
            // Complex transforms run in place.
            let shares =
                t == 1 && layout.place == [Place::Lines; 2] && views[0].dtype == views[1].dtype;
            if layout.place[t] != Place::Own && !shares {
                copies[t] = own;
                own += views[t].bytes().next_multiple_of(256);
            }
        }
        Ok(Steps { layout, plan, copies, own })
    }

    /// Multiplies a tensor in place.
    fn scale(&self, job: &Job<'_>, view: &View<'_>, factor: f32) -> Result<()> {
        let mut axes = Axes::<1>::join(view.shape, [view.strides]);
        let mut element = if view.dtype.is_complex() { "complex64" } else { "float" };
        let packs = axes.is_contiguous(0) && view.bytes().is_multiple_of(16) && view.is_aligned(16);
        if packs {
            element = "Four";
            axes = Axes::join(&[(view.bytes() / 16) as i64], [&[1]]);
        }
        let variant = axes.variant();
        let key = (element, variant.rank, variant.wide);
        let kernel = self.scale.get(&job.device.programs, key, || {
            let rank = variant.rank;
            let parameters = format!("{element} *out, float factor, const Walk<1, {rank}> w");
            let arguments = format!("{element}, {rank}, {}", variant.index());
            Source::instance(HEADERS, "fft_scale", arguments, parameters)
        })?;
        let (words, grid) = (axes.parameter(), Grid::over(job.device, axes.len(), 1));
        launch!(job, &kernel, grid; view.address, factor, words[..])
    }

    /// Copies half of a spectrum, multiplied by a factor.
    fn half(
        &self,
        job: &Job<'_>,
        from: &View<'_>,
        to: &View<'_>,
        n: i64,
        factor: f32,
    ) -> Result<()> {
        let axes = Axes::<2>::of([from, to]);
        let variant = axes.variant();
        let key = (variant.rank, variant.wide);
        let kernel = self.half.get(&job.device.programs, key, || {
            let rank = variant.rank;
            let parameters = format!(
                "const complex64 *in, complex64 *out, float factor, i64 step, i64 half, i64 n, \
                 const Walk<2, {rank}> w"
            );
            let arguments = format!("{rank}, {}", variant.index());
            Source::instance(HEADERS, "fft_half", arguments, parameters)
        })?;
        let (step, half) = (to.strides[self.axis], to.shape[self.axis]);
        let (words, grid) = (axes.parameter(), Grid::over(job.device, axes.len(), 1));
        launch!(job, &kernel, grid; from.address, to.address, factor, step, half, n, words[..])
    }
}

impl Work for Fft {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let views = [job.input(0)?, job.output(0)?];
        let n = self.length(views)?;
        if self.columns(views).is_some() {
            return Ok(0);
        }
        let _entered = job.device.enter()?;
        Ok(self.steps(job, n)?.workspace())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let views = [job.input(0)?, job.output(0)?];
        let (n, factor) = (self.length(views)?, f64::from_bits(job.scalar(0)?) as f32);
        if let Some(columns) = self.columns(views) {
            let sign = if self.code == fft::FORWARD { -1 } else { 1 };
            let places = views.map(|v| v.address);
            return self.columns.run(job, &columns, sign, factor, places);
        }
        let steps = self.steps(job, n)?;
        let scratch = if steps.workspace() > 0 { job.scratch()? } else { 0 };
        let strides = [0, 1].map(|t| steps.layout.place[t].strides(views[t], self.axis));
        let lines = [0, 1].map(|t| match steps.layout.place[t] {
            Place::Own => *views[t],
            _ => View { address: scratch + steps.copies[t], strides: &strides[t], ..*views[t] },
        });
        if self.is_half() {
            self.half(job, views[0], &lines[0], n, factor)?;
        } else if steps.layout.place[0] != Place::Own {
            self.copies[0].run(&job.part(*views[0], lines[0], 0))?;
        }
        let pairs = places(&steps.layout.outer).map(|at| {
            [0, 1].map(|t| {
                let bytes = (at[t] as u64).wrapping_mul(lines[t].dtype.bytes());
                lines[t].address.wrapping_add(bytes)
            })
        });
        let pairs: Vec<_> = pairs.collect();
        self.library.run(job, &steps.plan, &pairs, scratch + steps.own)?;
        if steps.layout.place[1] != Place::Own {
            self.copies[1].run(&job.part(lines[1], *views[1], 0))?;
        }
        match factor == 1.0 || self.is_half() {
            true => Ok(()),
            false => self.scale(job, views[1], factor),
        }
    }
}
