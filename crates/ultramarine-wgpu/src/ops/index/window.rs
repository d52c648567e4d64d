//! DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE.

use super::{index_tensor, kernel};
use crate::launch::{Axes, Job, OpRequest, Work};
use crate::ops::copy::Copy;
use crate::program::Kernel;
use crate::shader::Tensor;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{DynamicSliceAttrs, op};

struct Window {
    kernel: Arc<Kernel>,
    /// The axis of each start index.
    axes: Vec<usize>,
    /// For an update, the copy of the source.
    update: Option<Copy>,
}

pub(super) fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let updates = request.op == op::DYNAMIC_SLICE_UPDATE;
    let attributes: DynamicSliceAttrs = request.attributes()?;
    let (source, starts, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    let moved = request.input(if updates { 2 } else { 0 })?;
    let expected = if updates { 3 } else { 2 };
    let like_out = |desc: crate::launch::Desc| (desc.dtype, desc.ndim) == (out.dtype, out.ndim);
    if request.inputs.len() != expected || starts.ndim != 1 || !like_out(source) || !like_out(moved)
    {
        return Err(Failure::invalid("source, starts, update and output do not fit"));
    }
    let axes = attributes.axes.iter().take(attributes.n_starts as usize);
    let axes: Vec<usize> = axes.map(|axis| usize::from(*axis)).collect();
    let twice = (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
    if attributes.n_starts as usize > attributes.axes.len()
        || twice
        || axes.iter().any(|axis| *axis >= out.ndim)
    {
        return Err(Failure::invalid(format!("axes {axes:?} of a tensor of rank {}", out.ndim)));
    }
    let (given, item) = index_tensor(starts.dtype)?;
    let dtype = out.dtype.word();
    let tensors = [Tensor { name: "a", dtype }, given, Tensor { name: "out", dtype }];
    let kernel = kernel(request, &tensors, false, &item, "window(i);")?;
    let copy = || Copy::new(request.device, out.dtype, out.dtype);
    Ok(Box::new(Window { kernel, axes, update: updates.then(copy).transpose()? }))
}

impl Work for Window {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (source, starts, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let (moved, whole, shape) = match &self.update {
            Some(copy) => {
                copy.run_views(job, source, out)?;
                let update = job.input(2)?;
                (update, out, update.shape)
            }
            None => (source, source, out.shape),
        };
        let window = (0..shape.len()).map(|d| (shape[d], [moved.strides[d], out.strides[d]]));
        let window = Axes::join([moved.offset, out.offset], window);
        let into = u32::from(self.update.is_some());
        let (offset, apart) = (starts.offset as u32, starts.strides[0] as u32);
        let mut words = vec![into, self.axes.len() as u32, offset, apart, 0];
        for axis in &self.axes {
            let places = whole.shape[*axis] - shape[*axis] + 1;
            words.extend([places as u32, whole.strides[*axis] as u32]);
        }
        // The index in words is one higher, because word 0 is the number of invocations.
        words[4] = words.len() as u32 + 1;
        window.words(&mut words);
        let blocks = [&moved.block, &starts.block, &out.block];
        job.launch(&self.kernel, &blocks, window.elements()?, &words)
    }
}
