//! GATHER, SCATTER, their variants along an axis, and windows whose start indices are in memory.

mod gather;
mod places;
mod scatter;
mod sorted;
mod window;

use crate::dtype::{Dtype, Wgsl};
use crate::launch::{OpRequest, View, Work};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;

const INDEX: &str = include_str!("../../../kernels/index.wgsl");

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::GATHER => gather::prepare(request),
        op::GATHER_AXIS => gather::prepare_axis(request),
        op::SCATTER => scatter::prepare(request),
        op::SCATTER_AXIS => scatter::prepare_axis(request),
        op::DYNAMIC_SLICE | op::DYNAMIC_SLICE_UPDATE => window::prepare(request),
        _ => Err(request.unknown(None)),
    }
}

/// A kernel of `index.wgsl`, optionally with an array of offsets and an index array.
fn kernel(
    request: &OpRequest<'_>,
    tensors: &[Tensor],
    places: bool,
    items: &str,
    call: &str,
) -> Result<Arc<Kernel>> {
    let mut program = Program::new(tensors).library(INDEX).item(items);
    if places {
        program = program.array("places", "u32");
    }
    request.device.programs.get(program.body(call).build())
}

/// The tensor of an index array, and the function that loads its elements.
fn index_tensor(dtype: Dtype) -> Result<(Tensor, String)> {
    if !dtype.is_integer() {
        return Err(Failure::unsupported(format!("indices of {}", dtype.name())));
    }
    let value = format!("index_of_{}(load_given(at))", dtype.register());
    let item = format!("fn load_index(at: u32) -> vec2<u32> {{ return {value}; }}");
    Ok((Tensor { name: "given", dtype }, item))
}

/// The stride of an axis, or 0 if the axis is broadcast.
fn step_of(view: &View<'_>, axis: usize) -> i64 {
    if view.shape[axis] == 1 { 0 } else { view.strides[axis] }
}
