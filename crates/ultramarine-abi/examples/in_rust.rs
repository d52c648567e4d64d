//! A backend in Rust by the helper alone: one synchronous device in host memory that adds
//! float32 tensors. The tests load it; it also shows what a backend has to write.

use ultramarine_abi::{
    DeviceInfo, dlpack, export_backend,
    helper::{Backend, CommandRef, Failure, Host, Request, Result, Score, SyncDevice, TensorRef},
    inline_text,
    schema::{self, BinaryAttrs, binary, op},
};

struct Adder {
    host: Host,
}

struct Device {
    host: Host,
}

/// Ops that no host asks for: the tests do, to see what becomes of panics.
const PANIC: u32 = 1000;
const PANIC_IN_LOOP: u32 = 1001;

/// What `prepare` found out.
enum Plan {
    Add,
    PanicInLoop,
}

/// Bit of float32 in the masks of dtypes.
fn float32() -> u32 {
    let place = schema::DTYPES.iter().position(|(name, _)| *name == "float32");
    place.map_or(0, |i| 1 << i)
}

impl Backend for Adder {
    type Device = Device;

    fn score() -> Score {
        Score::new(50, 1)
    }

    fn new(host: Host) -> Result<Self> {
        Ok(Self { host })
    }

    fn device_info(&self, _index: u32, info: &mut DeviceInfo) -> Result<()> {
        (info.synchronous, info.host_memory) = (1, 1);
        (info.dtypes_storage, info.dtypes_arithmetic) = (float32(), float32());
        info.name = inline_text("an adder in Rust");
        Ok(())
    }

    fn open(&self, _index: u32) -> Result<Device> {
        Ok(Device { host: self.host })
    }
}

impl SyncDevice for Device {
    ultramarine_abi::host_memory_buffers!(host);

    type Plan = Plan;

    fn prepare(&self, request: &Request<'_>) -> Result<Plan> {
        let float = |i: usize| request.input_dtype(i).is_some_and(|d| 1 << d == float32());
        match request.op {
            op::BINARY if float(0) && float(1) => match request.attributes::<BinaryAttrs>()?.op {
                binary::ADD => Ok(Plan::Add),
                other => Err(Failure::unsupported(format!("binary {other}"))),
            },
            PANIC => quiet_panic("a panic in prepare"),
            PANIC_IN_LOOP => Ok(Plan::PanicInLoop),
            other => Err(Failure::unsupported(format!("op {other} is unknown here"))),
        }
    }

    fn run(&self, plan: &Plan, command: &CommandRef<'_, Self>) -> Result<()> {
        if let Plan::PanicInLoop = plan {
            return self.host.parallel_for(8, |i| {
                if i == 5 {
                    quiet_panic("a panic in a loop")
                }
            });
        }
        let [out, a, b] = [command.output(0)?, command.input(0)?, command.input(1)?];
        for element in 0..out.len() {
            let [to, x, y] = [&out, &a, &b].map(|t| at(t, element));
            // SAFETY: the host's tensors are valid for their shapes and strides.
            unsafe { to.write(x.read() + y.read()) };
        }
        Ok(())
    }
}

/// Panics as `panic!` does, but prints nothing: in the output of tests that looks like a failure.
fn quiet_panic(message: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

/// Address of an element by its place in row-major order.
fn at(tensor: &TensorRef<'_, Device>, mut element: u64) -> *mut f32 {
    let mut offset = 0;
    for (n, stride) in tensor.shape().iter().zip(tensor.strides()).rev() {
        offset += (element % *n as u64) as i64 * stride;
        element /= *n as u64;
    }
    tensor.data().cast::<f32>().wrapping_offset(offset as isize)
}

export_backend! {
    backend: Adder,
    name: "in_rust",
    variant: "",
    device_type: dlpack::device_type::EXT_DEV,
    version: env!("CARGO_PKG_VERSION"),
}
