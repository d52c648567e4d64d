//! Times of a device: marks in the order of its streams, and ranges in the vendor's profiler
//! (`ultramarine.timing/1`). These functions are called only while a profile runs.

use super::{DeviceState, DeviceStream, Exec, interface_of, shutdown};
use crate::error::Result;
use crate::{host_table, sync::lock};
use core::ffi::{CStr, c_char, c_void};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ultramarine_abi::interface::timing::{self, TimingInterface};
use ultramarine_abi::{BackendTable, Error as ErrorObject, Status};

type MarkFn = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut ErrorObject,
) -> Status;
type ResolveFn = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut u64,
    *mut u32,
    *mut *mut ErrorObject,
) -> Status;
type Push = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char);
type Pop = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The fewest marks used to measure the offset between two clocks. The mark with the shortest round
/// trip is used; its error is at most half of the round trip.
const CALIBRATIONS: usize = 5;

/// A round trip of at most this time is short enough.
const QUICK: Duration = Duration::from_micros(100);

/// The longest time spent on looking for a short round trip. On a busy machine, threads are often
/// preempted.
const LONGEST_CALIBRATION: Duration = Duration::from_millis(100);

/// The longest time for which the host polls a mark before it waits for the stream.
const PATIENCE: Duration = Duration::from_millis(5);

/// The functions of `ultramarine.timing/1`.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    mark: MarkFn,
    resolve: ResolveFn,
    release: unsafe extern "C" fn(*mut c_void, *mut c_void),
    range: Option<(Push, Pop)>,
}

impl Timing {
    /// Returns the functions, if the backend has all three that marks need.
    pub fn of(table: &BackendTable) -> Option<Timing> {
        let found: TimingInterface = interface_of(table, timing::INTERFACE)?;
        Some(Timing {
            mark: found.mark?,
            resolve: found.resolve?,
            release: found.release?,
            range: found.range_push.zip(found.range_pop),
        })
    }
}

/// A mark in a stream. The device notes the time when it reaches the mark, and the host reads it
/// later.
pub struct Mark {
    device: &'static DeviceState,
    timing: Timing,
    /// `None` on the host.
    stream: Option<&'static DeviceStream>,
    slot: *mut c_void,
}

// SAFETY: slots may be resolved and released by any thread.
unsafe impl Send for Mark {}
// SAFETY: as above. Several threads may do so at the same time.
unsafe impl Sync for Mark {}

impl Mark {
    /// Returns the time in nanoseconds on the device's clock; `None` if the device has not reached
    /// the mark.
    ///
    /// # Errors
    /// Those of the backend, if the device has failed.
    pub fn time(&self) -> Result<Option<u64>> {
        shutdown::check_wait(self.device)?;
        let (mut time, mut ready, mut error) = (0, 0, std::ptr::null_mut());
        // SAFETY: the slot belongs to this device and is not released, and the places are valid.
        let code = unsafe {
            (self.timing.resolve)(self.device.handle, self.slot, &mut time, &mut ready, &mut error)
        };
        host_table::check("resolve", code, error)?;
        Ok((ready != 0).then_some(time))
    }

    /// Returns the time by polling. This is tried before waiting, because waking a thread takes
    /// longer than an idle device needs to reach the mark.
    fn poll(&self) -> Option<u64> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(time) = self.time().ok()? {
                return Some(time);
            }
            std::hint::spin_loop();
        }
        self.wait().ok()?
    }

    /// Like [`Mark::time`], but first waits for the stream, because a mark has no number to wait
    /// for.
    ///
    /// # Errors
    /// Those of [`Mark::time`].
    pub fn wait(&self) -> Result<Option<u64>> {
        let known = self.time()?;
        if let (None, Some(stream), Some(wait)) =
            (known, self.stream, self.device.table.stream_synchronize)
        {
            let mut error = std::ptr::null_mut();
            // SAFETY: the stream is the device's; any thread may wait for it.
            let code = unsafe { wait(self.device.handle, stream.handle(), &mut error) };
            host_table::check("stream_synchronize", code, error)?;
            return self.time();
        }
        Ok(known)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.device.is_host() || !shutdown::is_gone() {
            // SAFETY: a slot of this device, which is released once.
            unsafe { (self.timing.release)(self.device.handle, self.slot) };
        }
    }
}

/// A stream of a device, or the host's threads.
type Place = (*const DeviceState, Option<*const DeviceStream>);

/// The marks around the commands that a task submits to a stream.
struct Around {
    place: Place,
    /// The mark before the first command. The inner `None` means that the device could not make a
    /// mark.
    first: Option<Option<Arc<Mark>>>,
    /// The mark after the last command so far.
    last: Option<Arc<Mark>>,
}

thread_local! {
    /// The tasks that the thread is executing, the outermost first.
    static AROUND: RefCell<Vec<Around>> = const { RefCell::new(Vec::new()) };
}

/// While this value lives, the thread marks the commands that it gives to one stream, including
/// those of nested tasks. Each command gets its own marks, so that the host's preparation never
/// lies between the marks of one command.
pub struct Marks(PhantomData<*const ()>);

impl Marks {
    /// Returns the marks before the first command and after the last. `None` if there was no
    /// command, or if the device could not make the marks.
    pub fn taken(&self) -> Option<[Arc<Mark>; 2]> {
        AROUND.with_borrow(|all| {
            let Around { first, last, .. } = all.last()?;
            Some([first.clone()??, last.clone()?])
        })
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        // Drop the marks after the borrow has ended, because dropping them calls their backend.
        drop(AROUND.try_with(|all| all.borrow_mut().pop()));
    }
}

/// A range in the vendor's profiler. It stays open until the thread that opened it drops this
/// value.
pub struct Range<'a> {
    exec: &'a Exec,
    pop: Pop,
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        self.exec.device.on_stream(self.exec.stream, |device, stream| {
            // SAFETY: an open device and its stream; the range was opened by this thread.
            unsafe { (self.pop)(device, stream) };
        });
    }
}

impl DeviceState {
    /// Returns true if the work is done when a submission returns, so that the host's clock can
    /// measure it.
    #[inline]
    pub fn is_synchronous(&self) -> bool {
        self.info.synchronous != 0
    }

    /// Calls a function that allows one call at a time for each stream. Returns `None` if devices
    /// may not be called.
    fn on_stream<T>(
        &self,
        stream: Option<&DeviceStream>,
        call: impl FnOnce(*mut c_void, *mut c_void) -> T,
    ) -> Option<T> {
        match stream {
            None => Some(call(self.handle, std::ptr::null_mut())),
            Some(stream) => {
                let _guard = lock(stream.serial());
                shutdown::check(self).ok()?;
                Some(call(self.handle, stream.handle()))
            }
        }
    }

    /// Makes a mark after the stream's earlier work. Returns `None` if the device has no clock. If
    /// the stream is a device's, its lock is held.
    fn mark(&'static self, stream: Option<&'static DeviceStream>) -> Option<Mark> {
        let timing = self.timing?;
        let handle = stream.map_or(std::ptr::null_mut(), DeviceStream::handle);
        let (mut slot, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: an open device and its stream, whose lock is held; the pointers are valid for
        // writing.
        let code = unsafe { (timing.mark)(self.handle, handle, &mut slot, &mut error) };
        let made = host_table::check("mark", code, error).is_ok() && !slot.is_null();
        made.then_some(Mark { device: self, timing, stream, slot })
    }

    /// Returns the nanoseconds to add to a time of the device's clock to get a time of the clock
    /// `now`. Returns `None` if the device has no clock. Waits for an idle stream.
    pub fn clock_offset(&'static self, now: impl Fn() -> i64) -> Option<i64> {
        self.timing?;
        let exec = Exec::beside(self).ok()?;
        let begun = Instant::now();
        let (mut best, mut offset) = (Duration::MAX, 0);
        let mut marks = 0;
        while marks < CALIBRATIONS || best > QUICK && begun.elapsed() < LONGEST_CALIBRATION {
            let (start, before) = (Instant::now(), now());
            let mark = self.on_stream(exec.stream, |_, _| self.mark(exec.stream))??;
            let time = i64::try_from(mark.poll()?).ok()?;
            let taken = start.elapsed();
            if taken < best {
                best = taken;
                offset = before + taken.as_nanos() as i64 / 2 - time;
            }
            marks += 1;
        }
        Some(offset)
    }
}

impl Exec {
    /// Declares that a profile records the commands.
    pub fn set_profiled(&self) {
        self.profiled.set(true);
    }

    /// Returns true if a profile records the commands. Each command is then submitted by itself, so
    /// that it has its own time.
    #[inline]
    pub fn is_profiled(&self) -> bool {
        self.profiled.get()
    }

    fn place(&self) -> Place {
        (std::ptr::from_ref(self.device), self.stream.map(std::ptr::from_ref))
    }

    /// Marks the commands that the thread gives to this stream until the returned value is dropped.
    pub fn marks(&self) -> Marks {
        let new = Around { place: self.place(), first: None, last: None };
        AROUND.with_borrow_mut(|all| all.push(new));
        Marks(PhantomData)
    }

    /// Gives a command to the backend, with marks around it for the tasks that the thread is
    /// executing. If the stream is a device's, its lock is held.
    #[cold]
    pub(super) fn marked<T>(&self, command: impl FnOnce() -> T) -> T {
        let place = self.place();
        let wanted = |by: fn(&Around) -> bool| {
            AROUND.with_borrow(|all| all.iter().any(|a| a.place == place && by(a)))
        };
        if wanted(|a| a.first.is_none()) {
            let mark = self.device.mark(self.stream).map(Arc::new);
            AROUND.with_borrow_mut(|all| {
                for around in all.iter_mut().filter(|a| a.place == place) {
                    around.first.get_or_insert_with(|| mark.clone());
                }
            });
        }
        let done = command();
        if wanted(|a| matches!(a.first, Some(Some(_)))) {
            let mark = self.device.mark(self.stream).map(Arc::new);
            AROUND.with_borrow_mut(|all| {
                all.iter_mut().filter(|a| a.place == place).for_each(|a| a.last = mark.clone());
            });
        }
        done
    }

    /// Opens a range in the vendor's profiler, if there is one.
    pub fn range(&self, name: &CStr) -> Option<Range<'_>> {
        let (push, pop) = self.device.timing?.range?;
        self.device.on_stream(self.stream, |device, stream| {
            // SAFETY: an open device and its stream; the name is NUL-terminated.
            unsafe { push(device, stream, name.as_ptr()) };
            Range { exec: self, pop }
        })
    }

    /// Returns true if [`Exec::range`] opens ranges.
    pub fn has_ranges(&self) -> bool {
        self.device.timing.is_some_and(|t| t.range.is_some())
    }
}
