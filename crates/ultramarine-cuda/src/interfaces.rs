//! The optional interfaces, by their ids.

use crate::{ops, statistics};
use core::ffi::CStr;
use ultramarine_abi::fused;
use ultramarine_abi::helper::InterfaceRef;
use ultramarine_abi::interface;

/// The table of an interface.
pub fn find(id: &CStr) -> Option<InterfaceRef> {
    if id == interface::statistics::INTERFACE {
        return Some(InterfaceRef::statistics(&statistics::TABLE));
    }
    if id == fused::INTERFACE {
        return ops::fused::interface();
    }
    None
}
