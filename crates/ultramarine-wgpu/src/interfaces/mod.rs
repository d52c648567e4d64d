//! The optional interfaces of the contract, found by their ids.

mod about;
#[cfg(target_vendor = "apple")]
mod foreign_memory;
mod fused;
mod statistics;
mod stream_memory;
mod timing;
mod upload;
mod user_kernel;

use core::ffi::CStr;
use ultramarine_abi::helper::InterfaceRef;
use ultramarine_abi::interface as contract;

/// The table of an interface.
pub fn find(id: &CStr) -> Option<InterfaceRef> {
    match id {
        _ if id == contract::about::INTERFACE => Some(InterfaceRef::about(&about::TABLE)),
        _ if id == ultramarine_abi::fused::INTERFACE => Some(InterfaceRef::fused(&fused::TABLE)),
        _ if id == ultramarine_abi::fused::ANCHORED_INTERFACE => {
            Some(InterfaceRef::anchored(&fused::ANCHORED))
        }
        #[cfg(target_vendor = "apple")]
        _ if id == contract::memory::INTERFACE => {
            Some(InterfaceRef::memory(&foreign_memory::TABLE))
        }
        _ if id == contract::kernel::INTERFACE => Some(InterfaceRef::kernel(&user_kernel::TABLE)),
        _ if id == contract::statistics::INTERFACE => {
            Some(InterfaceRef::statistics(&statistics::TABLE))
        }
        _ if id == contract::stream_memory::INTERFACE => {
            Some(InterfaceRef::stream_memory(&stream_memory::TABLE))
        }
        _ if id == contract::upload::INTERFACE => Some(InterfaceRef::upload(&upload::TABLE)),
        _ if id == contract::timing::INTERFACE => Some(InterfaceRef::timing(&timing::TABLE)),
        _ => None,
    }
}
