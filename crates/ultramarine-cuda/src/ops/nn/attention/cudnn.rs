//! Attention and its gradient by cuDNN, for half dtypes on compute capability 9.0. Graphs of the basic operations select
//! cuDNN's flash attention. Making a plan takes a second, so plans are made in the background while this crate's kernels do
//! the work. A graph that is being recorded waits for the plan.

use super::{Call, Common, Mask, TILE, in_vectors};
use crate::context::lock;
use crate::launch::{Dtype, Job, View};
use crate::ops::cudnn::graph::{Graph, Tensor};
use crate::ops::cudnn::plan::Plan;
use crate::ops::cudnn::{Library, Wish, data_of};
use crate::program::background;
use crate::sys::cudnn::{data, pointwise, reduction};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use ultramarine_abi::helper::{Level, Result};

/// Maximum number of cuDNN plans that are kept for one plan of the contract.
const MOST_KEPT: usize = 64;
/// Maximum workspace of an engine in bytes, in addition to the gradients of all heads.
const ROOM: u64 = 64 << 10;
/// Sizes of queries and values for which cuDNN was measured: the largest, and the number that they
/// are multiples of.
const MOST_SIZE: i64 = 128;
const SIZES: i64 = 8;
/// Number of multiplications for scores and results from which cuDNN was faster on an H200: for attention, and for its
/// gradient.
const WORTH: [i64; 2] = [3 << 30, 1 << 32];
/// Maximum factor by which query heads that share a key head increase a gradient's number of
/// multiplications, because this crate's kernels then take longer.
const SHARING: i64 = 4;

/// Identities of tensors and numbers in graphs.
pub mod id {
    pub const Q: i64 = 1;
    pub const K: i64 = 2;
    pub const V: i64 = 3;
    pub const OUT: i64 = 4;
    pub const LOGARITHMS: i64 = 5;
    pub const CT: i64 = 6;
    pub const DQ: i64 = 7;
    pub const DK: i64 = 8;
    pub const DV: i64 = 9;
    /// Delta as cuDNN computes it, and the sums for `DQ`.
    pub const DELTA: i64 = 10;
    pub const SUMS: i64 = 11;
    pub const SCALE: i64 = 12;
    pub const LOW: i64 = 13;
    pub const KEYS: i64 = 14;
    pub const QUERIES: i64 = 15;
    pub const ONE: i64 = 16;
}

/// The sizes of a call, for which a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    data: i32,
    is_gradient: bool,
    causal: bool,
    /// Batches, heads, queries, keys, and the sizes of queries and values.
    sizes: [i64; 6],
    key_heads: i64,
    /// Strides of queries, keys and values; then those of the result, or of the cotangent and the
    /// gradients.
    inputs: [[i64; 4]; 3],
    others: [[i64; 4]; 4],
    logarithms: [i64; 3],
}

/// A plan, once it was made; `None` inside if it cannot be made.
type Slot = Arc<OnceLock<Option<Arc<Plan>>>>;

/// cuDNN's plans for attention or for its gradient, by [`Shape`].
#[derive(Default)]
pub struct Networks {
    kept: Mutex<HashMap<Shape, Slot>>,
}

impl Networks {
    /// Workspace of a call in bytes. It is 0 if this crate's kernels do it, which need none for
    /// these sizes.
    pub fn workspace(&self, job: &Job<'_>, shape: &Shape) -> u64 {
        let failed = || {
            let kept = lock(&self.kept);
            kept.get(shape).is_some_and(|slot| matches!(slot.get(), Some(None)))
        };
        if Library::of(job.device).is_none() || failed() {
            return 0;
        }
        if shape.is_gradient { Scratch::at(0, shape).1 } else { shape.room() }
    }

    /// The plan. `None` if this crate's kernels do it, at least this time. The device's context is
    /// current.
    pub fn plan(&self, job: &Job<'_>, shape: &Shape) -> Option<Arc<Plan>> {
        // The workspace of this command may have been requested when the plan had already failed.
        let library = Library::of(job.device).filter(|_| job.workspace != 0)?;
        let mut is_new = false;
        let slot = {
            let mut kept = lock(&self.kept);
            if kept.len() >= MOST_KEPT && !kept.contains_key(shape) {
                kept.clear();
            }
            let make = || {
                is_new = true;
                Slot::default()
            };
            kept.entry(*shape).or_insert_with(make).clone()
        };
        if let Some(known) = slot.get() {
            return known.clone();
        }
        let (library, shape, host) = (library.clone(), *shape, job.device.host);
        let make = move || {
            let made = shape.plan(&library);
            if let Err(why) = &made {
                let text = format!("no attention by cuDNN for {shape:?}: {}", why.text);
                host.log(Level::Debug, &text);
            }
            made.ok().map(Arc::new)
        };
        if job.graph.is_some() || Wish::get() == Wish::Always {
            return slot.get_or_init(make).clone();
        }
        if is_new {
            let context = job.device.context.clone();
            background::spawn(move || {
                if let Ok(_entered) = context.enter() {
                    slot.get_or_init(make);
                }
            });
        }
        None
    }
}

/// Strides of a tensor of four axes.
fn four(view: &View<'_>) -> Option<[i64; 4]> {
    view.strides.try_into().ok()
}

impl Shape {
    /// The shape of a command, from its result or, for the gradient, from the cotangent and the results. `None` if
    /// this crate's kernels do it.
    pub(super) fn of(
        common: &Common,
        job: &Job<'_>,
        call: &Call<'_>,
        logarithms: &View<'_>,
        others: &[&View<'_>],
    ) -> Option<Self> {
        let wish = Wish::get();
        let is_measured = common.dtype.is_half() && job.device.properties.major == 9;
        if wish == Wish::Never || !(is_measured || wish == Wish::Always) {
            return None;
        }
        let is_gradient = others.len() > 1;
        let causal = common.attributes.causal == 1;
        let is_plain = common.mask == Mask::None && call.sinks.is_none() && call.lengths.is_none();
        let tensors = [call.q, call.k, call.v].into_iter().chain(others.iter().copied());
        // cuDNN's gradient with respect to the queries adds parts in the order in which they
        // arrive.
        let varies = is_gradient && common.attributes.deterministic == 1;
        let fits = is_plain
            && !varies
            && common.dtype.is_half()
            && is_served(call.sizes, [call.group, call.span()], [causal, is_gradient], wish)
            && logarithms.is_aligned(16)
            && tensors.into_iter().all(in_vectors);
        if !fits {
            return None;
        }
        let mut rest = [[0; 4]; 4];
        for (place, view) in rest.iter_mut().zip(others) {
            *place = four(view)?;
        }
        Some(Self {
            data: data_of(common.dtype)?,
            is_gradient,
            causal,
            sizes: call.sizes,
            key_heads: call.sizes[1] / call.group,
            inputs: [four(call.q)?, four(call.k)?, four(call.v)?],
            others: rest,
            logarithms: logarithms.strides.try_into().ok()?,
        })
    }

    /// Maximum workspace of an engine in bytes. If several query heads share a key head, it includes their
    /// gradients.
    fn room(&self) -> u64 {
        let [b, h, _, n, d, e] = self.sizes;
        let shared = self.is_gradient && self.key_heads < h;
        ROOM + if shared { 2 * (b * h * n * (d + e)) as u64 } else { 0 }
    }

    /// The scalars of a call.
    pub fn numbers(&self, scale: f64) -> Vec<(i64, u32)> {
        let [_, _, m, n, ..] = self.sizes;
        let mut numbers = vec![(id::SCALE, (scale as f32).to_bits())];
        if self.causal {
            numbers.push((id::LOW, f32::NEG_INFINITY.to_bits()));
            if m != n {
                numbers.extend([(id::KEYS, n as u32), (id::QUERIES, m as u32)]);
            }
        }
        if self.is_gradient {
            numbers.push((id::ONE, 1f32.to_bits()));
        }
        numbers
    }

    fn plan(&self, library: &Arc<Library>) -> Result<Plan> {
        let mut graph = Graph::new(library);
        match self.is_gradient {
            true => self.gradient(&mut graph)?,
            false => self.forward(&mut graph)?,
        }
        graph.plan(self.room())
    }

    /// The scaled scores without those that are masked, minus the logarithms if they are given.
    fn scores(
        &self,
        graph: &mut Graph<'_>,
        [q, k]: [Tensor; 2],
        less: Option<Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let [b, h, m, n, ..] = self.sizes;
        let scale = graph.number(id::SCALE, data::FLOAT)?;
        let products = graph.inner(data::FLOAT, &[b, h, m, n])?;
        graph.matmul(q, k, products)?;
        let mut scores = graph.pointwise(pointwise::MULTIPLY, products, Some(scale))?;
        if let Some(less) = less {
            scores = graph.pointwise(pointwise::SUBTRACT, scores, Some(less))?;
        }
        if self.causal {
            let low = graph.number(id::LOW, data::FLOAT)?;
            let shift = match m == n {
                true => None,
                false => Some([
                    graph.number(id::KEYS, data::INT32)?,
                    graph.number(id::QUERIES, data::INT32)?,
                ]),
            };
            scores = graph.causal(scores, low, shift)?;
        }
        Ok((scores, scale))
    }

    fn logarithms(&self, graph: &mut Graph<'_>) -> Result<Tensor> {
        let ([b, h, m, ..], [x, y, z]) = (self.sizes, self.logarithms);
        graph.tensor(id::LOGARITHMS, data::FLOAT, &[b, h, m, 1], &[x, y, z, 1])
    }

    fn forward(&self, graph: &mut Graph<'_>) -> Result<()> {
        let ([b, h, m, n, d, e], heads, [q, k, v]) = (self.sizes, self.key_heads, self.inputs);
        let row = [b, h, m, 1];
        let q = graph.tensor(id::Q, self.data, &[b, h, m, d], &q)?;
        let k = graph.tensor(id::K, self.data, &[b, heads, d, n], &swapped(k))?;
        let v = graph.tensor(id::V, self.data, &[b, heads, n, e], &v)?;
        let out = graph.tensor(id::OUT, self.data, &[b, h, m, e], &self.others[0])?;
        let logarithms = self.logarithms(graph)?;
        let (scores, _) = self.scores(graph, [q, k], None)?;
        let top = graph.inner(data::FLOAT, &row)?;
        graph.reduce(reduction::MAXIMUM, scores, top)?;
        let shifted = graph.pointwise(pointwise::SUBTRACT, scores, Some(top))?;
        let powers = graph.pointwise(pointwise::EXP, shifted, None)?;
        let sums = graph.inner(data::FLOAT, &row)?;
        graph.reduce(reduction::SUM, powers, sums)?;
        let log = graph.pointwise(pointwise::LOG, sums, None)?;
        graph.pointwise_into(pointwise::ADD, top, Some(log), logarithms)?;
        let weights = graph.inner(self.data, &[b, h, m, n])?;
        graph.pointwise_into(pointwise::DIVIDE, powers, Some(sums), weights)?;
        graph.matmul(weights, v, out)?;
        Ok(())
    }

    fn gradient(&self, graph: &mut Graph<'_>) -> Result<()> {
        let ([b, h, m, n, d, e], heads, [q, k, v]) = (self.sizes, self.key_heads, self.inputs);
        let ([ct, dq, dk, dv], row, data) = (self.others, [b, h, m, 1], self.data);
        let dense = |sizes: [i64; 4]| crate::launch::row_major(&sizes);
        let k_strides = swapped(k);
        let q = graph.tensor(id::Q, data, &[b, h, m, d], &q)?;
        let k = graph.tensor(id::K, data, &[b, heads, d, n], &k_strides)?;
        let v = graph.tensor(id::V, data, &[b, heads, e, n], &swapped(v))?;
        let ct = graph.tensor(id::CT, data, &[b, h, m, e], &ct)?;
        let out = graph.tensor(id::OUT, data, &[b, h, m, e], &dense([b, h, m, e]))?;
        let dq = graph.tensor(id::DQ, data, &[b, h, m, d], &dq)?;
        let dk = graph.tensor(id::DK, data, &[b, heads, n, d], &dk)?;
        let dv = graph.tensor(id::DV, data, &[b, heads, n, e], &dv)?;
        let logarithms = self.logarithms(graph)?;

        let products = graph.inner(data::FLOAT, &[b, h, m, e])?;
        graph.pointwise_into(pointwise::MULTIPLY, ct, Some(out), products)?;
        let sums = graph.inner(data::FLOAT, &row)?;
        graph.reduce(reduction::SUM, products, sums)?;
        let one = graph.number(id::ONE, data::FLOAT)?;
        let delta = graph.tensor(id::DELTA, data::FLOAT, &row, &dense(row))?;
        graph.pointwise_into(pointwise::MULTIPLY, sums, Some(one), delta)?;

        let (scores, scale) = self.scores(graph, [q, k], Some(logarithms))?;
        let weights = graph.pointwise(pointwise::EXP, scores, None)?;
        let square = dense([b, h, m, n]);
        let square = [square[0], square[1], square[2], square[3]];
        let turned = graph.transposed(weights, data, &square)?;
        self.by_keys(graph, turned, ct, (dv, e))?;

        let slopes = graph.inner(data::FLOAT, &[b, h, m, n])?;
        graph.matmul(ct, v, slopes)?;
        let slopes = graph.pointwise(pointwise::SUBTRACT, slopes, Some(delta))?;
        let slopes = graph.pointwise(pointwise::MULTIPLY, slopes, Some(weights))?;
        let slopes = graph.pointwise(pointwise::MULTIPLY, slopes, Some(scale))?;
        let turned = graph.transposed(slopes, data, &square)?;
        self.by_keys(graph, turned, q, (dk, d))?;

        let keys = graph.transposed(k, data, &k_strides)?;
        let totals = graph.tensor(id::SUMS, data::FLOAT, &[b, h, m, d], &dense([b, h, m, d]))?;
        graph.matmul(slopes, keys, totals)?;
        graph.pointwise_into(pointwise::IDENTITY, totals, None, dq)?;
        Ok(())
    }

    /// Sums over queries, and over the heads that share a key head.
    fn by_keys(
        &self,
        graph: &mut Graph<'_>,
        weights: Tensor,
        rows: Tensor,
        (to, size): (Tensor, i64),
    ) -> Result<()> {
        let [b, h, _, n, ..] = self.sizes;
        if self.key_heads == h {
            graph.matmul(weights, rows, to)?;
        } else {
            let all = graph.inner(self.data, &[b, h, n, size])?;
            graph.matmul(weights, rows, all)?;
            graph.reduce(reduction::SUM, all, to)?;
        }
        Ok(())
    }
}

/// Strides with the last two axes swapped.
fn swapped([a, b, c, d]: [i64; 4]) -> [i64; 4] {
    [a, b, d, c]
}

/// True if cuDNN is used for these sizes; `span` is the number of heads whose queries fill tiles
/// together.
fn is_served(
    [b, h, m, n, d, e]: [i64; 6],
    [group, span]: [i64; 2],
    [causal, is_gradient]: [bool; 2],
    wish: Wish,
) -> bool {
    let fits = [d, e].iter().all(|size| size % SIZES == 0 && *size <= MOST_SIZE);
    let products = [b, h, m, n].iter().fold(d + e, |all, n| all.saturating_mul(*n));
    let shared = if is_gradient { group.min(SHARING) } else { 1 };
    let counted = products.saturating_mul(shared);
    let is_worth = wish == Wish::Always || counted >= WORTH[usize::from(is_gradient)];
    // cuDNN's softmax is undefined for queries without keys. For few rows, this crate's kernels
    // split the keys.
    fits && !(causal && m > n) && span * m > 2 * TILE && is_worth
}

/// The parts of a workspace for the gradient: a word that says if the stand-in does not exist for a row, the stand-in for the
/// result, delta, sums, and the engine's own workspace.
pub struct Scratch {
    pub failed: u64,
    pub out: u64,
    pub delta: u64,
    pub sums: u64,
    pub own: u64,
}

impl Scratch {
    /// Lays out the parts from an address on; returns the end, too.
    pub fn at(address: u64, shape: &Shape) -> (Self, u64) {
        let [b, h, m, _, d, e] = shape.sizes;
        let rows = (b * h * m) as u64;
        let mut next = address;
        let mut take = |bytes: u64| {
            let place = next;
            next += bytes.next_multiple_of(256);
            place
        };
        let half = Dtype::Float16.bytes();
        let failed = take(4);
        let (out, delta, sums) =
            (take(rows * e as u64 * half), take(rows * 4), take(rows * d as u64 * 4));
        let own = take(shape.room());
        (Self { failed, out, delta, sums, own }, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_attention_of_fitting_sizes_is_served() {
        let of = |sizes, causal| is_served(sizes, [1, 1], [causal, false], Wish::WhereFaster);
        assert!(of([8, 12, 1024, 1024, 64, 64], true));
        assert!(!of([8, 12, 1024, 1024, 68, 64], true));
        assert!(!of([8, 12, 1024, 1024, 256, 64], true));
        assert!(!of([1, 2, 64, 64, 64, 64], true));
        assert!(!of([8, 12, 2048, 1024, 64, 64], true) && of([8, 12, 2048, 1024, 64, 64], false));
        let always = |sizes| is_served(sizes, [1, 1], [true; 2], Wish::Always);
        assert!(always([1, 2, 64, 64, 64, 64]) && !always([1, 2, 32, 64, 64, 64]));
    }

    #[test]
    fn gradients_of_shared_keys_are_served_sooner() {
        let of = |sizes, group| is_served(sizes, [group, 1], [true; 2], Wish::WhereFaster);
        assert!(of([8, 12, 1024, 1024, 64, 64], 1) && !of([2, 12, 1024, 1024, 64, 64], 1));
        assert!(of([1, 32, 512, 512, 64, 64], 4) && !of([1, 32, 512, 512, 64, 64], 1));
        assert!(!of([1, 32, 256, 256, 64, 64], 8));
    }

    fn shape(is_gradient: bool, key_heads: i64) -> Shape {
        let (data, causal, sizes) = (9, true, [1, 4, 64, 80, 16, 8]);
        let (inputs, others, logarithms) = Default::default();
        Shape { data, is_gradient, causal, sizes, key_heads, inputs, others, logarithms }
    }

    #[test]
    fn parts_of_a_workspace_follow_each_other() {
        let shared = shape(true, 2);
        assert_eq!(shared.room(), ROOM + 2 * 4 * 80 * 24);
        assert_eq!([shape(true, 4).room(), shape(false, 2).room()], [ROOM; 2]);
        let (places, end) = Scratch::at(512, &shared);
        let Scratch { failed, out, delta, sums, own } = places;
        assert_eq!(
            [failed, out, delta, sums, own],
            [512, 768, 768 + 4096, 4864 + 1024, 5888 + 16384]
        );
        assert_eq!(end, own + shared.room().next_multiple_of(256));
    }

    #[test]
    fn numbers_are_those_that_the_graph_asks_for() {
        let ids = |shape: Shape| shape.numbers(0.5).iter().map(|n| n.0).collect::<Vec<_>>();
        assert_eq!(ids(shape(true, 4)), [id::SCALE, id::LOW, id::KEYS, id::QUERIES, id::ONE]);
        assert_eq!(ids(Shape { causal: false, ..shape(false, 4) }), [id::SCALE]);
        assert_eq!(shape(false, 4).numbers(0.5)[0].1, 0.5f32.to_bits());
    }
}
