//! Reading and writing through index arrays: gather and scatter.

pub mod gather;
pub mod gather_axis;
mod indices;
pub mod scatter;
pub mod scatter_axis;
mod update;

#[cfg(test)]
mod tests;

/// Index positions that are worked on at a time; their offsets stay in the L1 cache.
const BLOCK: usize = 256;
