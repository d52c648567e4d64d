//! Kernels that walk tensors of one shape, in the form for any axes and in the one that needs no divisions.

use super::{Axes, Device};
use crate::program::Kernel;
use crate::shader::Program;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// A kernel in both forms.
pub struct Walk {
    any: Arc<Kernel>,
    flat: Arc<Kernel>,
}

impl Walk {
    /// The kernels of a program that walks `tensors` tensors, with `more` words in front of the layout. In its body `at`
    /// holds the places of their elements.
    pub fn new(
        device: &Device,
        program: Program<'_>,
        (tensors, more): (usize, u32),
        body: &str,
    ) -> Result<Self> {
        let w = more + 1;
        let any = format!("let at = locate{tensors}({w}u, i);\n{body}");
        let any = program.clone().body(&any).build();
        let once =
            format!("let first_at = first{tensors}({w}u);\nlet step_at = step{tensors}({w}u);");
        let flat = program.prologue(&once);
        let flat = flat.body(&format!("let at = first_at + i * step_at;\n{body}")).build();
        Ok(Self { any: device.programs.get(any)?, flat: device.programs.get(flat)? })
    }

    /// The form for these axes.
    pub fn kernel<const K: usize>(&self, axes: &Axes<K>) -> &Arc<Kernel> {
        if axes.is_flat() { &self.flat } else { &self.any }
    }
}
