//! The tests of the crate from outside, in one program: each test binary would link the core again.
//!
//! Tests run side by side in threads. One that reads or changes process-wide state (registered backends,
//! counters, limits, environment variables, forks) begins with `own_process!()`, and is alone there.

mod backends;
mod devices;
mod evaluation;
mod export;
mod extension;
mod files;
mod interchange;
mod ops;
mod support;
mod transforms;
