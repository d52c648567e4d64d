//! Functions of programs, applied to operands.

use std::mem::MaybeUninit;
use ultramarine_abi::helper::Device as _;
use ultramarine_wgpu::dtype::Dtype;
use ultramarine_wgpu::hal::Adapters;
use ultramarine_wgpu::launch::Device;
use ultramarine_wgpu::ops::elementwise::with_functions;
use ultramarine_wgpu::shader::source::groups_for;
use ultramarine_wgpu::shader::{Program, Tensor};
use ultramarine_wgpu::streams::Batch;

/// An element of a tensor.
pub trait Element: Copy + Default + 'static {
    const DTYPE: Dtype;
    fn bytes(self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($type:ty, $dtype:ident) => {
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    };
}
element!(f32, Float32);
element!(f64, Float64);

impl Element for num_complex::Complex32 {
    const DTYPE: Dtype = Dtype::Complex64;
    fn bytes(self) -> Vec<u8> {
        [self.re.bytes(), self.im.bytes()].concat()
    }
    fn of(bytes: &[u8]) -> Self {
        Self::new(f32::of(&bytes[..4]), f32::of(&bytes[4..]))
    }
}

/// A device that has float64, or none on this machine.
pub fn device() -> Option<Device> {
    let adapters = Adapters::enumerate();
    let device = adapters.and_then(|a| Device::open(&a.list[0]).map_err(|failure| failure.text));
    let why = match device {
        Ok(device) if device.context.properties.float64 => return Some(device),
        Ok(_) => "a device without float64".to_owned(),
        Err(why) => why,
    };
    #[allow(clippy::print_stderr, reason = "a test that does not run says so")]
    {
        eprintln!("SKIPPED: {why}");
    }
    None
}

/// Applies a function of a dtype's library to operands. `functions` adds to the program what it needs.
fn apply_in<T: Element>(
    device: &Device,
    functions: impl FnOnce(Program<'static>) -> Program<'static>,
    name: &str,
    operands: &[&[T]],
) -> Vec<T> {
    let names = ["a", "b"];
    let mut tensors: Vec<Tensor> =
        names[..operands.len()].iter().map(|name| Tensor { name, dtype: T::DTYPE }).collect();
    tensors.push(Tensor { name: "out", dtype: T::DTYPE });
    let loads: Vec<String> =
        names[..operands.len()].iter().map(|name| format!("load_{name}(i)")).collect();
    let program = functions(Program::new(&tensors));
    let source = program.body(&format!("store_out(i, {name}({}));", loads.join(", "))).build();
    let kernel = device.programs.get(source).unwrap();

    let n = operands[0].len();
    let mut buffers = Vec::new();
    for operand in operands {
        let bytes: Vec<u8> = operand.iter().flat_map(|x| x.bytes()).collect();
        let buffer = device.alloc(bytes.len() as u64).unwrap();
        device.upload(None, &buffer, 0, &bytes).unwrap();
        buffers.push(buffer);
    }
    let size = T::default().bytes().len();
    buffers.push(device.alloc((n * size) as u64).unwrap());
    let mut batch = Batch::default();
    let groups = groups_for(n as u64, device.context.properties.max_groups);
    let blocks: Vec<_> = buffers.iter().map(|buffer| &buffer.0).collect();
    batch.dispatch(&kernel, &blocks, (n as u32, &[]), groups);
    device.scheduler.submit(device.lane(None), batch).unwrap();
    let mut target = vec![MaybeUninit::uninit(); n * size];
    device.download(None, &buffers[operands.len()], 0, &mut target).unwrap();
    // SAFETY: a download fills its target.
    let bytes: Vec<u8> = target.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
    bytes.chunks_exact(size).map(T::of).collect()
}

/// Applies `unary_NAME` or `binary_NAME`, as the ops do.
pub fn apply<T: Element>(device: &Device, name: &str, operands: &[&[T]]) -> Vec<T> {
    let kind = if operands.len() == 1 { "unary" } else { "binary" };
    let functions = |program| with_functions(program, T::DTYPE, device.context.properties.float64);
    apply_in(device, functions, &format!("{kind}_{name}"), operands)
}

/// Distance in units of `unit`, the last place of the expected value: 0 for equal values and NaNs, infinite if one alone
/// is NaN or infinite.
pub fn distance(got: f64, want: f64, unit: f64) -> f64 {
    match got == want || got.is_nan() && want.is_nan() {
        true => 0.0,
        false if got.is_finite() && want.is_finite() => (got - want).abs() / unit,
        false => f64::INFINITY,
    }
}

/// Numbers that look random and are the same in every run, in [0, 1).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 * 2f64.powi(-53)
    }
}
