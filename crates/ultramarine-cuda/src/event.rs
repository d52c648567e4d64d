//! Timeline events: values that only grow. Each value that is recorded has an event of the
//! driver's behind the stream's earlier work.

use crate::context::{self, Context};
use crate::failure::cuda;
use crate::stream::Stream;
use crate::sys::driver::{Driver, EventHandle, StreamHandle, code};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use ultramarine_abi::helper::Result;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

struct Mark {
    value: u64,
    event: EventHandle,
}

#[derive(Default)]
struct Line {
    reached: u64,
    /// Recorded and not known to be done, the oldest first.
    marks: VecDeque<Mark>,
    /// Events that can be used again.
    free: Vec<EventHandle>,
}

/// A timeline event.
pub struct Event {
    driver: &'static Driver,
    context: Arc<Context>,
    line: Mutex<Line>,
    recorded: Condvar,
}

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event with value 0.
    pub fn new(driver: &'static Driver, context: Arc<Context>) -> Self {
        Self { driver, context, line: Mutex::default(), recorded: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes marks that are done off the front. The context is current.
    fn prune(&self, line: &mut Line) {
        while let Some(mark) = line.marks.front() {
            // SAFETY: an event of this context.
            if unsafe { (self.driver.event_query)(mark.event) } != code::SUCCESS {
                break;
            }
            line.reached = line.reached.max(mark.value);
            if let Some(mark) = line.marks.pop_front() {
                line.free.push(mark.event);
            }
        }
    }

    /// The event takes `value` once the stream's earlier work is done.
    pub fn record(&self, stream: &Stream, value: u64) -> Result<()> {
        let _entered = self.context.enter()?;
        let driver = self.driver;
        let mut line = self.lock();
        self.prune(&mut line);
        let mut event = std::ptr::null_mut();
        match line.free.pop() {
            Some(used) => event = used,
            // SAFETY: the place is valid; the context is current.
            None => unsafe { cuda!(driver.event_create(&mut event, DISABLE_TIMING)) }?,
        }
        // SAFETY: both are of this context.
        unsafe { cuda!(driver.event_record(event, stream.handle())) }?;
        line.marks.push_back(Mark { value, event });
        self.recorded.notify_all();
        Ok(())
    }

    /// Later work of the stream waits until the event has reached `value`.
    pub fn wait_stream(&self, stream: StreamHandle, value: u64) -> Result<()> {
        let _entered = self.context.enter()?;
        let driver = self.driver;
        let mut line = self.lock();
        loop {
            self.prune(&mut line);
            if line.reached >= value {
                return Ok(());
            }
            if let Some(mark) = line.marks.iter().find(|m| m.value >= value) {
                // SAFETY: an event of this driver, which stays what it is while the lock is held.
                return unsafe { cuda!(driver.stream_wait_event(stream, mark.event, 0)) };
            }
            // Not yet recorded: the queue cannot wait for what is not there, so the caller does.
            line = self.recorded.wait(line).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Blocks the caller until the event has reached `value`.
    pub fn wait_host(&self, value: u64) -> Result<()> {
        let _entered = self.context.enter()?;
        let driver = self.driver;
        let mut line = self.lock();
        loop {
            self.prune(&mut line);
            if line.reached >= value {
                return Ok(());
            }
            if let Some(mark) = line.marks.iter().find(|m| m.value >= value) {
                let event = mark.event;
                drop(line);
                // SAFETY: an event of this context. One that was taken off the front meanwhile
                // and recorded anew only makes the wait longer.
                unsafe { cuda!(driver.event_synchronize(event)) }?;
                line = self.lock();
                continue;
            }
            line = self.recorded.wait(line).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// The event's present value.
    pub fn query(&self) -> u64 {
        let Ok(_entered) = self.context.enter() else { return 0 };
        let mut line = self.lock();
        self.prune(&mut line);
        line.reached
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        let Ok(_entered) = self.context.enter() else { return };
        let line = self.line.get_mut().unwrap_or_else(|e| e.into_inner());
        let events = line.marks.drain(..).map(|mark| mark.event).chain(line.free.drain(..));
        for event in events {
            // SAFETY: made once, destroyed once; nobody waits for it.
            unsafe { (self.driver.event_destroy)(event) };
        }
    }
}
