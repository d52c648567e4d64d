//! `ultramarine.profile/1`: ranges of NVTX, which Nsight shows. Where NVTX is not installed they
//! are nothing.

use crate::context;
use crate::sys::nvtx::nvtx;
use core::ffi::{c_char, c_void};
use ultramarine_abi::helper::{guard_value, host_of};
use ultramarine_abi::interface::profile::ProfileInterface;

/// The interface.
pub static TABLE: ProfileInterface = ProfileInterface {
    size: size_of::<ProfileInterface>() as u32,
    flags: 0,
    range_push: Some(range_push),
    range_pop: Some(range_pop),
};

// The safety of the functions below is the contract's: names are NUL-terminated.

unsafe extern "C" fn range_push(device: *mut c_void, _stream: *mut c_void, name: *const c_char) {
    // SAFETY: the contract's.
    let host = unsafe { host_of::<crate::launch::Device>(device) };
    guard_value(host.as_ref(), (), || {
        if let (false, false, Some(nvtx)) = (name.is_null(), context::forked(), nvtx()) {
            // SAFETY: a NUL-terminated text, which is copied.
            unsafe { (nvtx.push)(name) };
        }
    });
}

unsafe extern "C" fn range_pop(device: *mut c_void, _stream: *mut c_void) {
    // SAFETY: the contract's.
    let host = unsafe { host_of::<crate::launch::Device>(device) };
    guard_value(host.as_ref(), (), || {
        if let (false, Some(nvtx)) = (context::forked(), nvtx()) {
            // SAFETY: no argument; without an open range it does nothing.
            unsafe { (nvtx.pop)() };
        }
    });
}
