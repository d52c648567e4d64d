//! Decompositions of sorting.

use crate::ops::rules::decomposition::{Candidates, Decompose, wider};
use crate::{dtype::Dtype, ops::sort::Sort};

/// Candidates for a sort: in a wider dtype, which keeps the order, or by the indices. A sorted array is a valid
/// partition, so they serve partitions too.
pub(crate) fn candidates(of: &Sort, d: &Decompose<'_>, candidates: &mut Candidates) {
    let x = &d.inputs[0];
    if of.kth.is_some() {
        candidates.add(Ok(Sort { kth: None, ..of.clone() }.of(x)));
        return;
    }
    if let Some(wide) = wider(x.dtype()).or((x.dtype() == Dtype::Bool).then_some(Dtype::Int32)) {
        candidates.add(Ok(of.clone().of(&x.astype(wide)).astype(d.dtype)));
    }
    if !of.arg {
        candidates.add(Ok(x.gather_axis(&of.order(x), of.axis)));
    }
}
