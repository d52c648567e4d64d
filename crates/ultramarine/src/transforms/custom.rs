//! Functions with custom rules for transforms.

use super::enclosed::{self, Enclosing, Function, Operands};
use super::jvp::forward;
use super::vjp::reverse;
use super::vmap::{batch, stand_in};
use crate::array::Array;
use crate::arrays::Arrays;
use crate::distributed::Links;
use crate::error::{Error, Result, bail};
use crate::graph::{op::Transform, tracing::Tracing};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{Cotangents, Opaque, Vmap};
use crate::shape::{self, Shape, Show};
use std::fmt;
use std::sync::Arc;

/// Gets the arguments, the cotangents of the outputs, and the outputs.
type Reverse = dyn Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Option<Array>>> + Send + Sync;
/// Gets the arguments and their tangents.
type Forward = dyn Fn(&[Array], &[Option<Array>]) -> Result<Vec<Option<Array>>> + Send + Sync;
/// Gets the arguments and their mapped axes.
type Batching =
    dyn Fn(&[Array], &[Option<usize>]) -> Result<Vec<(Array, Option<isize>)>> + Send + Sync;

/// A function of arrays with its own reverse, forward and batching rules. Each rule is optional:
/// without it, the transform uses the operations of the function.
///
/// Rules are functions of arrays too, so transforms can be applied to them. As in MLX, a function
/// with a rule must be pure: arrays that it closes over are constants to derivatives. (Without a
/// batching rule, `vmap` does map over them.) Errors of functions and rules are returned unchanged;
/// [`Error::other`] wraps a caller's own error.
///
/// ```
/// use ultramarine::{Array, transforms::{CustomFunction, grad}};
/// // Rounds, and lets the derivative through.
/// let round = CustomFunction::new(|x| Ok(vec![x[0].round(0)?]))
///     .with_vjp(|_, cotangents, _| Ok(vec![Some(cotangents[0].clone())]));
/// let f = |x: &Array| round.call(std::slice::from_ref(x))?[0].square();
/// let d = grad(f)(&Array::scalar(2.6f32))?;
/// assert_eq!(d.item::<f32>()?, 6.0);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone)]
pub struct CustomFunction {
    f: Function,
    vjp: Option<Arc<Reverse>>,
    jvp: Option<Arc<Forward>>,
    vmap: Option<Arc<Batching>>,
}

impl fmt::Debug for CustomFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomFunction")
            .field("vjp", &self.vjp.is_some())
            .field("jvp", &self.jvp.is_some())
            .field("vmap", &self.vmap.is_some())
            .finish_non_exhaustive()
    }
}

impl CustomFunction {
    /// Makes a function without custom rules. Transforms use its operations until rules are set.
    pub fn new(f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static) -> Self {
        CustomFunction { f: Arc::new(f), vjp: None, jvp: None, vmap: None }
    }

    /// Sets the reverse rule. It gets the arguments, a cotangent for each output (with the output's
    /// shape), and the outputs. It returns a cotangent for each argument (`None`: zero).
    pub fn with_vjp(
        mut self,
        rule: impl Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Option<Array>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.vjp = Some(Arc::new(rule));
        self
    }

    /// Sets the forward rule. It gets the arguments and their tangents (`None`: zero). It returns a
    /// tangent for each output.
    pub fn with_jvp(
        mut self,
        rule: impl Fn(&[Array], &[Option<Array>]) -> Result<Vec<Option<Array>>> + Send + Sync + 'static,
    ) -> Self {
        self.jvp = Some(Arc::new(rule));
        self
    }

    /// Sets the batching rule. It gets the arguments and the mapped axis of each (`None`: not
    /// mapped). It returns each output with its mapped axis.
    pub fn with_vmap(
        mut self,
        rule: impl Fn(&[Array], &[Option<usize>]) -> Result<Vec<(Array, Option<isize>)>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.vmap = Some(Arc::new(rule));
        self
    }

    /// Calls the function.
    ///
    /// # Errors
    /// Those of the function. Transforms also return the errors of a rule, and [`Error::Value`] if
    /// a rule returns the wrong number of arrays, or arrays of the wrong shape or dtype.
    pub fn call(&self, arguments: impl Arrays) -> Result<Vec<Array>> {
        let arguments = &arguments.owned()[..];
        if self.vjp.is_none() && self.jvp.is_none() && self.vmap.is_none() {
            return (self.f)(arguments);
        }
        enclosed::call(&self.f, self.clone(), arguments)
    }
}

const NAME: &str = "custom_function";

/// Checks that a rule returned `wanted` arrays (or `None`s).
fn count(rule: &str, given: usize, wanted: usize, of: &str) -> Result<()> {
    if given == wanted {
        return Ok(());
    }
    bail!(NAME, "The {rule} rule returned {given} arrays for {wanted} {of}. Return one for each.")
}

/// Converts a derivative that a rule returned to the required dtype.
fn checked(
    rule: &str,
    given: Option<Array>,
    of: &Array,
    what: (&str, usize),
) -> Result<Option<Array>> {
    let Some(given) = given else { return Ok(None) };
    if given.shape() == of.shape() {
        return Ok(Some(given.astype(of.dtype().derivative())));
    }
    let (what, i) = what;
    Err(Error::value(
        NAME,
        format!(
            "The {rule} rule returned an array of shape {} for {what} {i}, whose shape is {}. Return that shape.",
            Show(given.shape()),
            Show(of.shape())
        ),
    ))
}

impl Opaque for CustomFunction {}

impl Enclosing for CustomFunction {
    fn name(&self) -> &'static str {
        NAME
    }

    fn has_own_derivatives(&self) -> bool {
        self.vjp.is_some() || self.jvp.is_some()
    }

    fn vjp(&self, operands: Operands, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let arguments = operands.arguments(v.primals);
        if !operands.arguments(v.wanted).contains(&true) {
            return Ok(Cotangents::new());
        }
        let cotangents = v.all_cotangents();
        let Some(rule) = &self.vjp else {
            return reverse(&*self.f, arguments, &[], cotangents);
        };
        let found = rule(arguments, &cotangents, v.outputs)?;
        count("vjp", found.len(), arguments.len(), "arguments")?;
        let each = found.into_iter().zip(arguments).enumerate();
        each.map(|(i, (c, a))| checked("vjp", c, a, ("argument", i))).collect()
    }

    fn jvp(&self, operands: Operands, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let arguments = operands.arguments(j.primals);
        let tangents = operands.arguments(j.tangents);
        if tangents.iter().all(Option::is_none) {
            return Ok(vec![None; j.outputs.len()]);
        }
        let Some(rule) = &self.jvp else { return forward(&*self.f, arguments, &[], tangents) };
        let found = rule(arguments, tangents)?;
        count("jvp", found.len(), j.outputs.len(), "outputs")?;
        let each = found.into_iter().zip(j.outputs).enumerate();
        each.map(|(i, (t, o))| checked("jvp", t, o, ("output", i))).collect()
    }

    fn vmap(
        &self,
        operands: Operands,
        v: &Vmap<'_>,
        shapes: &[Shape],
    ) -> Result<Vec<(Array, Option<usize>)>> {
        let Some(rule) = &self.vmap else {
            let captured = Captured::new(operands, v);
            let (arguments, axes) = (operands.arguments(v.inputs), operands.arguments(v.axes));
            return captured.batched(&self.f, arguments, axes, v.size);
        };
        if operands.captured(v.axes).iter().any(Option::is_some) {
            bail!(
                NAME,
                "The function closes over an array that is mapped over, which its vmap rule \
                 does not receive. Make it an argument."
            );
        }
        let found = rule(operands.arguments(v.inputs), operands.arguments(v.axes))?;
        count("vmap", found.len(), shapes.len(), "outputs")?;
        let fit = |(i, ((array, axis), wanted)): (usize, ((Array, Option<isize>), &Shape))| {
            let axis = axis.map(|a| shape::normalize_axis("vmap", a, array.ndim())).transpose()?;
            let mut own = Shape::from_slice(array.shape());
            let size = axis.map_or(v.size, |a| own.remove(a));
            if own == *wanted && size == v.size {
                return Ok((array, axis));
            }
            bail!(
                NAME,
                "The vmap rule returned an array of shape {} with mapped axis {axis:?} for output {i}, whose \
                 shape is {} in a batch of {}. Return the batch along the named axis.",
                Show(array.shape()),
                Show(wanted),
                v.size
            )
        };
        found.into_iter().zip(shapes).enumerate().map(fit).collect()
    }
}

/// Mapped arrays that a function closes over: as the function sees them, and with the mapped axis.
pub(super) struct Captured {
    seen: Vec<Array>,
    mapped: Vec<Array>,
    axes: Vec<Option<usize>>,
}

impl Captured {
    pub fn new(operands: Operands, v: &Vmap<'_>) -> Captured {
        let mut all = Captured { seen: Vec::new(), mapped: Vec::new(), axes: Vec::new() };
        let mapped = operands.captured(v.inputs).iter().zip(operands.captured(v.axes));
        for (seen, (mapped, axis)) in operands.captured(v.operands).iter().zip(mapped) {
            if axis.is_some() {
                all.seen.push(seen.clone());
                all.mapped.push(mapped.clone());
                all.axes.push(*axis);
            }
        }
        all
    }

    /// Computes the outputs for a batch by the function's own operations.
    pub fn batched(
        &self,
        f: &Function,
        arguments: &[Array],
        axes: &[Option<usize>],
        size: usize,
    ) -> Result<Vec<(Array, Option<usize>)>> {
        let tracing = Tracing::new();
        let mut seen: Vec<Array> =
            arguments.iter().zip(axes).map(|(a, axis)| stand_in(&tracing, a, *axis)).collect();
        let links = Links::begin(&tracing, Transform::Vmap);
        let outputs = f(&seen)?;
        let linked = links.end();
        seen.extend_from_slice(&self.seen);
        let mapped = [arguments, &self.mapped].concat();
        let axes = [axes, &self.axes].concat();
        batch(&seen, &mapped, &axes, size, &outputs, &linked)
    }
}
