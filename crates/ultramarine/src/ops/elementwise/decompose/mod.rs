//! Elementwise functions by other elementwise functions.

pub(crate) mod binary;
pub(crate) mod unary;
