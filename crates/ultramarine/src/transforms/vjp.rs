//! Reverse mode.

use super::slices::Slices;
use super::trace::{NodeMap, Trace, operands};
use crate::error::{Error, Result, ensure};
use crate::node::Node;
use crate::ops::rules::multi_output::{Function, MultiOutput, MultiOutputVjp, OutputOf};
use crate::ops::{Cotangents, Vjp, shape::view::View};
use crate::{array::Array, arrays::Arrays, graph::tracing::Tracing, placement};
use crate::{scalar::Scalar, shape::Show};
use std::sync::Arc;

/// Returns the outputs of `f` at `primals`, and the vector-Jacobian products: for each primal, the
/// gradient of the sum of all outputs, each multiplied by its cotangent. There is one cotangent for
/// each output, with the output's shape.
///
/// # Errors
/// Those of `f`; [`Error::Value`] if the cotangents do not match the outputs, or an operation has
/// no reverse rule.
///
/// ```
/// use ultramarine::{Array, transforms::vjp};
/// let x = Array::from_slice(&[3.0f32, 4.0], &[2])?;
/// let (_, gradients) = vjp(|x| Ok(vec![x[0].square()?]), &[&x], &[x.ones_like()])?;
/// assert_eq!(gradients[0].to_vec::<f32>()?, [6.0, 8.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn vjp(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: impl Arrays,
    cotangents: impl Arrays,
) -> Result<(Vec<Array>, Vec<Array>)> {
    vjp_with(f, &primals.owned(), |_| Ok(cotangents.owned()))
}

/// Computes like [`vjp`], for a function with its own error type. `cotangents` makes the cotangents
/// from the outputs.
///
/// # Errors
/// As [`vjp`], and those of `cotangents`.
pub fn vjp_with<E: From<Error>>(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
    primals: &[Array],
    cotangents: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
) -> Result<(Vec<Array>, Vec<Array>), E> {
    let tracing = Tracing::new();
    let arguments: Vec<Array> = primals.iter().map(|p| p.traced(&tracing)).collect();
    let outputs = f(&arguments)?;
    let cotangents = cotangents(&outputs)?;
    ensure!(
        cotangents.len() == outputs.len(),
        "vjp",
        "Number of outputs ({}) does not match number of cotangents ({}). Pass a cotangent for each output.",
        outputs.len(),
        cotangents.len()
    );
    let gradients = pull_back(&arguments, &outputs, cotangents)?;
    Ok((outputs, gradients))
}

/// Computes the vector-Jacobian products for all arguments from the outputs' cotangents.
pub(super) fn pull_back(
    arguments: &[Array],
    outputs: &[Array],
    cotangents: Vec<Array>,
) -> Result<Vec<Array>> {
    let trace = Trace::new(arguments, outputs);
    let mut pending: NodeMap<Array> = NodeMap::default();
    for (output, cotangent) in outputs.iter().zip(cotangents) {
        ensure!(
            cotangent.shape() == output.shape(),
            "vjp",
            "Output of shape {} and cotangent of shape {} do not match. Give both the same shape.",
            Show(output.shape()),
            Show(cotangent.shape())
        );
        if trace.depends(output.node()) {
            add(&mut pending, output, cotangent.astype(output.dtype().derivative()))?;
        }
    }
    // For operations with several results: the cotangents of all results.
    let mut bundles: NodeMap<Vec<Option<Array>>> = NodeMap::default();
    // For arrays that are cut into slices: the cotangents of the slices, until all are known.
    let mut slices: NodeMap<Slices> = NodeMap::default();
    for node in trace.tape.iter().rev() {
        let id = Arc::as_ptr(node);
        join(&mut slices, &mut pending, node)?;
        let cotangent = pending.remove(&id);
        let all = match node.op.get::<MultiOutput>() {
            Some(multi) if multi.is_result() && cotangent.is_some() => {
                Some(vec![cotangent.clone()])
            }
            _ => bundles.remove(&id),
        };
        let Some(rules) = node.op.rules().filter(|_| cotangent.is_some() || all.is_some()) else {
            continue;
        };
        let primals = operands(node);
        let _place = placement::enter(node.place);
        if let (Some(output), Some(cotangent)) = (node.op.get::<OutputOf>(), &cotangent) {
            let bundle = primals[0].node();
            let Some(multi) = bundle.op.get::<MultiOutput>() else { continue };
            let all = bundles.entry(Arc::as_ptr(bundle)).or_insert_with(|| vec![None; multi.len()]);
            all[output.index] = Some(match all[output.index].take() {
                Some(before) => before.add(cotangent)?,
                None => cotangent.clone(),
            });
            continue;
        }
        if let (Some(view @ View::Slice { .. }), Some(cotangent)) =
            (node.op.get::<View>(), &cotangent)
        {
            let of = slices.entry(Arc::as_ptr(primals[0].node()));
            let taken = of.or_insert_with(|| Slices::new(node.place));
            if taken.take(view, &primals[0], cotangent)? {
                continue;
            }
        }
        let wanted: Vec<bool> = primals.iter().map(|p| trace.depends(p.node())).collect();
        let (primals, wanted) = (&primals[..], &wanted[..]);
        let found = match (node.op.get::<MultiOutput>(), &all, &cotangent) {
            (Some(multi), Some(cotangents), _) => {
                let outputs = &multi.outputs(node);
                let pull_back = |f: Function<'_>, x: &[Array], c| reverse(f, x, &[], c);
                multi.vjp(&MultiOutputVjp { primals, outputs, cotangents, wanted, pull_back })?
            }
            (_, _, Some(cotangent)) => {
                let output = &Array::from_node(node.clone());
                rules.vjp(&Vjp { primals, output, cotangent, wanted })?
            }
            _ => continue,
        };
        for ((primal, wanted), cotangent) in primals.iter().zip(wanted).zip(found) {
            if let (true, Some(cotangent)) = (wanted, cotangent) {
                add(&mut pending, primal, cotangent)?;
            }
        }
    }
    arguments.iter().try_for_each(|a| join(&mut slices, &mut pending, a.node()))?;
    Ok(arguments
        .iter()
        .map(|a| pending.remove(&Arc::as_ptr(a.node())).unwrap_or_else(|| zeros_like(a)))
        .collect())
}

/// Computes the cotangents of arguments and closed-over arrays by the function's own operations.
pub(super) fn reverse(
    f: Function<'_>,
    arguments: &[Array],
    captured: &[Array],
    cotangents: Vec<Array>,
) -> Result<Cotangents> {
    let tracing = Tracing::new();
    let mut traced: Vec<Array> = arguments.iter().map(|a| a.traced(&tracing)).collect();
    let outputs = f(&traced)?;
    traced.extend_from_slice(captured);
    Ok(pull_back(&traced, &outputs, cotangents)?.into_iter().map(Some).collect())
}

/// Adds the cotangents of a node's slices to the node's cotangent. All cotangents of slices must be
/// known.
fn join(
    slices: &mut NodeMap<Slices>,
    pending: &mut NodeMap<Array>,
    node: &Arc<Node>,
) -> Result<()> {
    let Some(slices) = slices.remove(&Arc::as_ptr(node)) else { return Ok(()) };
    let x = Array::from_node(node.clone());
    match slices.joined(&x)? {
        Some(cotangent) => add(pending, &x, cotangent),
        None => Ok(()),
    }
}

fn add(pending: &mut NodeMap<Array>, to: &Array, cotangent: Array) -> Result<()> {
    let id = Arc::as_ptr(to.node());
    let sum = match pending.remove(&id) {
        Some(before) => {
            // Add at the primal's home if it has one, otherwise at the place of the operation that
            // is reversed.
            let _place = to.node().home().map(|_| placement::enter(to.node().place));
            before.add(&cotangent)?
        }
        None => cotangent,
    };
    pending.insert(id, sum);
    Ok(())
}

/// Makes a lazy zero of an array's shape, in the dtype of the array's derivatives.
pub(super) fn zeros_like(a: &Array) -> Array {
    let zero = Scalar::from_i64(a.dtype().derivative(), 0);
    crate::ops::rules::shapeless::filled_like(a, zero)
}
