//! Optional interfaces of a backend. The host finds each by its id, with
//! [`crate::BackendTable::interface`]; the answer is a static table, or NULL.
//!
//! An id ends in the interface's revision. Within a revision structs only grow, and their sizes
//! tell how long they are. The rules of [`crate::BackendTable`] apply: statuses and errors,
//! handles, *(any)* and *(stream)*, missing functions. Pointers in arguments are valid during the
//! call only.

pub mod about;
pub mod collective;
pub mod fused;
pub mod kernel;
pub mod memory;
pub mod peer;
pub mod replay;
pub mod statistics;
pub mod stream_memory;
pub mod timing;
pub mod upload;

use core::ffi::CStr;

/// Ids of all interfaces of this version of the contract.
pub const IDS: [&CStr; 12] = [
    about::INTERFACE,
    collective::INTERFACE,
    fused::INTERFACE,
    fused::ANCHORED_INTERFACE,
    kernel::INTERFACE,
    memory::INTERFACE,
    peer::INTERFACE,
    replay::INTERFACE,
    statistics::INTERFACE,
    stream_memory::INTERFACE,
    timing::INTERFACE,
    upload::INTERFACE,
];
