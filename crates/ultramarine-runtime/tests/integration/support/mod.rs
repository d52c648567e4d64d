//! Shared by the tests of this program: the stub CPU, and plugins made by the C compiler.

#[cfg(all(unix, feature = "loader"))]
pub mod bench;
pub mod stub_cpu;
#[cfg(all(unix, feature = "loader"))]
#[allow(dead_code, reason = "the core's tests use the rest")]
pub mod workshop;

/// The functions that the core re-exports as `ultramarine::backends`.
#[cfg(all(unix, feature = "loader"))]
pub mod backends {
    pub use ultramarine_runtime::backend::{BackendInfo, backends, by_name};
    pub use ultramarine_runtime::devices::backend_of as get;
    pub use ultramarine_runtime::loader::*;
}
