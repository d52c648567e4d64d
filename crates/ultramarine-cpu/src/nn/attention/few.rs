//! ATTENTION of few queries, such as those of one new token. Each key and value is read once, for all queries of its
//! head.
//!
//! Scores are computed as dot products, because lanes for queries, as in blocks, would be mostly empty. If there are
//! many keys, they are divided into parts, whose sums are joined in order (Dao et al., Flash-Decoding for long-context
//! inference, 2023).

use super::block::{Element, Queries, Rows, Tools};
use super::{Call, KEYS, Tensor};
use crate::dtype::DType;
use crate::level::{self, Isa};
use crate::matmul::simd::Num;
use crate::nn::real::Real;
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};

/// Most queries of a key head.
pub const QUERIES: usize = 8;
/// Keys of a part, and so of a task.
const PART: usize = 8 * KEYS;
/// Number of products up to which a call has a single task, because starting threads would take longer.
const ALONE: usize = 1 << 18;
/// Numbers that are added or multiplied at a time.
const LANES: usize = 16;
/// Columns of values whose sums are in registers.
const COLUMNS: usize = 4 * LANES;

/// The sums for a part of the keys and one query, followed by the sums of weights times values.
#[derive(Clone, Copy)]
struct Sums<T> {
    top: T,
    sum: T,
}

/// Runs it.
///
/// # Safety
/// The tensors are valid, and of the call's shapes; a key head has at most [`QUERIES`] queries.
pub unsafe fn run<S: Element>(call: &Call<'_>, result: &Tensor, logarithms: &Tensor)
where
    S::Acc: Real,
{
    let tools = Tools::<S>::new(call);
    let (rows, parts) = (call.group * call.queries, call.keys.div_ceil(PART));
    let (heads, pitch) = (call.batches * call.heads, tools.pitch(call.sizes[1]));
    let count = heads * parts * rows;
    let memory =
        Scratch::new(Slot::Call, count * (pitch * size_of::<S::Acc>() + size_of::<Sums<S::Acc>>()));
    let values = Shared(memory.get().cast::<S::Acc>());
    let sums = Shared(values.get().wrapping_add(count * pitch).cast::<Sums<S::Acc>>());
    let part = |task: usize| {
        let (head, part) = (task / parts, task % parts);
        let at = [head / call.heads, head % call.heads];
        let to =
            Rows { data: values.get().wrapping_add(task * rows * pitch), pitch: pitch as isize };
        // SAFETY: passed on; each task has its own sums.
        unsafe {
            let sums = core::slice::from_raw_parts_mut(sums.get().add(task * rows), rows);
            add::<S>(call, at, part * PART, sums, to);
        }
    };
    let finish = |head: usize| {
        let at = [head / call.heads, head % call.heads];
        // SAFETY: the sums of all parts were written; each task has a head of its own.
        unsafe {
            let first = head * parts * rows;
            let sums = core::slice::from_raw_parts_mut(sums.get().add(first), parts * rows);
            let values = values.get().wrapping_add(first * pitch);
            join::<S>(call, at, sums, Rows { data: values, pitch: pitch as isize });
            store::<S>(call, at, sums, values, [result, logarithms]);
        }
    };
    if heads * rows * call.keys * (call.sizes[0] + call.sizes[1]) <= ALONE {
        (0..heads * parts).for_each(part);
        (0..heads).for_each(finish);
    } else {
        call.cx.par.run(heads * parts, part);
        call.cx.par.run(heads, finish);
    }
}

/// The sums of a part of the keys of a head, from `first` on.
///
/// # Safety
/// As [`run`]; there is room for a row of values for each query.
unsafe fn add<S: Element>(
    call: &Call<'_>,
    [batch, head]: [usize; 2],
    first: usize,
    sums: &mut [Sums<S::Acc>],
    to: Rows<S::Acc>,
) where
    S::Acc: Real,
{
    let tools = Tools::<S>::new(call);
    let queries = Queries::new(call, [batch, head], 0);
    let [d, e] = call.sizes.map(|size| tools.pitch(size));
    let parts = [queries.n * d, KEYS * d, KEYS * e];
    let memory = Scratch::new(Slot::Task, parts.iter().sum::<usize>() * size_of::<S::Acc>());
    let mut next = memory.get().cast::<S::Acc>();
    let [q, keys, values] = parts.map(|size| {
        let part = next;
        next = next.wrapping_add(size);
        part
    });
    for sums in sums.iter_mut() {
        *sums = Sums { top: S::Acc::NEG_INFINITY, sum: S::Acc::ZERO };
    }
    let unit = S::Acc::of(std::f64::consts::LOG2_E);
    // SAFETY: all memory is there, for the sizes that are asked for.
    unsafe {
        core::slice::from_raw_parts_mut(to.data, queries.n * e).fill(S::Acc::ZERO);
        let q = tools.load_queries(&call.q, &queries, call.sizes[0], q);
        let scale = S::Acc::of(call.scale).times(unit);
        let numbers = core::slice::from_raw_parts_mut(q.data, queries.n * d);
        numbers.iter_mut().for_each(|q| *q = q.times(scale));
        let end = queries.keys.min(first + PART);
        for from in (first..end).step_by(KEYS) {
            let n = (end - from).min(KEYS);
            let load = |tensor: &Tensor, size: usize, to| match tools.in_place(tensor, size) {
                true => tools.rows(tensor, [batch, head, from]),
                false => tools.load(tensor, [batch, head, from], [n, size], to),
            };
            let (k, v) = (load(&call.k, call.sizes[0], keys), load(&call.v, call.sizes[1], values));
            for (row, sums) in sums.iter_mut().enumerate() {
                let mut scores = [S::Acc::NEG_INFINITY; KEYS];
                let query = core::slice::from_raw_parts(q.from(row).data, d);
                let own = &mut scores[..n];
                level::at(call.cx.level, Dots { query, keys: k, scores: own });
                mask::<S>(call, (&queries, row), from, own);
                let values = core::slice::from_raw_parts_mut(to.from(row).data, e);
                level::at(call.cx.level, Add { n, scores, sums, values: v, to: values });
            }
        }
    }
}

/// Applies the mask, and hides keys that a query does not see.
///
/// # Safety
/// The mask has an element for each score.
unsafe fn mask<S: Element>(
    call: &Call<'_>,
    (queries, row): (&Queries, usize),
    first: usize,
    scores: &mut [S::Acc],
) where
    S::Acc: Real,
{
    let [h, i] = queries.rows[row];
    if let Some((mask, dtype)) = call.mask {
        let unit = S::Acc::of(std::f64::consts::LOG2_E);
        for (j, score) in scores.iter_mut().enumerate() {
            let index = [queries.batch, h, i, first + j];
            // SAFETY: by this function's contract.
            unsafe {
                if dtype == DType::Bool {
                    *score = if *mask.at::<u8>(index) != 0 { *score } else { S::Acc::LOWEST };
                } else {
                    let sum = score.plus((*mask.at::<S>(index)).widen().times(unit));
                    *score = if sum < S::Acc::LOWEST { S::Acc::LOWEST } else { sum };
                }
            }
        }
    }
    let seen = (queries.ends[row] - first as i64).clamp(0, scores.len() as i64);
    scores[seen as usize..].fill(S::Acc::LOWEST);
}

/// Dot products of a query with keys.
struct Dots<'a, T> {
    query: &'a [T],
    keys: Rows<T>,
    scores: &'a mut [T],
}

impl<T: Real> Dots<'_, T> {
    /// # Safety
    /// There is a key for each score, of whole vectors.
    #[inline(always)]
    unsafe fn run<const FMA: bool>(self) {
        let n = self.query.len();
        for (j, score) in self.scores.iter_mut().enumerate() {
            // SAFETY: by this function's contract.
            let key = unsafe { core::slice::from_raw_parts(self.keys.from(j).data, n) };
            let mut lanes = [T::ZERO; LANES];
            let (queries, rest) = self.query.as_chunks::<LANES>();
            let (keys, last) = key.as_chunks::<LANES>();
            for (q, k) in queries.iter().zip(keys) {
                for l in 0..LANES {
                    lanes[l] = lanes[l].mul_acc::<FMA>(q[l], k[l]);
                }
            }
            for (l, (q, k)) in rest.iter().zip(last).enumerate() {
                lanes[l] = lanes[l].mul_acc::<FMA>(*q, *k);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for l in 0..width {
                    lanes[l] = lanes[l].plus(lanes[l + width]);
                }
                width /= 2;
            }
            *score = lanes[0];
        }
    }
}

impl<T: Real> level::Body for Dots<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        // SAFETY: there is a key for each score, by the struct's fields.
        unsafe { if I::FMA { self.run::<true>() } else { self.run::<false>() } }
    }
}

/// Computes weights from scores, and adds the weighted values.
struct Add<'a, T> {
    n: usize,
    scores: [T; KEYS],
    sums: &'a mut Sums<T>,
    values: Rows<T>,
    to: &'a mut [T],
}

impl<T: Real> Add<'_, T> {
    /// # Safety
    /// There are `n` rows of values, of whole vectors.
    #[inline(always)]
    unsafe fn run<I: Isa, const FMA: bool>(self) {
        let mut weights = self.scores;
        let before = self.sums.top;
        let mut top = before;
        for score in weights.iter().take(self.n) {
            top = if *score > top { *score } else { top };
        }
        let mut lanes = [T::ZERO; LANES];
        for weight in &mut weights {
            *weight = weight.minus(top).power_of_two::<I>();
        }
        // Set the rest to zero, because the weights after the keys are unspecified.
        weights[self.n..].fill(T::ZERO);
        for chunk in weights.as_chunks::<LANES>().0 {
            for l in 0..LANES {
                lanes[l] = lanes[l].plus(chunk[l]);
            }
        }
        let sum = lanes.into_iter().fold(T::ZERO, T::plus);
        let factor = before.minus(top).power_of_two::<I>();
        self.sums.top = top;
        self.sums.sum = self.sums.sum.times(factor).plus(sum);
        let mut column = 0;
        let (wide, rest) = self.to.as_chunks_mut::<COLUMNS>();
        for to in wide {
            // SAFETY: by this function's contract.
            unsafe {
                columns::<T, COLUMNS, FMA>(&weights[..self.n], self.values, column, to, factor)
            };
            column += COLUMNS;
        }
        let (narrow, rest) = rest.as_chunks_mut::<LANES>();
        for to in narrow {
            // SAFETY: as above.
            unsafe {
                columns::<T, LANES, FMA>(&weights[..self.n], self.values, column, to, factor)
            };
            column += LANES;
        }
        for (i, to) in rest.iter_mut().enumerate() {
            *to = to.times(factor);
            for (j, weight) in weights.iter().take(self.n).enumerate() {
                // SAFETY: as above.
                let value = unsafe { *self.values.from(j).data.wrapping_add(column + i) };
                *to = to.mul_acc::<FMA>(*weight, value);
            }
        }
    }
}

/// Adds some columns of values, times weights, to sums times a factor.
///
/// # Safety
/// There is a row of values for each weight, with these columns.
#[inline(always)]
unsafe fn columns<T: Real, const N: usize, const FMA: bool>(
    weights: &[T],
    values: Rows<T>,
    column: usize,
    to: &mut [T; N],
    factor: T,
) {
    let mut sums = *to;
    for sum in &mut sums {
        *sum = sum.times(factor);
    }
    for (j, weight) in weights.iter().enumerate() {
        // SAFETY: by this function's contract.
        let row = unsafe { &*values.from(j).data.wrapping_add(column).cast::<[T; N]>() };
        for i in 0..N {
            sums[i] = sums[i].mul_acc::<FMA>(*weight, row[i]);
        }
    }
    *to = sums;
}

impl<T: Real> level::Body for Add<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        // SAFETY: there are `n` rows of values, by the struct's fields.
        unsafe { if I::FMA { self.run::<I, true>() } else { self.run::<I, false>() } }
    }
}

/// Joins the sums of all parts into those of the first part, and adds the sinks.
///
/// # Safety
/// As [`run`]; there is a row of values for each of the sums.
unsafe fn join<S: Element>(
    call: &Call<'_>,
    [batch, head]: [usize; 2],
    sums: &mut [Sums<S::Acc>],
    values: Rows<S::Acc>,
) where
    S::Acc: Real,
{
    let (rows, size) = (call.group * call.queries, values.pitch as usize);
    let unit = S::Acc::of(std::f64::consts::LOG2_E);
    for row in 0..rows {
        let all = || (row..sums.len()).step_by(rows);
        let sink = call.sinks.map(|sinks| {
            let h = head * call.group + row / call.queries;
            // SAFETY: there is one for each head.
            unsafe { *sinks.at::<S>([batch, h, 0, 0]) }.widen().times(unit)
        });
        let mut top = sink.unwrap_or(S::Acc::NEG_INFINITY);
        for part in all() {
            top = if sums[part].top > top { sums[part].top } else { top };
        }
        let power = |x: S::Acc| S::Acc::of(x.minus(top).value().exp2());
        let mut total = sink.map_or(S::Acc::ZERO, power);
        // SAFETY: by this function's contract; the first part is not among the others.
        unsafe {
            let to = core::slice::from_raw_parts_mut(values.from(row).data, size);
            for part in all() {
                // A part without keys has no maximum, and nothing to add.
                let empty =
                    sums[part].top == S::Acc::NEG_INFINITY && sums[part].sum == S::Acc::ZERO;
                let factor = if empty { S::Acc::ZERO } else { power(sums[part].top) };
                total = total.plus(sums[part].sum.times(factor));
                if part == row {
                    to.iter_mut().for_each(|to| *to = to.times(factor));
                    continue;
                }
                let from = core::slice::from_raw_parts(values.from(part).data, size);
                for (to, from) in to.iter_mut().zip(from) {
                    *to = to.plus(from.times(factor));
                }
            }
        }
        sums[row] = Sums { top, sum: total };
    }
}

/// Stores the results and the logarithms of a head's queries.
///
/// # Safety
/// As [`run`]; there is a row of values for each query.
unsafe fn store<S: Element>(
    call: &Call<'_>,
    [batch, head]: [usize; 2],
    sums: &[Sums<S::Acc>],
    values: *const S::Acc,
    [result, logarithms]: [&Tensor; 2],
) where
    S::Acc: Real,
{
    let tools = Tools::<S>::new(call);
    let pitch = tools.pitch(call.sizes[1]);
    let unit = std::f64::consts::LOG2_E;
    let rows = call.group * call.queries;
    for (row, Sums { top, sum }) in sums.iter().copied().take(rows).enumerate() {
        let index = [batch, head * call.group + row / call.queries, row % call.queries];
        let factor = S::Acc::of(1.0 / sum.value());
        let logarithm = match top > S::Acc::LOWEST || top.value().is_nan() {
            true => top.value() / unit + sum.value().ln(),
            false => S::Acc::LOWEST.value(),
        };
        // SAFETY: the result has that row, and nothing else uses it.
        unsafe {
            let from = values.wrapping_add(row * pitch);
            tools.store(from, factor, result, index, call.sizes[1]);
            let at = [index[0], index[1], index[2], 0];
            *logarithms.at::<S::Acc>(at) = S::Acc::of(logarithm);
        }
    }
}
