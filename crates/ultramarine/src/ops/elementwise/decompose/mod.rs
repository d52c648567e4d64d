//! Decompositions of elementwise functions into other elementwise functions.

pub(crate) mod binary;
pub(crate) mod unary;
