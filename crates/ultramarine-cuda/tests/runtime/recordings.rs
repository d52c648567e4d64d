//! Recordings: how many nodes a replay changes, and what a fault in one is called.

use super::host::{Device, apart, call};
use super::{BAD, GOOD, plan};
use core::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;
use ultramarine_abi::dlpack::{DLDevice, DLTensor, device_type};
use ultramarine_abi::interface::replay::{
    FIXED_SCALAR, INTERFACE, MemorySource, RecordedCommand, RecordingRequest, ReplayBindings,
    ReplayInterface, SlotMemory, source,
};
use ultramarine_abi::schema::{DTYPES, NoAttrs, op};
use ultramarine_abi::{Command, Tensor, TensorDesc, layout};
use ultramarine_cuda::graph::COUNTERS;

/// float32.
const DTYPE: usize = 10;

const SLOT_0: MemorySource = MemorySource { kind: source::BOUND, slot: 0 };
const SLOT_1: MemorySource = MemorySource { kind: source::BOUND, slot: 1 };
const ARENA: MemorySource = MemorySource { kind: source::ARENA, slot: 0 };

/// A command on vectors of float32: a fill of one, or a copy from the first to the second.
struct Step {
    plan: *mut c_void,
    n: i64,
    sources: Vec<MemorySource>,
    scalar: Option<u32>,
}

fn prepare(device: &Device, op: u32, inputs: u32) -> *mut c_void {
    let desc = TensorDesc {
        size: size_of::<TensorDesc>() as u32,
        ndim: 1,
        dtype: DTYPES[DTYPE].1,
        layout: layout::CONTIGUOUS,
    };
    let (attributes, mut plan) = (NoAttrs::new(), null_mut());
    let attributes = (&raw const attributes).cast();
    let make = device.table.prepare.expect("prepare");
    // SAFETY: an open device, descriptions of one tensor each, a place for the plan.
    call(|e| unsafe {
        make(device.handle, op, 1, attributes, &desc, inputs, &desc, 1, &mut plan, e)
    })
    .expect("a plan");
    plan
}

/// Calls `f` with steps as the contract has them.
fn with_commands<T>(steps: &[Step], f: impl FnOnce(&[RecordedCommand]) -> T) -> T {
    let (stride, zero) = ([1i64], [[0u64; 2]]);
    let tensors: Vec<Vec<Tensor>> = steps
        .iter()
        .map(|step| {
            let tensor = Tensor {
                size: size_of::<Tensor>() as u32,
                flags: 0,
                dl: DLTensor {
                    data: null_mut(),
                    device: DLDevice { device_type: device_type::CUDA, device_id: 0 },
                    ndim: 1,
                    dtype: DTYPES[DTYPE].1,
                    shape: (&raw const step.n).cast_mut(),
                    strides: stride.as_ptr().cast_mut(),
                    byte_offset: 0,
                },
                buffer: null_mut(),
                buffer_size: 0,
                wait: null_mut(),
                wait_value: 0,
            };
            vec![tensor; step.sources.len()]
        })
        .collect();
    let commands: Vec<Command> = steps
        .iter()
        .zip(&tensors)
        .map(|(step, tensors)| {
            let inputs = tensors.len().saturating_sub(1);
            Command {
                size: size_of::<Command>() as u32,
                flags: 0,
                plan: step.plan,
                inputs: tensors.as_ptr(),
                outputs: tensors[inputs..].as_ptr(),
                scalars: zero.as_ptr(),
                n_inputs: inputs as u32,
                n_outputs: tensors.len().min(1) as u32,
                n_scalars: u32::from(step.scalar.is_some()),
                tensor_stride: size_of::<Tensor>() as u32,
                workspace: null_mut(),
            }
        })
        .collect();
    let recorded: Vec<RecordedCommand> = steps
        .iter()
        .zip(&commands)
        .map(|(step, command)| RecordedCommand {
            size: size_of::<RecordedCommand>() as u32,
            flags: 0,
            command,
            sources: step.sources.as_ptr(),
            scalar_slots: step.scalar.as_ref().map_or(null(), |slot| slot),
            workspace: MemorySource::default(),
            workspace_offset: 0,
        })
        .collect();
    f(&recorded)
}

struct Recording<'a> {
    device: &'a Device,
    interface: &'static ReplayInterface,
    handle: *mut c_void,
}

type Outcome = Result<(), super::host::ReportedError>;

impl<'a> Recording<'a> {
    fn new(device: &'a Device, steps: &[Step]) -> Self {
        let find = device.table.interface.expect("interface");
        // SAFETY: the id's own struct, which is static.
        let interface =
            unsafe { &*find(device.table.backend, INTERFACE.as_ptr()).cast::<ReplayInterface>() };
        let (mut handle, mut bytes) = (null_mut(), 0);
        with_commands(steps, |commands| {
            let request = RecordingRequest {
                size: size_of::<RecordingRequest>() as u32,
                flags: 0,
                commands: commands.as_ptr(),
                n_commands: commands.len() as u32,
                n_slots: 2,
                n_scalars: 1,
                reserved: 0,
                arena_bytes: 4096,
            };
            let record = interface.record.expect("record");
            // SAFETY: commands that are valid for the call, places for the answers.
            call(|e| unsafe { record(device.handle, &request, &mut handle, &mut bytes, e) })
        })
        .expect("a recording");
        Self { device, interface, handle }
    }

    fn replay(&self, stream: *mut c_void, buffers: [*mut c_void; 3], value: f32) -> Outcome {
        let memory = |buffer| SlotMemory { buffer, data: null_mut(), bytes: 4096, offset: 0 };
        let [a, b, arena] = buffers.map(memory);
        let (slots, scalars) = ([a, b], [[u64::from(value.to_bits()), 0]]);
        let bindings = ReplayBindings {
            size: size_of::<ReplayBindings>() as u32,
            flags: 0,
            slots: slots.as_ptr(),
            scalars: scalars.as_ptr(),
            n_slots: 2,
            n_scalars: 1,
            arena,
        };
        let replay = self.interface.replay.expect("replay");
        // SAFETY: a recording of this device, bindings that are valid for the call.
        call(|e| unsafe { replay(self.device.handle, stream, self.handle, &bindings, e) })
    }

    fn update(&self, index: u32, step: Step) {
        let update = self.interface.update.expect("update");
        with_commands(&[step], |commands| {
            // SAFETY: a recording of this device, a command that is valid for the call.
            call(|e| unsafe {
                update(self.device.handle, self.handle, index, commands.as_ptr(), e)
            })
        })
        .expect("an update");
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        // SAFETY: released once, when nothing runs it.
        unsafe { self.interface.release.expect("release")(self.device.handle, self.handle) }
    }
}

/// Graphs made, nodes made and nodes changed since the last call.
fn counted(last: &mut [u64; 3]) -> [u64; 3] {
    let now = [&COUNTERS.made, &COUNTERS.nodes, &COUNTERS.changed]
        .map(|counter| counter.load(Ordering::Relaxed));
    let since = [now[0] - last[0], now[1] - last[1], now[2] - last[2]];
    *last = now;
    since
}

/// Only nodes of commands that name what changed are touched, and a graph is made anew only where the
/// driver takes no change.
#[test]
fn a_replay_changes_the_nodes_of_what_changed() {
    apart(&[], || {
        let device = Device::open();
        let (fill, copy) = (prepare(&device, op::FILL, 0), prepare(&device, op::COPY, 1));
        let filled =
            |n, scalar| Step { plan: fill, n, sources: vec![SLOT_0], scalar: Some(scalar) };
        let copied = |n, from, to| Step { plan: copy, n, sources: vec![from, to], scalar: None };
        let stream = device.stream().expect("a stream");
        let buffers = || device.alloc(4096).expect("memory");
        let (a, b, c, arena) = (buffers(), buffers(), buffers(), buffers());
        let mut last = [0; 3];
        let recording = Recording::new(
            &device,
            &[filled(256, 0), copied(256, SLOT_0, ARENA), copied(256, ARENA, SLOT_1)],
        );
        assert_eq!(counted(&mut last), [0, 0, 0], "the memory is not known yet");
        let mut run = |buffers, value: f32, expected: [u64; 3], what: &str| {
            recording.replay(stream, buffers, value).expect(what);
            assert_eq!(counted(&mut last), expected, "{what}");
            let read = device.read(stream, buffers[1], 64).expect("bytes");
            assert_eq!(read[..4], value.to_le_bytes(), "{what}");
        };
        run([a, b, arena], 1.0, [1, 3, 0], "the first replay");
        run([a, b, arena], 1.0, [0, 0, 0], "the same");
        run([a, c, arena], 1.0, [0, 0, 1], "another output");
        run([a, c, arena], 2.0, [0, 0, 1], "another scalar");
        run([b, c, arena], 2.0, [0, 0, 2], "another input, of two commands");
        run([b, c, a], 2.0, [0, 0, 2], "another arena");
        recording.update(1, copied(128, SLOT_0, ARENA));
        run([b, c, a], 2.0, [0, 0, 1], "a copy of another size");
        recording.update(0, filled(128, FIXED_SCALAR));
        recording.update(1, copied(128, SLOT_0, ARENA));
        run([b, c, a], 0.0, [1, 3, 0], "a fill of another size, which the driver refuses");
        run([a, c, b], 0.0, [0, 0, 3], "the new graph, changed");
        // Many graphs one after another, each retired while it may run.
        for n in 1..=40 {
            recording.update(0, filled(n, 0));
            recording.replay(stream, [a, b, c], n as f32).expect("a replay");
        }
        let read = device.read(stream, b, 4).expect("bytes");
        assert_eq!(read, 40f32.to_le_bytes());
        drop(recording);
        [a, b, c, arena].iter().for_each(|buffer| device.free(*buffer));
        device.destroy_stream(stream);
        device.close();
    });
}

#[test]
fn a_fault_names_the_recording() {
    apart(&[], || {
        let device = Device::open();
        let stream = device.stream().expect("a stream");
        let nothing = |plan| Step { plan, n: 1, sources: Vec::new(), scalar: None };
        let (good, bad) = (plan("exp of float32", GOOD), plan("softmax of float32", BAD));
        let recording = Recording::new(&device, &[nothing(good), nothing(bad)]);
        let arena = device.alloc(4096).expect("memory");
        let reported = recording
            .replay(stream, [arena; 3], 0.0)
            .and_then(|()| device.synchronize(stream))
            .expect_err("a fault without an error")
            .text;
        let words = ", in one of 2 recorded operations (exp of float32, softmax of float32)";
        assert!(reported.contains(words), "{reported}");
        let again = recording.replay(stream, [arena; 3], 0.0).expect_err("it is lost").text;
        assert!(again.contains("lost since CUDA error 700"), "{again}");
    });
}
