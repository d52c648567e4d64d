//! Forward mode.

use super::trace::{NodeMap, Trace, operands};
use super::vjp::zeros_like;
use crate::error::{Error, Result, ensure};
use crate::ops::rules::multi_output::{Function, MultiOutput, MultiOutputJvp, OutputOf};
use crate::{
    array::Array, arrays::Arrays, graph::tracing::Tracing, ops::Jvp, placement, shape::Show,
};
use std::sync::Arc;

/// Returns the outputs of `f` at `primals`, and the Jacobian-vector products: the derivative of
/// each output in the direction of `tangents`. There is one tangent for each primal, with the
/// primal's shape.
///
/// # Errors
/// Those of `f`; [`Error::Value`] if the tangents do not match the primals, or an operation has no
/// forward rule.
///
/// ```
/// use ultramarine::{Array, transforms::jvp};
/// let (x, one) = (Array::scalar(3.0f32), Array::scalar(1.0f32));
/// let (_, slopes) = jvp(|x| Ok(vec![x[0].square()?]), &[&x], &[&one])?;
/// assert_eq!(slopes[0].item::<f32>()?, 6.0);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn jvp(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: impl Arrays,
    tangents: impl Arrays,
) -> Result<(Vec<Array>, Vec<Array>)> {
    jvp_with(f, &primals.owned(), &tangents.owned())
}

/// Computes like [`jvp`], for a function with its own error type.
///
/// # Errors
/// As [`jvp`].
pub fn jvp_with<E: From<Error>>(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
    primals: &[Array],
    tangents: &[Array],
) -> Result<(Vec<Array>, Vec<Array>), E> {
    ensure!(
        primals.len() == tangents.len(),
        "jvp",
        "Number of inputs ({}) does not match number of tangents ({}). Pass a tangent for each input.",
        primals.len(),
        tangents.len()
    );
    for (p, t) in primals.iter().zip(tangents) {
        let (primal, tangent) = (Show(p.shape()), Show(t.shape()));
        let fits = p.shape() == t.shape();
        ensure!(
            fits,
            "jvp",
            "Input of shape {primal} and tangent of shape {tangent} do not match. Give both the same shape."
        );
    }
    let tracing = Tracing::new();
    let arguments: Vec<Array> = primals.iter().map(|p| p.traced(&tracing)).collect();
    let outputs = f(&arguments)?;
    let products = push_forward(&arguments, &outputs, tangents)?;
    Ok((outputs, products))
}

/// Computes the Jacobian-vector products for all outputs from the arguments' tangents.
pub(super) fn push_forward(
    arguments: &[Array],
    outputs: &[Array],
    tangents: &[Array],
) -> Result<Vec<Array>> {
    let trace = Trace::new(arguments, outputs);
    let mut known: NodeMap<Array> = NodeMap::default();
    for (argument, tangent) in arguments.iter().zip(tangents) {
        known.insert(Arc::as_ptr(argument.node()), tangent.astype(argument.dtype().derivative()));
    }
    // For operations with several results: the tangents of all results.
    let mut bundles: NodeMap<Vec<Option<Array>>> = NodeMap::default();
    for node in &trace.tape {
        let Some(rules) = node.op.rules() else { continue };
        let primals = operands(node);
        if let Some(output) = node.op.get::<OutputOf>() {
            let all = bundles.get(&Arc::as_ptr(primals[0].node()));
            if let Some(tangent) = all.and_then(|a| a.get(output.index).cloned().flatten()) {
                known.insert(Arc::as_ptr(node), tangent);
            }
            continue;
        }
        let tangents: Vec<Option<Array>> =
            primals.iter().map(|p| known.get(&Arc::as_ptr(p.node())).cloned()).collect();
        if tangents.iter().all(Option::is_none) {
            continue;
        }
        let _place = placement::enter(node.place);
        if let Some(multi) = node.op.get::<MultiOutput>() {
            let found = multi.jvp(&MultiOutputJvp {
                primals: &primals,
                outputs: &multi.outputs(node),
                tangents: &tangents,
                push_forward: |f, x, t| forward(f, x, &[], t),
            })?;
            match multi.is_result() {
                true => found.into_iter().flatten().for_each(|tangent| {
                    known.insert(Arc::as_ptr(node), tangent);
                }),
                false => drop(bundles.insert(Arc::as_ptr(node), found)),
            }
            continue;
        }
        let output = Array::from_node(node.clone());
        let found = rules.jvp(&Jvp { primals: &primals, output: &output, tangents: &tangents })?;
        if let Some(tangent) = found {
            known.insert(Arc::as_ptr(node), tangent);
        }
    }
    Ok(outputs
        .iter()
        .map(|o| known.get(&Arc::as_ptr(o.node())).cloned().unwrap_or_else(|| zeros_like(o)))
        .collect())
}

/// Computes the tangents of the outputs by the function's own operations.
pub(super) fn forward(
    f: Function<'_>,
    arguments: &[Array],
    captured: &[Array],
    tangents: &[Option<Array>],
) -> Result<Vec<Option<Array>>> {
    let tracing = Tracing::new();
    let mut traced: Vec<Array> = arguments.iter().map(|a| a.traced(&tracing)).collect();
    let outputs = f(&traced)?;
    traced.extend_from_slice(captured);
    let (traced, tangents): (Vec<Array>, Vec<Array>) =
        traced.into_iter().zip(tangents).filter_map(|(a, t)| Some((a, t.clone()?))).unzip();
    Ok(push_forward(&traced, &outputs, &tangents)?.into_iter().map(Some).collect())
}
