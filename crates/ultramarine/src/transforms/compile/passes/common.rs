//! Common subexpressions: equal operations with equal operands are computed once.

use super::{Graph, escaping};
use crate::backend::WordHasher;
use crate::ops::{OperationKey, copy::Fresh};
use crate::transforms::compile::graph::{Source, Step};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

/// Returns true if two steps compute the same.
fn are_same(a: &Step, b: &Step) -> bool {
    let same_source = match (&a.source, &b.source) {
        (Source::Input(i), Source::Input(j)) => i == j,
        // The arrays must be identical. Equal values are not enough, because a library that
        // imported an array's memory may write to it.
        (Source::Constant(x), Source::Constant(y)) => Arc::ptr_eq(x.node(), y.node()),
        (Source::Op(x), Source::Op(y)) => {
            let key = |rules| OperationKey::new(rules);
            x.kind() == y.kind() && x.rules().map(key) == y.rules().map(key)
        }
        _ => false,
    };
    let (p, q) = (a.place, b.place);
    same_source
        && a.operands == b.operands
        && (&a.shape, a.dtype, p.stream, p.firm, p.deterministic)
            == (&b.shape, b.dtype, q.stream, q.firm, q.deterministic)
}

/// Hashes a step without its attributes, which are expensive to list and rarely the only
/// difference.
fn hash_of(step: &Step) -> u64 {
    let mut hasher = WordHasher::default();
    match &step.source {
        Source::Input(i) => hasher.write_u64(u64::from(*i)),
        Source::Constant(array) => hasher.write_usize(Arc::as_ptr(array.node()).addr()),
        Source::Op(op) => hasher.write_u64(op.kind()),
    }
    step.operands.iter().for_each(|operand| hasher.write_u64(u64::from(*operand)));
    step.shape.iter().for_each(|size| hasher.write_usize(*size));
    step.dtype.hash(&mut hasher);
    hasher.finish()
}

/// Merges steps that compute the same. Results keep separate memory, because a result may be
/// exported and then written to.
pub(super) fn merge(graph: &mut Graph) {
    type Steps = SmallVec<[(u32, bool); 2]>;
    let escapes = escaping(graph);
    let mut known: HashMap<u64, Steps, BuildHasherDefault<WordHasher>> =
        HashMap::with_capacity_and_hasher(graph.steps.len(), BuildHasherDefault::default());
    let mut number = 0;
    graph.rewrite(|steps, step| {
        let escapes = escapes[number] && step.op().is_some();
        number += 1;
        // The step explicitly requests a copy.
        if step.op().is_some_and(|op| op.is::<Fresh>() || op.rules().is_none()) {
            return None;
        }
        let alike = known.entry(hash_of(step)).or_default();
        match alike.iter().find(|(earlier, _)| are_same(&steps[*earlier as usize], step)) {
            Some((earlier, other)) if !(escapes && *other) => Some(*earlier),
            Some(_) => None,
            None => {
                alike.push((steps.len() as u32, escapes));
                None
            }
        }
    });
}
