//! The kernels of a plan.

use super::{Kernel, Programs, Source};
use std::sync::{PoisonError, RwLock};
use ultramarine_abi::helper::Result;

/// The kernels that a plan has used so far, from the device's [`Programs`], by keys that
/// distinguish them within the plan. A launch finds its kernel here without generating the source.
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

    /// Returns the kernel of a key. `source` makes its source if needed. The device's context is
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
        // Without the lock, because other threads compile other kernels, or wait for this one in
        // `programs`.
        let kernel = programs.kernel(&source())?;
        self.keep(key, kernel);
        Ok(kernel)
    }

    /// Returns true if the kernel of a key is in memory or on disk. Otherwise it is compiled in the
    /// background. `name` is that of the source. The device's context is current.
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
