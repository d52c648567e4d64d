//! Plugins made with the helpers in C, C++ and Rust, as real libraries: their notes, their
//! tables, and the statuses that exceptions and panics become.

mod build;
mod compute;
mod errors;
mod host;
mod note;
