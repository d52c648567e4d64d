//! Common subexpressions: the same operation of the same operands is done once.

use super::{Graph, escaping};
use crate::ops::{OperationKey, copy::Fresh};
use crate::transforms::compile::graph::{Operands, Source, Step};
use crate::{dtype::Dtype, node::Node, shape::Shape, stream::Stream};
use std::collections::HashMap;
use std::sync::Arc;

/// Where equal values come from.
#[derive(PartialEq, Eq, Hash)]
enum Origin {
    Input(u32),
    /// The same array. Equal values are not enough: a library that imported its memory may write to it.
    Constant(*const Node),
    Operation(OperationKey),
}

/// The key under which two steps are the same.
#[derive(PartialEq, Eq, Hash)]
struct Same {
    origin: Origin,
    operands: Operands,
    shape: Shape,
    dtype: Dtype,
    stream: Stream,
    firm: bool,
}

fn same(step: &Step) -> Option<Same> {
    let origin = match &step.source {
        Source::Input(i) => Origin::Input(*i),
        Source::Constant(array) => Origin::Constant(Arc::as_ptr(array.node())),
        // A copy is asked for.
        Source::Op(op) if op.is::<Fresh>() => return None,
        Source::Op(op) => Origin::Operation(OperationKey::new(op.rules()?)),
    };
    Some(Same {
        origin,
        operands: step.operands.clone(),
        shape: step.shape.clone(),
        dtype: step.dtype,
        stream: step.place.stream,
        firm: step.place.firm,
    })
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
            Some((earlier, other)) if !(escapes && *other) => Some(*earlier),
            Some(_) => None,
            None => {
                known.insert(same, (steps.len() as u32, escapes));
                None
            }
        }
    });
}
