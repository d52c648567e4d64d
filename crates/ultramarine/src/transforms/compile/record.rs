//! Tracing: calls the function once on placeholders, which have shapes and dtypes but no values,
//! and records the graph of the results.

use super::graph::{Graph, Source, Step};
use crate::distributed::{Group, Linked, Links};
use crate::error::{Error, Result, bail};
use crate::graph::{op::Transform, tracing::Tracing};
use crate::node::{Inputs, Node};
use crate::{array::Array, shape::Shape, transforms::trace::NodeMap};
use std::sync::{Arc, atomic::Ordering};

/// A recorded function.
pub(crate) struct Recorded {
    pub graph: Graph,
    /// Groups that the function communicates in. Their tokens are the graph's last inputs, and the
    /// tokens afterwards its last outputs.
    pub groups: Vec<Group>,
    /// True if the function closes over an array of a transform that has not ended. The graph
    /// cannot be used after this call.
    pub once: bool,
}

/// Calls `f` on placeholders for `inputs`.
pub(crate) fn record<E: From<Error>>(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
    inputs: &[Array],
) -> Result<Recorded, E> {
    let tracing = Tracing::new();
    let mut arguments: Vec<Array> = inputs.iter().map(|i| stand_in(&tracing, i)).collect();
    let links = Links::begin(&tracing, Transform::Compile);
    let mut outputs = f(&arguments)?;
    let Linked { groups, from, to } = links.end();
    arguments.extend(from);
    outputs.extend(to);
    let (graph, once) = written(&arguments, &outputs)?;
    Ok(Recorded { graph, groups, once })
}

/// Makes the placeholder that the function gets for an argument.
fn stand_in(tracing: &Tracing, input: &Array) -> Array {
    input.stand_in(tracing, Transform::Compile, Shape::from_slice(input.shape()))
}

/// The role of a node in the graph.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Input(u32),
    Constant,
    /// An operation. The flag is true if it depends on an argument.
    Op(bool),
}

struct Reached {
    node: Arc<Node>,
    operands: Inputs,
    role: Role,
}

/// Collects all nodes that `outputs` depend on, operands first. It does not recurse, because graphs
/// may be deep.
fn reach(arguments: &[Array], outputs: &[Array]) -> (Vec<Reached>, NodeMap<u32>) {
    let mut all: Vec<Reached> = Vec::new();
    let mut number: NodeMap<u32> = NodeMap::default();
    for (i, argument) in arguments.iter().enumerate() {
        let node = argument.node().clone();
        number.insert(Arc::as_ptr(&node), all.len() as u32);
        all.push(Reached { node, operands: Inputs::new(), role: Role::Input(i as u32) });
    }
    let mut stack: Vec<(Arc<Node>, Option<Inputs>)> =
        outputs.iter().rev().map(|o| (o.node().clone(), None)).collect();
    while let Some((node, expanded)) = stack.pop() {
        if number.contains_key(&Arc::as_ptr(&node)) {
            continue;
        }
        let (operands, role) = match expanded {
            Some(operands) => {
                let depends = operands.iter().any(|x| {
                    let role = number.get(&Arc::as_ptr(x)).map(|n| all[*n as usize].role);
                    matches!(role, Some(Role::Input(_) | Role::Op(true)))
                });
                (operands, Role::Op(depends))
            }
            None => {
                let operands = node.inputs();
                // Check this after the operands were read, because an evaluation takes them away.
                let there = node.is_done()
                    || node.is_claimed()
                    || node.op.is_given()
                    || node.op.is_outside();
                if !there || node.constant().is_some() {
                    let below: Vec<_> = operands.iter().rev().map(|x| (x.clone(), None)).collect();
                    stack.push((node, Some(operands)));
                    stack.extend(below);
                    continue;
                }
                (Inputs::new(), Role::Constant)
            }
        };
        number.insert(Arc::as_ptr(&node), all.len() as u32);
        all.push(Reached { node, operands, role });
    }
    (all, number)
}

/// Makes the graph, and the flag [`Recorded::once`].
fn written(arguments: &[Array], outputs: &[Array]) -> Result<(Graph, bool)> {
    let (mut all, number) = reach(arguments, outputs);
    // Number of this function's handles of the results.
    let mut own = vec![0; all.len()];
    let of = |node: &Arc<Node>| number[&Arc::as_ptr(node)] as usize;
    let mut wanted = vec![false; all.len()];
    for output in outputs {
        let i = of(output.node());
        wanted[i] = true;
        own[i] += 1;
    }
    for i in (0..all.len()).rev() {
        let Reached { node, operands, role } = &mut all[i];
        if !wanted[i] {
            continue;
        }
        // Arrays that have other holders, or that another transform traces, are not computed again
        // at each call.
        let held = node.handles.load(Ordering::Acquire) > own[i] || node.is_traced();
        if *role == Role::Op(false) && held && node.constant().is_none() {
            *role = Role::Constant;
            *operands = Inputs::new();
        }
        operands.iter().for_each(|x| wanted[of(x)] = true);
    }
    let mut graph = Graph { steps: Vec::new(), outputs: Vec::new() };
    let mut now = vec![0; all.len()];
    let mut once = false;
    for (i, Reached { node, operands, role }) in all.iter().enumerate() {
        if !wanted[i] {
            continue;
        }
        let source = match role {
            Role::Input(i) => Source::Input(*i),
            Role::Op(_) => Source::Op(node.op.for_new_node()),
            Role::Constant => {
                once |= is_foreign(node)?;
                Source::Constant(Array::from_node(node.clone()))
            }
        };
        now[i] = graph.steps.len() as u32;
        graph.steps.push(Step {
            source,
            operands: operands.iter().map(|x| now[of(x)]).collect(),
            shape: node.shape.clone(),
            dtype: node.dtype,
            place: node.place,
            hidden: *role == Role::Op(true) && !node.is_traced(),
        });
    }
    graph.outputs = outputs.iter().map(|o| now[of(o.node())]).collect();
    Ok((graph, once))
}

/// Returns true if an array belongs to another transform that has not ended.
fn is_foreign(node: &Node) -> Result<bool> {
    let (has_value, traced) = (node.is_done(), node.is_traced());
    if node.op.is_given() && !has_value && !traced {
        bail!(
            "compile",
            "Attempting to compile a function with uncaptured inputs is not allowed. Pass the array as an argument, or name it in `inputs`."
        );
    }
    let alone = has_value && node.with_inputs(|inputs| inputs.is_empty());
    Ok(traced && !alone)
}
