//! Common subexpressions: the same operation of the same operands is done once.

use super::{Graph, escaping};
use crate::{
    dtype::Dtype,
    ops::Op,
    shape::Shape,
    stream::Stream,
    transforms::compile::graph::{Operands, Source, Step},
};
use std::collections::HashMap;

/// The key under which two steps are the same. Attributes distinguish operations.
#[derive(PartialEq, Eq, Hash)]
struct Same {
    op: String,
    operands: Operands,
    shape: Shape,
    dtype: Dtype,
    stream: Stream,
    firm: bool,
}

fn same(step: &Step) -> Option<Same> {
    let op = match &step.source {
        // The same argument, or the same array: whoever exported its memory may write to it, so equal values are
        // not enough.
        Source::Input(i) => format!("input {i}"),
        Source::Constant(array) => format!("constant {:p}", std::sync::Arc::as_ptr(array.node())),
        // A number prints the same as others do: as -nan.
        Source::Op(Op::Fill(fill)) => format!("fill {:x}", fill.value.bits()),
        // A copy is asked for.
        Source::Op(Op::Fresh(_)) => return None,
        Source::Op(op) => format!("{} {}", op.name(), op.rules()?.attributes()),
    };
    Some(Same {
        op,
        operands: step.operands.clone(),
        shape: step.shape.clone(),
        dtype: step.dtype,
        stream: step.place.stream,
        firm: step.place.firm,
    })
}

/// True if the steps call the same operation, or are no operations with several results.
fn agree(a: &Step, b: &Step) -> bool {
    match (a.op(), b.op()) {
        (Some(Op::Many(a)), Some(Op::Many(b))) => a.same(b),
        _ => true,
    }
}

/// Merges steps that compute the same. Results keep memory of their own: one may be exported, and
/// written to.
pub(super) fn merge(graph: &mut Graph) {
    let escapes = escaping(graph);
    let mut known: HashMap<Same, (u32, bool)> = HashMap::new();
    let mut number = 0;
    graph.rewrite(|steps, step| {
        let escapes = escapes[number] && step.op().is_some();
        number += 1;
        let same = same(step)?;
        match known.get(&same) {
            Some((earlier, _)) if !agree(&steps[*earlier as usize], step) => None,
            Some((earlier, other)) if !(escapes && *other) => Some(*earlier),
            Some(_) => None,
            None => {
                known.insert(same, (steps.len() as u32, escapes));
                None
            }
        }
    });
}
