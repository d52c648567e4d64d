//! Optional interfaces of the mock: copies between its devices, and counts and limits of memory.

use super::*;
use ultramarine_abi::helper::with_device;
use ultramarine_abi::interface::peer::PeerInterface;
use ultramarine_abi::interface::statistics::{MemoryStatistics, StatisticsInterface};

/// True makes the backend copy between its devices by itself.
pub static PEER: AtomicBool = AtomicBool::new(false);
/// Such copies.
pub static PEER_COPIES: AtomicUsize = AtomicUsize::new(0);
/// True makes the backend keep counts and limits of memory of its own.
pub static STATISTICS: AtomicBool = AtomicBool::new(false);
/// Those limits.
pub static LIMITS: [AtomicU64; 3] = [const { AtomicU64::new(7) }; 3];

pub(super) static PEERS: PeerInterface =
    PeerInterface { size: size_of::<PeerInterface>() as u32, flags: 0, copy: Some(peer_copy) };

pub(super) static COUNTS: StatisticsInterface = StatisticsInterface {
    size: size_of::<StatisticsInterface>() as u32,
    flags: 0,
    read: Some(read_statistics),
    set_limit: Some(set_limit),
    get_limit: Some(get_limit),
    reset_peak: None,
    clear_cache: None,
};

unsafe extern "C" fn peer_copy(
    device: *mut c_void,
    stream: *mut c_void,
    target: *mut c_void,
    target_offset: u64,
    _: *mut c_void,
    source: *mut c_void,
    source_offset: u64,
    n: u64,
    error: *mut *mut Error,
) -> Status {
    PEER_COPIES.fetch_add(1, Ordering::SeqCst);
    // SAFETY: both buffers have n bytes behind the offsets; the host keeps them until the
    // stream has completed this.
    unsafe {
        with_device::<Mock>(device, error, |_| {
            let to = handle::<Buffer>(target, "the target")?.at(target_offset);
            let from = handle::<Buffer>(source, "the source")?.at(source_offset);
            let job = move || {
                let (to, from) = (to, from);
                to.copy_from(&from, n as usize)
            };
            handle::<Stream>(stream, "the stream")?.run(job)
        })
    }
}

unsafe extern "C" fn read_statistics(
    _: *mut c_void,
    out: *mut MemoryStatistics,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    let out = unsafe { &mut *out };
    (out.active, out.peak, out.cache) = (111, 222, 333);
    status::OK
}

unsafe extern "C" fn set_limit(
    _: *mut c_void,
    which: u32,
    n: u64,
    former: *mut u64,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    unsafe { *former = LIMITS[which as usize].swap(n, Ordering::SeqCst) };
    status::OK
}

unsafe extern "C" fn get_limit(_: *mut c_void, which: u32) -> u64 {
    LIMITS[which as usize].load(Ordering::SeqCst)
}
