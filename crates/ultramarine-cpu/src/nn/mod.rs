//! Layers of neural networks.

mod attention;
mod cross_entropy;
mod exponentials;
pub(crate) mod norm;
mod norm_gradient;
pub(crate) mod real;
mod rope;
mod rows;
mod softmax;
pub(crate) mod tensor;

use crate::kernel::{Op, Prepared, Refusal, Signature};
use crate::level::Level;
use ultramarine_abi::schema::op;

/// Prepares an operation of the family.
pub fn prepare_op(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    match op.id {
        op::ATTENTION => attention::prepare(op, false, signature, level),
        op::ATTENTION_GRADIENT => attention::prepare(op, true, signature, level),
        op::SOFTMAX => softmax::prepare(op, false, signature),
        op::LOGSUMEXP => softmax::prepare(op, true, signature),
        op::RMS_NORM => norm::prepare(false, signature),
        op::LAYER_NORM => norm::prepare(true, signature),
        op::RMS_NORM_GRADIENT => norm_gradient::prepare(op, false, signature),
        op::LAYER_NORM_GRADIENT => norm_gradient::prepare(op, true, signature),
        op::ROPE => rope::prepare(op, signature),
        op::CROSS_ENTROPY => cross_entropy::prepare(false, signature),
        op::CROSS_ENTROPY_GRADIENT => cross_entropy::prepare(true, signature),
        _ => Err(Refusal::Unsupported),
    }
}
