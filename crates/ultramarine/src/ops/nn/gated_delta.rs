//! The gated delta rule: [`crate::fast::gated_delta_update`].
//!
//! The steps are computed a chunk at a time (Yang, Kautz and Hatamizadeh, Gated delta networks: Improving Mamba2 with delta
//! rule, 2024). Let `d(i, j)` be the product of the decays after step j up to step i, and `d(i)` the product of all decays
//! up to step i. The updates `u` of a chunk that begins with the state `s` solve the triangular system
//! `u(i) + beta(i) sum over j < i of d(i, j) (k(i) k(j)) u(j) = beta(i) (v(i) - d(i) s k(i))`. The outputs are then
//! `o(i) = d(i) s q(i) + sum over j <= i of d(i, j) (k(j) q(i)) u(j)`. The products of decays are multiplied out and never
//! computed as quotients, so that a decay may be 0. The triangular matrices of all chunks are inverted together, by halves,
//! which is as stable as substitution.

use super::compute_dtype;
use crate::array::Array;
use crate::error::{Error, Result, ensure};
use crate::ops::rules::builders::{bin, like, slice_axis, times, un, with_axis};
use crate::ops::{select::where_, shape::concatenate::concatenate};
use crate::shape::{Shape, Show};
use crate::{PadMode, dtype::Dtype, placement::follow};
use ultramarine_abi::schema::{binary, unary};

const NAME: &str = "gated_delta_update";

/// Largest number of steps in a chunk.
const CHUNK: usize = 64;

/// Computes steps of a linear attention whose state decays and corrects itself. Returns `[output, state]`.
///
/// Queries and keys are `(batch, steps, key heads, size)`, values `(batch, steps, heads, value size)`. Each key head
/// serves `heads / key heads` neighbouring heads. `gamma`, the decay of the state, and `beta`, the rate of the update,
/// are `(batch, steps, heads)`. A step is `S = gamma S; S = S + beta (v - S k) k^T; o = S q`. The state `(batch, heads,
/// value size, size)` begins as zeros or as `initial_state`. Where `mask` `(batch, steps)` is false, the step leaves
/// the state unchanged and outputs zeros.
///
/// The output is `(batch, steps, heads, value size)`, in the floating dtype to which queries and keys promote. State
/// and computation are float32 (float64 if the output is float64).
///
/// # Errors
/// [`Error::Value`] for operands of other ranks, for sizes that do not fit, and for complex numbers.
///
/// # Examples
/// ```
/// use ultramarine::{Array, fast::gated_delta_update};
///
/// let line = |x: [f32; 2]| Array::from_slice(&x, &[1, 2, 1, 1]);
/// let (q, v) = (line([1.0, 1.0])?, line([3.0, 5.0])?);
/// let (gamma, beta) = (q.reshape(&[1, 2, 1])?, q.reshape(&[1, 2, 1])?);
/// let [o, state] = gated_delta_update(&q, &q, &v, &gamma, &beta, None, None)?;
/// assert_eq!((o.to_vec::<f32>()?, state.to_vec::<f32>()?), (vec![3.0, 5.0], vec![5.0]));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn gated_delta_update(
    q: &Array,
    k: &Array,
    v: &Array,
    gamma: &Array,
    beta: &Array,
    initial_state: Option<&Array>,
    mask: Option<&Array>,
) -> Result<[Array; 2]> {
    let [b, t, heads, dv] = checked([q, k, v, gamma, beta], initial_state, mask)?;
    let (key_heads, dk) = (q.shape()[2], q.shape()[3]);
    let all = [q, k, v, gamma, beta].into_iter().chain(initial_state).chain(mask);
    let operands: Vec<&Array> = all.collect();
    let _placement = follow(&operands);
    let joined = q.dtype().promote(k.dtype());
    let output = if joined.is_floating() { joined } else { Dtype::Float32 };
    let inner = compute_dtype(output);
    let mut state = match initial_state {
        Some(state) => state.astype(inner),
        None => Array::zeros(&[b, heads, dv, dk], inner)?,
    };
    if b * t * heads * dv * dk == 0 {
        return Ok([Array::zeros(&[b, t, heads, dv], output)?, state]);
    }

    let mut steps = [q, k, v, gamma, beta].map(|a| a.astype(inner));
    if let Some(mask) = mask {
        let mask = mask.astype(Dtype::Bool);
        for (i, a) in steps.iter_mut().enumerate() {
            let kept = mask.reshape(&[&[b, t][..], &vec![1; a.ndim() - 2]].concat())?;
            // In a masked step the state neither decays nor learns.
            *a = where_(&kept, &*a, like(a, if i == 3 { 1.0 } else { 0.0 }))?;
        }
    }
    let chunk = CHUNK.min(t.next_power_of_two());
    let chunks = t.div_ceil(chunk);
    let sizes = [b, chunks, chunk];
    let steps =
        [0, 1, 2, 3, 4].map(|i| in_chunks(&steps[i], sizes, if i == 3 { 1.0 } else { 0.0 }));
    let [q, k, v, gamma, beta] = steps;
    let (q, k) = (repeated(&q?, heads / key_heads)?, repeated(&k?, heads / key_heads)?);
    let (v, gamma, beta) = (v?, gamma?, beta?);

    // Decays of all chunks: `(batch, heads, chunks, steps, steps)`.
    let decays = decays(&gamma)?;
    let column = |a: &Array| with_axis(a, 4);
    let (rates, keys) = (column(&beta)?, k.swapaxes(3, 4)?);
    let system = times(&times(&k.matmul(&keys)?, &decays)?, &rates)?.tril(-1)?;
    let inverse = inverse(&system, chunk)?;
    let scores = times(&q.matmul(&keys)?, &decays)?;
    let total = column(&gamma.cumprod(Some(3), false, true)?)?;
    let part = |a: &Array, i: usize| slice_axis(a, 2, i, 1)?.squeeze(2);

    let mut outputs = Vec::with_capacity(chunks);
    for i in 0..chunks {
        let [q, k, v, rates, total] = [&q, &k, &v, &rates, &total].map(|a| part(a, i));
        let (q, k, total) = (q?, k?, total?);
        let turned = state.swapaxes(2, 3)?;
        let expected = times(&k.matmul(&turned)?, &total)?;
        let surprise = times(&bin(binary::SUBTRACT, &v?, &expected)?, &rates?)?;
        let updates = part(&inverse, i)?.matmul(&surprise)?;
        let before = times(&q.matmul(&turned)?, &total)?;
        let within = part(&scores, i)?.matmul(&updates)?;
        outputs.push(bin(binary::ADD, &before, &within)?);
        // The part of each update that remains after the last step of the chunk.
        let rest = slice_axis(&part(&decays, i)?, 2, chunk - 1, 1)?.swapaxes(2, 3)?;
        let learnt = times(&updates, &rest)?.swapaxes(2, 3)?.matmul(&k)?;
        let kept = times(&state, &slice_axis(&total, 2, chunk - 1, 1)?)?;
        state = bin(binary::ADD, &kept, &learnt)?;
    }
    let joined = concatenate(&outputs, 2)?;
    let out = slice_axis(&joined, 2, 0, t)?.swapaxes(1, 2)?;
    Ok([out.astype(output), state])
}

/// Checks that all shapes fit; returns the sizes of the values.
fn checked(
    operands: [&Array; 5],
    initial_state: Option<&Array>,
    mask: Option<&Array>,
) -> Result<[usize; 4]> {
    let names = ["q", "k", "v", "gamma", "beta"];
    for ((a, name), rank) in operands.iter().zip(names).zip([4, 4, 4, 3, 3]) {
        a.computable(NAME)?;
        ensure!(
            a.ndim() == rank,
            NAME,
            "`{name}` must have {rank} dimensions but has shape {}. Reshape it.",
            Show(a.shape())
        );
    }
    let [q, k, v, gamma, beta] = operands.map(Array::shape);
    let (b, t, heads) = (v[0], v[1], v[2]);
    ensure!(
        q == k && q[..2] == v[..2],
        NAME,
        "`q`, `k` and `v` have shapes {}, {} and {}. Pass `q` and `k` of the same shape (batch, steps, heads, size), and `v` with their batch and steps.",
        Show(q),
        Show(k),
        Show(v)
    );
    ensure!(
        if q[2] == 0 { heads == 0 } else { heads % q[2] == 0 },
        NAME,
        "`v` has {heads} heads and `k` has {}. Pass a `v` whose heads are a multiple of those of `k`.",
        q[2]
    );
    for (name, shape) in [("gamma", gamma), ("beta", beta)] {
        ensure!(
            shape == [b, t, heads],
            NAME,
            "`{name}` must have shape {} but has {}. Reshape it.",
            Show(&[b, t, heads]),
            Show(shape)
        );
    }
    let expected = [b, heads, v[3], q[3]];
    let others = [("initial_state", initial_state, &expected[..]), ("mask", mask, &[b, t])];
    for (name, a, shape) in others {
        let Some(a) = a else { continue };
        a.computable(NAME)?;
        ensure!(
            a.shape() == shape,
            NAME,
            "`{name}` must have shape {} but has {}. Reshape it.",
            Show(shape),
            Show(a.shape())
        );
    }
    if let Some(a) = operands.into_iter().chain(initial_state).find(|a| a.dtype().is_complex()) {
        let text =
            format!("Received unsupported type {}. Pass arrays of real numbers.", a.dtype().name());
        return Err(Error::value(NAME, text));
    }
    Ok([b, t, heads, v[3]])
}

/// Arranges steps `(batch, steps, heads, ...)` as `(batch, heads, chunks, steps of a chunk, ...)`. Steps after the last
/// one get `value`.
fn in_chunks(a: &Array, [b, chunks, chunk]: [usize; 3], value: f64) -> Result<Array> {
    let mut widths = vec![(0, 0); a.ndim()];
    widths[1].1 = chunks * chunk - a.shape()[1];
    let a = if widths[1].1 == 0 {
        a.clone()
    } else {
        a.pad(&widths, PadMode::Constant, like(a, value))?
    };
    a.reshape(&[&[b, chunks, chunk], &a.shape()[2..]].concat())?.moveaxis(3, 1)
}

/// Repeats each head `times` times.
fn repeated(a: &Array, times: usize) -> Result<Array> {
    a.repeat(times, Some(1))
}

/// `d(i, j)` for decays `(..., steps)`, on and below the diagonal; 0 above it.
fn decays(gamma: &Array) -> Result<Array> {
    let steps = gamma.shape()[3];
    let shape = [gamma.shape(), &[steps]].concat();
    let each = with_axis(gamma, 4)?.broadcast_to(&shape)?;
    let one = like(gamma, 1.0);
    let below = Array::tri(steps, steps, -1, Dtype::Bool)?;
    where_(&below, &each, &one)?.cumprod(Some(3), false, true)?.tril(0)
}

/// The inverse of `1 + a` for strictly lower triangular matrices `(..., n, n)`, n a power of two. Blocks on the
/// diagonal are joined in pairs.
fn inverse(a: &Array, n: usize) -> Result<Array> {
    let lead = Shape::from_slice(&a.shape()[..3]);
    let shape = |rest: &[usize]| [&lead[..], rest].concat();
    // Inverses of blocks `(..., blocks, size, size)`.
    let mut blocks = like(a, 1.0).broadcast_to(&shape(&[n, 1, 1]))?;
    let mut size = 1;
    while size < n {
        let (pairs, double) = (n / (2 * size), 2 * size);
        let diagonal = a.reshape(&shape(&[pairs, double, pairs, double]))?.diagonal(0, 3, 5)?;
        let diagonal = diagonal.moveaxis(5, 3)?;
        let below = slice_axis(&slice_axis(&diagonal, 4, size, size)?, 5, 0, size)?;
        let halves = blocks.reshape(&shape(&[pairs, 2, size, size]))?;
        let half = |i: usize| slice_axis(&halves, 4, i, 1)?.squeeze(4);
        let (first, second) = (half(0)?, half(1)?);
        let corner = un(unary::NEGATIVE, &second.matmul(&below)?.matmul(&first)?);
        let top = concatenate(&[first.clone(), first.zeros_like()], 5)?;
        blocks = concatenate(&[top, concatenate(&[corner, second], 5)?], 4)?;
        size = double;
    }
    blocks.reshape(a.shape())
}
