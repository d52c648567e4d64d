//! One operation while it runs: the marks around it, and what its parts did.

use super::session::{Recorder, now, offset, record};
use super::{Clock, Description, Dispatch, Event};
use crate::backend::{Exec, Marks, Range};
use std::cell::RefCell;
use std::ffi::CString;

/// An operation that the thread is inside of.
#[derive(Clone, Copy, Default)]
struct Inside {
    /// How it ran, if not by the backend's own kernels.
    took: Option<Dispatch>,
    /// By recorded commands.
    replayed: bool,
    /// Commands and bytes of its parts.
    parts: [u64; 3],
}

thread_local! {
    /// Operations that the thread is inside of, the outermost first.
    static INSIDE: RefCell<Vec<Inside>> = const { RefCell::new(Vec::new()) };
}

/// Says that the operation which the thread is inside of did not run by the backend's own kernels, and what was given
/// to another backend for it.
pub(crate) fn took(dispatch: Dispatch, given: [u64; 3]) {
    INSIDE.with_borrow_mut(|inside| {
        if let Some(innermost) = inside.last_mut() {
            innermost.took = Some(dispatch);
            add(&mut innermost.parts, given);
        }
    });
}

/// Says that the operation which the thread is inside of is a call of a compiled function, and whether it runs by its
/// recorded commands.
pub(crate) fn compiled(replayed: bool) {
    INSIDE.with_borrow_mut(|inside| {
        if let Some(innermost) = inside.last_mut() {
            (innermost.took, innermost.replayed) = (Some(Dispatch::Compiled), replayed);
        }
    });
}

fn add(to: &mut [u64; 3], given: [u64; 3]) {
    to.iter_mut().zip(given).for_each(|(to, n)| *to += n);
}

/// An operation that is being recorded. Dropped without [`Span::end`], it leaves no event: it failed, or went another way.
pub(crate) struct Span<'a> {
    recorder: Recorder,
    exec: &'a Exec,
    description: Option<Description>,
    depth: u32,
    part: bool,
    given: [u64; 3],
    /// From the device's clock to the host's, where the device has one.
    offset: Option<i64>,
    start: i64,
    /// Around the commands, where the device has a clock.
    marks: Option<Marks>,
    /// Closed by the drop.
    _range: Option<Range<'a>>,
}

impl<'a> Span<'a> {
    pub fn begin(recorder: Recorder, exec: &'a Exec, description: Description) -> Span<'a> {
        let (depth, part) = INSIDE.with_borrow_mut(|inside| {
            let part = inside.iter().any(|i| i.took != Some(Dispatch::Compiled));
            let replayed = description.replayed;
            inside.push(Inside { replayed, ..Inside::default() });
            (inside.len() as u32 - 1, part)
        });
        let offset = offset(recorder, exec.device);
        let name = || match description.fused.is_empty() {
            true => description.op.to_owned(),
            false => description.fused.join("+"),
        };
        let range = match exec.has_ranges() {
            true => CString::new(name()).ok().and_then(|name| exec.range(&name)),
            false => None,
        };
        let start = now();
        let marks = offset.map(|_| exec.marks());
        let (given, description) = (exec.given(), Some(description));
        Span {
            recorder,
            exec,
            description,
            depth,
            part,
            given,
            offset,
            start,
            marks,
            _range: range,
        }
    }

    /// The operation ran.
    pub fn end(self) {
        let end = now();
        let mut given = self.exec.given();
        given.iter_mut().zip(self.given).for_each(|(now, before)| *now -= before);
        INSIDE.with_borrow_mut(|inside| match &mut inside[..] {
            [.., outer, own] => {
                add(&mut given, own.parts);
                add(&mut outer.parts, given);
            }
            [own] => add(&mut given, own.parts),
            [] => {}
        });
        self.record(given, end);
    }

    /// The operation ran by recorded commands, which count with the call that they are of: their number, and the bytes that
    /// they read and wrote.
    pub fn end_replayed(self, given: [u64; 3]) {
        let end = now();
        self.record(given, end);
    }

    fn record(mut self, given: [u64; 3], end: i64) {
        let Some(description) = self.description.take() else { return };
        let Inside { took, replayed, .. } =
            INSIDE.with_borrow(|inside| inside.last().copied().unwrap_or_default());
        let dispatch = match took {
            Some(dispatch) => dispatch,
            None if given[0] == 0 => Dispatch::View,
            None if description.decomposed => Dispatch::Decomposed,
            None => Dispatch::Native,
        };
        let device = self.exec.device;
        let marks = self.marks.as_ref().and_then(Marks::taken).zip(self.offset);
        // The host itself does all of a fallback, and of what gives no command; marks would be around transfers.
        let by_host = dispatch == Dispatch::Fallback || (given[0] == 0 && marks.is_none());
        let clock = match by_host || device.is_synchronous() {
            true => Clock::Host,
            false => Clock::Submission,
        };
        let [commands, bytes_read, bytes_written] = given;
        let event = Event {
            op: description.op,
            fused: description.fused,
            inputs: description.inputs.into_vec(),
            outputs: description.outputs.into_vec(),
            device: device.device,
            backend: &device.backend,
            stream: description.stream.index,
            dispatch,
            depth: self.depth,
            part: self.part,
            replayed,
            commands,
            bytes_read,
            bytes_written,
            start: 0,
            duration: 0,
            clock,
            host_start: 0,
            host_duration: 0,
            thread: 0,
        };
        record(self.recorder, event, [self.start, end], marks.filter(|_| !by_host));
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().pop());
    }
}
