//! Cross entropy with class indices: [`crate::fast::cross_entropy`].

use super::{
    compute_dtype,
    softmax::{composed_logsumexp, shift},
};
use crate::array::Array;
use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::builders::{bin, with_axis, without_axis};
use crate::shape::Show;
use crate::{dtype::Dtype, placement::follow};
use ultramarine_abi::schema::binary;

const NAME: &str = "cross_entropy";

/// The cross entropy of class indices: `logsumexp(logits) - logits[target]` along the last axis, in float32.
///
/// Logits are `(..., classes)`, targets `(...)` of integers in `[0, classes)`; negative ones count from the end. Halves are
/// summed in float32, float64 in float64.
///
/// # Errors
/// [`Error::Value`] for logits that have no axis, no class or no floating dtype, and for targets that are no integers or of another
/// shape.
///
/// # Examples
/// ```
/// use ultramarine::{Array, fast::cross_entropy};
///
/// let logits = Array::from_slice(&[0.0f32, 0.0, 1.0, 2.0], &[2, 2])?;
/// let loss = cross_entropy(&logits, &Array::from_slice(&[0i32, 1], &[2])?)?.to_vec::<f32>()?;
/// assert!((loss[0] - 0.6931).abs() < 1e-4 && (loss[1] - 0.3133).abs() < 1e-4);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn cross_entropy(logits: &Array, targets: &Array) -> Result<Array> {
    logits.computable(NAME)?;
    targets.computable(NAME)?;
    let Some((classes, rows)) = logits.shape().split_last() else {
        bail!(NAME, "logits must have at least 1 dimension but got input with 0 dimensions.");
    };
    let (dtype, kind) = (logits.dtype(), targets.dtype());
    if !dtype.is_floating() {
        return Err(Error::value(
            NAME,
            format!("Received unsupported logits type {}.", dtype.name()),
        ));
    }
    ensure!(
        kind.is_integer(),
        NAME,
        "targets must be integer class indices but got {}.",
        kind.name()
    );
    ensure!(
        targets.shape() == rows,
        NAME,
        "targets shape {} does not match logits shape {} with the last axis removed.",
        Show(targets.shape()),
        Show(logits.shape())
    );
    ensure!(*classes != 0, NAME, "logits of shape {} have no classes.", Show(logits.shape()));
    if targets.size() == 0 {
        return Array::zeros(rows, Dtype::Float32);
    }
    let _placement = follow(&[logits, targets]);
    let inner = compute_dtype(dtype);
    let own = logits.take_along_axis(&with_axis(targets, rows.len())?, Some(-1))?.astype(inner);
    let total = if inner == dtype {
        logits.logsumexp(Some(&[-1]), true)?
    } else {
        // The cast of a half is part of the pass that sums: there is no float32 copy of the logits.
        // The shift has no influence on the result, and so no derivative.
        let top = shift(logits, &[-1])?.stop_gradient();
        composed_logsumexp(logits, &top, &[-1], inner)?
    };
    let loss = bin(binary::SUBTRACT, &total, &own)?;
    without_axis(&loss, rows.len()).map(|loss| loss.astype(Dtype::Float32))
}
