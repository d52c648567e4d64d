//! Collectives through NCCL: communicators, and the translation of commands to NCCL's calls.
//!
//! NCCL enqueues on the backend's own streams. It reads its own environment variables (`NCCL_...`), which this backend does
//! not change.

mod communicator;
mod enqueue;
mod helpers;

pub use communicator::Communicator;
pub use enqueue::enqueue;
pub use helpers::Helpers;
