//! `--bench`: launch cost of each operation and bandwidth of the common ones, beside the built-in CPU backend's. Figures, not
//! checks: nothing of them counts for the contract or a grade.

use crate::cases::{self, OpUnderTest};
use crate::device::{Device, Handle, Prepared, words};
use crate::dtype::DType;
use crate::groups::{self, scope};
use crate::options::Options;
use crate::parent::{self, Findings};
use crate::plugin::Source;
use crate::record::{Recorder, without_notes};
use crate::run::{self, Buffers, Request};
use crate::tensor::{Placed, row_major, size};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};
use ultramarine_abi::schema::{
    self, ArgReduceAttrs, AxesAttrs, AxisAttrs, BinaryAttrs, NoAttrs, OpId, PrecisionAttrs,
    ReduceAttrs, ScanAttrs, UnaryAttrs, binary, op, reduce, unary,
};
use ultramarine_abi::{Tensor, layout};

/// The group of the child processes.
pub const GROUP: &str = "bench";
/// The key of a measured line among the properties.
const LINE: &str = "bench";
/// Elements of a large tensor: 64 MiB of float32, more than caches hold.
const MANY: i64 = 1 << 24;
/// Rows of a large matrix.
const ROWS: i64 = 1 << 12;
/// Side of the matrices of a product.
const SIDE: i64 = 1024;
/// Time that a measurement takes at least, and its repetitions.
const ENOUGH: Duration = Duration::from_millis(20);
const TIMES: usize = 3;

/// A float32 tensor of ordinary numbers.
fn tensor(shape: &[i64]) -> Placed {
    let value = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 25.0;
    let mut bytes = Vec::with_capacity(4 * size(shape));
    (0..size(shape)).for_each(|i| bytes.extend_from_slice(&value(i).to_ne_bytes()));
    let (strides, class) = (row_major(shape), layout::CONTIGUOUS);
    Placed { dtype: DType::F32, shape: shape.to_vec(), strides, offset: 0, bytes, class }
}

fn request(op: OpId, attributes: Vec<u64>, inputs: Vec<Placed>, output: Placed) -> Request {
    // Ones, as many as the operation has.
    let scalars = schema::find(op).map_or(0, |row| row.scalars.len());
    let (more, scalars) = (Vec::new(), vec![[0x3f80_0000, 0]; scalars]);
    Request { op, attributes, inputs, output, more, scalars, donated: None }
}

/// A large request, with its name; of a product the operations that it takes.
type Large = (&'static str, Request, Option<f64>);

/// The large requests whose names are wanted.
fn large<'a>(wanted: &'a dyn Fn(&str) -> bool) -> impl Iterator<Item = Large> + 'a {
    type Make = fn() -> Request;
    fn line() -> Placed {
        tensor(&[MANY])
    }
    fn rows() -> Placed {
        tensor(&[ROWS, MANY / ROWS])
    }
    fn sum(axes: u64, kept: &[i64], input: Placed) -> Request {
        let attributes = words(&ReduceAttrs::new(reduce::SUM, axes));
        request(op::REDUCE, attributes, vec![input], tensor(kept))
    }
    let all: [(&str, Make); 13] = [
        ("copy", || request(op::COPY, words(&NoAttrs::new()), vec![line()], line())),
        ("copy, transposed", || {
            let mut flipped = rows();
            (flipped.strides, flipped.class) = (vec![1, ROWS], layout::STRIDED);
            request(op::COPY, words(&NoAttrs::new()), vec![flipped], rows())
        }),
        ("fill", || request(op::FILL, words(&NoAttrs::new()), Vec::new(), line())),
        ("unary exp", || {
            request(op::UNARY, words(&UnaryAttrs::new(unary::EXP)), vec![line()], line())
        }),
        ("binary add", || {
            request(op::BINARY, words(&BinaryAttrs::new(binary::ADD)), vec![line(), line()], line())
        }),
        ("reduce sum", || sum(1, &[1], line())),
        ("reduce sum, rows", || sum(2, &[ROWS, 1], rows())),
        ("reduce sum, columns", || sum(1, &[1, MANY / ROWS], rows())),
        ("arg_reduce, rows", || {
            let mut indices = tensor(&[ROWS, 1]);
            indices.dtype = DType::U32;
            request(op::ARG_REDUCE, words(&ArgReduceAttrs::new(1, 1)), vec![rows()], indices)
        }),
        ("scan sum, rows", || {
            let attributes = words(&ScanAttrs::new(reduce::SUM, 1, 0, 1));
            request(op::SCAN, attributes, vec![rows()], rows())
        }),
        ("sort, rows", || request(op::SORT, words(&AxisAttrs::new(1)), vec![rows()], rows())),
        ("softmax, rows", || {
            request(op::SOFTMAX, words(&AxesAttrs::new(0, 2)), vec![rows()], rows())
        }),
        ("matmul 1024", || {
            let square = || tensor(&[SIDE, SIDE]);
            request(op::MATMUL, words(&PrecisionAttrs::new(0)), vec![square(), square()], square())
        }),
    ];
    let operations =
        |name: &str| (name == "matmul 1024").then_some(2.0 * (SIDE * SIDE * SIDE) as f64);
    let chosen = all.into_iter().filter(|(name, _)| wanted(name));
    chosen.map(move |(name, make)| (name, make(), operations(name)))
}

/// Bytes of a request's tensors.
fn request_bytes(request: &Request) -> usize {
    request.inputs.iter().chain(request.outputs()).map(|t| t.bytes.len()).sum()
}

/// Seconds that a submit takes, of many one after another. `None`: the backend has no kernel for it.
fn seconds(device: &Device<'_>, stream: Handle, request: &Request) -> Result<Option<f64>, String> {
    let Prepared::Plan(plan) = run::prepare(device, request)? else { return Ok(None) };
    let mut buffers = Buffers::new(device);
    let mut tensors: Vec<Tensor> = Vec::new();
    for placed in request.inputs.iter().chain(request.outputs()) {
        let buffer = buffers.upload(stream, placed)?;
        tensors.push(run::tensor(device, placed, buffer));
    }
    let (inputs, outputs) = tensors.split_at(request.inputs.len());
    let command = run::command(&mut buffers, plan, request, (inputs, outputs))?;
    let timed = |n: usize| -> Result<Duration, String> {
        let start = Instant::now();
        for _ in 0..n {
            device.submit(stream, std::slice::from_ref(&command))?;
        }
        device.synchronize(stream)?;
        Ok(start.elapsed())
    };
    // Kernels may be compiled at their first use. What takes long is not repeated.
    timed(1)?;
    let times = if timed(1)? > 10 * ENOUGH { 1 } else { TIMES };
    let mut n = 1;
    while n < 1 << 14 && timed(n)? < ENOUGH {
        n *= 2;
    }
    let mut best = f64::INFINITY;
    for _ in 0..times {
        best = best.min(timed(n)?.as_secs_f64() / n as f64);
    }
    device.release(plan);
    Ok(Some(best))
}

/// In a child: measures a device. A line is written at once, so that a crash leaves those before it.
pub fn measure(recorder: &mut Recorder, options: &Options) {
    without_notes();
    groups::with_device(recorder, options, GROUP, |recorder, device| {
        let stream = match device.stream() {
            Ok(stream) => stream,
            Err(failure) => {
                recorder.check("bench/stream", || Err(failure.to_string()));
                return;
            }
        };
        // Of the kit's cases those of these dtypes; their results in all others take long.
        let mut scope = scope(device, false);
        scope.storage &= [DType::F32, DType::U32].iter().fold(0, |mask, d| mask | 1 << d.0);
        let wanted = |name: &str| options.check.as_ref().is_none_or(|c| name.contains(c.as_str()));
        let mut line = |name: &str, kind: &str, value: Result<Option<f64>, String>| match value {
            Ok(value) => {
                recorder.property(LINE, json!({ "name": name, "kind": kind, "value": value }));
            }
            Err(text) => recorder.check(&format!("bench/{name}"), || Err(text)),
        };
        for id in 0..op::NAMES.len() as u32 {
            let Some(row) = schema::find(id) else { continue };
            if !wanted(row.name) {
                continue;
            }
            let tests = cases::of(row, &scope).unwrap_or_default();
            // The common codes first, so that two backends are measured by the same one; then the smallest case.
            let rank = |t: &OpUnderTest| !["", "exp", "add", "sum"].contains(&t.code.as_str());
            let mut requests: Vec<(bool, usize, Request)> = tests
                .into_iter()
                .filter(|t| t.dtype == DType::F32 || t.dtype == DType::U32)
                .flat_map(|t| {
                    let rank = rank(&t);
                    t.cases.into_iter().filter(|c| c.plain).map(move |c| (rank, c.request))
                })
                .map(|(rank, request)| (rank, request_bytes(&request), request))
                .collect();
            requests.sort_by_key(|r| (r.0, r.1));
            let native = |r: &&(bool, usize, Request)| matches!(run::prepare(device, &r.2), Ok(Prepared::Plan(plan)) if { device.release(plan); true });
            let Some(first) = requests.first() else { continue };
            let (_, _, request) = requests.iter().find(native).unwrap_or(first);
            let launch = seconds(device, stream, request).map(|s| s.map(|s| s * 1e6));
            line(row.name, "launch", launch);
        }
        for (name, request, operations) in large(&wanted) {
            let work = operations.unwrap_or(request_bytes(&request) as f64);
            let kind = if operations.is_some() { "product" } else { "bandwidth" };
            let rate = seconds(device, stream, &request).map(|s| s.map(|s| work / s / 1e9));
            line(name, kind, rate);
        }
        device.destroy_stream(stream);
    });
}

/// Measures the backend and the built-in CPU one, one after another. Returns the table and what was found.
pub fn run(options: &Options) -> Result<(String, Findings), String> {
    let one = |source: Source| {
        // Alone: other children would take its processors.
        let options = Options { source, jobs: Some(1), ..options.clone() };
        parent::run(&options, &[GROUP])
    };
    let own = one(options.source.clone())?;
    let cpu = match options.source {
        Source::Builtin => None,
        Source::File(_) => Some(one(Source::Builtin)?),
    };
    Ok((table(options, &own, cpu.as_ref()), own))
}

/// The measured lines of a child.
fn lines(findings: &Findings) -> impl Iterator<Item = &Value> {
    findings.properties.iter().filter(|p| p.0 == LINE).map(|p| &p.1)
}

fn table(options: &Options, own: &Findings, cpu: Option<&Findings>) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "figures of {}, beside the built-in CPU backend's", options.source);
    for (kind, title) in [
        ("launch", "one small command of many, microseconds"),
        ("bandwidth", "float32 tensors of 64 MiB, GB/s read and written"),
        ("product", "float32 product, GFLOP/s"),
    ] {
        if !lines(own).any(|l| l["kind"] == kind) {
            continue;
        }
        let _ = writeln!(out, "\n{title:52} {:>10} {:>10} {:>7}", "this", "CPU", "ratio");
        for line in lines(own).filter(|l| l["kind"] == kind) {
            let name = line["name"].as_str().unwrap_or_default();
            let other = cpu.and_then(|cpu| {
                lines(cpu).find(|l| l["kind"] == kind && l["name"] == line["name"])
            });
            let (own, other) = (line["value"].as_f64(), other.and_then(|l| l["value"].as_f64()));
            let show = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.2}"));
            let ratio = own.zip(other).map(|(a, b)| a / b);
            let _ = writeln!(
                out,
                "  {name:50} {:>10} {:>10} {:>7}",
                show(own),
                show(other),
                show(ratio)
            );
        }
    }
    let _ = writeln!(out, "\n-: no kernel, the host runs it by others or on the CPU");
    out
}
