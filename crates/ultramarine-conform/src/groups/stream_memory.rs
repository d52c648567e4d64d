//! Memory that is freed in the order of a stream: the stream may reuse it at once, other streams
//! only after the stream has completed its earlier work.

use super::streams::Mover;
use crate::device::{Buffer, Device, Handle};
use crate::plugin::call;
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use ultramarine_abi::interface::statistics::{self, MemoryStatistics, StatisticsInterface};
use ultramarine_abi::interface::stream_memory::{self, StreamMemoryInterface};

pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    recorder.check("interfaces/stream memory", || with(device, own));
    recorder.check("interfaces/stream memory, other streams", || with(device, others));
    recorder.check("interfaces/stream memory, a chain", || with(device, chain));
    recorder.check("interfaces/stream memory, either way", || with(device, either));
}

/// Elements of the tensors here.
const N: i64 = 1 << 18;

/// The interface, with the means to move data.
struct Memory<'a> {
    device: &'a Device<'a>,
    mover: Mover<'a>,
    interface: StreamMemoryInterface,
    bytes: u64,
}

fn with(device: &Device<'_>, check: fn(&Memory<'_>) -> Result<()>) -> Result {
    // SAFETY: the id's own struct.
    let found = unsafe { device.interface::<StreamMemoryInterface>(stream_memory::INTERFACE) };
    let Some(interface) = found else { return skip("not offered") };
    if device.overlay {
        return skip("the buffers of a CPU overlay are the host's");
    }
    let Some(mover) = Mover::new(device, N)? else {
        return skip("no native fill and copy of float32");
    };
    let bytes = mover.bytes();
    check(&Memory { device, mover, interface, bytes })?;
    PASSED
}

impl Memory<'_> {
    fn alloc(&self, stream: Handle) -> Result<Buffer> {
        let alloc = self.interface.alloc.ok_or("no function alloc")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: an open device and a stream of it; a place for the handle.
        let made = call("alloc", |e| unsafe {
            alloc(self.device.handle, stream.0, self.bytes, &mut handle, e)
        });
        made?;
        ensure!(!handle.is_null(), "alloc returned OK and no buffer");
        Ok(Buffer { handle: Handle(handle), bytes: self.bytes })
    }

    fn free(&self, stream: Handle, buffer: Buffer) -> Result<()> {
        let free = self.interface.free.ok_or("no function free")?;
        // SAFETY: a buffer that only this stream's work uses, given back once.
        unsafe { free(self.device.handle, stream.0, buffer.handle.0) };
        Ok(())
    }

    /// Fills a buffer, copies it to another many times, and frees the first one while the copies
    /// are in progress.
    fn slow_copy(&self, stream: Handle, to: Buffer, value: f64) -> Result<()> {
        let from = self.alloc(stream)?;
        self.mover.fill(stream, from, value)?;
        self.mover.copy(stream, from, to, 24)?;
        self.free(stream, from)
    }
}

/// Later work of the stream runs after earlier work that still reads the memory.
fn own(memory: &Memory<'_>) -> Result<()> {
    let device = memory.device;
    let stream = device.stream()?;
    let to = memory.alloc(stream)?;
    for round in 1..=10 {
        let value = f64::from(round);
        memory.slow_copy(stream, to, value)?;
        let next = memory.alloc(stream)?;
        memory.mover.fill(stream, next, -value)?;
        memory.mover.expect(stream, to, value)?;
        memory.mover.expect(stream, next, -value)?;
        memory.free(stream, next)?;
    }
    memory.free(stream, to)?;
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    Ok(())
}

/// Other work gets no memory that the stream may still use: neither another stream nor an upload.
fn others(memory: &Memory<'_>) -> Result<()> {
    let device = memory.device;
    let (first, second) = (device.stream()?, device.stream()?);
    let mut buffers = Buffers::new(device);
    let to = memory.mover.buffer(&mut buffers)?;
    for round in 1..=10 {
        let value = f64::from(round);
        memory.slow_copy(first, to, value)?;
        let other = memory.alloc(second)?;
        memory.mover.fill(second, other, -1.0)?;
        let plain = device.alloc(memory.bytes)?;
        device.write(second, plain, 0, &vec![0xff; memory.bytes as usize])?;
        device.synchronize(first)?;
        memory
            .mover
            .expect(first, to, value)
            .map_err(|e| format!("memory in use was handed out again: {e}"))?;
        device.synchronize(second)?;
        device.free(plain);
        memory.free(second, other)?;
    }
    for stream in [first, second] {
        device.synchronize(stream)?;
        device.destroy_stream(stream);
    }
    Ok(())
}

/// The temporaries of a long chain use the memory of only a few.
fn chain(memory: &Memory<'_>) -> Result<()> {
    const STEPS: u64 = 300;
    let device = memory.device;
    let stream = device.stream()?;
    let before = peak(device);
    let mut last = memory.alloc(stream)?;
    memory.mover.fill(stream, last, 3.0)?;
    for _ in 0..STEPS {
        let next = memory.alloc(stream)?;
        memory.mover.copy(stream, last, next, 1)?;
        memory.free(stream, last)?;
        last = next;
    }
    memory.mover.expect(stream, last, 3.0)?;
    memory.free(stream, last)?;
    let after = peak(device);
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    match before.zip(after) {
        Some((before, after)) if after > before + 8 * memory.bytes => Err(format!(
            "{STEPS} temporaries of {} bytes took {} bytes at a time",
            memory.bytes,
            after - before
        )),
        _ => Ok(()),
    }
}

/// Resets and returns the backend's own peak.
fn peak(device: &Device<'_>) -> Option<u64> {
    // SAFETY: the id's own struct.
    let i = unsafe { device.interface::<StatisticsInterface>(statistics::INTERFACE) }?;
    let mut counts = MemoryStatistics {
        size: size_of::<MemoryStatistics>() as u32,
        ..MemoryStatistics::default()
    };
    // SAFETY: an open device; the struct is writable and says its size.
    unsafe { i.read?(device.handle, &mut counts, std::ptr::null_mut()) };
    Some(counts.peak)
}

/// Buffers of either kind can be freed in either way, even after their stream was destroyed.
fn either(memory: &Memory<'_>) -> Result<()> {
    let device = memory.device;
    for _ in 0..3 {
        let stream = device.stream()?;
        let (ordered, plain) = (memory.alloc(stream)?, device.alloc(memory.bytes)?);
        let kept = memory.alloc(stream)?;
        memory.mover.fill(stream, ordered, 1.0)?;
        memory.mover.copy(stream, ordered, plain, 1)?;
        memory.mover.copy(stream, plain, kept, 1)?;
        memory.free(stream, plain)?;
        device.synchronize(stream)?;
        device.free(ordered);
        device.destroy_stream(stream);
        let other = device.stream()?;
        memory.mover.expect(other, kept, 1.0)?;
        memory.free(other, kept)?;
        device.destroy_stream(other);
    }
    Ok(())
}
