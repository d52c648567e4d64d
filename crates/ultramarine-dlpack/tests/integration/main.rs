//! DLPack tensors that are made up field by field: validation against a model, ownership, threads.
//!
//! The sanitizers run this binary, too (`cargo xtask sanitize`); the fuzz target shares `support/`.

mod cases;
mod extent;
mod ownership;
mod random_headers;
mod support;
mod threads;
