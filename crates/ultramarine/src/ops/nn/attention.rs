//! Scaled dot-product attention: [`crate::fast::scaled_dot_product_attention`].

use super::compute_dtype;
use crate::array::Array;
use crate::error::{Error, Result, ensure};
use crate::ops::rules::builders::{bin, like, times, un};
use crate::ops::select::where_;
use crate::shape::{Show, broadcast_shapes};
use crate::{dtype::Dtype, placement::follow};
use ultramarine_abi::schema::{binary, unary};

const NAME: &str = "scaled_dot_product_attention";

/// The keys that a query of [`scaled_dot_product_attention`] sees.
#[derive(Clone, Copy, Debug, Default)]
pub enum AttentionMask<'a> {
    /// Every key.
    #[default]
    None,
    /// Keys up to the query's own position. The last query is at the last key's position (lower right alignment).
    Causal,
    /// An array of at most 4 axes that broadcasts to `(batch, heads, queries, keys)`. Bools are true for the keys that
    /// are seen. Numbers are added to the scores; negative infinity masks a key.
    Array(&'a Array),
}

/// The promoted dtype of the operands, once their shapes fit.
fn checked(
    q: &Array,
    k: &Array,
    v: &Array,
    mask: AttentionMask<'_>,
    sinks: Option<&Array>,
) -> Result<Dtype> {
    for a in [q, k, v] {
        a.computable(NAME)?;
        ensure!(a.ndim() == 4, NAME, "input with shape {} expected to be rank 4", Show(a.shape()));
    }
    let ([qs, ks], vs) = ([q.shape(), k.shape()], v.shape());
    for other in [ks, vs] {
        let text = "mismatching batch dimension for input with shape";
        ensure!(other[0] == qs[0], NAME, "{text} {}.", Show(other));
    }
    ensure!(
        qs[3] == ks[3],
        NAME,
        "query, keys expected to have matching last dimension; found query shape {} for keys shape {}.",
        Show(qs),
        Show(ks)
    );
    ensure!(
        ks[1] == vs[1],
        NAME,
        "keys, values expected to have matching n_kv_heads; found keys with n_heads {} for values with n_heads {}.",
        ks[1],
        vs[1]
    );
    ensure!(
        ks[2] == vs[2],
        NAME,
        "keys, values expected to have one length; found keys with shape {} for values with shape {}.",
        Show(ks),
        Show(vs)
    );
    ensure!(
        if ks[1] == 0 { qs[1] == 0 } else { qs[1] % ks[1] == 0 },
        NAME,
        "n_heads must be a multiple of n_kv_heads, found n_heads {} for n_kv_heads {}.",
        qs[1],
        ks[1]
    );
    let dtype = q.dtype().promote(k.dtype()).promote(v.dtype());
    if !dtype.is_floating() {
        return Err(Error::value(NAME, format!("Received unsupported type {}.", dtype.name())));
    }
    if let AttentionMask::Array(mask) = mask {
        mask.computable(NAME)?;
        ensure!(
            mask.ndim() <= 4,
            NAME,
            "the mask with shape {} expected to have at most rank 4.",
            Show(mask.shape())
        );
        ensure!(
            dtype.promote(mask.dtype()) == dtype,
            NAME,
            "Mask type must promote to output type {}.",
            dtype.name()
        );
        let scores = [qs[0], qs[1], qs[2], ks[2]];
        let fits = broadcast_shapes(mask.shape(), &scores)?[..] == scores;
        let (mask, scores) = (Show(mask.shape()), Show(&scores));
        ensure!(
            fits,
            NAME,
            "Cannot broadcast a mask of shape {mask} into the scores of shape {scores}."
        );
    }
    if let Some(sinks) = sinks {
        sinks.computable(NAME)?;
        ensure!(
            *sinks.shape() == [qs[1]],
            NAME,
            "Received invalid shape for sinks {}. Give one number for each of the {} query heads.",
            Show(sinks.shape()),
            qs[1]
        );
        ensure!(
            dtype.promote(sinks.dtype()) == dtype,
            NAME,
            "Type of sinks must promote to output type {}.",
            dtype.name()
        );
    }
    Ok(dtype)
}

/// `softmax(scale q k^T + mask) v`: `(batch, heads, queries, value size)`, in the promoted dtype of queries, keys and
/// values.
///
/// Queries are `(batch, heads, queries, size)`, keys `(batch, key heads, keys, size)`, values `(batch, key heads, keys,
/// value size)`. Each key head serves `heads / key heads` neighbouring query heads. `sinks` holds a score for each
/// query head that joins the softmax's sum and has no value (Xiao et al., Efficient streaming language models with
/// attention sinks, 2023).
///
/// Scores and softmax are computed in float32 for float16 and bfloat16. A query whose keys are all masked gets the mean of all
/// values (or zeros, with a finite sink), as masked scores are the lowest finite number.
///
/// # Errors
/// [`Error::Value`] for operands that are not of 4 axes or not floating, for sizes that do not fit, and for a mask or sinks
/// whose dtype does not promote to the result's.
///
/// # Examples
/// ```
/// use ultramarine::{Array, fast::{AttentionMask, scaled_dot_product_attention}};
///
/// let k = Array::from_slice(&[0.0f32, 0.0], &[1, 1, 2, 1])?;
/// let v = Array::from_slice(&[1.0f32, 3.0], &[1, 1, 2, 1])?;
/// let y = scaled_dot_product_attention(&k, &k, &v, 1.0, AttentionMask::Causal, None)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn scaled_dot_product_attention(
    q: &Array,
    k: &Array,
    v: &Array,
    scale: f64,
    mask: AttentionMask<'_>,
    sinks: Option<&Array>,
) -> Result<Array> {
    let dtype = checked(q, k, v, mask, sinks)?;
    let _placement = follow(&[q, k, v]);
    let ([b, n, t, d], [_, heads, s, e]) = (four(q), four(v));
    if b * n * t * s * e == 0 {
        return Array::zeros(&[b, n, t, e], dtype);
    }
    let inner = compute_dtype(dtype);
    let [q, k, v] = [q, k, v].map(|a| a.astype(dtype).astype(inner));

    // The query heads of a key head are more rows of one product.
    let rows = times(&q, &like(&q, scale))?.reshape(&[b, heads, n / heads * t, d])?;
    let scores = rows.matmul(&k.swapaxes(2, 3)?)?.reshape(&[b, n, t, s])?;
    let scores = masked(&scores, mask)?;
    let weights = match sinks {
        None => scores.softmax(Some(&[-1]), true)?,
        Some(sinks) => weights_beside(&scores, &sinks.astype(dtype).astype(inner))?,
    };
    let rows = weights.reshape(&[b, heads, n / heads * t, s])?;
    Ok(rows.matmul(&v)?.reshape(&[b, n, t, e])?.astype(dtype))
}

fn four(a: &Array) -> [usize; 4] {
    [0, 1, 2, 3].map(|i| a.shape()[i])
}

/// The scores, of which masked ones are the lowest finite number: rows without a key stay finite.
fn masked(scores: &Array, mask: AttentionMask<'_>) -> Result<Array> {
    let lowest = like(scores, crate::finfo(scores.dtype()).map_or(f64::MIN, |info| info.min));
    match mask {
        AttentionMask::None => Ok(scores.clone()),
        AttentionMask::Causal => {
            let (t, s) = (scores.shape()[2] as f64, scores.shape()[3] as f64);
            let queries = Array::arange(s - t, s, 1.0, Dtype::Int64)?.reshape(&[t as usize, 1])?;
            let keys = Array::arange(0.0, s, 1.0, Dtype::Int64)?;
            where_(&bin(binary::GREATER_EQUAL, &queries, &keys)?, scores, &lowest)
        }
        AttentionMask::Array(mask) if mask.dtype() == Dtype::Bool => where_(mask, scores, &lowest),
        AttentionMask::Array(mask) => {
            let sum = bin(binary::ADD, scores, &mask.astype(scores.dtype()))?;
            bin(binary::MAXIMUM, &sum, &lowest)
        }
    }
}

/// Softmax of the scores and a sink for each head, without the sink's own share.
fn weights_beside(scores: &Array, sinks: &Array) -> Result<Array> {
    let sinks = sinks.reshape(&[sinks.size(), 1, 1])?;
    // The shift has no influence on the result, and so no derivative.
    let top = bin(binary::MAXIMUM, &scores.max(Some(&[-1]), true)?, &sinks)?.stop_gradient();
    let exp = |a: &Array| Ok(un(unary::EXP, &bin(binary::SUBTRACT, a, &top)?));
    let weights: Array = exp(scores)?;
    let sum = bin(binary::ADD, &weights.sum(Some(&[-1]), true)?, &exp(&sinks)?)?;
    bin(binary::DIVIDE, &weights, &sum)
}
