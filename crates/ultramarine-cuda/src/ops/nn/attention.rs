//! ATTENTION of halves by tensor cores, and what its gradient has in common with it.

use crate::launch::{Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AttentionAttrs;

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::MMA, include_str!("../../../kernels/nn/attention.cuh")];

/// Largest size of a query or a value: registers hold a row of sums.
const MOST: u32 = 256;
/// Rows of a tensor core's product.
pub const TILE: i64 = 16;

/// Keys from which the few rows of a unit get more than one block.
const SPLIT: i64 = 256;
/// Blocks of a processor, then.
const BLOCKS: i64 = 5;

/// The kinds of masks, as `attention.cuh` has them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    None,
    Bools,
    Numbers,
}

/// The common part of both operations' plans.
pub struct Common {
    pub dtype: Dtype,
    pub attributes: AttentionAttrs,
    pub mask: Mask,
    /// The place of the first operand that may be absent.
    optional: usize,
}

impl Common {
    /// Of a request whose operands that are always there are so many.
    pub fn of(request: &OpRequest<'_>, optional: usize, outputs: usize) -> Result<Common> {
        let attributes: AttentionAttrs = request.attributes()?;
        let AttentionAttrs { mask, sinks, lengths, head_size, value_size, .. } = attributes;
        let dtype = request.input(0)?.dtype;
        let count = optional + (mask + sinks + lengths) as usize;
        if request.inputs.len() != count || request.outputs.len() != outputs {
            let text = format!("attention with {} inputs", request.inputs.len());
            return Err(Failure::invalid(text));
        }
        if !dtype.is_half() {
            return Err(Failure::unsupported("attention of other dtypes than halves"));
        }
        if [head_size, value_size].iter().any(|size| !(1..=MOST).contains(size)) {
            return Err(Failure::unsupported(format!(
                "attention with heads of {head_size} and {value_size}: there are kernels up to {MOST}"
            )));
        }
        let mask = match (mask, request.input(optional).map(|d| d.dtype)) {
            (0, _) => Mask::None,
            (_, Ok(Dtype::Bool)) => Mask::Bools,
            (_, Ok(other)) if other == dtype => Mask::Numbers,
            _ => return Err(Failure::unsupported("a mask of another dtype")),
        };
        Ok(Common { dtype, attributes, mask, optional })
    }

    /// Columns of the tiles that hold a query, and a value.
    pub fn columns(&self) -> [u32; 2] {
        [self.attributes.head_size, self.attributes.value_size].map(|n| n.next_multiple_of(16))
    }

    /// Both are small enough for blocks of full size.
    pub fn is_narrow(&self) -> bool {
        self.columns().iter().all(|n| *n <= 128)
    }

    /// Bytes of shared memory for so many rows of queries (or keys), and of values. Rows are 16 bytes longer than they
    /// have to be, so that no two of eight begin in one bank.
    pub fn shared(&self, rows: [u32; 2]) -> u32 {
        let [head, value] = self.columns();
        2 * (rows[0] * (head + 8) + rows[1] * (value + 8))
    }

    /// The request of a command.
    pub fn call<'a>(&self, job: &'a Job<'_>) -> Result<Call<'a>> {
        let [q, k, v] = [job.input(0)?, job.input(1)?, job.input(2)?];
        let mut next = self.optional;
        let mut optional = |there: u32| -> Result<Option<&View<'_>>> {
            let found = if there == 1 { Some(job.input(next)?) } else { None };
            next += there as usize;
            Ok(found)
        };
        let mask = optional(self.attributes.mask)?;
        let sinks = optional(self.attributes.sinks)?;
        let lengths = optional(self.attributes.lengths)?;
        let ([b, h, m, d], [_, heads, n, _]) = (four(q)?, four(k)?);
        let (e, group) = (four(v)?[3], i64::from(self.attributes.group));
        let fits = four(k)? == [b, heads, n, d]
            && four(v)? == [b, heads, n, e]
            && h == heads * group
            && mask.is_none_or(|mask| mask.shape == [b, h, m, n])
            && sinks.is_none_or(|sinks| sinks.shape == [b, h])
            && lengths.is_none_or(|lengths| lengths.shape == [b])
            && d == i64::from(self.attributes.head_size)
            && e == i64::from(self.attributes.value_size);
        if !fits {
            return Err(Failure::invalid(format!(
                "attention of {:?}, {:?} and {:?}",
                q.shape, k.shape, v.shape
            )));
        }
        if b * h * m.max(n) > i64::from(i32::MAX) {
            return Err(Failure::invalid("attention over more rows than 32 bits count"));
        }
        let scale = f64::from_bits(job.scalar(0)?);
        let scaled = self.mask == Mask::Numbers || scale <= 0.0;
        Ok(Call { sizes: [b, h, m, n, d, e], group, scale, scaled, q, k, v, mask, sinks, lengths })
    }
}

/// The operands of a command.
pub struct Call<'a> {
    /// Batches, heads, queries, keys, and the sizes of queries and values.
    pub sizes: [i64; 6],
    pub group: i64,
    scale: f64,
    /// Scores are scaled before they are compared.
    pub scaled: bool,
    pub q: &'a View<'a>,
    pub k: &'a View<'a>,
    pub v: &'a View<'a>,
    mask: Option<&'a View<'a>>,
    sinks: Option<&'a View<'a>>,
    lengths: Option<&'a View<'a>>,
}

impl Call<'_> {
    /// Heads whose queries fill tiles together: those of one do not where they are few.
    pub fn span(&self) -> i64 {
        if self.sizes[2] < 4 * TILE { self.group } else { 1 }
    }

    /// Blocks of so many rows, for all units.
    pub fn blocks(&self, rows: i64) -> u64 {
        let [b, h, m, ..] = self.sizes;
        ((self.span() * m + rows - 1) / rows * (b * h / self.span())) as u64
    }

    /// `Attention` of `attention.cuh`, with the strides of a result and of its logarithms.
    pub fn words(&self, causal: u32, out: &[i64], logarithms: &[i64]) -> Vec<i64> {
        let [b, h, m, n, d, e] = self.sizes;
        let scales = [self.scale, self.scale * std::f64::consts::LOG2_E];
        let [scale, log2_scale] = scales.map(|s| i64::from((s as f32).to_bits()));
        let mut words = vec![
            pair(b, self.span()),
            pair(h, self.group),
            pair(m, n),
            pair(d, e),
            pair(causal.into(), scale),
            log2_scale,
        ];
        for strides in [self.q.strides, self.k.strides, self.v.strides, out, logarithms] {
            words.extend_from_slice(strides);
        }
        for (view, rank) in [(self.mask, 4), (self.sinks, 2), (self.lengths, 1)] {
            words.extend(view.map_or(vec![0; rank], |view| view.strides.to_vec()));
        }
        words
    }

    /// The addresses of mask, sinks and lengths; 0 for those that are absent.
    pub fn optional(&self) -> [u64; 3] {
        [self.mask, self.sinks, self.lengths].map(|view| view.map_or(0, |view| view.address))
    }
}

/// True if the rows of a tensor can be moved 16 bytes at a time.
pub fn in_vectors(view: &View<'_>) -> bool {
    let mut strides = view.shape.iter().zip(view.strides).take(3).filter(|(n, _)| **n > 1);
    view.strides[3] == 1
        && view.shape[3] % 8 == 0
        && view.is_aligned(16)
        && strides.all(|(_, s)| s % 8 == 0)
}

/// A word of two 32-bit values.
fn pair(low: i64, high: i64) -> i64 {
    (low & 0xffff_ffff) | high << 32
}

/// The sizes of a tensor of four axes.
fn four(view: &View<'_>) -> Result<[i64; 4]> {
    view.shape.try_into().map_err(|_| {
        Failure::invalid(format!("attention of a tensor of {} axes", view.shape.len()))
    })
}

/// Checks the shape of a further tensor.
pub fn check(view: &View<'_>, shape: &[i64]) -> Result<()> {
    match view.shape == shape {
        true => Ok(()),
        false => Err(Failure::invalid(format!(
            "attention with a tensor {:?} in place of {shape:?}",
            view.shape
        ))),
    }
}

struct Attention {
    common: Common,
    kernels: Kernels<Variant>,
    join: Kernels,
}

/// The parameters of a compiled kernel.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    /// 16 bytes are moved at once.
    vectors: bool,
    /// Scores are scaled before they are compared.
    scaled: bool,
    /// Tiles of rows of a warp, warps, and keys at a time.
    tiles: u32,
    warps: u32,
    keys: u32,
    /// The keys of a row are cut into parts, which are joined later.
    split: bool,
}

/// ATTENTION.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let common = Common::of(request, 3, 2)?;
    Ok(Box::new(Attention { common, kernels: Kernels::default(), join: Kernels::default() }))
}

impl Attention {
    /// A warp with the rows of a unit, where they are few: others would be empty. Its keys are cut, if they are many.
    /// Large heads leave registers for one tile.
    fn variant(&self, call: &Call<'_>) -> Variant {
        let rows = call.span() * call.sizes[2];
        let narrow = self.common.is_narrow();
        let few = rows <= if narrow { 2 * TILE } else { TILE };
        let (tiles, warps) = match (few, narrow) {
            (true, _) => (if rows <= TILE { 1 } else { 2 }, 1),
            (false, true) => (2, 4),
            (false, false) => (1, 4),
        };
        Variant {
            vectors: [call.q, call.k, call.v].into_iter().all(in_vectors),
            scaled: call.scaled,
            tiles,
            warps,
            keys: if narrow { 64 } else { 32 },
            split: few && call.sizes[3] >= SPLIT,
        }
    }

    /// The parts of the keys: as many as give each processor some blocks.
    fn splits(&self, job: &Job<'_>, call: &Call<'_>, variant: &Variant) -> i64 {
        if !variant.split {
            return 1;
        }
        let [b, h, _, n, ..] = call.sizes;
        let wanted = BLOCKS * i64::from(job.device.properties.multiprocessors);
        let units = b * h / call.span();
        ((wanted + units - 1) / units).clamp(1, n / i64::from(variant.keys))
    }

    fn kernel(&self, job: &Job<'_>, variant: Variant) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, variant, || {
            let Variant { vectors, scaled, tiles, warps, keys, split } = variant;
            let (d, [head, value]) = (self.common.dtype.tag(), self.common.columns());
            let mask = self.common.mask as u32;
            let arguments = format!(
                "{d}, {head}, {value}, {tiles}, {warps}, {keys}, {vectors}, {mask}, {scaled}, {split}"
            );
            let parameters = format!(
                "const {d}::T *q, const {d}::T *k, const {d}::T *v, const void *mask, const {d}::T *sinks, \
                 const i32 *lengths, {d}::T *out, float *lse, float *partial, i32 splits, const Attention s"
            );
            Source::instance(HEADERS, "attention_halves", arguments, parameters).bounded(32 * warps)
        })
    }

    fn join(&self, job: &Job<'_>) -> Result<Kernel> {
        self.join.get(&job.device.programs, (), || {
            let (d, [_, value]) = (self.common.dtype.tag(), self.common.columns());
            let parameters = format!(
                "const float *partial, const {d}::T *v, const {d}::T *sinks, {d}::T *out, float *lse, i32 splits, \
                 const Attention s"
            );
            Source::instance(HEADERS, "attention_join", format!("{d}, {value}"), parameters)
        })
    }
}

impl Work for Attention {
    fn has_workspace(&self) -> bool {
        true
    }

    /// A row's sums of each part of the keys, and their largest score and total.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let call = self.common.call(job)?;
        let splits = self.splits(job, &call, &self.variant(&call));
        let [b, h, m, ..] = call.sizes;
        let each = i64::from(self.common.columns()[1]) + 2;
        Ok(if splits > 1 { (b * h * m * splits * each * 4) as u64 } else { 0 })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let call = self.common.call(job)?;
        let (out, lse) = (job.output(0)?, job.output(1)?);
        let [b, h, m, _, _, e] = call.sizes;
        check(out, &[b, h, m, e])?;
        check(lse, &[b, h, m])?;
        let mut variant = self.variant(&call);
        let parts = self.splits(job, &call, &variant);
        variant.split = parts > 1;
        let kernel = self.kernel(job, variant)?;
        let Variant { tiles, warps, keys, .. } = variant;
        let rows = 16 * tiles * warps;
        let shared = self.common.shared([rows + keys, keys]);
        let blocks = call.blocks(rows.into()) * parts as u64;
        let main = Grid::exactly(blocks, 32 * warps)?.with_room(job, &kernel, shared)?;
        let words = call.words(self.common.attributes.causal, out.strides, lse.strides);
        let ([mask, sinks, lengths], [q, k, v]) =
            (call.optional(), [call.q, call.k, call.v].map(|view| view.address));
        let (to, logarithms, splits) = (out.address, lse.address, parts as i32);
        let partial = if parts > 1 { job.scratch()? } else { 0 };
        launch!(job, &kernel, main; q, k, v, mask, sinks, lengths, to, logarithms, partial, splits, words[..])?;
        if parts == 1 {
            return Ok(());
        }
        let join = self.join(job)?;
        let threads = self.common.columns()[1].next_multiple_of(32);
        let all = Grid::exactly((b * h * m) as u64, threads)?;
        launch!(job, &join, all; partial, v, sinks, to, logarithms, splits, words[..])
    }
}
