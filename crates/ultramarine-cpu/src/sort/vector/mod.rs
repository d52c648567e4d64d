//! Sorting with vectors, on x86-64-v4: quicksort whose partitions move a vector at a time, and sorting networks in
//! registers for short runs.

pub mod lanes;
mod network;
mod quick;
pub mod samplesort;

pub use samplesort::sort_long;

use crate::level::Level;
use lanes::Lane;

/// Sorts keys, or moves the key of rank `kth` to its place. Returns `false` if the level does not have the
/// instructions.
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
