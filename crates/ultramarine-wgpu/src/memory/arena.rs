//! Short pieces of memory that the host writes once and the device reads: words of commands, and small uploads. They
//! are consecutive parts of large blocks, so that many commands share a binding.

use super::{Block, Pool};
use crate::context::Context;
use crate::hal::Place;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// Minimum size of a block, in bytes.
const BLOCK: u64 = 1 << 20;

/// A source of short pieces of memory that the host writes. They are consecutive parts of large
/// blocks, which are reused when the device has completed the work that reads them.
pub struct Arena {
    pool: Pool,
    block: Option<Arc<Block>>,
    used: u64,
}

impl Default for Arena {
    fn default() -> Self {
        Self { pool: Pool::new(Place::Upload), block: None, used: 0 }
    }
}

impl Arena {
    /// Writes bytes to unused memory, at a multiple of `alignment`. Returns the block and the offset in it.
    pub fn write(
        &mut self,
        context: &Arc<Context>,
        bytes: &[u8],
        alignment: u64,
    ) -> Result<(Arc<Block>, u64)> {
        let len = bytes.len() as u64;
        let place = self.used.next_multiple_of(alignment.max(1));
        let fits = |block: &&Arc<Block>| place + len <= block.bytes();
        let (block, place) = match self.block.as_ref().filter(fits) {
            Some(block) => (block.clone(), place),
            None => {
                // The block is released first, so that the pool can return it again if all its uses
                // have completed.
                self.block = None;
                let block = self.pool.take(context, len, BLOCK)?;
                self.block = Some(block.clone());
                (block, 0)
            }
        };
        // SAFETY: the pool returned the block to this arena only, and the part from `place` on is
        // unused.
        unsafe { block.write(place, bytes)? };
        self.used = place + len;
        Ok((block, place))
    }

    /// Drops unused blocks.
    pub fn trim(&mut self) {
        self.block = None;
        self.pool.trim();
    }
}
