//! Cross entropy and its gradient, composed of ordinary operations.

use super::rules::{CrossEntropy, CrossEntropyGradient};
use crate::array::Array;
use crate::dtype::Dtype;
use crate::error::Result;
use crate::ops::nn::compute_dtype;
use crate::ops::nn::softmax::{composed_logsumexp, shift};
use crate::ops::rules::builders::{bin, like, times, un, with_axis, without_axis};
use crate::ops::select::where_;
use crate::ops::shape::axes::KeepDims;
use ultramarine_abi::schema::{binary, unary};

impl CrossEntropy {
    /// Losses and logarithms of the sums.
    pub(super) fn composed(self, operands: &[Array]) -> Result<Vec<Array>> {
        let [logits, targets] = operands else { unreachable!("two operands") };
        let inner = compute_dtype(logits.dtype());
        let own = logits.take_along_axis(&with_axis(targets, 1)?, Some(-1))?.astype(inner);
        let total = if inner == logits.dtype() {
            logits.logsumexp(KeepDims(-1))?
        } else {
            // The cast of float16 or bfloat16 is part of the pass that sums, so there is no float32 copy of the logits.
            // The shift does not influence the result, so no derivative flows through it.
            let top = shift(logits, &[-1])?.stop_gradient();
            composed_logsumexp(logits, &top, &[-1], inner)?
        };
        let loss = bin(binary::SUBTRACT, &total, &own)?;
        Ok(vec![without_axis(&loss, 1)?, without_axis(&total, 1)?])
    }
}

impl CrossEntropyGradient {
    /// The gradient with respect to the logits.
    pub(super) fn composed(self, operands: &[Array]) -> Result<Vec<Array>> {
        let [logits, targets, logarithms, cotangent] = operands else {
            unreachable!("four operands")
        };
        let weights = weights(logits, logarithms)?;
        let less = bin(binary::SUBTRACT, &weights, &like(&weights, 1.0))?;
        let slopes = where_(&is_target(targets, logits.shape()[1])?, &less, &weights)?;
        Ok(vec![times(&slopes, &with_axis(cotangent, 1)?)?.astype(logits.dtype())])
    }
}

/// The softmax of the logits.
pub(super) fn weights(logits: &Array, logarithms: &Array) -> Result<Array> {
    let inner = logits.astype(logarithms.dtype());
    Ok(un(unary::EXP, &bin(binary::SUBTRACT, &inner, &with_axis(logarithms, 1)?)?))
}

/// True at the target class of each row, `(rows, classes)`.
fn is_target(targets: &Array, classes: usize) -> Result<Array> {
    let targets = with_axis(targets, 1)?;
    let last = like(&targets, classes as f64 - 1.0);
    let zero = like(&targets, 0.0);
    let from_end = bin(binary::ADD, &targets, &like(&targets, classes as f64))?;
    let counted = where_(&bin(binary::LESS, &targets, &zero)?, &from_end, &targets)?;
    let held = bin(binary::MINIMUM, &bin(binary::MAXIMUM, &counted, &zero)?, &last)?;
    let each = Array::arange(0.0, classes as f64, 1.0, Dtype::Int32)?;
    bin(binary::EQUAL, &with_axis(&each, 0)?, &held)
}
