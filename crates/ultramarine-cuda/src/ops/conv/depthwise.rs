//! Depthwise convolutions by `conv/depthwise.cuh`.

use super::geometry::Convolution;
use super::headers;
use crate::launch::{BLOCK, Dtype};
use crate::program::{Source, index};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/conv/sizes.cuh"),
    include_str!("../../../kernels/conv/depthwise.cuh"),
];

/// `STRIP` of the kernel.
const STRIP: i64 = 8;
/// Maximum number of channel vectors of a block.
const WIDEST: i64 = 64;
/// Maximum bytes of weights that a block keeps.
const MOST_WEIGHTS: i64 = 48 << 10;
/// Blocks of a multiprocessor for which there are enough registers.
const BLOCKS: i64 = 3;

/// The parameters of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    vector: i64,
    slides: bool,
    is_wide: bool,
}

/// The blocks that compute a depthwise convolution.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    pub variant: Variant,
    /// Channel vectors of a block.
    pub width: i64,
    /// Bytes of shared memory.
    pub shared: u32,
    pub count: u64,
}

impl Blocks {
    /// `None` if a group has more than one channel or output, if channels are not adjacent in memory, or if there are
    /// too many taps.
    pub fn of(conv: &Convolution, sum_bytes: u64, processors: i64) -> Option<Self> {
        let (x, y) = (&conv.x, &conv.y);
        let lie_together = x.strides[4] == 1 && y.strides[4] == 1;
        if conv.channels != 1
            || conv.outputs != 1
            || conv.groups == 1
            || !lie_together
            || conv.taps() == 0
        {
            return None;
        }
        let pairs = conv.groups % 2 == 0
            && [x, y].iter().all(|t| {
                t.address.is_multiple_of(2 * conv.bytes)
                    && t.strides[..4].iter().all(|s| s % 2 == 0)
            });
        let vector = if pairs { 2 } else { 1 };
        let vectors = conv.groups / vector;
        let chunks = (vectors + WIDEST - 1) / WIDEST;
        let width = (vectors + chunks - 1) / chunks;
        let weights = conv.taps().checked_mul((width + 1) * vector * sum_bytes as i64)?;
        if weights > MOST_WEIGHTS {
            return None;
        }
        let across = (conv.axes[2].output + STRIP - 1) / STRIP;
        let strips = conv.batch * conv.axes[0].output * conv.axes[1].output * across;
        let lines = i64::from(BLOCK) / width;
        let shares = ((strips + lines - 1) / lines).min((BLOCKS * processors / chunks).max(1));
        let is_one = |d: usize| conv.axes[d].stride == 1 && conv.axes[d].spread == 1;
        let variant = Variant { vector, slides: is_one(2), is_wide: !conv.is_small() };
        Some(Self { variant, width, shared: weights as u32, count: (shares * chunks) as u64 })
    }
}

/// The kernel of a variant.
pub fn source(variant: Variant, dtype: Dtype) -> Source {
    let (d, Variant { vector, slides, is_wide }) = (dtype.tag(), variant);
    let parameters =
        format!("const {d}::T *x, const {d}::T *w, {d}::T *y, i64 width, const Convolution s");
    let arguments = format!("{d}, {}, {vector}, {slides}", index(is_wide));
    Source::instance(HEADERS, "convolve_depthwise", arguments, parameters)
        .bounded(format!("{BLOCK}, {BLOCKS}"))
}
