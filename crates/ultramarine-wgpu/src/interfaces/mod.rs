//! The optional interfaces, by their ids.

mod fused;

use core::ffi::CStr;
use ultramarine_abi::helper::InterfaceRef;

/// The table of an interface.
pub fn find(id: &CStr) -> Option<InterfaceRef> {
    match id {
        _ if id == ultramarine_abi::fused::INTERFACE => Some(InterfaceRef::fused(&fused::TABLE)),
        _ => None,
    }
}
