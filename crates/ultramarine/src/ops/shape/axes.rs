//! Axes as arguments. The types come from the library of primitives, so that its arrays accept them too.

use crate::error::{Result, bail};
pub use ultramarine_extension::{Axes, Axis, KeepDims, Reduced};

/// The axis along which `op` works; it cannot be the flattened array.
pub(crate) fn one(op: &str, axis: impl Into<Axis>) -> Result<isize> {
    let Some(axis) = axis.into().number() else {
        bail!(op, "Expected one axis, got `..`. Pass the number of an axis.");
    };
    Ok(axis)
}
