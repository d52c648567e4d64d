//! Sorting in vectors, on x86-64-v4: quicksort whose partitions move a vector at a time, above sorting
//! networks in registers.

pub mod lanes;
mod network;
mod quick;
pub mod samplesort;

pub use samplesort::sort_long;

use crate::level::Level;
use lanes::Lane;

/// Sorts keys, or moves the one of rank `kth` to its place; `false` if the level lacks the instructions.
pub fn arrange<L: Lane>(level: Level, keys: &mut [L], kth: Option<usize>) -> bool {
    if level < Level::V4 {
        return false;
    }
    // SAFETY: the level says that the instructions are there.
    unsafe {
        match kth {
            None => quick::sort(keys),
            Some(k) => {
                assert!(k < keys.len());
                quick::select(keys, k)
            }
        }
    }
    true
}
