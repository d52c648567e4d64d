//! The kernels of a plan.

use super::{Kernel, Programs, Source};
use std::sync::{PoisonError, RwLock};
use ultramarine_abi::helper::Result;

/// The kernels that a plan has used so far, from the device's [`Programs`]. The key tells them
/// apart within the plan. A launch finds its kernel here without generating its source.
pub struct Kernels<K = ()>(RwLock<Vec<(K, Kernel)>>);

impl<K> Default for Kernels<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Copy + PartialEq> Kernels<K> {
    fn known(&self, key: K) -> Option<Kernel> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(k, _)| *k == key).map(|(_, kernel)| *kernel)
    }

    fn keep(&self, key: K, kernel: Kernel) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push((key, kernel));
    }

    /// The kernel of a key; `source` generates its source if needed. The device's context is
    /// current.
    pub fn get(
        &self,
        programs: &Programs,
        key: K,
        source: impl FnOnce() -> Source,
    ) -> Result<Kernel> {
        if let Some(kernel) = self.known(key) {
            return Ok(kernel);
        }
        // The lock is not held here, so that other threads can compile other kernels, or wait for
        // this one in `programs`.
        let kernel = programs.kernel(&source())?;
        self.keep(key, kernel);
        Ok(kernel)
    }

    /// True if the kernel of a key is in memory or on disk. Otherwise its compilation is started in
    /// the background. `name` is the name of the source. The device's context is current.
    pub fn ready(
        &self,
        programs: &Programs,
        key: K,
        name: impl FnOnce() -> String,
        source: impl FnOnce() -> Source,
    ) -> Result<bool> {
        if self.known(key).is_some() {
            return Ok(true);
        }
        let kernel = programs.ready(&name(), source)?;
        if let Some(kernel) = kernel {
            self.keep(key, kernel);
        }
        Ok(kernel.is_some())
    }
}
