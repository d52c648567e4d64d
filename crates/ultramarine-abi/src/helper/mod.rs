//! Help for backends written in Rust: safe traits, and a macro that makes a plugin of them.
//!
//! ```ignore
//! struct Mine { host: Host }
//! impl Backend for Mine { type Device = MyDevice; .. }
//! impl SyncDevice for MyDevice { .. }   // or Device, for one with queues of its own
//! ultramarine_abi::export_backend! {
//!     backend: Mine, name: "mine", variant: "", device_type: 12, version: "1.0"
//! }
//! ```
//!
//! The macro emits the entry points, the ABI info and its note. Every entry catches panics and
//! makes errors of them, reads and writes structs by `min(size)` and walks arrays by the strides
//! that they say. Nothing is needed besides the standard library; the crate must be built with
//! unwinding panics, or a panic ends the process.
//!
//! * [`Backend`], [`Device`], [`SyncDevice`]: what a backend implements;
//! * [`Request`], [`Commands`], [`TensorRef`]: what it is asked, as safe views;
//! * [`Dtype`], [`Desc`], [`OpRequest`]: dtypes as an enum, and requests with their tensors decoded;
//! * [`ProgramParts`]: fused programs, decoded;
//! * [`Host`]: what the host lends; [`Failure`]: errors; [`bail!`](crate::bail) and
//!   [`ensure!`](crate::ensure): early returns with one;
//! * [`host_memory_buffers!`](crate::host_memory_buffers): buffers in the host's memory;
//! * [`guard`], [`with_device`], [`handle`], [`give`], [`take`]: for entries of optional interfaces,
//!   which a backend writes itself;
//! * [`Recorder`], [`RecordedCommands`]: recordings of commands;
//! * [`Lender`]: memory that is lent for uploads;
//! * [`Collectives`]: groups of devices of several processes;
//! * [`disk`]: compiled code on disk;
//! * [`HOST_TIMING`]: the timestamps of synchronous devices;
//! * [`export_abi_info!`](crate::export_abi_info): the info and note alone.

mod backend;
mod build;
mod collective;
mod command;
pub mod disk;
pub mod dtype;
mod export;
mod failure;
mod glue;
mod host;
mod program;
mod recording;
mod replay;
mod request;
mod sync;
mod timing;
mod upload;

pub use backend::{Backend, Device, InterfaceRef, Score, SyncDevice};
pub use build::features;
pub use collective::{CollectiveRef, Collectives, collective_table};
pub use command::{CommandRef, Commands, Plain, Request, TensorRef};
pub use dtype::Dtype;
pub use export::nul_terminated;
pub use failure::{Failure, Result, guard, guard_value, panic_message};
pub use glue::{device_of, give, handle, host_of, init, score, take, with_device};
pub use host::{Host, HostMemory, Level};
pub use program::{ProgramLimits, ProgramParts};
pub use recording::RecordedCommands;
pub use replay::{Recorder, replay_table};
pub use request::{Desc, OpRequest, is_row_major, row_major};
pub use sync::{SyncEvent, SyncStream};
pub use timing::HOST_TIMING;
pub use upload::{Lender, upload_table};
