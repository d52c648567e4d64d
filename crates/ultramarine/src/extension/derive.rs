//! Transforms of primitives, by their own rules or through `compose`. Results of rules are validated before use.

use super::handles::{Returned, lent, lent_some};
use super::{errors::answer, primitive::Applied};
use crate::distributed::Linked;
use crate::error::{Error, Result, bail};
use crate::graph::tracing::Tracing;
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{Cotangents, Vmap};
use crate::shape::{Shape, Show};
use crate::transforms::{Function, batch, stand_in};
use crate::{array::Array, dtype::Dtype};
use std::cell::Cell;
use std::sync::Arc;

/// Largest depth to which compositions may nest.
const MAX_DEPTH: usize = 64;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// While this guard lives, this thread is one composition deeper.
pub(super) struct Deeper(());

impl Deeper {
    /// Returns an error if compositions nest too deeply, which means that they lead back to themselves.
    pub fn new(name: &str) -> Result<Deeper> {
        let depth = DEPTH.get();
        if depth >= MAX_DEPTH {
            let text = format!(
                "compose calls itself: {MAX_DEPTH} calls are nested. Compose other operations."
            );
            return Err(Error::runtime(name, text));
        }
        DEPTH.set(depth + 1);
        Ok(Deeper(()))
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Applied {
    /// Computes the outputs by other operations; `None` if the primitive has no such rule. `results` are the outputs'
    /// types from `infer`.
    pub fn compose(
        &self,
        inputs: &[Array],
        results: &[(Shape, Dtype)],
    ) -> Result<Option<Vec<Array>>> {
        let primitive = &*self.primitive;
        let Some(rule) = primitive.rules.compose else { return Ok(None) };
        let name = primitive.name;
        let handles = lent(inputs);
        let mut returned = Returned::room(results.len());
        let mut error = std::ptr::null_mut();
        // SAFETY: the primitive's rule with its context; the inputs are alive, and there is room for each output.
        let found = unsafe {
            let n = handles.len() as u32;
            let code =
                rule(primitive.context(), handles.as_ptr(), n, returned.at(), &raw mut error);
            if !answer(name, "compose", code, error)? {
                return Ok(None);
            }
            returned.take(name, "compose", &[&handles])?
        };
        let fit = |(i, (array, (shape, dtype))): (usize, (Option<Array>, &(Shape, Dtype)))| {
            let array = there(name, "compose", array, i)?;
            if array.shape() == &shape[..] && array.dtype() == *dtype {
                return Ok(array);
            }
            bail!(
                name,
                "compose returned {} of shape {} for output {i}, which infer says is {dtype} of shape {}. Make both agree.",
                array.dtype(),
                Show(array.shape()),
                Show(shape)
            )
        };
        let each = found.into_iter().zip(results).enumerate();
        each.map(fit).collect::<Result<_>>().map(Some)
    }

    /// `compose` as a function, for transforms without a rule.
    fn function(&self, rule: &'static str) -> Function {
        let own = self.clone();
        Arc::new(move |inputs: &[Array]| {
            let results = own.primitive.infer(inputs)?;
            own.compose(inputs, &results)?.ok_or_else(|| own.missing(rule))
        })
    }

    #[cold]
    fn missing(&self, rule: &str) -> Error {
        let name = self.primitive.name;
        Error::value(
            rule,
            format!(
                "{name} has no {rule} rule, and no compose to derive it from. Write one of them."
            ),
        )
    }

    /// Called before a transform goes through `compose`.
    fn deeper(&self, rule: &str) -> Result<Deeper> {
        match self.primitive.rules.compose {
            Some(_) => Deeper::new(self.primitive.name),
            None => Err(self.missing(rule)),
        }
    }
}

/// An output that the rule must return.
fn there(name: &str, rule: &str, array: Option<Array>, i: usize) -> Result<Array> {
    array.ok_or_else(|| {
        Error::value(name, format!("{rule} returned NULL for output {i}. Return an array."))
    })
}

/// A derivative that a rule returned, checked and in the required dtype.
fn checked(
    name: &str,
    rule: &str,
    given: Option<Array>,
    of: &Array,
    (what, i): (&str, usize),
) -> Result<Option<Array>> {
    let Some(given) = given else { return Ok(None) };
    if given.shape() == of.shape() {
        return given.try_astype(of.dtype().derivative()).map(Some);
    }
    bail!(
        name,
        "{rule} returned an array of shape {} for {what} {i}, whose shape is {}. Return that shape.",
        Show(given.shape()),
        Show(of.shape())
    )
}

/// Cotangents of the inputs.
pub(super) fn vjp(own: &Applied, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
    let primitive = &*own.primitive;
    let name = primitive.name;
    if let Some(rule) = primitive.rules.vjp {
        let (inputs, outputs) = (lent(v.primals), lent(v.outputs));
        let cotangents = lent_some(v.cotangents);
        let wanted: Vec<u8> = v.wanted.iter().map(|w| *w as u8).collect();
        let mut returned = Returned::room(inputs.len());
        let mut error = std::ptr::null_mut();
        // SAFETY: the primitive's rule with its context; all arrays are alive, lists are as long as the rule expects.
        let found = unsafe {
            let code = rule(
                primitive.context(),
                inputs.as_ptr(),
                inputs.len() as u32,
                outputs.as_ptr(),
                cotangents.as_ptr(),
                wanted.as_ptr(),
                returned.at(),
                &raw mut error,
            );
            match answer(name, "vjp", code, error)? {
                true => Some(returned.take(name, "vjp", &[&inputs, &outputs, &cotangents])?),
                false => None,
            }
        };
        if let Some(found) = found {
            let each = found.into_iter().zip(v.primals).enumerate();
            return each.map(|(i, (c, x))| checked(name, "vjp", c, x, ("input", i))).collect();
        }
    }
    let _deeper = own.deeper("vjp")?;
    (v.pull_back)(&*own.function("vjp"), v.primals, v.all_cotangents())
}

/// Tangents of the outputs.
pub(super) fn jvp(own: &Applied, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
    let primitive = &*own.primitive;
    let name = primitive.name;
    if let Some(rule) = primitive.rules.jvp {
        let (inputs, tangents) = (lent(j.primals), lent_some(j.tangents));
        let mut returned = Returned::room(j.outputs.len());
        let mut error = std::ptr::null_mut();
        // SAFETY: the primitive's rule with its context; all arrays are alive, lists are as long as the rule expects.
        let found = unsafe {
            let code = rule(
                primitive.context(),
                inputs.as_ptr(),
                inputs.len() as u32,
                tangents.as_ptr(),
                returned.at(),
                &raw mut error,
            );
            match answer(name, "jvp", code, error)? {
                true => Some(returned.take(name, "jvp", &[&inputs, &tangents])?),
                false => None,
            }
        };
        if let Some(found) = found {
            let each = found.into_iter().zip(j.outputs).enumerate();
            return each.map(|(i, (t, o))| checked(name, "jvp", t, o, ("output", i))).collect();
        }
    }
    let _deeper = own.deeper("jvp")?;
    (j.push_forward)(&*own.function("jvp"), j.primals, j.tangents)
}

/// Outputs for a batch, each with its mapped axis.
pub(super) fn vmap(own: &Applied, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
    let primitive = &*own.primitive;
    let name = primitive.name;
    if let Some(rule) = primitive.rules.vmap {
        const UNSET: i32 = i32::MIN;
        // The results for a single example.
        let results = primitive.infer(v.operands)?;
        let inputs = lent(v.inputs);
        let axes: Vec<i32> = v.axes.iter().map(|a| a.map_or(-1, |a| a as i32)).collect();
        let mut returned = Returned::room(results.len());
        let mut output_axes = vec![UNSET; results.len()];
        let mut error = std::ptr::null_mut();
        // SAFETY: the primitive's rule with its context; all arrays are alive, lists are as long as the rule expects.
        let found = unsafe {
            let code = rule(
                primitive.context(),
                inputs.as_ptr(),
                inputs.len() as u32,
                axes.as_ptr(),
                v.size as i64,
                returned.at(),
                output_axes.as_mut_ptr(),
                &raw mut error,
            );
            match answer(name, "vmap", code, error)? {
                true => Some(returned.take(name, "vmap", &[&inputs])?),
                false => None,
            }
        };
        if let Some(found) = found {
            let each = found.into_iter().zip(output_axes).zip(&results).enumerate();
            let checked = |(i, ((array, axis), wanted))| {
                mapped(name, v.size, i, there(name, "vmap", array, i)?, axis, wanted)
            };
            return each.map(checked).collect();
        }
    }
    let _deeper = own.deeper("vmap")?;
    let tracing = Tracing::new();
    let seen: Vec<Array> =
        v.inputs.iter().zip(v.axes).map(|(a, axis)| stand_in(&tracing, a, *axis)).collect();
    let outputs = own.function("vmap")(&seen)?;
    batch(&seen, v.inputs, v.axes, v.size, &outputs, &Linked::default())
}

/// Output `i` of a batch as the rule returned it. `wanted` is its type for a single example.
fn mapped(
    name: &str,
    size: usize,
    i: usize,
    array: Array,
    axis: i32,
    (wanted, dtype): &(Shape, Dtype),
) -> Result<(Array, Option<usize>)> {
    let axis = match axis {
        -1 => None,
        axis => match usize::try_from(axis).ok().filter(|a| *a < array.ndim()) {
            Some(axis) => Some(axis),
            None => {
                bail!(
                    name,
                    "vmap returned an array of shape {} for output {i}, which has no axis {axis}. Return an axis of the array.",
                    Show(array.shape())
                );
            }
        },
    };
    let mut shape = Shape::from_slice(array.shape());
    let batch = axis.map_or(size, |a| shape.remove(a));
    if shape == *wanted && batch == size && array.dtype() == *dtype {
        return Ok((array, axis));
    }
    let axis = axis.map_or("none".to_owned(), |a| a.to_string());
    bail!(
        name,
        "vmap returned {} of shape {} with mapped axis {axis} for output {i}, which is {dtype} of shape {} in a batch \
         of {size}. Return that dtype and shape, with the batch along the axis.",
        array.dtype(),
        Show(array.shape()),
        Show(wanted)
    )
}
