//! The families of operations, one file each.

pub mod arange;
pub mod arg_reduce;
pub mod buckets;
pub mod convolve;
pub mod copy;
pub mod elementwise;
pub mod fused;
pub mod gather;
pub mod map;
pub mod matmul;
pub mod norm;
pub mod places;
pub mod radix;
pub mod random;
pub mod reduce;
pub mod reduction;
pub mod rooms;
pub mod rope;
pub mod rows;
pub mod rule;
pub mod scan;
pub mod scatter;
pub mod select;
pub mod softmax;
pub mod sort;
pub mod turn;
pub mod variants;

use crate::plan::{Ask, Work};
use ultramarine_abi::helper::{Failure, Result};
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

/// What a plan of an op does.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    match ask.op {
        op::COPY => copy::prepare_copy(ask),
        op::FILL => copy::prepare_fill(ask),
        op::MATMUL => matmul::prepare(ask),
        op::CONVOLVE => convolve::prepare(ask),
        op::RANDOM_BITS => random::prepare(ask),
        op::GATHER => gather::prepare_gather(ask),
        op::SCATTER => scatter::prepare_scatter(ask),
        op::SCATTER_AXIS => scatter::prepare_scatter_axis(ask),
        op::GATHER_AXIS => gather::prepare_gather_axis(ask),
        op::REDUCE => reduce::prepare(ask),
        op::ARG_REDUCE => arg_reduce::prepare(ask),
        op::SOFTMAX => softmax::prepare_softmax(ask),
        op::LOGSUMEXP => softmax::prepare_logsumexp(ask),
        op::RMS_NORM => norm::prepare_rms_norm(ask),
        op::LAYER_NORM => norm::prepare_layer_norm(ask),
        op::ROPE => rope::prepare(ask),
        op::ARANGE => arange::prepare(ask),
        op::UNARY => elementwise::prepare_unary(ask),
        op::BINARY => elementwise::prepare_binary(ask),
        op::SELECT => elementwise::prepare_select(ask),
        op::SCAN => scan::prepare(ask),
        op::SORT | op::ARG_SORT | op::PARTITION | op::ARG_PARTITION => sort::prepare(ask),
        other => {
            let name = schema::find(other).map_or("", |row| row.name);
            Err(Failure::unsupported(format!("op {other} {name} is unknown here")))
        }
    }
}
