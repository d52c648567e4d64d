//! The tests of the crate from outside, in one program: the registry, the loader with real plugins, and the validation
//! layer. The CPU's backend is a stub without kernels, so nothing here evaluates arrays: such tests are the core's.
//!
//! Tests run side by side in threads. One that reads or changes process-wide state (registered backends, search paths,
//! environment variables) begins with `own_process!()`, and is alone there.

#[cfg(all(unix, feature = "loader"))]
mod loader;
mod registry;
mod support;
mod validation_layer;

ultramarine_runtime::built_in_backend!(support::stub_cpu::init);
