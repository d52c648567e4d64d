//! Attention, cross entropy, softmax, norms and rotary position embeddings.

mod attention;
mod cross_entropy;
pub mod norm;
mod norm_gradient;
mod rope;
pub mod row_kernels;
mod softmax;

use crate::launch::{OpRequest, Work};
use ultramarine_abi::helper::Result;
use ultramarine_abi::schema::op;

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::SOFTMAX => softmax::prepare_softmax(request),
        op::LOGSUMEXP => softmax::prepare_logsumexp(request),
        op::RMS_NORM => norm::prepare_rms_norm(request),
        op::LAYER_NORM => norm::prepare_layer_norm(request),
        op::RMS_NORM_GRADIENT => norm_gradient::prepare(request, false),
        op::LAYER_NORM_GRADIENT => norm_gradient::prepare(request, true),
        op::ROPE => rope::prepare(request),
        op::ATTENTION => attention::forward::prepare(request),
        op::ATTENTION_GRADIENT => attention::gradient::prepare(request),
        op::CROSS_ENTROPY => cross_entropy::prepare(request),
        op::CROSS_ENTROPY_GRADIENT => cross_entropy::prepare_gradient(request),
        _ => Err(super::unknown(request)),
    }
}
