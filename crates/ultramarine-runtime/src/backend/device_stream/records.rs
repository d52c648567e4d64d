//! Records: a record makes a stream's timeline event take a number.
//!
//! A record is a driver call that takes about half as long as a launch, and it separates two
//! kernels on the device. Therefore the commands of an evaluation do not get records of their own.
//! The event takes the last number of an evaluation in these cases:
//! - The next evaluation begins on the stream, or other work is submitted, while there is a result
//!   that it does not overwrite. A thread that waits for such a result thus never waits for later
//!   evaluations, or for other libraries.
//! - Something waits for one of the numbers: the host, another stream, or memory that is to be
//!   freed.
//! - [`MOST_UNRECORDED`] numbers have passed, so that the host can be held back without waiting for
//!   all that it submitted.
//!
//! **Nothing waits for a number that no record covers.** Every wait begins with
//! [`DeviceStream::ask`], which returns when `recorded` covers the number. This is always possible,
//! because a number becomes known only after its submission, and the record then comes after all
//! submitted work, under the stream's lock. `ask` takes only that lock and waits for nothing else.
//! It is called without any stream's lock, so threads of two streams that ask each other cannot
//! deadlock. [`look`] may be called with a lock held, because it only tries to take the lock.
//!
//! [`look`]: DeviceStream::look

use super::{DeviceStream, Order};
use crate::backend::shutdown;
use crate::error::Result;
use crate::host_table;
use crate::sync::{lock, raise};
use std::sync::atomic::Ordering;

/// Limit on the numbers of a stream after its last record.
const MOST_UNRECORDED: u64 = 64;

/// When a submission's number is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// With the submission, because other work or another library is about to wait for exactly this
    /// number.
    AtOnce,
    /// Before the first wait, for a submission that is the first of an evaluation.
    Begins,
    /// Before the first wait.
    WhenAsked,
}

impl DeviceStream {
    /// Ensures that the event reaches `number`, which belongs to a submission. Every wait for a
    /// number begins here. Call it without locks of streams.
    ///
    /// # Errors
    /// Those of the backend, if the record fails. The number is then lost.
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

    /// Records the last number, if a record is due after a submission.
    pub(super) fn record_if_due(&self, records: Records, order: &mut Order) -> Result<()> {
        let unrecorded = self.last() - self.recorded.load(Ordering::Acquire);
        match records == Records::AtOnce || unrecorded >= MOST_UNRECORDED {
            true => self.record(order),
            false => Ok(()),
        }
    }

    /// Queries the progress of the device, for something that waits for `number`.
    pub fn look(&self, number: u64) {
        let (Some(query), false) = (self.device.table.event_query, self.event.is_null()) else {
            return;
        };
        if !self.covers(number)
            && let Ok(mut order) = self.order.try_lock()
            && shutdown::check_wait(self.device).is_ok()
        {
            // Ignore failures: they are raised where the values are needed.
            let _ = self.record(&mut order);
        }
        // SAFETY: the event belongs to the device, and any thread may query it.
        let value = unsafe { query(self.device.handle, self.event) };
        raise(&self.completed, value.min(self.last()));
    }
}
