//! Recordings: the memory that they bind, and which of their commands a change concerns.

use core::ffi::c_void;
use std::ptr::{null, null_mut};
use ultramarine_abi::dlpack::{DLDevice, DLTensor};
use ultramarine_abi::helper::RecordedCommands;
use ultramarine_abi::interface::replay::{
    FIXED_SCALAR, MemorySource, RecordedCommand, RecordingRequest, ReplayBindings, SlotMemory,
    source,
};
use ultramarine_abi::schema::DTYPES;
use ultramarine_abi::{Command, Tensor, status};

/// A handle, as the number that it is.
fn handle(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

/// A command with one input and one output of `n` elements, and one scalar.
struct Step {
    plan: usize,
    n: i64,
    sources: [MemorySource; 2],
    scalar: u32,
}

fn bound(slot: u32) -> MemorySource {
    MemorySource { kind: source::BOUND, slot }
}

const FIXED: MemorySource = MemorySource { kind: source::FIXED, slot: 0 };
const ARENA: MemorySource = MemorySource { kind: source::ARENA, slot: 0 };

/// Calls `f` with a step's command, whose tensors begin 8 bytes behind their sources.
fn with_command<T>(step: &Step, f: impl FnOnce(&RecordedCommand) -> T) -> T {
    let stride = 1i64;
    let tensor = Tensor {
        size: size_of::<Tensor>() as u32,
        flags: 0,
        dl: DLTensor {
            data: null_mut(),
            device: DLDevice { device_type: 12, device_id: 0 },
            ndim: 1,
            dtype: DTYPES[10].1,
            shape: (&raw const step.n).cast_mut(),
            strides: (&raw const stride).cast_mut(),
            byte_offset: 8,
        },
        buffer: handle(0xf1),
        buffer_size: 64,
        wait: null_mut(),
        wait_value: 0,
    };
    let (tensors, scalar) = ([tensor; 2], [7u64, 0]);
    let command = Command {
        size: size_of::<Command>() as u32,
        flags: 0,
        plan: handle(step.plan),
        inputs: tensors.as_ptr(),
        outputs: &tensors[1],
        scalars: &scalar,
        n_inputs: 1,
        n_outputs: 1,
        n_scalars: 1,
        tensor_stride: size_of::<Tensor>() as u32,
        workspace: null_mut(),
    };
    f(&RecordedCommand {
        size: size_of::<RecordedCommand>() as u32,
        flags: 0,
        command: &command,
        sources: step.sources.as_ptr(),
        scalar_slots: &step.scalar,
        workspace: ARENA,
        workspace_offset: 32,
    })
}

/// A recording of two slots and one scalar. Steps are recorded by updates of copies of the first one.
fn record(steps: &[Step]) -> Result<RecordedCommands<()>, i32> {
    let mut list = with_command(&steps[0], |first| {
        let commands = vec![*first; steps.len()];
        let request = RecordingRequest {
            size: size_of::<RecordingRequest>() as u32,
            flags: 0,
            commands: commands.as_ptr(),
            n_commands: commands.len() as u32,
            n_slots: 2,
            n_scalars: 1,
            reserved: 0,
            arena_bytes: 64,
        };
        // SAFETY: a request with all that it points at; handles are only numbers.
        unsafe { RecordedCommands::<()>::read(&request) }.map_err(|failure| failure.code)
    })?;
    for (i, step) in steps.iter().enumerate() {
        update(&mut list, i as u32, step)?;
    }
    Ok(list)
}

fn update(list: &mut RecordedCommands<()>, index: u32, step: &Step) -> Result<(), i32> {
    with_command(step, |command| {
        // SAFETY: a command with all that it points at; handles are only numbers.
        unsafe { list.update(index, command) }.map_err(|failure| failure.code)
    })
}

/// Binds buffers by their numbers, which are where they are, too.
fn bind(
    list: &mut RecordedCommands<()>,
    slots: &[usize],
    scalar: u64,
    arena: (usize, u64),
) -> Result<Vec<u32>, i32> {
    bind_at(list, slots, scalar, arena, |buffer| buffer as u64)
}

/// Binds buffers by their numbers, with `data` only where they are even.
fn bind_at(
    list: &mut RecordedCommands<()>,
    slots: &[usize],
    scalar: u64,
    arena: (usize, u64),
    place: impl Fn(*mut c_void) -> u64,
) -> Result<Vec<u32>, i32> {
    let memory = |buffer: usize, bytes| SlotMemory {
        buffer: handle(buffer),
        data: if buffer.is_multiple_of(2) { handle(buffer << 8) } else { null_mut() },
        bytes,
        offset: 16,
    };
    let slots: Vec<SlotMemory> = slots.iter().map(|b| memory(*b, 256)).collect();
    let scalars = [[scalar, 0]];
    let bindings = ReplayBindings {
        size: size_of::<ReplayBindings>() as u32,
        flags: 0,
        slots: if slots.is_empty() { null() } else { slots.as_ptr() },
        scalars: scalars.as_ptr(),
        n_slots: slots.len() as u32,
        n_scalars: 1,
        arena: SlotMemory { offset: 0, ..memory(arena.0, arena.1) },
    };
    // SAFETY: bindings with all that they point at.
    unsafe { list.bind(&bindings, place) }.map(<[u32]>::to_vec).map_err(|failure| failure.code)
}

#[test]
fn changes_concern_the_commands_that_name_them() {
    let step = |sources, scalar| Step { plan: 0x10, n: 4, sources, scalar };
    let mut list = record(&[
        step([bound(0), ARENA], FIXED_SCALAR),
        step([ARENA, ARENA], 0),
        step([FIXED, bound(1)], FIXED_SCALAR),
    ])
    .expect("a recording");
    let arena = (0x20, 64);
    assert_eq!(bind(&mut list, &[2, 4], 1, (0x20, 32)), Err(status::INVALID), "a small arena");
    assert_eq!(bind(&mut list, &[2], 1, arena), Err(status::INVALID), "a slot too few");
    assert_eq!(bind(&mut list, &[2, 4], 1, arena), Ok(vec![0, 1, 2]));
    assert_eq!(bind(&mut list, &[2, 4], 1, arena), Ok(vec![]));
    assert_eq!(bind(&mut list, &[6, 4], 1, arena), Ok(vec![0]));
    assert_eq!(bind(&mut list, &[6, 5], 2, arena), Ok(vec![1, 2]));
    assert_eq!(bind(&mut list, &[6, 5], 2, (0x22, 64)), Ok(vec![0, 1, 2]), "workspaces, too");
    list.again();
    assert_eq!(bind(&mut list, &[6, 5], 3, (0x22, 64)), Ok(vec![0, 1, 2]), "nothing came of it");

    // A command's sources may be others after an update; it is bound to what is there.
    assert_eq!(update(&mut list, 1, &step([bound(1), FIXED], FIXED_SCALAR)), Ok(()));
    assert_eq!(bind(&mut list, &[6, 5], 3, (0x22, 64)), Ok(vec![1]));
    assert_eq!(bind(&mut list, &[6, 5], 4, (0x22, 64)), Ok(vec![]), "nothing names the scalar");
    assert_eq!(bind(&mut list, &[6, 8], 4, (0x22, 64)), Ok(vec![1, 2]));
}

#[test]
fn handles_are_no_memory() {
    let step =
        |slot| Step { plan: 0x10, n: 4, sources: [bound(slot), ARENA], scalar: FIXED_SCALAR };
    let mut list = record(&[step(0), step(1)]).expect("a recording");
    let place = |buffer: *mut c_void| buffer as u64 & 0xff;
    let arena = (0x21, 64);
    assert_eq!(bind_at(&mut list, &[3, 5], 1, arena, place), Ok(vec![0, 1]));
    // The same memory, with another handle that commands have to name.
    assert_eq!(bind_at(&mut list, &[3, 0x105], 1, arena, place), Ok(vec![]));
    let input = |list: &RecordedCommands<()>, i| {
        // SAFETY: the list lives, and a command of it has one input.
        list.raw(i).map(|c| unsafe { (*c.inputs).buffer as usize })
    };
    assert_eq!((input(&list, 0), input(&list, 1)), (Some(3), Some(0x105)));
    assert_eq!(bind_at(&mut list, &[3, 0x105], 1, (0x121, 64), place), Ok(vec![]));
    // A handle that came back, of other memory.
    let moved = |buffer: *mut c_void| if buffer as usize == 3 { 77 } else { place(buffer) };
    assert_eq!(bind_at(&mut list, &[3, 0x105], 1, (0x121, 64), moved), Ok(vec![0]));
}

#[test]
fn commands_have_the_memory_that_is_bound() {
    let step = |sources, scalar| Step { plan: 0x10, n: 4, sources, scalar };
    let mut list = record(&[step([FIXED, bound(1)], 0), step([bound(0), ARENA], FIXED_SCALAR)])
        .expect("a recording");
    bind(&mut list, &[2, 5], 9, (0x21, 64)).expect("it binds");
    let read = |list: &RecordedCommands<()>, i: usize| {
        let command = list.raw(i).expect("a command");
        // SAFETY: the list lives, and a command of it has one input, one output and one scalar.
        unsafe {
            let of = |t: &Tensor| {
                (
                    t.buffer as usize,
                    t.dl.data as usize,
                    t.buffer_size,
                    t.dl.byte_offset,
                    *t.dl.shape,
                )
            };
            ([of(&*command.inputs), of(&*command.outputs)], (*command.scalars)[0])
        }
    };
    assert_eq!(read(&list, 0), ([(0xf1, 0, 64, 8, 4), (5, 0, 256, 24, 4)], 9));
    assert_eq!(read(&list, 1), ([(2, 0x200, 256, 24, 4), (0x21, 0, 64, 8, 4)], 7));
    // A workspace is a buffer and an offset, or an address for the host.
    let workspace = |list: &RecordedCommands<()>| list.raw(0).map(|c| c.workspace as usize);
    assert_eq!((workspace(&list), list.workspace_offset(0)), (Some(0x21), 32));
    bind(&mut list, &[2, 5], 9, (0x22, 64)).expect("it binds");
    assert_eq!(workspace(&list), Some(0x2200 + 32));
    assert_eq!(update(&mut list, 0, &Step { n: 2, ..step([FIXED, bound(1)], 0) }), Ok(()));
    bind(&mut list, &[2, 5], 9, (0x22, 64)).expect("it binds");
    assert_eq!(read(&list, 0).0.map(|t| t.4), [2, 2]);
    let fixed = |list: &RecordedCommands<()>, i| list.fixed_buffers(i).map(|b| b as usize).sum();
    assert_eq!((fixed(&list, 0), fixed(&list, 1)), (0xf1usize, 0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let step = |plan, sources, scalar| Step { plan, n: 4, sources, scalar };
    let good = || step(0x10, [bound(0), bound(1)], FIXED_SCALAR);
    assert!(record(&[step(0x10, [bound(2), ARENA], 0)]).is_err_and(|c| c == status::INVALID));
    assert!(record(&[step(0x10, [FIXED, ARENA], 1)]).is_err_and(|c| c == status::INVALID));
    let unknown = MemorySource { kind: 9, slot: 0 };
    assert!(record(&[step(0x10, [unknown, FIXED], 0)]).is_err_and(|c| c == status::UNSUPPORTED));
    let mut list = record(&[good()]).expect("a recording");
    assert_eq!(update(&mut list, 1, &good()), Err(status::INVALID), "there is one command");
    assert_eq!(update(&mut list, 0, &step(0x11, [FIXED; 2], 0)), Err(status::INVALID), "a plan");
    assert_eq!(update(&mut list, 0, &step(0x10, [FIXED, bound(7)], 0)), Err(status::INVALID));
    assert_eq!(bind(&mut list, &[2, 4], 0, (0x20, 64)), Ok(vec![0]), "it is what it was");
    assert_eq!(bind(&mut list, &[4, 4], 0, (0x20, 64)), Ok(vec![0]));
}
