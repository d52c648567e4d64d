//! Functions of each element: of one array, or of several arrays that are broadcast.

pub(crate) mod binary;
mod decompose;
pub(crate) mod operand;
mod operators;
pub(crate) mod unary;
pub(crate) mod xlogy;
