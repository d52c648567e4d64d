//! ATTENTION_GRADIENT: one launch for keys and values, and one for queries
//! (`attention/gradient_tiles.cuh`, `attention/gradient_warpgroups.cuh`).

use super::cudnn::{Networks, Scratch, Shape, id};
use super::{Call, Common, GROUP_ROWS, GROUP_THREADS, GROUPS, TILE, check, in_vectors};
use crate::launch::{Dtype, Grid, Job, OpRequest, Work, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

const TILES: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/nn/attention/rows.cuh"),
    include_str!("../../../../kernels/nn/attention/products.cuh"),
    include_str!("../../../../kernels/nn/attention/gradient.cuh"),
    include_str!("../../../../kernels/nn/attention/gradient_tiles.cuh"),
];
const WARPGROUPS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    headers::WGMMA,
    include_str!("../../../../kernels/nn/attention/rows.cuh"),
    include_str!("../../../../kernels/nn/attention/gradient.cuh"),
    include_str!("../../../../kernels/nn/attention/gradient_warpgroups.cuh"),
];

const PROJECTION: &[&str] =
    &[headers::NUMBER, include_str!("../../../../kernels/nn/attention/projection.cuh")];

/// Threads per row in `attention/projection.cuh`, and threads of a block.
const PROJECTING: u64 = 8;
const PROJECTING_BLOCK: u32 = 256;

/// Queries or keys per step with warpgroups.
const GROUP_STEP: [u32; 2] = [64, 128];

struct Gradient {
    common: Common,
    kernels: Kernels<Variant>,
    projection: Kernels,
    networks: Networks,
}

/// The parameters of a compiled kernel.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    /// True for sums over queries, which give the gradients with respect to keys and values.
    by_keys: bool,
    /// True if warpgroups compute the products.
    by_groups: bool,
    vectors: bool,
    /// True if scores are scaled first.
    scaled: bool,
}

/// Rows of a block, threads, and rows of the other side that it processes at a time.
struct Block {
    rows: u32,
    threads: u32,
    step: u32,
    shared: u32,
}

/// ATTENTION_GRADIENT.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let common = Common::of(request, 6, 3)?;
    let (kernels, projection, networks) = Default::default();
    let work = Gradient { common, kernels, projection, networks };
    for by_keys in [true, false] {
        work.block(by_keys, false)?;
    }
    Ok(Box::new(work))
}

impl Gradient {
    /// Tiles of queries per warp. For short rows of sums, a tile with more keys is faster; for long rows, more
    /// tiles do not fit in registers.
    fn tiles(&self) -> u32 {
        let is_middling = (65..=128).contains(&self.common.widest());
        if self.common.dtype.is_half() && is_middling { 2 } else { 1 }
    }

    fn block(&self, by_keys: bool, by_groups: bool) -> Result<Block> {
        if by_groups {
            let (rows, step) = (GROUP_ROWS * GROUPS, GROUP_STEP[usize::from(!by_keys)]);
            let shared = self.common.shared_panels([rows + 2 * step; 2]);
            return Ok(Block { rows, threads: GROUP_THREADS, step, shared });
        }
        // The part of the scores that fits in registers.
        let step = match (self.common.dtype, self.common.widest() <= 128) {
            (Dtype::Float64, _) => 16,
            (Dtype::Float32, _) if self.common.widest() > 64 => 16,
            (dtype, true) if dtype.is_half() && (by_keys || self.tiles() == 1) => 64,
            _ => 32,
        };
        let tiles = if by_keys { 1 } else { self.tiles() };
        let rows = |warps: u32| TILE as u32 * tiles * warps;
        let shared = |warps: u32| self.common.shared([rows(warps) + 2 * step; 2]);
        let warps = self.common.warps(shared)?;
        Ok(Block { rows: rows(warps), threads: 32 * warps, step, shared: shared(warps) })
    }

    fn kernel(&self, job: &Job<'_>, variant: Variant, block: &Block) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, variant, || {
            let Variant { by_keys, by_groups, vectors, scaled } = variant;
            let (d, [head, value]) = (self.common.dtype.tag(), self.common.sizes(by_groups));
            let (step, warps, mask) = (block.step, block.threads / 32, self.common.mask as u32);
            let size = match (by_groups, by_keys) {
                (true, _) => format!("{GROUPS}"),
                (false, true) => format!("{warps}"),
                (false, false) => format!("{}, {warps}", self.tiles()),
            };
            let arguments = format!("{d}, {head}, {value}, {size}, {step}, {vectors}, {mask}, {scaled}");
            let results = match by_keys {
                true => format!("{d}::T *dk, {d}::T *dv"),
                false => format!("{d}::T *dq"),
            };
            let parameters = format!(
                "const {d}::T *q, const {d}::T *k, const {d}::T *v, const void *mask, const i32 *lengths, \
                 const {d}::T *ct, const {d}::A *logarithms, const {d}::A *delta, {results}, const Attention s, \
                 const Gradient g"
            );
            let (headers, template) = match (by_groups, by_keys) {
                (true, true) => (WARPGROUPS, "attention_by_keys_warpgroups"),
                (true, false) => (WARPGROUPS, "attention_by_queries_warpgroups"),
                (false, true) => (TILES, "attention_by_keys"),
                (false, false) => (TILES, "attention_by_queries"),
            };
            let bounds = format!("{}, 1", block.threads);
            Source::instance(headers, template, arguments, parameters)
                .guarded("const u32 *only", "!only || *only")
                .bounded(bounds)
        })
    }

    /// True if warpgroups are worth it, because both sides fill their rows.
    fn by_groups(&self, call: &Call<'_>) -> bool {
        let rows = (call.span() * call.sizes[2]).min(call.sizes[3]);
        self.common.by_groups && rows > GROUP_ROWS.into()
    }
}

impl Gradient {
    /// The shape for cuDNN, if cuDNN is to be used.
    fn shape(&self, job: &Job<'_>, call: &Call<'_>) -> Result<Option<Shape>> {
        let others = [job.input(3)?, job.output(0)?, job.output(1)?, job.output(2)?];
        Ok(Shape::of(&self.common, job, call, job.input(4)?, &others))
    }

    /// Lets cuDNN compute the gradient. cuDNN computes delta from the cotangent and the result of the forward pass, which the
    /// command does not have. It gets a stand-in for the result that gives the same delta. Returns the address of a word that
    /// is 0 if such a stand-in exists for all rows, or returns 0 if cuDNN did nothing.
    fn by_cudnn(&self, job: &Job<'_>, call: &Call<'_>) -> Result<u64> {
        let Some(shape) = self.shape(job, call)? else { return Ok(0) };
        let Some(plan) = self.networks.plan(job, &shape) else { return Ok(0) };
        let (places, _) = Scratch::at(job.scratch()?, &shape);
        let [ct, logarithms, delta] = [job.input(3)?, job.input(4)?, job.input(5)?];
        // SAFETY: the word is in the workspace.
        unsafe { job.fill(places.failed, 0, 4, 1) }?;
        let kernel = self.projection.get(&job.device.programs, (), || {
            let d = self.common.dtype.tag();
            let parameters = format!(
                "const {d}::T *ct, const float *delta, {d}::T *out, u32 *failed, const Projection s"
            );
            Source::instance(PROJECTION, "attention_project", d, parameters)
                .bounded(PROJECTING_BLOCK)
        })?;
        let [b, h, m, .., e] = call.sizes;
        let mut words = vec![b * h * m, h, m, e];
        words.extend_from_slice(ct.strides);
        words.extend_from_slice(delta.strides);
        let blocks = (PROJECTING * (b * h * m) as u64).div_ceil(PROJECTING_BLOCK.into());
        let grid = Grid::exactly(blocks, PROJECTING_BLOCK)?;
        let (from, by, to, failed) = (ct.address, delta.address, places.out, places.failed);
        launch!(job, &kernel, grid; from, by, to, failed, words[..])?;
        let tensors = [
            (id::Q, call.q.address),
            (id::K, call.k.address),
            (id::V, call.v.address),
            (id::OUT, places.out),
            (id::LOGARITHMS, logarithms.address),
            (id::CT, ct.address),
            (id::DQ, job.output(0)?.address),
            (id::DK, job.output(1)?.address),
            (id::DV, job.output(2)?.address),
            (id::DELTA, places.delta),
            (id::SUMS, places.sums),
        ];
        plan.run(job, &tensors, &shape.numbers(call.scale), places.own)?;
        Ok(places.failed)
    }
}

impl Work for Gradient {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        let shape = self.shape(job, &self.common.call(job)?)?;
        Ok(shape.map_or(0, |shape| self.networks.workspace(job, &shape)))
    }

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
        // If cuDNN was enqueued, this crate's kernels run only if the word says that cuDNN's result
        // is not valid.
        let only = self.by_cudnn(job, &call)?;
        let words = call.words(self.common.attributes.causal, &[0; 4], &[0; 3]);
        let mut more = Vec::new();
        for view in [ct, logarithms, delta, dq, dk, dv] {
            more.extend_from_slice(view.strides);
        }
        let [mask, _, lengths] = call.optional();
        let by_groups = self.by_groups(&call);
        let vectors = [call.q, call.k, call.v, ct].into_iter().all(in_vectors);
        let [q, k, v] = [call.q, call.k, call.v].map(|view| view.address);
        let [ct, logarithms, delta] = [ct, logarithms, delta].map(|view| view.address);
        let [dq, dk, dv] = [dq, dk, dv].map(|view| view.address);

        let mut variant = Variant { by_keys: true, by_groups, vectors, scaled: call.scaled };
        let block = self.block(true, by_groups)?;
        let kernel = self.kernel(job, variant, &block)?;
        let blocks = (n as u64).div_ceil(block.rows.into()) * (b * heads) as u64;
        let grid = Grid::exactly(blocks, block.threads)?.with_room(job, &kernel, block.shared)?;
        launch!(job, &kernel, grid; q, k, v, mask, lengths, ct, logarithms, delta, dk, dv, words[..], more[..], only)?;

        variant.by_keys = false;
        let block = self.block(false, by_groups)?;
        let kernel = self.kernel(job, variant, &block)?;
        let grid = Grid::exactly(call.blocks(block.rows.into()), block.threads)?;
        let grid = grid.with_room(job, &kernel, block.shared)?;
        launch!(job, &kernel, grid; q, k, v, mask, lengths, ct, logarithms, delta, dq, words[..], more[..], only)
    }
}
