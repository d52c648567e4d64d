//! Foreign memory: the interface `ultramarine.memory/1`, tested without another library. Host
//! memory is the kit's own. Of the other kinds, exports of the backend are imported again.

mod export;
mod import;
mod streams;

use crate::device::{Buffer, Device, Handle};
use crate::plugin::{Failure, call};
use crate::record::{PASSED, Recorder, Result, skip};
use core::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use ultramarine_abi::interface::memory::{self, ForeignMemory, MemoryInterface, kind};
use ultramarine_abi::status;

/// The kinds of memory and their names.
const KINDS: [(u32, &str); 5] = [
    (kind::HOST, "host memory"),
    (kind::DEVICE_POINTER, "a device pointer"),
    (kind::OPAQUE_FD, "a file descriptor"),
    (kind::MTL_BUFFER, "an MTLBuffer"),
    (kind::CL_MEM, "a cl_mem"),
];

pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    let mut check = |name: &str, f: &dyn Fn(&Foreign<'_>) -> Result| {
        recorder.check(&format!("interfaces/memory {name}"), || match Foreign::of(device) {
            Some(foreign) => f(&foreign),
            None => skip("not offered"),
        });
    };
    check("table", &table);
    check("import", &import::whole);
    check("import of a part", &import::part);
    check("import, read only", &import::read_only);
    check("imports at once", &import::several);
    check("import refused", &import::refused);
    check("import in commands", &import::commands);
    check("export", &export::export);
    check("export and import", &export::import_again);
    check("export refused", &export::refused);
    check("waits for foreign streams", &streams::waits);
    check("foreign streams wait", &streams::signals);
    check("foreign streams are retained", &streams::retained);
}

/// The memory interface of a device.
struct Foreign<'a> {
    device: &'a Device<'a>,
    table: MemoryInterface,
}

/// Counts the release calls that the owner of imported memory got.
struct Owner(AtomicU32);

unsafe extern "C" fn released(owner: *mut c_void) {
    // SAFETY: the context of an import is a leaked owner.
    unsafe { &*owner.cast::<Owner>() }.0.fetch_add(1, Ordering::SeqCst);
}

impl Owner {
    /// Leaks the counter: a wrong backend may call at any time.
    fn new() -> &'static Owner {
        Box::leak(Box::new(Owner(AtomicU32::new(0))))
    }

    fn released(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Expects one release call. Drivers may make it a moment after the buffer is gone.
    fn expect_once(&self) -> Result<()> {
        for _ in 0..1000 {
            if self.released() > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Twice would come at once.
        match self.released() {
            1 => Ok(()),
            n => Err(format!("release was called {n} times")),
        }
    }

    fn expect_never(&self, when: &str) -> Result<()> {
        match self.released() {
            0 => Ok(()),
            _ => Err(format!("release was called {when}")),
        }
    }
}

/// Memory of the kit with the numbers from 0 on.
fn numbers(n: u64) -> Vec<u64> {
    (0..n).collect()
}

impl<'a> Foreign<'a> {
    fn of(device: &'a Device<'a>) -> Option<Self> {
        // SAFETY: the id's own struct.
        let table = unsafe { device.interface::<MemoryInterface>(memory::INTERFACE) }?;
        Some(Foreign { device, table })
    }

    fn imports(&self, kind: u32) -> bool {
        self.table.imports >> kind & 1 == 1
    }

    fn exports(&self, kind: u32) -> bool {
        self.table.exports >> kind & 1 == 1
    }

    fn import(&self, block: &ForeignMemory) -> Result<Imported<'_>, Failure> {
        let missing =
            || Failure { call: "import", code: status::UNSUPPORTED, text: None, command: None };
        let import = self.table.import.ok_or_else(missing)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the block's memory outlives the buffer: the callers see to it.
        call("import", |e| unsafe { import(self.device.handle, block, &mut handle, e) })?;
        Ok(Imported {
            foreign: self,
            buffer: Buffer { handle: Handle(handle), bytes: block.bytes },
        })
    }

    fn export(&self, buffer: Buffer, kind: u32) -> Result<ForeignMemory, Failure> {
        let missing =
            || Failure { call: "export", code: status::UNSUPPORTED, text: None, command: None };
        let export = self.table.export.ok_or_else(missing)?;
        // SAFETY: all-zero bytes are a description of memory.
        let mut block: ForeignMemory = unsafe { std::mem::zeroed() };
        block.size = size_of::<ForeignMemory>() as u32;
        let (device, handle) = (self.device.handle, buffer.handle.0);
        // SAFETY: a live buffer; the struct is writable and says its size.
        call("export", |e| unsafe { export(device, handle, kind, &mut block, e) })?;
        Ok(block)
    }

    /// The whole of the kit's memory as a block.
    fn block(data: &mut [u64], owner: &'static Owner) -> ForeignMemory {
        ForeignMemory {
            size: size_of::<ForeignMemory>() as u32,
            kind: kind::HOST,
            flags: 0,
            reserved: 0,
            handle: data.as_mut_ptr() as u64,
            offset: 0,
            bytes: size_of_val(data) as u64,
            release: Some(released),
            context: (&raw const *owner).cast_mut().cast(),
            ready: 0,
        }
    }

    fn with_stream(&self, f: impl FnOnce(Handle) -> Result) -> Result {
        let stream = self.device.stream()?;
        let outcome = f(stream);
        self.device.synchronize(stream)?;
        self.device.destroy_stream(stream);
        outcome
    }
}

/// A buffer of the backend over the kit's memory. A CPU overlay, which has no other buffers, imports too.
struct Imported<'a> {
    foreign: &'a Foreign<'a>,
    buffer: Buffer,
}

impl Imported<'_> {
    fn read(&self, stream: Handle) -> Result<Vec<u64>, Failure> {
        let device = self.foreign.device;
        let mut bytes = vec![0; self.buffer.bytes as usize];
        if device.overlay {
            let table = &device.backend.table;
            let missing = || Failure {
                call: "buffer_host_pointer",
                code: status::UNSUPPORTED,
                text: None,
                command: None,
            };
            let ask = table.buffer_host_pointer.ok_or_else(missing)?;
            // SAFETY: a live buffer over `buffer.bytes` bytes of host memory.
            unsafe {
                let from = ask(device.handle, self.buffer.handle.0).cast::<u8>();
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
            }
        } else {
            device.read(stream, self.buffer, 0, &mut bytes)?;
        }
        let words = bytes.chunks_exact(8).map(|c| c.try_into().map_or(0, u64::from_le_bytes));
        Ok(words.collect())
    }

    fn expect(&self, stream: Handle, expected: &[u64]) -> Result<()> {
        let found = self.read(stream)?;
        match found.iter().zip(expected).position(|(f, w)| f != w) {
            Some(i) => Err(format!(
                "the imported memory shows other bytes: word {i} is {:#x}, expected {:#x}",
                found[i], expected[i]
            )),
            None => Ok(()),
        }
    }

    fn free(self) -> Result<()> {
        let device = self.foreign.device;
        let free = device.backend.table.buffer_free;
        let free = free.ok_or("imports are not freed: there is no function buffer_free")?;
        // SAFETY: the backend's buffer, freed once, with no work on it.
        unsafe { free(device.handle, self.buffer.handle.0) };
        Ok(())
    }
}

fn table(foreign: &Foreign<'_>) -> Result {
    let t = &foreign.table;
    let known = KINDS.iter().fold(0, |bits, (kind, _)| bits | 1 << kind);
    if (t.imports | t.exports) & !known != 0 {
        return Err(format!("imports {:#x}, exports {:#x}: unknown kinds", t.imports, t.exports));
    }
    for (what, mask, there) in
        [("import", t.imports, t.import.is_some()), ("export", t.exports, t.export.is_some())]
    {
        if (mask != 0) != there {
            return Err(format!("the function {what} is there: {there}, and its kinds {mask:#x}"));
        }
    }
    if (t.wait_foreign.is_some() || t.signal_foreign.is_some()) && t.native_stream.is_none() {
        return Err("streams cross, but there is no native_stream".into());
    }
    if t.retain_foreign.is_some() != t.release_foreign.is_some() {
        return Err("one of retain_foreign and release_foreign is there without the other".into());
    }
    PASSED
}
