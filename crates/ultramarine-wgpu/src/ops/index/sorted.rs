//! Scatters on GPUs: by atomic operations if the order of updates cannot affect the result, otherwise sorted by
//! their offsets.

use super::{INDEX, kernel};
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, View, count};
use crate::memory::Block;
use crate::ops::sort::{Lanes, Passes};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::scatter;

/// Combines updates whose offsets are known.
pub(super) enum Combined {
    /// Each update separately.
    Atomic(Arc<Kernel>),
    /// One invocation combines the updates of one offset, in their order.
    Sorted(Passes, Arc<Kernel>),
    /// Likewise in chunks; the second kernel combines their results.
    Chunks {
        /// The sort of offsets.
        passes: Passes,
        /// The chunks.
        chunks: Arc<Kernel>,
        /// Adds the results of chunks after the first to an offset's result.
        rest: Arc<Kernel>,
        /// Bytes of a result.
        bytes: u64,
    },
}

/// `CHUNK` of `index.wgsl`.
const CHUNK: u32 = 256;

/// Updates, divided into pieces that each have an offset.
pub(super) struct Updates<'a> {
    /// The updates.
    pub updates: &'a View<'a>,
    /// The combined tensor.
    pub out: &'a View<'a>,
    /// The offsets of the pieces in the updates, in order.
    pub pieces: Axes<1>,
    /// Elements of a piece, with the strides of output and updates.
    pub piece: Axes<2>,
}

impl Combined {
    /// The implementation for an operation of SCATTER; `item` contains the function `combine`.
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
        let (out, register) = (Tensor { name: "out", dtype }, dtype.register());
        let item = format!("alias U = {register};\n{item}");
        let key = "fn key_of(x: u32) -> u32 { return x; }";
        let passes = Passes::new(request, Dtype::Uint32, "u32", key)?;
        // Extremes with a NaN depend on the order, so they cannot be split into chunks.
        let call = match op {
            scatter::SET => "scatter_last(i);",
            scatter::SUM | scatter::PROD => {
                let build = |call: &str| {
                    let program = Program::new(&[u, out]).array("places", "u32");
                    let program = program.array("lead", register).library(INDEX).item(&item);
                    request.device.programs.get(program.body(call).build())
                };
                let (chunks, rest) = (build("scatter_chunks(i);")?, build("scatter_rest(i);")?);
                return Ok(Self::Chunks { passes, chunks, rest, bytes: dtype.bytes().max(4) });
            }
            _ => "scatter_sorted(i);",
        };
        Ok(Self::Sorted(passes, kernel(request, &[u, out], true, &item, call)?))
    }

    /// Bytes of workspace for `pieces` pieces of `each` elements. The workspace begins with the
    /// offsets.
    pub fn workspace(&self, pieces: u64, each: u64) -> u64 {
        match self {
            Self::Atomic(_) => 4 * pieces,
            Self::Sorted(passes, _) => sort_at(pieces) + passes.workspace(pieces),
            Self::Chunks { passes, bytes, .. } => {
                let lead = (sort_at(pieces) + passes.workspace(pieces)).next_multiple_of(8);
                lead + pieces.div_ceil(CHUNK.into()) * each * bytes
            }
        }
    }

    /// Enqueues it. The workspace begins with the offsets.
    pub fn run(&self, job: &Job<'_>, work: &Arc<Block>, of: &Updates<'_>) -> Result<()> {
        let (pieces, each) = (of.pieces.elements()?, of.piece.elements()?);
        let items = count([pieces.into(), each.into()])?;
        let words = |[keys, indices]: [u32; 2], lead: u64| {
            let mut words = vec![each, pieces, keys, indices, 0, lead as u32];
            of.pieces.words(&mut words);
            // The index in words is one higher, because word 0 is the number of invocations.
            words[4] = words.len() as u32 + 1;
            of.piece.words(&mut words);
            words
        };
        let blocks = [&of.updates.block, &of.out.block, work];
        let lanes = Axes::join([0, 0], []);
        let sort = |passes: &Passes| {
            let work = (work, sort_at(pieces.into()));
            let (input, length, steps) = (work.0, pieces, [1, 1]);
            let (sorted, _) =
                passes.run(job, &Lanes { input, work, length, steps, lanes: &lanes })?;
            Ok::<_, Failure>(sorted)
        };
        match self {
            Self::Atomic(kernel) => job.launch(kernel, &blocks, items, &words([0, 0], 0)),
            Self::Sorted(passes, kernel) => {
                job.launch(kernel, &blocks, items, &words(sort(passes)?, 0))
            }
            Self::Chunks { passes, chunks, rest, bytes } => {
                let n = u64::from(pieces);
                let lead = (sort_at(n) + passes.workspace(n)).next_multiple_of(8) / bytes;
                let words = words(sort(passes)?, lead);
                let blocks = [blocks[0], blocks[1], work, work];
                job.launch(chunks, &blocks, items, &words)?;
                let all = count([pieces.div_ceil(CHUNK).into(), each.into()])?;
                job.launch(rest, &blocks, all, &words)
            }
        }
    }
}

/// Offset of the sort's workspace, which comes after the pieces' offsets.
fn sort_at(pieces: u64) -> u64 {
    (4 * pieces).next_multiple_of(8)
}
