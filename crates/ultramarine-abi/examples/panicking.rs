//! A backend that panics where it is told to, made with the Rust helper: what the helper promises
//! is that no panic leaves it. Tests write another place, and another name, into copies of the
//! library. Its one op is the sum of contiguous float32 arrays, in memory that the host cannot
//! address.

use core::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};
use ultramarine_abi::helper::{
    Backend, CommandRef, Failure, Host, InterfaceRef, Request, Result, Score, SyncDevice,
};
use ultramarine_abi::{DeviceInfo, export_backend, inline_text, schema};

export_backend! {
    backend: Panicking, name: "panicking", variant: "", device_type: 12, version: "0.1.0"
}

static PLACE: [u8; 32] = *b"panics in: nowhere              ";

fn perhaps(place: &str) {
    // SAFETY: a static; volatile, since the file's bytes are changed behind the compiler's back.
    let place_of_panic = unsafe { (&raw const PLACE).read_volatile() };
    let place_of_panic = place_of_panic.strip_prefix(b"panics in: ").unwrap_or_default();
    if place_of_panic.trim_ascii_end() == place.as_bytes() {
        panic!("on purpose, in {place}");
    }
}

/// The backend.
pub struct Panicking;

/// Its device.
pub struct Device;

/// Memory, which is the backend's alone.
pub struct Buffer(Mutex<Vec<u8>>);

impl Drop for Buffer {
    fn drop(&mut self) {
        perhaps("free");
    }
}

/// A plan: there is one op.
pub struct Plan;

impl Drop for Plan {
    fn drop(&mut self) {
        perhaps("release");
    }
}

impl Backend for Panicking {
    type Device = Device;

    fn score() -> Score {
        perhaps("score");
        Score::new(3, 1)
    }

    fn new(_host: Host) -> Result<Self> {
        perhaps("init");
        Ok(Panicking)
    }

    fn device_count(&self) -> u32 {
        perhaps("count");
        1
    }

    fn device_info(&self, _index: u32, info: &mut DeviceInfo) -> Result<()> {
        perhaps("info");
        info.synchronous = 1;
        info.dtypes_storage = (1 << schema::DTYPES.len()) - 1;
        info.dtypes_arithmetic = info.dtypes_storage;
        info.name = inline_text("one that panics");
        Ok(())
    }

    fn open(&self, _index: u32) -> Result<Device> {
        perhaps("open");
        Ok(Device)
    }

    fn interface(&self, _id: &core::ffi::CStr) -> Option<InterfaceRef> {
        perhaps("interface");
        None
    }
}

impl Buffer {
    fn with<R>(&self, offset: u64, bytes: usize, f: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = all.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..bytes));
        part.map(f).ok_or_else(|| Failure::invalid("outside of the buffer"))
    }
}

impl SyncDevice for Device {
    type Buffer = Buffer;
    type Plan = Plan;

    fn alloc(&self, bytes: u64) -> Result<Buffer> {
        perhaps("alloc");
        Ok(Buffer(Mutex::new(vec![0; bytes as usize])))
    }

    fn host_pointer(&self, _buffer: &Buffer) -> *mut u8 {
        perhaps("pointer");
        core::ptr::null_mut()
    }

    fn upload(&self, buffer: &Buffer, offset: u64, source: &[u8]) -> Result<()> {
        perhaps("upload");
        buffer.with(offset, source.len(), |to| to.copy_from_slice(source))
    }

    fn download(&self, buffer: &Buffer, offset: u64, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        perhaps("download");
        buffer.with(offset, target.len(), |from| {
            for (to, from) in target.iter_mut().zip(from) {
                to.write(*from);
            }
        })
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Plan> {
        perhaps("prepare");
        let float = schema::DTYPES.iter().position(|(name, _)| *name == "float32");
        if request.op != schema::op::BINARY || request.input_dtype(0) != float {
            return Err(Failure::unsupported("the sum of float32 is all there is"));
        }
        if request.attributes::<schema::BinaryAttrs>()?.op != schema::binary::ADD {
            return Err(Failure::unsupported("the sum is all there is"));
        }
        if !request.contiguous() {
            return Err(Failure::needs_contiguous());
        }
        Ok(Plan)
    }

    fn workspace(&self, _plan: &Plan, _command: &CommandRef<'_, Self>) -> u64 {
        perhaps("workspace");
        0
    }

    fn run(&self, _plan: &Plan, command: &CommandRef<'_, Self>) -> Result<()> {
        perhaps("run");
        let bytes = command.output(0)?.len() as usize * 4;
        let read = |index| -> Result<Vec<u8>> {
            let tensor = command.input(index)?;
            let buffer = tensor.buffer().ok_or_else(|| Failure::invalid("no buffer"))?;
            buffer.with(tensor.byte_offset(), bytes, |from| from.to_vec())
        };
        let (x, y) = (read(0)?, read(1)?);
        let floats = |v: &[u8]| -> Vec<f32> {
            v.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        };
        let out = command.output(0)?;
        let buffer = out.buffer().ok_or_else(|| Failure::invalid("no buffer"))?;
        buffer.with(out.byte_offset(), bytes, |to| {
            for ((to, x), y) in to.chunks_exact_mut(4).zip(floats(&x)).zip(floats(&y)) {
                to.copy_from_slice(&(x + y).to_le_bytes());
            }
        })
    }
}
