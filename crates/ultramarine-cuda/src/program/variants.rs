//! The kernels of a plan that are chosen when a command runs, by what it is found to be then.

use super::{Kernel, Programs, Source};
use std::sync::Mutex;
use ultramarine_abi::helper::Result;

/// Kernels by a number that tells one choice from the others. There are few.
#[derive(Default)]
pub struct Variants(Mutex<Vec<(u64, Kernel)>>);

impl Variants {
    /// The kernel of a choice, made by `source` at its first use.
    pub fn get(
        &self,
        programs: &Programs,
        choice: u64,
        source: impl FnOnce() -> Source,
    ) -> Result<Kernel> {
        let lock = || self.0.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, kernel)) = lock().iter().find(|(known, _)| *known == choice) {
            return Ok(*kernel);
        }
        // Without the lock: others compile other kernels meanwhile, or wait for this one there.
        let kernel = programs.kernel(&source())?;
        lock().push((choice, kernel));
        Ok(kernel)
    }
}

/// A kernel's text around its parameters and its body.
pub fn entry(parameters: &str, body: &str) -> String {
    format!("extern \"C\" __global__ void kernel({parameters}) {{ {body} }}\n")
}

/// The type of indices in kernels.
pub const fn index(small: bool) -> &'static str {
    if small { "i32" } else { "i64" }
}
