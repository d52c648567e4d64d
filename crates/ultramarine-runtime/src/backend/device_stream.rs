//! Streams of devices. Most of them run ahead of the host.
//!
//! Each submission to a stream gets a number, higher than those before. Once the device has
//! completed the submission, the stream's timeline event takes this number or a higher one. Numbers
//! are recorded when something may wait for them (`records.rs`). Memory remembers its last uses as
//! stream and number, so that
//!
//! - work on another stream waits for the work that wrote its operands, and an output that takes
//!   over memory waits for the work that still reads the memory;
//! - the host waits for the number of the value that it wants to read;
//! - buffers freed while in use are queued until the device completes their last use.
//!
//! For a device without events, the host waits after each task instead. A device whose `submit`
//! returns only when the work is done needs none of this.

mod records;

pub use records::Records;

use super::{DeviceState, pending_free::PendingFree, shutdown};
use crate::backend::buffer::{Buffer, Use};
use crate::error::{Error, Result};
use crate::host_table;
use crate::sync::{lock, raise};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use ultramarine_abi::device_flag;

/// The most submissions that a stream may be ahead of its device.
const MAX_AHEAD: u64 = 256;

/// Submitters wait if more bytes than this are queued to be freed on a device.
const MAX_PENDING_BYTES: usize = 512 << 20;

/// Index of the stream for uploads. No stream of a program has this index.
const UPLOADS: u32 = u32::MAX;
/// Index of the stream of [`DeviceState::returns`].
const RETURNS: u32 = u32::MAX - 1;
/// Index of the stream of [`DeviceState::beside`].
const BESIDE: u32 = u32::MAX - 2;

/// One of the host's streams on one device, which runs ahead of the host. The module's
/// documentation describes how submissions are numbered.
pub struct DeviceStream {
    pub device: &'static DeviceState,
    handle: *mut c_void,
    /// The timeline event; NULL if the backend has none.
    event: *mut c_void,
    /// Serialises calls of the backend's functions that allow only one call at a time.
    order: Mutex<Order>,
    /// The number of the last submission.
    submitted: AtomicU64,
    /// The last number that was recorded on the event: the event reaches every number up to it.
    recorded: AtomicU64,
    /// The device has completed all numbers up to this one.
    pub(super) completed: AtomicU64,
    /// The host has waited for all numbers up to this one, and none had failed.
    confirmed: AtomicU64,
    /// Dependencies of this stream's numbers on work of other streams, as far as they are not
    /// confirmed yet.
    needs: Mutex<Vec<Need>>,
    failures: Mutex<Vec<Failure>>,
    has_failed: AtomicBool,
    /// The last number at which memory was freed in the stream's order. A task that takes memory
    /// for this stream makes all other work wait for this number.
    pub(super) freed: AtomicU64,
    /// Frees that wait until the device has completed a number.
    pub(super) pending_frees: Mutex<VecDeque<(u64, PendingFree)>>,
}

/// State of a stream that needs its lock. Only the thread that calls the backend for the stream
/// reads it.
#[derive(Default)]
struct Order {
    /// For each other stream, the number for which later work of this stream already waits.
    followed: HashMap<*const DeviceStream, u64>,
    /// Number of results that were submitted after the last record and have not been overwritten
    /// since.
    open: usize,
}

struct Need {
    number: u64,
    stream: &'static DeviceStream,
    until: u64,
}

/// The numbers from `first` to `last` are lost.
struct Failure {
    first: u64,
    last: u64,
    error: Error,
}

// SAFETY: several threads use the handles only through functions for which the contract allows it,
// or while they hold `order`.
unsafe impl Send for DeviceStream {}
// SAFETY: as above.
unsafe impl Sync for DeviceStream {}

impl DeviceStream {
    pub(super) fn new(device: &'static DeviceState) -> Result<DeviceStream> {
        let (mut handle, mut event) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut error = std::ptr::null_mut();
        let table = &device.table;
        if let Some(create) = table.stream_create {
            // SAFETY: the pointers are valid for writing; the device is open.
            let code = unsafe { create(device.handle, &mut handle, &mut error) };
            host_table::check("stream_create", code, error)?;
        }
        let complete = table.event_record.is_some() && table.event_wait_host.is_some();
        if let (0, true, Some(create)) = (device.info.synchronous, complete, table.event_create) {
            // SAFETY: as above.
            let code = unsafe { create(device.handle, &mut event, &mut error) };
            host_table::check("event_create", code, error)?;
        }
        Ok(DeviceStream {
            device,
            handle,
            event,
            order: Mutex::default(),
            submitted: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            needs: Mutex::default(),
            failures: Mutex::default(),
            has_failed: AtomicBool::new(false),
            freed: AtomicU64::new(0),
            pending_frees: Mutex::default(),
        })
    }

    /// Returns true if the stream's work may continue after a submit has returned.
    #[inline]
    pub fn runs_ahead(&self) -> bool {
        self.device.info.synchronous == 0
    }

    pub(super) fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Returns the lock for functions that may be called only once at a time for the stream.
    pub(super) fn serial(&self) -> &Mutex<impl Sized + use<>> {
        &self.order
    }

    #[inline]
    pub fn event(&self) -> *mut c_void {
        self.event
    }

    /// Returns the last work of this stream that may still use memory which was freed in the
    /// stream's order, unless the work is known to be completed. Other streams have to wait for it
    /// before they use such memory.
    #[inline]
    pub fn owes(&'static self) -> Option<Use> {
        let number = self.freed.load(Ordering::Acquire);
        let use_ = Use { stream: self, number, op: "eval" };
        (self.device.has_stream_memory() && !self.knows_completed(number)).then_some(use_)
    }

    /// The number of the last submission.
    #[inline]
    pub fn last(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Submits work. `call` gets the backend's stream. `reads` and `writes` are the buffers that
    /// the work touches.
    pub fn submit<'a>(
        &'static self,
        op: &'static str,
        reads: impl Iterator<Item = &'a Buffer> + Clone,
        writes: impl Iterator<Item = &'a Buffer> + Clone,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let named = move |buffer| (buffer, op);
        self.submit_list((1, Records::AtOnce), reads.map(named), writes.map(named), call)
    }

    /// Declares that the stream's work so far may write to a buffer. The work's number is recorded
    /// when something waits for it.
    pub fn mark_written(&'static self, op: &'static str, buffer: &Buffer) -> Result<()> {
        let writes = iter::once((buffer, op));
        self.submit_list((1, Records::WhenAsked), iter::empty(), writes, |_| Ok(()))
    }

    /// Like [`DeviceStream::submit`], for a list of `commands` commands, whose number is recorded
    /// as `records` says. Each buffer comes with the graph operation that uses it.
    ///
    /// A list takes as many numbers as it has commands, and is identified by the last one. So
    /// limits in numbers (how far the host is ahead, the distance between records) are limits in
    /// commands.
    pub(super) fn submit_list<'a>(
        &'static self,
        (commands, records): (u64, Records),
        reads: impl Iterator<Item = (&'a Buffer, &'static str)> + Clone,
        writes: impl Iterator<Item = (&'a Buffer, &'static str)> + Clone,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let in_commands = self.device.waits_in_commands();
        let recorded = self.recorded.load(Ordering::Acquire);
        // Uses on other streams, and if commands carry the wait for them. Meanwhile the buffers
        // that this work touches get no other uses.
        let mut others: SmallVec<[(Use, bool); 2]> = SmallVec::new();
        let is_other =
            |u: &Use| !std::ptr::eq(u.stream, self) && !u.stream.knows_confirmed(u.number);
        for (buffer, _) in reads.clone() {
            others.extend(buffer.written().filter(is_other).map(|u| (u, in_commands)));
        }
        let (mut written, mut overwritten) = (0, 0);
        for (buffer, _) in writes.clone() {
            written += 1;
            buffer.each_use(|u, writes| {
                if is_other(u) {
                    others.push((*u, false));
                }
                let own = writes && std::ptr::eq(u.stream, self);
                overwritten += usize::from(own && u.number > recorded);
            });
        }
        // Do this before locking this stream, because each call takes the other stream's lock.
        others.iter().try_for_each(|(u, _)| u.stream.ask(u.number).map_err(|e| u.explain(e)))?;
        let mut order = lock(&self.order);
        // Check this with the lock held, because at the exit of the process the lock is what waits
        // for the call.
        shutdown::check(self.device)?;
        for (other, in_commands) in &others {
            self.follow(&mut order, other, *in_commands)?;
        }
        if records != Records::WhenAsked && order.open > overwritten {
            self.record(&mut order)?;
        }
        let outcome = call(self.handle);
        if !self.runs_ahead() {
            return outcome;
        }
        // Also count a submission that failed, because part of its work may have begun.
        let number = self.last() + commands;
        self.submitted.store(number, Ordering::Release);
        order.open = order.open.saturating_sub(overwritten) + written;
        let recorded = self.record_if_due(records, &mut order);
        // Not earlier: a thread that sees the use may at once make other streams wait for its
        // number.
        for (buffer, op) in reads {
            buffer.used(Use { stream: self, number, op }, false);
        }
        for (buffer, op) in writes {
            buffer.used(Use { stream: self, number, op }, true);
        }
        drop(order);
        outcome?;
        recorded?;
        self.free_completed();
        self.hold_back(number);
        Ok(())
    }

    /// Keeps the host from running too far ahead, in submissions or in memory.
    fn hold_back(&self, number: u64) {
        let ahead = number - self.completed.load(Ordering::Relaxed).min(number);
        let pending_bytes = self.device.pending_bytes.load(Ordering::Relaxed);
        let memory = usize::try_from(self.device.info.memory / 8).unwrap_or(usize::MAX);
        let most =
            if memory == 0 { MAX_PENDING_BYTES } else { memory.clamp(1 << 20, MAX_PENDING_BYTES) };
        if ahead > MAX_AHEAD || (pending_bytes > most && ahead > 1) {
            // Ignore the error: it is raised where a value is needed.
            let _ = self.wait(number - ahead / 2);
        }
    }

    /// Makes later work of this stream wait for a use on another stream, whose number is recorded.
    fn follow(&'static self, order: &mut Order, other: &Use, in_commands: bool) -> Result<()> {
        if other.stream.knows_confirmed(other.number) {
            return Ok(());
        }
        other.stream.failure(other.number).map_err(|e| other.explain(e))?;
        let key: *const DeviceStream = other.stream;
        if order.followed.get(&key).is_some_and(|seen| *seen >= other.number) {
            return Ok(());
        }
        let same = std::ptr::eq(self.device, other.stream.device);
        let wait = self.device.table.event_wait_stream;
        let (true, true, false, Some(wait)) =
            (same, self.runs_ahead(), other.stream.event.is_null(), wait)
        else {
            return other.wait();
        };
        let (stream, until) = (other.stream, other.number);
        // Otherwise, every command that reads the buffer carries the event.
        if !in_commands {
            let mut error = std::ptr::null_mut();
            // SAFETY: both are the device's, and this thread holds the stream's lock.
            let code =
                unsafe { wait(self.device.handle, self.handle, stream.event, until, &mut error) };
            host_table::check("event_wait_stream", code, error)?;
            // Set only after success, so that a wait that failed is requested again.
            order.followed.insert(key, until);
        }
        lock(&self.needs).push(Need { number: self.last() + 1, stream, until });
        Ok(())
    }

    pub(super) fn knows_completed(&self, number: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= number
    }

    #[inline]
    pub fn knows_confirmed(&self, number: u64) -> bool {
        self.confirmed.load(Ordering::Acquire) >= number
    }

    /// Returns the error of a number that is known to be lost.
    pub fn failure(&self, number: u64) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        match lock(&self.failures).iter().find(|f| (f.first..=f.last).contains(&number)) {
            Some(failure) => Err(failure.error.clone()),
            None => Ok(()),
        }
    }

    /// Marks all numbers that are not confirmed as lost, because the backend does not say which
    /// submission failed.
    fn fail(&self, number: u64, error: &Error) {
        let first = self.confirmed.load(Ordering::Acquire) + 1;
        let last = self.last().max(number);
        lock(&self.failures).push(Failure { first, last, error: error.clone() });
        self.has_failed.store(true, Ordering::Release);
    }

    /// Marks everything that the device has not completed as lost. Its values are this error, even
    /// if the device continues. Called when another part has aborted the work, which may leave any
    /// content in memory.
    pub fn lose(&self, error: &Error) {
        self.fail(self.last(), error);
    }

    /// Returns true if the device has completed a number. It does not wait.
    pub fn has_completed(&self, number: u64) -> bool {
        if !self.knows_completed(number) {
            self.look(number);
        }
        self.knows_completed(number)
    }

    /// Waits until the device has completed a number.
    pub fn wait(&self, number: u64) -> Result<()> {
        if self.knows_confirmed(number) {
            return Ok(());
        }
        shutdown::check_wait(self.device)?;
        self.failure(number)?;
        let outcome = self.block(number).and_then(|done| {
            // The number may have been lost meanwhile.
            self.failure(number)?;
            // The dependencies on other streams are completed, too, but they may have failed.
            let needs: SmallVec<[_; 4]> = lock(&self.needs)
                .iter()
                .filter(|n| n.number <= number)
                .map(|n| (n.stream, n.until))
                .collect();
            needs.iter().try_for_each(|(stream, until)| stream.wait(*until))?;
            lock(&self.needs).retain(|n| n.number > number);
            Ok(done)
        });
        match outcome {
            Ok(done) => {
                raise(&self.completed, done);
                raise(&self.confirmed, number);
                self.free_completed();
                Ok(())
            }
            Err(error) => {
                if self.failure(number).is_ok() {
                    self.fail(number, &error);
                }
                Err(error)
            }
        }
    }

    /// Blocks until a number is completed. Returns the number up to which submissions are
    /// completed.
    fn block(&self, number: u64) -> Result<u64> {
        self.ask(number)?;
        let (table, device) = (&self.device.table, self.device.handle);
        let mut error = std::ptr::null_mut();
        if let (Some(wait), false) = (table.event_wait_host, self.event.is_null()) {
            // SAFETY: the event belongs to the device, and any thread may wait for it.
            let code = unsafe { wait(device, self.event, number, &mut error) };
            return host_table::check("event_wait_host", code, error).map(|()| number);
        }
        let Some(wait) = table.stream_synchronize else {
            return Err(self.device.lacks("stream_synchronize"));
        };
        let done = self.last();
        // SAFETY: the stream belongs to the device, and any thread may wait for it.
        let code = unsafe { wait(device, self.handle, &mut error) };
        host_table::check("stream_synchronize", code, error).map(|()| done.max(number))
    }

    /// Waits for everything that was submitted. An error that was raised before is not raised
    /// again.
    #[inline]
    pub fn drain(&self) -> Result<()> {
        let last = self.last();
        let outcome = if self.failure(last).is_err() { Ok(()) } else { self.wait(last) };
        self.free_completed();
        outcome
    }

    /// Called after a task. If the device has no events to wait for later, this waits for the task.
    #[inline]
    pub fn settle(&self) -> Result<()> {
        if self.runs_ahead() && self.event.is_null() { self.drain() } else { Ok(()) }
    }
}

impl Use {
    /// Waits until the device has completed this use.
    #[inline]
    pub fn wait(&self) -> Result<()> {
        self.stream.wait(self.number).map_err(|e| self.explain(e))
    }

    /// Adds the op and the device to a backend's error.
    pub fn explain(&self, error: Error) -> Error {
        let DeviceState { backend, device, .. } = self.stream.device;
        let message = format!("[{}] failed on {backend} {device}: {error}", self.op);
        match error {
            Error::Memory(_) => Error::Memory(message.into()),
            _ => Error::Runtime(message.into()),
        }
    }
}

/// The streams of one device, by the host's index.
#[derive(Default)]
pub(super) struct Streams(Mutex<BTreeMap<u32, &'static DeviceStream>>);

impl DeviceState {
    /// Returns the device's side of a stream of the host. It is never freed, because streams are
    /// not.
    #[inline]
    pub fn stream(&'static self, stream: crate::device::Stream) -> Result<&'static DeviceStream> {
        self.stream_at(stream.index)
    }

    /// Returns the stream on which exported memory comes back from its consumers. The consumers'
    /// remaining work delays only tasks that take this memory.
    #[inline]
    pub fn returns(&'static self) -> Result<&'static DeviceStream> {
        self.stream_at(RETURNS)
    }

    /// Returns the stream for copies that the host or another device waits for. It is a separate
    /// stream, so that a copy waits only for the work that wrote what it reads.
    pub(super) fn beside(&'static self) -> Result<&'static DeviceStream> {
        self.stream_at(BESIDE)
    }

    fn stream_at(&'static self, index: u32) -> Result<&'static DeviceStream> {
        shutdown::check(self)?;
        let mut streams = lock(&self.streams.0);
        if let Some(found) = streams.get(&index) {
            return Ok(found);
        }
        let made: &'static DeviceStream = Box::leak(Box::new(DeviceStream::new(self)?));
        streams.insert(index, made);
        Ok(made)
    }

    /// Returns the stream for uploads, if they are enqueued on the device. It is a separate stream,
    /// so that uploads neither wait for other work nor delay it. `None` if the host could not wait
    /// for the stream by number.
    pub(super) fn uploads(&'static self) -> Result<Option<&'static DeviceStream>> {
        if self.info.flags & device_flag::UPLOADS_IN_ORDER == 0 || self.info.synchronous != 0 {
            return Ok(None);
        }
        let stream = self.stream_at(UPLOADS)?;
        Ok(Some(stream).filter(|s| !s.event.is_null()))
    }

    /// Returns the host's stream that has this native handle, if there is one.
    #[inline]
    pub fn stream_called(&self, native: u64) -> Option<&'static DeviceStream> {
        self.all_streams().into_iter().find(|stream| stream.native() == Some(native))
    }

    /// Waits for the work that was submitted to a stream of the host.
    #[inline]
    pub fn synchronize(&self, stream: crate::device::Stream) -> Result<()> {
        shutdown::check(self)?;
        let found = lock(&self.streams.0).get(&stream.index).copied();
        found.map_or(Ok(()), |s| s.drain())
    }

    /// Returns true while a thread is submitting to one of the device's streams, or copying.
    pub(super) fn is_being_called(&self) -> bool {
        self.all_streams()
            .iter()
            .any(|s| matches!(s.order.try_lock(), Err(TryLockError::WouldBlock)))
            || matches!(self.copies.try_lock(), Err(TryLockError::WouldBlock))
    }

    pub(super) fn all_streams(&self) -> SmallVec<[&'static DeviceStream; 4]> {
        lock(&self.streams.0).values().copied().collect()
    }

    /// Waits for everything that was submitted to the device. Returns the first error, if any.
    #[inline]
    pub fn drain(&self) -> Result<()> {
        let mut outcome = Ok(());
        for stream in self.all_streams() {
            outcome = outcome.and(stream.drain());
        }
        outcome
    }

    /// Returns the last submission of every stream, if the device's streams run ahead.
    pub(super) fn all_uses(&self) -> SmallVec<[Use; 2]> {
        match self.info.synchronous {
            0 => {
                let last =
                    |stream: &'static DeviceStream| Use { stream, number: stream.last(), op: "" };
                self.all_streams().into_iter().map(last).collect()
            }
            _ => SmallVec::new(),
        }
    }
}
