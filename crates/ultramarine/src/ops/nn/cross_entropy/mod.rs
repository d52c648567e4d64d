//! Cross entropy with class indices: [`crate::fast::cross_entropy`].

mod compose;
pub(crate) mod rules;

use crate::array::Array;
use crate::error::{Error, Result, bail, ensure};
use crate::shape::Show;
use crate::{dtype::Dtype, placement::follow};
use rules::CrossEntropy;

const NAME: &str = "cross_entropy";

/// Returns the cross entropy of class indices along the last axis: `logsumexp(logits) -
/// logits[target]`, in float32 (float64 for float64).
///
/// Logits are `(..., classes)`. Targets are integers of shape `(...)` from 0 to `classes - 1`;
/// negative ones count from the end. Sums of float16 and bfloat16 are computed in float32.
///
/// # Errors
/// [`Error::Value`] for logits without an axis, without a class or without a floating dtype, and for targets that are
/// not integers or have another shape.
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
        bail!(
            NAME,
            "logits must have at least 1 dimension but got input with 0 dimensions. Pass logits of shape (..., classes)."
        );
    };
    let (dtype, kind) = (logits.dtype(), targets.dtype());
    if !dtype.is_floating() {
        return Err(Error::value(
            NAME,
            format!(
                "Received unsupported logits type {}. Convert the logits with astype(float32).",
                dtype.name()
            ),
        ));
    }
    ensure!(
        kind.is_integer(),
        NAME,
        "targets must be integer class indices but got {}. Convert them with astype(int32).",
        kind.name()
    );
    ensure!(
        targets.shape() == rows,
        NAME,
        "targets shape {} does not match logits shape {} with the last axis removed. Pass one class index for each row of logits.",
        Show(targets.shape()),
        Show(logits.shape())
    );
    ensure!(
        *classes != 0,
        NAME,
        "logits of shape {} have no classes. Pass a last axis with at least one class.",
        Show(logits.shape())
    );
    if targets.size() == 0 {
        return Array::zeros(rows, Dtype::Float32);
    }
    let _placement = follow(&[logits, targets]);
    let logits = logits.reshape(&[targets.size(), *classes])?;
    let targets = targets.astype(Dtype::Int32).reshape(&[targets.size()])?;
    let [loss, _] = CrossEntropy.of(&[logits, targets])?;
    loss.astype(Dtype::Float32).reshape(rows)
}
