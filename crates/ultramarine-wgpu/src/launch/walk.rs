//! Kernels that walk tensors of one shape.

use super::{Axes, Device, Forms, Once, places};
use crate::program::Kernel;
use crate::shader::Program;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// A kernel in its forms.
pub struct Walk {
    forms: Forms<Kernel>,
    program: Program<'static>,
    tensors: usize,
    more: u32,
    body: String,
}

impl Walk {
    /// The kernels of a program that walks `tensors` tensors, 4 at most, with `more` words in front of the layout. In its
    /// body `at` holds the places of their elements.
    pub fn new(
        device: &Device,
        program: Program<'static>,
        (tensors, more): (usize, u32),
        body: &str,
    ) -> Result<Self> {
        let body = body.to_owned();
        let walk = Self { forms: Forms::default(), program, tensors, more, body };
        // An error now if it does not compile.
        walk.form(device, 1)?;
        Ok(walk)
    }

    fn form(&self, device: &Device, axes: usize) -> Result<Arc<Kernel>> {
        self.forms.get(axes, |axes| {
            let table = format!("im.base + {}u", self.more + 1);
            let (once, found) = places(&table, (self.tensors, self.tensors), axes);
            let at = match self.tensors {
                1 => "at0",
                2 => "vec2<u32>(at0, at1)",
                3 => "vec3<u32>(at0, at1, at2)",
                _ => "vec4<u32>(at0, at1, at2, at3)",
            };
            let program = self.program.clone().prologue(&Once::lets(&once));
            let body = format!("{found}let at = {at};\n{}", self.body);
            device.programs.get(program.body(&body).build())
        })
    }

    /// The form for these axes.
    pub fn kernel<const K: usize>(&self, device: &Device, axes: &Axes<K>) -> Result<Arc<Kernel>> {
        self.form(device, axes.list.len())
    }
}
