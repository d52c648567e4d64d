//! The mock's timestamps, on a clock that work moves: preparing a command on the host, and running one on the device.

use super::*;
use std::sync::OnceLock;
use ultramarine_abi::helper::{give, take, with_device};
use ultramarine_abi::interface::timing::TimingInterface;

/// True makes the mock offer timestamps.
pub static OFFERED: AtomicBool = AtomicBool::new(false);
/// Nanoseconds of the mock's clock that a plan takes on the host.
pub const PREPARATION: u64 = 1_000_000;
/// Nanoseconds that a command takes.
pub const COMMAND: u64 = 1_000;

static CLOCK: AtomicU64 = AtomicU64::new(0);

pub(super) static TABLE: TimingInterface = TimingInterface {
    size: size_of::<TimingInterface>() as u32,
    flags: 0,
    mark: Some(mark),
    resolve: Some(resolve),
    release: Some(release),
    range_push: None,
    range_pop: None,
};

/// Moves the clock by a plan. Marks of before have their time by then.
pub(super) fn prepared() {
    if OFFERED.load(Ordering::SeqCst) {
        while WAITING.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        CLOCK.fetch_add(PREPARATION, Ordering::SeqCst);
    }
}

/// Moves the clock by a command.
pub(super) fn ran() {
    CLOCK.fetch_add(COMMAND, Ordering::SeqCst);
}

type Slot = Arc<OnceLock<u64>>;

unsafe extern "C" fn mark(
    device: *mut c_void,
    stream: *mut c_void,
    slot: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's handles and place.
    unsafe {
        with_device::<Mock>(device, error, |_| {
            let time = Slot::default();
            let noted = time.clone();
            handle::<Stream>(stream, "the stream")?
                .run(move || noted.set(CLOCK.load(Ordering::SeqCst)).is_ok())?;
            give(slot, time)
        })
    }
}

unsafe extern "C" fn resolve(
    device: *mut c_void,
    slot: *mut c_void,
    nanoseconds: *mut u64,
    ready: *mut u32,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's handles and places.
    unsafe {
        with_device::<Mock>(device, error, |_| {
            let time = handle::<Slot>(slot, "the slot")?.get();
            (*nanoseconds, *ready) = (time.copied().unwrap_or(0), u32::from(time.is_some()));
            Ok(())
        })
    }
}

unsafe extern "C" fn release(_: *mut c_void, slot: *mut c_void) {
    // SAFETY: a slot of `mark`, given back once.
    unsafe { take::<Slot>(None, slot) }
}
