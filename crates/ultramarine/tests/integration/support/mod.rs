//! Shared by the tests of this program: arrays and their comparison, mock devices, plugins.

pub mod arrays;
#[cfg(all(unix, feature = "loader"))]
pub mod bad_plugins;
#[cfg(unix)]
pub mod fork;
#[cfg(all(unix, feature = "loader"))]
pub mod minimal;
pub mod mock_device;
pub mod opencl;
pub mod partial_backend;
pub mod random_graph;
#[cfg_attr(not(feature = "loader"), allow(dead_code))]
pub mod workshop;
