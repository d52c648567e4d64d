//! Recorded lists of commands: a replay must have the effect of a submit of the commands.

mod operations;
mod recording;

use crate::cases::none;
use crate::device::{Buffer, Device, Handle, Prepared, desc, words};
use crate::dtype::{DType, Num};
use crate::plugin::Failure;
use crate::record::{Outcome, PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use crate::tensor::{Layout, Placed};
use recording::{At, Piece, Recording, Sizes, Step};
use std::sync::atomic::{AtomicBool, Ordering};
use ultramarine_abi::interface::replay::{self, ReplayInterface};
use ultramarine_abi::schema::{BinaryAttrs, binary, op};
use ultramarine_abi::{layout, status};

/// A check that takes a bench.
type Check = fn(&Bench<'_>) -> Result<()>;

pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    let checks: [(&str, Check); 9] = [
        ("replay", chain),
        ("replay, other memory", rebinding),
        ("replay, updates", updates),
        ("replay, two recordings", interleaved),
        ("replay, two streams", two_streams),
        ("replay, beside other threads", threads),
        ("replay, refusals", refusals),
        ("replay, another arena", arenas),
        ("replay, nothing", nothing),
    ];
    for (name, check) in checks {
        recorder.check(&format!("interfaces/{name}"), || with(device, check));
    }
    recorder.check("interfaces/replay, operations", || operations::run(device));
    recorder.check("interfaces/replay, balance", || balance(device));
}

/// The interface, if the device offers it.
fn offered(device: &Device<'_>) -> Option<ReplayInterface> {
    // SAFETY: the id's own struct.
    unsafe { device.interface::<ReplayInterface>(replay::INTERFACE) }.filter(|_| !device.overlay)
}

/// Returns true for an answer after which nothing was done and the host can submit the commands
/// instead.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.code, status::UNSUPPORTED | status::NOT_YET)
}

/// Elements of the tensors here: no multiple of what kernels take at a time.
const N: i64 = 1003;

/// Plans, and vectors of float32.
struct Bench<'a> {
    device: &'a Device<'a>,
    interface: ReplayInterface,
    fill: Handle,
    copy: Handle,
    add: Handle,
    whole: Placed,
    stream: Handle,
}

fn with(device: &Device<'_>, check: Check) -> Result {
    let Some(interface) = offered(device) else { return skip("not offered") };
    let Some(bench) = Bench::new(device, interface)? else {
        return skip("no native fill, copy and add of float32");
    };
    let done = check(&bench);
    bench.end();
    done.map(|()| Outcome::Passed)
}

impl<'a> Bench<'a> {
    fn new(device: &'a Device<'a>, interface: ReplayInterface) -> Result<Option<Self>, Failure> {
        let one = desc(DType::F32, 1, layout::CONTIGUOUS);
        let add = words(&BinaryAttrs::new(binary::ADD));
        let plans = [
            device.prepare(op::FILL, &none(), &[], &[one])?,
            device.prepare(op::COPY, &none(), &[one], &[one])?,
            device.prepare(op::BINARY, &add, &[one; 2], &[one])?,
        ];
        let [Prepared::Plan(fill), Prepared::Plan(copy), Prepared::Plan(add)] = plans else {
            return Ok(None);
        };
        let whole = Placed::output(DType::F32, &[N], Layout::Contiguous);
        let stream = device.stream()?;
        Ok(Some(Bench { device, interface, fill, copy, add, whole, stream }))
    }

    fn end(self) {
        // Also after a failure: something may be running.
        let _ = self.device.synchronize(self.stream);
        self.device.destroy_stream(self.stream);
        [self.fill, self.copy, self.add].iter().for_each(|plan| self.device.release(*plan));
    }

    /// Bytes of a vector, as an offset that suits any tensor.
    fn bytes(&self) -> u64 {
        (4 * N as u64).next_multiple_of(256)
    }

    fn sizes(&self, slots: u32, scalars: u32) -> Sizes {
        Sizes { slots, scalars, arena: 2 * self.bytes() }
    }

    fn record(&self, steps: &[Step<'_>], sizes: Sizes) -> Result<Recording<'a>> {
        Ok(Recording::new(self.device, self.interface, steps, sizes)?)
    }

    fn at(&self, at: At) -> Piece<'_> {
        Piece(&self.whole, at, 0)
    }

    /// A vector in the first or second part of the arena.
    fn part(&self, i: u64) -> Piece<'_> {
        Piece(&self.whole, At::Arena, i * self.bytes())
    }

    fn copied<'t>(&self, from: Piece<'t>, to: Piece<'t>) -> Step<'t> {
        Step { plan: Some(self.copy), inputs: vec![from], outputs: vec![to], ..Step::default() }
    }

    fn added<'t>(&self, a: Piece<'t>, b: Piece<'t>, to: Piece<'t>) -> Step<'t> {
        Step { plan: Some(self.add), inputs: vec![a, b], outputs: vec![to], ..Step::default() }
    }

    fn filled<'t>(&self, to: Piece<'t>, value: f64, slot: Option<u32>) -> Step<'t> {
        let scalars = vec![(scalar(value), slot)];
        Step { plan: Some(self.fill), outputs: vec![to], scalars, ..Step::default() }
    }

    /// A buffer that holds one value throughout.
    fn buffer(&self, buffers: &mut Buffers<'a>, value: f64) -> Result<Buffer> {
        let buffer = buffers.alloc(2 * self.bytes())?;
        self.write(buffer, value)?;
        Ok(buffer)
    }

    fn write(&self, buffer: Buffer, value: f64) -> Result<()> {
        let bytes = (value as f32).to_le_bytes().repeat(buffer.bytes as usize / 4);
        Ok(self.device.write(self.stream, buffer, 0, &bytes)?)
    }

    /// Checks that elements `from..to` of a buffer have a value, and the one behind another one.
    fn expect(
        &self,
        stream: Handle,
        buffer: Buffer,
        (from, n): (i64, i64),
        value: f64,
    ) -> Result<()> {
        self.device.synchronize(stream)?;
        let mut bytes = vec![0; 4 * n as usize];
        self.device.read(stream, buffer, 4 * from as u64, &mut bytes)?;
        for (i, element) in bytes.chunks(4).enumerate() {
            let got = DType::F32.read(element).real();
            ensure!(got == value, "element {i} of {n} from {from} on is {got}, expected {value}");
        }
        Ok(())
    }
}

fn scalar(value: f64) -> [u64; 2] {
    DType::F32.scalar(Num::Real(value))
}

/// Arena, bound and fixed memory, bound and fixed scalars; nothing runs before the replay.
fn chain(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let [x, fixed, y, out, filled, other] =
        [1.0, 10.0, 100.0, -1.0, -2.0, -3.0].map(|value| b.buffer(&mut buffers, value));
    let [x, fixed, y, out, filled, other] = [x?, fixed?, y?, out?, filled?, other?];
    let steps = [
        b.copied(b.at(At::Slot(0)), b.part(0)),
        b.added(b.part(0), b.at(At::Fixed(fixed)), b.part(1)),
        b.added(b.part(1), b.at(At::Slot(1)), b.at(At::Slot(2))),
        b.filled(b.at(At::Slot(3)), 0.0, Some(0)),
        b.filled(b.at(At::Fixed(other)), 7.0, None),
    ];
    let recording = b.record(&steps, b.sizes(4, 1))?;
    drop(steps);
    let all = (0, N);
    b.expect(b.stream, out, all, -1.0).map_err(|e| format!("recording ran something: {e}"))?;
    b.expect(b.stream, other, all, -3.0).map_err(|e| format!("recording ran something: {e}"))?;
    let slots = [(x, 0), (y, 0), (out, 0), (filled, 0)];
    for round in [1.0, 2.0, 3.0] {
        b.write(x, round)?;
        b.write(other, 0.0)?;
        recording.replay(b.stream, &slots, &[scalar(round * 5.0)])?;
        b.expect(b.stream, out, all, round + 110.0)?;
        b.expect(b.stream, filled, all, round * 5.0)?;
        b.expect(b.stream, other, all, 7.0)?;
    }
    b.write(fixed, 20.0)?;
    recording.replay(b.stream, &slots, &[scalar(4.0)])?;
    b.expect(b.stream, out, all, 123.0)?;
    b.expect(b.stream, out, (N, 1), -1.0).map_err(|e| format!("behind the output: {e}"))
}

/// Other buffers, offsets of several alignments, a slot that is input and output.
fn rebinding(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let steps = [
        b.added(b.at(At::Slot(0)), b.at(At::Slot(1)), b.part(0)),
        b.added(b.part(0), b.at(At::Slot(1)), b.at(At::Slot(2))),
    ];
    let recording = b.record(&steps, b.sizes(3, 0))?;
    let inputs = [b.buffer(&mut buffers, 1.0)?, b.buffer(&mut buffers, 2.0)?];
    let mut outputs = Vec::new();
    for (i, elements) in [0u64, 1, 2, 3, 4, 64, 5].into_iter().enumerate() {
        let out = b.buffer(&mut buffers, -1.0)?;
        let (x, y) = (inputs[i % 2], inputs[(i / 2) % 2]);
        recording.replay(b.stream, &[(x, 4 * elements), (y, 0), (out, 4 * elements)], &[])?;
        let value = |at: usize| (1 + at % 2) as f64;
        outputs.push((out, elements as i64, value(i) + 2.0 * value(i / 2)));
    }
    // Check all outputs at the end: a replay must not change the results of earlier ones.
    for (out, from, value) in outputs {
        b.expect(b.stream, out, (from, N), value)?;
        b.expect(b.stream, out, (from + N, 1), -1.0)?;
        if from > 0 {
            b.expect(b.stream, out, (from - 1, 1), -1.0)?;
        }
    }
    let x = inputs[0];
    recording.replay(b.stream, &[(x, 0), (inputs[1], 0), (x, 0)], &[])?;
    b.expect(b.stream, x, (0, N), 5.0)
}

/// Offsets, sizes and scalars of commands that are updated: a cache that grows.
fn updates(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let row = Placed::output(DType::F32, &[7], Layout::Contiguous);
    let cache = b.buffer(&mut buffers, -1.0)?;
    let (x, out) = (b.buffer(&mut buffers, 0.0)?, b.buffer(&mut buffers, -1.0)?);
    let written =
        |step: u64| b.copied(Piece(&row, At::Slot(0), 0), Piece(&row, At::Slot(1), 28 * step));
    let lengths: Vec<Placed> =
        (1..=12).map(|n| Placed::output(DType::F32, &[7 * n], Layout::Contiguous)).collect();
    let summed = |step: u64| {
        let length = &lengths[step as usize];
        let own = Piece(length, At::Slot(1), 0);
        b.added(own, own, Piece(length, At::Slot(2), 0))
    };
    let marked = |value: f64| b.filled(Piece(&row, At::Slot(2), 4 * (N as u64 - 7)), value, None);
    let recording = b.record(&[written(0), summed(0), marked(0.0)], b.sizes(3, 0))?;
    let slots = [(x, 0), (cache, 0), (out, 0)];
    for step in 0..12u64 {
        b.write(x, step as f64)?;
        if step > 0 {
            recording.update(0, &written(step))?;
            recording.update(1, &summed(step))?;
        }
        if step % 3 == 0 {
            recording.update(2, &marked(step as f64))?;
        }
        recording.replay(b.stream, &slots, &[])?;
        for row in 0..12i64 {
            let value = if row <= step as i64 { row as f64 } else { -1.0 };
            b.expect(b.stream, cache, (7 * row, 7), value)?;
            let value = if row <= step as i64 { 2.0 * value } else { -1.0 };
            b.expect(b.stream, out, (7 * row, 7), value)?;
        }
        b.expect(b.stream, out, (N - 7, 7), (step - step % 3) as f64)?;
    }
    // Update back to the first command, and update twice without a replay in between.
    recording.update(0, &written(5))?;
    recording.update(0, &written(0))?;
    recording.replay(b.stream, &slots, &[])?;
    b.expect(b.stream, cache, (0, 7), 11.0)?;
    b.expect(b.stream, cache, (35, 7), 5.0)
}

/// Two recordings in turn, each in its arena, each on the other's results.
fn interleaved(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let (one, two) = (b.buffer(&mut buffers, 1.0)?, b.buffer(&mut buffers, 2.0)?);
    let (x, y) = (b.buffer(&mut buffers, 0.0)?, b.buffer(&mut buffers, 0.0)?);
    let steps = |fixed: Buffer| {
        [
            b.added(b.at(At::Slot(0)), b.at(At::Fixed(fixed)), b.part(1)),
            b.copied(b.part(1), b.at(At::Slot(1))),
        ]
    };
    let first = b.record(&steps(one), b.sizes(2, 0))?;
    let second = b.record(&steps(two), b.sizes(2, 0))?;
    for _ in 0..20 {
        first.replay(b.stream, &[(x, 0), (y, 0)], &[])?;
        second.replay(b.stream, &[(y, 0), (x, 0)], &[])?;
    }
    b.expect(b.stream, x, (0, N), 60.0)?;
    b.expect(b.stream, y, (0, N), 58.0)
}

/// One recording on two streams, the second of which waits for the first.
fn two_streams(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let (other, event) = (b.device.stream()?, b.device.event()?);
    let steps = [
        b.filled(b.part(0), 0.0, Some(0)),
        b.added(b.part(0), b.at(At::Slot(0)), b.at(At::Slot(1))),
    ];
    let recording = b.record(&steps, b.sizes(2, 1))?;
    let x = b.buffer(&mut buffers, 1.0)?;
    let mut outputs = Vec::new();
    let mut last = None;
    for round in 1..=10u64 {
        let out = b.buffer(&mut buffers, -1.0)?;
        let stream = if round % 2 == 0 { other } else { b.stream };
        if let Some(value) = last {
            b.device.wait_stream(stream, event, value)?;
        }
        recording.replay(stream, &[(x, 0), (out, 0)], &[scalar(round as f64)])?;
        b.device.record(stream, event, round)?;
        last = Some(round);
        outputs.push((out, round as f64 + 1.0));
    }
    b.device.synchronize(b.stream)?;
    for (out, value) in outputs {
        b.expect(other, out, (0, N), value)?;
    }
    b.device.destroy_event(event);
    b.device.destroy_stream(other);
    Ok(())
}

/// Replays while other threads allocate, submit, read, record and replay on streams of their own.
fn threads(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let steps = [
        b.filled(b.part(0), 0.0, Some(0)),
        b.added(b.part(0), b.at(At::Slot(0)), b.at(At::Slot(1))),
    ];
    let recording = b.record(&steps, b.sizes(2, 1))?;
    let (x, out) = (b.buffer(&mut buffers, 1.0)?, b.buffer(&mut buffers, 0.0)?);
    let stop = AtomicBool::new(false);
    let busy = |records: bool| -> Result<()> {
        let stream = b.device.stream()?;
        let work = || -> Result<()> {
            while !stop.load(Ordering::Relaxed) {
                let mut own = Buffers::new(b.device);
                let buffer = own.alloc(b.bytes())?;
                let steps = [b.filled(b.at(At::Slot(0)), 0.0, Some(0))];
                if records {
                    let recording = b.record(&steps, b.sizes(1, 1))?;
                    recording.replay(stream, &[(buffer, 0)], &[scalar(3.0)])?;
                    b.expect(stream, buffer, (0, N), 3.0)?;
                } else {
                    b.device.write(stream, buffer, 0, &vec![0; b.bytes() as usize])?;
                    b.expect(stream, buffer, (0, N), 0.0)?;
                }
            }
            Ok(())
        };
        let done = work();
        b.device.synchronize(stream)?;
        b.device.destroy_stream(stream);
        done
    };
    std::thread::scope(|scope| {
        let others = [false, true].map(|records| scope.spawn(move || busy(records)));
        let replays = || -> Result<()> {
            for round in 0..100 {
                let value = f64::from(round);
                recording.replay(b.stream, &[(x, 0), (out, 0)], &[scalar(value)])?;
                b.expect(b.stream, out, (0, N), value + 1.0)?;
            }
            Ok(())
        };
        let done = replays();
        stop.store(true, Ordering::Relaxed);
        for other in others {
            other.join().unwrap_or_else(|_| Err("the kit's thread panicked".into()))?;
        }
        done
    })
}

/// A recording refuses bindings and updates that do not fit it, and is then unchanged.
fn refusals(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let (x, out) = (b.buffer(&mut buffers, 1.0)?, b.buffer(&mut buffers, -1.0)?);
    let step = b.copied(b.at(At::Slot(0)), b.at(At::Slot(1)));
    let few = b.record(std::slice::from_ref(&step), b.sizes(1, 0));
    ensure!(few.is_err(), "a slot that the recording does not have was recorded");
    let recording = b.record(std::slice::from_ref(&step), b.sizes(2, 0))?;
    let refused = |what: &str, answer: Result<(), Failure>| match answer {
        Ok(()) => Err(format!("{what} was taken")),
        Err(_) => Ok(()),
    };
    refused("a replay with a slot too few", recording.replay(b.stream, &[(x, 0)], &[]))?;
    refused("an update of a command that is not there", recording.update(1, &step))?;
    let sum = b.added(b.at(At::Slot(0)), b.at(At::Slot(0)), b.at(At::Slot(1)));
    refused("an update with another plan", recording.update(0, &sum))?;
    let beyond = b.copied(b.at(At::Slot(0)), b.at(At::Slot(2)));
    refused("an update to a slot that is not there", recording.update(0, &beyond))?;
    b.expect(b.stream, out, (0, N), -1.0)?;
    recording.replay(b.stream, &[(x, 0), (out, 0)], &[])?;
    b.expect(b.stream, out, (0, N), 1.0)
}

/// Each replay gets another arena.
fn arenas(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let steps =
        [b.copied(b.at(At::Slot(0)), b.part(1)), b.added(b.part(1), b.part(1), b.at(At::Slot(1)))];
    let recording = b.record(&steps, b.sizes(2, 0))?;
    let (x, out) = (b.buffer(&mut buffers, 0.0)?, b.buffer(&mut buffers, -1.0)?);
    let own = recording.arena();
    let other = buffers.alloc(own.bytes)?;
    for (round, arena) in [own, other, other, own].into_iter().enumerate() {
        b.write(x, round as f64)?;
        recording.replay_in(arena, b.stream, &[(x, 0), (out, 0)], &[])?;
        b.expect(b.stream, out, (0, N), 2.0 * round as f64)?;
    }
    Ok(())
}

/// A recording without commands, and a slot that no command names.
fn nothing(b: &Bench<'_>) -> Result<()> {
    let mut buffers = Buffers::new(b.device);
    let (x, out) = (b.buffer(&mut buffers, 1.0)?, b.buffer(&mut buffers, -1.0)?);
    let empty = b.record(&[], Sizes { slots: 0, scalars: 0, arena: 0 })?;
    empty.replay(b.stream, &[], &[])?;
    let step = b.copied(b.at(At::Slot(0)), b.at(At::Slot(2)));
    let recording = b.record(&[step], Sizes { slots: 3, scalars: 1, arena: 0 })?;
    let nowhere = Buffer { handle: Handle(std::ptr::null_mut()), bytes: 0 };
    recording.replay(b.stream, &[(x, 0), (nowhere, 0), (out, 0)], &[[0; 2]])?;
    b.expect(b.stream, out, (0, N), 1.0)
}

/// Recordings leak no memory.
fn balance(device: &Device<'_>) -> Result {
    let Some(interface) = offered(device) else { return skip("not offered") };
    let Some(bench) = Bench::new(device, interface)? else {
        return skip("no native fill, copy and add of float32");
    };
    let result = super::memory::flat(device, 400, 8 << 20, |round| {
        let b = &bench;
        let mut buffers = Buffers::new(device);
        let (x, out) = (buffers.alloc(2 * b.bytes())?, buffers.alloc(2 * b.bytes())?);
        let steps: Vec<Step<'_>> = (0..40)
            .map(|i| match i % 2 {
                0 => b.copied(b.at(At::Slot(0)), b.part(0)),
                _ => b.added(b.part(0), b.part(0), b.at(At::Slot(1))),
            })
            .collect();
        let recording = b.record(&steps, b.sizes(2, 0))?;
        for i in 0..3u64 {
            recording.replay(b.stream, &[(x, 4 * (i % 2)), (out, 0)], &[])?;
        }
        if round % 2 == 0 {
            recording.update(0, &steps[2])?;
            recording.replay(b.stream, &[(x, 0), (out, 0)], &[])?;
        }
        Ok(device.synchronize(b.stream)?)
    });
    bench.end();
    match result? {
        Outcome::Passed => PASSED,
        other => Ok(other),
    }
}
