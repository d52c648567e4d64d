//! The memory that arrays take.

use crate::{
    array::Array,
    error::{Error, Result},
};

/// Bytes of the blocks that hold evaluated arrays, as they were taken from the allocator, so
/// somewhat more than the arrays' own. A block that several share is counted once.
///
/// # Errors
/// [`Error::Value`] for an array that was not evaluated.
pub fn buffer_bytes(arrays: &[Array]) -> Result<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut bytes = 0;
    for array in arrays {
        let Some(value) = array.node().value() else {
            let text = "Arrays must be evaluated before querying buffer size.";
            return Err(Error::value("get_array_buffer_size", text));
        };
        if seen.insert(std::ptr::from_ref(&*value.buffer)) {
            bytes += value.buffer.allocated();
        }
    }
    Ok(bytes)
}
