//! Device memory: an allocator over blocks of the driver's, buffers, and imported memory.

mod allocator;
mod buffer;
mod pool;
mod release;

pub use allocator::{ALIGNMENT, Allocator};
pub use buffer::Buffer;
pub use pool::{PieceId, StreamId};
pub use release::Release;
