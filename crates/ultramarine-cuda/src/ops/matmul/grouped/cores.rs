//! Products on tensor cores by `grouped/cores.cuh`. The tile size that fills the device best is
//! chosen.

use super::kernels::Lists;
use super::{Arrangement, Call, Factor};
use crate::launch::{Device, Dtype, Grid, Job, View, launch, span};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

const PLAIN: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    headers::WGMMA,
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/grouped/cores.cuh"),
];
const PACKED: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    headers::WGMMA,
    include_str!("../../../../kernels/quantized/unpack.cuh"),
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/grouped/cores.cuh"),
    include_str!("../../../../kernels/quantized/cores.cuh"),
];

/// `DEEP` of `grouped/cores.cuh`: the part of the depth that is loaded at a time.
const DEEP: u32 = 64;
/// Columns of a group of warps.
const GROUP: u32 = 64;
/// Threads of a group.
const GROUP_THREADS: u32 = 128;
/// Bytes of shared memory that a kernel uses in addition to its stages.
const ASIDE: u32 = 4096;
/// Allowed numbers of stages. Fewer stages do not hide latency.
const STAGES: [u32; 4] = [6, 5, 4, 3];

/// The size of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size {
    /// Groups of warps, each with 64 columns.
    groups: u32,
    /// Rows of x.
    rows: u32,
    /// Blocks per multiprocessor.
    resident: u32,
    /// Maximum number of stages; more were slower, even if they fit.
    stages: u32,
    /// Time of a tile among others on a multiprocessor, and the additional time of the first tile. Both are in
    /// microseconds for a depth of 4096, as measured on an H100 with 4 bits.
    times: [f64; 2],
}

/// The available sizes.
const SIZES: [Size; 5] = [
    Size { groups: 3, rows: 256, resident: 1, stages: 4, times: [92.0, 0.0] },
    Size { groups: 2, rows: 256, resident: 1, stages: 4, times: [68.0, 0.0] },
    Size { groups: 2, rows: 128, resident: 2, stages: 4, times: [42.0, 5.0] },
    Size { groups: 2, rows: 64, resident: 2, stages: 6, times: [37.5, 11.0] },
    Size { groups: 1, rows: 64, resident: 3, stages: 6, times: [22.0, 3.0] },
];

/// The memory order of the second factor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// Contiguous along the depth.
    Depth,
    /// Contiguous along the columns.
    Columns,
}

/// The kernels of [`Products`](super::kernels::Products) on tensor cores, for one dtype and one
/// kind of second factor.
pub struct Cores {
    dtype: Dtype,
    factor: Factor,
    /// True if the four warps of a group drive tensor cores together.
    by_groups: bool,
    room: u32,
    kernels: Kernels<Variant>,
}

/// Parameters of a compiled kernel.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    how: Arrangement,
    order: Order,
    size: Size,
    stages: u32,
    /// True if scales and biases are aligned words.
    staged: bool,
}

impl Cores {
    /// `None` if the dtype has no tensor cores, or the device has none for it.
    pub fn new(device: &Device, dtype: Dtype, factor: Factor) -> Option<Self> {
        let properties = &device.properties;
        (dtype.is_half() && properties.major >= 8).then(|| Self {
            dtype,
            factor,
            by_groups: properties.has_warpgroups(),
            room: properties.shared_optin,
            kernels: Kernels::default(),
        })
    }

    /// Returns false if the operands do not have a layout that the kernels read.
    pub fn run(&self, job: &Job<'_>, call: &Call<'_>, lists: &Lists) -> Result<bool> {
        let Some(order) = self.order(call) else { return Ok(false) };
        let Some((size, stages)) = self.size(job.device, call, order) else { return Ok(false) };
        let (how, tiles) = call.arrangement(size.rows.into());
        let mut scales = [call.scales, call.biases].into_iter().flatten();
        let staged = scales.all(|view| lies_along(view, 2, 4));
        let kernel = self.kernel(job, Variant { how, order, size, stages, staged })?;
        let blocks = tiles as u64 * (call.out.shape[2] as u64).div_ceil(size.columns());
        let grid = Grid::exactly(blocks, GROUP_THREADS * size.groups)?;
        let grid = grid.with_room(job, &kernel, self.shared(size, stages, order, call, how))?;
        let words = call.words(lists.make(job, call, how)?);
        launch!(job, &kernel, grid; words[..]).map(|()| true)
    }

    /// The memory order of the second factor, if the kernels can read the operands.
    fn order(&self, call: &Call<'_>) -> Option<Order> {
        // 31 bits have to be enough for offsets in all of x, and in a matrix.
        let is_small = is_small(call.x, 0) && is_small(call.factor, 1);
        if call.segments.is_some() || !is_small || !lies_along(call.x, 2, 16) {
            return None;
        }
        match self.factor {
            Factor::Plain if lies_along(call.factor, 1, 16) => Some(Order::Depth),
            Factor::Plain => lies_along(call.factor, 2, 16).then_some(Order::Columns),
            Factor::Packed { format, transpose } => {
                let piece = if format.bits % 2 == 1 { 8 } else { 16 };
                let order = if transpose { Order::Depth } else { Order::Columns };
                lies_along(call.factor, 2, piece).then_some(order)
            }
        }
    }

    /// The fastest size, and the number of stages that fit.
    fn size(&self, device: &Device, call: &Call<'_>, order: Order) -> Option<(Size, u32)> {
        let processors = u64::from(device.properties.multiprocessors);
        let mut best: Option<(f64, Size, u32)> = None;
        // Without warpgroups, a warp's registers hold fewer sums.
        let sizes = SIZES.into_iter().filter(|size| self.by_groups || size.rows <= 128);
        for size in sizes {
            let (how, tiles) = call.arrangement(size.rows.into());
            let bytes = |stages: u32| self.shared(size, stages, order, call, how);
            let fits = |stages: &u32, blocks: u32| bytes(*stages) <= self.room / blocks - ASIDE;
            let mut counts = STAGES.into_iter().filter(|stages| *stages <= size.stages);
            let stages = counts.find(|stages| fits(stages, size.resident));
            let least = STAGES[3..].iter().copied().find(|stages| fits(stages, 1));
            let Some(stages) = stages.or(least) else { continue };
            let tiles = call.likely_tiles(how, tiles, size.rows.into());
            let blocks = tiles as u64 * (call.out.shape[2] as u64).div_ceil(size.columns());
            let time = blocks.div_ceil(processors) as f64 * size.times[0] + size.times[1];
            if best.is_none_or(|(least, ..)| time < least) {
                best = Some((time, size, stages));
            }
        }
        best.map(|(_, size, stages)| (size, stages))
    }

    /// Bytes of shared memory: the stages and the unpacked data, or the counts of matrices before them, or the results
    /// after them, whichever is largest.
    fn shared(
        &self,
        size: Size,
        stages: u32,
        order: Order,
        call: &Call<'_>,
        how: Arrangement,
    ) -> u32 {
        let wide = size.columns() as u32;
        let (factor, aside) = match (self.factor, order) {
            (Factor::Plain, _) => (wide * DEEP * 2, 0),
            (Factor::Packed { format, .. }, Order::Depth) => {
                (wide * DEEP * format.bits / 8 + GROUP_THREADS * size.groups * 4, 0)
            }
            (Factor::Packed { format, .. }, Order::Columns) => {
                let piece = if format.bits % 2 == 1 { 8 } else { 16 };
                (DEEP * (wide * format.bits / 8 + piece), DEEP * wide * 2)
            }
        };
        let stage = (size.rows * DEEP * 2 + factor).next_multiple_of(1024);
        let results = size.rows * (wide + 8) * 2;
        (1024 + stages * stage + aside).max(results).max(super::counts(call, how))
    }

    fn kernel(&self, job: &Job<'_>, variant: Variant) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, variant, || {
            let Variant { how, order, size, stages, staged } = variant;
            let Size { groups, rows, resident, .. } = size;
            let (d, by, how) = (self.dtype.tag(), format!("{order:?}"), how.tag());
            let (headers, source) = match self.factor {
                Factor::Plain => (PLAIN, format!("By{by}<{d}, {groups}>")),
                Factor::Packed { format, .. } => {
                    let staged =
                        if order == Order::Depth { format!(", {staged}") } else { String::new() };
                    (PACKED, format!("PackedBy{by}<{}, {d}, {groups}{staged}>", format.tag()))
                }
            };
            let groups_drive = self.by_groups;
            let arguments =
                format!("{d}, {source}, {how}, {groups}, {rows}, {stages}, {groups_drive}");
            Source::instance(headers, "grouped_cores", arguments, "const Grouped s")
                .bounded(format!("{}, {resident}", GROUP_THREADS * groups))
        })
    }
}

impl Size {
    fn columns(self) -> u64 {
        u64::from(GROUP * self.groups)
    }
}

/// True if a tensor is contiguous along an axis, in aligned pieces of `bytes` bytes.
pub(super) fn lies_along(view: &View<'_>, axis: usize, piece: u64) -> bool {
    let whole =
        |elements: i64| (elements as u64).wrapping_mul(view.dtype.bytes()).is_multiple_of(piece);
    let steps = view.shape.iter().zip(view.strides).enumerate();
    let others = steps.filter(|(d, (n, _))| *d != axis && **n > 1);
    view.strides[axis] == 1
        && whole(view.shape[axis])
        && view.is_aligned(piece)
        && others.into_iter().all(|(_, (_, stride))| whole(*stride))
}

/// True if 31 bits are enough for offsets along the axes from `axis` on.
pub(super) fn is_small(view: &View<'_>, axis: usize) -> bool {
    let axes = view.shape.iter().copied().zip(view.strides.iter().copied());
    span(axes.skip(axis)) < 1 << 30
}
