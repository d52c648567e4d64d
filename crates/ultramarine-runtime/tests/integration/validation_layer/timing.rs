//! Timestamps through a watched table.

use super::*;
pub(super) use ultramarine_abi::interface::timing::INTERFACE;
use ultramarine_abi::interface::timing::TimingInterface;

/// The time that the mock answers with; 0: none yet.
static TIME: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn mark(
    _: Handle,
    _: Handle,
    slot: *mut Handle,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's place.
    unsafe { give(slot) }
}

unsafe extern "C" fn resolve(
    _: Handle,
    _: Handle,
    nanoseconds: *mut u64,
    ready: *mut u32,
    _: *mut *mut abi::Error,
) -> Status {
    let time = TIME.load(Ordering::SeqCst);
    // SAFETY: the caller's places.
    unsafe { (*nanoseconds, *ready) = (time as u64, u32::from(time > 0)) };
    status::OK
}

pub(super) static TABLE: TimingInterface = TimingInterface {
    size: size_of::<TimingInterface>() as u32,
    flags: 0,
    mark: Some(mark),
    resolve: Some(resolve),
    release: Some(end),
    range_push: None,
    range_pop: None,
};

#[test]
fn timestamps() {
    let t = Watched::new();
    let find = t.table.interface.expect("the mock has it");
    // SAFETY: the id's own struct, which is static.
    let i = unsafe { &*find(t.table.backend, INTERFACE.as_ptr()).cast::<TimingInterface>() };
    let mark = |device: Handle, stream: Handle| {
        let (mut slot, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the places are valid.
        let code = unsafe { (i.mark.expect("it"))(device, stream, &mut slot, &mut error) };
        host_table::check("mark", code, error).map(|()| slot)
    };
    let resolve = |slot: Handle| {
        let (mut time, mut ready, mut error) = (0, 0, std::ptr::null_mut());
        let (at, is) = (&mut time, &mut ready);
        // SAFETY: the places are valid.
        let code = unsafe { (i.resolve.expect("it"))(t.device, slot, at, is, &mut error) };
        host_table::check("resolve", code, error).map(|()| (ready == 1).then_some(time))
    };
    let release = |slot: Handle| {
        let before = validation_findings();
        // SAFETY: the mock does nothing with handles.
        unsafe { (i.release.expect("it"))(t.device, slot) };
        validation_findings() - before
    };
    assert_found(mark(0x5 as Handle, t.stream), "is unknown");
    assert_found(mark(t.device, 0x5 as Handle), "is unknown");
    WRONG.store(SAME_BUFFER, Ordering::SeqCst);
    let same = mark(t.device, t.stream).expect("a slot");
    assert_found(mark(t.device, t.stream), "twice");
    WRONG.store(0, Ordering::SeqCst);
    let slot = mark(t.device, t.stream).expect("a slot");
    assert_eq!(resolve(slot).expect("an answer"), None);
    TIME.store(5, Ordering::SeqCst);
    assert_eq!(resolve(slot).expect("an answer"), Some(5));
    TIME.store(6, Ordering::SeqCst);
    assert_found(resolve(slot), "a time of 5 became 6");
    TIME.store(0, Ordering::SeqCst);
    assert_found(resolve(slot), "known no more");
    assert_found(resolve(0x5 as Handle), "is unknown");
    assert_eq!((release(slot), release(slot), release(same)), (0, 1, 0));
    assert_found(resolve(slot), "is gone already");
    assert!(i.range_push.is_none() && i.range_pop.is_none());
}
