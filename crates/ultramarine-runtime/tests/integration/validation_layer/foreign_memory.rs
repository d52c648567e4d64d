//! Memory of others through a watched table.

use super::*;
use core::ffi::{CStr, c_char};
use ultramarine_abi::interface::memory::{ForeignMemory, INTERFACE, MemoryInterface, kind};

const RELEASES_AT_ONCE: u32 = 20;
const RELEASES_WHAT_IT_REFUSES: u32 = 21;
const REPORTS_LESS: u32 = 22;
const REPORTS_ANOTHER_KIND: u32 = 23;

/// Whom the mock has to tell of its last import.
static LAST: Mutex<Option<(unsafe extern "C" fn(Handle), usize)>> = Mutex::new(None);
static RELEASED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn released(_: Handle) {
    RELEASED.fetch_add(1, Ordering::SeqCst);
}

/// Tells the owner, as a backend does that frees the buffer; how many findings that gave, and how
/// often the owner heard of it.
fn release() -> (u64, usize) {
    let (before, heard) = (validation_findings(), RELEASED.load(Ordering::SeqCst));
    if let Some((release, owner)) = *lock(&LAST) {
        // SAFETY: what came with the import.
        unsafe { release(owner as Handle) };
    }
    (validation_findings() - before, RELEASED.load(Ordering::SeqCst) - heard)
}

unsafe extern "C" fn import(
    _: Handle,
    block: *const ForeignMemory,
    buffer: *mut Handle,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's struct.
    let block = unsafe { *block };
    *lock(&LAST) = block.release.map(|release| (release, block.context as usize));
    if wrong(RELEASES_AT_ONCE) || wrong(RELEASES_WHAT_IT_REFUSES) {
        release();
    }
    if wrong(RELEASES_WHAT_IT_REFUSES) {
        // SAFETY: the caller's place.
        unsafe { *error = host_table::new_error(status::INVALID, "no".into()) };
        return status::INVALID;
    }
    // SAFETY: the caller's place.
    unsafe { give(buffer) }
}

unsafe extern "C" fn export(
    _: Handle,
    _: Handle,
    kind: u32,
    block: *mut ForeignMemory,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's struct.
    let block = unsafe { &mut *block };
    block.kind = if wrong(REPORTS_ANOTHER_KIND) { kind + 1 } else { kind };
    block.handle = 0x4000;
    block.bytes = if wrong(REPORTS_LESS) { 8 } else { 64 };
    status::OK
}

unsafe extern "C" fn wait(_: Handle, _: Handle, _: u64, _: *mut *mut abi::Error) -> Status {
    status::OK
}

unsafe extern "C" fn signal(
    _: Handle,
    _: u64,
    _: Handle,
    _: u64,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

unsafe extern "C" fn retain(_: Handle, _: u64, _: *mut *mut abi::Error) -> Status {
    status::OK
}

unsafe extern "C" fn release_stream(_: Handle, _: u64) {}

unsafe extern "C" fn native(_: Handle, stream: Handle) -> u64 {
    stream as u64
}

pub(super) unsafe extern "C" fn interface(_: Handle, id: *const c_char) -> *const c_void {
    static TABLE: MemoryInterface = MemoryInterface {
        size: size_of::<MemoryInterface>() as u32,
        imports: 1 << kind::CL_MEM,
        exports: 1 << kind::CL_MEM,
        flags: 0,
        import: Some(import),
        export: Some(export),
        wait_foreign: Some(wait),
        native_stream: Some(native),
        signal_foreign: Some(signal),
        retain_foreign: Some(retain),
        release_foreign: Some(release_stream),
    };
    // SAFETY: the caller's id.
    let id = unsafe { CStr::from_ptr(id) };
    match () {
        () if id == INTERFACE => (&raw const TABLE).cast(),
        () if id == collectives::INTERFACE => (&raw const collectives::TABLE).cast(),
        () if id == recordings::INTERFACE => (&raw const recordings::TABLE).cast(),
        () if id == timing::INTERFACE => (&raw const timing::TABLE).cast(),
        () if id == uploads::INTERFACE => (&raw const uploads::TABLE).cast(),
        () if id == user_kernels::INTERFACE => (&raw const user_kernels::TABLE).cast(),
        () => std::ptr::null(),
    }
}

#[test]
fn imports_and_exports() {
    let t = Watched::new();
    let find = t.table.interface.expect("the mock has it");
    // SAFETY: the id's own struct, which is static.
    let i = unsafe { &*find(t.table.backend, INTERFACE.as_ptr()).cast::<MemoryInterface>() };
    macro_rules! call_interface {
        ($name:ident, $($arg:expr),*) => {{
            let mut error = std::ptr::null_mut();
            // SAFETY: what the arguments point at is valid.
            let code = unsafe { (i.$name.expect("it"))(t.device, $($arg,)* &mut error) };
            host_table::check(stringify!($name), code, error)
        }};
    }
    let good = ForeignMemory {
        size: size_of::<ForeignMemory>() as u32,
        kind: kind::CL_MEM,
        flags: 0,
        reserved: 0,
        handle: 0x9000,
        offset: 0,
        bytes: 64,
        release: Some(released),
        context: std::ptr::null_mut(),
        ready: 0,
    };
    let take = |block: ForeignMemory| {
        let mut buffer = std::ptr::null_mut();
        call_interface!(import, &block, &mut buffer).map(|()| buffer)
    };
    // Lives of imported buffers are those of others; owners hear once.
    let buffer = take(good).expect("an import");
    assert_eq!(end!(t, buffer_free, buffer), 0);
    assert_eq!(release(), (0, 1));
    assert_eq!(release(), (1, 0), "twice");
    assert_eq!(end!(t, buffer_free, buffer), 1);
    WRONG.store(RELEASES_AT_ONCE, Ordering::SeqCst);
    let before = (validation_findings(), RELEASED.load(Ordering::SeqCst));
    take(good).expect("an import");
    assert_eq!(validation_findings() - before.0, 1, "too early");
    assert_eq!(RELEASED.load(Ordering::SeqCst), before.1);
    WRONG.store(RELEASES_WHAT_IT_REFUSES, Ordering::SeqCst);
    let before = validation_findings();
    take(good).expect_err("refused");
    assert_eq!(validation_findings() - before, 1);
    assert_eq!(release(), (1, 0), "it is its owner's");
    WRONG.store(0, Ordering::SeqCst);
    assert_found(take(ForeignMemory { bytes: 0, ..good }), "no bytes");
    assert_found(take(ForeignMemory { handle: 0, ..good }), "handle is 0");
    assert_found(take(ForeignMemory { kind: kind::HOST, ..good }), "does not import");

    let mut reported = good;
    let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
    assert_found(call_interface!(export, 0x5 as Handle, kind::CL_MEM, &mut reported), "is unknown");
    call_interface!(export, buffer, kind::CL_MEM, &mut reported).expect("an export");
    WRONG.store(REPORTS_LESS, Ordering::SeqCst);
    assert_found(
        call_interface!(export, buffer, kind::CL_MEM, &mut reported),
        "8 bytes of a buffer of 64",
    );
    WRONG.store(REPORTS_ANOTHER_KIND, Ordering::SeqCst);
    assert_found(
        call_interface!(export, buffer, kind::CL_MEM, &mut reported),
        "it reported kind 5, not 4",
    );
    WRONG.store(0, Ordering::SeqCst);

    let event = make!(t, event_create).expect("an event");
    call!(t, event_record, t.device, t.stream, event, 3).expect("a record");
    call_interface!(signal_foreign, 7, event, 3).expect("it was recorded");
    assert_found(call_interface!(signal_foreign, 7, event, 4), "no more than 3 was recorded");
    call_interface!(wait_foreign, t.stream, 7).expect("a stream");
    assert_found(call_interface!(wait_foreign, 0x5 as Handle, 7), "is unknown");
    // SAFETY: the watched table's function.
    let native = |stream| unsafe { (i.native_stream.expect("it"))(t.device, stream) };
    assert_eq!(native(t.stream), t.stream as u64);
    let before = validation_findings();
    assert_eq!((native(0x5 as Handle), validation_findings() - before), (0, 1));
    // A stream is released as often as it was retained.
    for _ in 0..2 {
        call_interface!(retain_foreign, 7).expect("a stream");
    }
    // SAFETY: the watched table's function.
    let release = |stream| unsafe { (i.release_foreign.expect("it"))(t.device, stream) };
    for (stream, found) in [(7, 0), (8, 1), (7, 0), (7, 1)] {
        let before = validation_findings();
        release(stream);
        assert_eq!(validation_findings() - before, found, "{stream}");
    }
}
