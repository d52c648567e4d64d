//! A call of a function whose graph the transforms see as one operation, with rules of its own.
//!
//! The function runs on copies of its arguments that no trace sees. Its results are operands of one
//! operation, behind the arguments and the arrays that the function closes over; evaluation hands them
//! on. So whatever lies between arguments and results belongs to nobody but the results, and is gone once
//! they are computed. (The idea is that of MLX's `CustomTransforms`.)

use crate::error::{Error, Result};
use crate::graph::tracing::Tracing;
use crate::node::{Inside, Node, Value};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp};
use crate::ops::{Attribute, Call, Cotangents, Draft, Opaque, OperationKey, Vmap, attributes};
use crate::{array::Array, backend::Exec, dtype::Dtype, shape::Shape};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// A function of arrays.
pub(crate) type Function = Arc<dyn Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync>;

/// The rules of such an operation. Each gets the number of operands that are arguments and, behind
/// them, arrays that the function closes over.
/// Each call is an operation of its own: only the very same rules are the same.
pub(super) trait Enclosing: Opaque {
    /// The name in errors.
    fn name(&self) -> &'static str;

    /// As [`MultiOutputRules::has_own_derivatives`].
    fn has_own_derivatives(&self) -> bool {
        false
    }

    /// Cotangents of arguments and closed-over arrays.
    fn vjp(&self, operands: Operands, v: &MultiOutputVjp<'_>) -> Result<Cotangents>;

    /// Tangents of the results.
    fn jvp(&self, operands: Operands, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>>;

    /// Results for a batch; `shapes` are those of a single example.
    fn vmap(
        &self,
        operands: Operands,
        v: &Vmap<'_>,
        shapes: &[Shape],
    ) -> Result<Vec<(Array, Option<usize>)>>;
}

attributes! {
    /// The roles of operands: arguments, then closed-over arrays, then the results themselves.
    #[derive(Clone, Copy)]
    pub(super) struct Operands {
        arguments: usize,
        captured: usize,
    }
}

impl Operands {
    /// Returns the part of a list that belongs to the arguments. The list has an entry for each
    /// operand.
    pub fn arguments<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        &all[..self.arguments]
    }

    /// Returns the part of a list that belongs to the closed-over arrays.
    pub fn captured<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        &all[self.arguments..self.arguments + self.captured]
    }

    /// Returns the part of a list that belongs to arguments and closed-over arrays.
    pub fn outer<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        &all[..self.arguments + self.captured]
    }
}

attributes! {
    /// The operation.
    struct Enclosed {
        rules: Arc<dyn Enclosing>,
        operands: Operands,
        shapes: Vec<Shape>,
    }
}

impl Attribute for Arc<dyn Enclosing> {
    fn encode(&self, key: &mut OperationKey) {
        key.opaque(self.clone());
    }
}

impl Debug for Enclosed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Operands { arguments, captured } = self.operands;
        write!(f, "{}({arguments}, {captured})", self.rules.name())
    }
}

impl MultiOutputRules for Enclosed {
    fn name(&self) -> &'static str {
        self.rules.name()
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        true
    }

    fn forwards_operands(&self) -> bool {
        true
    }

    fn has_own_derivatives(&self) -> bool {
        self.rules.has_own_derivatives()
    }

    fn eval(&self, _: &Exec, call: &Call<'_>, _: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        Ok(call.inputs[self.operands.arguments + self.operands.captured..].to_vec())
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        self.rules.vjp(self.operands, v)
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        self.rules.jvp(self.operands, j)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        self.rules.vmap(self.operands, v, &self.shapes)
    }
}

/// Calls `f`; where a transform is under way, what it computes is one operation with `rules`.
///
/// # Errors
/// What `f` returns; [`Error::Value`] when such calls are nested some hundred times.
pub(super) fn call(f: &Function, rules: impl Enclosing, arguments: &[Array]) -> Result<Vec<Array>> {
    // Arrays that `f` closes over may belong to a trace of any thread.
    if !Tracing::active() {
        return f(arguments);
    }
    let (outputs, captured) = {
        let inside = Inside::new().ok_or_else(|| {
            Error::value(rules.name(), "Functions are nested too deeply. Nest fewer of them.")
        })?;
        let own: Vec<Array> = arguments.iter().map(Array::untraced).collect();
        let outputs = f(&own)?;
        let captured = closed_over(&outputs, &inside);
        (outputs, captured)
    };
    if captured.is_empty() && !arguments.iter().any(|a| a.node().is_traced()) {
        return Ok(outputs);
    }
    let operands = Operands { arguments: arguments.len(), captured: captured.len() };
    let inputs: Vec<&Array> = arguments.iter().chain(&captured).collect();
    let shapes = outputs.iter().map(|o| Shape::from_slice(o.shape())).collect();
    let rules = Arc::new(rules);
    Ok(Array::forwarded(Enclosed { rules, operands, shapes }, &inputs, &outputs))
}

/// The traced arrays from before the call that `outputs` depend on. What lies between is taken
/// out of all traces: operands of what was computed already are let go, and no transform goes there.
fn closed_over(outputs: &[Array], inside: &Inside) -> Vec<Array> {
    let mut found: Vec<Array> = Vec::new();
    let mut stack: Vec<Arc<Node>> = outputs.iter().rev().map(|o| o.node().clone()).collect();
    while let Some(node) = stack.pop() {
        if inside.is_after(&node) {
            if !found.iter().any(|a| Arc::ptr_eq(a.node(), &node)) {
                found.push(Array::from_node(node));
            }
        } else if node.is_traced() {
            stack.extend(node.inputs());
            node.leave_trace();
            if node.is_done() {
                drop(node.take_inputs());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transforms::CustomFunction;

    #[test]
    fn functions_of_one_name_are_different_operations() {
        let function = || Arc::new(CustomFunction::new(|x| Ok(x.to_vec())));
        let operands = Operands { arguments: 1, captured: 0 };
        let key = |rules: &Arc<CustomFunction>| {
            let call = Enclosed { rules: rules.clone(), operands, shapes: Vec::new() };
            OperationKey::of(call.name(), call.version(), &call)
        };
        let (f, g) = (function(), function());
        assert!(key(&f) == key(&f) && key(&f) != key(&g));
        assert_eq!(key(&f).serialised(), None);
    }
}
