//! Memory that a thread keeps between calls, so that calls do not cause page faults.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;

/// Uninitialised memory, aligned to cache lines. Dropping it returns it to the thread.
pub struct Scratch {
    data: *mut u8,
    bytes: usize,
    slot: Slot,
}

/// A thread keeps one buffer of each.
#[derive(Clone, Copy)]
pub enum Slot {
    /// Memory of a call, shared by all its tasks.
    Call,
    /// Memory of a task.
    Task,
    /// Memory of a call that calls others: its operands ...
    Operands,
    /// ... and parts of them.
    Slab,
}

const SLOTS: usize = 4;
/// Larger buffers are not kept.
const KEEP: usize = 64 << 20;
const ALIGN: usize = 4096;
/// Size of a huge page. Buffers of at least this size request huge pages. Otherwise walking through
/// packed panels would constantly miss the TLB.
const HUGE: usize = 2 << 20;

thread_local! {
    static KEPT: [Cell<(*mut u8, usize)>; SLOTS] = const {
        [const { Cell::new((core::ptr::null_mut(), 0)) }; SLOTS]
    };
}

fn layout(bytes: usize) -> Layout {
    let align = if bytes >= HUGE { HUGE } else { ALIGN };
    // Sizes are below isize::MAX: they are multiples of sizes of existing arrays.
    Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<u64>())
}

/// Allocates `bytes`, in huge pages if the size is large and the system supports them.
fn take(bytes: usize) -> *mut u8 {
    // SAFETY: the size is not zero.
    let data = unsafe { alloc(layout(bytes)) };
    if data.is_null() {
        handle_alloc_error(layout(bytes));
    }
    #[cfg(target_os = "linux")]
    if bytes >= HUGE {
        // SAFETY: advice about a range that was just allocated, and begins at a page; it
        // changes no contents, and a refusal does no harm.
        unsafe { libc::madvise(data.cast(), bytes / HUGE * HUGE, libc::MADV_HUGEPAGE) };
    }
    data
}

fn release(data: *mut u8, bytes: usize) {
    if !data.is_null() {
        // SAFETY: `data` came from `alloc` with the layout of `bytes`.
        unsafe { dealloc(data, layout(bytes)) }
    }
}

impl Scratch {
    /// At least `bytes` of memory. Nested use of a slot is allowed, but allocates.
    pub fn new(slot: Slot, bytes: usize) -> Scratch {
        let (data, have) = KEPT
            .try_with(|k| k[slot as usize].replace((core::ptr::null_mut(), 0)))
            .unwrap_or((core::ptr::null_mut(), 0));
        if have >= bytes && !data.is_null() {
            return Scratch { data, bytes: have, slot };
        }
        release(data, have);
        // Round up, because growing in small steps would cause page faults each time.
        let bytes = bytes.max(1 << 16).next_multiple_of(1 << 16);
        Scratch { data: take(bytes), bytes, slot }
    }

    /// The memory.
    pub fn get(&self) -> *mut u8 {
        self.data
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mine = (self.data, self.bytes);
        let back = if self.bytes <= KEEP {
            KEPT.try_with(|k| k[self.slot as usize].replace(mine)).unwrap_or(mine)
        } else {
            mine
        };
        release(back.0, back.1);
    }
}
