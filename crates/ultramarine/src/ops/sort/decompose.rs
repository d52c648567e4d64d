//! Sorting.

use crate::{
    dtype::Dtype,
    ops::{
        rules::decomposition::{Decompose, Ways, wider},
        sort::Sort,
    },
};

/// The ways of a sort: in a wider dtype, which keeps the order, or by the indices. What is sorted
/// is partitioned, too.
pub(crate) fn ways(of: &Sort, d: &Decompose<'_>, ways: &mut Ways) {
    let x = &d.inputs[0];
    if of.kth.is_some() {
        ways.add(Ok(Sort { kth: None, ..of.clone() }.of(x)));
        return;
    }
    if let Some(wide) = wider(x.dtype()).or((x.dtype() == Dtype::Bool).then_some(Dtype::Int32)) {
        ways.add(Ok(of.clone().of(&x.astype(wide)).astype(d.dtype)));
    }
    if !of.arg {
        ways.add(Ok(x.gather_axis(&of.order(x), of.axis)));
    }
}
