//! Timeline events: values that only grow. Each recorded value has a driver event, enqueued after
//! the stream's earlier work.
//!
//! A stream can be told to wait for a value that has not been recorded yet. The host first waits
//! briefly, because another thread is usually about to record it. After that, the stream waits for
//! a word in pinned memory (a wait value), which the recording stream writes.

use crate::context::failure::{self, cuda};
use crate::context::submission_log::SubmissionLog;
use crate::context::wait_values::WaitValue;
use crate::context::{self, Context, lock};
use crate::streams::Stream;
use crate::sys::driver::{EventHandle, code};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use ultramarine_abi::helper::{Failure, Result};

/// Time that the host waits for a value to be recorded, before the stream waits for it instead.
const GRACE: Duration = Duration::from_millis(2);

/// Number of marks of a timeline above which a record looks for completed marks.
const MANY: usize = 64;

/// An event of the driver, which is given back when its last waiter is done.
struct Signal {
    context: Arc<Context>,
    event: EventHandle,
}

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for Signal {}
// SAFETY: as above.
unsafe impl Sync for Signal {}

impl Drop for Signal {
    fn drop(&mut self) {
        self.context.give_event(self.event);
    }
}

struct Mark {
    value: u64,
    signal: Arc<Signal>,
    /// The stream, and the number of operations it had been given.
    log: Arc<SubmissionLog>,
    count: u64,
}

#[derive(Default)]
struct Line {
    /// Values that were recorded and are not known to be reached, the oldest first.
    marks: VecDeque<Mark>,
    /// Streams that wait for values that have not been recorded yet.
    waiting: Vec<(u64, WaitValue)>,
}

/// A timeline event: a value that only grows, recorded by streams. The host and other streams wait
/// for it. The module's documentation describes waits for values that are not recorded yet.
pub struct Event {
    context: Arc<Context>,
    reached: AtomicU64,
    /// The number of marks; 0 while nothing is pending.
    pending: AtomicU64,
    line: Mutex<Line>,
    recorded: Condvar,
}

impl Event {
    /// An event with value 0.
    pub fn new(context: Arc<Context>) -> Self {
        let (reached, pending) = Default::default();
        Self { context, reached, pending, line: Mutex::default(), recorded: Condvar::new() }
    }

    /// Removes completed marks from the front. The context is current.
    fn prune(&self, line: &mut Line) -> Result<()> {
        let driver = self.context.driver();
        let mut outcome = Ok(());
        while let Some(mark) = line.marks.front() {
            // SAFETY: an event of this context.
            match unsafe { (driver.event_query)(mark.signal.event) } {
                code::SUCCESS => {}
                code::NOT_READY => break,
                other => {
                    outcome = failure::check(driver, "event_query", other);
                    break;
                }
            }
            mark.log.finished(mark.count);
            self.reached.fetch_max(mark.value, Ordering::AcqRel);
            line.marks.pop_front();
        }
        self.pending.store(line.marks.len() as u64, Ordering::Release);
        outcome
    }

    fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Sets the event to `value` once the stream's earlier work has completed.
    pub fn record(&self, stream: &Stream, value: u64) -> Result<()> {
        let _entered = self.context.enter()?;
        let driver = self.context.driver();
        let mut line = lock(&self.line);
        if line.marks.len() >= MANY {
            self.prune(&mut line)?;
        }
        let signal = Signal { context: self.context.clone(), event: self.context.take_event()? };
        let (log, count) = (stream.log().clone(), stream.log().count());
        // SAFETY: both are of this context.
        unsafe { cuda!(driver.event_record(signal.event, stream.handle())) }?;
        line.marks.push_back(Mark { value, signal: Arc::new(signal), log, count });
        self.pending.store(line.marks.len() as u64, Ordering::Release);
        let mut outcome = Ok(());
        line.waiting.retain(|(wanted, wait_value)| {
            let open = *wanted <= value;
            if open && outcome.is_ok() {
                // SAFETY: a word of pinned memory that lives as long as the context.
                outcome = unsafe {
                    cuda!(driver.stream_write_value(
                        stream.handle(),
                        wait_value.address,
                        wait_value.ticket,
                        0
                    ))
                };
            }
            !open
        });
        drop(line);
        self.recorded.notify_all();
        outcome
    }

    /// Makes later work of the stream wait until the event has reached `value`.
    pub fn wait_stream(&self, stream: &Stream, value: u64) -> Result<()> {
        if self.reached() >= value {
            return context::not_forked();
        }
        let _entered = self.context.enter()?;
        let driver = self.context.driver();
        let mut line = lock(&self.line);
        let wait_for_mark = |line: &Line| {
            let mark = line.marks.iter().find(|m| m.value >= value)?;
            // SAFETY: both are of this driver.
            let waits =
                unsafe { cuda!(driver.stream_wait_event(stream.handle(), mark.signal.event, 0)) };
            Some(waits)
        };
        let until = Instant::now() + GRACE;
        loop {
            self.prune(&mut line)?;
            if self.reached() >= value {
                return Ok(());
            }
            if let Some(waits) = wait_for_mark(&line) {
                return waits;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            line = self.recorded.wait_timeout(line, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        match self.context.wait_values.wait(&self.context, stream.handle()) {
            Ok(Some(wait_value)) => line.waiting.push((value, wait_value)),
            // If streams cannot wait for words, the caller waits for the record.
            Ok(None) => loop {
                line = self.recorded.wait(line).unwrap_or_else(|e| e.into_inner());
                if let Some(waits) = wait_for_mark(&line) {
                    return waits;
                }
                if self.reached() >= value {
                    break;
                }
            },
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Blocks the caller until the event has reached `value`.
    pub fn wait_host(&self, value: u64) -> Result<()> {
        if self.reached() >= value {
            return context::not_forked();
        }
        let _entered = self.context.enter()?;
        let driver = self.context.driver();
        let mut line = lock(&self.line);
        loop {
            self.prune(&mut line)?;
            if self.reached() >= value {
                return Ok(());
            }
            if let Some(mark) = line.marks.iter().find(|m| m.value >= value) {
                let signal = mark.signal.clone();
                drop(line);
                // SAFETY: an event of this context, which is not recorded again while it is held.
                unsafe { cuda!(driver.event_synchronize(signal.event)) }?;
                line = lock(&self.line);
                continue;
            }
            line = self.recorded.wait(line).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// The event's current value. Failures are reported to the waiters, not here.
    pub fn query(&self) -> u64 {
        if self.pending.load(Ordering::Acquire) > 0
            && let Ok(_entered) = self.context.enter()
        {
            let _ = self.prune(&mut lock(&self.line));
        }
        self.reached()
    }

    /// Passes the driver event of the mark that reaches `value` to `wait`, so that other libraries'
    /// streams can wait for it. While `wait` runs, the event cannot be reused for another mark.
    /// `wait` is not called if the value is already reached.
    pub fn with_mark(
        &self,
        value: u64,
        wait: impl FnOnce(EventHandle) -> Result<()>,
    ) -> Result<()> {
        let _entered = self.context.enter()?;
        let mut line = lock(&self.line);
        self.prune(&mut line)?;
        if self.reached() >= value {
            return Ok(());
        }
        match line.marks.iter().find(|m| m.value >= value) {
            Some(mark) => wait(mark.signal.event),
            None => Err(Failure::invalid(format!("the event's value {value} was never recorded"))),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let line = self.line.get_mut().unwrap_or_else(|e| e.into_inner());
        if context::forked() {
            // The driver's events belong to the parent process.
            std::mem::take(&mut line.marks).into_iter().for_each(std::mem::forget);
        }
        // Streams that still wait are released, because nothing will record their values.
        for (_, wait_value) in line.waiting.drain(..) {
            // SAFETY: a word of pinned memory that lives as long as the context; the device reads
            // it atomically.
            unsafe { wait_value.word.write_volatile(wait_value.ticket) };
        }
    }
}
