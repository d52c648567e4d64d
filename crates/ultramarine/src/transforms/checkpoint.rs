//! Gradients that compute intermediate values again instead of keeping them.

use super::Tree;
use super::enclosed::{self, Enclosing, Function, Operands};
use super::{custom::Captured, jvp::forward, vjp::reverse};
use crate::error::{Error, Result};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{Cotangents, Opaque, Vmap};
use crate::{array::Array, shape::Shape, sync::lock};
use std::sync::{Arc, Mutex};

/// Returns a function that computes `f`. For a gradient, it computes `f` again instead of keeping
/// the intermediate values. It needs less memory, but more work.
///
/// Gradients are those of `f`, also with respect to arrays that `f` closes over. Each gradient
/// calls `f` once more, so `f` should depend on its argument alone. Checkpoints can be nested, and
/// `vmap` of a checkpoint is a checkpoint.
///
/// ```
/// use ultramarine::{Array, transforms::{checkpoint, grad}};
/// let block = checkpoint(|x: &Array| x.exp()?.sin()?.exp());
/// let x = Array::from_slice(&[0.1f32, 0.2], &[2])?;
/// let d = grad(|x: &Array| block(x)?.sum(None))(&x)?;
/// # let e = grad(|x: &Array| x.exp()?.sin()?.exp()?.sum(None))(&x)?;
/// # assert_eq!(d.to_vec::<f32>()?, e.to_vec::<f32>()?);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// The returned function returns the errors of `f`.
pub fn checkpoint<P, R>(
    f: impl Fn(&P) -> Result<R> + Send + Sync + 'static,
) -> impl Fn(&P) -> Result<R>
where
    P: Tree + Send + Sync + 'static,
    R: Tree + Send + Sync + 'static,
{
    let f = Arc::new(f);
    move |arguments: &P| {
        let changed = || {
            Error::runtime(
                NAME,
                "The structure of an argument changed during the call. Build the same structure from the same arrays.",
            )
        };
        let mut leaves = Vec::new();
        arguments.leaves(&mut leaves);
        let like = arguments.rebuild(&mut leaves.iter().cloned()).ok_or_else(changed)?;
        let returned: Arc<Mutex<Option<R>>> = Arc::default();
        let (f, result) = (f.clone(), returned.clone());
        let outputs = checkpointed(
            move |leaves: &[Array]| {
                let made = f(&like.rebuild(&mut leaves.iter().cloned()).ok_or_else(changed)?)?;
                let mut outputs = Vec::new();
                made.leaves(&mut outputs);
                *lock(&result) = Some(made);
                Ok(outputs)
            },
            &leaves,
        )?;
        let like = lock(&returned).take().ok_or_else(changed)?;
        like.rebuild(&mut outputs.into_iter()).ok_or_else(changed)
    }
}

/// Calls a function of arrays once, with the behaviour of [`checkpoint`].
///
/// # Errors
/// Those of `f`.
pub fn checkpointed(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    arguments: &[Array],
) -> Result<Vec<Array>> {
    call(Arc::new(f), arguments)
}

const NAME: &str = "checkpoint";

fn call(f: Function, arguments: &[Array]) -> Result<Vec<Array>> {
    enclosed::call(&f, Checkpoint(f.clone()), arguments)
}

struct Checkpoint(Function);

impl Opaque for Checkpoint {}

impl Enclosing for Checkpoint {
    fn name(&self) -> &'static str {
        NAME
    }

    fn vjp(&self, operands: Operands, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let cotangents = v.all_cotangents();
        // Make the arguments wait for the cotangents, so that nothing is computed again before it
        // is needed.
        let arguments: Vec<Array> =
            operands.arguments(v.primals).iter().map(|a| a.after(&cotangents)).collect();
        reverse(&*self.0, &arguments, operands.captured(v.primals), cotangents)
    }

    fn jvp(&self, operands: Operands, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let (arguments, captured) = (operands.arguments(j.primals), operands.captured(j.primals));
        forward(&*self.0, arguments, captured, operands.outer(j.tangents))
    }

    fn vmap(
        &self,
        operands: Operands,
        v: &Vmap<'_>,
        _: &[Shape],
    ) -> Result<Vec<(Array, Option<usize>)>> {
        let captured = Captured::new(operands, v);
        let (f, axes, size) = (self.0.clone(), operands.arguments(v.axes).to_vec(), v.size);
        let found: Arc<Mutex<Vec<Option<usize>>>> = Arc::default();
        let out_axes = found.clone();
        let of_batches = move |arguments: &[Array]| {
            let (outputs, axes) = captured.batched(&f, arguments, &axes, size)?.into_iter().unzip();
            *lock(&out_axes) = axes;
            Ok(outputs)
        };
        let outputs = call(Arc::new(of_batches), operands.arguments(v.inputs))?;
        let axes = std::mem::take(&mut *lock(&found));
        Ok(outputs.into_iter().zip(axes).collect())
    }
}
