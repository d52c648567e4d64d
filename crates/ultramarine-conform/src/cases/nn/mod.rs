//! Layers of neural networks.

mod attention;
mod cross_entropy;
mod norm;
mod norm_gradient;
mod rope;
mod softmax;

use super::{OpUnderTest, Scope};
use ultramarine_abi::schema::{OpId, op};

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::SOFTMAX => softmax::softmax(scope),
        op::LOGSUMEXP => softmax::logsumexp(scope),
        op::RMS_NORM => norm::rms_norm(scope),
        op::LAYER_NORM => norm::layer_norm(scope),
        op::RMS_NORM_GRADIENT => norm_gradient::norm_gradient(scope, false),
        op::LAYER_NORM_GRADIENT => norm_gradient::norm_gradient(scope, true),
        op::ROPE => rope::rope(scope),
        op::ATTENTION => attention::attention(scope),
        op::ATTENTION_GRADIENT => attention::attention_gradient(scope),
        op::CROSS_ENTROPY => cross_entropy::cross_entropy(scope),
        op::CROSS_ENTROPY_GRADIENT => cross_entropy::cross_entropy_gradient(scope),
        _ => return None,
    })
}
