//! ATTENTION: `attention/tiles.cuh` and `attention/warpgroups.cuh`.

use super::cudnn::{Networks, Shape, id};
use super::{Call, Common, GROUP_ROWS, GROUP_THREADS, GROUPS, TILE, check, in_vectors};
use crate::launch::{Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

const TILES: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/nn/attention/rows.cuh"),
    include_str!("../../../../kernels/nn/attention/products.cuh"),
    include_str!("../../../../kernels/nn/attention/tiles.cuh"),
];
const WARPGROUPS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    headers::WGMMA,
    include_str!("../../../../kernels/nn/attention/rows.cuh"),
    include_str!("../../../../kernels/nn/attention/warpgroups.cuh"),
];

/// Number of keys from which few rows of a unit are divided among several blocks.
const SPLIT: i64 = 256;
/// Blocks per multiprocessor in this case.
const BLOCKS: u64 = 5;
/// Maximum number of thread groups in a block that joins parts, and its maximum number of threads.
const SHARES: u32 = 8;
const JOINING: u32 = 512;
/// Keys per step with warpgroups.
const GROUP_KEYS: u32 = 128;

struct Attention {
    common: Common,
    kernels: Kernels<Variant>,
    join: Kernels,
    networks: Networks,
}

/// The parameters of a compiled kernel.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    /// How products are computed.
    form: Form,
    /// True if 16 bytes are moved at once.
    vectors: bool,
    /// True if scores are scaled before they are compared.
    scaled: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Warpgroups,
    /// Tiles of rows per warp, warps, keys per step, and whether the keys of a row are split into parts, which are joined later.
    Tiles {
        tiles: u32,
        warps: u32,
        keys: u32,
        split: bool,
    },
}

/// ATTENTION.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let common = Common::of(request, 3, 2)?;
    let (kernels, join, networks) = Default::default();
    let work = Attention { common, kernels, join, networks };
    work.common.warps(|warps| work.shared(1, warps, work.keys()))?;
    Ok(Box::new(work))
}

impl Attention {
    /// Keys per step of tiles, limited by the registers for their scores.
    fn keys(&self) -> u32 {
        match (self.common.dtype, self.common.widest() <= 128) {
            (dtype, true) if dtype.is_half() => 64,
            (Dtype::Float64, _) => 16,
            _ => 32,
        }
    }

    /// Maximum number of tiles per warp, limited by the registers for their sums.
    fn most_tiles(&self) -> u32 {
        let widest = match self.common.dtype {
            Dtype::Float64 => 0,
            Dtype::Float32 => 64,
            _ => 128,
        };
        if self.common.widest() <= widest { 2 } else { 1 }
    }

    /// Bytes of shared memory of a block of tiles.
    fn shared(&self, tiles: u32, warps: u32, keys: u32) -> u32 {
        self.common.shared([TILE as u32 * tiles * warps + keys, keys])
    }

    /// How products are computed. If a unit has few rows, a single warp processes them, because other warps would be
    /// idle; its keys are split if there are many.
    fn form(&self, job: &Job<'_>, call: &Call<'_>) -> Result<Form> {
        let rows = call.span() * call.sizes[2];
        if self.common.by_groups && rows > GROUP_ROWS.into() {
            return Ok(Form::Warpgroups);
        }
        let (keys, most) = (self.keys(), self.most_tiles());
        if rows <= i64::from(most) * TILE {
            let tiles = if rows <= TILE { 1 } else { 2 };
            return Ok(Form::Tiles { tiles, warps: 1, keys, split: call.sizes[3] >= SPLIT });
        }
        if self.common.dtype == Dtype::Float32 && most == 2 && self.is_small(job, call) {
            // More blocks, each with fewer rows: the keys are walked in fewer steps.
            return Ok(Form::Tiles { tiles: 1, warps: 2, keys: 2 * keys, split: false });
        }
        let warps = self.common.warps(|warps| self.shared(most, warps, keys))?;
        // For long float32 rows, two blocks of two warps hide more latency than one block of four.
        let is_long = self.common.dtype == Dtype::Float32 && most == 1;
        let warps = if is_long { warps.min(2) } else { warps };
        Ok(Form::Tiles { tiles: most, warps, keys, split: false })
    }

    /// Returns true if there are too few blocks of 32 rows to give each multiprocessor several.
    fn is_small(&self, job: &Job<'_>, call: &Call<'_>) -> bool {
        call.blocks(2 * TILE) < 4 * u64::from(job.device.properties.multiprocessors)
    }

    /// The number of parts that the keys are split into: enough to give each multiprocessor several
    /// blocks.
    fn splits(&self, job: &Job<'_>, call: &Call<'_>, form: Form) -> i64 {
        let Form::Tiles { split: true, keys, .. } = form else { return 1 };
        let [b, h, _, n, ..] = call.sizes;
        let wanted = BLOCKS * u64::from(job.device.properties.multiprocessors);
        let units = (b * h / call.span()) as u64;
        parts(wanted.div_ceil(units), (n as u64).div_ceil(keys.into())) as i64
    }

    /// Groups of threads that share the parts of a row, and threads of each.
    fn joining(&self) -> [u32; 2] {
        let threads = self.common.sizes(false)[1].next_multiple_of(32);
        [(JOINING / threads).clamp(1, SHARES), threads]
    }

    fn kernel(&self, job: &Job<'_>, variant: Variant) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, variant, || {
            let Variant { form, vectors, scaled } = variant;
            let (d, mask) = (self.common.dtype.tag(), self.common.mask as u32);
            let [head, value] = self.common.sizes(form == Form::Warpgroups);
            let mut parameters = format!(
                "const {d}::T *q, const {d}::T *k, const {d}::T *v, const void *mask, const {d}::T *sinks, \
                 const i32 *lengths, {d}::T *out, {d}::A *lse, "
            );
            match form {
                Form::Warpgroups => {
                    let arguments = format!(
                        "{d}, {head}, {value}, {GROUPS}, {GROUP_KEYS}, {vectors}, {mask}, {scaled}"
                    );
                    parameters += "const Attention s";
                    Source::instance(WARPGROUPS, "attention_warpgroups", arguments, parameters)
                        .bounded(format!("{GROUP_THREADS}, 1"))
                }
                Form::Tiles { tiles, warps, keys, split } => {
                    let arguments = format!(
                        "{d}, {head}, {value}, {tiles}, {warps}, {keys}, {vectors}, {mask}, {scaled}, {split}"
                    );
                    parameters += &format!("{d}::A *partial, i32 splits, const Attention s");
                    Source::instance(TILES, "attention_tiles", arguments, parameters).bounded(32 * warps)
                }
            }
        })
    }

    fn join(&self, job: &Job<'_>) -> Result<Kernel> {
        self.join.get(&job.device.programs, (), || {
            let (d, [_, value]) = (self.common.dtype.tag(), self.common.sizes(false));
            let parameters = format!(
                "const {d}::A *partial, const {d}::T *v, const {d}::T *sinks, {d}::T *out, {d}::A *lse, i32 splits, \
                 const Attention s"
            );
            let [shares, threads] = self.joining();
            let arguments = format!("{d}, {value}, {shares}");
            Source::instance(TILES, "attention_join", arguments, parameters).bounded(shares * threads)
        })
    }
}

impl Attention {
    /// The shape for cuDNN, if cuDNN is to be used.
    fn shape(&self, job: &Job<'_>, call: &Call<'_>) -> Result<Option<Shape>> {
        Ok(Shape::of(&self.common, job, call, job.output(1)?, &[job.output(0)?]))
    }

    /// Returns true if cuDNN computed it.
    fn by_cudnn(&self, job: &Job<'_>, call: &Call<'_>, [out, lse]: [&View<'_>; 2]) -> Result<bool> {
        let Some(shape) = self.shape(job, call)? else { return Ok(false) };
        let Some(plan) = self.networks.plan(job, &shape) else { return Ok(false) };
        let tensors = [
            (id::Q, call.q.address),
            (id::K, call.k.address),
            (id::V, call.v.address),
            (id::OUT, out.address),
            (id::LOGARITHMS, lse.address),
        ];
        plan.run(job, &tensors, &shape.numbers(call.scale), job.scratch()?)?;
        Ok(true)
    }
}

impl Work for Attention {
    fn has_workspace(&self) -> bool {
        true
    }

    /// For each part of the keys, a row's sums, its largest score and its total.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        let call = self.common.call(job)?;
        if let Some(shape) = self.shape(job, &call)? {
            return Ok(self.networks.workspace(job, &shape));
        }
        let splits = self.splits(job, &call, self.form(job, &call)?);
        let [b, h, m, ..] = call.sizes;
        let each =
            (i64::from(self.common.sizes(false)[1]) + 2) as u64 * self.common.dtype.bytes().max(4);
        Ok(if splits > 1 { (b * h * m * splits) as u64 * each } else { 0 })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let call = self.common.call(job)?;
        let (out, lse) = (job.output(0)?, job.output(1)?);
        let [b, h, m, _, _, e] = call.sizes;
        check(out, &[b, h, m, e])?;
        check(lse, &[b, h, m])?;
        if self.by_cudnn(job, &call, [out, lse])? {
            return Ok(());
        }
        let mut form = self.form(job, &call)?;
        let parts = self.splits(job, &call, form);
        if let Form::Tiles { split, .. } = &mut form {
            *split = parts > 1;
        }
        let vectors = [call.q, call.k, call.v].into_iter().all(in_vectors);
        let kernel = self.kernel(job, Variant { form, vectors, scaled: call.scaled })?;
        let words = call.words(self.common.attributes.causal, out.strides, lse.strides);
        let ([mask, sinks, lengths], [q, k, v]) =
            (call.optional(), [call.q, call.k, call.v].map(|view| view.address));
        let (to, logarithms, splits) = (out.address, lse.address, parts as i32);
        let Form::Tiles { tiles, warps, keys, .. } = form else {
            let rows = GROUP_ROWS * GROUPS;
            let shared = self.common.shared_panels([rows + 2 * GROUP_KEYS, 2 * GROUP_KEYS]);
            let grid = Grid::exactly(call.blocks(rows.into()), GROUP_THREADS)?;
            let grid = grid.with_room(job, &kernel, shared)?;
            return launch!(job, &kernel, grid; q, k, v, mask, sinks, lengths, to, logarithms, words[..]);
        };
        let blocks = call.blocks((TILE as u32 * tiles * warps).into()) * parts as u64;
        let shared = self.shared(tiles, warps, keys);
        let main = Grid::exactly(blocks, 32 * warps)?.with_room(job, &kernel, shared)?;
        let partial = if parts > 1 { job.scratch()? } else { 0 };
        launch!(job, &kernel, main; q, k, v, mask, sinks, lengths, to, logarithms, partial, splits, words[..])?;
        if parts == 1 {
            return Ok(());
        }
        let join = self.join(job)?;
        let [shares, threads] = self.joining();
        let all = Grid::exactly((b * h * m) as u64, shares * threads)?;
        launch!(job, &join, all; partial, v, sinks, to, logarithms, splits, words[..])
    }
}

/// The number of equal parts of `blocks` blocks of keys: at most `wanted`, and without empty parts.
fn parts(wanted: u64, blocks: u64) -> u64 {
    let each = blocks.div_ceil(wanted.clamp(1, blocks));
    blocks.div_ceil(each)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn no_part_of_the_keys_is_empty() {
        assert_eq!(parts(83, 33), 33);
        assert_eq!(parts(32, 33), 17);
        assert_eq!(parts(83, 125), 63);
        assert_eq!((parts(0, 5), parts(1, 5), parts(9, 1)), (1, 1, 1));
        for (wanted, blocks) in (1..40).flat_map(|w| (1..40).map(move |b| (w, b))) {
            let (found, each) = (parts(wanted, blocks), blocks.div_ceil(parts(wanted, blocks)));
            assert!(found <= wanted && (found - 1) * each < blocks && found * each >= blocks);
        }
    }
}
