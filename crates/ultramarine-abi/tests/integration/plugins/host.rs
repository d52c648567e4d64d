//! A host with threads of its own that keeps what it is told.

use core::ffi::{c_char, c_void};
use std::sync::Mutex;
use ultramarine_abi::{ABI_MAJOR, ABI_MINOR, Error, HostTable, ParallelBody, Status};

#[derive(Default)]
struct Record {
    logs: Mutex<Vec<(u32, String)>>,
    errors: Mutex<Vec<(Status, String)>>,
    /// Errors of lists, with the command that they are of.
    commands: Mutex<Vec<(usize, u32)>>,
    live: Mutex<usize>,
}

/// The host; plugins keep its table for ever, so what it holds is never freed.
pub struct Host {
    record: &'static Record,
    table: &'static HostTable,
}

unsafe fn record<'a>(host: *mut c_void) -> &'a Record {
    // SAFETY: the pointer of the table, which lives for ever.
    unsafe { &*host.cast::<Record>() }
}

unsafe fn text(text: *const c_char, length: u64) -> String {
    // SAFETY: the contract's.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    String::from_utf8(bytes.to_vec()).unwrap()
}

unsafe extern "C" fn log(host: *mut c_void, level: u32, message: *const c_char, length: u64) {
    // SAFETY: the contract's.
    unsafe { record(host).logs.lock().unwrap().push((level, text(message, length))) };
}

unsafe extern "C" fn error_new(
    host: *mut c_void,
    code: Status,
    message: *const c_char,
    length: u64,
) -> *mut Error {
    // SAFETY: the contract's.
    unsafe {
        let mut errors = record(host).errors.lock().unwrap();
        errors.push((code, text(message, length)));
        // An error is the number of its text here.
        errors.len() as *mut Error
    }
}

unsafe extern "C" fn error_command(host: *mut c_void, error: *mut Error, index: u32) {
    // SAFETY: the contract's.
    let record = unsafe { record(host) };
    record.commands.lock().unwrap().push((error as usize, index));
}

unsafe extern "C" fn alloc(host: *mut c_void, bytes: u64) -> *mut c_void {
    let layout = std::alloc::Layout::from_size_align(bytes as usize + 256, 256).unwrap();
    // SAFETY: the size is not zero; the size stands before what is given.
    unsafe {
        *record(host).live.lock().unwrap() += 1;
        let data = std::alloc::alloc(layout);
        data.cast::<usize>().write(layout.size());
        data.add(256).cast()
    }
}

unsafe extern "C" fn free(host: *mut c_void, data: *mut c_void) {
    // SAFETY: what `alloc` gave.
    unsafe {
        *record(host).live.lock().unwrap() -= 1;
        let data = data.cast::<u8>().sub(256);
        let size = data.cast::<usize>().read();
        std::alloc::dealloc(data, std::alloc::Layout::from_size_align(size, 256).unwrap());
    }
}

unsafe extern "C" fn parallel_for(
    _host: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    let context = context as usize;
    std::thread::scope(|threads| {
        for half in 0..2 {
            threads.spawn(move || {
                for i in (half..count).step_by(2) {
                    // SAFETY: the contract's.
                    unsafe { body(context as *mut c_void, i) };
                }
            });
        }
    });
}

unsafe extern "C" fn thread_count(_host: *mut c_void) -> u32 {
    2
}

impl Host {
    pub fn new() -> Self {
        let record: &'static Record = Box::leak(Box::default());
        let table = Box::leak(Box::new(HostTable {
            size: size_of::<HostTable>() as u32,
            abi_major: ABI_MAJOR as u16,
            abi_minor: ABI_MINOR as u16,
            host: (&raw const *record).cast_mut().cast(),
            log: Some(log),
            error_new: Some(error_new),
            alloc: Some(alloc),
            free: Some(free),
            parallel_for: Some(parallel_for),
            thread_count: Some(thread_count),
            error_command: Some(error_command),
        }));
        Self { record, table }
    }

    pub fn table(&self) -> *const HostTable {
        self.table
    }

    /// The code and text of an error.
    pub fn error(&self, error: *mut Error) -> (Status, String) {
        self.record.errors.lock().unwrap()[error as usize - 1].clone()
    }

    /// The command of its list that an error is of.
    pub fn failed_command(&self, error: *mut Error) -> Option<u32> {
        let commands = self.record.commands.lock().unwrap();
        commands.iter().find(|c| c.0 == error as usize).map(|c| c.1)
    }

    pub fn logs(&self) -> Vec<(u32, String)> {
        self.record.logs.lock().unwrap().clone()
    }

    /// Blocks of memory that are not freed.
    pub fn live(&self) -> usize {
        *self.record.live.lock().unwrap()
    }
}
