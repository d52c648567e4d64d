//! Kernel tables. Every device has its backend's own table. On cpu:0, plugins of device type CPU
//! overlay it: they are asked first, and operations that they refuse run on the built-in kernels.
//! Memory, streams and threads stay the host's.

use super::{counts::OpCounters, interface_of};
use crate::error::{Error, Result};
use crate::host_table;
use core::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use ultramarine_abi::{
    self as abi,
    dlpack::device_type,
    fused::{AnchoredInterface, FusedInterface},
};

/// A table of kernels: the functions of a backend that make plans and run commands. A device has
/// its backend's own table. Each overlay of cpu:0 has a table too.
pub struct Kernels {
    /// The backend's name.
    pub backend: String,
    /// Its variant, or empty.
    pub variant: String,
    /// The backend's score. Overlays are asked in the order of falling scores.
    pub score: u32,
    pub table: abi::BackendTable,
    pub handle: *mut c_void,
    /// The backend's index of the device, which is DLPack's device id.
    pub ordinal: i32,
    pub fused: Option<FusedInterface>,
    /// The interface for fused programs with an anchor.
    pub anchored: Option<AnchoredInterface>,
    /// Limits on the instructions and inputs of a fused program.
    pub fused_limits: (u32, u32),
    /// Counts of the operations that the table ran.
    pub counts: OpCounters,
}

// SAFETY: the handle is only passed to the table's functions, and the contract allows calls from
// the threads that make them.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Kernels {
    /// Makes the table of an open device.
    pub fn new(
        backend: &str,
        variant: &str,
        score: u32,
        table: abi::BackendTable,
        (handle, ordinal): (*mut c_void, i32),
        info: &abi::DeviceInfo,
    ) -> &'static Kernels {
        let fused: Option<FusedInterface> = interface_of(&table, abi::fused::INTERFACE);
        let anchored: Option<AnchoredInterface> =
            interface_of(&table, abi::fused::ANCHORED_INTERFACE);
        Box::leak(Box::new(Kernels {
            backend: backend.to_string(),
            variant: variant.to_string(),
            score,
            table,
            handle,
            ordinal,
            fused: fused.filter(|f| f.prepare.is_some()),
            anchored: anchored.filter(|f| f.prepare.is_some()),
            fused_limits: (info.fused_max_instructions, info.fused_max_inputs),
            counts: OpCounters::default(),
        }))
    }

    /// Returns true if the table accepts fused programs of this size.
    pub fn takes_programs(&self, instructions: u32, inputs: u32) -> bool {
        self.fused.is_some() && instructions <= self.fused_limits.0 && inputs <= self.fused_limits.1
    }
}

/// A device's tables, in the order in which they are asked. Readers take no lock, so that a forked
/// child always finds a complete list. Replaced lists are leaked; there are as many of them as
/// overlays.
pub struct KernelList(AtomicPtr<Vec<&'static Kernels>>);

impl KernelList {
    pub fn new(own: &'static Kernels) -> Self {
        KernelList(AtomicPtr::new(Box::into_raw(Box::new(vec![own]))))
    }

    /// Returns the current tables.
    #[inline]
    pub fn get(&self) -> &'static [&'static Kernels] {
        // SAFETY: the list was complete and leaked before the pointer was stored, and never
        // changes.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Returns the device's own table if there are no overlays.
    #[inline]
    pub fn alone(&self) -> Option<&'static Kernels> {
        match self.get() {
            [own] => Some(own),
            _ => None,
        }
    }

    /// Inserts an overlay before the device's own table, which is the last.
    fn insert(&self, kernels: &'static Kernels) {
        loop {
            let old = self.0.load(Ordering::Acquire);
            // SAFETY: as in `get`.
            let mut all = unsafe { (*old).clone() };
            let own = all.len() - 1;
            let at = all[..own].iter().position(|k| k.score < kernels.score).unwrap_or(own);
            all.insert(at, kernels);
            let new = Box::into_raw(Box::new(all));
            let stored =
                self.0.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok();
            if stored {
                return;
            }
        }
    }
}

/// Overlays the built-in kernels of cpu:0 with a plugin of device type CPU. Its entry point has
/// filled the table, and the table's version has been checked. The first of its devices is opened.
/// Arrays stay valid, and plans are made anew.
///
/// # Errors
/// [`Error::Runtime`] if the plugin is not for the CPU, lacks a function, has no device, or does
/// not finish its work in host memory before `submit` returns.
pub fn overlay(table: abi::BackendTable, name: &str, variant: &str, score: u32) -> Result<()> {
    let refuse = |why: &str| Err(Error::Runtime(format!("backend {name} {why}").into()));
    if table.device_type != device_type::CPU {
        return refuse(
            "is not of device type CPU, so it cannot overlay cpu:0. Let its table have device type CPU",
        );
    }
    let (Some(count), Some(info_of), Some(open), Some(_), Some(_)) =
        (table.device_count, table.device_info, table.device_open, table.prepare, table.submit)
    else {
        return refuse("lacks a required function. Run the conformance kit on it");
    };
    // SAFETY: the backend's own function with its own pointer.
    if unsafe { count(table.backend) } == 0 {
        return refuse("has no device. Let its score be 0");
    }
    // SAFETY: all-zero is a valid DeviceInfo.
    let mut info: abi::DeviceInfo = unsafe { std::mem::zeroed() };
    info.size = size_of::<abi::DeviceInfo>() as u32;
    let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the pointers are valid for writing, and index 0 is below the count.
    let code = unsafe { info_of(table.backend, 0, &mut info, &mut error) };
    host_table::check("device_info", code, error)?;
    if info.synchronous == 0 || info.host_memory == 0 {
        return refuse(
            "does not compute in host memory and synchronously. Set `host_memory` and `synchronous` in device_info",
        );
    }
    let mut error = std::ptr::null_mut();
    // SAFETY: as above.
    let code = unsafe { open(table.backend, 0, &mut handle, &mut error) };
    host_table::check("device_open", code, error)?;
    let device = super::host();
    device.kernels.insert(Kernels::new(name, variant, score, table, (handle, 0), &info));
    device.plans.clear();
    Ok(())
}
