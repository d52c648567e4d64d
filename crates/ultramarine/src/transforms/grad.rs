//! Gradients of scalar functions.

use super::{Tree, vjp::vjp_with};
use crate::error::{Error, Result, bail, ensure};
use crate::shape::{Shape, Show};
use crate::{array::Array, scalar::Scalar};

/// Returns a function that returns the value of `f` and its gradient with respect to every array of
/// the argument. The gradient has the argument's structure ([`Tree`]). `f` must return a scalar.
///
/// ```
/// use ultramarine::{Array, transforms::value_and_grad};
/// let f = |(x, y): &(Array, Array)| x * x * y;
/// let at = (Array::scalar(3.0f32), Array::scalar(2.0f32));
/// let (value, (dx, dy)) = value_and_grad(f)(&at)?;
/// assert_eq!((value.item::<f32>()?, dx.item::<f32>()?, dy.item::<f32>()?), (18.0, 12.0, 9.0));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// The returned function returns the errors of `f`, and [`Error::Value`] if the result is not a
/// scalar, or the argument has no arrays, or arrays that are not floating-point.
pub fn value_and_grad<P: Tree>(
    f: impl Fn(&P) -> Result<Array>,
) -> impl Fn(&P) -> Result<(Array, P)> {
    move |arguments: &P| {
        let mut leaves = Vec::new();
        arguments.leaves(&mut leaves);
        ensure!(
            !leaves.is_empty(),
            "grad",
            "There is no array to differentiate with respect to. Pass at least one."
        );
        if let Some(bad) = leaves.iter().find(|l| !l.dtype().is_inexact()) {
            bail!(
                "grad",
                "Only floating-point and complex arrays have gradients, but an argument is {}. Convert it with astype(float32).",
                bad.dtype()
            );
        }
        let run = |traced: &[Array]| -> Result<Vec<Array>> {
            let tree = rebuild(arguments, traced.to_vec())?;
            Ok(vec![f(&tree)?])
        };
        let (outputs, gradients) =
            vjp_with(run, &leaves, |outputs| one(&outputs[0]).map(|c| vec![c]))?;
        let tree = rebuild(arguments, gradients)?;
        Ok((outputs[0].clone(), tree))
    }
}

/// Returns a function that returns the gradient of `f`, in the structure of the argument. `f` must
/// return a scalar; see [`value_and_grad`].
///
/// ```
/// use ultramarine::{Array, transforms::grad};
/// let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
/// let slope = grad(|x: &Array| x.square()?.sum(..))(&x)?;
/// assert_eq!(slope.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// As [`value_and_grad`].
pub fn grad<P: Tree>(f: impl Fn(&P) -> Result<Array>) -> impl Fn(&P) -> Result<P> {
    let both = value_and_grad(f);
    move |arguments: &P| Ok(both(arguments)?.1)
}

fn rebuild<P: Tree>(like: &P, leaves: Vec<Array>) -> Result<P> {
    like.rebuild(&mut leaves.into_iter())
        .ok_or_else(|| Error::runtime("grad", "The structure of an argument changed during the call. Build the same structure from the same arrays."))
}

/// Makes the cotangent of a scalar result, which is 1.
fn one(output: &Array) -> Result<Array> {
    ensure!(
        output.size() == 1 && output.ndim() == 0,
        "grad",
        "The function must return a scalar, not an array of shape {}. Take its sum or mean.",
        Show(output.shape())
    );
    Ok(crate::ops::create::fill::filled(Shape::new(), Scalar::from_i64(output.dtype(), 1)))
}
