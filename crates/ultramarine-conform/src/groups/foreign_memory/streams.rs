//! Order between streams of the backend and foreign streams.

use super::Foreign;
use crate::device::Handle;
use crate::plugin::{Failure, call};
use crate::record::{PASSED, Result, skip};
use std::time::Duration;

/// Two streams and the events that hold the first up and mark the second's work.
struct Crossing<'a> {
    foreign: &'a Foreign<'a>,
    first: Handle,
    second: Handle,
    gate: Handle,
    done: Handle,
}

impl<'a> Crossing<'a> {
    fn new(foreign: &'a Foreign<'a>) -> Result<Self, Failure> {
        let d = foreign.device;
        let (first, second) = (d.stream()?, d.stream()?);
        Ok(Crossing { foreign, first, second, gate: d.event()?, done: d.event()? })
    }

    fn native(&self, stream: Handle) -> u64 {
        match self.foreign.table.native_stream {
            // SAFETY: a live stream of the device.
            Some(ask) => unsafe { ask(self.foreign.device.handle, stream.0) },
            None => 0,
        }
    }

    /// Checks that the second stream's work does not run until the first stream's gate opens.
    fn expect_order(&self) -> Result<()> {
        let d = self.foreign.device;
        d.record(self.second, self.done, 1)?;
        std::thread::sleep(Duration::from_millis(50));
        let early = d.query(self.done)?;
        let third = d.stream()?;
        d.record(third, self.gate, 1)?;
        d.wait_host(self.done, 1)?;
        for stream in [self.first, self.second, third] {
            d.synchronize(stream)?;
            d.destroy_stream(stream);
        }
        d.destroy_event(self.gate);
        d.destroy_event(self.done);
        if early == 0 { Ok(()) } else { Err("the second stream did not wait".into()) }
    }
}

/// The streams of a device that runs ahead and shares them, or the end of the check.
macro_rules! crossing {
    ($foreign:expr, $function:ident) => {{
        let Some(function) = $foreign.table.$function else {
            return skip("foreign streams are not supported");
        };
        if $foreign.device.info.synchronous != 0 || $foreign.device.overlay {
            return skip("work is done on return");
        }
        let crossing = Crossing::new($foreign)?;
        if crossing.native(crossing.first) == 0
            || crossing.native(crossing.first) == crossing.native(crossing.second)
        {
            return Err("two streams have no native streams of their own".into());
        }
        (function, crossing)
    }};
}

/// A stream of the backend stands for a foreign one: the second stream waits for its work.
pub(super) fn waits(foreign: &Foreign<'_>) -> Result {
    let (wait, c) = crossing!(foreign, wait_foreign);
    let device = foreign.device;
    device.wait_stream(c.first, c.gate, 1)?;
    let theirs = c.native(c.first);
    // SAFETY: live streams.
    call("wait_foreign", |e| unsafe { wait(device.handle, c.second.0, theirs, e) })?;
    c.expect_order().map(|()| PASSED)?
}

/// The reverse: the foreign stream waits for a point in the work of the first stream.
pub(super) fn signals(foreign: &Foreign<'_>) -> Result {
    let (signal, c) = crossing!(foreign, signal_foreign);
    let device = foreign.device;
    let mark = device.event()?;
    device.wait_stream(c.first, c.gate, 1)?;
    device.record(c.first, mark, 5)?;
    let theirs = c.native(c.second);
    // SAFETY: a live stream, and an event whose value was recorded.
    call("signal_foreign", |e| unsafe { signal(device.handle, theirs, mark.0, 5, e) })?;
    let outcome = c.expect_order();
    device.destroy_event(mark);
    outcome.map(|()| PASSED)?
}

/// A retained stream can still be waited for after its owner has destroyed it.
pub(super) fn retained(foreign: &Foreign<'_>) -> Result {
    let (Some(wait), Some(release)) = (foreign.table.wait_foreign, foreign.table.release_foreign)
    else {
        return skip("foreign streams cannot be retained");
    };
    let (retain, c) = crossing!(foreign, retain_foreign);
    let device = foreign.device;
    let theirs = c.native(c.first);
    // SAFETY: a live stream.
    call("retain_foreign", |e| unsafe { retain(device.handle, theirs, e) })?;
    device.destroy_stream(c.first);
    // SAFETY: a live stream, and one that is retained.
    let waited = call("wait_foreign", |e| unsafe { wait(device.handle, c.second.0, theirs, e) });
    // SAFETY: retained once.
    unsafe { release(device.handle, theirs) };
    waited?;
    device.synchronize(c.second)?;
    device.destroy_stream(c.second);
    device.destroy_event(c.gate);
    device.destroy_event(c.done);
    PASSED
}
