//! Counts of commands, bytes and copies, for tests and diagnostics. `counts.rs` counts operations
//! by name.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$m:meta])* $name:ident,)*) => {
        /// Counts of the work of evaluations in the whole process. [`stats`] returns them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[$m])* pub $name: u64,)* }

        impl Stats {
            /// Iterates over the counts with their names.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        #[derive(Default)]
        struct Totals { $($name: AtomicU64,)* }

        /// The counts of one job. They are added to the process's counts when the job ends.
        #[derive(Default)]
        pub(super) struct Local { $(pub $name: Cell<u64>,)* }

        static TOTALS: Totals = Totals { $($name: AtomicU64::new(0),)* };

        /// Returns the counts since the start or the last [`reset_stats`].
        #[inline]
        pub fn stats() -> Stats {
            Stats { $($name: TOTALS.$name.load(Ordering::Relaxed),)* }
        }

        /// Sets every count of [`stats`] to zero.
        #[inline]
        pub fn reset_stats() {
            $(TOTALS.$name.store(0, Ordering::Relaxed);)*
        }

        impl Local {
            pub fn add(&self, by: &Stats) {
                $(self.$name.set(self.$name.get() + by.$name);)*
            }
        }

        impl Drop for Local {
            fn drop(&mut self) {
                $(if self.$name.get() > 0 {
                    TOTALS.$name.fetch_add(self.$name.get(), Ordering::Relaxed);
                })*
            }
        }
    };
}

counters! {
    /// Commands given to backends.
    commands,
    /// Replays of backends' recordings. Each replaces the commands that it recorded.
    replays,
    /// Commands that were fused programs.
    fused,
    /// Graph operations inside fused programs.
    fused_operations,
    /// Bytes of distinct elements that commands read.
    bytes_read,
    /// Bytes that commands wrote.
    bytes_written,
    /// Outputs that took over an input's memory.
    donations,
    /// Copies made because a backend needs contiguous inputs.
    contiguous_copies,
    /// Evaluations and calls of compiled functions that reused the commands of an earlier one.
    repeated,
    /// Buffers copied between the host and a device.
    mirrors,
    /// Buffers copied from one accelerator to another.
    transfers,
    /// Bytes copied from devices to the host, in buffers and in parts of buffers.
    bytes_to_host,
    /// Bytes copied to devices from the host or from another accelerator, in buffers and in parts
    /// of buffers.
    bytes_to_devices,
}

/// Counts a copy between the host and a device.
pub(super) fn count_mirror() {
    TOTALS.mirrors.fetch_add(1, Ordering::Relaxed);
}

/// Counts a copy from one accelerator to another.
pub(super) fn count_transfer() {
    TOTALS.transfers.fetch_add(1, Ordering::Relaxed);
}

/// Counts bytes that are copied to the host.
pub(super) fn count_to_host(bytes: usize) {
    TOTALS.bytes_to_host.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Counts bytes that are copied to a device.
pub(super) fn count_to_device(bytes: usize) {
    TOTALS.bytes_to_devices.fetch_add(bytes as u64, Ordering::Relaxed);
}

pub(super) fn bump(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get() + by);
}
