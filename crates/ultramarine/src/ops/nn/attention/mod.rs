//! Scaled dot-product attention: [`crate::fast::scaled_dot_product_attention`].
//!
//! `rules` has the operation and its gradient. `compose` builds both from simpler operations for devices without a
//! kernel. `cache` finds the cache that contains the keys and values.

mod cache;
mod compose;
pub(crate) mod rules;

pub(crate) use cache::repeats;

use crate::array::Array;
use crate::error::{Error, Result, ensure};
use crate::shape::{Show, broadcast_shapes};
use crate::{devices, dtype::Dtype, placement::follow};
use cache::Cached;
use rules::Attention;
use smallvec::{SmallVec, smallvec};

const NAME: &str = "scaled_dot_product_attention";

/// The keys to which a query of [`scaled_dot_product_attention`] attends.
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

/// Checks the shapes of the operands; returns their promoted dtype.
fn checked(
    q: &Array,
    k: &Array,
    v: &Array,
    mask: AttentionMask<'_>,
    sinks: Option<&Array>,
) -> Result<Dtype> {
    for a in [q, k, v] {
        a.computable(NAME)?;
        ensure!(
            a.ndim() == 4,
            NAME,
            "input with shape {} expected to be rank 4. Reshape it to (batch, heads, length, size).",
            Show(a.shape())
        );
    }
    let ([qs, ks], vs) = ([q.shape(), k.shape()], v.shape());
    for other in [ks, vs] {
        let text = "mismatching batch dimension for input with shape";
        ensure!(
            other[0] == qs[0],
            NAME,
            "{text} {} and queries with shape {}. Give all of them the same batch size.",
            Show(other),
            Show(qs)
        );
    }
    ensure!(
        qs[3] == ks[3],
        NAME,
        "query, keys expected to have matching last dimension; found query shape {} for keys shape {}. Project both to the same size.",
        Show(qs),
        Show(ks)
    );
    ensure!(
        ks[1] == vs[1],
        NAME,
        "keys, values expected to have matching n_kv_heads; found keys with n_heads {} for values with n_heads {}. Give both the same number of heads.",
        ks[1],
        vs[1]
    );
    ensure!(
        ks[2] == vs[2],
        NAME,
        "keys, values expected to have the same length; found keys with shape {} for values with shape {}. Crop or pad one of them.",
        Show(ks),
        Show(vs)
    );
    ensure!(
        if ks[1] == 0 { qs[1] == 0 } else { qs[1] % ks[1] == 0 },
        NAME,
        "n_heads must be a multiple of n_kv_heads, found n_heads {} for n_kv_heads {}. Change one of the two.",
        qs[1],
        ks[1]
    );
    let dtype = q.dtype().promote(k.dtype()).promote(v.dtype());
    if !dtype.is_floating() {
        return Err(Error::value(
            NAME,
            format!(
                "Received unsupported type {}. Convert queries, keys and values with astype(float32).",
                dtype.name()
            ),
        ));
    }
    if let AttentionMask::Array(mask) = mask {
        mask.computable(NAME)?;
        ensure!(
            mask.ndim() <= 4,
            NAME,
            "the mask has shape {} but may have at most 4 dimensions. Reshape it to (batch, heads, queries, keys).",
            Show(mask.shape())
        );
        ensure!(
            dtype.promote(mask.dtype()) == dtype,
            NAME,
            "Mask type must promote to output type {}, but is {}. Convert the mask with astype, or pass bools.",
            dtype.name(),
            mask.dtype().name()
        );
        let scores = [qs[0], qs[1], qs[2], ks[2]];
        let fits = broadcast_shapes(mask.shape(), &scores)?[..] == scores;
        let (mask, scores) = (Show(mask.shape()), Show(&scores));
        ensure!(
            fits,
            NAME,
            "Cannot broadcast a mask of shape {mask} into the scores of shape {scores}. Pass a mask that broadcasts to (batch, heads, queries, keys)."
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
            "Type of sinks must promote to output type {}, but is {}. Convert sinks with astype.",
            dtype.name(),
            sinks.dtype().name()
        );
    }
    Ok(dtype)
}

/// Returns `softmax(scale * q k^T + mask) v`: `(batch, heads, queries, value size)`, in the
/// promoted dtype of queries, keys and values.
///
/// * `q`: queries, `(batch, heads, queries, size)`.
/// * `k`, `v`: keys, `(batch, key heads, keys, size)`, and values, `(batch, key heads, keys, value size)`.
///   Each key head serves `heads / key heads` neighbouring query heads.
/// * `sinks`: `(heads)`, a score for each query head. It is added to the softmax's sum, but has no value (Xiao et al.,
///   Efficient streaming language models with attention sinks, 2023).
/// * `lengths`: `(batch)`, the number of valid keys. Keys and values after them are masked, and a causal mask ends
///   there, so attention to a cache of fixed size is possible. The unused elements of the cache have to be finite.
///
/// Scores and softmax of float16 and bfloat16 are computed in float32. A query whose keys are all
/// masked gets the mean of all values, or zeros with a finite sink, since masked scores are the
/// lowest finite number.
///
/// # Errors
/// [`Error::Value`] for operands that are not of 4 axes or not floating, for sizes that do not fit, for a mask or sinks
/// whose dtype does not promote to the result's, and for lengths that are no integers.
///
/// # Examples
/// ```
/// use ultramarine::{Array, fast::{AttentionMask, scaled_dot_product_attention}};
///
/// let k = Array::from_slice(&[0.0f32, 0.0], &[1, 1, 2, 1])?;
/// let v = Array::from_slice(&[1.0f32, 3.0], &[1, 1, 2, 1])?;
/// let y = scaled_dot_product_attention(&k, &k, &v, 1.0, AttentionMask::Causal, None, None)?;
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
    lengths: Option<&Array>,
) -> Result<Array> {
    let (result, _) = built([q, k, v], scale, mask, sinks, lengths)?;
    Ok(result)
}

/// Returns true if [`scaled_dot_product_attention`] of these operands runs as one kernel on its
/// device. Otherwise it is composed of other operations, whose scores take memory. False for
/// operands without elements.
///
/// # Errors
/// As [`scaled_dot_product_attention`].
pub fn has_attention_kernel(
    q: &Array,
    k: &Array,
    v: &Array,
    mask: AttentionMask<'_>,
    sinks: Option<&Array>,
    lengths: Option<&Array>,
) -> Result<bool> {
    let (result, built) = built([q, k, v], 1.0, mask, sinks, lengths)?;
    let Some((rules, operands)) = built else { return Ok(true) };
    Ok(rules.is_fused(devices::get(result.node().place.stream.device)?, &operands))
}

type Operands = SmallVec<[Array; 6]>;

/// The result, and if it comes from an attention operation, that operation and its operands.
fn built(
    [q, k, v]: [&Array; 3],
    scale: f64,
    mask: AttentionMask<'_>,
    sinks: Option<&Array>,
    lengths: Option<&Array>,
) -> Result<(Array, Option<(Attention, Operands)>)> {
    let dtype = checked(q, k, v, mask, sinks)?;
    if let Some(lengths) = lengths {
        counts(lengths, q)?;
    }
    let operands: SmallVec<[&Array; 6]> = [Some(q), Some(k), Some(v), sinks, lengths]
        .into_iter()
        .flatten()
        .chain(match mask {
            AttentionMask::Array(mask) => Some(mask),
            _ => None,
        })
        .collect();
    let _placement = follow(&operands);
    let ([b, n, t, d], [_, _, s, e]) = (four(q), four(v));
    if b * n * t * s * e == 0 {
        return Ok((Array::zeros(&[b, n, t, e], dtype)?, None));
    }
    let [q, k, v] = [q, k, v].map(|a| a.astype(dtype));
    if lengths.is_none()
        && !matches!(mask, AttentionMask::Array(_))
        && let Some(Cached { keys, values, lengths }) = cache::cached(&q, &k, &v)
    {
        let all = (mask, sinks, Some(&lengths));
        let (rules, operands) = with_operands([&q, &keys, &values], scale, all)?;
        if rules.is_fused(devices::get(q.node().place.stream.device)?, &operands) {
            let [result, _] = rules.of(&operands)?;
            return Ok((result, Some((rules, operands))));
        }
    }
    let (rules, operands) = with_operands([&q, &k, &v], scale, (mask, sinks, lengths))?;
    if d == 0 {
        // Kernels are not called with empty operands.
        let mut both = rules.composed(&operands)?;
        return Ok((both.swap_remove(0), None));
    }
    let [result, _] = rules.of(&operands)?;
    Ok((result, Some((rules, operands))))
}

/// The operation of queries, keys and values of one dtype, and its operands.
fn with_operands(
    [q, k, v]: [&Array; 3],
    scale: f64,
    (mask, sinks, lengths): (AttentionMask<'_>, Option<&Array>, Option<&Array>),
) -> Result<(Attention, Operands)> {
    let ([b, n, t, _], [_, _, s, _]) = (four(q), four(k));
    let rules = Attention {
        scale,
        causal: matches!(mask, AttentionMask::Causal),
        mask: matches!(mask, AttentionMask::Array(_)),
        sinks: sinks.is_some(),
        lengths: lengths.is_some(),
    };
    let mut operands: Operands = smallvec![q.clone(), k.clone(), v.clone()];
    if let AttentionMask::Array(mask) = mask {
        let mask = if mask.dtype() == Dtype::Bool { mask.clone() } else { mask.astype(q.dtype()) };
        operands.push(mask.broadcast_to(&[b, n, t, s])?);
    }
    if let Some(sinks) = sinks {
        operands.push(sinks.astype(q.dtype()).broadcast_to(&[b, n])?);
    }
    if let Some(lengths) = lengths {
        operands.push(lengths.astype(Dtype::Int32));
    }
    Ok((rules, operands))
}

/// Checks `lengths`, the numbers of keys.
fn counts(lengths: &Array, q: &Array) -> Result<()> {
    lengths.computable(NAME)?;
    if !lengths.dtype().is_integer() {
        let text = format!(
            "lengths must be integers but got {}. Convert them with astype(int32).",
            lengths.dtype().name()
        );
        return Err(Error::value(NAME, text));
    }
    ensure!(
        *lengths.shape() == [q.shape()[0]],
        NAME,
        "Received invalid shape for lengths {}. Give one number for each batch, {}.",
        Show(lengths.shape()),
        q.shape()[0]
    );
    Ok(())
}

/// The four sizes of an operand.
fn four(a: &Array) -> [usize; 4] {
    [0, 1, 2, 3].map(|i| a.shape()[i])
}
