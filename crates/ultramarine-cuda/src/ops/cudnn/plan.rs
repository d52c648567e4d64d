//! cuDNN plans: an engine for a graph, and its calls.

use super::graph::Descriptor;
use super::{Library, RUNS, check};
use crate::context::{self, lock};
use crate::launch::Job;
use crate::sys::cudnn::{attribute, kind, value};
use core::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// A plan of cuDNN: an engine for a [`Graph`](super::graph::Graph). It runs with any addresses, and is destroyed when
/// it is dropped.
pub struct Plan {
    library: Arc<Library>,
    plan: ManuallyDrop<Descriptor>,
    /// The descriptors that it was made from.
    parts: ManuallyDrop<Vec<Descriptor>>,
    workspace: u64,
}

impl Plan {
    pub(super) fn new(
        library: Arc<Library>,
        plan: Descriptor,
        parts: Vec<Descriptor>,
        workspace: u64,
    ) -> Self {
        let (plan, parts) = (ManuallyDrop::new(plan), ManuallyDrop::new(parts));
        Self { library, plan, parts, workspace }
    }

    /// Bytes of workspace of a call.
    pub fn workspace(&self) -> u64 {
        self.workspace
    }

    /// Enqueues a call with the addresses of tensors and the bits of scalars, by their identities; `own` is the address of
    /// the workspace.
    pub fn run(
        self: &Arc<Self>,
        job: &Job<'_>,
        tensors: &[(i64, u64)],
        numbers: &[(i64, u32)],
        own: u64,
    ) -> Result<()> {
        job.keep(self);
        let (library, table) = (&self.library, self.library.table);
        let pointer = |address: u64| address as usize as *const c_void;
        let ids: Vec<i64> =
            tensors.iter().map(|t| t.0).chain(numbers.iter().map(|n| n.0)).collect();
        let places: Vec<*const c_void> = tensors
            .iter()
            .map(|t| pointer(t.1))
            .chain(numbers.iter().map(|n| (&raw const n.1).cast()))
            .collect();
        let pack = Descriptor::new(table, kind::PACK)?;
        pack.set(attribute::PACK_IDS, value::INT64, &ids)?
            .set(attribute::PACK_POINTERS, value::POINTER, &places)?
            .set(attribute::PACK_WORKSPACE, value::POINTER, &[pointer(own)])?;
        let pack = pack.finalized()?;
        let result = job.library(
            |queue| {
                let handle = lock(&library.handles[RUNS]);
                // SAFETY: a plan and a variant pack of this library, and a handle of this context that only this thread
                // uses. The tensors are those that the graph was made for; the workspace is as large as the plan requires.
                unsafe {
                    check(table, "cudnnSetStream", (table.set_stream)(handle.0, queue))?;
                    let done = (table.execute)(handle.0, self.plan.handle, pack.handle);
                    check(table, "cudnnBackendExecute", done)
                }
            },
            Result::is_ok,
        )?;
        result.map_err(|own| job.fault().unwrap_or(own))
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        if let Ok(_entered) = self.library.context.enter() {
            // SAFETY: dropped only here. The context must be current because engines' modules are
            // unloaded.
            unsafe {
                ManuallyDrop::drop(&mut self.plan);
                ManuallyDrop::drop(&mut self.parts);
            }
        }
    }
}
