//! Constants: computes values that do not depend on the arguments only once, instead of at each
//! call.

use super::{Graph, escaping};
use crate::node::{Inputs, Node};
use crate::ops::copy::{identity::Identity, transfer::Transfer};
use crate::ops::create::fill::{Fill, filled};
use crate::ops::{Op, rules::multi_output::MultiOutput, shape::view::View};
use crate::shape::{self, Shape};
use crate::transforms::compile::graph::{Operands, Source, Step};
use crate::{array::Array, device::Device, placement, scalar::Scalar, stream, stream::Scope};
use std::sync::Arc;

/// Limit on the bytes of an array that is kept instead of computed at each call.
const MOST_KEPT: usize = 1 << 20;

/// Turns elementwise operations of constants, and views of constants, into constants. Fused
/// programs can carry these.
pub(super) fn fold(graph: &mut Graph) {
    graph.rewrite(|steps, step| {
        let op = step.op()?;
        if step.operands.is_empty() || step.place.stream.device != Device::CPU {
            return None;
        }
        let values: Option<Vec<Scalar>> =
            step.operands.iter().map(|i| steps[*i as usize].constant()).collect();
        let values = values?;
        let seen = || steps[step.operands[0] as usize].get::<Fill>().is_some_and(|f| f.spread);
        let (value, spread) = match op.get::<View>() {
            Some(View::Bitcast | View::Strided { .. }) => return None,
            Some(View::Broadcast) => (values[0], true),
            Some(_) => (values[0], seen()),
            None if op.elementwise().is_some() => (computed(op, &values, step)?, false),
            None => return None,
        };
        if value.dtype() == step.dtype {
            step.source = Source::Op(Fill { value, spread }.into());
            step.operands = Operands::new();
        }
        None
    });
}

/// Computes the operation on numbers by the kernel that would compute arrays. The result is equal
/// because each element is computed independently.
fn computed(op: &Op, values: &[Scalar], step: &Step) -> Option<Scalar> {
    if step.dtype.is_storage() || values.iter().any(|v| v.dtype().is_storage()) {
        return None;
    }
    let _host = Scope::new(stream::default_of(Device::CPU));
    let operands: Inputs = values.iter().map(|v| filled(Shape::new(), *v).node().clone()).collect();
    let place = placement::place(op, &[]).ok()?;
    let node = Node::new(op.clone(), operands, Shape::new(), step.dtype, place);
    Array::from_node(node).item_scalar().ok()
}

/// Returns true for operations that check, wait or copy in addition to computing a value.
fn does_more(op: &Op) -> bool {
    let does = matches!(op.get(), Some(Identity::Enough { .. } | Identity::After));
    does || op.is::<Transfer>()
}

/// Keeps small arrays that do not depend on the arguments. The first call computes them.
pub(super) fn keep(graph: &mut Graph) {
    let escapes = escaping(graph);
    let mut fixed: Vec<Option<Arc<Node>>> = Vec::with_capacity(graph.steps.len());
    for step in &graph.steps {
        let operands: Option<Inputs> =
            step.operands.iter().map(|i| fixed[*i as usize].clone()).collect();
        fixed.push(match (&step.source, operands) {
            (Source::Constant(array), _) => Some(array.node().clone()),
            (Source::Op(op), _) if does_more(op) => None,
            (Source::Op(op), Some(operands)) => {
                Some(step.node(op.for_new_node(), operands, step.shape.clone()))
            }
            _ => None,
        });
    }
    let mut wanted = vec![false; graph.steps.len()];
    graph.outputs.iter().for_each(|o| wanted[*o as usize] = true);
    for i in (0..graph.steps.len()).rev() {
        let step = &mut graph.steps[i];
        let kept = match step.op() {
            None => false,
            // Smaller than any array.
            Some(op) if op.is::<Fill>() || op.is::<MultiOutput>() => false,
            Some(_) => step.dtype.bytes_of(shape::size(&step.shape)) <= MOST_KEPT,
        };
        if let (true, true, false, Some(node)) = (wanted[i], kept, escapes[i], &fixed[i]) {
            step.source = Source::Constant(Array::from_node(node.clone()));
            step.operands = Operands::new();
        }
        if wanted[i] {
            step.operands.iter().for_each(|x| wanted[*x as usize] = true);
        }
    }
}
