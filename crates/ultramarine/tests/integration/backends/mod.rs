//! Backends as plugins: the loader, plugins that misbehave, the CPU plugin, the minimal one, OpenCL.

#[cfg(all(feature = "loader", target_arch = "x86_64", unix))]
mod cpu_plugin;
#[cfg(all(unix, feature = "loader"))]
mod loader;
#[cfg(all(unix, feature = "loader"))]
mod minimal;
#[cfg(all(unix, feature = "loader"))]
mod misbehaving;
mod opencl;
#[cfg(all(unix, feature = "loader"))]
mod random_graphs;
