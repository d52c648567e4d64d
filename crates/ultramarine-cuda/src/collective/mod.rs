//! Collectives by NCCL: communicators, and the conversion of commands to NCCL calls.
//!
//! NCCL enqueues its work on the backend's own streams. It reads its own environment variables
//! (`NCCL_...`), which the backend does not change.

mod communicator;
mod enqueue;
mod helpers;

pub use communicator::Communicator;
pub use enqueue::enqueue;
pub use helpers::Helpers;
