//! The kernels of grouped products.

use super::cores::Cores;
use super::few::Few;
use super::{Arrangement, Call, Factor, counts};
use crate::launch::{Device, Dtype, Grid, Job, Kind, launch};
use crate::ops::headers;
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::Result;

const TILES: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/grouped/tiles.cuh"),
];
const PACKED_TILES: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/quantized/unpack.cuh"),
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/grouped/tiles.cuh"),
    include_str!("../../../../kernels/quantized/elements.cuh"),
];

const LIST: &[&str] =
    &[headers::NUMBER, headers::MMA, include_str!("../../../../kernels/grouped/rows.cuh")];
/// Threads of the block that makes a list.
const LIST_THREADS: u32 = 1024;

/// Side and threads of a tile of `grouped/tiles.cuh`.
const TILE: i64 = 64;
const THREADS: u32 = 256;

/// Products of one dtype with one kind of second factor. The numbers of rows and items determine
/// which kernel runs.
pub struct Products {
    dtype: Dtype,
    factor: Factor,
    few: Option<Few>,
    cores: Option<Cores>,
    tiles: Kernels<Arrangement>,
    lists: Lists,
}

/// The kernel that sorts items by their matrices, into lists in the workspace.
#[derive(Default)]
pub struct Lists(Kernels);

impl Products {
    /// Products of a floating dtype.
    pub fn new(device: &Device, dtype: Dtype, factor: Factor) -> Self {
        let few = match factor {
            Factor::Packed { format, transpose: true } => Some(Few::new(device, dtype, format)),
            _ => None,
        };
        let cores = Cores::new(device, dtype, factor);
        Self { dtype, factor, few, cores, tiles: Kernels::default(), lists: Lists::default() }
    }

    /// The kind of a product that may run in one launch with others.
    pub fn kind(&self, call: &Call<'_>) -> Option<Kind> {
        self.few.as_ref()?.kind(call)
    }

    /// Enqueues products of the same rows as one launch. Returns false if they have to run one by
    /// one.
    pub fn run_together(&self, jobs: &[Job<'_>], calls: &[Call<'_>]) -> Result<bool> {
        match &self.few {
            Some(few) => few.run_together(jobs, calls),
            None => Ok(false),
        }
    }

    /// Enqueues a product.
    pub fn run(&self, job: &Job<'_>, call: &Call<'_>) -> Result<()> {
        if let Some(few) = &self.few
            && few.run(job, call)?
        {
            return Ok(());
        }
        match &self.cores {
            Some(cores) if cores.run(job, call, &self.lists)? => Ok(()),
            _ => self.run_tiles(job, call),
        }
    }

    fn run_tiles(&self, job: &Job<'_>, call: &Call<'_>) -> Result<()> {
        let [.., columns, _] = call.sizes()?;
        let (how, tiles) = call.arrangement(TILE);
        let kernel = self.tiles.get(&job.device.programs, how, || {
            let d = self.dtype.tag();
            let (headers, source) = match self.factor {
                Factor::Plain => (TILES, format!("Plainly<{d}>")),
                Factor::Packed { format, transpose } => {
                    (PACKED_TILES, format!("Unpacked<{}, {d}, {transpose}>", format.tag()))
                }
            };
            let arguments = format!("{d}, {source}, {}", how.tag());
            Source::instance(headers, "grouped_tiles", arguments, "const Grouped s")
                .bounded(THREADS)
        })?;
        let blocks = tiles * ((columns + TILE - 1) / TILE);
        let grid = Grid::exactly(blocks as u64, THREADS)?.with_shared(counts(call, how));
        let words = call.words(self.lists.make(job, call, how)?);
        launch!(job, &kernel, grid; words[..])
    }
}

impl Lists {
    /// Enqueues the kernel that makes a list, if blocks need one. Returns the list's address, or 0.
    pub fn make(&self, job: &Job<'_>, call: &Call<'_>, how: Arrangement) -> Result<u64> {
        if how != Arrangement::Listed {
            return Ok(0);
        }
        let kernel = self.0.get(&job.device.programs, (), || {
            let parameters = "const Grouped s, i32 *starts, i32 *order";
            Source::instance(LIST, "list_items", "", parameters).bounded(LIST_THREADS)
        })?;
        let starts = job.scratch()?;
        let order = starts + 4 * (call.factor.shape[0] + 1) as u64;
        let words = call.words(starts);
        let grid = Grid::line(1, LIST_THREADS).with_shared(counts(call, Arrangement::Sorted));
        launch!(job, &kernel, grid; words[..], starts, order)?;
        Ok(starts)
    }
}
