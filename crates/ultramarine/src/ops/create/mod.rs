//! Arrays made of numbers: constants, ranges, windows.

mod decompose;
pub(crate) mod fill;
pub(crate) mod window_functions;
