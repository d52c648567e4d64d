//! Reads and writes at positions: index arrays, masks, and slices whose start is an array's value.

pub(in crate::ops) mod bounds;
mod decompose;
pub(crate) mod dynamic_slice;
pub(crate) mod entry;
pub(crate) mod gather;
pub(crate) mod indexing;
mod resolve;
pub(crate) mod scatter;
pub(crate) mod update;
