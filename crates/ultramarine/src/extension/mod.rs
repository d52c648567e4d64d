//! Operations that are built outside of the crate, through `ultramarine-abi`'s table for extensions.

pub use ultramarine_extension::*;
