//! Shared by the tests of this program: arrays and their comparison, mock devices, plugins.

pub mod arrays;
#[cfg(all(unix, feature = "loader"))]
pub mod bad_plugins;
#[cfg(all(unix, feature = "loader"))]
#[path = "../../../../ultramarine-runtime/tests/integration/support/bench.rs"]
pub mod bench;
#[cfg(unix)]
pub mod fork;
#[cfg(all(unix, feature = "loader"))]
pub mod minimal;
pub mod mock_device;
pub mod opencl;
pub mod partial_backend;
pub mod random_graph;
#[cfg_attr(not(feature = "loader"), allow(dead_code))]
#[path = "../../../../ultramarine-runtime/tests/integration/support/workshop.rs"]
pub mod workshop;

#[cfg(all(unix, feature = "loader"))]
use ultramarine::backends;
