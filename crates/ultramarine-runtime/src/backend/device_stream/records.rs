//! Records: when a stream's timeline event is told to take a number.
//!
//! A record is a call of the driver that takes about half as long as a launch, and it stands between two kernels on the
//! device. So an evaluation's commands get none of their own. The event takes the last number of an evaluation
//! - when the next evaluation begins on the stream, or other work comes, if a result is there that it does not write over:
//!   a thread that waits for such a result never waits for later evaluations, nor for other libraries;
//! - when something waits for one of its numbers: the host, another stream, memory that is to be freed;
//! - every [`MOST_UNRECORDED`] numbers, so that the host can be held back without waiting for all that it submitted.
//!
//! **Nothing waits for a number that no record covers.** All ways to a wait begin with [`DeviceStream::ask`], which
//! returns when `recorded` covers the number. It can: a number is known once it is submitted, and the record then goes
//! behind all work that was submitted, under the stream's lock. `ask` takes that one lock and waits for nothing else, and
//! is called with no stream's lock held, so threads of two streams that ask each other never wait in a circle. [`look`]
//! may be called with a lock held, and tries only.
//!
//! [`look`]: DeviceStream::look

use super::{DeviceStream, Order};
use crate::backend::shutdown;
use crate::error::Result;
use crate::host_table;
use crate::sync::{lock, raise};
use std::sync::atomic::Ordering;

/// Numbers of a stream behind its last record at most.
const MOST_UNRECORDED: u64 = 64;

/// The time at which a submission's number is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// With the submission: other work, or another library, is about to wait for just this.
    AtOnce,
    /// Before the first wait, for a submission that is the first of an evaluation.
    Begins,
    /// Before the first wait.
    WhenAsked,
}

impl DeviceStream {
    /// Sees to it that the event reaches `number`, which was given to a submission. Every wait for a number begins here.
    /// Call it without locks of streams.
    ///
    /// # Errors
    /// The backend's own, if the record fails; the number is lost then.
    pub fn ask(&self, number: u64) -> Result<()> {
        if self.event.is_null() || self.covers(number) {
            return Ok(());
        }
        let mut order = lock(&self.order);
        shutdown::check_wait(self.device)?;
        self.record(&mut order)
    }

    fn covers(&self, number: u64) -> bool {
        self.recorded.load(Ordering::Acquire) >= number
    }

    /// Records the last number, unless it is.
    pub(super) fn record(&self, order: &mut Order) -> Result<()> {
        let number = self.last();
        let (Some(record), false) = (self.device.table.event_record, self.event.is_null()) else {
            return Ok(());
        };
        if self.covers(number) {
            return Ok(());
        }
        let mut error = std::ptr::null_mut();
        // SAFETY: stream and event are the device's, and this thread holds the stream's lock.
        let code =
            unsafe { record(self.device.handle, self.handle, self.event, number, &mut error) };
        host_table::check("event_record", code, error).inspect_err(|e| self.fail(number, e))?;
        order.open = 0;
        self.recorded.store(number, Ordering::Release);
        Ok(())
    }

    /// Records the last number if that is due after a submission.
    pub(super) fn record_if_due(&self, records: Records, order: &mut Order) -> Result<()> {
        let unrecorded = self.last() - self.recorded.load(Ordering::Acquire);
        match records == Records::AtOnce || unrecorded >= MOST_UNRECORDED {
            true => self.record(order),
            false => Ok(()),
        }
    }

    /// Asks the device how far it is, for what waits for `number`.
    pub fn look(&self, number: u64) {
        let (Some(query), false) = (self.device.table.event_query, self.event.is_null()) else {
            return;
        };
        if !self.covers(number)
            && let Ok(mut order) = self.order.try_lock()
            && shutdown::check_wait(self.device).is_ok()
        {
            // A failure is raised to those who want the values.
            let _ = self.record(&mut order);
        }
        // SAFETY: the event is the device's; any thread may ask.
        let value = unsafe { query(self.device.handle, self.event) };
        raise(&self.completed, value.min(self.last()));
    }
}
