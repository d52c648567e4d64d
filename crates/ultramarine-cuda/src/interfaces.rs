//! The optional interfaces, by their ids.

use core::ffi::CStr;
use ultramarine_abi::helper::InterfaceRef;

/// The table of an interface.
pub fn find(_id: &CStr) -> Option<InterfaceRef> {
    None
}
