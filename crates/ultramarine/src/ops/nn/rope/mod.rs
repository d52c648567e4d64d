//! Rotary position embeddings: [`crate::fast::rope`]. [`rotation`] has the operation, which takes cosines and sines as
//! operands.

pub(crate) mod rotation;
mod tables;

use self::tables::Angles;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops::nn::{compute_dtype, rope::rotation::Rotation};
use crate::shape::Show;

/// Options of [`rope`], rotary position embeddings (Su et al., "RoFormer", 2021).
#[derive(Clone, Copy, Debug)]
pub struct Rope {
    /// Number of elements of the last axis that rotate; the remaining elements are unchanged.
    pub dims: isize,
    /// Pairs consist of neighbours; otherwise elements of the first half are paired with those of the second.
    pub traditional: bool,
    /// Pair `i` of `n` rotates by `base^(-i / n)` for each position, unless frequencies are given.
    pub base: Option<f64>,
    /// Factor by which positions are multiplied.
    pub scale: f64,
}

fn wrong<T>(text: String) -> Result<T> {
    Err(Error::value("rope", text))
}

/// Checks the arguments; returns the number of pairs.
fn checked(a: &Array, how: Rope, offset: &Array, freqs: Option<&Array>) -> Result<usize> {
    a.computable("rope")?;
    if a.ndim() < 3 {
        let text = "Input must have at least 3 dimensions but got input with";
        return wrong(format!(
            "{text} {} dimensions. Reshape it to (batch, ..., length, size).",
            a.ndim()
        ));
    }
    if !a.dtype().is_floating() {
        return wrong(format!(
            "Input must be a floating type but got {}. Convert it with astype(float32).",
            a.dtype().name()
        ));
    }
    let (dims, last) = (how.dims, a.shape()[a.ndim() - 1]);
    if dims <= 0 {
        return wrong(format!(
            "dims must be positive but got {dims}. Pass a positive even number."
        ));
    }
    if dims % 2 != 0 {
        return wrong(format!("dims must be even but got {dims}. Pass a positive even number."));
    }
    if dims as usize > last {
        let text = "dims must not exceed the input's last dimension";
        return wrong(format!("{text} ({last}) but got {dims}. Pass a smaller even number."));
    }
    if offset.ndim() > 1 {
        let text = "offset must have at most one dimension but has shape";
        return wrong(format!(
            "{text} {}. Pass one number, or one for each batch.",
            Show(offset.shape())
        ));
    }
    if offset.size() != 1 && offset.size() != a.shape()[0] {
        let text = format!("offset must be a scalar or vector with {} elements", a.shape()[0]);
        return wrong(format!(
            "{text} but has shape {}. Pass one number, or one for each batch.",
            Show(offset.shape())
        ));
    }
    if !offset.dtype().is_integer() {
        return wrong(format!(
            "offset must be an integer but got type {}. Convert it with astype(int32).",
            offset.dtype().name()
        ));
    }
    let pairs = dims as usize / 2;
    match (how.base, freqs) {
        (Some(_), Some(_)) => {
            wrong("Only one of base or freqs can have a value. Leave one of them out.".into())
        }
        (None, None) => wrong("Neither base nor freqs has a value. Pass one of them.".into()),
        (None, Some(freqs)) if *freqs.shape() != [pairs] => wrong(format!(
            "freqs must be one dimensional with size {pairs} but got shape {}. Pass one frequency for each pair of elements.",
            Show(freqs.shape())
        )),
        _ => Ok(pairs),
    }
}

/// Rotary position embedding: rotates pairs of elements of the last axis by angles that grow with
/// the position, which is the index along the axis before it. `a` is `(batch, ..., positions, n)`;
/// float16 and bfloat16 are computed in float32.
///
/// `offset` is the position of the first element: one integer, or one for each element of the first
/// axis. `freqs`, of shape `(dims / 2)`, are the positions for an angle of 1, in place of
/// [`Rope::base`].
///
/// # Errors
/// [`Error::Value`] when `a` has fewer than three axes or no floating dtype; when `dims` is odd, not positive or larger
/// than the last axis; when the offset is not one or several integers; or unless exactly one of base and frequencies is
/// given.
pub fn rope(a: &Array, how: Rope, offset: &Array, freqs: Option<&Array>) -> Result<Array> {
    let pairs = checked(a, how, offset, freqs)?;
    let angles = Angles {
        how,
        pairs,
        positions: a.shape()[a.ndim() - 2],
        ndim: a.ndim(),
        offset,
        freqs,
        dtype: compute_dtype(a.dtype()),
    };
    let (cos, sin) = angles.tables()?;
    Rotation { pairs, traditional: how.traditional, inverse: false }.of(a, &cos, &sin)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs rotate by the position, the second pair by a tenth of it. The elements after the pairs are unchanged.
    #[test]
    fn pairs_rotate() -> Result<()> {
        let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0], &[1, 1, 5])?;
        for (traditional, pairs) in [(true, [(0, 1), (2, 3)]), (false, [(0, 2), (1, 3)])] {
            let how = Rope { dims: 4, traditional, base: Some(100.0), scale: 1.0 };
            let rotated = rope(&a, how, &Array::from_slice(&[3i32], &[1])?, None)?;
            let (x, y) = (a.to_vec::<f32>()?, rotated.to_vec::<f32>()?);
            for ((i, k), angle) in pairs.into_iter().zip([3.0f32, 0.3]) {
                let (sin, cos) = angle.sin_cos();
                assert!((y[i] - (x[i] * cos - x[k] * sin)).abs() < 1e-5, "{y:?}");
                assert!((y[k] - (x[i] * sin + x[k] * cos)).abs() < 1e-5, "{y:?}");
            }
            assert_eq!(y[4], 5.0);
        }
        Ok(())
    }
}
