//! Tracing: the function is called once on stand-ins, which have shapes and dtypes but no values, and
//! the graph behind its results is written down.

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
    /// Groups that it communicates in. The graph's last inputs are their tokens, its last outputs the tokens after it.
    pub groups: Vec<Group>,
    /// It closes over an array of a transform that is under way: it is of no use after this call.
    pub once: bool,
}

/// Calls `f` on stand-ins for `inputs`.
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

/// The stand-in of an argument, which the function gets.
fn stand_in(tracing: &Tracing, input: &Array) -> Array {
    input.stand_in(tracing, Transform::Compile, Shape::from_slice(input.shape()))
}

/// The role of a node in the graph.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Input(u32),
    Constant,
    /// An operation, which depends on an argument or does not.
    Op(bool),
}

struct Reached {
    node: Arc<Node>,
    operands: Inputs,
    role: Role,
}

/// All nodes that `outputs` lead to, operands first. Iterative: graphs may be deep.
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
                // Looked at after the operands, which its evaluation takes away.
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

/// The graph, and [`Recorded::once`].
fn written(arguments: &[Array], outputs: &[Array]) -> Result<(Graph, bool)> {
    let (mut all, number) = reach(arguments, outputs);
    // Handles of the results that are ours.
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
        // Arrays that are held elsewhere or traced by another transform are not computed at each call.
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

/// True if an array belongs to another transform, which is under way.
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
