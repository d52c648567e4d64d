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

use crate::launch::{Ask, Device, Plan, Work};
use ultramarine_abi::helper::{Failure, Request, Result};
use ultramarine_abi::schema::{self, op};

/// Most instructions of a fused program.
pub const FUSED_INSTRUCTIONS: u32 = fused::INSTRUCTIONS as u32;
/// Most inputs of a fused program.
pub const FUSED_INPUTS: u32 = fused::INPUTS as u32;

/// Texts of `kernels/`.
pub mod text {
    /// Dtypes: storage, arithmetic, conversions.
    pub const NUMBER: &str = include_str!("../../kernels/number.cuh");
    /// Walking tensors.
    pub const WALK: &str = include_str!("../../kernels/walk.cuh");
}

/// Whether float32 products may use a shorter mantissa.
pub fn matmul_shortens() -> bool {
    matmul::shortens()
}

/// Makes a plan, or says why not. The context is current.
pub fn plan(device: &Device, request: &Request<'_>) -> Result<Plan> {
    let ask = Ask::of(device, request)?;
    let work = prepare(&ask)?;
    let op = schema::find(request.op).map_or("an op", |row| row.name);
    let dtype = ask.inputs.first().or(ask.outputs.first()).map_or("", |d| d.dtype.name());
    Ok(Plan::new(format!("{op} of {dtype}"), work))
}

/// What a plan of an op does.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    match ask.op {
        op::COPY => copy::prepare_copy(ask),
        op::FILL => create::prepare_fill(ask),
        op::MATMUL => matmul::prepare(ask),
        op::CONVOLVE => conv::prepare(ask),
        op::RANDOM_BITS => random::prepare(ask),
        op::GATHER => index::gather::prepare_gather(ask),
        op::SCATTER => index::scatter::prepare_scatter(ask),
        op::SCATTER_AXIS => index::scatter::prepare_scatter_axis(ask),
        op::GATHER_AXIS => index::gather::prepare_gather_axis(ask),
        op::REDUCE => reduce::prepare(ask),
        op::ARG_REDUCE => arg_reduce::prepare(ask),
        op::SOFTMAX => nn::softmax::prepare_softmax(ask),
        op::LOGSUMEXP => nn::softmax::prepare_logsumexp(ask),
        op::RMS_NORM => nn::norm::prepare_rms_norm(ask),
        op::LAYER_NORM => nn::norm::prepare_layer_norm(ask),
        op::ROPE => nn::rope::prepare(ask),
        op::ARANGE => create::prepare_arange(ask),
        op::UNARY => elementwise::prepare_unary(ask),
        op::BINARY => elementwise::prepare_binary(ask),
        op::SELECT => select::prepare(ask),
        op::SCAN => scan::prepare(ask),
        op::SORT | op::ARG_SORT | op::PARTITION | op::ARG_PARTITION => sort::prepare(ask),
        other => {
            let name = schema::find(other).map_or("", |row| row.name);
            Err(Failure::unsupported(format!("op {other} {name} is unknown here")))
        }
    }
}
