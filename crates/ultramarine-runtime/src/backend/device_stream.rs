//! Streams of devices, most of which run ahead of the host.
//!
//! Each submission to a stream gets a number, higher than those before. The stream's timeline event takes that number, or
//! a higher one, once the device has completed the submission; numbers are recorded when something may wait for them
//! (`records.rs`). Memory remembers its last uses as stream and number, so that
//! - work on another stream waits for what wrote its operands, and an output that takes
//!   over memory waits for those who still read it;
//! - the host waits for the number of what it wants to read;
//! - buffers freed while in use are queued until the device completes their last use.
//!
//! A device without events is waited for after each task instead, and one whose
//! `submit` returns only when all is done needs none of this.

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

/// Submissions that a stream may be ahead of its device.
const MAX_AHEAD: u64 = 256;

/// Bytes queued to be freed on a device above which submitters wait.
const MAX_PENDING_BYTES: usize = 512 << 20;

/// Index of the stream of uploads, which no stream of users has.
const UPLOADS: u32 = u32::MAX;
/// Likewise of [`DeviceState::returns`].
const RETURNS: u32 = u32::MAX - 1;
/// Likewise of [`DeviceState::beside`].
const BESIDE: u32 = u32::MAX - 2;

/// A stream of the host on one device, which runs ahead of the host. See the module for how
/// submissions are numbered.
pub struct DeviceStream {
    pub device: &'static DeviceState,
    handle: *mut c_void,
    /// The timeline event; NULL where the backend has none.
    event: *mut c_void,
    /// For the backend's functions of which one call at a time is allowed.
    order: Mutex<Order>,
    /// The last number that was given.
    submitted: AtomicU64,
    /// The last number that the event was told to take: the event reaches every number up to it.
    recorded: AtomicU64,
    /// The device has completed this number.
    pub(super) completed: AtomicU64,
    /// The host has waited for this number, and nothing had failed.
    confirmed: AtomicU64,
    /// Work of other streams that numbers of this one depend on, not yet confirmed.
    needs: Mutex<Vec<Need>>,
    failures: Mutex<Vec<Failure>>,
    has_failed: AtomicBool,
    /// The last number at which memory was given back in the stream's order. Who takes memory for
    /// this stream has all other work wait for it.
    pub(super) freed: AtomicU64,
    /// Frees that wait until the device has completed a number.
    pub(super) pending_frees: Mutex<VecDeque<(u64, PendingFree)>>,
}

/// State of a stream that only the thread that calls the backend for it looks at.
#[derive(Default)]
struct Order {
    /// By stream, the numbers that later work of this one waits for already.
    followed: HashMap<*const DeviceStream, u64>,
    /// Results that were submitted behind the last record and that nothing has written over.
    open: usize,
}

struct Need {
    number: u64,
    stream: &'static DeviceStream,
    until: u64,
}

/// Numbers from `first` to `last` are lost.
struct Failure {
    first: u64,
    last: u64,
    error: Error,
}

// SAFETY: handles are used by many threads only through functions for which the
// contract allows it, or under `order`.
unsafe impl Send for DeviceStream {}
// SAFETY: as above.
unsafe impl Sync for DeviceStream {}

impl DeviceStream {
    pub(super) fn new(device: &'static DeviceState) -> Result<DeviceStream> {
        let (mut handle, mut event) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut error = std::ptr::null_mut();
        let table = &device.table;
        if let Some(create) = table.stream_create {
            // SAFETY: the places are valid; the device is open.
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

    /// Returns true if the stream's work may be under way when a submit has returned.
    #[inline]
    pub fn runs_ahead(&self) -> bool {
        self.device.info.synchronous == 0
    }

    pub(super) fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// The lock of functions that may be called once at a time for the stream.
    pub(super) fn serial(&self) -> &Mutex<impl Sized + use<>> {
        &self.order
    }

    #[inline]
    pub fn event(&self) -> *mut c_void {
        self.event
    }

    /// Work of this stream that memory taken for it may still be used by, unless it is known to
    /// be completed: what other streams have to wait for before they use that memory.
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

    /// Submits work: `call` gets the backend's stream. `reads` and `writes` are the
    /// buffers it touches.
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

    /// Says that the work that the stream has so far may write to a buffer. It is recorded when something waits for it.
    pub fn mark_written(&'static self, op: &'static str, buffer: &Buffer) -> Result<()> {
        let writes = iter::once((buffer, op));
        self.submit_list((1, Records::WhenAsked), iter::empty(), writes, |_| Ok(()))
    }

    /// Likewise a list of so many commands, whose number is recorded as `records` says. Buffers come with the graph
    /// operation that uses them.
    ///
    /// A list takes as many numbers as it has commands, and is known by the last one. So what is bounded in numbers
    /// (how far the host is ahead, the distance between records) is bounded in commands.
    pub(super) fn submit_list<'a>(
        &'static self,
        (commands, records): (u64, Records),
        reads: impl Iterator<Item = (&'a Buffer, &'static str)> + Clone,
        writes: impl Iterator<Item = (&'a Buffer, &'static str)> + Clone,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let in_commands = self.device.waits_in_commands();
        let recorded = self.recorded.load(Ordering::Acquire);
        // Uses on other streams, and whether commands carry the wait. Buffers that this work touches get no others meanwhile.
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
        // Without this stream's lock: each takes the other stream's.
        others.iter().try_for_each(|(u, _)| u.stream.ask(u.number).map_err(|e| u.explain(e)))?;
        let mut order = lock(&self.order);
        // With the lock, by which the exit of the process waits for the call.
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
        // Also after a failure: part of the work may have begun.
        let number = self.last() + commands;
        self.submitted.store(number, Ordering::Release);
        order.open = order.open.saturating_sub(overwritten) + written;
        let recorded = self.record_if_due(records, &mut order);
        // Not before: who learns of a use may have others' streams wait for its number at once.
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

    /// Keeps the host from running too far ahead, in numbers or in memory.
    fn hold_back(&self, number: u64) {
        let ahead = number - self.completed.load(Ordering::Relaxed).min(number);
        let pending_bytes = self.device.pending_bytes.load(Ordering::Relaxed);
        let memory = usize::try_from(self.device.info.memory / 8).unwrap_or(usize::MAX);
        let most =
            if memory == 0 { MAX_PENDING_BYTES } else { memory.clamp(1 << 20, MAX_PENDING_BYTES) };
        if ahead > MAX_AHEAD || (pending_bytes > most && ahead > 1) {
            // Failures are raised to those who want the values.
            let _ = self.wait(number - ahead / 2);
        }
    }

    /// Makes later work of this stream wait for a use on another, whose number is recorded.
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
        // (Else every command that reads it carries the event.)
        if !in_commands {
            let mut error = std::ptr::null_mut();
            // SAFETY: both are the device's, and this thread holds the stream's lock.
            let code =
                unsafe { wait(self.device.handle, self.handle, stream.event, until, &mut error) };
            host_table::check("event_wait_stream", code, error)?;
            // A wait that failed is asked for again.
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

    /// The error of a number that is known to be lost.
    pub fn failure(&self, number: u64) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        match lock(&self.failures).iter().find(|f| (f.first..=f.last).contains(&number)) {
            Some(failure) => Err(failure.error.clone()),
            None => Ok(()),
        }
    }

    /// Nothing says which submission failed: all that are not known to be good are lost.
    fn fail(&self, number: u64, error: &Error) {
        let first = self.confirmed.load(Ordering::Acquire) + 1;
        let last = self.last().max(number);
        lock(&self.failures).push(Failure { first, last, error: error.clone() });
        self.has_failed.store(true, Ordering::Release);
    }

    /// Loses what the device has not completed: values of it are this error, also when the device goes on. Others have ended
    /// the work, which has left anything behind.
    pub fn lose(&self, error: &Error) {
        self.fail(self.last(), error);
    }

    /// Returns true if the device has completed a number. Does not wait.
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
            // Lost meanwhile.
            self.failure(number)?;
            // Its dependencies on other streams are completed, too. They may have failed.
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

    /// Blocks until a number is completed; returns up to which they are.
    fn block(&self, number: u64) -> Result<u64> {
        self.ask(number)?;
        let (table, device) = (&self.device.table, self.device.handle);
        let mut error = std::ptr::null_mut();
        if let (Some(wait), false) = (table.event_wait_host, self.event.is_null()) {
            // SAFETY: the event is the device's; any thread may wait for it.
            let code = unsafe { wait(device, self.event, number, &mut error) };
            return host_table::check("event_wait_host", code, error).map(|()| number);
        }
        let Some(wait) = table.stream_synchronize else {
            return Err(self.device.lacks("stream_synchronize"));
        };
        let done = self.last();
        // SAFETY: the stream is the device's; any thread may wait for it.
        let code = unsafe { wait(device, self.handle, &mut error) };
        host_table::check("stream_synchronize", code, error).map(|()| done.max(number))
    }

    /// Waits for everything that was submitted. An error that was raised before is not
    /// raised again.
    #[inline]
    pub fn drain(&self) -> Result<()> {
        let last = self.last();
        let outcome = if self.failure(last).is_err() { Ok(()) } else { self.wait(last) };
        self.free_completed();
        outcome
    }

    /// After a task: waits for it where there are no events to wait for later.
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

    /// Names the op and the device in an error of the backend.
    pub fn explain(&self, error: Error) -> Error {
        let DeviceState { backend, device, .. } = self.stream.device;
        let message = format!("[{}] failed on {backend} {device}: {error}", self.op);
        match error {
            Error::Memory(_) => Error::Memory(message.into()),
            _ => Error::Runtime(message.into()),
        }
    }
}

/// The streams of one device, by our index.
#[derive(Default)]
pub(super) struct Streams(Mutex<BTreeMap<u32, &'static DeviceStream>>);

impl DeviceState {
    /// The device's side of one of our streams. It lives as long as the process, as
    /// streams do.
    #[inline]
    pub fn stream(&'static self, stream: crate::device::Stream) -> Result<&'static DeviceStream> {
        self.stream_at(stream.index)
    }

    /// The stream on which memory comes back from those who had it: what they still do with it
    /// delays nobody but whoever takes that memory.
    #[inline]
    pub fn returns(&'static self) -> Result<&'static DeviceStream> {
        self.stream_at(RETURNS)
    }

    /// The stream of copies that another device's work, or the host, waits for: one of its own, so that they wait for
    /// what they read alone.
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

    /// The stream of uploads, where they are enqueued: one of its own, so that they neither wait
    /// for work nor hold it up. Not where the host could not wait for it by number.
    pub(super) fn uploads(&'static self) -> Result<Option<&'static DeviceStream>> {
        if self.info.flags & device_flag::UPLOADS_IN_ORDER == 0 || self.info.synchronous != 0 {
            return Ok(None);
        }
        let stream = self.stream_at(UPLOADS)?;
        Ok(Some(stream).filter(|s| !s.event.is_null()))
    }

    /// Our stream that others know by this number, if it is one of ours.
    #[inline]
    pub fn stream_called(&self, native: u64) -> Option<&'static DeviceStream> {
        self.all_streams().into_iter().find(|stream| stream.native() == Some(native))
    }

    /// Waits for what was submitted from one of our streams.
    #[inline]
    pub fn synchronize(&self, stream: crate::device::Stream) -> Result<()> {
        shutdown::check(self)?;
        let found = lock(&self.streams.0).get(&stream.index).copied();
        found.map_or(Ok(()), |s| s.drain())
    }

    /// Returns true while a thread submits to one of its streams, or copies.
    pub(super) fn is_being_called(&self) -> bool {
        self.all_streams()
            .iter()
            .any(|s| matches!(s.order.try_lock(), Err(TryLockError::WouldBlock)))
            || matches!(self.copies.try_lock(), Err(TryLockError::WouldBlock))
    }

    pub(super) fn all_streams(&self) -> SmallVec<[&'static DeviceStream; 4]> {
        lock(&self.streams.0).values().copied().collect()
    }

    /// Waits for all that was submitted to the device; the first error, if any.
    #[inline]
    pub fn drain(&self) -> Result<()> {
        let mut outcome = Ok(());
        for stream in self.all_streams() {
            outcome = outcome.and(stream.drain());
        }
        outcome
    }

    /// The last submission of every stream, where these run ahead.
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
