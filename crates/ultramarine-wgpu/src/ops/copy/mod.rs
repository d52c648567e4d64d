//! COPY: copies within a dtype, and conversions.

mod cast;
mod tile;

pub use cast::{LIBRARY, convert};

use crate::dtype::Dtype;
use crate::launch::{Axes, Device, Job, OpRequest, View, Walk, Work};
use crate::program::Deferred;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// The work of COPY for a pair of dtypes.
pub struct Copy {
    walk: Walk,
    moves: bool,
    tiles: Option<Tiles>,
}

/// The kernels of copies between tensors that are contiguous along different axes.
struct Tiles {
    elements: Deferred,
    /// The kernel that uses vectors of 4.
    blocks: Option<Deferred>,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let (from, to) = (request.input(0)?.dtype, request.output(0)?.dtype);
    if from != to {
        request.computes(&[from, to])?;
    }
    Ok(Box::new(Copy::new(request.device, from, to)?))
}

impl Copy {
    /// A copy from one dtype to another.
    pub fn new(device: &Device, from: Dtype, to: Dtype) -> Result<Self> {
        let moves = from == to;
        let value = convert("x0", from, to);
        let (from, to) = if moves { (from.word(), to.word()) } else { (from, to) };
        let tensors = [Tensor { name: "a", dtype: from }, Tensor { name: "out", dtype: to }];
        let program = Program::new(&[]).library(cast::LIBRARY);
        let tiled = moves && device.context.properties.gpu_kernels;
        let tiles = tiled.then(|| Tiles {
            elements: Deferred::new(tile::source(to)),
            blocks: tile::blocks(to).map(Deferred::new),
        });
        Ok(Self { walk: Walk::new(device, program, (&tensors, 0), &value)?, moves, tiles })
    }

    /// Enqueues a copy between tensors of one shape.
    pub fn run_views(&self, job: &Job<'_>, from: &View<'_>, to: &View<'_>) -> Result<()> {
        if self.moves && from.is_contiguous() && to.is_contiguous() {
            let same = Arc::ptr_eq(&from.block, &to.block);
            if same && from.offset == to.offset {
                return Ok(());
            }
            if !same {
                let (at, target) = (from.byte_offset(), to.byte_offset());
                job.copy((&from.block, at), (&to.block, target), from.bytes());
                return Ok(());
            }
        }
        let sizes = from.shape.iter().copied();
        let strides = from.strides.iter().zip(to.strides).map(|(f, t)| [*f, *t]);
        let axes = Axes::join([from.offset, to.offset], sizes.zip(strides));
        let blocks = [&from.block, &to.block];
        if let Some(tiles) = &self.tiles {
            // Elements are numbered with 32 bits.
            axes.elements()?;
            if let Some(copy) = tile::Tiled::of(&axes) {
                let whole = from.ends_with_vector() && to.ends_with_vector();
                let vectors = if whole { copy.in_vectors() } else { None };
                let (kernel, (groups, words)) = match (&tiles.blocks, vectors) {
                    (Some(blocks), Some(vectors)) => (blocks, vectors.block_words()?),
                    _ => (&tiles.elements, copy.words()?),
                };
                let kernel = kernel.get(&job.device.programs)?;
                return job.launch_groups(&kernel, &blocks, groups, &words);
            }
        }
        job.walk(&self.walk, &blocks, &axes, &[])
    }
}

impl Work for Copy {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.run_views(job, job.input(0)?, job.output(0)?)
    }
}
