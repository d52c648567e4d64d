//! Collectives through NCCL: communicators, and from commands to its calls.
//!
//! NCCL enqueues on the backend's own streams. It reads its own environment (`NCCL_...`), of which nothing is changed here.

mod communicator;
mod enqueue;
mod helpers;

pub use communicator::Communicator;
pub use enqueue::enqueue;
pub use helpers::Helpers;
