//! Axes as arguments. The types are those of the library of primitives, so that its arrays take them, too.

use crate::error::{Result, bail};
pub use ultramarine_extension::{Axes, Axis, KeepDims, Reduced};

/// The number of the axis that `op` goes along, which cannot be the flattened array.
pub(crate) fn one(op: &str, axis: impl Into<Axis>) -> Result<isize> {
    let Some(axis) = axis.into().number() else {
        bail!(op, "Expected one axis, got `..`. Pass the number of an axis.");
    };
    Ok(axis)
}
