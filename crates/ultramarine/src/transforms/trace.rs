//! The part of a graph that depends on traced arguments, for all transforms.

use crate::graph::{op::Transform, tracing::Tracing};
use crate::{array::Array, node::Inputs, node::Node, ops::Op, shape::Shape};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

/// A map from nodes, by identity.
pub(super) type NodeMap<T> =
    HashMap<*const Node, T, BuildHasherDefault<crate::backend::WordHasher>>;

impl Array {
    /// Makes a placeholder for the array as an argument of a transform. It has the array's dtype
    /// and placement, the given shape, and no value.
    pub(super) fn stand_in(&self, tracing: &Tracing, transform: Transform, shape: Shape) -> Array {
        let (op, place) = (Op::stand_in(transform), self.node().place);
        Array::from_node(Node::argument(tracing, op, Inputs::new(), shape, self.dtype(), place))
    }
}

/// The nodes between traced arguments and outputs.
pub(super) struct Trace {
    /// For each visited node: true if it depends on an argument.
    depends: NodeMap<bool>,
    /// The nodes that depend on an argument, without the arguments. Operands come before their
    /// consumers.
    pub tape: Vec<Arc<Node>>,
}

impl Trace {
    /// Walks from `outputs` to the arguments. It does not recurse, because graphs may be deep.
    pub fn new(arguments: &[Array], outputs: &[Array]) -> Trace {
        let mut depends: NodeMap<bool> = NodeMap::default();
        for argument in arguments {
            depends.insert(Arc::as_ptr(argument.node()), true);
        }
        // A function that closes over arrays of a trace may be called after that trace has ended.
        // Its arrays still lead to the arguments.
        let all_live = arguments.iter().all(|a| a.node().is_traced());
        let mut tape = Vec::new();
        let mut stack: Vec<(Arc<Node>, bool)> =
            outputs.iter().rev().map(|o| (o.node().clone(), false)).collect();
        while let Some((node, expanded)) = stack.pop() {
            let id = Arc::as_ptr(&node);
            if expanded {
                let any = node.with_inputs(|inputs| {
                    inputs.iter().any(|i| depends.get(&Arc::as_ptr(i)).copied().unwrap_or(false))
                });
                if depends.insert(id, any).is_none() && any {
                    tape.push(node);
                }
                continue;
            }
            if depends.contains_key(&id) {
                continue;
            }
            // An untraced array cannot lead to a traced argument.
            if all_live && !node.is_traced() {
                depends.insert(id, false);
                continue;
            }
            let inputs = node.inputs();
            stack.push((node, true));
            stack.extend(inputs.into_iter().map(|i| (i, false)));
        }
        Trace { depends, tape }
    }

    /// Returns true if the node is an argument, or depends on one.
    pub fn depends(&self, node: &Arc<Node>) -> bool {
        self.depends.get(&Arc::as_ptr(node)).copied().unwrap_or(false)
    }
}

/// A node's operands as arrays.
pub(super) fn operands(node: &Arc<Node>) -> Vec<Array> {
    node.inputs().into_iter().map(Array::from_node).collect()
}
