//! The Python package `ultramarine`: classes and functions over the Rust crate.
//!
//! ```text
//! array/       the class: attributes, operators, indexing, construction, export
//! convert.rs   Python values as operands and arguments
//! dtype.rs     Dtype, categories, finfo, iinfo
//! stream.rs    devices and streams
//! memory.rs    counters and limits of memory
//! transfer.rs  copies between devices
//! backends.rs  the loaded backends, and what they ran
//! ops/         functions over arrays, by subject, as tables
//! tree.rs      trees of arrays
//! transforms.rs, io.rs, random.rs, print.rs
//! ```

// Everything public is so for the sake of Python; the documentation is its docstrings.
#![allow(missing_docs)]

mod array;
mod backends;
mod convert;
mod dtype;
mod error;
mod io;
mod memory;
mod ops;
mod print;
mod random;
mod stream;
mod transfer;
mod transforms;
mod tree;

use pyo3::prelude::*;

/// Adds functions to a module.
#[macro_export]
#[doc(hidden)]
macro_rules! functions {
    ($m:ident: $($name:ident)*) => {
        $($m.add_function(pyo3::wrap_pyfunction!($name, $m)?)?;)*
    };
}

/// Rust part of the package `ultramarine`.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    array::register(m)?;
    dtype::register(m)?;
    stream::register(m)?;
    ops::register(m)?;
    print::register(m)?;
    io::register(m)?;
    transforms::register(m)?;
    random::register(m)?;
    memory::register(m)?;
    transfer::register(m)?;
    backends::register(m)?;
    Ok(())
}
