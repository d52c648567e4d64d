//! Groups of collectives, through a watched table.

use super::*;
pub(super) use ultramarine_abi::interface::collective::INTERFACE;
use ultramarine_abi::interface::collective::{
    CollectiveCommand, CollectiveId, CollectiveInterface, kind,
};

/// The mock's answer when it is asked for a status.
static STATUS: AtomicU32 = AtomicU32::new(status::OK as u32);
/// Bytes of the mock's ids.
static LENGTH: AtomicU32 = AtomicU32::new(16);
/// The rank that the mock says it has in groups of 2.
static RANK: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn make_id(_: Handle, id: *mut CollectiveId, _: *mut *mut abi::Error) -> Status {
    // SAFETY: the caller's place.
    unsafe { (*id).length = LENGTH.load(Ordering::SeqCst) };
    status::OK
}

unsafe extern "C" fn open(
    _: Handle,
    _: *const CollectiveId,
    _: u32,
    _: u32,
    group: *mut Handle,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's place.
    unsafe { give(group) }
}

unsafe extern "C" fn split(
    _: Handle,
    _: Handle,
    _: u32,
    _: i32,
    group: *mut Handle,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's place.
    unsafe { give(group) }
}

unsafe extern "C" fn status_of(_: Handle, _: Handle, error: *mut *mut abi::Error) -> Status {
    let code = STATUS.load(Ordering::SeqCst) as Status;
    if code == status::ERROR {
        // SAFETY: the caller's place.
        unsafe { *error = host_table::new_error(code, "rank 1 is gone".into()) };
    }
    code
}

unsafe extern "C" fn place(
    _: Handle,
    _: Handle,
    rank: *mut u32,
    n_ranks: *mut u32,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's places.
    unsafe { (*rank, *n_ranks) = (RANK.load(Ordering::SeqCst), 2) };
    status::OK
}

unsafe extern "C" fn run(
    _: Handle,
    _: Handle,
    _: Handle,
    _: *const CollectiveCommand,
    _: u32,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub(super) static TABLE: CollectiveInterface = CollectiveInterface {
    size: size_of::<CollectiveInterface>() as u32,
    flags: 0,
    make_id: Some(make_id),
    open: Some(open),
    split: Some(split),
    status: Some(status_of),
    place: Some(place),
    run: Some(run),
    abort: Some(end),
    close: Some(end),
};

/// Calls a fallible function of the interface.
macro_rules! ask {
    ($i:expr, $name:ident, $($arg:expr),*) => {{
        let mut error = std::ptr::null_mut();
        // SAFETY: the places are valid, and the mock does nothing with handles.
        let code = unsafe { ($i.$name.expect("it"))($($arg,)* &mut error) };
        host_table::check(stringify!($name), code, error)
    }};
}

#[test]
fn groups() {
    let t = Watched::new();
    let find = t.table.interface.expect("the mock has it");
    // SAFETY: the id's own struct, which is static.
    let i = unsafe { &*find(t.table.backend, INTERFACE.as_ptr()).cast::<CollectiveInterface>() };
    let mut id = CollectiveId::default();
    assert!(ask!(i, make_id, t.device, &mut id).is_ok());
    LENGTH.store(0, Ordering::SeqCst);
    assert_found(ask!(i, make_id, t.device, &mut id), "an id of 0 bytes");
    let mut group = std::ptr::null_mut();
    assert_found(ask!(i, open, t.device, &id, 2, 2, &mut group), "rank 2 of 2");
    assert!(ask!(i, open, t.device, &id, 0, 2, &mut group).is_ok());
    let (mut rank, mut size) = (0, 0);
    let mut where_ = |group: Handle| ask!(i, place, t.device, group, &mut rank, &mut size);
    assert_found(where_(group), "before its status was OK");
    STATUS.store(status::NOT_YET as u32, Ordering::SeqCst);
    // "Not yet" is no finding, and no readiness.
    let before = validation_findings();
    assert!(ask!(i, status, t.device, group).is_err());
    assert_eq!(validation_findings(), before);
    assert_found(where_(group), "before its status was OK");
    STATUS.store(status::OK as u32, Ordering::SeqCst);
    assert!(ask!(i, status, t.device, group).is_ok());
    RANK.store(1, Ordering::SeqCst);
    assert_found(where_(group), "it says rank 1 of 2, where Some((0, 2)) was given");
    RANK.store(0, Ordering::SeqCst);
    assert!(where_(group).is_ok());

    let [from, to] = [0; 2].map(|_| make!(t, buffer_alloc, 64).expect("a buffer"));
    let sum = CollectiveCommand {
        size: size_of::<CollectiveCommand>() as u32,
        kind: kind::SUM,
        dtype: abi::schema::DTYPES[10].1,
        peer: 0,
        count: 16,
        input: from,
        input_offset: 0,
        output: to,
        output_offset: 0,
    };
    let give = |c: CollectiveCommand| ask!(i, run, t.device, group, t.stream, &c, 1);
    assert!(give(sum).is_ok());
    assert!(give(CollectiveCommand { output: from, ..sum }).is_ok());
    assert_found(give(CollectiveCommand { count: 0, ..sum }), "of no elements");
    assert_found(give(CollectiveCommand { kind: 7, ..sum }), "collective 7 is unknown");
    assert_found(give(CollectiveCommand { input_offset: 4, ..sum }), "64 bytes at 4");
    assert_found(give(CollectiveCommand { count: 17, ..sum }), "68 bytes at 0");
    let overlaps = CollectiveCommand { count: 8, output: from, output_offset: 16, ..sum };
    assert_found(give(overlaps), "overlap");
    let gather = CollectiveCommand { kind: kind::GATHER, ..sum };
    assert_found(give(gather), "128 bytes at 0");
    assert!(give(CollectiveCommand { count: 8, ..gather }).is_ok());
    let scatter = CollectiveCommand { kind: kind::SUM_SCATTER, ..sum };
    assert_found(give(CollectiveCommand { count: 15, ..scatter }), "15 elements scattered to 2");
    let none = std::ptr::null_mut();
    let send = CollectiveCommand { kind: kind::SEND, output: none, peer: 1, ..sum };
    assert!(give(send).is_ok());
    assert_found(give(CollectiveCommand { peer: 0, ..send }), "rank 0 with itself");
    assert_found(give(CollectiveCommand { peer: 2, ..send }), "with rank 2 of 2");

    let mut part = std::ptr::null_mut();
    assert!(ask!(i, split, t.device, group, 0, 0, &mut part).is_ok());
    let outcome = ask!(i, run, t.device, part, t.stream, &sum, 1);
    assert_found(outcome, "before its status was OK");
    STATUS.store(status::ERROR as u32, Ordering::SeqCst);
    assert!(ask!(i, status, t.device, group).is_err());
    assert_found(give(sum), "has failed or was ended");
    let close = |group: Handle| {
        let before = validation_findings();
        // SAFETY: the mock does nothing with handles.
        unsafe { (i.close.expect("it"))(t.device, group) };
        validation_findings() - before
    };
    assert_eq!((close(group), close(group), close(part)), (0, 1, 0));
}
