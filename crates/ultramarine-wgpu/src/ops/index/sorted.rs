//! Scatters on GPUs: by atomic operations where the order of updates does not show, else by their places in order.

use super::{INDEX, kernel};
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, View, count};
use crate::memory::Block;
use crate::ops::sort::{Lanes, Passes};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::Result;
use ultramarine_abi::schema::scatter;

/// Combines updates whose places are known.
pub(super) enum Combined {
    /// Each for itself.
    Atomic(Arc<Kernel>),
    /// Those of one place by one invocation, in their order.
    Sorted(Passes, Arc<Kernel>),
}

/// Updates, in pieces that each have a place.
pub(super) struct Updates<'a> {
    /// The updates.
    pub updates: &'a View<'a>,
    /// The combined tensor.
    pub out: &'a View<'a>,
    /// The pieces, in order: where they are in the updates.
    pub pieces: Axes<1>,
    /// Elements of a piece: output, updates.
    pub piece: Axes<2>,
}

impl Combined {
    /// For an op of SCATTER; `item` has the function `combine`.
    pub fn new(request: &OpRequest<'_>, op: u32, dtype: Dtype, item: &str) -> Result<Self> {
        let atomic = match op {
            scatter::SUM => Some("atomicAdd"),
            scatter::MIN => Some("atomicMin"),
            scatter::MAX => Some("atomicMax"),
            _ => None,
        };
        let u = Tensor { name: "u", dtype };
        let element = match dtype {
            Dtype::Uint32 => Some("atomic<u32>"),
            Dtype::Int32 => Some("atomic<i32>"),
            _ => None,
        };
        if let (Some(name), Some(element)) = (atomic, element) {
            let item = format!(
                "fn meet_at(to: u32, update: {}) {{ {name}(&out[to], update); }}",
                dtype.register()
            );
            let program = Program::new(&[u]).array("out", element).array("places", "u32");
            let program = program.library(INDEX).item(&item).body("scatter_atomic(i);");
            return Ok(Self::Atomic(request.device.programs.get(program.build())?));
        }
        let out = Tensor { name: "out", dtype };
        let call = if op == scatter::SET { "scatter_last(i);" } else { "scatter_sorted(i);" };
        let key = "fn key_of(x: u32) -> u32 { return x; }";
        Ok(Self::Sorted(
            Passes::new(request, Dtype::Uint32, "u32", key)?,
            kernel(request, &[u, out], true, item, call)?,
        ))
    }

    /// Bytes of workspace behind the places, which are 4 bytes for each of so many pieces.
    pub fn workspace(&self, pieces: u64) -> u64 {
        match self {
            Self::Atomic(_) => 0,
            Self::Sorted(passes, _) => (4 * pieces) % 8 + passes.workspace(pieces),
        }
    }

    /// Enqueues it. The workspace begins with the places.
    pub fn run(&self, job: &Job<'_>, work: &Arc<Block>, of: &Updates<'_>) -> Result<()> {
        let (pieces, each) = (of.pieces.elements()?, of.piece.elements()?);
        let items = count([pieces.into(), each.into()])?;
        let words = |[keys, indices]: [u32; 2]| {
            let mut words = vec![each, pieces, keys, indices, 0];
            of.pieces.words(&mut words);
            // Word 0 is the number of invocations.
            words[4] = words.len() as u32 + 1;
            of.piece.words(&mut words);
            words
        };
        let blocks = [&of.updates.block, &of.out.block, work];
        match self {
            Self::Atomic(kernel) => job.launch(kernel, &blocks, items, &words([0, 0])),
            Self::Sorted(passes, kernel) => {
                let (sorted, _) = passes.run(
                    job,
                    &Lanes {
                        input: work,
                        work: (work, (4 * u64::from(pieces)).next_multiple_of(8)),
                        length: pieces,
                        steps: [1, 1],
                        lanes: &Axes::join([0, 0], []),
                    },
                )?;
                job.launch(kernel, &blocks, items, &words(sorted))
            }
        }
    }
}
