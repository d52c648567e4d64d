//! Starting a backend: calling its init, checking its table, and opening its devices.

use super::DeviceState;
use crate::error::{Error, Result};
use crate::{device::Device, host_table, validation_layer};
use std::ffi::CStr;
use ultramarine_abi::{
    self as abi,
    negotiate::{self, Mismatch},
};

/// The most devices of a backend. A larger number is treated as garbage.
pub const MOST_DEVICES: u32 = 1024;

/// A struct that a backend fills, followed by a guard. If the backend assumes a longer struct, it
/// overwrites the guard instead of other memory, and the error is detected.
#[repr(C)]
pub struct Guarded<T> {
    pub value: T,
    guard: [u8; 4096],
}

const PATTERN: u8 = 0xc5;

impl<T: Copy> Guarded<T> {
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self { value, guard: [PATTERN; 4096] })
    }

    /// Returns the pointer that the backend writes to. Its provenance covers the guard too, so that
    /// writing past the struct is detected and is not undefined behaviour.
    pub fn place(&mut self) -> *mut T {
        (&raw mut *self).cast()
    }

    /// Returns true if only the struct was written to.
    pub fn is_whole(&self) -> bool {
        self.guard.iter().all(|b| *b == PATTERN)
    }
}

/// The reason why a backend did not start. The load report shows it.
#[derive(Debug)]
pub enum StartError {
    /// The backend's init, or one of its functions that describe devices, failed.
    Failed(Error),
    /// The table differs from the backend's ABI info, or violates the contract.
    Table(String),
    /// The table lacks a required function.
    Function(&'static str),
    /// The backend has no device.
    #[cfg_attr(not(feature = "loader"), allow(dead_code))]
    NoDevice,
    /// Other backends serve all of its devices.
    Served,
}

impl StartError {
    pub fn into_error(self) -> Error {
        match self {
            StartError::Failed(error) => error,
            StartError::Table(text) => Error::Runtime(text.into()),
            StartError::Function(name) => {
                Error::Runtime(Mismatch::TableFunction { name }.to_string().into())
            }
            StartError::NoDevice => Error::Runtime("the backend has no device".into()),
            StartError::Served => Error::Runtime("its devices are served already".into()),
        }
    }
}

impl From<Error> for StartError {
    fn from(error: Error) -> StartError {
        StartError::Failed(error)
    }
}

/// A backend whose init has run.
pub struct Started {
    pub table: abi::BackendTable,
    pub name: String,
    /// Number of devices.
    pub devices: u32,
}

/// Calls `init` and checks the table that it filled, also against `info` if the backend has one.
pub fn start(
    init: abi::BackendInit,
    info: Option<&abi::BackendAbiInfo>,
) -> Result<Started, StartError> {
    let room = size_of::<abi::BackendTable>() as u32;
    // SAFETY: all-zero is a valid table: no functions, NULL pointers.
    let mut place = Guarded::<abi::BackendTable>::new(unsafe { std::mem::zeroed() });
    place.value.size = room;
    let mut error = std::ptr::null_mut();
    // SAFETY: both tables are valid, and the host's lives for ever.
    let code = unsafe { init(host_table::table(), place.place(), &mut error) };
    host_table::check("init", code, error)?;
    if !place.is_whole() {
        return Err(StartError::Table(format!("init wrote beyond the {room} bytes of the table")));
    }
    let written = place.value.size;
    if written > room {
        return Err(StartError::Table(format!(
            "init says that it wrote {written} bytes of the table, which has room for {room}"
        )));
    }
    // SAFETY: the table begins with its size, which is at most the size of its memory.
    let table = unsafe { abi::read_sized(&place.value) }
        .ok_or_else(|| StartError::Table("no table".to_owned()))?;
    match info {
        Some(info) => {
            let promised = info.table_size.min(room);
            if written != promised {
                return Err(StartError::Table(format!(
                    "its table has {written} bytes, its ABI info promised {promised}"
                )));
            }
            // SAFETY: the table's name is NULL or a static NUL-terminated string by contract.
            unsafe { negotiate::check_table(info, &table) }.map_err(|mismatch| match mismatch {
                Mismatch::TableFunction { name } => StartError::Function(name),
                other => StartError::Table(other.to_string()),
            })?;
        }
        None => check_linked(&table)?,
    }
    let name = if table.name.is_null() {
        "unnamed".to_owned()
    } else {
        // SAFETY: the name is a static NUL-terminated string by contract.
        unsafe { CStr::from_ptr(table.name) }.to_string_lossy().into_owned()
    };
    // SAFETY: the backend's own function with its own pointer.
    let devices = table.device_count.map_or(0, |count| unsafe { count(table.backend) });
    if devices > MOST_DEVICES {
        return Err(StartError::Table(format!(
            "it says that it has {devices} devices, where {MOST_DEVICES} are possible"
        )));
    }
    Ok(Started { table: validation_layer::wrap_if_enabled(table), name, devices })
}

/// Checks the table of a linked-in backend, which has no ABI info: its version and its required
/// functions.
fn check_linked(table: &abi::BackendTable) -> Result<(), StartError> {
    let (theirs, ours) = ((table.abi_major, table.abi_minor), negotiate::Host::here().abi);
    if !negotiate::abi_agrees(theirs, ours) {
        return Err(StartError::Table(Mismatch::Abi { theirs, ours }.to_string()));
    }
    let needed = [
        ("device_count", table.device_count.is_some()),
        ("device_info", table.device_info.is_some()),
        ("device_open", table.device_open.is_some()),
        ("prepare", table.prepare.is_some()),
        ("submit", table.submit.is_some()),
    ];
    match needed.iter().find(|(_, there)| !there) {
        Some((name, _)) => Err(StartError::Function(name)),
        None => Ok(()),
    }
}

impl Started {
    /// Returns the properties that a device declares.
    pub fn info(&self, index: u32) -> Result<abi::DeviceInfo, StartError> {
        let missing = || StartError::Table("its table lacks device_info".to_owned());
        let describe = self.table.device_info.ok_or_else(missing)?;
        // SAFETY: all-zero is a valid DeviceInfo.
        let mut place = Guarded::<abi::DeviceInfo>::new(unsafe { std::mem::zeroed() });
        place.value.size = size_of::<abi::DeviceInfo>() as u32;
        let mut error = std::ptr::null_mut();
        // SAFETY: the places for the results are valid, and the index is below the count.
        let code = unsafe { describe(self.table.backend, index, place.place(), &mut error) };
        host_table::check("device_info", code, error)?;
        if !place.is_whole() {
            return Err(StartError::Table("device_info wrote beyond its struct".to_owned()));
        }
        Ok(place.value)
    }

    /// Opens a device of the backend under a global name. Its state is never freed.
    pub fn open(
        &self,
        index: u32,
        info: abi::DeviceInfo,
        device: Device,
    ) -> Result<&'static DeviceState, StartError> {
        let missing = || StartError::Table("its table lacks device_open".to_owned());
        let open = self.table.device_open.ok_or_else(missing)?;
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the places for the results are valid, and the index is below the count.
        let code = unsafe { open(self.table.backend, index, &mut handle, &mut error) };
        host_table::check("device_open", code, error)?;
        Ok(DeviceState::leak(self, index, info, device, handle))
    }
}
