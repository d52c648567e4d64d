//! Memory of a device, and pools of memory that the host writes and reads. The hal's allocator takes buffers out of
//! larger blocks.

mod block;
mod pool;

pub use block::{Block, Place};
pub use pool::Pool;

use std::sync::Arc;

/// The contract's buffer.
pub struct Buffer(pub Arc<Block>);
