//! Memory of other libraries: the interface `ultramarine.memory/1`, without any other library. Host
//! memory is the kit's own; of the other kinds, what the backend exports is imported again.

use super::streams::Mover;
use crate::device::{Buffer, Device, Handle};
use crate::plugin::{Failure, call, status_name};
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use core::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use ultramarine_abi::{
    interface::memory::{self, ForeignMemory, MemoryInterface, flag, kind},
    status,
};

/// The kinds, and what they are called.
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
    check("import", &import);
    check("import of a part", &part);
    check("import, read only", &read_only);
    check("imports at once", &several);
    check("import refused", &refused);
    check("import in commands", &commands);
    check("export", &export);
    check("export and import", &there_and_back);
    check("export refused", &export_refused);
    check("waits for others' streams", &waits);
    check("others' streams wait", &signals);
}

/// The interface, and whose it is.
struct Foreign<'a> {
    device: &'a Device<'a>,
    table: MemoryInterface,
}

/// How often the owner of imported memory was told that it is free.
struct Owner(AtomicU32);

unsafe extern "C" fn released(owner: *mut c_void) {
    // SAFETY: the context of an import is a leaked owner.
    unsafe { &*owner.cast::<Owner>() }.0.fetch_add(1, Ordering::SeqCst);
}

impl Owner {
    /// One that is never freed: a wrong backend may call at any time.
    fn new() -> &'static Owner {
        Box::leak(Box::new(Owner(AtomicU32::new(0))))
    }

    fn told(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// That it was told once; drivers may do so a moment after the buffer is gone.
    fn expect_once(&self) -> std::result::Result<(), String> {
        for _ in 0..1000 {
            if self.told() > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Twice would come at once.
        match self.told() {
            1 => Ok(()),
            n => Err(format!("release was called {n} times")),
        }
    }

    fn expect_never(&self, when: &str) -> std::result::Result<(), String> {
        match self.told() {
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

    fn import(&self, block: &ForeignMemory) -> std::result::Result<Imported<'_>, Failure> {
        let missing = || Failure { call: "import", code: status::UNSUPPORTED, text: None };
        let import = self.table.import.ok_or_else(missing)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the block's memory outlives the buffer (the callers' care).
        call("import", |e| unsafe { import(self.device.handle, block, &mut handle, e) })?;
        Ok(Imported {
            foreign: self,
            buffer: Buffer { handle: Handle(handle), bytes: block.bytes },
        })
    }

    fn export(&self, buffer: Buffer, kind: u32) -> std::result::Result<ForeignMemory, Failure> {
        let missing = || Failure { call: "export", code: status::UNSUPPORTED, text: None };
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

/// A buffer over the kit's memory. Where the host has no buffers of the backend's otherwise, as of a CPU
/// overlay, it is the backend's all the same.
struct Imported<'a> {
    foreign: &'a Foreign<'a>,
    buffer: Buffer,
}

impl Imported<'_> {
    fn read(&self, stream: Handle) -> std::result::Result<Vec<u64>, Failure> {
        let device = self.foreign.device;
        let mut bytes = vec![0; self.buffer.bytes as usize];
        if device.overlay {
            let table = &device.backend.table;
            let missing =
                || Failure { call: "buffer_host_pointer", code: status::UNSUPPORTED, text: None };
            let ask = table.buffer_host_pointer.ok_or_else(missing)?;
            // SAFETY: a live buffer over so many bytes of host memory.
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

    fn expect(&self, stream: Handle, want: &[u64]) -> std::result::Result<(), String> {
        let found = self.read(stream)?;
        match found.iter().zip(want).position(|(f, w)| f != w) {
            Some(i) => Err(format!(
                "the imported memory shows other bytes: word {i} is {:#x}, expected {:#x}",
                found[i], want[i]
            )),
            None => Ok(()),
        }
    }

    fn free(self) -> std::result::Result<(), String> {
        let device = self.foreign.device;
        let free = device.backend.table.buffer_free;
        let free = free.ok_or("imports are not freed: there is no function buffer_free")?;
        // SAFETY: the backend's buffer, freed once, with no work on it.
        unsafe { free(device.handle, self.buffer.handle.0) };
        Ok(())
    }
}

/// Ends a check where host memory cannot be imported.
macro_rules! needs_host {
    ($foreign:expr) => {
        if !$foreign.imports(kind::HOST) {
            return skip("host memory cannot be imported");
        }
    };
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
    PASSED
}

fn import(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let (mut data, owner) = (numbers(1 << 12), Owner::new());
        let block = Foreign::block(&mut data, owner);
        let imported = foreign.import(&block)?;
        imported.expect(stream, &numbers(1 << 12))?;
        // Its owner may write to it later.
        // SAFETY: the kit's own memory, which nothing uses now.
        unsafe { data.as_mut_ptr().add(7).write_volatile(99) };
        let mut want = numbers(1 << 12);
        want[7] = 99;
        imported.expect(stream, &want).map_err(|e| format!("after its owner wrote: {e}"))?;
        owner.expect_never("while the buffer lived")?;
        imported.free()?;
        foreign.device.synchronize(stream)?;
        owner.expect_once()?;
        PASSED
    })
}

fn part(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let (mut data, owner) = (numbers(1 << 12), Owner::new());
        let mut block = Foreign::block(&mut data, owner);
        (block.offset, block.bytes) = (8 * 1024, 8 * 100);
        // Without an owner that wants to know.
        block.release = None;
        let imported = foreign.import(&block)?;
        imported.expect(stream, &data[1024..1124])?;
        imported.free()?;
        owner.expect_never("although there was none")?;
        PASSED
    })
}

fn read_only(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let (mut data, owner) = (numbers(1 << 10), Owner::new());
        let mut block = Foreign::block(&mut data, owner);
        block.flags = flag::READ_ONLY;
        let imported = foreign.import(&block)?;
        imported.expect(stream, &numbers(1 << 10))?;
        imported.free()?;
        foreign.device.synchronize(stream)?;
        owner.expect_once()?;
        if data == numbers(1 << 10) { PASSED } else { Err("the memory was written to".into()) }
    })
}

fn several(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let mut data = vec![numbers(64); 16];
        let owners: Vec<&'static Owner> = (0..16).map(|_| Owner::new()).collect();
        let mut alive = Vec::new();
        for (data, owner) in data.iter_mut().zip(&owners) {
            alive.push(foreign.import(&Foreign::block(data, owner))?);
        }
        // Each owner is told of its own.
        for n in (0..16).rev() {
            alive.remove(n / 2 * (n % 2)).free()?;
        }
        foreign.device.synchronize(stream)?;
        owners.iter().try_for_each(|o| o.expect_once())?;
        PASSED
    })
}

/// What cannot be imported is an error, and its owner keeps it.
fn refused(foreign: &Foreign<'_>) -> Result {
    let mut data = numbers(64);
    let owner = Owner::new();
    let good = Foreign::block(&mut data, owner);
    let mut wrong = vec![
        ("a kind that does not exist", ForeignMemory { kind: 31, ..good }),
        ("no memory", ForeignMemory { handle: 0, ..good }),
        ("no bytes", ForeignMemory { bytes: 0, ..good }),
        ("a struct without a size", ForeignMemory { size: 0, ..good }),
    ];
    for (kind, name) in KINDS {
        if !foreign.imports(kind) {
            wrong.push((name, ForeignMemory { kind, ..good }));
        }
    }
    for (what, block) in wrong {
        match foreign.import(&block) {
            Ok(_) => return Err(format!("{what} was imported")),
            Err(f) if block.kind != kind::HOST && f.code != status::UNSUPPORTED => {
                return Err(format!("{what}: {}, expected UNSUPPORTED", status_name(f.code)));
            }
            Err(_) => owner.expect_never(&format!("although {what} was refused"))?,
        }
    }
    PASSED
}

/// Commands read and write imported memory where it is.
fn commands(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    let device = foreign.device;
    if device.overlay {
        return skip("commands of a CPU overlay use the host's memory");
    }
    const N: i64 = 1 << 12;
    let Some(mover) = Mover::new(device, N)? else {
        return skip("no native fill and copy of float32");
    };
    foreign.with_stream(|stream| {
        let mut buffers = Buffers::new(device);
        let ours = mover.buffer(&mut buffers)?;
        // Zeros; room for all that a buffer of the kit's has.
        let (mut data, owner) = (vec![0u64; ours.bytes as usize / 8 + 1], Owner::new());
        let imported = foreign.import(&Foreign::block(&mut data, owner))?;
        mover.fill(stream, imported.buffer, 3.0)?;
        mover.copy(stream, imported.buffer, ours, 1)?;
        mover.expect(stream, ours, 3.0)?;
        device.synchronize(stream)?;
        owner.expect_never("while the buffer lived")?;
        imported.free()?;
        owner.expect_once()?;
        let three = u64::from(3f32.to_bits()) << 32 | u64::from(3f32.to_bits());
        match data[..N as usize / 2].iter().position(|d| *d != three) {
            Some(i) => Err(format!("the owner's memory is not written to, from word {i} on")),
            None => PASSED,
        }
    })
}

/// Runs a check for a buffer of bytes 5, as each kind that is exported.
fn each_export(
    foreign: &Foreign<'_>,
    f: impl Fn(Handle, Buffer, u32) -> std::result::Result<(), String>,
) -> Result {
    if foreign.table.exports == 0 {
        return skip("nothing is exported");
    }
    foreign.with_stream(|stream| {
        let mut buffers = Buffers::new(foreign.device);
        // An overlay has no buffers but those that it imported.
        let (mut data, owner) = (vec![0x0505_0505_0505_0505; 64], Owner::new());
        let imported = if foreign.device.overlay {
            Some(foreign.import(&Foreign::block(&mut data, owner))?)
        } else {
            None
        };
        let buffer = match &imported {
            Some(imported) => imported.buffer,
            None => buffers.alloc(512)?,
        };
        for (kind, name) in KINDS.iter().filter(|(kind, _)| foreign.exports(*kind)) {
            if imported.is_none() {
                foreign.device.write(stream, buffer, 0, &[5; 512])?;
            }
            f(stream, buffer, *kind).map_err(|e| format!("as {name}: {e}"))?;
        }
        imported.map_or(Ok(()), Imported::free)?;
        PASSED
    })
}

fn export(foreign: &Foreign<'_>) -> Result {
    each_export(foreign, |_, buffer, kind| {
        let block = foreign.export(buffer, kind)?;
        if block.kind != kind || block.handle == 0 {
            return Err(format!("it told kind {} and handle {:#x}", block.kind, block.handle));
        }
        if block.bytes < buffer.bytes {
            return Err(format!("it told {} bytes of {}", block.bytes, buffer.bytes));
        }
        if kind == kind::HOST {
            let address = (block.handle + block.offset) as *const u8;
            // SAFETY: an export as host memory is an address of so many bytes.
            let seen = unsafe { std::slice::from_raw_parts(address, buffer.bytes as usize) };
            if seen.iter().any(|b| *b != 5) {
                return Err("the exported memory shows other bytes".into());
            }
        }
        if let Some(release) = block.release {
            // SAFETY: the export is no longer used.
            unsafe { release(block.context) };
        }
        Ok(())
    })
}

/// What was exported is imported again: both are the same memory.
fn there_and_back(foreign: &Foreign<'_>) -> Result {
    if foreign.device.overlay {
        return skip("the buffers of a CPU overlay are the host's");
    }
    if foreign.table.exports & foreign.table.imports == 0 {
        return skip("no kind is both exported and imported");
    }
    each_export(foreign, |stream, buffer, kind| {
        if !foreign.imports(kind) {
            return Ok(());
        }
        let mut block = foreign.export(buffer, kind)?;
        let (given, context, owner) = (block.release, block.context, Owner::new());
        block.release = Some(released);
        block.context = (&raw const *owner).cast_mut().cast();
        block.bytes = buffer.bytes;
        let imported = foreign.import(&block)?;
        if imported.buffer.handle == buffer.handle && kind != kind::HOST {
            return Err("the import is the exported buffer itself: who frees it?".into());
        }
        imported.expect(stream, &[0x0505_0505_0505_0505; 64])?;
        foreign.device.write(stream, imported.buffer, 8, &[9; 8])?;
        let mut back = [0; 24];
        foreign.device.read(stream, buffer, 0, &mut back)?;
        if back[8..16] != [9; 8] || back[..8] != [5; 8] {
            return Err("what is written to the import is not seen in the buffer".into());
        }
        owner.expect_never("while the buffer lived")?;
        imported.free()?;
        foreign.device.synchronize(stream)?;
        owner.expect_once()?;
        if let Some(release) = given {
            // SAFETY: the export is no longer used.
            unsafe { release(context) };
        }
        // The exported buffer is still there.
        foreign.device.read(stream, buffer, 0, &mut back)?;
        if back[8..16] == [9; 8] { Ok(()) } else { Err("the buffer went with its import".into()) }
    })
}

fn export_refused(foreign: &Foreign<'_>) -> Result {
    if foreign.table.export.is_none() || foreign.device.overlay {
        return skip("nothing is exported");
    }
    let mut buffers = Buffers::new(foreign.device);
    let buffer = buffers.alloc(64)?;
    let others = KINDS.into_iter().filter(|(kind, _)| !foreign.exports(*kind));
    for (kind, name) in others.chain([(31, "a kind that does not exist")]) {
        match foreign.export(buffer, kind) {
            Ok(_) => return Err(format!("it gives {name}, which it does not promise")),
            Err(f) if f.code == status::UNSUPPORTED => {}
            Err(f) => return Err(format!("{name}: {f}, expected UNSUPPORTED")),
        }
    }
    PASSED
}

/// Two streams and the events that hold the first up and mark the second's work.
struct Crossing<'a> {
    foreign: &'a Foreign<'a>,
    first: Handle,
    second: Handle,
    gate: Handle,
    done: Handle,
}

impl<'a> Crossing<'a> {
    fn new(foreign: &'a Foreign<'a>) -> std::result::Result<Self, Failure> {
        let d = foreign.device;
        let (first, second) = (d.stream()?, d.stream()?);
        Ok(Crossing { foreign, first, second, gate: d.event()?, done: d.event()? })
    }

    fn native(&self, stream: Handle) -> u64 {
        match self.foreign.table.native_stream {
            // SAFETY: a live stream of the device.
            Some(ask) => unsafe { ask(self.foreign.device.handle, stream.0) },
            None => 0,
        }
    }

    /// The second stream's work stays undone until the gate of the first opens.
    fn expect_order(&self) -> std::result::Result<(), String> {
        let d = self.foreign.device;
        d.record(self.second, self.done, 1)?;
        std::thread::sleep(Duration::from_millis(50));
        let early = d.query(self.done)?;
        let third = d.stream()?;
        d.record(third, self.gate, 1)?;
        d.wait_host(self.done, 1)?;
        for stream in [self.first, self.second, third] {
            d.synchronize(stream)?;
            d.destroy_stream(stream);
        }
        d.destroy_event(self.gate);
        d.destroy_event(self.done);
        if early == 0 { Ok(()) } else { Err("the second stream did not wait".into()) }
    }
}

/// The streams of a device that runs ahead and shares them, or the end of the check.
macro_rules! crossing {
    ($foreign:expr, $function:ident) => {{
        let Some(function) = $foreign.table.$function else {
            return skip("others' streams are not known here");
        };
        if $foreign.device.info.synchronous != 0 || $foreign.device.overlay {
            return skip("work is done on return");
        }
        let crossing = Crossing::new($foreign)?;
        if crossing.native(crossing.first) == 0
            || crossing.native(crossing.first) == crossing.native(crossing.second)
        {
            return Err("two streams have no native streams of their own".into());
        }
        (function, crossing)
    }};
}

/// A stream of the backend as if it were another library's: ours waits for its work.
fn waits(foreign: &Foreign<'_>) -> Result {
    let (wait, c) = crossing!(foreign, wait_foreign);
    let device = foreign.device;
    device.wait_stream(c.first, c.gate, 1)?;
    let theirs = c.native(c.first);
    // SAFETY: live streams.
    call("wait_foreign", |e| unsafe { wait(device.handle, c.second.0, theirs, e) })?;
    c.expect_order().map(|()| PASSED)?
}

/// And the reverse: it waits for a point in the work of ours.
fn signals(foreign: &Foreign<'_>) -> Result {
    let (signal, c) = crossing!(foreign, signal_foreign);
    let device = foreign.device;
    let mark = device.event()?;
    device.wait_stream(c.first, c.gate, 1)?;
    device.record(c.first, mark, 5)?;
    let theirs = c.native(c.second);
    // SAFETY: a live stream, and an event whose value was recorded.
    call("signal_foreign", |e| unsafe { signal(device.handle, theirs, mark.0, 5, e) })?;
    let outcome = c.expect_order();
    device.destroy_event(mark);
    outcome.map(|()| PASSED)?
}
