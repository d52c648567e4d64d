//! `--bench`: the launch cost of each operation, and the bandwidth of the common ones, compared
//! with the built-in CPU backend. These are measurements and not checks: they affect neither
//! conformance nor a grade.

use crate::cases::{self, OpUnderTest};
use crate::device::{Device, Handle, Prepared, words};
use crate::dtype::DType;
use crate::groups::{self, scope};
use crate::options::Options;
use crate::parent::{self, Findings};
use crate::plugin::Source;
use crate::record::{Recorder, without_notes};
use crate::report;
use crate::run::{self, Buffers, Request};
use crate::tensor::{Placed, row_major, size};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use ultramarine_abi::schema::{
    self, ArgReduceAttrs, AxesAttrs, AxisAttrs, BinaryAttrs, NoAttrs, OpId, PrecisionAttrs,
    ReduceAttrs, ScanAttrs, UnaryAttrs, binary, op, reduce, unary,
};
use ultramarine_abi::{Tensor, layout};

/// The group of the child processes.
pub const GROUP: &str = "bench";
/// The key of measured lines among the properties.
const LINE: &str = "bench";
/// Elements of a large tensor: 64 MiB of float32, more than caches hold.
const MANY: i64 = 1 << 24;
/// Rows of a large matrix.
const ROWS: i64 = 1 << 12;
/// Side of the matrices of a product.
const SIDE: i64 = 1024;
/// The shortest time of a measurement, and the number of its repetitions.
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
    // Scalars of value 1, as many as the operation has.
    let scalars = schema::find(op).map_or(0, |row| row.scalars.len());
    let (more, scalars) = (Vec::new(), vec![[0x3f80_0000, 0]; scalars]);
    Request { op, attributes, inputs, output, more, scalars, donated: None }
}

fn flat() -> Placed {
    tensor(&[MANY])
}

fn rows() -> Placed {
    tensor(&[ROWS, MANY / ROWS])
}

fn sum(axes: u64, kept: &[i64], input: Placed) -> Request {
    let attributes = words(&ReduceAttrs::new(reduce::SUM, axes));
    request(op::REDUCE, attributes, vec![input], tensor(kept))
}

/// A large request's name, and the function that makes it.
type Large = (&'static str, fn() -> Request);

const LARGE: [Large; 13] = [
    ("copy", || request(op::COPY, words(&NoAttrs::new()), vec![flat()], flat())),
    ("copy, transposed", || {
        let mut flipped = rows();
        (flipped.strides, flipped.class) = (vec![1, ROWS], layout::STRIDED);
        request(op::COPY, words(&NoAttrs::new()), vec![flipped], rows())
    }),
    ("fill", || request(op::FILL, words(&NoAttrs::new()), Vec::new(), flat())),
    ("unary exp", || request(op::UNARY, words(&UnaryAttrs::new(unary::EXP)), vec![flat()], flat())),
    ("binary add", || {
        request(op::BINARY, words(&BinaryAttrs::new(binary::ADD)), vec![flat(), flat()], flat())
    }),
    ("reduce sum", || sum(1, &[1], flat())),
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
    ("softmax, rows", || request(op::SOFTMAX, words(&AxesAttrs::new(0, 2)), vec![rows()], rows())),
    ("matmul 1024", || {
        let square = || tensor(&[SIDE, SIDE]);
        request(op::MATMUL, words(&PrecisionAttrs::new(0)), vec![square(), square()], square())
    }),
];

/// Bytes of a request's tensors.
fn request_bytes(request: &Request) -> usize {
    request.inputs.iter().chain(request.outputs()).map(|t| t.bytes.len()).sum()
}

/// Returns the seconds per submit, measured over many submits. `None` if the backend has no kernel
/// for the request.
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
    // Kernels may be compiled at their first use, so run once before measuring. Requests that take
    // long are not repeated.
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

/// In a child process: measures a device. Each line is written at once, so that earlier lines
/// survive a crash.
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
        // Of the kit's cases, use only those of these dtypes: computing the reference results for
        // all dtypes takes long.
        let mut scope = scope(device, false);
        scope.storage &= [DType::F32, DType::U32].iter().fold(0, |mask, d| mask | 1 << d.0);
        for id in 0..op::NAMES.len() as u32 {
            let Some(row) = schema::find(id) else { continue };
            line(recorder, options, row.name, "launch", || {
                let Some(request) = small(device, &scope, row) else { return Ok(None) };
                Ok(seconds(device, stream, &request)?.map(|s| s * 1e6))
            });
        }
        for (name, make) in LARGE {
            let operations = (name == "matmul 1024").then_some(2.0 * (SIDE * SIDE * SIDE) as f64);
            let kind = if operations.is_some() { "product" } else { "bandwidth" };
            line(recorder, options, name, kind, || {
                let request = make();
                let work = operations.unwrap_or(request_bytes(&request) as f64);
                Ok(seconds(device, stream, &request)?.map(|s| work / s / 1e9))
            });
        }
        device.destroy_stream(stream);
    });
}

/// Measures a line if it is selected, once the parent asks for it.
fn line(
    recorder: &mut Recorder,
    options: &Options,
    name: &str,
    kind: &str,
    measured: impl FnOnce() -> Result<Option<f64>, String>,
) {
    if options.check.as_ref().is_some_and(|c| !name.contains(c.as_str())) {
        return recorder.left_out(name);
    }
    // The other backend is measured in between. Without a parent process, stop.
    if !std::io::stdin().read_line(&mut String::new()).is_ok_and(|n| n > 0) {
        std::process::exit(0);
    }
    match measured() {
        Ok(value) => recorder.property(LINE, json!({ "name": name, "kind": kind, "value": value })),
        Err(text) => recorder.check(&format!("bench/{name}"), || Err(text)),
    }
}

/// Returns the small request that measures an operation: a case of the kit for which the device has
/// a kernel, if there is one.
fn small(device: &Device<'_>, scope: &cases::Scope, row: &schema::OpSchema) -> Option<Request> {
    let tests = cases::of(row, scope).unwrap_or_default();
    // Prefer the common codes, so that two backends are measured with the same code; then prefer
    // the smallest case.
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
    let is_native = |request: &Request| match run::prepare(device, request) {
        Ok(Prepared::Plan(plan)) => {
            device.release(plan);
            true
        }
        _ => false,
    };
    let native = requests.iter().position(|r| is_native(&r.2)).unwrap_or(0);
    (native < requests.len()).then(|| requests.swap_remove(native).2)
}

/// Measures the backend and the built-in CPU backend alternately, line by line, and prints each
/// line as soon as it is complete.
pub fn run(options: &Options) -> Result<Findings, String> {
    let directory = parent::scratch()?;
    let mut own = Meter::start(options, &options.source, &directory.0.join("own"))?;
    let mut cpu = match options.source {
        Source::Builtin => None,
        Source::File(_) => Some(Meter::start(options, &Source::Builtin, &directory.0.join("cpu"))?),
    };
    let mut findings = Findings::default();
    println!("figures of {}, beside the built-in CPU backend's", options.source);
    let mut last = None;
    while let Some(line) = own.next(&mut findings)? {
        // A failure of the built-in backend does not count as a failure of the tested one.
        let other = cpu.as_mut().map(|c| c.next(&mut Findings::default())).transpose()?.flatten();
        let title = TITLES.iter().find(|t| line["kind"] == t.0).map_or("", |t| t.1);
        if last.replace(title) != Some(title) {
            println!("\n{title:52} {:>10} {:>10} {:>7}", "this", "CPU", "ratio");
        }
        let name = line["name"].as_str().unwrap_or_default();
        let other = other.filter(|o| o["name"] == line["name"] && o["kind"] == line["kind"]);
        let (own, other) = (line["value"].as_f64(), other.and_then(|l| l["value"].as_f64()));
        // Show two significant digits.
        let digits = |v: f64| (1.0 - v.log10().floor()).clamp(2.0, 8.0) as usize;
        let show = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.0$}", digits(v)));
        let ratio = own.zip(other).map(|(a, b)| a / b);
        println!("  {name:50} {:>10} {:>10} {:>7}", show(own), show(other), show(ratio));
    }
    if last.is_none() && !findings.failed() {
        return Err(report::nothing_selected(options, &own.left_out));
    }
    println!("\n-: no kernel, the host runs it by others or on the CPU");
    Ok(findings)
}

/// Kinds of lines, with their titles.
const TITLES: [(&str, &str); 3] = [
    ("launch", "one small command of many, microseconds"),
    ("bandwidth", "float32 tensors of 64 MiB, GB/s read and written"),
    ("product", "float32 product, GFLOP/s"),
];

/// A child process that measures the next line when it is asked to.
struct Meter {
    child: Child,
    output: PathBuf,
    /// Bytes of the output that were read.
    read: usize,
    limit: Duration,
    ended: bool,
    left_out: Vec<String>,
}

impl Meter {
    fn start(options: &Options, source: &Source, output: &Path) -> Result<Self, String> {
        std::fs::write(output, "").map_err(|e| format!("{}: {e}", output.display()))?;
        let mut command = parent::child_command(options, GROUP, output)?;
        match source {
            // The built-in backend has one device.
            Source::Builtin => command.args(["--builtin", "--device", "0"]),
            Source::File(path) => command.arg("--").arg(path),
        };
        let child = command.stdin(Stdio::piped()).spawn();
        let child = child.map_err(|e| format!("cannot start a child process: {e}"))?;
        let (output, limit) = (output.to_owned(), options.limit);
        Ok(Meter { child, output, read: 0, limit, ended: false, left_out: Vec::new() })
    }

    /// Returns the next line; `None` if there are no more. Failures before it are added to the
    /// findings.
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Value>, String> {
        let start = Instant::now();
        let mut asked = false;
        while !self.ended {
            if !asked && let Some(stdin) = &mut self.child.stdin {
                // Ignore the error: a child that has ended is noticed below.
                let _ = stdin.write_all(b"\n");
                asked = true;
            }
            let ended =
                self.child.try_wait().map_err(|e| format!("cannot wait for a child: {e}"))?;
            let text = std::fs::read_to_string(&self.output).unwrap_or_default();
            while let Some(end) = text[self.read..].find('\n') {
                let line = &text[self.read..self.read + end];
                self.read += end + 1;
                let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
                if value["fact"] == LINE {
                    return Ok(Some(value["value"].clone()));
                } else if let Some(name) = value["end"].as_str() {
                    let text = value["text"].as_str().unwrap_or_default();
                    findings.add(GROUP, name, value["result"].as_str().unwrap_or("fail"), text);
                    asked = false;
                } else if let Some(name) = value["left out"].as_str() {
                    self.left_out.push(name.to_owned());
                } else if value["done"].is_boolean() {
                    self.ended = true;
                }
            }
            if self.ended {
                break;
            }
            if let Some(status) = ended {
                self.ended = true;
                let text = format!("the process {}", parent::ending(status));
                findings.add(GROUP, "bench/run", "fail", &text);
            } else if start.elapsed() > self.limit {
                self.ended = true;
                let text =
                    format!("a line took more than {} s (--time-limit)", self.limit.as_secs());
                findings.add(GROUP, "bench/run", "fail", &text);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(None)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
