//! Optional interfaces: valid tables, and the behaviour that they promise.

use super::with_device;
use crate::device::Device;
use crate::options::Options;
use crate::plugin::{Source, call};
use crate::record::{Outcome, PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use core::ffi::c_void;
use serde_json::json;
use std::ffi::CStr;
use ultramarine_abi::inline_str;
use ultramarine_abi::interface;
use ultramarine_abi::interface::kernel::{self, KernelInterface};
use ultramarine_abi::interface::peer::{self, PeerInterface};
use ultramarine_abi::interface::statistics::{self, MemoryStatistics, StatisticsInterface};

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "interfaces", |recorder, device| {
        let mut offered = Vec::new();
        recorder.check("interfaces/tables", || tables(device, &mut offered));
        recorder.property("interfaces", json!(offered));
        recorder.check("interfaces/statistics", || counts(device));
        super::foreign_memory::run(recorder, device);
        super::stream_memory::run(recorder, device);
        recorder.check("interfaces/peer copy", || peer_copy(device, device));
        recorder.check("interfaces/peer copy between devices", || match neighbour(device) {
            None => skip("there is one device"),
            Some(other) => {
                let other = Device::open(device.backend, other)?;
                let result = peer_copy(device, &other).and_then(|_| peer_copy(&other, device));
                other.close();
                result
            }
        });
        super::replay::run(recorder, device);
        super::timing::run(recorder, device);
        super::upload::run(recorder, device);
        recorder.check("interfaces/kernel languages", || languages(device));
    });
}

/// Returns the interface, or ends the check if the backend does not offer it.
macro_rules! offered {
    ($device:expr, $t:ty, $id:expr) => {
        // SAFETY: the callers name the id's own struct.
        match unsafe { $device.interface::<$t>($id) } {
            Some(interface) => interface,
            None => return skip("not offered"),
        }
    };
}

fn tables(device: &Device<'_>, offered: &mut Vec<String>) -> Result {
    let Some(ask) = device.backend.table.interface else { return skip("no interfaces") };
    for id in interface::IDS {
        // SAFETY: the backend's function with the backend's pointer and a C string.
        let [first, second] =
            [0; 2].map(|_| unsafe { ask(device.backend.table.backend, id.as_ptr()) });
        if first.is_null() {
            continue;
        }
        let name = id.to_string_lossy().into_owned();
        ensure!(first == second, "{name} returns another table at each call; return the same");
        // SAFETY: every interface begins with its size.
        let size = unsafe { first.cast::<u32>().read_unaligned() };
        if !(16..=4096).contains(&size) || size % 4 != 0 {
            return Err(format!("{name} says that its table has {size} bytes"));
        }
        offered.push(name);
    }
    PASSED
}

fn read(device: &Device<'_>, i: &StatisticsInterface) -> Result<MemoryStatistics> {
    read_up_to(device, i, size_of::<MemoryStatistics>() as u32)
}

/// Reads counts up to a size. Those beyond the size are unchanged: all bits set.
fn read_up_to(device: &Device<'_>, i: &StatisticsInterface, size: u32) -> Result<MemoryStatistics> {
    let read = i.read.ok_or("no function read")?;
    let untouched = u64::MAX;
    let mut counts =
        MemoryStatistics { size, total: untouched, free: untouched, ..MemoryStatistics::default() };
    // SAFETY: the struct is writable and says its size.
    call("statistics read", |e| unsafe { read(device.handle, &mut counts, e) })?;
    Ok(counts)
}

fn counts(device: &Device<'_>) -> Result {
    let i = offered!(device, StatisticsInterface, statistics::INTERFACE);
    if device.overlay {
        return skip("the buffers of a CPU overlay are the host's");
    }
    const BYTES: u64 = 3 << 20;
    let before = read(device, &i)?;
    let buffer = device.alloc(BYTES)?;
    let with = read(device, &i);
    device.free(buffer);
    let (with, after) = (with?, read(device, &i)?);
    if with.active < before.active + BYTES || with.active > before.active + 2 * BYTES {
        return Err(format!(
            "a buffer of {BYTES} bytes moved the active bytes from {} to {}",
            before.active, with.active
        ));
    }
    if with.peak < with.active {
        return Err(format!("the peak {} is below the active bytes {}", with.peak, with.active));
    }
    if after.active != before.active {
        return Err(format!("active: {} before, {} after", before.active, after.active));
    }
    let few = read_up_to(device, &i, statistics::COUNTS)?;
    ensure!(
        few.active == after.active && few.total == u64::MAX && few.free == u64::MAX,
        "{few:?} where the counts alone were asked for, {after:?} where all"
    );
    if let Some(reset) = i.reset_peak {
        // SAFETY: an open device.
        unsafe { reset(device.handle) };
        let peak = read(device, &i)?.peak;
        ensure!(peak <= after.active, "a peak of {peak} after the reset");
    }
    if let Some(clear) = i.clear_cache {
        // SAFETY: an open device.
        unsafe { clear(device.handle) };
        let cache = read(device, &i)?.cache;
        ensure!(cache == 0, "{cache} bytes in the cache after clear_cache");
    }
    PASSED
}

/// The index of another device of the backend.
fn neighbour(device: &Device<'_>) -> Option<u32> {
    let count = device.backend.table.device_count?;
    // SAFETY: the backend's function with the backend's pointer.
    let n = unsafe { count(device.backend.table.backend) };
    (0..n).find(|i| *i != device.index)
}

fn peer_copy(source: &Device<'_>, target: &Device<'_>) -> Result {
    let i = offered!(source, PeerInterface, peer::INTERFACE);
    let copy = i.copy.ok_or("no function copy")?;
    let (first, stream) = (source.stream()?, target.stream()?);
    let (mut sources, mut targets) = (Buffers::new(source), Buffers::new(target));
    let (from, to) = (sources.alloc(4096)?, targets.alloc(4096)?);
    let data: Vec<u8> = (0..4096u32).map(|i| (i % 251) as u8).collect();
    source.write(first, from, 0, &data)?;
    target.write(stream, to, 0, &[0; 4096])?;
    let handles = [target.handle, to.handle.0, source.handle, from.handle.0];
    // SAFETY: both ranges lie in the buffers.
    call("peer copy", |e| unsafe {
        copy(handles[0], stream.0, handles[1], 96, handles[2], handles[3], 32, 1000, e)
    })?;
    target.synchronize(stream)?;
    let mut back = vec![0; 4096];
    target.read(stream, to, 0, &mut back)?;
    drop((sources, targets));
    source.destroy_stream(first);
    target.destroy_stream(stream);
    let around = back[..96].iter().chain(&back[1096..]).all(|b| *b == 0);
    if back[96..1096] == data[32..1032] && around {
        PASSED
    } else {
        Err("the copied bytes are not where they should be".into())
    }
}
fn languages(device: &Device<'_>) -> Result {
    let named = inline_str(&device.info.kernel_languages);
    // SAFETY: the id is this interface's.
    let offered = unsafe { device.interface::<KernelInterface>(kernel::INTERFACE) };
    let Some(i) = offered else {
        return if named.is_empty() {
            skip("not offered")
        } else {
            Err(format!("the device takes {named}, but there is no {:?}", kernel::INTERFACE))
        };
    };
    ensure!(!named.is_empty(), "kernels are offered, but the device names no language");
    let (Some(compile), Some(_), Some(release)) = (i.compile, i.launch, i.release) else {
        return Err("one of compile, launch and release is missing; set all three".into());
    };
    nonsense(device, compile, release, &named).map(|()| Outcome::Passed)
}

type Compile = unsafe extern "C" fn(
    *mut c_void,
    *const kernel::KernelSource,
    *mut *mut c_void,
    *mut *mut ultramarine_abi::Error,
) -> ultramarine_abi::Status;
type Release = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// A source that is not a program in any language is refused, with the compiler's log.
fn nonsense(
    device: &Device<'_>,
    compile: Compile,
    release: Release,
    languages: &str,
) -> Result<()> {
    const SOURCE: &CStr = c"this is no program ]]";
    for language in languages.split(' ') {
        let language = std::ffi::CString::new(language).map_err(|e| e.to_string())?;
        let source = kernel::KernelSource {
            size: size_of::<kernel::KernelSource>() as u32,
            n_template_arguments: 0,
            language: language.as_ptr(),
            source: SOURCE.as_ptr(),
            source_bytes: SOURCE.count_bytes() as u64,
            entry: c"nothing".as_ptr(),
            template_arguments: std::ptr::null(),
            options: std::ptr::null(),
        };
        let mut made = std::ptr::null_mut();
        // SAFETY: a valid source, and a place for the kernel.
        match call("compile", |e| unsafe { compile(device.handle, &source, &mut made, e) }) {
            Ok(()) => {
                // SAFETY: a kernel that is never run.
                unsafe { release(device.handle, made) };
                return Err(format!("{SOURCE:?} compiles as {language:?}"));
            }
            Err(f) if f.text.is_none() => return Err(format!("{f}: the log is missing")),
            Err(_) => {}
        }
    }
    Ok(())
}
