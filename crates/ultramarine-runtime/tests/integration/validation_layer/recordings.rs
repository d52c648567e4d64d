//! Recordings through a watched table.

use super::*;
pub(super) use ultramarine_abi::interface::replay::INTERFACE;
use ultramarine_abi::interface::replay::{
    MemorySource, RecordedCommand, RecordingRequest, ReplayBindings, ReplayInterface, SlotMemory,
    source,
};

/// Says that the arena is smaller than what is used of it.
const SMALL_ARENA: u32 = 30;
/// Answers replays with NOT_YET.
const REFUSES_REPLAYS: u32 = 31;

unsafe extern "C" fn record(
    _: Handle,
    request: *const RecordingRequest,
    recording: *mut Handle,
    arena_bytes: *mut u64,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's request and places.
    unsafe {
        *arena_bytes = if wrong(SMALL_ARENA) { 0 } else { (*request).arena_bytes };
        give(recording)
    }
}

unsafe extern "C" fn replay(
    _: Handle,
    _: Handle,
    _: Handle,
    _: *const ReplayBindings,
    _: *mut *mut abi::Error,
) -> Status {
    if wrong(REFUSES_REPLAYS) { status::NOT_YET } else { status::OK }
}

unsafe extern "C" fn update(
    _: Handle,
    _: Handle,
    _: u32,
    _: *const RecordedCommand,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub(super) static TABLE: ReplayInterface = ReplayInterface {
    size: size_of::<ReplayInterface>() as u32,
    flags: 0,
    record: Some(record),
    replay: Some(replay),
    update: Some(update),
    release: Some(end),
};

#[test]
fn recordings() {
    let t = Watched::new();
    let find = t.table.interface.expect("the mock has it");
    // SAFETY: the id's own struct, which is static.
    let i = unsafe { &*find(t.table.backend, INTERFACE.as_ptr()).cast::<ReplayInterface>() };
    macro_rules! call_interface {
        ($name:ident, $($arg:expr),*) => {{
            let mut error = std::ptr::null_mut();
            // SAFETY: what the arguments point at is valid.
            let code = unsafe { (i.$name.expect("it"))(t.device, $($arg,)* &mut error) };
            host_table::check(stringify!($name), code, error)
        }};
    }
    let null = std::ptr::null_mut();
    let (mut shape, mut strides) = ([4i64, 4], [4i64, 1]);
    let anywhere = tensor(null, 0, &mut shape, &mut strides);
    let [a, b, fixed, arena] =
        [64, 64, 64, 128].map(|n| make!(t, buffer_alloc, n).expect("memory"));
    let plan = t.plan(op::MATMUL, 2).expect("a plan");
    let slot = |slot| MemorySource { kind: source::BOUND, slot };
    let fixed_source = MemorySource::default();
    let in_arena = MemorySource { kind: source::ARENA, slot: 0 };
    // fixed @ slot 0 -> arena; arena @ fixed -> slot 1
    let of_fixed = tensor(fixed, 64, &mut shape, &mut strides);
    let tensors = [[of_fixed, anywhere, anywhere], [anywhere, of_fixed, anywhere]];
    let sources = [[fixed_source, slot(0), in_arena], [in_arena, fixed_source, slot(1)]];
    let command = |i: usize, plan| Command {
        size: size_of::<Command>() as u32,
        flags: 0,
        plan,
        inputs: tensors[i].as_ptr(),
        outputs: &raw const tensors[i][2],
        scalars: std::ptr::null(),
        n_inputs: 2,
        n_outputs: 1,
        n_scalars: 0,
        tensor_stride: size_of::<Tensor>() as u32,
        workspace: null,
    };
    let commands = [command(0, plan), command(1, plan)];
    let recorded = |i: usize, command: &Command| RecordedCommand {
        size: size_of::<RecordedCommand>() as u32,
        flags: 0,
        command,
        sources: sources[i].as_ptr(),
        scalar_slots: std::ptr::null(),
        workspace: fixed_source,
        workspace_offset: 0,
    };
    let list = [recorded(0, &commands[0]), recorded(1, &commands[1])];
    let make = |list: &[RecordedCommand], slots: u32| {
        let request = RecordingRequest {
            size: size_of::<RecordingRequest>() as u32,
            flags: 0,
            commands: list.as_ptr(),
            n_commands: list.len() as u32,
            n_slots: slots,
            n_scalars: 0,
            reserved: 0,
            arena_bytes: 64,
        };
        let (mut recording, mut bytes) = (null, 0);
        call_interface!(record, &request, &mut recording, &mut bytes).map(|()| recording)
    };
    assert_found(make(&list, 1), "slot 1 is not below the number of slots, 1");
    let unknown = command(0, 0x5 as Handle);
    assert_found(make(&[recorded(0, &unknown)], 2), "command 0: plan 0x5 is unknown");
    WRONG.store(SMALL_ARENA, Ordering::SeqCst);
    assert_found(make(&list, 2), "an arena of 0 bytes, although 64 are used");
    WRONG.store(0, Ordering::SeqCst);
    let recording = make(&list, 2).expect("a recording");

    let memory = |buffer, bytes| SlotMemory { buffer, data: null, bytes, offset: 0 };
    let replay = |stream: Handle, recording: Handle, slots: &[SlotMemory], arena: SlotMemory| {
        let bindings = ReplayBindings {
            size: size_of::<ReplayBindings>() as u32,
            flags: 0,
            slots: slots.as_ptr(),
            scalars: std::ptr::null(),
            n_slots: slots.len() as u32,
            n_scalars: 0,
            arena,
        };
        call_interface!(replay, stream, recording, &bindings)
    };
    let (on, room) = (t.stream, memory(arena, 128));
    let good = [memory(a, 64), memory(b, 64)];
    let clean = validation_findings();
    replay(on, recording, &good, room).expect("as it should be");
    replay(on, recording, &good, room).expect("again");
    assert_eq!(validation_findings(), clean);
    assert_found(replay(on, 0x5 as Handle, &good, room), "recording 0x5 is unknown");
    assert_found(replay(on, recording, &good[..1], room), "1 slots and 0 scalars are bound");
    assert_found(replay(on, recording, &good, memory(arena, 32)), "the arena has 32 bytes");
    let far = SlotMemory { offset: 4, ..memory(b, 64) };
    assert_found(replay(on, recording, &[good[0], far], room), "command 1: output 0");
    let same = [memory(a, 64), memory(fixed, 64)];
    assert_found(replay(on, recording, &same, room), "output 0 of matmul overlaps input 1");
    replay(on, recording, &good, room).expect("it is what it was");

    // A recording runs once at a time.
    let other = make!(t, stream_create).expect("a stream");
    let event = make!(t, event_create).expect("an event");
    assert_found(replay(other, recording, &good, room), "the stream does not wait for it");
    call!(t, event_record, t.device, on, event, 1).expect("a record");
    call!(t, event_wait_stream, t.device, other, event, 1).expect("a wait");
    replay(other, recording, &good, room).expect("it waits");
    WRONG.store(REFUSES_REPLAYS, Ordering::SeqCst);
    let clean = validation_findings();
    replay(other, recording, &good, room).expect_err("it is refused");
    assert_eq!(validation_findings(), clean, "which is no fault");
    WRONG.store(0, Ordering::SeqCst);

    let update =
        |index, command: &RecordedCommand| call_interface!(update, recording, index, command);
    update(1, &recorded(1, &commands[1])).expect("an update");
    assert_found(update(2, &list[0]), "command 2 is not below the number of commands, 2");
    assert_found(update(0, &recorded(0, &unknown)), "has another plan");

    // What it holds stays, and so does it while it may run.
    assert_eq!(end!(t, buffer_free, fixed), 1, "the recording holds it");
    assert_eq!(end!(t, plan_release, plan), 1, "the recording holds it");
    let release = || {
        let before = validation_findings();
        // SAFETY: the mock does nothing with handles.
        unsafe { (i.release.expect("it"))(t.device, recording) };
        validation_findings() - before
    };
    assert_eq!(end!(t, buffer_free, a), 1, "a replay may use it");
    call!(t, stream_synchronize, t.device, other).expect("a wait");
    call!(t, stream_synchronize, t.device, on).expect("a wait");
    assert_eq!(release(), 0);
    assert_eq!(release(), 1, "twice");
    assert_eq!(end!(t, buffer_free, fixed) + end!(t, plan_release, plan), 0);
}
