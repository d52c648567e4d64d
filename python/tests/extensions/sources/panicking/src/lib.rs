//! Primitives that panic in one of their rules; those that do not give twice their operand.

use pyo3::prelude::*;
use ultramarine_extension::{
    Array, Attributes, CpuCall, Jvp, Place, Primitive, Result, TensorType, Vjp, Vmap, apply_one,
    python,
};

/// Panics in the rule of this name.
#[derive(Debug)]
struct Panics(String);

impl Panics {
    fn at(&self, rule: &str) {
        if self.0 == rule {
            panic!("a panic in {rule}");
        }
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        self.at("drop");
    }
}

impl Primitive for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn attributes(&self) -> Attributes {
        self.at("attributes");
        Attributes::new().text(&self.0)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        self.at("infer");
        Ok(vec![inputs[0].clone()])
    }

    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        self.at("eval_cpu");
        call.map1(|x: f32| {
            self.at("a task of eval_cpu");
            2.0 * x
        })
    }

    fn compose(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.at("compose");
        Ok(vec![(&inputs[0] + &inputs[0])?])
    }

    fn vjp(&self, of: &Vjp<'_>) -> Result<Vec<Option<Array>>> {
        self.at("vjp");
        of.cotangents.iter().map(|c| c.as_ref().map(|c| c + c).transpose()).collect()
    }

    fn jvp(&self, of: &Jvp<'_>) -> Result<Vec<Option<Array>>> {
        self.at("jvp");
        of.tangents.iter().map(|t| t.as_ref().map(|t| t + t).transpose()).collect()
    }

    fn vmap(&self, of: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        self.at("vmap");
        let doubled = apply_one(Panics(self.0.clone()), &[&of.inputs[0]], Place::Default)?;
        Ok(vec![(doubled, of.axes[0])])
    }
}

/// Twice `x`, by a primitive that panics in a rule.
#[pyfunction]
fn apply(rule: String, x: Array) -> Result<Array> {
    apply_one(Panics(rule), &[&x], Place::Default)
}

#[pymodule]
fn panicking(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::connect_python(module.py())?;
    module.add_function(wrap_pyfunction!(apply, module)?)
}
