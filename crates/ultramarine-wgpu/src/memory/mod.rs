//! Memory of a device, and memory that the host writes and reads. The hal's allocator allocates buffers from
//! larger blocks of the driver's memory.

mod allocator;
mod arena;
mod block;
mod pool;

pub use allocator::{Allocator, Buffer, Counts, Limits};
pub use arena::Arena;
pub use block::Block;
pub use pool::Pool;
