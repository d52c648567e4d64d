//! Operations that no conformance grade requires. They have kernels of their own instead of being
//! composed of other operations.

mod attention;
mod cross_entropy;
pub mod norm;
pub mod quantized;
mod rope;
pub mod rows;
mod softmax;
pub mod variants;

use crate::launch::{OpRequest, Work};
use ultramarine_abi::helper::Result;
use ultramarine_abi::schema::op;

/// The function `chosen` of an index.
const CHOSEN: &str = include_str!("../../../kernels/native/chosen.wgsl");

/// The plan of an operation of neural networks.
pub fn prepare_nn(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::SOFTMAX => softmax::prepare(request, true),
        op::LOGSUMEXP => softmax::prepare(request, false),
        op::RMS_NORM => norm::prepare(request, false),
        op::LAYER_NORM => norm::prepare(request, true),
        op::ROPE => rope::prepare(request),
        op::ATTENTION => attention::prepare(request),
        op::CROSS_ENTROPY => cross_entropy::prepare(request),
        op::CROSS_ENTROPY_GRADIENT => cross_entropy::prepare_gradient(request),
        _ => Err(request.unknown(None)),
    }
}
