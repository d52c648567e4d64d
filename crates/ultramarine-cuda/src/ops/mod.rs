//! The families of operations, one file each.

pub mod arg_reduce;
pub mod conv;
pub mod copy;
pub mod create;
pub mod elementwise;
pub mod fused;
pub mod index;
pub mod matmul;
pub mod nn;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod select;
pub mod sort;

use crate::launch::{Device, OpRequest, Plan, Work};
use ultramarine_abi::helper::{Failure, Request, Result};
use ultramarine_abi::schema::{self, op};

/// Most instructions of a fused program.
pub const FUSED_INSTRUCTIONS: u32 = fused::INSTRUCTIONS as u32;
/// Most inputs of a fused program.
pub const FUSED_INPUTS: u32 = fused::INPUTS as u32;

/// Headers of `kernels/`.
pub mod headers {
    /// Dtypes: storage, arithmetic, conversions.
    pub const NUMBER: &str = include_str!("../../kernels/number.cuh");
    /// Walking tensors.
    pub const WALK: &str = include_str!("../../kernels/walk.cuh");
}

/// True if float32 products may use a shorter mantissa.
pub fn matmul_shortens() -> bool {
    matmul::shortens()
}

/// Makes a plan, or says why not. The context is current.
pub fn plan(device: &Device, request: &Request<'_>) -> Result<Plan> {
    let request = OpRequest::of(device, request)?;
    let work = prepare(&request)?;
    let op = schema::find(request.op).map_or("an op", |row| row.name);
    let dtype = request.inputs.first().or(request.outputs.first()).map_or("", |d| d.dtype.name());
    Ok(Plan::new(format!("{op} of {dtype}"), work))
}

/// The work of an op's plan.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::COPY => copy::prepare_copy(request),
        op::FILL => create::prepare_fill(request),
        op::MATMUL => matmul::prepare(request),
        op::CONVOLVE => conv::prepare(request),
        op::RANDOM_BITS => random::prepare(request),
        op::GATHER => index::gather::prepare_gather(request),
        op::SCATTER => index::scatter::prepare_scatter(request),
        op::SCATTER_AXIS => index::scatter::prepare_scatter_axis(request),
        op::GATHER_AXIS => index::gather::prepare_gather_axis(request),
        op::REDUCE => reduce::prepare(request),
        op::ARG_REDUCE => arg_reduce::prepare(request),
        op::SOFTMAX => nn::softmax::prepare_softmax(request),
        op::LOGSUMEXP => nn::softmax::prepare_logsumexp(request),
        op::RMS_NORM => nn::norm::prepare_rms_norm(request),
        op::LAYER_NORM => nn::norm::prepare_layer_norm(request),
        op::ROPE => nn::rope::prepare(request),
        op::ARANGE => create::prepare_arange(request),
        op::UNARY => elementwise::prepare_unary(request),
        op::BINARY => elementwise::prepare_binary(request),
        op::SELECT => select::prepare(request),
        op::SCAN => scan::prepare(request),
        op::SORT | op::ARG_SORT | op::PARTITION | op::ARG_PARTITION => sort::prepare(request),
        other => {
            let name = schema::find(other).map_or("", |row| row.name);
            Err(Failure::unsupported(format!("op {other} {name} is unknown here")))
        }
    }
}
