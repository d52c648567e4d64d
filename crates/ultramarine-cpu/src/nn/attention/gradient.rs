//! ATTENTION_GRADIENT: each task processes some keys of a key head, for all queries.

use super::block::{Element, Queries, Rows, Tools};
use super::softmax::{Slopes, Weights, pass};
use super::{Call, KEYS, QUERIES, Tensor};
use crate::matmul::simd::Num;
use crate::nn::real::Real;
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};

/// Keys whose sums a task has in memory at a time.
const CHUNK: usize = 8 * KEYS;
/// Number of pieces into which the keys are divided if heads alone give too few tasks. Each piece has sums for all
/// queries.
const PIECES: usize = 8;

/// The cotangent of the result, the logarithms and delta.
type Given = [Tensor; 3];

/// Numbers from a buffer, one part behind the other.
struct Parts<T>(*mut T);

impl<T> Parts<T> {
    fn take(&mut self, size: usize) -> *mut T {
        let part = self.0;
        self.0 = part.wrapping_add(size);
        part
    }
}

/// Runs it.
///
/// # Safety
/// The tensors are valid, and of the call's shapes.
pub unsafe fn run<S: Element>(call: &Call<'_>, given: Given, [dq, dk, dv]: [Tensor; 3])
where
    S::Acc: Real,
{
    let tools = Tools::<S>::new(call);
    let (heads, rows) = (call.batches * call.heads, call.group * call.queries);
    let pitch = tools.pitch(call.sizes[0]);
    let pieces = (2 * PIECES).div_ceil(heads).min(PIECES).min(call.keys.div_ceil(CHUNK));
    let keys = call.keys.div_ceil(pieces).next_multiple_of(KEYS);
    let pieces = call.keys.div_ceil(keys);
    let all = heads * pieces * rows * pitch;
    let memory = Scratch::new(Slot::Call, all * size_of::<S::Acc>());
    let sums = Shared(memory.get().cast::<S::Acc>());
    let sums_of =
        |head: usize, piece: usize| sums.get().wrapping_add((head * pieces + piece) * rows * pitch);
    call.cx.par.run(heads * pieces, |task| {
        let (head, piece) = (task / pieces, task % pieces);
        let at = [head / call.heads, head % call.heads];
        let to = Rows { data: sums_of(head, piece), pitch: pitch as isize };
        let range = [piece * keys, call.keys.min((piece + 1) * keys)];
        // SAFETY: passed on; tasks have sums and keys of their own.
        unsafe { piece_of::<S>(call, at, range, given, to, [dk, dv]) };
    });
    let scale = S::Acc::of(call.scale);
    let blocks = rows.div_ceil(QUERIES);
    call.cx.par.run(heads * blocks, |task| {
        let head = task / blocks;
        let first = task % blocks * QUERIES;
        for row in first..rows.min(first + QUERIES) {
            let to = sums_of(head, 0).wrapping_add(row * pitch);
            for piece in 1..pieces {
                let from = sums_of(head, piece).wrapping_add(row * pitch);
                for i in 0..pitch {
                    // SAFETY: sums of a row, which belongs to this task.
                    unsafe { *to.add(i) = (*to.add(i)).plus(*from.add(i)) };
                }
            }
            let h = head % call.heads * call.group + row / call.queries;
            let index = [head / call.heads, h, row % call.queries];
            // SAFETY: passed on; the row is this task's.
            unsafe { tools.store(to, scale, &dq, index, call.sizes[0]) };
        }
    });
}

/// The gradients with respect to the keys and values of a range, and its contribution to the gradients with respect to
/// the queries.
///
/// # Safety
/// As [`run`].
unsafe fn piece_of<S: Element>(
    call: &Call<'_>,
    [batch, head]: [usize; 2],
    [begin, end]: [usize; 2],
    given: Given,
    by_queries: Rows<S::Acc>,
    [dk, dv]: [Tensor; 2],
) where
    S::Acc: Real,
{
    let tools = Tools::<S>::new(call);
    let [d, e] = call.sizes;
    let [dp, ep] = [tools.pitch(d), tools.pitch(e)];
    let rows = call.group * call.queries;
    let size = QUERIES * (dp + d + ep + e) + 2 * KEYS * QUERIES + 2 * CHUNK * (dp + ep);
    let memory = Scratch::new(Slot::Task, size * size_of::<S::Acc>());
    let mut parts = Parts(memory.get().cast::<S::Acc>());
    let [q, q_lanes] = [QUERIES * dp, d * QUERIES].map(|n| parts.take(n));
    let [ct, ct_lanes] = [QUERIES * ep, e * QUERIES].map(|n| parts.take(n));
    let [scores, products] = [KEYS * QUERIES; 2].map(|n| parts.take(n));
    let [keys, by_keys] = [CHUNK * dp; 2].map(|n| parts.take(n));
    let [values, by_values] = [CHUNK * ep; 2].map(|n| parts.take(n));
    let [by_keys, by_values] =
        [(by_keys, dp), (by_values, ep)].map(|(data, pitch)| Rows { data, pitch: pitch as isize });
    let unit = std::f64::consts::LOG2_E;
    // SAFETY: all memory is there, for the sizes that are asked for.
    unsafe {
        by_queries.data.write_bytes(0, rows * dp);
        for chunk in (begin..end).step_by(CHUNK) {
            let n = (end - chunk).min(CHUNK);
            let load = |tensor: &Tensor, size: usize, to| match tools.in_place(tensor, size) {
                true => tools.rows(tensor, [batch, head, chunk]),
                false => tools.load(tensor, [batch, head, chunk], [n, size], to),
            };
            let (k, v) = (load(&call.k, d, keys), load(&call.v, e, values));
            by_keys.data.write_bytes(0, n * dp);
            by_values.data.write_bytes(0, n * ep);
            for first in (0..rows).step_by(QUERIES) {
                let queries = Queries::new(call, [batch, head], first);
                if queries.keys <= chunk {
                    continue;
                }
                let m = queries.n;
                let known = Known::of::<S>(&queries, given);
                let q = tools.load_queries(&call.q, &queries, d, q);
                tools.transpose(q, [m, d], S::Acc::of(call.scale * unit), q_lanes);
                let ct = tools.load_queries(&given[0], &queries, e, ct);
                tools.transpose(ct, [m, e], S::Acc::ONE, ct_lanes);
                let lanes = Rows { data: ct_lanes, pitch: QUERIES as isize };
                let products_rows = Rows { data: products, pitch: QUERIES as isize };
                for j in (0..n.min(queries.keys - chunk)).step_by(KEYS) {
                    let count = (n.min(queries.keys - chunk) - j).min(KEYS);
                    let at = [chunk + j, count];
                    let weights = tools.scores(k.from(j), at, q_lanes, &queries, scores);
                    pass(call.cx.level, Weights { scores: weights, logarithms: &known.logarithms });
                    known.equal(weights.data, count, call.keys);
                    let a = (v.from(j).data.cast_const(), [v.pitch, 1]);
                    let cols = tools.pitch(m);
                    tools.product(a, lanes, products_rows, [count, cols, e], false);
                    pass(call.cx.level, Slopes { weights, products, delta: &known.delta });
                    known.flat(products, count);
                    let across = [QUERIES as isize, 1];
                    let to = by_values.from(j);
                    tools.product((scores.cast_const(), across), ct, to, [count, ep, m], true);
                    let to = by_keys.from(j);
                    tools.product((products.cast_const(), across), q, to, [count, dp, m], true);
                    let down = (products.cast_const(), [1, QUERIES as isize]);
                    tools.product(down, k.from(j), by_queries.from(first), [m, dp, count], true);
                }
            }
            for j in 0..n {
                let index = [batch, head, chunk + j];
                tools.store(by_keys.from(j).data, S::Acc::of(call.scale), &dk, index, d);
                tools.store(by_values.from(j).data, S::Acc::ONE, &dv, index, e);
            }
        }
    }
}

/// Results of the forward pass for the queries of a block.
struct Known<T> {
    /// In units of ln 2; 0 where all keys are masked.
    logarithms: [T; QUERIES],
    delta: [T; QUERIES],
    /// Lanes whose keys are all masked.
    whole: Vec<usize>,
}

impl<T: Real> Known<T> {
    /// # Safety
    /// The tensors are valid.
    unsafe fn of<S: Element<Acc = T>>(queries: &Queries, [_, logarithms, delta]: Given) -> Self {
        let mut known =
            Known { logarithms: [T::ZERO; QUERIES], delta: [T::ZERO; QUERIES], whole: Vec::new() };
        for (lane, [h, i]) in queries.rows.iter().enumerate().take(queries.n) {
            let index = [queries.batch, *h, *i, 0];
            // SAFETY: there is one for each query.
            let (logarithm, delta) = unsafe { (*logarithms.at::<T>(index), *delta.at::<T>(index)) };
            known.delta[lane] = delta;
            if logarithm <= T::LOWEST {
                known.whole.push(lane);
            } else {
                known.logarithms[lane] = logarithm.times(T::of(std::f64::consts::LOG2_E));
            }
        }
        known
    }

    /// Gives queries that see no key equal weights for all keys.
    ///
    /// # Safety
    /// There are so many rows of weights.
    unsafe fn equal(&self, weights: *mut T, rows: usize, keys: usize) {
        // SAFETY: passed on.
        unsafe { self.fill(weights, rows, T::of(1.0 / keys as f64)) }
    }

    /// Sets the gradient of these queries' scores to zero.
    ///
    /// # Safety
    /// There are so many rows.
    unsafe fn flat(&self, slopes: *mut T, rows: usize) {
        // SAFETY: passed on.
        unsafe { self.fill(slopes, rows, T::ZERO) }
    }

    /// # Safety
    /// There are so many rows.
    unsafe fn fill(&self, block: *mut T, rows: usize, value: T) {
        for lane in &self.whole {
            for j in 0..rows {
                // SAFETY: by this function's contract.
                unsafe { *block.add(j * QUERIES + lane) = value };
            }
        }
    }
}
