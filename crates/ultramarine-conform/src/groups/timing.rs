//! Timestamps: they are in the order of their streams, use one clock, and are available once the
//! stream has reached them.

use super::streams::Mover;
use crate::device::{Device, Handle};
use crate::plugin::call;
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use std::time::Instant;
use ultramarine_abi::interface::timing::{self, TimingInterface};

pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    recorder.check("interfaces/timing", || with(device, around));
    recorder.check("interfaces/timing, one clock", || with(device, clock));
    recorder.check("interfaces/timing, asked again", || with(device, again));
    recorder.check("interfaces/timing, released early", || with(device, early));
    recorder.check("interfaces/timing, ranges", || ranges(device));
}

/// Elements of the tensors here.
const N: i64 = 1 << 18;

/// Nanoseconds by which a clock may round.
const ROUNDING: u64 = 2_000;

/// The interface, with the means to give streams work.
struct Clock<'a> {
    device: &'a Device<'a>,
    mover: Mover<'a>,
    interface: TimingInterface,
}

fn with(device: &Device<'_>, check: fn(&Clock<'_>) -> Result<()>) -> Result {
    // SAFETY: the id's own struct.
    let found = unsafe { device.interface::<TimingInterface>(timing::INTERFACE) };
    let Some(interface) = found else { return skip("not offered") };
    let Some(mover) = Mover::new(device, N)? else {
        return skip("no native fill and copy of float32");
    };
    let stream = device.stream()?;
    let clock = Clock { device, mover, interface };
    let marks = clock.mark(stream);
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    match marks {
        Ok(slot) => clock.release(slot)?,
        Err(failure) if failure.contains("UNSUPPORTED") => {
            return skip("its streams have no clock");
        }
        Err(failure) => return Err(failure),
    }
    check(&clock)?;
    PASSED
}

impl Clock<'_> {
    fn mark(&self, stream: Handle) -> Result<Handle> {
        let mark = self.interface.mark.ok_or("no function mark")?;
        let mut slot = std::ptr::null_mut();
        // SAFETY: a live stream of the device, and a place for the slot.
        call("mark", |e| unsafe { mark(self.device.handle, stream.0, &mut slot, e) })?;
        ensure!(!slot.is_null(), "mark returned OK and no slot");
        Ok(Handle(slot))
    }

    /// The time of a slot, if it is known.
    fn resolve(&self, slot: Handle) -> Result<Option<u64>> {
        let resolve = self.interface.resolve.ok_or("no function resolve")?;
        let (mut time, mut ready) = (0, u32::MAX);
        // SAFETY: a slot of the device that was not released; the places are valid.
        call("resolve", |e| unsafe {
            resolve(self.device.handle, slot.0, &mut time, &mut ready, e)
        })?;
        ensure!(ready <= 1, "ready is {ready}, which is neither 0 nor 1");
        Ok((ready == 1).then_some(time))
    }

    /// Returns the time of a slot after its stream was waited for.
    fn time(&self, slot: Handle) -> Result<u64> {
        match self.resolve(slot)? {
            Some(time) => Ok(time),
            None => Err("a mark is not ready although its stream was waited for".into()),
        }
    }

    fn release(&self, slot: Handle) -> Result<()> {
        let release = self.interface.release.ok_or("no function release")?;
        // SAFETY: a slot of the device, released once.
        unsafe { release(self.device.handle, slot.0) };
        Ok(())
    }
}

/// Marks around work are in order, and no further apart than the time that the host measured.
fn around(clock: &Clock<'_>) -> Result<()> {
    let mut buffers = Buffers::new(clock.device);
    let (a, b) = (clock.mover.buffer(&mut buffers)?, clock.mover.buffer(&mut buffers)?);
    let stream = clock.device.stream()?;
    clock.mover.fill(stream, a, 1.0)?;
    clock.device.synchronize(stream)?;
    let begun = Instant::now();
    let first = clock.mark(stream)?;
    clock.mover.copy(stream, a, b, 8)?;
    let second = clock.mark(stream)?;
    clock.mover.copy(stream, a, b, 8)?;
    let third = clock.mark(stream)?;
    clock.device.synchronize(stream)?;
    let host = begun.elapsed().as_nanos() as u64;
    let times = [clock.time(first)?, clock.time(second)?, clock.time(third)?];
    for slot in [first, second, third] {
        clock.release(slot)?;
    }
    clock.device.destroy_stream(stream);
    ensure!(
        times[0] <= times[1] + ROUNDING && times[1] <= times[2] + ROUNDING,
        "marks of one stream are at {times:?} nanoseconds, which decrease"
    );
    let apart = times[2].saturating_sub(times[0]);
    // Quartz clocks differ by far less than one per cent.
    ensure!(
        apart <= host + host / 100 + ROUNDING,
        "marks are {apart} nanoseconds apart, between which the host counted {host}"
    );
    ensure!(apart > 0, "16 copies of {N} elements between two marks took no time");
    Ok(())
}

/// Streams that run one after the other have times in this order.
fn clock(clock: &Clock<'_>) -> Result<()> {
    let streams = [clock.device.stream()?, clock.device.stream()?];
    let mut before = 0;
    for (turn, stream) in streams.iter().cycle().take(6).enumerate() {
        let slot = clock.mark(*stream)?;
        clock.device.synchronize(*stream)?;
        let time = clock.time(slot)?;
        clock.release(slot)?;
        ensure!(
            turn == 0 || before <= time + ROUNDING,
            "a stream's mark at {time} came after another stream's at {before}"
        );
        before = time;
    }
    for stream in streams {
        clock.device.destroy_stream(stream);
    }
    Ok(())
}

/// A time that is known stays the same.
fn again(clock: &Clock<'_>) -> Result<()> {
    let mut buffers = Buffers::new(clock.device);
    let (a, b) = (clock.mover.buffer(&mut buffers)?, clock.mover.buffer(&mut buffers)?);
    let stream = clock.device.stream()?;
    clock.mover.fill(stream, a, 1.0)?;
    clock.mover.copy(stream, a, b, 32)?;
    let slot = clock.mark(stream)?;
    // The time may not be known yet, but the call must not wait.
    let first = clock.resolve(slot)?;
    clock.device.synchronize(stream)?;
    let second = clock.time(slot)?;
    let later = clock.mark(stream)?;
    clock.device.synchronize(stream)?;
    clock.time(later)?;
    let third = clock.time(slot)?;
    clock.release(later)?;
    clock.release(slot)?;
    clock.device.destroy_stream(stream);
    ensure!(
        first.is_none_or(|time| time == second) && second == third,
        "a mark's time was {first:?}, then {second}, then {third}"
    );
    Ok(())
}

/// Many marks exist at the same time. They are released in any order, some without having been
/// resolved, and some while work is in progress.
fn early(clock: &Clock<'_>) -> Result<()> {
    let mut buffers = Buffers::new(clock.device);
    let (a, b) = (clock.mover.buffer(&mut buffers)?, clock.mover.buffer(&mut buffers)?);
    let stream = clock.device.stream()?;
    clock.mover.fill(stream, a, 3.0)?;
    let mut slots = Vec::new();
    for i in 0..600 {
        slots.push(clock.mark(stream)?);
        if i % 100 == 0 {
            clock.mover.copy(stream, a, b, 4)?;
        }
        if i % 3 == 0 {
            clock.release(slots.swap_remove(i as usize / 2 % slots.len()))?;
        }
    }
    clock.device.synchronize(stream)?;
    for (i, slot) in slots.into_iter().enumerate() {
        if i % 2 == 0 {
            clock.time(slot)?;
        }
        clock.release(slot)?;
    }
    clock.mover.expect(stream, b, 3.0)?;
    clock.device.destroy_stream(stream);
    Ok(())
}

fn ranges(device: &Device<'_>) -> Result {
    // SAFETY: the id's own struct.
    let found = unsafe { device.interface::<TimingInterface>(timing::INTERFACE) };
    let Some(interface) = found else { return skip("not offered") };
    let (push, pop) = match (interface.range_push, interface.range_pop) {
        (Some(push), Some(pop)) => (push, pop),
        (None, None) => return skip("no ranges"),
        _ => return Err("one of range_push and range_pop is missing".into()),
    };
    let stream = device.stream()?;
    // SAFETY: a live stream, C strings; ranges are closed as they were opened.
    unsafe {
        push(device.handle, stream.0, c"outer".as_ptr());
        push(device.handle, stream.0, c"inner".as_ptr());
        pop(device.handle, stream.0);
        pop(device.handle, stream.0);
    }
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    PASSED
}
