//! Timestamps in the order of a stream: driver events that record the time.
//!
//! The driver reports the time between two events in milliseconds as a float32, which after a few
//! minutes is no longer exact to a microsecond. So times are counted from a moving origin: an event
//! whose time was resolved becomes the origin of later marks. Each mark keeps the origin that was
//! current when it was made. This origin had been reached by then, so no time is negative.

use crate::context::failure::{self, cuda};
use crate::context::{Context, lock};
use crate::streams::Stream;
use crate::sys::driver::{EventHandle, code};
use std::sync::{Arc, Mutex, OnceLock};
use ultramarine_abi::helper::Result;

/// Nanoseconds after which an origin is replaced. For this time, a float32 in milliseconds is exact to 8
/// nanoseconds.
const ORIGIN_LASTS: u64 = 100_000_000;

/// An event that records the time. It is given back for reuse when it is not needed any more.
struct TimedEvent {
    context: Arc<Context>,
    handle: EventHandle,
}

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for TimedEvent {}
// SAFETY: as above.
unsafe impl Sync for TimedEvent {}

impl TimedEvent {
    /// Records an event after the stream's earlier work. The context is current.
    fn record(context: &Arc<Context>, stream: &Stream) -> Result<Self> {
        let driver = context.driver();
        let event = Self { context: context.clone(), handle: context.take_timed_event()? };
        // SAFETY: both are of this context.
        unsafe { cuda!(driver.event_record(event.handle, stream.handle())) }?;
        Ok(event)
    }
}

impl Drop for TimedEvent {
    fn drop(&mut self) {
        self.context.give_timed_event(self.handle);
    }
}

/// An event that was reached, and the clock's time for it.
struct Origin {
    event: Arc<TimedEvent>,
    nanoseconds: u64,
}

/// The clock of a device. All of its streams share it.
pub struct Clock {
    context: Arc<Context>,
    origin: Mutex<Option<Arc<Origin>>>,
}

/// A point of a stream whose time can be queried later.
pub struct Timestamp {
    event: Arc<TimedEvent>,
    origin: Arc<Origin>,
    nanoseconds: OnceLock<u64>,
}

impl Clock {
    /// A clock that starts at the first mark.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, origin: Mutex::default() }
    }

    /// A timestamp after the stream's earlier work. The very first one waits for that work.
    pub fn mark(&self, stream: &Stream) -> Result<Timestamp> {
        let _entered = self.context.enter()?;
        let origin = self.origin(stream)?;
        let event = Arc::new(TimedEvent::record(&self.context, stream)?);
        Ok(Timestamp { event, origin, nanoseconds: OnceLock::new() })
    }

    fn origin(&self, stream: &Stream) -> Result<Arc<Origin>> {
        let mut origin = lock(&self.origin);
        if let Some(known) = &*origin {
            return Ok(known.clone());
        }
        let (event, driver) = (TimedEvent::record(&self.context, stream)?, self.context.driver());
        // SAFETY: an event of this context.
        unsafe { cuda!(driver.event_synchronize(event.handle)) }?;
        let made = Arc::new(Origin { event: Arc::new(event), nanoseconds: 0 });
        Ok(origin.insert(made).clone())
    }

    /// The time of a mark in nanoseconds, if its stream has reached it.
    pub fn resolve(&self, mark: &Timestamp) -> Result<Option<u64>> {
        if let Some(known) = mark.nanoseconds.get() {
            return Ok(Some(*known));
        }
        let _entered = self.context.enter()?;
        let (driver, mut milliseconds) = (self.context.driver(), 0.0f32);
        // SAFETY: an event of this context.
        match unsafe { (driver.event_query)(mark.event.handle) } {
            code::SUCCESS => {}
            code::NOT_READY => return Ok(None),
            other => return failure::check(driver, "event_query", other).map(|()| None),
        }
        let (start, end) = (mark.origin.event.handle, mark.event.handle);
        // SAFETY: the output pointer is valid; both events are of this context, record the time, and
        // were reached.
        unsafe { cuda!(driver.event_elapsed(&mut milliseconds, start, end)) }?;
        let since = (f64::from(milliseconds).max(0.0) * 1e6).round() as u64;
        let time = *mark.nanoseconds.get_or_init(|| mark.origin.nanoseconds + since);
        let mut origin = lock(&self.origin);
        if origin.as_ref().is_some_and(|o| time > o.nanoseconds + ORIGIN_LASTS) {
            *origin = Some(Arc::new(Origin { event: mark.event.clone(), nanoseconds: time }));
        }
        Ok(Some(time))
    }
}
