//! Gradients with respect to the parameters of a model, and layers that gradients compute again.

use crate::layers::base::{LeafMut, Module, Visitor, VisitorMut};
use crate::{Gradients, Layer};
use ultramarine::shape::Show;
use ultramarine::{Array, Error, Result, random, transforms};

/// Computes a function of a model, whose result must be a scalar, and its gradients with respect to the parameters that
/// are not frozen.
///
/// The function can return other results through variables that it captures. State that layers keep from a call, such
/// as the running statistics of [`BatchNorm`](crate::BatchNorm), is in the model afterwards.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Layer, Linear, losses::{Reduction, mse_loss}, value_and_grad};
/// let mut model = Linear::new(3, 1)?;
/// let (x, y) = (Array::scalar(1.0f32).broadcast_to(&[4, 3])?, Array::scalar(0.0f32).broadcast_to(&[4, 1])?);
/// let mut predicted = None;
/// let (loss, gradients) = value_and_grad(&mut model, |model| {
///     let p = model.forward(&x)?;
///     predicted = Some(p.clone());
///     mse_loss(&p, &y, Reduction::Mean)
/// })?;
/// assert_eq!(loss.ndim(), 0);
/// assert_eq!(gradients["weight"].shape(), [1, 3]);
/// assert_eq!(predicted.map(|p| p.shape().to_vec()), Some(vec![4, 1]));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// The function's error; [`Error::Value`] if its result is not a scalar, if no parameter is trainable, or if a
/// trainable parameter does not have a floating dtype.
pub fn value_and_grad<M: Module + ?Sized>(
    model: &mut M,
    f: impl FnOnce(&M) -> Result<Array>,
) -> Result<(Array, Gradients)> {
    const NAME: &str = "value_and_grad";
    let (mut names, mut arrays, mut wrong) = (Vec::new(), Vec::new(), None);
    model.visit(&mut Visitor::new(&mut |name, leaf| {
        if let Some(array) = leaf.trainable() {
            if !array.dtype().is_inexact() {
                wrong = Some(format!(
                    "The parameter {name} is {}, which has no gradient. Freeze it.",
                    array.dtype()
                ));
            }
            names.push(name.to_owned());
            arrays.push(array);
        }
    }));
    if let Some(text) = wrong {
        return Err(Error::value(NAME, text));
    }
    if names.is_empty() {
        return Err(Error::value(NAME, "The model has no parameters to train. Unfreeze some."));
    }
    let run = |traced: &[Array]| {
        replace(model, traced);
        let result = f(model);
        replace(model, &arrays);
        Ok(vec![result?])
    };
    let (mut outputs, gradients) = transforms::vjp_with(run, &arrays, |outputs| {
        if outputs[0].ndim() != 0 {
            let text = "The function must return a scalar, not an array of shape";
            let shape = Show(outputs[0].shape());
            return Err(Error::value(NAME, format!("{text} {shape}. Take its mean or sum.")));
        }
        Ok(vec![outputs[0].ones_like()])
    })?;
    Ok((outputs.remove(0), names.into_iter().zip(gradients).collect()))
}

/// Replaces each parameter that is not frozen by the next one of `arrays`.
fn replace<M: Module + ?Sized>(model: &mut M, arrays: &[Array]) {
    let mut arrays = arrays.iter();
    model.visit_mut(&mut VisitorMut::new(&mut |_, leaf| {
        if let LeafMut::Param(param) = leaf
            && !param.is_frozen()
            && let Some(array) = arrays.next()
        {
            param.set(array.clone());
        }
    }));
}

/// Computes a layer so that its gradient computes the layer again, instead of keeping intermediate results. This saves
/// memory and costs time.
///
/// See [`checkpointed`](ultramarine::transforms::checkpointed). The second computation draws the same random numbers,
/// so that dropout drops the same elements.
///
/// # Errors
/// The layer's error.
pub fn checkpoint<L: Layer + Clone + Send + Sync + 'static>(layer: &L, x: &Array) -> Result<Array> {
    let layer = layer.clone();
    checkpointed(move |x| layer.forward(&x[0]), std::slice::from_ref(x))
}

/// As [`checkpoint`], for a function of any arrays.
pub(crate) fn checkpointed(
    f: impl Fn(&[Array]) -> Result<Array> + Send + Sync + 'static,
    arguments: &[Array],
) -> Result<Array> {
    // Use a separate key for the whole call, so that this thread's state advances as it would without checkpointing.
    let key = random::bits(&[2], 4, None)?;
    let call = move |x: &[Array]| {
        let _drawn_of_key = random::StateScope::new(&key)?;
        Ok(vec![f(x)?])
    };
    let mut outputs = transforms::checkpointed(call, arguments)?;
    outputs
        .pop()
        .ok_or_else(|| Error::runtime("checkpoint", "The function returned no array. Return one."))
}
