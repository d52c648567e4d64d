//! Device memory: an allocator that splits the driver's blocks, buffers, and imported memory.

mod allocator;
mod buffer;
mod pool;
mod release;

pub use allocator::{ALIGNMENT, Allocator};
pub use buffer::Buffer;
pub use pool::{PieceId, StreamId};
pub use release::Release;
