//! The passes of a sort: blocks are sorted by ranking, then sorted runs are merged.

use super::SORT;
use super::radix::{Payload, Radix};
use crate::dtype::Dtype;
use crate::launch::{Axes, Job, OpRequest, count};
use crate::memory::Block;
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// `SMALL` and `LARGE` of `sort.wgsl`.
const SMALL: u32 = 32;
const LARGE: u32 = 1024;
/// Invocations of a workgroup for `LARGE`.
const GROUP: u32 = 256;

/// The kernels that sort keys of a dtype together with their positions in the lane.
pub struct Passes {
    blocks: Arc<Kernel>,
    /// True if workgroups sort the blocks.
    grouped: bool,
    merge: Arc<Kernel>,
    /// For long lanes with 32-bit keys, on GPUs.
    radix: Option<Radix>,
    /// Bytes of a key.
    key: u64,
}

/// The lanes that a command sorts. Each lane is sorted independently.
pub struct Lanes<'a> {
    /// The elements' buffer.
    pub input: &'a Arc<Block>,
    /// The workspace, and the offset of its first used byte, which is a multiple of 8.
    pub work: (&'a Arc<Block>, u64),
    /// Elements of a lane.
    pub length: u32,
    /// Strides along a lane, of input and output.
    pub steps: [u32; 2],
    /// The lanes.
    pub lanes: &'a Axes<2>,
}

impl Passes {
    /// Kernels for a dtype and a type of keys; the item defines `key_of`.
    pub fn new(
        request: &OpRequest<'_>,
        dtype: Dtype,
        key: &'static str,
        item: &str,
    ) -> Result<Self> {
        let device = request.device;
        let program = |tensors: &[Tensor]| {
            let program = Program::new(tensors).item(item).library(SORT);
            program.array("keys", key).array("indices", "u32")
        };
        let grouped = device.context.properties.gpu_kernels;
        let blocks = program(&[Tensor { name: "a", dtype }]);
        let shared = format!(
            "alias Key = {key};\nstruct Moved {{ key: Key, index: u32, to: u32 }}\n\
             var<workgroup> shared_keys: array<Key, {LARGE}>;\n\
             var<workgroup> shared_indices: array<u32, {LARGE}>;"
        );
        let blocks = match grouped {
            true => blocks.item(&shared).group_body(GROUP, "sort_large(g, local);"),
            false => blocks.body("sort_blocks(i);"),
        };
        Ok(Self {
            blocks: device.programs.get(blocks.build())?,
            grouped,
            radix: (grouped && key == "u32")
                .then(|| Radix::new(dtype, item, Payload::Indices, false)),
            merge: device.programs.get(program(&[]).body("sort_merge(i);").build())?,
            key: if key == "u64" { 8 } else { 4 },
        })
    }

    /// Bytes of workspace for `elements` elements.
    pub fn workspace(&self, elements: u64) -> u64 {
        let counts = if self.radix.is_some() { 4 * Radix::counts(elements) } else { 0 };
        2 * (self.key + 4) * elements + counts
    }

    /// Enqueues the passes. Returns the offsets of the sorted keys and indices, each in its own elements, and the words
    /// for a kernel of `sort.wgsl` that reads them.
    pub fn run(&self, job: &Job<'_>, of: &Lanes<'_>) -> Result<([u32; 2], Vec<u32>)> {
        let (work, length) = (of.work.0, of.length);
        let items = count([of.lanes.elements()?.into(), length.into()])?;
        // Two buffers for keys, followed by two for indices, whose elements have 4 bytes. All of them end within 32
        // bits, because buffers do.
        let first = (of.work.1 / self.key) as u32;
        let mut keys = [first, first.wrapping_add(items)];
        let first = ((of.work.1 + 2 * self.key * u64::from(items)) / 4) as u32;
        let mut indices = [first, first.wrapping_add(items)];
        let words = |width: u32, keys: [u32; 2], indices: [u32; 2]| {
            let mut words = vec![length, of.steps[0], of.steps[1], width];
            words.extend([keys[0], keys[1], indices[0], indices[1]]);
            of.lanes.words(&mut words);
            words
        };
        if let Some(radix) = self.radix.as_ref().filter(|_| Radix::pays(length)) {
            let counts = indices[1].wrapping_add(items);
            radix.run(job, of, (keys, indices, counts), None)?;
            return Ok((
                [keys[1], indices[1]],
                words(0, [keys[1], keys[0]], [indices[1], indices[0]]),
            ));
        }
        let given = words(0, keys, indices);
        let blocks = [of.input, work, work];
        let mut width = if self.grouped { LARGE } else { SMALL };
        match self.grouped {
            true => {
                let groups = count([of.lanes.elements()?.into(), length.div_ceil(LARGE).into()])?;
                job.launch_groups(&self.blocks, &blocks, groups, &given)?;
            }
            false => job.launch(&self.blocks, &blocks, items, &given)?,
        }
        (keys, indices) = ([keys[1], keys[0]], [indices[1], indices[0]]);
        while width < length {
            job.launch(&self.merge, &[work, work], items, &words(width, keys, indices))?;
            (keys, indices) = ([keys[1], keys[0]], [indices[1], indices[0]]);
            width = width.saturating_mul(2);
        }
        Ok(([keys[0], indices[0]], words(0, keys, indices)))
    }
}
