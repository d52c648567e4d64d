//! The registry: which backend serves which device.
//!
//! GPU devices of all backends share one index space, in which nothing ever moves: backends are
//! appended and never removed. Readers take no lock. They see a list that never changes, and a
//! registration publishes a new list. So a forked child finds a complete registry, whatever the
//! parent's threads were doing. Replaced lists are leaked; there are as many of them as
//! registrations.

use super::{DeviceState, kernels, registration::Registration, start};
use crate::device::{Device, DeviceType};
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
#[cfg(feature = "loader")]
use ultramarine_abi::interface::about::{self, AboutInterface};
use ultramarine_abi::{self as abi, dlpack::device_type};

/// The properties of a loaded backend, from [`backends`] and from the functions that load one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Name, such as `cpu`.
    pub name: String,
    /// Variant, or empty.
    pub variant: String,
    /// The backend's own version; empty if it declares none.
    pub version: String,
    /// The backend's score, which is 1 for a linked-in backend.
    pub score: u32,
    /// CPU or GPU. The kernels of a CPU backend are asked before the built-in ones on cpu:0.
    pub device_type: DeviceType,
    /// DLPack's number for the type of its devices.
    pub dlpack_device_type: i32,
    /// The devices that the backend serves.
    pub devices: Vec<Device>,
    /// The description of each device.
    pub descriptions: Vec<String>,
    /// The file that the backend was loaded from; `None` if it is linked in.
    pub path: Option<PathBuf>,
}

/// A registered backend: its properties and the states of its devices.
struct Entry {
    info: BackendInfo,
    /// Empty for a backend that overlays cpu:0.
    devices: Vec<&'static DeviceState>,
}

impl Entry {
    fn leak(mut info: BackendInfo, devices: Vec<&'static DeviceState>) -> &'static Entry {
        info.devices = devices.iter().map(|d| d.device).collect();
        info.descriptions = devices.iter().map(|d| d.description()).collect();
        Box::leak(Box::new(Entry { info, devices }))
    }
}

#[derive(Clone, Default)]
struct Registry {
    entries: Vec<&'static Entry>,
    gpus: Vec<&'static DeviceState>,
}

unsafe extern "Rust" {
    /// The linked-in CPU backend, from the crate that uses [`crate::built_in_backend!`].
    #[link_name = "__ultramarine_runtime_0_1_built_in_backend"]
    safe fn built_in_backend() -> abi::BackendInit;
}

static CURRENT: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());
/// The built-in CPU backend: its device and its entry.
static HOST: OnceLock<(&'static DeviceState, &'static Entry)> = OnceLock::new();

#[inline]
fn current() -> &'static Registry {
    static EMPTY: Registry = Registry { entries: Vec::new(), gpus: Vec::new() };
    let current = CURRENT.load(Ordering::Acquire);
    // SAFETY: NULL, or a registry that was complete and leaked before it was published.
    unsafe { current.as_ref() }.unwrap_or(&EMPTY)
}

/// Returns the host's device.
#[inline]
pub fn host() -> &'static DeviceState {
    HOST.get_or_init(start_host).0
}

fn host_entry() -> &'static Entry {
    HOST.get_or_init(start_host).1
}

#[cold]
fn start_host() -> (&'static DeviceState, &'static Entry) {
    let started = match start::start(built_in_backend(), None) {
        Ok(started) => started,
        // The linked-in backend cannot fail to open; the library cannot work without it.
        Err(refusal) => unreachable!("the CPU backend does not start: {refusal:?}"),
    };
    match started.info(0).and_then(|info| started.open(0, info, Device::CPU)) {
        Ok(state) => (state, Entry::leak(linked(&started), vec![state])),
        Err(refusal) => unreachable!("the CPU backend does not open: {refusal:?}"),
    }
}

/// Returns the states of all GPUs of the registered backends.
#[inline]
pub fn gpus() -> &'static [&'static DeviceState] {
    &current().gpus
}

/// Returns the state of a registered device. Loads nothing: see [`crate::devices::get`].
///
/// # Errors
/// [`Error::Value`] when no loaded backend has the device.
#[inline]
pub fn registered(device: Device) -> Result<&'static DeviceState> {
    find(device).ok_or_else(|| unknown(device, ""))
}

/// Returns the state of a device, if a registered backend has it.
#[inline]
pub fn find(device: Device) -> Option<&'static DeviceState> {
    match device.kind {
        DeviceType::Cpu => (device.index == 0).then(host),
        DeviceType::Gpu => gpus().get(device.index as usize).copied(),
    }
}

/// Makes the error for a device that no registered backend has. `hint` is the remedy.
#[cold]
pub fn unknown(device: Device, hint: &str) -> Error {
    let loaded: Vec<String> = backends()
        .iter()
        .flat_map(|b| b.devices.iter().map(move |d| format!("{d} ({})", b.name)))
        .collect();
    Error::Value(
        format!("No backend is loaded for device {device}. Loaded: {}.{hint}", loaded.join(", "))
            .into(),
    )
}

/// Returns the loaded backends, the built-in CPU first. It does not load backends.
#[inline]
pub fn backends() -> Vec<BackendInfo> {
    std::iter::once(host_entry())
        .chain(current().entries.iter().copied())
        .map(|e| e.info.clone())
        .collect()
}

/// Returns the backend that serves a device. For cpu:0 it is the built-in one, even if there are
/// overlays.
#[inline]
pub fn backend_of(device: &DeviceState) -> Option<BackendInfo> {
    std::iter::once(host_entry())
        .chain(current().entries.iter().copied())
        .find(|e| e.devices.iter().any(|d| std::ptr::eq(*d, device)))
        .map(|e| e.info.clone())
}

/// Returns the loaded backend with a name; `None` if there is none. This loads none. If several
/// backends have the name, the built-in one is found last.
#[inline]
pub fn by_name(name: &str) -> Option<BackendInfo> {
    let built_in = || Some(&host_entry().info).filter(|i| i.name == name).cloned();
    loaded(name).or_else(built_in)
}

/// Returns lines about the libraries that the backend of a file found on this machine. Empty if the
/// backend has no such report.
#[cfg(feature = "loader")]
pub fn library_report(path: &std::path::Path) -> Vec<String> {
    let entries = &current().entries;
    let entry = entries.iter().find(|e| e.info.path.as_deref() == Some(path));
    let Some(state) = entry.and_then(|e| e.devices.first()) else { return Vec::new() };
    let Some(describe) =
        state.interface::<AboutInterface>(about::INTERFACE).and_then(|i| i.describe)
    else {
        return Vec::new();
    };
    let mut text = vec![0u8; 16 << 10];
    // SAFETY: the backend's own pointer, and a buffer with the given capacity.
    let bytes =
        unsafe { describe(state.table.backend, text.as_mut_ptr().cast(), text.len() as u64) };
    text.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

/// Returns the backend with a name, unless it is the built-in one.
#[inline]
pub fn loaded(name: &str) -> Option<BackendInfo> {
    current().entries.iter().find(|e| e.info.name == name).map(|e| e.info.clone())
}

#[inline]
pub fn kind_of(device_type: i32) -> DeviceType {
    if device_type == device_type::CPU { DeviceType::Cpu } else { DeviceType::Gpu }
}

/// Returns the properties of a backend without ABI info.
fn linked(started: &start::Started) -> BackendInfo {
    BackendInfo {
        name: started.name.clone(),
        variant: String::new(),
        version: String::new(),
        score: abi::DEFAULT_SCORE,
        device_type: kind_of(started.table.device_type),
        dlpack_device_type: started.table.device_type,
        devices: Vec::new(),
        descriptions: Vec::new(),
        path: None,
    }
}

/// Registers a backend that is linked into the program. Its devices follow those registered before.
/// A backend of device type CPU adds no device: it overlays the kernels of cpu:0.
///
/// # Safety
/// `init` keeps the contract of [`abi::BackendInit`].
///
/// # Errors
/// [`Error::Runtime`] with the backend's message if the backend does not start, or if it was built
/// for another version of the contract.
#[inline]
pub unsafe fn register(init: abi::BackendInit) -> Result<Vec<Device>> {
    let registration = Registration::begin()?;
    let started = start::start(init, None).map_err(start::StartError::into_error)?;
    let info = linked(&started);
    Ok(add(&registration, &started, info, true).map_err(start::StartError::into_error)?.devices)
}

/// Opens the devices of a started backend and appends them to the registry. A backend of device
/// type CPU gets no devices of its own: its kernels overlay those of cpu:0. Unless `duplicates` is
/// true, devices that another backend serves already are left out.
pub fn add(
    _registration: &Registration,
    started: &start::Started,
    info: BackendInfo,
    duplicates: bool,
) -> Result<BackendInfo, start::StartError> {
    let mut next = current().clone();
    let entry = if info.device_type == DeviceType::Cpu {
        kernels::overlay(started.table, &info.name, &info.variant, info.score)?;
        let descriptions = vec![abi::inline_str(&started.info(0)?.name)];
        let info = BackendInfo { devices: vec![Device::CPU], descriptions, ..info };
        &*Box::leak(Box::new(Entry { info, devices: Vec::new() }))
    } else {
        let before = &current().gpus;
        let mut devices = Vec::new();
        for i in 0..started.devices {
            let properties = started.info(i)?;
            if !duplicates && before.iter().any(|d| same(&d.info.identity, &properties.identity)) {
                continue;
            }
            let index = u16::try_from(before.len() + devices.len()).map_err(|_| {
                start::StartError::Table(
                    "there are too many devices: 65536 are possible".to_owned(),
                )
            })?;
            devices.push(started.open(i, properties, Device::gpu(index))?);
        }
        if devices.is_empty() && started.devices > 0 {
            return Err(start::StartError::Served);
        }
        Entry::leak(info, devices)
    };
    next.gpus.extend(&entry.devices);
    next.entries.push(entry);
    CURRENT.store(Box::into_raw(Box::new(next)), Ordering::Release);
    Ok(entry.info.clone())
}

/// Returns true if both identities belong to one physical device.
fn same(a: &abi::DeviceIdentity, b: &abi::DeviceIdentity) -> bool {
    let both = a.known & b.known;
    if both & abi::identity::UUID != 0 {
        return a.uuid == b.uuid;
    }
    let pci = |d: &abi::DeviceIdentity| (d.pci_domain, d.pci_bus, d.pci_device, d.pci_function);
    both & abi::identity::PCI != 0 && pci(a) == pci(b)
}

/// Returns true if a registered backend serves the device.
#[cfg(feature = "loader")]
#[inline]
pub fn serves(identity: &abi::DeviceIdentity) -> bool {
    current().gpus.iter().any(|d| same(&d.info.identity, identity))
}
