//! ATTENTION: a task for each block of queries.

use super::block::{Element, Queries, Rows, Tools};
use super::softmax::{Online, Running, Scale, pass};
use super::{Call, KEYS, QUERIES, Tensor};
use crate::nn::real::Real;
use crate::scratch::{Scratch, Slot};

/// Runs it.
///
/// # Safety
/// The tensors are valid, and of the call's shapes.
pub unsafe fn run<S: Element>(call: &Call<'_>, result: &Tensor, logarithms: &Tensor)
where
    S::Acc: Real,
{
    let rows = call.group * call.queries;
    let blocks = rows.div_ceil(QUERIES);
    // With a causal mask, the last queries see the most keys. Start them first, so that one thread
    // is not left with them at the end.
    call.cx.par.run(call.batches * call.heads * blocks, |task| {
        let head = task / blocks;
        let at = [head / call.heads, head % call.heads];
        let first = (blocks - 1 - task % blocks) * QUERIES;
        // SAFETY: passed on; tasks write different rows.
        unsafe { block::<S>(call, at, first, result, logarithms) };
    });
}

/// A block of queries.
///
/// # Safety
/// As [`run`].
unsafe fn block<S: Element>(
    call: &Call<'_>,
    [batch, head]: [usize; 2],
    first: usize,
    result: &Tensor,
    logarithms: &Tensor,
) where
    S::Acc: Real,
{
    let tools = Tools::<S>::new(call);
    let queries = Queries::new(call, [batch, head], first);
    let [d, e] = call.sizes;
    let [d_pitch, e_pitch] = [tools.pitch(d), tools.pitch(e)];
    let parts = [
        QUERIES * d_pitch,
        d * QUERIES,
        KEYS * d_pitch,
        KEYS * e_pitch,
        KEYS * QUERIES,
        QUERIES * e_pitch,
    ];
    let bytes = parts.iter().sum::<usize>() * size_of::<S::Acc>();
    let memory = Scratch::new(Slot::Task, bytes);
    let mut next = memory.get().cast::<S::Acc>();
    let [q, lanes, keys, values, scores, sums] = parts.map(|size| {
        let part = next;
        next = next.wrapping_add(size);
        part
    });
    let unit = std::f64::consts::LOG2_E;
    let mut running = Running {
        top: [<S::Acc as Real>::of(f64::NEG_INFINITY); QUERIES],
        sum: [S::Acc::ZERO; QUERIES],
        factor: [S::Acc::ONE; QUERIES],
    };
    if let Some(sinks) = call.sinks {
        for (lane, [h, _]) in queries.rows.iter().enumerate().take(queries.n) {
            // SAFETY: there is one for each head.
            let sink = unsafe { *sinks.at::<S>([batch, *h, 0, 0]) }.widen();
            running.top[lane] = sink.times(S::Acc::of(unit));
            running.sum[lane] = S::Acc::ONE;
        }
    }
    let out = Rows { data: sums, pitch: e_pitch as isize };
    // SAFETY: all memory is there, for the sizes that are asked for.
    unsafe {
        let rows = tools.load_queries(&call.q, &queries, d, q);
        tools.transpose(rows, [queries.n, d], S::Acc::of(call.scale * unit), lanes);
        for first in (0..queries.keys).step_by(KEYS) {
            let n = (queries.keys - first).min(KEYS);
            let at = [batch, head, first];
            let load = |tensor: &Tensor, size: usize, to| match tools.in_place(tensor, size) {
                true => tools.rows(tensor, at),
                false => tools.load(tensor, at, [n, size], to),
            };
            let k = load(&call.k, d, keys);
            let scores = tools.scores(k, [first, n], lanes, &queries, scores);
            pass(call.cx.level, Online { scores, running: &mut running });
            if first > 0 {
                let factors = &running.factor;
                pass(call.cx.level, Scale { data: sums, pitch: e_pitch, rows: queries.n, factors });
            }
            let v = load(&call.v, e, values);
            let weights = (scores.data.cast_const(), [1, QUERIES as isize]);
            tools.product(weights, v, out, [queries.n, e_pitch, n], first > 0);
        }
        for (lane, [h, i]) in queries.rows.iter().enumerate().take(queries.n) {
            let (top, sum) = (running.top[lane], running.sum[lane]);
            let factor = S::Acc::of(1.0 / sum.value());
            tools.store(out.from(lane).data, factor, result, [batch, *h, *i], e);
            let logarithm = match top > S::Acc::LOWEST || top.value().is_nan() {
                true => top.value() / unit + sum.value().ln(),
                false => S::Acc::LOWEST.value(),
            };
            *logarithms.at::<S::Acc>([batch, *h, *i, 0]) = S::Acc::of(logarithm);
        }
    }
}
