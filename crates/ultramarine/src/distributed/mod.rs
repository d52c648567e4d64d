//! Communication among processes: groups, collective operations and messages.
//!
//! ```text
//! all_sum(x, group) -> node of two results on the group's stream      operations.rs, collective.rs
//!                      operands: x, and the token of the group's last node     chain.rs
//!                   -> engine of the group's transport                transport.rs
//!                      host memory (MPI), or a device's stream
//! ```

pub mod transport;
