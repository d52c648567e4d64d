//! The interface `ultramarine.collective/1` of a wrapped backend. Checks that groups are ready
//! before they are used, that tensors lie inside of their buffers and do not overlap, and that a
//! group that has failed is not used.

use super::calls::{ErrorOut, Handle, HandleOut, context, copies, made, open_context};
use super::state::{HandleKey, State, key};
use super::{Check, Context, replaced};
use core::ffi::c_void;
use ultramarine_abi::interface::collective::{
    CollectiveCommand, CollectiveId, CollectiveInterface, kind,
};
use ultramarine_abi::{Status, ensure, schema, status};

/// A live group.
#[derive(Debug)]
pub(super) struct GroupState {
    /// Rank and size, once they are known.
    place: Option<(u32, u32)>,
    /// True once `status` has reported that the group is ready.
    ready: bool,
    /// True once the group was aborted, or `status` failed.
    ended: bool,
}

fn interface(cx: &Context) -> Option<&CollectiveInterface> {
    cx.collective.get().map(|(real, _)| real)
}

unsafe fn make_id(slot: usize, device: Handle, id: *mut CollectiveId, error: ErrorOut) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.make_id) else { return status::UNSUPPORTED };
    let before = |s: &mut State| s.device(device).map(|_| ());
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, id, e) };
    let after = |_: &mut State| {
        // SAFETY: the caller's pointer is NULL, or the backend has written to it.
        let Some(id) = (unsafe { id.as_ref() }) else { return Ok(()) };
        let most = id.bytes.len();
        ensure!((1..=most).contains(&(id.length as usize)), "an id of {} bytes", id.length);
        ensure!(id.bytes[id.length as usize..].iter().all(|b| *b == 0), "bytes behind the id");
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("make_id", error, None, &before, &real, &after) }
}

/// Records a group that the backend has begun to open.
///
/// # Safety
/// The pointer is NULL, or points to a handle.
unsafe fn begun(
    s: &mut State,
    device: Handle,
    group: HandleOut,
    place: Option<(u32, u32)>,
) -> Check {
    // SAFETY: by this function's contract.
    let group = unsafe { made(group, "group") }?;
    ensure!(!group.is_null(), "it returned OK and no group");
    s.groups.add(key(device, group), GroupState { place, ready: false, ended: false })
}

unsafe fn open(
    slot: usize,
    device: Handle,
    id: *const CollectiveId,
    rank: u32,
    n_ranks: u32,
    group: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.open) else { return status::UNSUPPORTED };
    let before = |s: &mut State| {
        ensure!(!id.is_null(), "no id");
        ensure!(rank < n_ranks, "rank {rank} of {n_ranks}");
        s.device(device).map(|_| ())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, id, rank, n_ranks, group, e) };
    // SAFETY: the caller's pointer, to which the backend has written.
    let after = |s: &mut State| unsafe { begun(s, device, group, Some((rank, n_ranks))) };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("open", error, None, &before, &real, &after) }
}

/// Checks that a group can be used.
fn usable(s: &State, group: HandleKey) -> Result<&GroupState, String> {
    let state = s.groups.get(group)?;
    ensure!(!state.ended, "group {:#x} has failed or was ended", group.1);
    ensure!(state.ready, "group {:#x} is used before its status was OK", group.1);
    Ok(state)
}

unsafe fn split(
    slot: usize,
    device: Handle,
    group: Handle,
    color: u32,
    order: i32,
    new_group: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.split) else { return status::UNSUPPORTED };
    let before = |s: &mut State| usable(s, key(device, group)).map(|_| ());
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, group, color, order, new_group, e) };
    // SAFETY: the caller's pointer, to which the backend has written.
    let after = |s: &mut State| unsafe { begun(s, device, new_group, None) };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("split", error, None, &before, &real, &after) }
}

unsafe fn status_of(slot: usize, device: Handle, group: Handle, error: ErrorOut) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.status) else { return status::UNSUPPORTED };
    let of = key(device, group);
    let before = |s: &mut State| {
        let ended = s.groups.get(of)?.ended;
        ensure!(!ended, "group {:#x} has failed or was ended", of.1);
        Ok(())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, group, e) };
    let after = |s: &mut State| s.groups.get_mut(of).map(|state| state.ready = true);
    // SAFETY: the error pointer is the caller's.
    let code = unsafe { cx.call("status", error, None, &before, &real, &after) };
    if !matches!(code, status::OK | status::NOT_YET)
        && !cx.forked()
        && let Ok(state) = cx.state().groups.get_mut(of)
    {
        state.ended = true;
    }
    code
}

unsafe fn place(
    slot: usize,
    device: Handle,
    group: Handle,
    rank: *mut u32,
    n_ranks: *mut u32,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.place) else { return status::UNSUPPORTED };
    let of = key(device, group);
    let before = |s: &mut State| {
        ensure!(!rank.is_null() && !n_ranks.is_null(), "no place for rank and size");
        usable(s, of).map(|_| ())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, group, rank, n_ranks, e) };
    let after = |s: &mut State| {
        // SAFETY: the caller's places, which are not NULL and the backend has filled.
        let (rank, size) = unsafe { (*rank, *n_ranks) };
        ensure!(rank < size, "it says rank {rank} of {size}");
        let known = &mut s.groups.get_mut(of)?.place;
        ensure!(
            known.is_none_or(|k| k == (rank, size)),
            "it says rank {rank} of {size}, where {known:?} was given"
        );
        *known = Some((rank, size));
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("place", error, None, &before, &real, &after) }
}

/// Iterates over the commands of a list.
///
/// # Safety
/// `commands` points at that many commands, which are `commands.size` bytes apart.
unsafe fn list(
    commands: *const CollectiveCommand,
    n: u32,
) -> Result<Vec<CollectiveCommand>, String> {
    ensure!(!commands.is_null() && n > 0, "no commands");
    // SAFETY: by this function's contract.
    let stride = unsafe { (*commands).size } as usize;
    ensure!(stride >= size_of::<u32>(), "a command of {stride} bytes");
    let each = (0..n as usize).map(|i| {
        let at = commands.cast::<u8>().wrapping_add(i * stride).cast::<CollectiveCommand>();
        // SAFETY: as above. An all-zero command is valid.
        unsafe { ultramarine_abi::read_sized(at) }.ok_or_else(|| "no command".to_owned())
    });
    each.collect()
}

/// Checks a command. Returns the buffers that it uses.
fn command(
    s: &State,
    device: Handle,
    (rank, size): (u32, u32),
    c: &CollectiveCommand,
) -> Result<Vec<HandleKey>, String> {
    let side = matches!(c.kind, kind::SEND | kind::RECEIVE);
    ensure!(c.kind < kind::COUNT, "collective {} is unknown", c.kind);
    ensure!(c.count > 0, "a collective of no elements");
    ensure!(!side || c.peer < size, "a message with rank {} of {size}", c.peer);
    ensure!(!side || c.peer != rank, "a message of rank {rank} with itself");
    let dtype = schema::dtype_index(c.dtype).ok_or("a dtype of no array")?;
    let element = u64::from(schema::DTYPES[dtype].1.bits) / 8;
    let bytes = |count: u64| count.checked_mul(element.max(1)).ok_or("too many elements");
    let whole = u64::from(size);
    let (input, output) = match c.kind {
        kind::GATHER => (c.count, c.count.checked_mul(whole).ok_or("too many elements")?),
        kind::SUM_SCATTER => {
            ensure!(
                c.count.is_multiple_of(whole),
                "{} elements scattered to {size} ranks",
                c.count
            );
            (c.count, c.count / whole)
        }
        kind::SEND => (c.count, 0),
        kind::RECEIVE => (0, c.count),
        _ => (c.count, c.count),
    };
    let mut used = Vec::new();
    for (count, buffer, offset) in
        [(input, c.input, c.input_offset), (output, c.output, c.output_offset)]
    {
        if count > 0 {
            copies(s, device, buffer, (offset, bytes(count)?))?;
            used.push(key(device, buffer));
        }
    }
    let (from, to) = (c.input_offset, c.output_offset);
    let meet = from < to.saturating_add(bytes(output)?) && to < from.saturating_add(bytes(input)?);
    let in_place = from == to && matches!(c.kind, kind::SUM | kind::MAX | kind::MIN);
    ensure!(
        side || c.input != c.output || !meet || in_place,
        "input and output of collective {} overlap",
        c.kind
    );
    Ok(used)
}

#[allow(clippy::too_many_arguments, reason = "the contract's function")]
unsafe fn run(
    slot: usize,
    device: Handle,
    group: Handle,
    stream: Handle,
    commands: *const CollectiveCommand,
    n_commands: u32,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.run) else { return status::UNSUPPORTED };
    let on = key(device, stream);
    let used = std::cell::RefCell::new(Vec::new());
    let before = |s: &mut State| {
        let place = usable(s, key(device, group))?.place;
        let place = place.ok_or("a group is used before its place was asked for")?;
        // SAFETY: the caller's commands.
        for c in unsafe { list(commands, n_commands) }? {
            used.borrow_mut().extend(command(s, device, place, &c)?);
        }
        Ok(())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, group, stream, commands, n_commands, e) };
    let after = |s: &mut State| {
        s.submitted(on, &used.borrow());
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("run", error, Some(on), &before, &real, &after) }
}

unsafe fn abort(slot: usize, device: Handle, group: Handle) {
    let Some(cx) = open_context(slot) else { return };
    if !cx.forked() {
        let of = key(device, group);
        let ended = cx.state().groups.get_mut(of).map(|state| state.ended = true);
        if let Err(what) = ended {
            cx.finding("abort", &what);
            return;
        }
    }
    if let Some(real) = interface(cx).and_then(|i| i.abort) {
        // SAFETY: the group is alive.
        unsafe { real(device, group) }
    }
}

unsafe fn close(slot: usize, device: Handle, group: Handle) {
    let Some(cx) = open_context(slot) else { return };
    if !cx.forked()
        && let Err(what) = cx.state().groups.remove(key(device, group))
    {
        cx.finding("close", &what);
        return;
    }
    if let Some(real) = interface(cx).and_then(|i| i.close) {
        // SAFETY: the group was alive, and is released once.
        unsafe { real(device, group) }
    }
}

slots! {
    fn make_id(device: Handle, id: *mut CollectiveId, error: ErrorOut) -> Status;
    fn open(
        device: Handle, id: *const CollectiveId, rank: u32, n_ranks: u32, group: HandleOut, error: ErrorOut
    ) -> Status;
    fn split(
        device: Handle, group: Handle, color: u32, order: i32, new_group: HandleOut, error: ErrorOut
    ) -> Status;
    fn status_of(device: Handle, group: Handle, error: ErrorOut) -> Status;
    fn place(
        device: Handle, group: Handle, rank: *mut u32, n_ranks: *mut u32, error: ErrorOut
    ) -> Status;
    fn run(
        device: Handle, group: Handle, stream: Handle, commands: *const CollectiveCommand, n_commands: u32,
        error: ErrorOut
    ) -> Status;
    fn abort(device: Handle, group: Handle);
    fn close(device: Handle, group: Handle);
}

/// Returns the interface of a slot, which replaces the backend's own.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: CollectiveInterface| CollectiveInterface {
        size: size_of::<CollectiveInterface>() as u32,
        make_id: real.make_id.map(|_| of_slot::make_id::<S> as _),
        open: real.open.map(|_| of_slot::open::<S> as _),
        split: real.split.map(|_| of_slot::split::<S> as _),
        status: real.status.map(|_| of_slot::status_of::<S> as _),
        place: real.place.map(|_| of_slot::place::<S> as _),
        run: real.run.map(|_| of_slot::run::<S> as _),
        abort: real.abort.map(|_| of_slot::abort::<S> as _),
        close: real.close.map(|_| of_slot::close::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.collective, found, ours) }
}
