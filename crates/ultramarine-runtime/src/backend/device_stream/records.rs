//! Records: when a number is recorded on a stream's timeline event.
//!
//! A record is a call of the driver that takes about half as long as a launch, and on the device it
//! stands between two kernels. So the commands of an evaluation get no records of their own. The
//! last number of an evaluation is recorded
//!
//! - when the next evaluation or other work begins on the stream, if there is a result that the new
//!   work does not overwrite. So a thread that waits for such a result never waits for later
//!   evaluations or for other libraries.
//! - when something waits for one of the evaluation's numbers: the host, another stream, or memory
//!   that is to be freed;
//! - every [`MOST_UNRECORDED`] numbers, so that the host can be held back without waiting for
//!   everything that it submitted.
//!
//! **Nothing waits for a number that no record covers.** Every wait begins with
//! [`DeviceStream::ask`], which returns when `recorded` covers the number. It always can: a number
//! is known only once it is submitted, and the record is then enqueued after all submitted work,
//! under the stream's lock. `ask` takes that one lock and waits for nothing else. It is called with
//! no stream's lock held, so threads of two streams that ask each other cannot deadlock. [`look`]
//! may be called with a lock held, because it only tries to take the lock.
//!
//! [`look`]: DeviceStream::look

use super::{DeviceStream, Order};
use crate::backend::shutdown;
use crate::error::Result;
use crate::host_table;
use crate::sync::{lock, raise};
use std::sync::atomic::Ordering;

/// The most numbers of a stream after its last record.
const MOST_UNRECORDED: u64 = 64;

/// When a submission's number is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// With the submission, because other work or another library is about to wait for this
    /// submission.
    AtOnce,
    /// Before the first wait. The submission is the first of an evaluation.
    Begins,
    /// Before the first wait. The submission continues an evaluation.
    WhenAsked,
}

impl DeviceStream {
    /// Makes sure that the event will reach `number`, which is the number of a submission. Every
    /// wait for a number begins with this call. The caller must not hold a stream's lock.
    ///
    /// # Errors
    /// Those of the backend, if recording fails; the number is then lost.
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

    /// Records the last number, unless it is recorded already.
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

    /// Records the last number after a submission, if `records` or the distance to the last record
    /// requires it.
    pub(super) fn record_if_due(&self, records: Records, order: &mut Order) -> Result<()> {
        let unrecorded = self.last() - self.recorded.load(Ordering::Acquire);
        match records == Records::AtOnce || unrecorded >= MOST_UNRECORDED {
            true => self.record(order),
            false => Ok(()),
        }
    }

    /// Reads the device's progress, because something waits for `number`.
    pub fn look(&self, number: u64) {
        let (Some(query), false) = (self.device.table.event_query, self.event.is_null()) else {
            return;
        };
        if !self.covers(number)
            && let Ok(mut order) = self.order.try_lock()
            && shutdown::check_wait(self.device).is_ok()
        {
            // Ignore the error: it is raised where a value is needed.
            let _ = self.record(&mut order);
        }
        // SAFETY: the event is the device's; any thread may query it.
        let value = unsafe { query(self.device.handle, self.event) };
        raise(&self.completed, value.min(self.last()));
    }
}
