//! Vectorisation: makes a function of batches from a function of single examples.

use super::trace::{NodeMap, Trace, operands};
use crate::distributed::{Linked, Links};
use crate::error::{Error, Result, bail, ensure};
use crate::graph::{op::Transform, tracing::Tracing};
use crate::node::Node;
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::ops::{Vmap, rules::builders::move_axis};
use crate::shape::{self, Shape};
use crate::{array::Array, arrays::Arrays, placement};
use std::sync::Arc;

/// Vectorises a function: calls `f` once, on arguments without their mapped axes, and returns its
/// outputs for the whole batch.
///
/// `in_axes` gives the mapped axis of each input (`None`: the input is the same for all examples).
/// `out_axes` gives the position of the batch axis in each output (`None`: the output must not
/// depend on the batch). A single number applies to all.
///
/// ```
/// use ultramarine::{Array, Dtype, transforms::vmap};
/// let (rows, w) = (Array::ones(&[5, 3], Dtype::Float32)?, Array::ones(&[3], Dtype::Float32)?);
/// let dot = |x: &[Array]| Ok(vec![x[0].inner(&x[1])?]);
/// assert_eq!(vmap(dot, &[&rows, &w], [Some(0), None], 0)?[0].shape(), [5]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// Those of `f`; [`Error::Value`] if no input is mapped, the mapped sizes differ, the axes are
/// invalid, or an operation has no batching rule.
pub fn vmap(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    inputs: impl Arrays,
    in_axes: impl Into<MappedAxes>,
    out_axes: impl Into<MappedAxes>,
) -> Result<Vec<Array>> {
    let inputs = inputs.owned();
    let in_axes = in_axes.into().of(inputs.len());
    vmap_with(f, &inputs, &in_axes, |n| Ok(out_axes.into().of(n)))
}

/// Mapped axes of the inputs or outputs of [`vmap`]: one number for all, or a list with an axis or
/// `None` for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedAxes {
    /// The same axis for all.
    All(isize),
    /// An axis for each.
    Each(Vec<Option<isize>>),
}

impl MappedAxes {
    fn of(self, n: usize) -> Vec<Option<isize>> {
        match self {
            MappedAxes::All(axis) => vec![Some(axis); n],
            MappedAxes::Each(axes) => axes,
        }
    }
}

impl From<&[Option<isize>]> for MappedAxes {
    fn from(axes: &[Option<isize>]) -> MappedAxes {
        MappedAxes::Each(axes.to_vec())
    }
}

macro_rules! mapped_axes {
    ([$($n:tt)*] $t:ty, |$axes:ident| $mapped:expr) => {
        impl<$($n)*> From<$t> for MappedAxes {
            fn from($axes: $t) -> MappedAxes {
                $mapped
            }
        }
    };
}

mapped_axes!([] isize, |axis| MappedAxes::All(axis));
mapped_axes!([] i32, |axis| MappedAxes::All(axis as isize));
mapped_axes!([] usize, |axis| MappedAxes::All(axis.try_into().unwrap_or(isize::MAX)));
mapped_axes!([] Vec<Option<isize>>, |axes| MappedAxes::Each(axes));
mapped_axes!([] &Vec<Option<isize>>, |axes| MappedAxes::Each(axes.clone()));
mapped_axes!([const N: usize] [Option<isize>; N], |axes| MappedAxes::Each(axes.to_vec()));
mapped_axes!([const N: usize] &[Option<isize>; N], |axes| MappedAxes::Each(axes.to_vec()));

/// Computes like [`vmap`], for a function with its own error type. `out_axes` is called with the
/// number of outputs.
///
/// # Errors
/// As [`vmap`], and those of `out_axes`.
pub fn vmap_with<E: From<Error>>(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
    inputs: &[Array],
    in_axes: &[Option<isize>],
    out_axes: impl FnOnce(usize) -> Result<Vec<Option<isize>>, E>,
) -> Result<Vec<Array>, E> {
    let (axes, size) = mapped_axes(inputs, in_axes)?;
    let tracing = Tracing::new();
    let arguments: Vec<Array> =
        inputs.iter().zip(&axes).map(|(input, axis)| stand_in(&tracing, input, *axis)).collect();
    let links = Links::begin(&tracing, Transform::Vmap);
    let outputs = f(&arguments)?;
    let linked = links.end();
    let out_axes = out_axes(outputs.len())?;
    if out_axes.len() != outputs.len() {
        return Err(E::from(Error::value(
            "vmap",
            format!(
                "Got {} output axes for {} outputs. Pass an axis or None for each.",
                out_axes.len(),
                outputs.len()
            ),
        )));
    }
    let batched = batch(&arguments, inputs, &axes, size, &outputs, &linked)?;
    let placed = batched.into_iter().zip(out_axes).map(|((o, from), to)| place(o, from, to, size));
    Ok(placed.collect::<Result<_>>()?)
}

fn mapped_axes(inputs: &[Array], in_axes: &[Option<isize>]) -> Result<(Vec<Option<usize>>, usize)> {
    ensure!(
        in_axes.len() == inputs.len(),
        "vmap",
        "The number of in axes ({}) must match the number of inputs ({}). Pass an axis or None for each.",
        in_axes.len(),
        inputs.len()
    );
    let mut size = None;
    let mut axes = Vec::with_capacity(inputs.len());
    for (input, axis) in inputs.iter().zip(in_axes) {
        let Some(axis) = axis else {
            axes.push(None);
            continue;
        };
        let axis = shape::normalize_axis("vmap", *axis, input.ndim())?;
        let n = input.shape()[axis];
        if *size.get_or_insert(n) != n {
            bail!(
                "vmap",
                "Inconsistent axis sizes: {} and {n}. Give all mapped axes the same size.",
                size.unwrap_or_default()
            );
        }
        axes.push(Some(axis));
    }
    match size {
        Some(size) => Ok((axes, size)),
        None => Err(Error::value(
            "vmap",
            "At least one of in_axes must be non-None. Name an axis of an input.",
        )),
    }
}

/// Makes the placeholder of a mapped input: it has the input's shape without the mapped axis, and
/// no value.
pub(crate) fn stand_in(tracing: &Tracing, input: &Array, axis: Option<usize>) -> Array {
    let Some(axis) = axis else { return input.clone() };
    let mut shape = Shape::from_slice(input.shape());
    shape.remove(axis);
    input.stand_in(tracing, Transform::Vmap, shape)
}

/// Returns the outputs for the whole batch, each with its batch axis (`None`: it does not depend on
/// the batch). `arguments` are the placeholders of `inputs` in the outputs' graph. All operations
/// of groups in `linked` are called again, by their rules, because the tokens of the first call
/// belong to placeholders.
pub(crate) fn batch(
    arguments: &[Array],
    inputs: &[Array],
    axes: &[Option<usize>],
    size: usize,
    outputs: &[Array],
    linked: &Linked,
) -> Result<Vec<(Array, Option<usize>)>> {
    let mapped: Vec<Array> = arguments
        .iter()
        .zip(axes)
        .filter(|(_, axis)| axis.is_some())
        .map(|(a, _)| a.clone())
        .chain(linked.from.iter().cloned())
        .collect();
    let trace = Trace::new(&mapped, &[outputs, &linked.to].concat());
    let mut known: NodeMap<(Array, Option<usize>)> = NodeMap::default();
    for ((argument, input), axis) in arguments.iter().zip(inputs).zip(axes) {
        if axis.is_some() {
            known.insert(Arc::as_ptr(argument.node()), (input.clone(), *axis));
        }
    }
    // For operations with several results: all mapped results.
    let mut bundles: NodeMap<Vec<(Array, Option<usize>)>> = NodeMap::default();
    for node in &trace.tape {
        let Some(rules) = node.op.rules() else { continue };
        if let Some(output) = node.op.get::<OutputOf>() {
            let bundle = node.with_inputs(|inputs| Arc::as_ptr(&inputs[0]));
            if let Some(mapped) = bundles.get(&bundle).and_then(|all| all.get(output.index)) {
                known.insert(Arc::as_ptr(node), mapped.clone());
            }
            continue;
        }
        let operands = &operands(node)[..];
        let (inputs, axes): (Vec<Array>, Vec<Option<usize>>) = operands
            .iter()
            .map(|x| known.get(&Arc::as_ptr(x.node())).cloned().unwrap_or((x.clone(), None)))
            .unzip();
        let _place = placement::enter(node.place);
        let (inputs, axes) = (&inputs[..], &axes[..]);
        let multi = node.op.get::<MultiOutput>();
        let own_rule =
            |multi: &MultiOutput| multi.rules().communicates() || multi.rules().forwards_operands();
        if axes.iter().all(Option::is_none) && !multi.is_some_and(own_rule) {
            // The operands are not mapped, but they come from operations of groups that were called
            // again.
            let inputs = inputs.iter().map(|a| a.node().clone()).collect();
            let (shape, dtype) = (node.shape.clone(), node.dtype);
            let same = Node::new(node.op.for_new_node(), inputs, shape, dtype, node.place);
            match multi.filter(|multi| !multi.is_result()) {
                Some(_) => {
                    let outputs = same.op.get::<MultiOutput>().map(|multi| multi.outputs(&same));
                    let each = outputs.into_iter().flatten().map(|output| (output, None));
                    bundles.insert(Arc::as_ptr(node), each.collect());
                }
                None => drop(known.insert(Arc::as_ptr(node), (Array::from_node(same), None))),
            }
            continue;
        }
        let what = Vmap { inputs, axes, operands, size, shape: &node.shape, dtype: node.dtype };
        if let Some(multi) = multi {
            let found = multi.vmap(&what)?;
            match multi.is_result() {
                true => known.extend(found.into_iter().map(|mapped| (Arc::as_ptr(node), mapped))),
                false => drop(bundles.insert(Arc::as_ptr(node), found)),
            }
            continue;
        }
        let found = rules.vmap(&what)?;
        known.insert(Arc::as_ptr(node), found);
    }
    let found = |o: &Array| known.get(&Arc::as_ptr(o.node())).cloned();
    Ok(outputs.iter().map(|o| found(o).unwrap_or_else(|| (o.clone(), None))).collect())
}

/// Moves the batch axis to the requested position, or adds a batch axis.
pub(super) fn place(
    array: Array,
    from: Option<usize>,
    to: Option<isize>,
    size: usize,
) -> Result<Array> {
    let Some(to) = to else {
        return match from {
            None => Ok(array),
            Some(_) => Err(Error::value(
                "vmap",
                "out_axes is None for an output that depends on a mapped input. Name the axis of the batch in it.",
            )),
        };
    };
    let ndim = array.ndim() + from.is_none() as usize;
    let to = shape::normalize_axis("vmap", to, ndim)?;
    match from {
        Some(from) => move_axis(&array, from, to),
        None => {
            let mut shape = Shape::from_slice(array.shape());
            shape.insert(to, 1);
            let array = array.reshape(&shape)?;
            shape[to] = size;
            array.broadcast_to(&shape)
        }
    }
}
