//! The interface `ultramarine.kernel/1`: users' kernels in source form.

use super::with_device;
use crate::device::{Device, Handle};
use crate::dtype::{DType, Num};
use crate::options::Options;
use crate::plugin::{Failure, Source, call};
use crate::record::{Outcome, PASSED, Recorder, Result, skip};
use crate::run::{self, Buffers};
use crate::tensor::{Array, Layout, Placed};
use serde_json::json;
use std::ffi::{CStr, CString};
use ultramarine_abi::dlpack::{DLDataType, type_code};
use ultramarine_abi::interface::kernel::{
    self, KernelArgument, KernelInfo, KernelInterface, KernelLaunch, KernelSource, argument,
};
use ultramarine_abi::{Tensor, inline_str};

/// Threads of a group.
const GROUP: u32 = 32;

/// `out[i] = a[i] * scale + b[i]` for `i < n`, in each language.
const SOURCES: [(&str, &str); 4] = [
    (
        "opencl-c",
        "__kernel void um_test(__global const float *a, __global const float *b, float scale, uint n,
                      __global float *out) {
  uint i = get_global_id(0);
  if (i < n) out[i] = a[i] * scale + b[i];
}",
    ),
    (
        "cuda-c",
        "extern \"C\" __global__ void um_test(const float *a, const float *b, float scale, unsigned int n, float *out) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * scale + b[i];
}",
    ),
    (
        "msl",
        "#include <metal_stdlib>
using namespace metal;
kernel void um_test(const device float *a [[buffer(0)]], const device float *b [[buffer(1)]],
                    constant float &scale [[buffer(2)]], constant uint &n [[buffer(3)]],
                    device float *out [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  if (i < n) out[i] = a[i] * scale + b[i];
}",
    ),
    (
        "wgsl",
        "@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<uniform> scale: f32;
@group(0) @binding(3) var<uniform> n: u32;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(32)
fn um_test(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i < n) { out[i] = a[i] * scale + b[i]; }
}",
    ),
];

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "kernels", |recorder, device| {
        let mut properties = json!(null);
        recorder.check("kernels/bad source", || bad_source(device));
        recorder.check("kernels/unknown name", || unknown_name(device));
        recorder.check("kernels/info", || info(device, &mut properties));
        recorder.check("kernels/launch", || launched(device));
        recorder.check("kernels/order on a stream", || in_order(device));
        recorder.check("kernels/order between streams", || between_streams(device));
        recorder.check("kernels/many threads", || together(device));
        recorder.property("kernel", properties);
    });
}

/// The interface's functions, on one device.
struct Kernels<'a> {
    device: &'a Device<'a>,
    table: KernelInterface,
    language: &'static str,
    source: &'static str,
}

/// A kernel, which is released when this is dropped.
struct Kernel<'a> {
    of: &'a Kernels<'a>,
    handle: Handle,
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        if let Some(release) = self.of.table.release {
            // SAFETY: a kernel of the device that no stream runs any more: launches are waited for.
            unsafe { release(self.of.device.handle, self.handle.0) };
        }
    }
}

/// The kernels to test, or the reason to skip.
fn offered<'a>(device: &'a Device<'a>) -> Result<Kernels<'a>, Result> {
    // SAFETY: the id is this interface's.
    let table = unsafe { device.interface::<KernelInterface>(kernel::INTERFACE) };
    let Some(table) = table else { return Err(skip("not offered")) };
    let named = inline_str(&device.info.kernel_languages);
    let ours = SOURCES.iter().find(|(language, _)| named.split(' ').any(|n| n == *language));
    match ours {
        Some((language, source)) => Ok(Kernels { device, table, language, source }),
        None => Err(skip(format!("the kit has no kernel in {named}"))),
    }
}

macro_rules! offered {
    ($device:expr) => {
        match offered($device) {
            Ok(kernels) => kernels,
            Err(end) => return end,
        }
    };
}

impl<'a> Kernels<'a> {
    fn compile(&'a self, code: &str, entry: &CStr) -> Result<Kernel<'a>, Failure> {
        let compile = self.table.compile.ok_or(Failure {
            call: "compile",
            code: ultramarine_abi::status::UNSUPPORTED,
            text: Some("the interface has no such function".into()),
            command: None,
        })?;
        let language = CString::new(self.language).unwrap_or_default();
        let source = KernelSource {
            size: size_of::<KernelSource>() as u32,
            n_template_arguments: 0,
            language: language.as_ptr(),
            // Not NUL-terminated: it has a length.
            source: code.as_ptr().cast(),
            source_bytes: code.len() as u64,
            entry: entry.as_ptr(),
            template_arguments: std::ptr::null(),
            options: std::ptr::null(),
        };
        let mut made = std::ptr::null_mut();
        // SAFETY: a valid source, and a place for the kernel.
        call("compile", |e| unsafe { compile(self.device.handle, &source, &mut made, e) })?;
        Ok(Kernel { of: self, handle: Handle(made) })
    }

    fn ready(&'a self) -> Result<Kernel<'a>, Failure> {
        // Bytes after the source must not be read.
        let longer = format!("{}\n#error read on", self.source);
        self.compile(&longer[..self.source.len()], c"um_test")
    }
}

impl Kernel<'_> {
    /// out = a * scale + b.
    fn launch(
        &self,
        stream: Handle,
        [a, b, out]: [&Tensor; 3],
        scale: f32,
        n: u32,
    ) -> Result<(), Failure> {
        let size = size_of::<KernelArgument>() as u32;
        let number = |code: u8| DLDataType { code, bits: 32, lanes: 1 };
        let of = |tensor: &Tensor, written: u32| KernelArgument {
            size,
            kind: argument::TENSOR,
            tensor,
            scalar: [0; 2],
            dtype: number(type_code::FLOAT),
            written,
        };
        let by_value = |bits: u32, code: u8| KernelArgument {
            size,
            kind: argument::SCALAR,
            tensor: std::ptr::null(),
            scalar: [bits as u64, 0],
            dtype: number(code),
            written: 0,
        };
        let device = self.of.device;
        let [scale, threads] =
            [by_value(scale.to_bits(), type_code::FLOAT), by_value(n, type_code::UINT)];
        let arguments = [of(a, 0), of(b, 0), scale, threads, of(out, 1)];
        let launch = KernelLaunch {
            size: size_of::<KernelLaunch>() as u32,
            n_arguments: arguments.len() as u32,
            arguments: arguments.as_ptr(),
            argument_stride: size,
            shared_bytes: 0,
            grid: [n.div_ceil(GROUP), 1, 1],
            block: [GROUP, 1, 1],
        };
        let Some(run) = self.of.table.launch else { return Ok(()) };
        // SAFETY: a live kernel, whose parameters these are, on a stream of the device.
        call("launch", |e| unsafe { run(device.handle, stream.0, self.handle.0, &launch, e) })
    }
}

/// Numbers from `from` on, somewhere in a buffer.
fn numbers(from: f64, n: i64, layout: Layout) -> Placed {
    let values: Vec<_> = (0..n).map(|i| Num::Real(from + i as f64)).collect();
    Placed::new(&mut Array::cycle(DType::F32, &[n], &values), layout)
}

/// Three buffers with numbers, and their layouts.
struct Three<'a> {
    placed: [Placed; 3],
    buffers: [crate::device::Buffer; 3],
    _held: Buffers<'a>,
}

impl<'a> Three<'a> {
    fn new(
        device: &'a Device<'a>,
        stream: Handle,
        n: i64,
        layout: Layout,
    ) -> Result<Self, Failure> {
        let mut held = Buffers::new(device);
        let placed = [1.0, 1000.0, -1.0].map(|from| numbers(from, n, layout));
        let [a, b, c] = &placed;
        let buffers = [held.upload(stream, a)?, held.upload(stream, b)?, held.upload(stream, c)?];
        Ok(Three { placed, buffers, _held: held })
    }

    fn tensor(&self, device: &Device<'_>, i: usize) -> Tensor {
        run::tensor(device, &self.placed[i], self.buffers[i])
    }

    /// Compares a buffer with what a function gives for every index.
    fn expect(
        &self,
        device: &Device<'_>,
        stream: Handle,
        which: usize,
        f: impl Fn(usize) -> f32,
    ) -> Result<()> {
        let placed = &self.placed[which];
        let mut bytes = vec![0; placed.bytes.len()];
        device.synchronize(stream)?;
        device.read(stream, self.buffers[which], 0, &mut bytes)?;
        let n = placed.shape[0] as usize;
        let first = placed.offset as usize;
        for i in 0..n {
            let at = first + 4 * i;
            let got = f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            ensure!(got == f(i), "element {i} of {n} is {got}, expected {}", f(i));
        }
        let around = |at: usize| at < first || at >= first + 4 * n;
        match (0..bytes.len()).find(|at| around(*at) && bytes[*at] != placed.bytes[*at]) {
            Some(at) => Err(format!("byte {at}, which lies around the output, was written")),
            None => Ok(()),
        }
    }
}

/// After a source with an undeclared name, the compiler's log has this name, and the next kernel
/// still compiles.
fn bad_source(device: &Device<'_>) -> Result {
    let kernels = offered!(device);
    let source = kernels.source.replace("a[i] * scale", "a[i] * nowhere_declared");
    match kernels.compile(&source, c"um_test") {
        Ok(_) => return Err("a source with an undeclared name compiles".into()),
        Err(f) => {
            let log = f.text.clone().unwrap_or_default();
            ensure!(log.contains("nowhere_declared"), "the compiler's log is missing: {f}");
        }
    }
    kernels.ready()?;
    PASSED
}

fn unknown_name(device: &Device<'_>) -> Result {
    let kernels = offered!(device);
    match kernels.compile(kernels.source, c"another_name") {
        Ok(_) => Err("a kernel that the source does not have was made".into()),
        Err(f) if f.text.is_none() => Err(format!("{f}: it does not say why")),
        Err(_) => PASSED,
    }
}

fn info(device: &Device<'_>, properties: &mut serde_json::Value) -> Result {
    let kernels = offered!(device);
    let Some(ask) = kernels.table.info else { return skip("no info") };
    let kernel = kernels.ready()?;
    let mut info = KernelInfo { size: size_of::<KernelInfo>() as u32, ..KernelInfo::default() };
    // SAFETY: a live kernel, and a struct that says its size.
    call("info", |e| unsafe { ask(device.handle, kernel.handle.0, &mut info, e) })?;
    *properties = json!({
        "language": kernels.language, "max_threads": info.max_threads,
        "thread_multiple": info.thread_multiple, "max_shared": info.max_shared,
    });
    if info.thread_multiple > 0 && info.max_threads > 0 && info.thread_multiple > info.max_threads {
        return Err(format!(
            "groups are to be multiples of {}, but have {} threads at most",
            info.thread_multiple, info.max_threads
        ));
    }
    // A host of an older contract.
    let mut short = KernelInfo { size: 8, thread_multiple: 77, ..KernelInfo::default() };
    // SAFETY: as above: it says that it has room for one number.
    call("info", |e| unsafe { ask(device.handle, kernel.handle.0, &mut short, e) })?;
    ensure!(short.thread_multiple == 77, "it wrote behind the end of a shorter struct");
    PASSED
}

/// Launches with tensors at the beginning of their buffers and inside of them, and with incomplete
/// groups.
fn launched(device: &Device<'_>) -> Result {
    let kernels = offered!(device);
    let kernel = kernels.ready()?;
    let stream = device.stream()?;
    for layout in [Layout::Contiguous, Layout::Offset] {
        for n in [1i64, 31, 32, 1000] {
            let three = Three::new(device, stream, n, layout)?;
            let [a, b, out] = [0, 1, 2].map(|i| three.tensor(device, i));
            kernel.launch(stream, [&a, &b, &out], 3.0, n as u32)?;
            let expected = |i: usize| 3.0 * (1.0 + i as f32) + 1000.0 + i as f32;
            three
                .expect(device, stream, 2, expected)
                .map_err(|e| format!("{n} elements, {layout:?}: {e}"))?;
        }
    }
    device.destroy_stream(stream);
    PASSED
}

/// Each launch sees the results of the one before.
fn in_order(device: &Device<'_>) -> Result {
    let kernels = offered!(device);
    let kernel = kernels.ready()?;
    let stream = device.stream()?;
    let three = Three::new(device, stream, 500, Layout::Contiguous)?;
    let [a, b, out] = [0, 1, 2].map(|i| three.tensor(device, i));
    kernel.launch(stream, [&a, &b, &out], 2.0, 500)?;
    kernel.launch(stream, [&out, &b, &a], 1.0, 500)?;
    kernel.launch(stream, [&a, &a, &out], 1.0, 500)?;
    // a + 2b, twice.
    let expected = |i: usize| 2.0 * (2.0 * (1.0 + i as f32) + 2.0 * (1000.0 + i as f32));
    three.expect(device, stream, 2, expected)?;
    device.destroy_stream(stream);
    PASSED
}

/// A launch that waits for an event of another stream sees the results of that stream.
fn between_streams(device: &Device<'_>) -> Result {
    let kernels = offered!(device);
    let table = &device.backend.table;
    if table.event_create.is_none() || table.event_wait_stream.is_none() {
        return skip("no events");
    }
    let kernel = kernels.ready()?;
    let (first, second) = (device.stream()?, device.stream()?);
    let event = device.event()?;
    let n = 50_000;
    let three = Three::new(device, first, n, Layout::Contiguous)?;
    let [a, b, out] = [0, 1, 2].map(|i| three.tensor(device, i));
    for round in 1..=10u64 {
        kernel.launch(first, [&a, &b, &out], 1.0, n as u32)?;
        device.record(first, event, 2 * round - 1)?;
        device.wait_stream(second, event, 2 * round - 1)?;
        // A copy.
        kernel.launch(second, [&out, &out, &a], 0.0, n as u32)?;
        device.record(second, event, 2 * round)?;
        device.wait_stream(first, event, 2 * round)?;
    }
    device.synchronize(first)?;
    let expected = |i: usize| {
        let b = 1000.0 + i as f32;
        1.0 + i as f32 + 10.0 * b
    };
    three.expect(device, second, 0, expected)?;
    device.destroy_event(event);
    device.destroy_stream(first);
    device.destroy_stream(second);
    PASSED
}

/// Several threads compile and launch kernels at the same time, and all of them launch one common
/// kernel.
fn together(device: &Device<'_>) -> Result {
    let kernels = offered!(device);
    let shared = kernels.ready()?;
    let one = |thread: usize| -> Result<()> {
        let stream = device.stream()?;
        for round in 0..5 {
            let own = kernels.ready()?;
            let n = 100 + 37 * thread as i64 + 211 * round;
            let three = Three::new(device, stream, n, Layout::Contiguous)?;
            let [a, b, out] = [0, 1, 2].map(|i| three.tensor(device, i));
            let scale = thread as f32 + 1.0;
            own.launch(stream, [&a, &b, &out], scale, n as u32)?;
            shared.launch(stream, [&out, &b, &a], scale, n as u32)?;
            let expected = |i: usize| {
                let (a, b) = (1.0 + i as f32, 1000.0 + i as f32);
                (a * scale + b) * scale + b
            };
            three.expect(device, stream, 0, expected)?;
        }
        device.destroy_stream(stream);
        Ok(())
    };
    super::threads::together(one).map(|()| Outcome::Passed)
}
