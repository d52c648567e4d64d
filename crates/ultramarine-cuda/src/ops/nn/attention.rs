//! ATTENTION and its gradient, of halves by tensor cores.

use crate::launch::{Dtype, Grid, Job, OpRequest, View, Work, allow_shared, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AttentionAttrs;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    include_str!("../../../kernels/mma.cuh"),
    include_str!("../../../kernels/nn/attention.cuh"),
];

/// Largest sizes of queries and values together: what registers hold of them.
const MOST: u32 = 512;
/// Rows of a tensor core's product.
const TILE: i64 = 16;

/// The kinds of masks, as `attention.cuh` has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mask {
    None,
    Bools,
    Numbers,
}

struct Attention {
    dtype: Dtype,
    attributes: AttentionAttrs,
    mask: Mask,
    /// By whether 16 bytes are moved at once, and whether scores are scaled before they are compared; and whether rows are few.
    kernels: Kernels<(bool, bool, bool)>,
}

/// How a block is cut.
struct Cut {
    /// Tiles of rows of a warp, warps, and keys.
    tiles: u32,
    warps: u32,
    keys: u32,
}

/// ATTENTION.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: AttentionAttrs = request.attributes()?;
    let AttentionAttrs { mask, sinks, lengths, head_size, value_size, .. } = attributes;
    let dtype = request.input(0)?.dtype;
    let count = 3 + mask + sinks + lengths;
    if request.inputs.len() != count as usize || request.outputs.len() != 2 {
        return Err(Failure::invalid(format!("attention with {} inputs", request.inputs.len())));
    }
    if !matches!(dtype, Dtype::Float16 | Dtype::Bfloat16) {
        return Err(Failure::unsupported("attention of other dtypes than halves"));
    }
    if !(1..=256).contains(&head_size) || !(1..=256).contains(&value_size) {
        return Err(Failure::unsupported(format!(
            "attention with heads of {head_size} and {value_size}: there are kernels up to {}",
            MOST / 2
        )));
    }
    let mask = match (mask, request.input(3).map(|d| d.dtype)) {
        (0, _) => Mask::None,
        (_, Ok(Dtype::Bool)) => Mask::Bools,
        (_, Ok(other)) if other == dtype => Mask::Numbers,
        _ => return Err(Failure::unsupported("a mask of another dtype")),
    };
    Ok(Box::new(Attention { dtype, attributes, mask, kernels: Kernels::default() }))
}

fn padded(size: u32) -> u32 {
    size.next_multiple_of(16)
}

impl Attention {
    /// For few rows one tile: others would be empty. Large heads leave registers for one, too.
    fn cut(&self, few: bool) -> Cut {
        let widest = padded(self.attributes.head_size).max(padded(self.attributes.value_size));
        match (few, widest) {
            (true, ..=128) => Cut { tiles: 1, warps: 1, keys: 64 },
            (true, _) => Cut { tiles: 1, warps: 1, keys: 32 },
            (false, ..=128) => Cut { tiles: 2, warps: 4, keys: 64 },
            (false, _) => Cut { tiles: 1, warps: 4, keys: 32 },
        }
    }

    fn kernel(
        &self,
        job: &Job<'_>,
        key @ (vectors, scaled, few): (bool, bool, bool),
    ) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, key, || {
            let d = self.dtype.tag();
            let (head, value) = (padded(self.attributes.head_size), padded(self.attributes.value_size));
            let Cut { tiles, warps, keys } = self.cut(few);
            let mask = self.mask as u32;
            let arguments =
                format!("{d}, {head}, {value}, {tiles}, {warps}, {keys}, {vectors}, {mask}, {scaled}");
            let parameters = format!(
                "const {d}::T *q, const {d}::T *k, const {d}::T *v, const void *mask, const {d}::T *sinks, \
                 const i32 *lengths, {d}::T *out, float *lse, const Attention s"
            );
            Source::instance(HEADERS, "attention_halves", arguments, parameters)
                .bounded(32 * warps)
        })
    }

    /// Bytes of shared memory: the rows of queries, keys and values, which are 16 bytes apart so that no two of
    /// eight are in one bank.
    fn shared(&self, cut: &Cut) -> u32 {
        let (head, value) = (padded(self.attributes.head_size), padded(self.attributes.value_size));
        let rows = cut.warps * cut.tiles * 16 + cut.keys;
        2 * (rows * (head + 8) + cut.keys * (value + 8))
    }
}

/// A tensor whose rows can be moved 16 bytes at a time.
fn in_vectors(view: &View<'_>) -> bool {
    let strides = view.shape.iter().zip(view.strides).take(3).filter(|(n, _)| **n > 1);
    view.strides[3] == 1
        && view.shape[3] % 8 == 0
        && view.is_aligned(16)
        && strides.into_iter().all(|(_, s)| s % 8 == 0)
}

/// A word of two 32-bit values.
fn pair(low: i64, high: i64) -> i64 {
    (low & 0xffff_ffff) | high << 32
}

impl Work for Attention {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let [q, k, v] = [job.input(0)?, job.input(1)?, job.input(2)?];
        let (out, lse) = (job.output(0)?, job.output(1)?);
        let mut next = 3;
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
            && four(out)? == [b, h, m, e]
            && lse.shape == [b, h, m]
            && h == heads * group
            && mask.is_none_or(|mask| mask.shape == [b, h, m, n])
            && sinks.is_none_or(|sinks| sinks.shape == [b, h])
            && lengths.is_none_or(|lengths| lengths.shape == [b])
            && d == i64::from(self.attributes.head_size)
            && e == i64::from(self.attributes.value_size);
        if !fits {
            return Err(Failure::invalid(format!(
                "attention of {:?}, {:?} and {:?} into {:?}",
                q.shape, k.shape, v.shape, out.shape
            )));
        }
        if b * h * m.max(n) > i64::from(i32::MAX) {
            return Err(Failure::invalid("attention over more rows than 32 bits count"));
        }
        // The queries of a key head's heads fill tiles together where those of one do not.
        let span = if m < 4 * TILE { group } else { 1 };
        let rows = span * m;
        let few = rows <= TILE;
        let cut = self.cut(few);
        let scale = f64::from_bits(job.scalar(0)?);
        let scaled = self.mask == Mask::Numbers || scale <= 0.0;
        let vectors = [q, k, v].into_iter().all(in_vectors);
        let kernel = self.kernel(job, (vectors, scaled, few))?;
        let block = i64::from(cut.tiles * cut.warps) * TILE;
        let blocks = (rows + block - 1) / block * (b * h / span);
        let scales =
            [scale, scale * std::f64::consts::LOG2_E].map(|s| i64::from((s as f32).to_bits()));
        let mut words = vec![
            pair(b * h / span, span),
            pair(h, group),
            pair(m, n),
            pair(d, e),
            pair(self.attributes.causal.into(), scales[0]),
            pair(scales[1], 0),
        ];
        let optional = |view: Option<&View<'_>>, rank: usize| match view {
            Some(view) => view.strides.to_vec(),
            None => vec![0; rank],
        };
        for strides in [q.strides, k.strides, v.strides, out.strides, lse.strides] {
            words.extend_from_slice(strides);
        }
        words.extend(optional(mask, 4));
        words.extend(optional(sinks, 2));
        words.extend(optional(lengths, 1));
        let address = |view: Option<&View<'_>>| view.map_or(0, |view| view.address);
        let (mask, sinks, lengths) = (address(mask), address(sinks), address(lengths));
        let shared = self.shared(&cut);
        if shared > job.device.properties.shared_per_block {
            let _entered = job.device.enter()?;
            allow_shared(job.device.driver, kernel.handle(), shared)?;
        }
        let grid = Grid::exactly(blocks as u64, 32 * cut.warps)?.with_shared(shared);
        launch!(job, &kernel, grid; q.address, k.address, v.address, mask, sinks, lengths, out.address, lse.address,
            words[..])
    }
}

/// The sizes of a tensor of four axes.
fn four(view: &View<'_>) -> Result<[i64; 4]> {
    view.shape.try_into().map_err(|_| {
        Failure::invalid(format!("attention of a tensor of {} axes", view.shape.len()))
    })
}
