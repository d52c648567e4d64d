//! SEARCHSORTED.

use super::{SORT, key_item, key_of};
use crate::dtype::Dtype;
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::SearchAttrs;

struct Search {
    kernel: Arc<Kernel>,
    right: bool,
}

pub(super) fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let right = request.attributes::<SearchAttrs>()?.right != 0;
    let (rows, values, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    let ranks = rows.ndim >= 1 && rows.ndim <= values.ndim + 1 && values.ndim == out.ndim;
    if request.inputs.len() != 2
        || rows.dtype != values.dtype
        || out.dtype != Dtype::Uint32
        || !ranks
    {
        return Err(Failure::invalid("rows, values and output do not fit"));
    }
    let dtype = rows.dtype;
    if dtype == Dtype::Complex64 {
        return Err(Failure::unsupported("searchsorted of complex numbers"));
    }
    let (key, function) = key_of(dtype);
    let tensors = [
        Tensor { name: "a", dtype },
        Tensor { name: "v", dtype },
        Tensor { name: "out", dtype: out.dtype },
    ];
    let item = key_item(dtype, key, function);
    let program = Program::new(&tensors).library(SORT).item(&item).body("search(i);");
    Ok(Box::new(Search { kernel: request.device.programs.get(program.build())?, right }))
}

impl Work for Search {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (rows, values, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let batch = rows.shape.len() - 1;
        if values.shape != out.shape || values.shape[..batch] != rows.shape[..batch] {
            return Err(Failure::invalid("the shapes of searchsorted do not fit"));
        }
        let axes = (0..out.shape.len()).map(|d| {
            let row = if d < batch { rows.strides[d] } else { 0 };
            (out.shape[d], [row, values.strides[d], out.strides[d]])
        });
        let axes = Axes::join([rows.offset, values.offset, out.offset], axes);
        let length = count([rows.shape[batch]])?;
        let mut words = vec![length, rows.strides[batch] as u32, self.right.into()];
        axes.words(&mut words);
        let blocks = [&rows.block, &values.block, &out.block];
        job.launch(&self.kernel, &blocks, axes.elements()?, &words)
    }
}
