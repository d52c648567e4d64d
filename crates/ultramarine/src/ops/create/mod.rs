//! Arrays made from numbers: constants, ranges, windows.

pub(crate) mod alike;
mod decompose;
pub(crate) mod fill;
pub(crate) mod window_functions;
