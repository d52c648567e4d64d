//! Buffers: sizes, copies, alignment, exhaustion, and the release of freed memory.

use super::with_device;
use crate::device::{Device, desc, words};
use crate::dtype::DType;
use crate::host;
use crate::options::Options;
use crate::plugin::{Source, status_name};
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use crate::values::Rng;
use ultramarine_abi::interface::statistics::{self, MemoryStatistics, StatisticsInterface};
use ultramarine_abi::schema::{self, UnaryAttrs, op, unary};
use ultramarine_abi::{layout, status};

/// The growth of the process that is tolerated for a backend without leaks, for caches and first
/// uses.
const TOLERATED: i64 = 48 << 20;
/// Bytes that a loop moves through buffers, which is far more than the tolerance.
const MOVED: u64 = 256 << 20;

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "memory", |recorder, device| {
        recorder.check("memory/balance of plans", || plans(device));
        recorder.check("memory/balance of refusals", || refusals(device));
        if device.overlay {
            recorder
                .check("memory/buffers", || skip("the buffers of a CPU overlay are the host's"));
            return;
        }
        recorder.check("memory/sizes", || sizes(device));
        recorder.check("memory/copies at offsets", || offsets(device));
        recorder.check("memory/copies of nothing", || nothing(device));
        recorder.check("memory/buffers are apart", || apart(device));
        recorder.check("memory/host pointer", || host_pointer(device));
        recorder.check("memory/alignment", || alignment(device));
        recorder.check("memory/exhaustion", || exhaustion(device));
        recorder.check("memory/balance of buffers", || balance(device));
        recorder.check("memory/balance of streams and events", || handles(device));
        recorder.check("memory/balance of devices", || devices(device));
        recorder.check("memory/after a fork", || super::forked::check(device));
    });
}

/// Resident bytes of this process.
#[cfg(target_os = "linux")]
fn resident() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: asks for a constant of the system.
    Some(pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
}

/// On this system a process cannot find out its resident bytes.
#[cfg(not(target_os = "linux"))]
fn resident() -> Option<i64> {
    None
}

/// Calls `f` with numbers up to `n`. Returns an error if memory has grown afterwards. The first
/// tenth of the calls fills caches.
pub(super) fn flat(
    device: &Device<'_>,
    n: usize,
    tolerated: i64,
    mut f: impl FnMut(usize) -> Result<()>,
) -> Result {
    for i in 0..n / 10 {
        f(i)?;
    }
    let before = (resident(), host::bytes_lent(), active(device));
    for i in n / 10..n {
        f(i)?;
    }
    let after = (resident(), host::bytes_lent(), active(device));
    if after.1 > before.1 {
        return Err(format!("{} bytes of the host's memory were not freed", after.1 - before.1));
    }
    if let (Some(before), Some(after)) = (before.2, after.2)
        && after > before
    {
        return Err(format!("the statistics' active bytes grew by {}", after - before));
    }
    match (before.0, after.0) {
        (Some(before), Some(after)) if after - before > tolerated => {
            Err(format!("the process grew by {} MiB in {n} rounds", (after - before) >> 20))
        }
        (Some(_), Some(_)) => PASSED,
        _ => skip("this system does not report the size of a process"),
    }
}

/// Active bytes by the backend's own count.
fn active(device: &Device<'_>) -> Option<u64> {
    // SAFETY: the id is this interface's.
    let interface = unsafe { device.interface::<StatisticsInterface>(statistics::INTERFACE) }?;
    let read = interface.read?;
    let mut counts = MemoryStatistics {
        size: size_of::<MemoryStatistics>() as u32,
        ..MemoryStatistics::default()
    };
    // SAFETY: the struct is writable and says its size.
    let code = unsafe { read(device.handle, &mut counts, std::ptr::null_mut()) };
    (code == status::OK).then_some(counts.active)
}

fn sizes(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let mut rng = Rng::new(40);
    for bytes in [1u64, 2, 3, 7, 64, 1000, 4096, (1 << 20) + 1, 48 << 20] {
        let mut buffers = Buffers::new(device);
        let buffer = buffers.alloc(bytes)?;
        let data: Vec<u8> = (0..bytes).map(|_| rng.next() as u8).collect();
        device.write(stream, buffer, 0, &data)?;
        let mut back = vec![0; data.len()];
        device.read(stream, buffer, 0, &mut back)?;
        ensure!(data == back, "a buffer of {bytes} bytes gives back other bytes");
    }
    // An empty buffer stores nothing, so either status is allowed.
    if let Ok(empty) = device.alloc(0) {
        device.free(empty);
    }
    device.destroy_stream(stream);
    PASSED
}

fn offsets(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let mut buffers = Buffers::new(device);
    let buffer = buffers.alloc(5000)?;
    let mut expected: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
    device.write(stream, buffer, 0, &expected)?;
    for (offset, n) in [(1usize, 1usize), (3, 5), (17, 100), (1000, 2000), (4999, 1), (64, 64)] {
        let part: Vec<u8> = (0..n).map(|i| (i * 13 + offset) as u8).collect();
        expected[offset..offset + n].copy_from_slice(&part);
        device.write(stream, buffer, offset as u64, &part)?;
        let mut back = vec![0; n];
        device.read(stream, buffer, offset as u64, &mut back)?;
        ensure!(back == part, "{n} bytes at offset {offset} come back changed");
    }
    let mut back = vec![0; 5000];
    device.read(stream, buffer, 0, &mut back)?;
    drop(buffers);
    device.destroy_stream(stream);
    if back == expected { PASSED } else { Err("a copy changed bytes outside its range".into()) }
}

fn nothing(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let mut buffers = Buffers::new(device);
    let buffer = buffers.alloc(64)?;
    device.write(stream, buffer, 64, &[])?;
    device.read(stream, buffer, 0, &mut [])?;
    drop(buffers);
    device.destroy_stream(stream);
    PASSED
}

/// Makes many buffers at the same time, each with its own pattern.
fn apart(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let mut buffers = Buffers::new(device);
    let mut all = Vec::new();
    for i in 0..64u8 {
        let buffer = buffers.alloc(777)?;
        device.write(stream, buffer, 0, &[i; 777])?;
        all.push(buffer);
    }
    for (i, buffer) in (0u8..).zip(all) {
        let mut back = vec![0; 777];
        device.read(stream, buffer, 0, &mut back)?;
        ensure!(back.iter().all(|b| *b == i), "buffer {i} of 64 was overwritten by another");
    }
    drop(buffers);
    device.destroy_stream(stream);
    PASSED
}

fn host_pointer(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let mut buffers = Buffers::new(device);
    let buffer = buffers.alloc(300)?;
    let address = device.host_pointer(buffer) as *mut u8;
    if address.is_null() {
        device.destroy_stream(stream);
        return if device.info.host_memory == 0 {
            skip("buffers have no address for the host")
        } else {
            Err("the device says host_memory, but a buffer has no address".into())
        };
    }
    device.write(stream, buffer, 0, &[7; 300])?;
    // SAFETY: the buffer has 300 bytes at this address, and no command uses it.
    let seen = unsafe { std::slice::from_raw_parts_mut(address, 300) };
    if seen.iter().any(|b| *b != 7) {
        return Err("the address does not show what was copied to the device".into());
    }
    seen.fill(9);
    let mut back = vec![0; 300];
    device.read(stream, buffer, 0, &mut back)?;
    drop(buffers);
    device.destroy_stream(stream);
    if back.iter().all(|b| *b == 9) {
        PASSED
    } else {
        Err("what the host wrote through the address is not in the buffer".into())
    }
}

fn alignment(device: &Device<'_>) -> Result {
    let said = device.info.alignment;
    if said == 0 {
        return skip("the device names no alignment");
    }
    ensure!(said.is_power_of_two(), "an alignment of {said}");
    let mut buffers = Buffers::new(device);
    for bytes in [1, 3, 100, 5000, 1 << 20] {
        let address = device.host_pointer(buffers.alloc(bytes)?) as usize;
        if address == 0 {
            return skip("buffers have no address for the host");
        }
        ensure!(
            address.is_multiple_of(said as usize),
            "a buffer of {bytes} bytes lies at {address:#x}, not a multiple of {said}"
        );
    }
    PASSED
}

fn exhaustion(device: &Device<'_>) -> Result {
    for bytes in [1u64 << 62, u64::MAX, u64::MAX - 7] {
        match device.alloc(bytes) {
            Ok(buffer) => {
                device.free(buffer);
                return Err(format!("a buffer of {bytes} bytes was made"));
            }
            Err(f) if f.code == status::OUT_OF_MEMORY => {}
            Err(f) => {
                let code = status_name(f.code);
                return Err(format!("{bytes} bytes: {code}, expected OUT_OF_MEMORY"));
            }
        }
    }
    // Memory can be allocated after the failure.
    device.free(device.alloc(1 << 20)?);
    PASSED
}

fn balance(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let size = 1 << 18;
    let data = vec![3u8; size as usize];
    let result = flat(device, (MOVED / size) as usize, TOLERATED, |_| {
        let buffer = device.alloc(size)?;
        // Touch the pages, because untouched pages use no memory.
        let written = device.write(stream, buffer, 0, &data);
        device.free(buffer);
        Ok(written?)
    });
    device.destroy_stream(stream);
    result
}

fn handles(device: &Device<'_>) -> Result {
    flat(device, 1000, TOLERATED / 4, |_| {
        let stream = device.stream()?;
        let event = device.event()?;
        let recorded = device.record(stream, event, 1);
        device.synchronize(stream)?;
        device.destroy_event(event);
        device.destroy_stream(stream);
        Ok(recorded?)
    })
}

fn devices(device: &Device<'_>) -> Result {
    flat(device, 100, TOLERATED, |_| {
        Device::open(device.backend, device.index)?.close();
        Ok(())
    })
}

fn plans(device: &Device<'_>) -> Result {
    let tensor = desc(DType::F32, 2, layout::CONTIGUOUS);
    let attributes = words(&UnaryAttrs::new(unary::NEGATIVE));
    flat(device, 1000, TOLERATED / 2, |_| {
        if let Ok(plan) = device.prepare_raw(op::UNARY, 1, Some(&attributes), &[tensor], &[tensor])
        {
            device.release(plan);
        }
        Ok(())
    })
}

fn refusals(device: &Device<'_>) -> Result {
    let tensor = desc(DType::F32, 2, layout::CONTIGUOUS);
    let attributes = words(&schema::NoAttrs::new());
    flat(device, 5000, TOLERATED / 4, |i| {
        match device.prepare_raw(5000 + i as u32, 1, Some(&attributes), &[tensor], &[tensor]) {
            Ok(_) => Err("there is a plan for an op that does not exist".into()),
            Err(_) => Ok(()),
        }
    })
}
