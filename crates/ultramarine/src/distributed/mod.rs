//! Communication among processes: groups, collective operations and messages.
//!
//! ```text
//! all_sum(x, group) -> node with the result and a token, of x and the     operations.rs
//!                      token of the operation before, in the group's      collective.rs, chain.rs
//!                      stream
//!                   -> engine of the group's transport                    transport.rs
//! ```
//!
//! Programs are started as several processes (`mpirun`, or `python -m ultramarine.launch`). Each
//! process calls [`init`] for the group of all processes. A process that was started alone gets a
//! group of one process, in which operations return their operand, so the same program runs there.
//!
//! All processes of a group call the same operations, in the same order. Results are lazy, like all
//! arrays, and can be evaluated in any order, because an operation causes the group's earlier
//! operations to run before it. `compile` and the other transforms keep the order. Operations that
//! are not evaluated do not run. Therefore all processes have to evaluate them, or call [`finish`].

#![cfg_attr(not(feature = "distributed"), allow(dead_code, reason = "transports"))]

mod chain;
mod collective;
mod debug;
mod device_memory;
mod group;
mod init;
mod launched;
#[cfg(feature = "distributed")]
mod mpi;
mod nccl;
mod operations;
#[cfg(test)]
mod tests;
mod transport;

pub(crate) use chain::{Linked, Links, through};
pub use group::Group;
pub use init::{end_at_exit, finish, init, is_available};
pub use operations::{all_gather, all_max, all_min, all_sum, recv, recv_like, send, sum_scatter};
