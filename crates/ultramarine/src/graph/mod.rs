//! The lazy graph: arrays, their nodes, the rules of operations, and their placement.
//!
//! This is the lowest layer of the crate. It knows no particular operation: the operations are in
//! `ops`, and the evaluation is in `eval`.

pub(crate) mod array;
pub(crate) mod arrays;
pub(crate) mod attribute;
pub(crate) mod attribute_json;
pub(crate) mod composite;
pub(crate) mod determinism;
pub(crate) mod draft;
pub(crate) mod elements;
mod host_copies;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod op;
pub(crate) mod operation_key;
mod per_device;
pub(crate) mod placement;
pub(crate) mod precision;
pub(crate) mod refit;
pub(crate) mod rules;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tracing;
