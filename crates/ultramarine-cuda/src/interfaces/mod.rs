//! The optional interfaces of the contract, found by their ids.

mod collective;
mod foreign_memory;
mod fused;
mod library_report;
mod peer;
mod replay;
mod statistics;
mod stream_memory;
mod timing;
mod upload;
mod user_kernel;

use core::ffi::CStr;
use ultramarine_abi::helper::InterfaceRef;
use ultramarine_abi::interface;

/// The table of an interface.
pub fn find(id: &CStr) -> Option<InterfaceRef> {
    match id {
        _ if id == ultramarine_abi::fused::INTERFACE => fused::interface(),
        _ if id == ultramarine_abi::fused::ANCHORED_INTERFACE => fused::anchored(),
        _ if id == interface::collective::INTERFACE => {
            Some(InterfaceRef::collective(&collective::TABLE))
        }
        _ if id == interface::memory::INTERFACE => {
            Some(InterfaceRef::memory(foreign_memory::table()))
        }
        _ if id == interface::kernel::INTERFACE => Some(InterfaceRef::kernel(&user_kernel::TABLE)),
        _ if id == interface::peer::INTERFACE => Some(InterfaceRef::peer(&peer::TABLE)),
        _ if id == interface::replay::INTERFACE => Some(InterfaceRef::replay(&replay::TABLE)),
        _ if id == interface::statistics::INTERFACE => {
            Some(InterfaceRef::statistics(&statistics::TABLE))
        }
        _ if id == interface::stream_memory::INTERFACE => {
            Some(InterfaceRef::stream_memory(&stream_memory::TABLE))
        }
        _ if id == interface::timing::INTERFACE => Some(InterfaceRef::timing(&timing::TABLE)),
        _ if id == interface::upload::INTERFACE => Some(InterfaceRef::upload(&upload::TABLE)),
        _ if id == interface::about::INTERFACE => Some(InterfaceRef::about(&library_report::TABLE)),
        _ => None,
    }
}
