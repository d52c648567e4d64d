//! Deferred free: an object of a backend that commands may still use is freed once the device has
//! completed its last use.

use super::{
    DeviceState, buffer::Use, device_stream::DeviceStream, executable::Held, kernels::Kernels,
    shutdown, user_kernel::Compiled,
};
use crate::sync::{lock, raise};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use ultramarine_abi::dlpack::device_type;

/// An object of a backend that must outlive its last use, with the uses that the device must
/// complete first.
pub enum PendingFree {
    /// A buffer: its device, its handle, its size in bytes (0 if imported), and its uses.
    Buffer(&'static DeviceState, *mut c_void, usize, SmallVec<[Use; 2]>),
    /// A plan of a table.
    Plan(&'static Kernels, *mut c_void, SmallVec<[Use; 2]>),
    /// A kernel that a user gave.
    Kernel(Compiled, SmallVec<[Use; 2]>),
    /// Recorded commands.
    Recording(Box<Held>, SmallVec<[Use; 2]>),
}

// SAFETY: handles of buffers, plans and kernels may be freed by any thread.
unsafe impl Send for PendingFree {}

/// Returns the last of these uses, if all are on one stream of the device.
fn one_stream<'a>(uses: &'a [Use], device: &DeviceState) -> Option<&'a Use> {
    let last = uses.iter().max_by_key(|u| u.number)?;
    let same = |u: &Use| std::ptr::eq(u.stream, last.stream);
    (std::ptr::eq(last.stream.device, device) && uses.iter().all(same)).then_some(last)
}

impl PendingFree {
    fn uses(&mut self) -> &mut SmallVec<[Use; 2]> {
        match self {
            PendingFree::Buffer(_, _, _, uses)
            | PendingFree::Plan(_, _, uses)
            | PendingFree::Kernel(_, uses)
            | PendingFree::Recording(_, uses) => uses,
        }
    }

    /// Frees a buffer in the order of a stream, if all its open uses are on this stream and the
    /// backend supports it. Otherwise returns `false`.
    fn free_in_order(&self) -> bool {
        if let PendingFree::Buffer(device, handle, bytes @ 1.., uses) = self
            && device.has_stream_memory()
            && let Some(last) = one_stream(uses, device)
        {
            // Set this first, before another thread can allocate the memory.
            raise(&last.stream.freed, last.number);
            return device.free_in_order(last.stream, *handle, *bytes);
        }
        false
    }

    /// Frees the object now if every use is completed, or if the open uses are on one stream and
    /// the backend frees memory in the stream's order. Otherwise the object is queued until the
    /// device completes the last use.
    pub fn release(mut self) {
        self.uses().retain(|u| !u.stream.knows_completed(u.number));
        if self.free_in_order() {
            return;
        }
        if self.uses().len() > 1 {
            // Usually only one of the uses is open: for example, an upload was completed long ago.
            self.uses().retain(|u| {
                u.stream.look(u.number);
                !u.stream.knows_completed(u.number)
            });
            if self.free_in_order() {
                return;
            }
        }
        if let Some(last) = self.uses().pop() {
            if let PendingFree::Buffer(device, _, bytes, _) = &self {
                device.pending_bytes.fetch_add(*bytes, Ordering::Relaxed);
            }
            lock(&last.stream.pending_frees).push_back((last.number, self));
            return;
        }
        match self {
            PendingFree::Buffer(device, handle, bytes, _) => device.free(handle, bytes),
            PendingFree::Plan(kernels, raw, _) => release_plan(kernels, raw),
            PendingFree::Kernel(kernel, _) => kernel.release(),
            PendingFree::Recording(recording, _) => recording.release(),
        }
    }
}

impl DeviceStream {
    /// Frees buffers, plans, kernels and recordings whose last use the device has completed.
    pub fn free_completed(&self) {
        let first = lock(&self.pending_frees).front().map(|(number, _)| *number);
        let Some(first) = first.filter(|_| shutdown::ended().is_none()) else { return };
        self.look(first);
        let completed = self.completed.load(Ordering::Acquire);
        loop {
            let mut pending_frees = lock(&self.pending_frees);
            // The queue is nearly in order. An entry after a later number waits for that number
            // too.
            let Some((_, pending)) = pending_frees.pop_front_if(|(number, _)| *number <= completed)
            else {
                return;
            };
            drop(pending_frees);
            if let PendingFree::Buffer(device, _, bytes, _) = &pending {
                device.pending_bytes.fetch_sub(*bytes, Ordering::Relaxed);
            }
            pending.release();
        }
    }
}

impl DeviceState {
    /// Frees buffers, plans, kernels and recordings whose last use the device has completed.
    pub fn free_completed(&self) {
        if shutdown::ended().is_none() {
            self.all_streams().iter().for_each(|s| s.free_completed());
        }
    }
}

/// Frees a plan once no submitted work can use it.
pub(super) fn free_plan(kernels: &'static Kernels, raw: *mut c_void) {
    if raw.is_null() {
        return;
    }
    if kernels.table.device_type == device_type::CPU {
        return release_plan(kernels, raw);
    }
    if shutdown::ended().is_some() {
        return;
    }
    let device =
        super::gpus().iter().find(|d| d.kernels.get().iter().any(|k| std::ptr::eq(*k, kernels)));
    let uses = device.map_or_else(SmallVec::new, |d| d.all_uses());
    PendingFree::Plan(kernels, raw, uses).release();
}

/// Frees a user's kernel once no submitted work can use it.
pub(super) fn free_kernel(device: &'static DeviceState, kernel: Compiled) {
    if shutdown::ended().is_none() {
        PendingFree::Kernel(kernel, device.all_uses()).release();
    }
}

/// Frees a recording once no submitted work can use it.
pub(super) fn free_recording(recording: Held) {
    if shutdown::ended().is_none() {
        let uses = recording.arena.uses();
        PendingFree::Recording(Box::new(recording), uses).release();
    }
}

fn release_plan(kernels: &Kernels, raw: *mut c_void) {
    if let Some(release) = kernels.table.plan_release {
        // SAFETY: this table's device made the plan, it is released once, and no command uses it.
        unsafe { release(kernels.handle, raw) };
    }
}
