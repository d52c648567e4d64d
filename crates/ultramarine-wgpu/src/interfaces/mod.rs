//! The optional interfaces, by their ids.

mod fused;
mod statistics;
mod stream_memory;
mod user_kernel;

use core::ffi::CStr;
use ultramarine_abi::helper::InterfaceRef;
use ultramarine_abi::interface::{kernel, statistics as counts, stream_memory as ordered};

/// Languages of users' kernels.
pub const LANGUAGES: &str = user_kernel::LANGUAGE;

/// The table of an interface.
pub fn find(id: &CStr) -> Option<InterfaceRef> {
    match id {
        _ if id == ultramarine_abi::fused::INTERFACE => Some(InterfaceRef::fused(&fused::TABLE)),
        _ if id == kernel::INTERFACE => Some(InterfaceRef::kernel(&user_kernel::TABLE)),
        _ if id == counts::INTERFACE => Some(InterfaceRef::statistics(&statistics::TABLE)),
        _ if id == ordered::INTERFACE => Some(InterfaceRef::stream_memory(&stream_memory::TABLE)),
        _ => None,
    }
}
