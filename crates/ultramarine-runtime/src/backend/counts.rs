//! Counts of graph operations by how they ran.

use super::{gpus, host};
use crate::device::Device;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// How and where an operation ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// On the backend's own kernels.
    Native = 0,
    /// As simpler operations on the same device.
    Decomposed = 1,
    /// On the CPU, with copies through the host.
    Cpu = 2,
}

/// The number of runs of an operation on a device, from [`op_counts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpCount {
    /// The device that the operation was meant for.
    pub device: Device,
    /// The backend whose kernels ran, or that refused the operation.
    pub backend: String,
    /// The backend's variant, or empty.
    pub variant: String,
    /// The operation's name in MLX.
    pub op: &'static str,
    /// Runs on the backend's own kernels, alone or as part of a fused program.
    pub native: u64,
    /// Runs as simpler operations on the same device.
    pub decomposed: u64,
    /// Runs on the CPU for another device.
    pub cpu: u64,
}

/// Slots of the hash table. There are about 130 operations.
const SLOTS: usize = 512;

/// A name by its address and length, and its counts.
#[derive(Default)]
struct Slot {
    name: AtomicPtr<u8>,
    len: AtomicUsize,
    counts: [AtomicU64; 3],
}

/// Counts of one kernel table: a hash table keyed by the addresses of the operations' names, which
/// are static. Counting usually takes one probe, and one relaxed addition.
pub struct OpCounters(Box<[Slot]>);

impl Default for OpCounters {
    fn default() -> Self {
        OpCounters((0..SLOTS).map(|_| Slot::default()).collect())
    }
}

impl OpCounters {
    /// Counts one run of an operation.
    #[inline]
    pub fn add(&self, op: &'static str, dispatch: Dispatch) {
        self.add_runs(op, dispatch, 1);
    }

    /// Counts several runs of an operation.
    #[inline]
    pub fn add_runs(&self, op: &'static str, dispatch: Dispatch, runs: u64) {
        let address = op.as_ptr().cast_mut();
        let start = (address as usize).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        for i in 0..SLOTS {
            let slot = &self.0[(start + i) % SLOTS];
            let mut found = slot.name.load(Ordering::Relaxed);
            if found.is_null() {
                let (order, none) = (Ordering::Relaxed, std::ptr::null_mut());
                found = match slot.name.compare_exchange(none, address, order, order) {
                    Ok(_) => {
                        slot.len.store(op.len(), Ordering::Release);
                        address
                    }
                    Err(other) => other,
                };
            }
            if found == address {
                slot.counts[dispatch as usize].fetch_add(runs, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Returns the names that ran, with their counts. The linker may keep a name twice, so a name
    /// may occur more than once.
    fn list(&self) -> impl Iterator<Item = (&'static str, [u64; 3])> {
        self.0.iter().filter_map(|slot| {
            let len = slot.len.load(Ordering::Acquire);
            let name = slot.name.load(Ordering::Relaxed);
            let counts = slot.counts.each_ref().map(|c| c.load(Ordering::Relaxed));
            if name.is_null() || len == 0 || counts == [0; 3] {
                return None;
            }
            // SAFETY: address and length of a `&'static str`. If two names had one address, one
            // name would be a prefix of the other, and either length would be valid text.
            let name =
                unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(name, len)) };
            Some((name, counts))
        })
    }

    fn reset(&self) {
        self.0.iter().flat_map(|s| &s.counts).for_each(|c| c.store(0, Ordering::Relaxed));
    }
}

/// Returns how often each operation ran on each device since the start or the last
/// [`reset_op_counts`], and by which means. Operations that are only views are not counted, because
/// they reach no backend.
pub fn op_counts() -> Vec<OpCount> {
    let mut out: Vec<OpCount> = Vec::new();
    for state in std::iter::once(host()).chain(gpus().iter().copied()) {
        for kernels in state.kernels.get().iter() {
            let first = out.len();
            for (op, [native, decomposed, cpu]) in kernels.counts.list() {
                match out[first..].iter_mut().find(|c| c.op == op) {
                    Some(c) => {
                        c.native += native;
                        c.decomposed += decomposed;
                        c.cpu += cpu;
                    }
                    None => out.push(OpCount {
                        device: state.device,
                        backend: kernels.backend.clone(),
                        variant: kernels.variant.clone(),
                        op,
                        native,
                        decomposed,
                        cpu,
                    }),
                }
            }
            out[first..].sort_by_key(|c| c.op);
        }
    }
    out
}

/// Sets the counts of [`op_counts`] to zero.
#[inline]
pub fn reset_op_counts() {
    for state in std::iter::once(host()).chain(gpus().iter().copied()) {
        state.kernels.get().iter().for_each(|k| k.counts.reset());
    }
}
