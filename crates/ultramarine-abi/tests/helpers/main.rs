//! Plugins made with the helpers in C, C++ and Rust, as real libraries: their notes, their
//! tables, and what becomes of exceptions and panics.

mod build;
#[path = "../support/compile.rs"]
mod compile;
mod compute;
mod errors;
mod host;
mod note;
