//! Elementwise functions of one array.

use super::{Call, Elementwise, Rules};
use crate::{array::Array, backend::Exec, error::Result, node::Value, shape::Shape};
use ultramarine_abi::{
    fused::family,
    schema::{UnaryAttrs, op, unary},
};

impl Array {
    /// e to the power of each element.
    pub fn exp(&self) -> Result<Array> {
        let a = self.astype(self.dtype().to_inexact());
        Ok(Array::of(Unary { code: unary::EXP }, &[&a], Shape::from_slice(a.shape()), a.dtype()))
    }
}

/// A function of a code of [`unary`].
#[derive(Clone, Debug)]
pub(crate) struct Unary {
    pub code: u32,
}

impl Rules for Unary {
    fn name(&self) -> &'static str {
        unary::NAMES[self.code as usize]
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { family: family::UNARY, code: self.code as u8 })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        exec.elementwise(op::UNARY, &UnaryAttrs::new(self.code), call)
    }
}
