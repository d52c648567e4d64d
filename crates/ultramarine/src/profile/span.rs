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

fn add(to: &mut [u64; 3], given: [u64; 3]) {
    to.iter_mut().zip(given).for_each(|(to, n)| *to += n);
}

/// An operation that is being recorded. Dropped without [`Span::end`], it leaves no event: it failed, or went another way.
pub(crate) struct Span<'a> {
    recorder: Recorder,
    exec: &'a Exec,
    description: Option<Description>,
    depth: u32,
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
        let depth = INSIDE.with_borrow_mut(|inside| {
            inside.push(Inside::default());
            inside.len() as u32 - 1
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
        Span { recorder, exec, description, depth, given, offset, start, marks, _range: range }
    }

    /// The operation ran.
    pub fn end(mut self) {
        let end = now();
        let Some(description) = self.description.take() else { return };
        let mut given = self.exec.given();
        given.iter_mut().zip(self.given).for_each(|(now, before)| *now -= before);
        let took = INSIDE.with_borrow(|inside| {
            inside.last().and_then(|innermost| {
                add(&mut given, innermost.parts);
                innermost.took
            })
        });
        INSIDE.with_borrow_mut(|inside| {
            // The last is popped by the drop.
            if let [.., outer, _] = &mut inside[..] {
                add(&mut outer.parts, given);
            }
        });
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
