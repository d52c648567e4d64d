//! A call of a function whose graph is a single operation to transforms, with its own rules.
//!
//! The function runs on copies of its arguments that no trace sees. The operands of the operation
//! are the arguments, the arrays that the function closes over, and the function's results;
//! evaluation passes the results on. Therefore only the results refer to the nodes between
//! arguments and results, and these nodes are freed once the results are computed. (The idea is
//! that of MLX's `CustomTransforms`.)

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

/// The rules of such an operation. Each rule gets the number of operands that are arguments, and
/// the number of closed-over arrays after them. Each call is a distinct operation, so rules are
/// equal only if they are the same object.
pub(super) trait Enclosing: Opaque {
    /// The name for errors.
    fn name(&self) -> &'static str;

    /// As [`MultiOutputRules::has_own_derivatives`].
    fn has_own_derivatives(&self) -> bool {
        false
    }

    /// Cotangents of arguments and closed-over arrays.
    fn vjp(&self, operands: Operands, v: &MultiOutputVjp<'_>) -> Result<Cotangents>;

    /// Tangents of the results.
    fn jvp(&self, operands: Operands, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>>;

    /// Returns the results for a batch. `shapes` are the results' shapes for a single example.
    fn vmap(
        &self,
        operands: Operands,
        v: &Vmap<'_>,
        shapes: &[Shape],
    ) -> Result<Vec<(Array, Option<usize>)>>;
}

attributes! {
    /// The roles of the operands: first the arguments, then the closed-over arrays, then the
    /// results.
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

/// Calls `f`. If a transform is tracing, the computation of `f` becomes one operation with `rules`.
///
/// # Errors
/// Those of `f`; [`Error::Value`] if such calls are nested some hundred times.
pub(super) fn call(f: &Function, rules: impl Enclosing, arguments: &[Array]) -> Result<Vec<Array>> {
    // Check all threads, because arrays that `f` closes over may belong to a trace of another
    // thread.
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

/// Returns the traced arrays from before the call that `outputs` depend on. Removes the nodes
/// between them and `outputs` from all traces: evaluated nodes release their operands, and
/// transforms do not visit these nodes.
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
