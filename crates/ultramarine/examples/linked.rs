//! A program with a backend linked into it: no library is opened, so it works without the feature
//! `loader` as well.
//!
//! ```sh
//! cargo run --release -p ultramarine --no-default-features --example linked
//! ```
//!
//! The backend has one kernel, the sum of float32 arrays. What else its device is asked for
//! is made of simpler operations or goes to the CPU, and the counts say which.

#![allow(clippy::print_stdout)] // It tells its results.

use ultramarine::{Array, Result, default_stream, op_counts, register, with_stream};
use ultramarine_abi::helper::{
    self, Backend, CommandRef, Failure, Host, Request, Result as Answer, SyncDevice,
};
use ultramarine_abi::{self as abi, DeviceInfo, schema};

/// DLPack's number for devices that no other type fits.
const DEVICE_TYPE: i32 = abi::dlpack::device_type::EXT_DEV;

struct Linked(Host);
struct Adder(Host);

impl Backend for Linked {
    type Device = Adder;

    fn new(host: Host) -> Answer<Self> {
        Ok(Linked(host))
    }

    fn device_info(&self, _index: u32, info: &mut DeviceInfo) -> Answer<()> {
        (info.synchronous, info.host_memory) = (1, 1);
        info.dtypes_storage = (1 << schema::DTYPES.len()) - 1;
        info.dtypes_arithmetic = info.dtypes_storage;
        info.name = abi::inline_text("an adder");
        Ok(())
    }

    fn open(&self, _index: u32) -> Answer<Adder> {
        Ok(Adder(self.0))
    }
}

impl SyncDevice for Adder {
    ultramarine_abi::host_memory_buffers!(0);

    type Plan = ();

    fn prepare(&self, request: &Request<'_>) -> Answer<()> {
        let float32 = schema::DTYPES.iter().position(|(name, _)| *name == "float32");
        let adds = request.op == schema::op::BINARY
            && request.attributes::<schema::BinaryAttrs>()?.op == schema::binary::ADD
            && request.input_dtype(0) == float32;
        match adds {
            false => Err(Failure::unsupported("the sum of float32 is all there is")),
            true if !request.contiguous() => Err(Failure::needs_contiguous()),
            true => Ok(()),
        }
    }

    fn run(&self, _plan: &(), command: &CommandRef<'_, Self>) -> Answer<()> {
        let (x, y, out) = (command.input(0)?, command.input(1)?, command.output(0)?);
        let n = out.len() as usize;
        let (x, y, out) =
            (x.data().cast::<f32>(), y.data().cast::<f32>(), out.data().cast::<f32>());
        for i in 0..n {
            // SAFETY: contiguous float32 of one shape, by `prepare`.
            unsafe { out.add(i).write(x.add(i).read() + y.add(i).read()) };
        }
        Ok(())
    }
}

unsafe extern "C" fn init(
    host: *const abi::HostTable,
    table: *mut abi::BackendTable,
    error: *mut *mut abi::Error,
) -> abi::Status {
    // SAFETY: the arguments are those of the contract's entry point.
    unsafe { helper::init::<Linked>(c"linked", DEVICE_TYPE, host, table, error) }
}

fn main() -> Result<()> {
    // SAFETY: the helper keeps to the contract.
    let devices = unsafe { register(init) }?;
    let stream = default_stream(devices[0])?;
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    let y = with_stream(stream, || x.add(&x)?.exp()?.add(&x))?;
    let (got, want) = (y.to_vec::<f32>()?, [1.0f32, 2.0, 3.0].map(|v| (v + v).exp() + v));
    let near = got.iter().zip(want).all(|(g, w)| (g - w).abs() <= 1e-5 * w);
    assert!(near, "{got:?}, not {want:?}");
    for count in op_counts().iter().filter(|c| c.device == devices[0]) {
        let (native, elsewhere) = (count.native, count.decomposed + count.cpu);
        println!("{} {}: {native} here, {elsewhere} elsewhere", count.device, count.op);
    }
    Ok(())
}
