//! Tensors in host memory, in and out: fabricated ones, whose deleters are counted, against
//! arrays.

mod export;
mod foreign;
mod import;
mod lazy;
mod lifetime;
mod refused;
mod strides;

use ultramarine::{Device, Result, Scope, new_stream};

/// A stream for one test, so that its work runs on its own thread, and releases its operands when it is done.
fn own_stream() -> Result<Scope> {
    Ok(Scope::new(new_stream(Device::CPU)?))
}
