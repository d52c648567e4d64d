//! Replaying a graph for arguments of other shapes.

use super::graph::Graph;
use crate::{array::Array, error::Result};

/// The results; `None` if an operation cannot tell the shape of its result from its operands.
pub(super) fn replay(_: &Graph, _: &[Array]) -> Result<Option<Vec<Array>>> {
    Ok(None)
}
