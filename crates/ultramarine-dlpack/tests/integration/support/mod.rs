//! Tensors that are made up, field by field, and what is true of them: for the tests of this crate
//! and for its fuzz target.

pub mod foreign;
pub mod header;
pub mod model;
pub mod trial;
