//! Kernels of an operation that depend on the sizes and layouts of commands.

use crate::context::lock;
use crate::launch::Device;
use crate::program::Kernel;
use crate::shader::source::Source;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::Result;

/// The kernels of an operation by their variant. Each is made when a command first needs it.
pub struct Variants<V>(Mutex<HashMap<V, Arc<Kernel>>>);

impl<V> Default for Variants<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Eq + Hash> Variants<V> {
    /// The kernel of a variant.
    pub fn get(
        &self,
        device: &Device,
        variant: V,
        source: impl FnOnce(&V) -> Source,
    ) -> Result<Arc<Kernel>> {
        if let Some(kernel) = lock(&self.0).get(&variant) {
            return Ok(kernel.clone());
        }
        let kernel = device.programs.get(source(&variant))?;
        lock(&self.0).insert(variant, kernel.clone());
        Ok(kernel)
    }
}
