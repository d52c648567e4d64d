//! ATTENTION_GRADIENT of halves by tensor cores: a launch for keys and values, one for queries.

use super::attention::{Common, check, in_vectors};
use crate::launch::{Grid, Job, OpRequest, Work, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../kernels/nn/attention.cuh"),
    include_str!("../../../kernels/nn/attention_gradient.cuh"),
];

/// Warps of a block. Each has 16 keys, or one or two times 16 queries.
const WARPS: u32 = 4;

struct Gradient {
    common: Common,
    /// By whether it is the one by keys, whether 16 bytes are moved at once, and whether scores are scaled first.
    kernels: Kernels<(bool, bool, bool)>,
}

/// ATTENTION_GRADIENT.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let common = Common::of(request, 6, 3)?;
    Ok(Box::new(Gradient { common, kernels: Kernels::default() }))
}

impl Gradient {
    /// Tiles of queries of a warp. Where a row of sums is short, one with more keys is faster; where it is long,
    /// registers hold no more.
    fn tiles(&self) -> u32 {
        let widest = self.common.columns().into_iter().max();
        if (65..=128).contains(&widest.unwrap_or(0)) { 2 } else { 1 }
    }

    /// Rows of the other side that a block handles at a time: what registers hold of scores.
    fn step(&self, by_keys: bool) -> u32 {
        if self.common.is_narrow() && (by_keys || self.tiles() == 1) { 64 } else { 32 }
    }

    fn kernel(
        &self,
        job: &Job<'_>,
        key @ (by_keys, vectors, scaled): (bool, bool, bool),
    ) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, key, || {
            let (d, [head, value]) = (self.common.dtype.tag(), self.common.columns());
            let (step, mask) = (self.step(by_keys), self.common.mask as u32);
            let tiles = if by_keys { String::new() } else { format!("{}, ", self.tiles()) };
            let arguments =
                format!("{d}, {head}, {value}, {tiles}{WARPS}, {step}, {vectors}, {mask}, {scaled}");
            let results = match by_keys {
                true => format!("{d}::T *dk, {d}::T *dv"),
                false => format!("{d}::T *dq"),
            };
            let parameters = format!(
                "const {d}::T *q, const {d}::T *k, const {d}::T *v, const void *mask, const i32 *lengths, \
                 const {d}::T *ct, const float *logarithms, const float *delta, {results}, const Attention s, \
                 const Gradient g"
            );
            let template = if by_keys { "attention_by_keys" } else { "attention_by_queries" };
            Source::instance(HEADERS, template, arguments, parameters).bounded(32 * WARPS)
        })
    }
}

impl Work for Gradient {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let call = self.common.call(job)?;
        let [ct, logarithms, delta] = [job.input(3)?, job.input(4)?, job.input(5)?];
        let [dq, dk, dv] = [job.output(0)?, job.output(1)?, job.output(2)?];
        let [b, h, m, n, d, e] = call.sizes;
        let heads = h / call.group;
        check(ct, &[b, h, m, e])?;
        check(logarithms, &[b, h, m])?;
        check(delta, &[b, h, m])?;
        check(dq, &[b, h, m, d])?;
        check(dk, &[b, heads, n, d])?;
        check(dv, &[b, heads, n, e])?;
        let vectors = [call.q, call.k, call.v, ct].into_iter().all(in_vectors);
        let words = call.words(self.common.attributes.causal, &[0; 4], &[0; 3]);
        let mut more = Vec::new();
        for view in [ct, logarithms, delta, dq, dk, dv] {
            more.extend_from_slice(view.strides);
        }
        let [mask, _, lengths] = call.optional();
        let [q, k, v] = [call.q, call.k, call.v].map(|view| view.address);
        let [ct, logarithms, delta] = [ct, logarithms, delta].map(|view| view.address);
        let [dq, dk, dv] = [dq, dk, dv].map(|view| view.address);
        let rows = 16 * WARPS;
        let shared = self.common.shared([rows + 2 * self.step(true); 2]);
        let kernel = self.kernel(job, (true, vectors, call.scaled))?;
        let blocks = (n as u64).div_ceil(rows.into()) * (b * heads) as u64;
        let by_keys = Grid::exactly(blocks, 32 * WARPS)?.with_room(job, &kernel, shared)?;
        launch!(job, &kernel, by_keys; q, k, v, mask, lengths, ct, logarithms, delta, dk, dv, words[..], more[..])?;

        let kernel = self.kernel(job, (false, vectors, call.scaled))?;
        let rows = rows * self.tiles();
        let shared = self.common.shared([rows + 2 * self.step(false); 2]);
        let blocks = call.blocks(rows.into());
        let by_queries = Grid::exactly(blocks, 32 * WARPS)?.with_room(job, &kernel, shared)?;
        launch!(job, &kernel, by_queries; q, k, v, mask, lengths, ct, logarithms, delta, dq, words[..], more[..])
    }
}
