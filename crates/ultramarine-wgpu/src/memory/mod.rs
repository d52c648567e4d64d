//! Memory of a device, and pools of memory that the host writes and reads. The hal's allocator takes buffers out of
//! larger blocks of the driver's; those that are freed are kept for the next of their size.

mod block;
mod pool;

pub use block::{Block, Place};
pub use pool::Pool;

use std::sync::Arc;

/// The contract's buffer.
pub struct Buffer(pub Arc<Block>);
