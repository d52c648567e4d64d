//! Lazy graphs as text for Graphviz.

use super::names::letters;
use crate::node::Node;
use crate::ops::rules::multi_output::OutputOf;
use crate::{array::Array, arrays::Arrays};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// Returns the graph of the operations that are needed to evaluate arrays, in DOT, the language of
/// [graphviz](https://graphviz.org). Operations are rectangles, arrays ellipses. Evaluated arrays,
/// and numbers, have no operation. `names` gives names to arrays; other arrays are called A, B and
/// so on.
///
/// ```
/// use ultramarine::{Array, Dtype, export_to_dot};
/// let x = Array::ones(&[2], Dtype::Float32)?;
/// let y = x.add(&x)?.exp()?;
/// let text = export_to_dot([&y], &[("x", &x), ("y", &y)]);
/// assert!(text.contains("[label =\"exp\", shape=rectangle]") && text.contains("-> \"y\""));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn export_to_dot(outputs: impl Arrays, names: &[(&str, &Array)]) -> String {
    let mut roots = outputs.owned();
    roots.extend(names.iter().map(|(_, array)| (*array).clone()));
    let mut drawing = Drawing::default();
    for (name, array) in names {
        // Escape the name for a quoted string.
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        drawing.names.insert(Arc::as_ptr(array.node()), name);
    }
    drawing.text.push_str("digraph {\n");
    drawing.draw(&roots);
    drawing.text.push_str("}\n");
    drawing.text
}

#[derive(Default)]
struct Drawing {
    names: HashMap<*const Node, String>,
    /// Arrays that are operands.
    read: HashSet<*const Node>,
    /// Numbers of operations.
    operations: HashMap<*const Node, usize>,
    text: String,
}

/// The node of an array's operation. If the operation has several results, it is their common node.
fn operation(node: &Arc<Node>) -> Option<Arc<Node>> {
    if node.is_done() || node.op.is_given() || node.op.is_constant() {
        return None;
    }
    match node.op.is::<OutputOf>() {
        true => node.inputs().first().cloned(),
        false => Some(node.clone()),
    }
}

impl Drawing {
    fn name(&mut self, node: &Arc<Node>) -> String {
        let next = self.names.len();
        self.names.entry(Arc::as_ptr(node)).or_insert_with(|| letters(next)).clone()
    }

    /// Draws arrays, each after its operands. The walk is iterative, because graphs may be deep.
    fn draw(&mut self, roots: &[Array]) {
        let mut seen: HashSet<*const Node> = HashSet::new();
        let mut order: Vec<Arc<Node>> = Vec::new();
        let mut stack: Vec<(Arc<Node>, bool)> =
            roots.iter().rev().map(|a| (a.node().clone(), false)).collect();
        while let Some((node, expanded)) = stack.pop() {
            if expanded {
                order.push(node);
            } else if seen.insert(Arc::as_ptr(&node)) {
                let below = operation(&node).map(|of| of.inputs()).unwrap_or_default();
                self.read.extend(below.iter().map(Arc::as_ptr));
                stack.push((node, true));
                stack.extend(below.iter().rev().map(|x| (x.clone(), false)));
            }
        }
        order.iter().for_each(|node| self.array(node));
    }

    fn array(&mut self, node: &Arc<Node>) {
        let drawn = operation(node).map(|of| self.operation(&of));
        let name = self.name(node);
        let rank = match (drawn, self.read.contains(&Arc::as_ptr(node))) {
            (None, _) => "rank=source; ",
            (Some(_), false) => "rank=sink; ",
            (Some(_), true) => "",
        };
        let _ = writeln!(self.text, "{{ {rank}\"{name}\"; }}");
        if let Some(number) = drawn {
            let _ = writeln!(self.text, "{number} -> \"{name}\"");
        }
    }

    /// The number of an operation, which is drawn when its first result is.
    fn operation(&mut self, of: &Arc<Node>) -> usize {
        let next = self.operations.len() + 1;
        if let Some(known) = self.operations.get(&Arc::as_ptr(of)) {
            return *known;
        }
        self.operations.insert(Arc::as_ptr(of), next);
        let label = of.op.name().replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(self.text, "{{ {next} [label =\"{label}\", shape=rectangle]; }}");
        for operand in of.inputs().iter() {
            let name = self.name(operand);
            let _ = writeln!(self.text, "\"{name}\" -> {next}");
        }
        next
    }
}
