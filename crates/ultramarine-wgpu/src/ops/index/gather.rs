//! GATHER and GATHER_AXIS. Elements are moved without interpreting them.

use super::places::{Indexed, Places};
use super::{index_tensor, kernel, step_of};
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::program::Kernel;
use crate::shader::Tensor;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{AxisAttrs, GatherAttrs};

struct Gather {
    places: Places,
    kernel: Arc<Kernel>,
}

pub(super) fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: GatherAttrs = request.attributes()?;
    let (source, out) = (request.input(0)?, request.output(0)?);
    let fits = request.inputs.len() == 1 + attributes.n_indices as usize
        && source.dtype == out.dtype
        && out.ndim == attributes.index_ndim as usize + source.ndim;
    if !fits {
        return Err(Failure::invalid("source, index arrays and output do not fit"));
    }
    let given = (attributes.n_indices, attributes.index_ndim, &attributes.axes);
    let places = Places::of(request, given, source.ndim, false)?;
    let dtype = out.dtype.word();
    let tensors = [Tensor { name: "a", dtype }, Tensor { name: "out", dtype }];
    let kernel = kernel(request, &tensors, true, "", "gather(i);")?;
    Ok(Box::new(Gather { places, kernel }))
}

impl Work for Gather {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(4 * u64::from(self.places.positions(job.output(0)?.shape)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, out, places) = (job.input(0)?, job.output(0)?, job.scratch()?);
        let of = Indexed { arrays: &job.inputs[1..], whole: source, slices: out.shape };
        self.places.run(job, &of, &places)?;
        let n = self.places.index_ndim();
        let slice =
            (n..out.shape.len()).map(|d| (out.shape[d], [source.strides[d - n], out.strides[d]]));
        let slice = Axes::join([0, 0], slice);
        let positions = (0..n).map(|d| (out.shape[d], [out.strides[d]]));
        let mut words = vec![slice.elements()?, 0];
        Axes::join([out.offset], positions).words(&mut words);
        // The index in words is one higher, because word 0 is the number of invocations.
        words[1] = words.len() as u32 + 1;
        slice.words(&mut words);
        let items = count(out.shape.iter().copied())?;
        job.launch(&self.kernel, &[&source.block, &out.block, &places], items, &words)
    }
}

struct GatherAxis {
    kernel: Arc<Kernel>,
    axis: usize,
}

pub(super) fn prepare_axis(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(2)?;
    let axis = request.attributes::<AxisAttrs>()?.axis as usize;
    let (source, indices, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    if source.dtype != out.dtype || axis >= out.ndim {
        return Err(Failure::invalid("source, output and axis do not fit"));
    }
    let (given, item) = index_tensor(indices.dtype)?;
    let dtype = out.dtype.word();
    let tensors = [Tensor { name: "a", dtype }, given, Tensor { name: "out", dtype }];
    let kernel = kernel(request, &tensors, false, &item, "gather_axis(i);")?;
    Ok(Box::new(GatherAxis { kernel, axis }))
}

impl Work for GatherAxis {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, indices, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let axes = (0..out.shape.len()).map(|d| {
            let from = if d == self.axis { 0 } else { step_of(source, d) };
            (out.shape[d], [from, step_of(indices, d), out.strides[d]])
        });
        let axes = Axes::join([source.offset, indices.offset, out.offset], axes);
        let (size, step) = (source.shape[self.axis], source.strides[self.axis]);
        let blocks = [&source.block, &indices.block, &out.block];
        let mut words = vec![size as u32, step as u32];
        axes.words(&mut words);
        job.launch(&self.kernel, &blocks, axes.elements()?, &words)
    }
}
