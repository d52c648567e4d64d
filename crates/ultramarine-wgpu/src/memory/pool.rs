//! Host-mapped buffers that are reused: for staging copies, and for arenas.

use super::Block;
use crate::context::{Context, lock};
use crate::hal::Place;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::Result;

/// Host-mapped blocks that are reused. A block is free when the pool has the only reference to it.
pub struct Pool {
    place: Place,
    blocks: Mutex<Vec<Arc<Block>>>,
}

/// Maximum number of blocks that a pool keeps.
const KEPT: usize = 16;

impl Pool {
    /// An empty pool for one kind of memory.
    pub fn new(place: Place) -> Self {
        Self { place, blocks: Mutex::default() }
    }

    /// An unused block of at least the given size. Sizes of blocks are powers of two from `least` on.
    pub fn take(&self, context: &Arc<Context>, bytes: u64, least: u64) -> Result<Arc<Block>> {
        let size = bytes.max(least).next_power_of_two().min(context.properties.max_buffer);
        let size = size.max(bytes);
        let mut blocks = lock(&self.blocks);
        let free = |block: &&Arc<Block>| block.bytes() >= size && Arc::strong_count(block) == 1;
        let found = blocks.iter().filter(free).min_by_key(|block| block.bytes());
        if let Some(found) = found {
            return Ok(found.clone());
        }
        let made = Block::new(context, size, self.place)?;
        if blocks.len() >= KEPT {
            // The larger block replaces unused smaller ones.
            blocks.retain(|block| Arc::strong_count(block) > 1);
        }
        if blocks.len() < KEPT {
            blocks.push(made.clone());
        }
        Ok(made)
    }

    /// Bytes of the blocks that are in use.
    pub fn in_use(&self) -> u64 {
        let blocks = lock(&self.blocks);
        let used = blocks.iter().filter(|block| Arc::strong_count(block) > 1);
        used.map(|block| block.bytes()).sum()
    }

    /// Drops unused blocks.
    pub fn trim(&self) {
        lock(&self.blocks).retain(|block| Arc::strong_count(block) > 1);
    }
}
