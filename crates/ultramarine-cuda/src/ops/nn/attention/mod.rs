//! ATTENTION and its gradient, in blocks of queries and keys. This module has the parts that both
//! share; `forward.rs` and `gradient.rs` have this crate's kernels, `cudnn.rs` uses the library.

mod cudnn;
pub mod forward;
pub mod gradient;

use crate::launch::{Dtype, Job, OpRequest, View};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AttentionAttrs;

/// Maximum size of a query or a value, limited by the registers for a row of sums.
const MOST: u32 = 256;
/// Rows of a warp-level product.
const TILE: i64 = 16;

/// Rows of a warpgroup's product, and columns of the panels of its operands.
const GROUP_ROWS: u32 = 64;
/// Warpgroups per block.
const GROUPS: u32 = 2;
/// Threads of these warpgroups.
const GROUP_THREADS: u32 = 128 * GROUPS;
/// Maximum size of a query or a value with warpgroups.
const GROUP_MOST: u32 = 128;
/// Alignment of panels in shared memory; as many additional bytes are requested.
const ALIGNMENT: u32 = 1024;

/// The kinds of masks, as in `attention/rows.cuh`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    None,
    Bools,
    Numbers,
}

/// The common parts of both operations' plans.
struct Common {
    dtype: Dtype,
    attributes: AttentionAttrs,
    mask: Mask,
    /// Index of the first optional operand.
    optional: usize,
    /// True if warpgroups can compute the products.
    by_groups: bool,
    /// Maximum shared memory of a block, in bytes.
    room: u32,
}

impl Common {
    /// The common parts for a request; the first `optional` operands are always present.
    fn of(request: &OpRequest<'_>, optional: usize, outputs: usize) -> Result<Common> {
        let attributes: AttentionAttrs = request.attributes()?;
        let AttentionAttrs { mask, sinks, lengths, head_size, value_size, .. } = attributes;
        let dtype = request.input(0)?.dtype;
        let count = optional + (mask + sinks + lengths) as usize;
        if request.inputs.len() != count || request.outputs.len() != outputs {
            let text = format!("attention with {} inputs", request.inputs.len());
            return Err(Failure::invalid(text));
        }
        if !dtype.is_real() {
            return Err(Failure::unsupported("attention of a dtype that is not floating"));
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
        let properties = &request.device.properties;
        let by_groups = dtype.is_half()
            && properties.has_warpgroups()
            && head_size.max(value_size) <= GROUP_MOST;
        Ok(Common { dtype, attributes, mask, optional, by_groups, room: properties.shared_optin })
    }

    /// The sizes of queries and values, rounded up to multiples that the products support.
    fn sizes(&self, by_groups: bool) -> [u32; 2] {
        let multiple = if by_groups { GROUP_ROWS } else { TILE as u32 };
        [self.attributes.head_size, self.attributes.value_size]
            .map(|n| n.next_multiple_of(multiple))
    }

    /// The larger of both sizes.
    fn widest(&self) -> u32 {
        self.sizes(false).into_iter().max().unwrap_or(MOST)
    }

    /// Bytes of shared memory for the given numbers of rows of queries (or keys), and of values, in tiles. Rows are padded
    /// by 16 bytes, so that no two of eight consecutive rows start in the same bank.
    fn shared(&self, rows: [u32; 2]) -> u32 {
        let ([head, value], each) = (self.sizes(false), self.dtype.bytes() as u32);
        rows[0] * (head * each + 16) + rows[1] * (value * each + 16)
    }

    /// Likewise, for panels.
    fn shared_panels(&self, rows: [u32; 2]) -> u32 {
        let [head, value] = self.sizes(true);
        2 * (rows[0] * head + rows[1] * value) + ALIGNMENT
    }

    /// The largest number of warps, up to four, for which a block has enough shared memory.
    fn warps(&self, bytes: impl Fn(u32) -> u32) -> Result<u32> {
        [4, 2, 1].into_iter().find(|warps| bytes(*warps) <= self.room).ok_or_else(|| {
            Failure::unsupported(format!(
                "attention of {} with heads of {:?}: a block has {} bytes of shared memory",
                self.dtype.name(),
                self.sizes(false),
                self.room
            ))
        })
    }

    /// The operands of a command.
    fn call<'a>(&self, job: &'a Job<'_>) -> Result<Call<'a>> {
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
struct Call<'a> {
    /// Batches, heads, queries, keys, and the sizes of queries and values.
    sizes: [i64; 6],
    group: i64,
    scale: f64,
    /// True if scores are scaled before they are compared.
    scaled: bool,
    q: &'a View<'a>,
    k: &'a View<'a>,
    v: &'a View<'a>,
    mask: Option<&'a View<'a>>,
    sinks: Option<&'a View<'a>>,
    lengths: Option<&'a View<'a>>,
}

impl Call<'_> {
    /// Number of heads whose queries fill tiles together. If there are few queries, a single head
    /// does not fill a tile.
    fn span(&self) -> i64 {
        if self.sizes[2] < 4 * TILE { self.group } else { 1 }
    }

    /// Number of blocks of `rows` rows, for all units.
    fn blocks(&self, rows: i64) -> u64 {
        let [b, h, m, ..] = self.sizes;
        ((self.span() * m + rows - 1) / rows * (b * h / self.span())) as u64
    }

    /// `Attention` of `attention/rows.cuh`, with the strides of a result and of its logarithms.
    fn words(&self, causal: u32, out: &[i64], logarithms: &[i64]) -> Vec<i64> {
        let [b, h, m, n, d, e] = self.sizes;
        let scales = [self.scale, self.scale * std::f64::consts::LOG2_E];
        let [scale, log2_scale] = scales.map(|s| s.to_bits() as i64);
        let mut words = vec![
            pair(b, self.span()),
            pair(h, self.group),
            pair(m, n),
            pair(d, e),
            causal.into(),
            scale,
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
    fn optional(&self) -> [u64; 3] {
        [self.mask, self.sinks, self.lengths].map(|view| view.map_or(0, |view| view.address))
    }
}

/// True if the rows of a tensor can be moved 16 bytes at a time.
fn in_vectors(view: &View<'_>) -> bool {
    let each = 16 / view.dtype.bytes() as i64;
    let mut strides = view.shape.iter().zip(view.strides).take(3).filter(|(n, _)| **n > 1);
    view.strides[3] == 1
        && view.shape[3] % each == 0
        && view.is_aligned(16)
        && strides.all(|(_, s)| s % each == 0)
}

/// A word that consists of two 32-bit values.
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
fn check(view: &View<'_>, shape: &[i64]) -> Result<()> {
    match view.shape == shape {
        true => Ok(()),
        false => Err(Failure::invalid(format!(
            "attention with a tensor {:?} in place of {shape:?}",
            view.shape
        ))),
    }
}
