//! Streams and events. Wrong values show that an order was not kept, for example that a wait was
//! ignored.

use super::{lists, with_device};
use crate::cases::none;
use crate::device::{Buffer, Device, Handle, Prepared, desc, empty_command};
use crate::dtype::{DType, Num};
use crate::options::Options;
use crate::plugin::{Failure, Source};
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::{Buffers, tensor};
use crate::tensor::{Layout, Placed};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ultramarine_abi::{Command, Tensor, device_flag, layout, schema::op};

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "streams", |recorder, device| {
        lists::run(recorder, device);
        if device.overlay {
            recorder.check("streams", || skip("the streams of a CPU overlay are the host's"));
            return;
        }
        recorder.check("streams/many", || many(device));
        recorder.check("streams/order within a stream", || order(device));
        recorder.check("streams/events start at 0 and take values", || values(device));
        recorder.check("streams/values only grow", || growing(device));
        recorder.check("streams/host waits for a stream's work", || host_wait(device));
        recorder.check("streams/a stream waits for another's work", || cross(device));
        recorder.check("streams/a wait before the record", || wait_first(device));
        recorder.check("streams/commands wait for their tensors", || waiting_tensor(device));
        recorder.check("streams/uploads take their turn", || uploads(device));
        recorder.check("streams/waits from several threads", || several(device));
        recorder.check("streams/destroyed in any order", || destroyed(device));
        recorder.check("streams/several commands in one submit", || batch(device));
    });
}

/// Elements of the tensors in these checks: so many that a copy takes noticeable time on a device.
pub const N: i64 = 1 << 18;

/// Plans and tensors for moving float32 numbers.
pub struct Mover<'a> {
    device: &'a Device<'a>,
    fill: Handle,
    copy: Handle,
    /// Every tensor's shape and layout.
    pub shape: Placed,
}

impl<'a> Mover<'a> {
    /// Returns `None` if the device has no fill and copy of float32.
    pub fn new(device: &'a Device<'a>, n: i64) -> Result<Option<Self>, Failure> {
        let one = desc(DType::F32, 1, layout::CONTIGUOUS);
        let fill = device.prepare(op::FILL, &none(), &[], &[one])?;
        let copy = device.prepare(op::COPY, &none(), &[one], &[one])?;
        let (Prepared::Plan(fill), Prepared::Plan(copy)) = (fill, copy) else { return Ok(None) };
        let shape = Placed::output(DType::F32, &[n], Layout::Contiguous);
        Ok(Some(Mover { device, fill, copy, shape }))
    }

    /// Bytes of each tensor.
    pub fn bytes(&self) -> u64 {
        self.shape.bytes.len() as u64
    }

    pub fn buffer(&self, buffers: &mut Buffers<'a>) -> Result<Buffer, Failure> {
        buffers.alloc(self.shape.bytes.len() as u64)
    }

    /// Fills a buffer on a stream.
    pub fn fill(&self, stream: Handle, to: Buffer, value: f64) -> Result<(), Failure> {
        let output = [tensor(self.device, &self.shape, to)];
        let scalar = [DType::F32.scalar(Num::Real(value))];
        self.device.submit(stream, &[self.filling(&output, &scalar)])
    }

    /// The command that fills a tensor.
    pub fn filling(&self, to: &[Tensor; 1], value: &[[u64; 2]; 1]) -> Command {
        Command {
            outputs: to.as_ptr(),
            n_outputs: 1,
            scalars: value.as_ptr(),
            n_scalars: 1,
            ..empty_command(self.fill)
        }
    }

    /// The command that copies a tensor.
    pub fn copying(&self, from: &[Tensor; 1], to: &[Tensor; 1]) -> Command {
        Command {
            inputs: from.as_ptr(),
            n_inputs: 1,
            outputs: to.as_ptr(),
            n_outputs: 1,
            ..empty_command(self.copy)
        }
    }

    /// Copies a buffer on a stream, in one submit of `times` equal commands.
    pub fn copy(
        &self,
        stream: Handle,
        from: Buffer,
        to: Buffer,
        times: usize,
    ) -> Result<(), Failure> {
        self.with_copy(from, to, |command| self.device.submit(stream, &vec![*command; times]))
    }

    /// Calls `f` with the command of a copy.
    pub fn with_copy<T>(&self, from: Buffer, to: Buffer, f: impl FnOnce(&Command) -> T) -> T {
        let [from, to] = [from, to].map(|buffer| [tensor(self.device, &self.shape, buffer)]);
        f(&self.copying(&from, &to))
    }

    /// Checks that a buffer holds one value throughout.
    pub fn expect(&self, stream: Handle, buffer: Buffer, value: f64) -> Result<()> {
        let mut bytes = vec![0; self.shape.bytes.len()];
        self.device.read(stream, buffer, 0, &mut bytes)?;
        let n = self.shape.shape[0] as usize;
        for (i, element) in bytes.chunks(4).take(n).enumerate() {
            let got = DType::F32.read(element).real();
            ensure!(got == value, "element {i} of {n} is {got}, expected {value}");
        }
        Ok(())
    }
}

impl Drop for Mover<'_> {
    fn drop(&mut self) {
        self.device.release(self.fill);
        self.device.release(self.copy);
    }
}

macro_rules! mover {
    ($device:expr) => {
        match Mover::new($device, N)? {
            Some(mover) => mover,
            None => return skip("no native fill and copy of float32"),
        }
    };
}

fn many(device: &Device<'_>) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let mut all = Vec::new();
    for i in 0..24 {
        let (stream, buffer) = (device.stream()?, mover.buffer(&mut buffers)?);
        mover.fill(stream, buffer, f64::from(i))?;
        all.push((stream, buffer));
    }
    for (i, (stream, buffer)) in (0..).zip(&all) {
        device.synchronize(*stream)?;
        mover.expect(*stream, *buffer, f64::from(i))?;
    }
    all.iter().for_each(|(stream, _)| device.destroy_stream(*stream));
    PASSED
}

fn order(device: &Device<'_>) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let stream = device.stream()?;
    let [a, b] = [mover.buffer(&mut buffers)?, mover.buffer(&mut buffers)?];
    for i in 0..40 {
        mover.fill(stream, a, f64::from(i))?;
        mover.copy(stream, a, b, 1)?;
    }
    mover.fill(stream, a, -1.0)?;
    device.synchronize(stream)?;
    mover.expect(stream, b, 39.0)?;
    mover.expect(stream, a, -1.0)?;
    // Copies to the host come after the stream's earlier work.
    mover.fill(stream, a, 5.0)?;
    mover.expect(stream, a, 5.0).map_err(|e| format!("copy_to_host went ahead: {e}"))?;
    device.destroy_stream(stream);
    PASSED
}

fn values(device: &Device<'_>) -> Result {
    let (stream, event) = (device.stream()?, device.event()?);
    let at = |expected: u64| match device.query(event)? {
        now if now == expected => Ok(()),
        now => Err(format!("the event is at {now}, expected {expected}")),
    };
    at(0)?;
    device.wait_host(event, 0)?;
    device.wait_stream(stream, event, 0)?;
    for value in [1, 2, 10, 1 << 40] {
        device.record(stream, event, value)?;
        device.wait_host(event, value)?;
        at(value)?;
    }
    device.wait_host(event, 3)?;
    device.synchronize(stream)?;
    device.destroy_event(event);
    device.destroy_stream(stream);
    PASSED
}

fn growing(device: &Device<'_>) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let buffer = mover.buffer(&mut buffers)?;
    let (stream, event) = (device.stream()?, device.event()?);
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) {
                let now = device.query(event)?;
                ensure!(now >= last, "the event went from {last} back to {now}");
                last = now;
            }
            Ok(())
        });
        let mut submitted = Ok(());
        for value in 1..=100 {
            submitted = mover.fill(stream, buffer, value as f64);
            submitted = submitted.and_then(|()| device.record(stream, event, value));
            if submitted.is_err() {
                break;
            }
        }
        let waited = submitted.and_then(|()| device.wait_host(event, 100));
        stop.store(true, Ordering::Relaxed);
        waited?;
        watch.join().unwrap_or_else(|_| Err("the kit's thread panicked".into()))
    });
    device.synchronize(stream)?;
    device.destroy_event(event);
    device.destroy_stream(stream);
    result.map(|()| crate::record::Outcome::Passed)
}

fn host_wait(device: &Device<'_>) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let [a, b] = [mover.buffer(&mut buffers)?, mover.buffer(&mut buffers)?];
    let (stream, other, event) = (device.stream()?, device.stream()?, device.event()?);
    mover.fill(stream, a, 0.0)?;
    mover.fill(stream, b, 0.0)?;
    device.synchronize(stream)?;
    for round in 1..=10 {
        mover.fill(stream, a, round as f64)?;
        mover.copy(stream, a, b, 8)?;
        device.record(stream, event, round)?;
        device.wait_host(event, round)?;
        // Read through a stream that has not waited for the first one.
        mover.expect(other, b, round as f64).map_err(|e| format!("after the host waited: {e}"))?;
    }
    device.synchronize(stream)?;
    device.destroy_event(event);
    device.destroy_stream(stream);
    device.destroy_stream(other);
    PASSED
}

fn cross(device: &Device<'_>) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let [a, b, c] = [0; 3].map(|_| mover.buffer(&mut buffers));
    let (a, b, c) = (a?, b?, c?);
    let (first, second, event) = (device.stream()?, device.stream()?, device.event()?);
    for buffer in [a, b, c] {
        mover.fill(first, buffer, 0.0)?;
    }
    device.synchronize(first)?;
    for round in 1..=10u32 {
        let (value, point) = (f64::from(round), u64::from(2 * round));
        // Give the first stream much work; it writes the value last.
        mover.copy(first, a, b, 16)?;
        mover.fill(first, a, value)?;
        mover.copy(first, a, b, 1)?;
        device.record(first, event, point - 1)?;
        device.wait_stream(second, event, point - 1)?;
        mover.copy(second, b, c, 1)?;
        device.record(second, event, point)?;
        // In the other direction: the first stream may overwrite only after the second has read.
        device.wait_stream(first, event, point)?;
        mover.fill(first, b, -1.0)?;
        device.synchronize(second)?;
        mover
            .expect(second, c, value)
            .map_err(|e| format!("the second stream did not wait: {e}"))?;
    }
    device.synchronize(first)?;
    device.destroy_event(event);
    device.destroy_stream(first);
    device.destroy_stream(second);
    PASSED
}

/// Makes a second stream copy `a` to `b` after event value 1, by `copy`. Only then fills `a` on the
/// first stream and records the value. `early` is the message if the copy did not wait.
fn behind_a_later_record(
    device: &Device<'_>,
    early: &str,
    copy: impl Fn(&Mover<'_>, Handle, Handle, [Buffer; 2]) -> Result<()> + Sync,
) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let [a, b] = [mover.buffer(&mut buffers)?, mover.buffer(&mut buffers)?];
    let (first, second, event) = (device.stream()?, device.stream()?, device.event()?);
    mover.fill(first, a, 1.0)?;
    mover.fill(first, b, 0.0)?;
    device.synchronize(first)?;
    let (mover, copy) = (&mover, &copy);
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || -> Result<()> {
            copy(mover, second, event, [a, b])?;
            device.synchronize(second)?;
            mover.expect(second, b, 7.0)
        });
        std::thread::sleep(Duration::from_millis(60));
        let done = mover.fill(first, a, 7.0).and_then(|()| device.record(first, event, 1));
        let waited = waiting.join().unwrap_or_else(|_| Err("the kit's thread panicked".into()));
        done?;
        waited
    });
    waited.map_err(|e| format!("{early}: {e}"))?;
    device.synchronize(first)?;
    device.destroy_event(event);
    device.destroy_stream(first);
    device.destroy_stream(second);
    PASSED
}

/// The wait is requested before the value was recorded. This detects a backend that ignores waits,
/// even if it is synchronous.
fn wait_first(device: &Device<'_>) -> Result {
    let early = "work behind event_wait_stream ran before the event";
    behind_a_later_record(device, early, |mover, stream, event, [a, b]| {
        device.wait_stream(stream, event, 1)?;
        mover.copy(stream, a, b, 1)?;
        Ok(())
    })
}

/// Like [`wait_first`], but with a wait that a tensor names.
fn waiting_tensor(device: &Device<'_>) -> Result {
    if !device.flag(device_flag::WAITS_IN_COMMANDS) {
        return skip("the device does not say WAITS_IN_COMMANDS");
    }
    let early = "a command did not wait for its tensor's event";
    behind_a_later_record(device, early, |mover, stream, event, [a, b]| {
        let mut input = [tensor(device, &mover.shape, a)];
        (input[0].wait, input[0].wait_value) = (event.0, 1);
        mover.with_copy(a, b, |command| {
            device.submit(stream, &[Command { inputs: input.as_ptr(), ..*command }])
        })?;
        Ok(())
    })
}

/// An upload that is enqueued runs after the stream's earlier work, with the bytes that its source
/// had at the call.
fn uploads(device: &Device<'_>) -> Result {
    if !device.flag(device_flag::UPLOADS_IN_ORDER) {
        return skip("the device does not say UPLOADS_IN_ORDER");
    }
    let early = "an upload went ahead of its stream's earlier work";
    behind_a_later_record(device, early, |mover, stream, event, [a, b]| {
        device.wait_stream(stream, event, 1)?;
        mover.copy(stream, a, b, 1)?;
        let bytes = usize::try_from(mover.bytes()).map_err(|e| e.to_string())?;
        let mut source: Vec<u8> = 5f32.to_le_bytes().into_iter().cycle().take(bytes).collect();
        // In pieces of several sizes.
        let ends = [0, 4, 8, 5000, 70_000, bytes];
        for range in ends.windows(2).map(|w| w[0]..w[1]) {
            device.write_in_order(stream, a, range.start as u64, &source[range.clone()])?;
            source[range].fill(0xff);
        }
        let late = "an upload has not the bytes that its source had";
        mover.expect(stream, a, 5.0).map_err(|e| format!("{late}: {e}"))
    })
}

fn several(device: &Device<'_>) -> Result {
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let buffer = mover.buffer(&mut buffers)?;
    let (stream, event) = (device.stream()?, device.event()?);
    let waited = std::thread::scope(|scope| {
        let wait = move |value: u64| {
            device.wait_host(event, value)?;
            match device.query(event)? {
                now if now >= value => Ok(()),
                now => Err(format!("a wait for {value} returned at {now}")),
            }
        };
        let waiting: Vec<_> =
            [1, 2, 3, 3, 3, 1].into_iter().map(|value| scope.spawn(move || wait(value))).collect();
        let mut done = Ok(());
        for value in 1..=3 {
            std::thread::sleep(Duration::from_millis(5));
            done = done.and_then(|()| mover.fill(stream, buffer, value as f64));
            done = done.and_then(|()| device.record(stream, event, value));
        }
        done?;
        for thread in waiting {
            thread.join().unwrap_or_else(|_| Err("the kit's thread panicked".into()))?;
        }
        Ok::<(), String>(())
    });
    waited?;
    device.synchronize(stream)?;
    device.destroy_event(event);
    device.destroy_stream(stream);
    PASSED
}

fn destroyed(device: &Device<'_>) -> Result {
    for order in 0..2 {
        let (stream, event) = (device.stream()?, device.event()?);
        device.record(stream, event, 1)?;
        device.synchronize(stream)?;
        if order == 0 {
            device.destroy_stream(stream);
            if device.query(event)? != 1 {
                return Err("an event lost its value with the stream that recorded it".into());
            }
            device.wait_host(event, 1)?;
            device.destroy_event(event);
        } else {
            device.destroy_event(event);
            device.synchronize(stream)?;
            device.destroy_stream(stream);
        }
    }
    PASSED
}

/// Commands are `commands->size` bytes apart, also if that is more than this version's size.
fn batch(device: &Device<'_>) -> Result {
    /// A command of a later version.
    #[repr(C)]
    struct Longer {
        command: Command,
        more: [u64; 3],
    }
    let mover = mover!(device);
    let mut buffers = Buffers::new(device);
    let [a, b] = [mover.buffer(&mut buffers)?, mover.buffer(&mut buffers)?];
    let stream = device.stream()?;
    mover.fill(stream, a, 3.0)?;
    let inputs = [tensor(device, &mover.shape, a)];
    let outputs = [tensor(device, &mover.shape, b)];
    let longer = |plan: Handle, input: bool| Longer {
        command: Command {
            size: size_of::<Longer>() as u32,
            inputs: inputs.as_ptr(),
            n_inputs: input.into(),
            outputs: outputs.as_ptr(),
            n_outputs: 1,
            ..empty_command(plan)
        },
        more: [0; 3],
    };
    let scalars = [DType::F32.scalar(Num::Real(9.0))];
    let mut first = longer(mover.fill, false);
    first.command.scalars = scalars.as_ptr();
    first.command.n_scalars = 1;
    let commands = [first, longer(mover.copy, true)];
    let submit = device.backend.table.submit.ok_or("no submit")?;
    let place = commands.as_ptr().cast::<Command>();
    // SAFETY: two commands, as far apart as the first says.
    crate::plugin::call("submit", |e| unsafe { submit(device.handle, stream.0, place, 2, e) })?;
    device.synchronize(stream)?;
    mover
        .expect(stream, b, 3.0)
        .map_err(|e| format!("two commands of {} bytes: {e}", size_of::<Longer>()))?;
    device.destroy_stream(stream);
    PASSED
}
