//! The parts below the graph: dtypes, shapes, memory, streams, devices, the registry of backends
//! and their loader, kernel plans and calls, transfers, user kernels.
//!
//! This crate knows no arrays and no operations. Only `ultramarine` uses it, and re-exports the
//! public parts. Modules and functions that are hidden from the documentation have no stable
//! interface.
//!
//! Modules import only from modules above them in this list:
//!
//! ```text
//! error log sync files                 no imports
//! once                                 a place for a value that is set once
//! interrupt                            requests to stop what a thread does
//! claim                                the claim of such a value by the thread that computes it
//! dtype scalar shape                   what an element and an extent are
//! device                               names of devices and streams
//! fork pool memory                     fork hooks, threads, the host's allocator
//! reads                                files that are read later, and the threads that do
//! host_table validation_layer          the host's table of the contract; checks of calls between host and backends
//! backend                              open devices: buffers, device streams, plans, calls, transfers; the registry
//! loader                               backends found on disk
//! devices                              devices by name, loaded at the first need; their properties and memory
//! stream                               queues of work, and the scopes that choose one
//! measure                              the cost of a submission, for benches
//! ```

#[doc(hidden)]
pub mod backend;
#[doc(hidden)]
pub mod claim;
pub mod device;
#[doc(hidden)]
pub mod devices;
pub mod dtype;
pub mod error;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod fork;
#[doc(hidden)]
pub mod host_table;
#[doc(hidden)]
pub mod interrupt;
#[cfg(feature = "loader")]
pub mod loader;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod measure;
pub mod memory;
#[doc(hidden)]
pub mod once;
#[doc(hidden)]
pub mod packages;
#[doc(hidden)]
pub mod pool;
#[doc(hidden)]
pub mod reads;
pub mod scalar;
pub mod shape;
pub mod stream;
#[cfg(test)]
#[path = "../tests/integration/support/stub_cpu.rs"]
mod stub_cpu;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod validation_layer;

pub use device::{Device, DeviceType, Stream};
pub use dtype::{Category, Dtype, Element};
pub use error::{Error, Result};
pub use scalar::Scalar;
#[doc(hidden)]
pub use ultramarine_abi::BackendInit;

/// Declares the linked-in CPU backend. A program has to call this macro once, with an expression of
/// type `ultramarine_abi::BackendInit`.
///
/// The registry opens the backend when it is first needed. A program without the call does not
/// link.
#[doc(hidden)]
#[macro_export]
macro_rules! built_in_backend {
    ($init:expr) => {
        #[unsafe(export_name = "__ultramarine_runtime_0_1_built_in_backend")]
        extern "Rust" fn built_in_backend() -> $crate::BackendInit {
            $init
        }
    };
}

#[cfg(test)]
built_in_backend!(stub_cpu::init);
