//! SCAN: running sums, products and extremes along an axis.

use super::elementwise::with_functions;
use super::reduce::limits;
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, Work};
use crate::memory::Block;
use crate::program::Deferred;
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{self, ScanAttrs, reduce};

const SCAN: &str = include_str!("../../kernels/scan.wgsl");

/// The kernels that use workgroups.
const GROUPED: &str = include_str!("../../kernels/scan_group.wgsl");

/// Minimum number of elements of a chunk that one invocation scans: on CPUs, and on GPUs.
const CHUNK: [u64; 2] = [1024, 128];
/// Invocations of a workgroup, and elements of its tiles.
const GROUP: u32 = 256;
const TILE: u64 = 2048;
/// Number of adjacent lanes from which one invocation per lane reads memory contiguously.
const SIDE: u32 = 32;

/// The kernels for chunks: their totals, the carry into each, and the results.
struct Kernels {
    totals: Deferred,
    carry: Deferred,
    results: Deferred,
}

struct Scan {
    /// Kernels with one invocation per chunk.
    single: Kernels,
    /// Kernels with one workgroup per chunk.
    grouped: Kernels,
    axis: usize,
    reverse: bool,
    inclusive: bool,
    /// Bytes of a running value.
    running: u64,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ScanAttrs = request.attributes()?;
    let (input, out) = (request.input(0)?, request.output(0)?);
    let row = schema::find(request.op).and_then(|row| row.code(attributes.op));
    let fits = |row: &&schema::CodeSchema| row.dtypes & input.dtype.bit() != 0;
    let known = row.filter(fits).is_some() && input.dtype == out.dtype;
    if !known {
        return Err(request.unknown(Some(attributes.op)));
    }
    request.computes(&[input.dtype])?;
    let axis = attributes.axis as usize;
    if axis >= input.ndim {
        return Err(Failure::invalid(format!("axis {axis} of {}", input.ndim)));
    }
    let dtype = input.dtype;
    let items = items(attributes.op, dtype);
    let register = dtype.register();
    let program = |tensors: &[Tensor]| {
        let program = Program::new(tensors).array("totals", register);
        with_functions(program, dtype, request.device.context.properties.float64)
            .library(SCAN)
            .item(&items)
    };
    let single =
        |tensors: &[Tensor], call: &str| Deferred::new(program(tensors).body(call).build());
    let grouped = |tensors: &[Tensor], part: Part| {
        let program = program(tensors).item(&part.text(register));
        Deferred::new(program.group_body(GROUP, "scan_group(g, local);").build())
    };
    let (a, out) = (Tensor { name: "a", dtype }, Tensor { name: "out", dtype });
    let scan = Scan {
        single: Kernels {
            totals: single(&[a], "scan_totals(i);"),
            carry: single(&[], "scan_carry(i);"),
            results: single(&[a, out], "scan_lanes(i);"),
        },
        grouped: Kernels {
            totals: grouped(&[a], Part::Totals),
            carry: grouped(&[], Part::Carry),
            results: grouped(&[a, out], Part::Results),
        },
        axis,
        reverse: attributes.reverse != 0,
        inclusive: attributes.inclusive != 0,
        running: dtype.bytes().max(4),
    };
    // Compiling the usual kernel now reports errors early.
    let properties = &request.device.context.properties;
    let usual = if properties.gpu_kernels { &scan.grouped } else { &scan.single };
    usual.results.get(&request.device.programs)?;
    Ok(Box::new(scan))
}

/// A kernel of `scan_group.wgsl`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Totals,
    Carry,
    Results,
}

impl Part {
    /// Its source for values in a register type.
    fn text(self, register: &str) -> String {
        let of = |chunk: &str| {
            format!(
                "let lanes = word(1u);\nlet row = g / lanes;\nlet lane = g - row * lanes;\n\
                 let chunk = {chunk};\nlet place = locate2(8u, lane);\nlet step = word(5u);\n\
                 var tile = chunk * word(3u);\n\
                 let end = tile + min(word(3u), word(2u) - tile);\n"
            )
        };
        let along = "load_a(place.x + (tile + e) * step)";
        let total = "totals[g + (tile + e) * word(1u)]";
        let results = |inclusive: &str, store: &str| {
            format!(
                "results(local, mine, carry, has, {inclusive});\nworkgroupBarrier();\n\
                 for (var e = local; e < count; e += 256u) {{ {store} }}"
            )
        };
        let line = "line[e + e / 8u]";
        let [setup, before, load, results, after] = match self {
            Self::Totals => {
                let after = "if (local == 0u) { totals[chunk * lanes + lane] = carry; }";
                let chunk = of("word(4u) - 1u - row");
                [chunk, String::new(), along.to_owned(), String::new(), after.to_owned()]
            }
            // One lane per workgroup. Its totals are replaced by the carries.
            Self::Carry => [
                "var tile = 0u;\nlet end = word(4u);".to_owned(),
                String::new(),
                total.to_owned(),
                results("false", &format!("{total} = {line};")),
                String::new(),
            ],
            Self::Results => [
                format!("{}let out_step = word(6u);", of("row")),
                "if (chunk != 0u) { carry = carry_of(lane, chunk, local); has = true; }".to_owned(),
                along.to_owned(),
                results(
                    "word(7u) != 0u",
                    &format!("store_out(place.y + (tile + e) * out_step, {line});"),
                ),
                String::new(),
            ],
        };
        let text = GROUPED
            .replace("BRING", &bring(register))
            .replace("SUM", &sum())
            .replace("NAME", "scan_group")
            .replace("SETUP", &setup)
            .replace("BEFORE", &before)
            .replace("LOAD", &load)
            .replace("RESULTS", &results)
            .replace("AFTER", &after)
            .replace("REGISTER", register);
        format!(
            "var<workgroup> line: array<{register}, 2304>;\n\
             var<workgroup> sums: array<{register}, 512>;\n{text}"
        )
    }
}

/// Loads a tile into shared memory. For a whole tile, all loads come before the first store.
fn bring(register: &str) -> String {
    let each = "for (var e = local; e < count; e += 256u) { line[e + e / 8u] = LOAD; }\n";
    let [mut loads, mut stores] = [const { String::new() }; 2];
    for k in 0..TILE as u32 / GROUP {
        let e = format!("let e = local + {}u;", k * GROUP);
        _ = writeln!(loads, "var v{k}: {register};\n{{ {e} v{k} = LOAD; }}");
        _ = writeln!(stores, "{{ {e} line[e + e / 8u] = v{k}; }}");
    }
    format!("if (count == {TILE}u) {{\n{loads}{stores}}} else {{\n{each}}}\n")
}

/// The sum of an invocation's 8 elements, in their order.
fn sum() -> String {
    let mut text = String::new();
    for k in 0..TILE as u32 / GROUP {
        _ = writeln!(text, "let v{k} = line[local * 9u + {k}u];");
    }
    text += "sum = v0;\n";
    for k in 1..TILE as u32 / GROUP {
        _ = writeln!(text, "sum = next_of(sum, v{k});");
    }
    text
}

/// The neutral value and the step of a code. For extremes, NaN is kept, except with complex numbers. Among equal values,
/// the maximum is the later one.
fn items(op: u32, dtype: Dtype) -> String {
    let register = dtype.register();
    let nan = |x: &str| match dtype {
        Dtype::Float64 => format!("isnan64({x}) || "),
        _ if dtype.is_real() => format!("isnan32({x}) || "),
        _ => String::new(),
    };
    let less = match dtype {
        Dtype::Complex64 => "less_complex(value, running)",
        _ => "value < running",
    };
    let (low, high) = match dtype {
        Dtype::Complex64 => {
            ("vec2<f32>(-inf32(), -inf32())".to_owned(), "vec2<f32>(inf32(), inf32())".to_owned())
        }
        _ => limits(dtype),
    };
    let one = match dtype {
        Dtype::Complex64 => "vec2<f32>(1.0, 0.0)".to_owned(),
        _ => format!("{register}(1)"),
    };
    let (start, next) = match op {
        // Sums and products of bool are computed with numbers, which are then converted to bool.
        reduce::SUM if dtype == Dtype::Bool => ("0u".to_owned(), "running | value".to_owned()),
        reduce::PROD if dtype == Dtype::Bool => ("1u".to_owned(), "running & value".to_owned()),
        reduce::SUM => (format!("{register}()"), "running + value".to_owned()),
        reduce::PROD if dtype == Dtype::Complex64 => (
            one,
            "vec2<f32>(running.x * value.x - running.y * value.y, running.x * value.y + running.y * value.x)"
                .to_owned(),
        ),
        reduce::PROD => (one, "running * value".to_owned()),
        reduce::LOGADDEXP => {
            let start = match dtype {
                Dtype::Complex64 => "vec2<f32>(-inf32(), 0.0)".to_owned(),
                _ => low,
            };
            (start, "binary_logaddexp(running, value)".to_owned())
        }
        reduce::MIN => (high, format!("select(running, value, {}{less})", nan("value"))),
        _ => (low, format!("select(value, running, {}{less})", nan("running"))),
    };
    format!(
        "fn start_of() -> {register} {{ return {start}; }}\n\
         fn next_of(running: {register}, value: {register}) -> {register} {{ return {next}; }}"
    )
}

/// How a command's lanes are divided.
struct Lanes {
    axes: Axes<2>,
    lanes: u32,
    length: u32,
    chunk: u32,
    chunks: u32,
    steps: [i64; 2],
    /// True for one workgroup per chunk.
    grouped: bool,
}

impl Scan {
    fn cut(&self, job: &Job<'_>) -> Result<Lanes> {
        let (input, out) = (job.input(0)?, job.output(0)?);
        let (axis, n) = (self.axis, input.shape[self.axis]);
        let steps = [input.strides[axis], out.strides[axis]];
        let mut offsets = [input.offset, out.offset];
        if self.reverse {
            offsets = [0, 1].map(|k| offsets[k] + (n - 1) * steps[k]);
        }
        let others = (0..input.shape.len()).filter(|i| *i != axis);
        let others = others.map(|i| (input.shape[i], [input.strides[i], out.strides[i]]));
        let axes = Axes::join(offsets, others);
        let lanes = axes.elements()?;
        let length = crate::launch::count([n])?;
        let properties = &job.device.context.properties;
        let step = |strides: Option<i64>| strides.map_or(i64::MAX, i64::abs);
        let across = step(axes.list.last().map(|(_, [stride, _])| *stride));
        let grouped = properties.gpu_kernels && (steps[0].abs() <= across || lanes < SIDE);
        let chunk = match grouped {
            true => {
                let groups = properties.parallelism() * 2 / u64::from(GROUP);
                let tiles = u64::from(length).div_ceil(TILE);
                TILE * tiles.div_ceil(groups.div_ceil(lanes.into()).min(tiles))
            }
            false => {
                let least = CHUNK[usize::from(properties.gpu_kernels)];
                let wanted = properties.parallelism().div_ceil(lanes.into());
                let most = u64::from(length).div_ceil(least);
                let chunk = u64::from(length).div_ceil(wanted.min(most).max(1));
                chunk.min(properties.iterations.into())
            }
        };
        let chunks = u64::from(length).div_ceil(chunk) as u32;
        let steps = if self.reverse { steps.map(|step| -step) } else { steps };
        let chunk = chunk.min(u64::from(u32::MAX)) as u32;
        Ok(Lanes { axes, lanes, length, chunk, chunks, steps, grouped })
    }
}

impl Work for Scan {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let cut = self.cut(job)?;
        Ok(match cut.chunks {
            1 => 0,
            n => u64::from(n) * u64::from(cut.lanes) * self.running,
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let cut = self.cut(job)?;
        let (a, out) = (&job.input(0)?.block, &job.output(0)?.block);
        let steps = cut.steps.map(|step| step as u32);
        let inclusive = u32::from(self.inclusive);
        let mut words =
            vec![cut.lanes, cut.length, cut.chunk, cut.chunks, steps[0], steps[1], inclusive];
        cut.axes.words(&mut words);
        let items = crate::launch::count([cut.lanes.into(), cut.chunks.into()])?;
        let programs = &job.device.programs;
        let kernels = if cut.grouped { &self.grouped } else { &self.single };
        let each = |kernel: &Deferred, blocks: &[&Arc<Block>], grouped: bool, items: u32| {
            let kernel = kernel.get(programs)?;
            match grouped {
                true => job.launch_groups(&kernel, blocks, items, &words),
                false => job.launch(&kernel, blocks, items, &words),
            }
        };
        if cut.chunks == 1 {
            // The totals are not accessed.
            return each(&kernels.results, &[a, out, out], cut.grouped, items);
        }
        let totals = job.scratch()?;
        each(&kernels.totals, &[a, &totals], cut.grouped, items)?;
        // Workgroups themselves add the totals before their chunk.
        if !cut.grouped {
            // If a lane has many totals, a workgroup adds them.
            let many = job.device.context.properties.gpu_kernels && cut.chunks > SIDE;
            let carry = if many { &self.grouped.carry } else { &self.single.carry };
            each(carry, &[&totals], many, cut.lanes)?;
        }
        each(&kernels.results, &[a, out, &totals], cut.grouped, items)
    }
}
