//! Streams that run ahead, timeline events between them and the host, errors, forks.

use super::compare::{F32, place, values};
use super::pair;
use super::side::{Case, Side, words};
use crate::opencl_process;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::Duration;
use ultramarine_abi::schema::{binary, op};
use ultramarine_abi::{DeviceInfo, Status, status};

/// The functions of a table that these tests use, without their options.
struct Calls<'a>(&'a Side);

impl Calls<'_> {
    fn check(code: Status, error: *mut ultramarine_abi::Error) {
        assert_eq!(code, status::OK, "{}", words(error));
    }

    fn stream(&self) -> *mut c_void {
        let (mut out, mut error) = (null_mut(), null_mut());
        let create = self.0.table.stream_create.expect("stream_create");
        // SAFETY: the device is open, here and below.
        Self::check(unsafe { create(self.0.device, &mut out, &mut error) }, error);
        out
    }

    fn event(&self) -> *mut c_void {
        let (mut out, mut error) = (null_mut(), null_mut());
        let create = self.0.table.event_create.expect("event_create");
        // SAFETY: as above.
        Self::check(unsafe { create(self.0.device, &mut out, &mut error) }, error);
        out
    }

    fn record(&self, stream: *mut c_void, event: *mut c_void, value: u64) {
        let mut error = null_mut();
        let f = self.0.table.event_record.expect("event_record");
        // SAFETY: a stream and an event of the device.
        Self::check(unsafe { f(self.0.device, stream, event, value, &mut error) }, error);
    }

    fn wait_stream(&self, stream: *mut c_void, event: *mut c_void, value: u64) {
        let mut error = null_mut();
        let f = self.0.table.event_wait_stream.expect("event_wait_stream");
        // SAFETY: as above.
        Self::check(unsafe { f(self.0.device, stream, event, value, &mut error) }, error);
    }

    fn wait_host(&self, event: *mut c_void, value: u64) {
        let mut error = null_mut();
        let f = self.0.table.event_wait_host.expect("event_wait_host");
        // SAFETY: as above.
        Self::check(unsafe { f(self.0.device, event, value, &mut error) }, error);
    }

    fn query(&self, event: *mut c_void) -> u64 {
        // SAFETY: as above.
        unsafe { self.0.table.event_query.expect("event_query")(self.0.device, event) }
    }

    fn synchronize(&self, stream: *mut c_void) {
        let mut error = null_mut();
        let f = self.0.table.stream_synchronize.expect("stream_synchronize");
        // SAFETY: a stream of the device.
        Self::check(unsafe { f(self.0.device, stream, &mut error) }, error);
    }

    fn destroy(&self, stream: *mut c_void) {
        // SAFETY: a stream that has drained.
        unsafe { self.0.table.stream_destroy.expect("stream_destroy")(self.0.device, stream) }
    }

    fn destroy_event(&self, event: *mut c_void) {
        // SAFETY: nobody waits for it any more.
        unsafe { self.0.table.event_destroy.expect("event_destroy")(self.0.device, event) }
    }
}

struct Raw(*mut c_void);
// SAFETY: handles of the device may be used from any thread.
unsafe impl Send for Raw {}

#[test]
fn values_are_reached_in_order() {
    opencl_process!();
    let Some(pair) = pair() else { return };
    let calls = Calls(&pair.opencl);
    let (a, b, event) = (calls.stream(), calls.stream(), calls.event());
    assert_eq!(calls.query(event), 0);
    calls.wait_host(event, 0);
    for value in 1..=5 {
        calls.record(a, event, 10 * value);
    }
    calls.wait_stream(b, event, 33);
    calls.wait_host(event, 31);
    assert!(calls.query(event) >= 40);
    calls.synchronize(b);
    calls.wait_host(event, 50);
    assert_eq!(calls.query(event), 50);
    // What is reached holds nobody up, and needs no record.
    calls.wait_stream(b, event, 7);
    calls.synchronize(b);
    calls.destroy_event(event);
    [a, b].into_iter().for_each(|s| calls.destroy(s));
}

#[test]
fn a_value_may_be_waited_for_before_it_is_recorded() {
    opencl_process!();
    let Some(pair) = pair() else { return };
    let calls = Calls(&pair.opencl);
    let (a, b) = (calls.stream(), calls.stream());
    let (first, second) = (calls.event(), calls.event());
    calls.wait_stream(b, first, 2);
    calls.record(b, second, 1);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(calls.query(second), 0, "the stream has not waited");
    calls.record(a, first, 1);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(calls.query(second), 0, "1 is not 2");
    let waiting = Raw(second);
    std::thread::scope(|scope| {
        let calls = &calls;
        let side = &pair.opencl;
        let device = Raw(side.device);
        let wait = side.table.event_wait_host.expect("event_wait_host");
        let host = scope.spawn(move || {
            let (device, event) = (device, waiting);
            // SAFETY: the device's own event.
            unsafe { wait(device.0, event.0, 1, null_mut()) }
        });
        calls.record(a, first, 2);
        assert_eq!(host.join().ok(), Some(status::OK));
    });
    assert_eq!(calls.query(second), 1);
    [a, b].into_iter().for_each(|s| calls.synchronize(s));
    [first, second].into_iter().for_each(|e| calls.destroy_event(e));
    [a, b].into_iter().for_each(|s| calls.destroy(s));
}

#[test]
fn device_properties() {
    opencl_process!();
    let Some(pair) = pair() else { return };
    let side = &pair.opencl;
    let info = side.table.device_info.expect("device_info");
    // SAFETY: all-zero is a valid DeviceInfo, here and below.
    let mut reported: DeviceInfo = unsafe { std::mem::zeroed() };
    reported.size = size_of::<DeviceInfo>() as u32;
    let mut error = null_mut();
    // SAFETY: a valid place for the answer.
    let code = unsafe { info(side.table.backend, 0, &mut reported, &mut error) };
    assert_eq!((code, words(error).as_str()), (status::OK, ""));
    assert_eq!((reported.synchronous, reported.host_memory), (0, 0));
    assert!(reported.memory > 0 && reported.name[0] != 0);
    // A shorter struct of an older host is not overrun.
    // SAFETY: as above.
    let mut short: DeviceInfo = unsafe { std::mem::zeroed() };
    short.size = 16;
    // SAFETY: as above.
    let code = unsafe { info(side.table.backend, 0, &mut short, null_mut()) };
    assert_eq!((code, short.size, short.dtypes_storage), (status::OK, 16, reported.dtypes_storage));
    assert_eq!((short.dtypes_arithmetic, short.memory), (0, 0));
    // SAFETY: as above.
    let code = unsafe { info(side.table.backend, 77, &mut reported, &mut error) };
    assert_ne!(code, status::OK);
    assert!(words(error).contains("77"));
}

#[test]
fn out_of_memory_has_a_status_of_its_own() {
    opencl_process!();
    let Some(pair) = pair() else { return };
    let side = &pair.opencl;
    let (mut buffer, mut error) = (null_mut(), null_mut());
    let alloc = side.table.buffer_alloc.expect("buffer_alloc");
    // SAFETY: valid places for the answers.
    let code = unsafe { alloc(side.device, 1 << 50, &mut buffer, &mut error) };
    assert_eq!(code, status::OUT_OF_MEMORY);
    assert!(words(error).contains("1125899906842624"));
}

#[test]
fn a_forked_child_gets_an_error() {
    opencl_process!();
    let Some(pair) = pair() else { return };
    let x = place(F32, &values(F32, 4, 1, false), &[4], 0);
    let case = Case {
        op: op::BINARY,
        attributes: vec![8, binary::ADD],
        inputs: vec![x.clone(), x],
        dtype: F32,
        shape: vec![4],
        scalars: vec![],
    };
    assert!(pair.opencl.run(&case).is_ok());
    let alloc = pair.opencl.table.buffer_alloc.expect("buffer_alloc");
    let device = pair.opencl.device;
    // SAFETY: the child calls one function of the backend, which touches no lock, and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut buffer = null_mut();
        // SAFETY: a valid place for the answer.
        let code = unsafe { alloc(device, 16, &mut buffer, null_mut()) };
        // SAFETY: nothing of the parent's is run or flushed.
        unsafe { libc::_exit(code) };
    }
    let mut ended = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut ended, 0) }, child);
    assert!(libc::WIFEXITED(ended));
    assert_eq!(libc::WEXITSTATUS(ended), status::FORKED);
    assert!(pair.opencl.run(&case).is_ok());
}

#[test]
fn imported_memory() {
    opencl_process!();
    use std::sync::atomic::{AtomicUsize, Ordering};
    use ultramarine_abi::interface::memory::{ForeignMemory, INTERFACE, MemoryInterface, kind};
    static RELEASED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn release(_: *mut c_void) {
        RELEASED.fetch_add(1, Ordering::SeqCst);
    }
    let Some(pair) = pair() else { return };
    let side = &pair.opencl;
    let ask = side.table.interface.expect("interface");
    // SAFETY: a NUL-terminated id; the answer is the interface's static table.
    let memory =
        unsafe { *(ask(side.table.backend, INTERFACE.as_ptr()) as *const MemoryInterface) };
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 14).collect();
    let buffer = side.upload(&bytes);
    // SAFETY: all-zero is a valid description, here and below.
    let mut block: ForeignMemory = unsafe { std::mem::zeroed() };
    block.size = size_of::<ForeignMemory>() as u32;
    let mut error = null_mut();
    // SAFETY: a buffer of this device, and a place for the answer.
    let code = unsafe {
        memory.export.expect("export")(side.device, buffer, kind::CL_MEM, &mut block, &mut error)
    };
    assert_eq!((code, words(error).as_str()), (status::OK, ""));
    assert_eq!(block.bytes, bytes.len() as u64);

    // A part of it, as another buffer.
    (block.offset, block.bytes) = (1 << 12, 1 << 12);
    block.release = Some(release);
    let mut part = null_mut();
    let mut error = null_mut();
    // SAFETY: the memory lives as long as `buffer`.
    let code =
        unsafe { memory.import.expect("import")(side.device, &block, &mut part, &mut error) };
    assert_eq!((code, words(error).as_str()), (status::OK, ""));
    assert_eq!(side.download(part, 1 << 12), bytes[1 << 12..1 << 13]);
    assert_eq!(RELEASED.load(Ordering::SeqCst), 0);
    side.free(part);
    assert_eq!(RELEASED.load(Ordering::SeqCst), 1);
    side.free(buffer);

    let mut error = null_mut();
    block.kind = kind::OPAQUE_FD;
    // SAFETY: refused before it is looked at.
    let code =
        unsafe { memory.import.expect("import")(side.device, &block, &mut part, &mut error) };
    assert_eq!(code, status::UNSUPPORTED);
    assert!(!words(error).is_empty());
}
