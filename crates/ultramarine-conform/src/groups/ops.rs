//! Every op against the kit's reference.

use super::{op_name, with_device};
use crate::cases::{self, Case, OpUnderTest, Scope};
use crate::compare;
use crate::device::{Device, Handle, Prepared};
use crate::dtype::{DType, Num};
use crate::options::Options;
use crate::record::{Cell, Outcome, PASSED, Recorder, Result, skip};
use crate::run::{self, Request};
use crate::tensor::Array;
use std::sync::LazyLock;
use ultramarine_abi::schema::{self, OpSchema, op};
use ultramarine_abi::{device_flag, layout};

/// A group for each operation of the schema, named after it.
pub fn names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| schema::op::NAMES.iter().map(|name| format!("ops.{name}")).collect());
    &NAMES
}

/// The epsilon of a product with TF32's mantissa.
const REDUCED: f64 = 1.0 / 1024.0;

/// The scope of a device's cases.
pub fn scope(device: &Device<'_>, full: bool) -> Scope {
    let info = &device.info;
    Scope {
        full,
        storage: info.dtypes_storage,
        arithmetic: info.dtypes_arithmetic,
        subnormals: !device.flag(device_flag::FLUSHES_SUBNORMALS),
        product_epsilon: if device.flag(device_flag::REDUCED_PRECISION) { REDUCED } else { 0.0 },
    }
}

/// Runs the cases of an operation.
pub fn run(recorder: &mut Recorder, options: &Options, op: &OpSchema) {
    with_device(recorder, options, "ops", |recorder, device| {
        let Some(ops) = cases::of(op, &scope(device, options.full)) else {
            recorder.check("ops/cases", || Err(format!("the kit has no cases of {}", op.name)));
            return;
        };
        let stream = match device.stream() {
            Ok(stream) => stream,
            Err(failure) => {
                recorder.check("ops/stream", || Err(failure.to_string()));
                return;
            }
        };
        recorder.check(&format!("{}/attributes of a later version", op.name), || {
            later_attributes(device, &ops)
        });
        for under_test in &ops {
            one(recorder, device, stream, under_test);
        }
        device.destroy_stream(stream);
    });
}

/// A longer attribute struct whose tail is not zero asks for a new feature, also for operations
/// without attributes.
fn later_attributes(device: &Device<'_>, ops: &[OpUnderTest]) -> Result {
    let plain = ops.iter().flat_map(|o| o.cases.iter().find(|c| c.plain));
    for case in plain {
        let Prepared::Plan(plan) = run::prepare(device, &case.request)? else { continue };
        device.release(plan);
        for tail in [0, 1] {
            let mut request = case.request.clone();
            let mut bytes: Vec<u8> =
                request.attributes.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let known = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            bytes.resize(known as usize, 0);
            bytes.extend([tail, 0, 0, 0, 0, 0, 0, 0]);
            bytes[..4].copy_from_slice(&(known + 8).to_ne_bytes());
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let word = |w: &[u8]| w.try_into().map_or(0, u64::from_ne_bytes);
            request.attributes = bytes.chunks_exact(8).map(word).collect();
            let prepared = run::prepare(device, &request)?;
            if let Prepared::Plan(plan) = prepared {
                device.release(plan);
                ensure!(
                    tail == 0,
                    "{}: prepare returned OK for attributes of {} bytes whose last are not zero, expected UNSUPPORTED: \
                     read the attributes of each operation by um_read_attributes",
                    case.what,
                    known + 8
                );
            } else {
                ensure!(
                    tail != 0,
                    "{}: prepare refused attributes of {} bytes whose last are zero; without them it makes a plan",
                    case.what,
                    known + 8
                );
            }
        }
        return PASSED;
    }
    skip("refused")
}

fn one(recorder: &mut Recorder, device: &Device<'_>, stream: Handle, under_test: &OpUnderTest) {
    let family = op_name(under_test.family);
    let code =
        if under_test.code.is_empty() { String::new() } else { format!("/{}", under_test.code) };
    let name = format!("{family}{code}/{}", under_test.dtype.name());
    let mut cell = Cell {
        family: family.to_owned(),
        code: under_test.code.clone(),
        dtype: under_test.dtype.name().to_owned(),
        need: under_test.need,
        ..Cell::default()
    };
    let mut ran = false;
    recorder.check(&name, || {
        ran = true;
        let mut plans = Plans { device, all: Vec::new() };
        let mut problems = Vec::new();
        let mut short = false;
        for case in &under_test.cases {
            if let Err(text) = try_case(&mut plans, stream, under_test, case, &mut cell) {
                // A call that failed returned no values that could be wrong.
                short |= case.operands.first().is_none_or(|a| a.values.len() <= LONG)
                    || text.contains(" returned ");
                problems.push(format!("{}: {text}", case.what));
                if case.plain {
                    cell.plain = "wrong";
                }
            }
        }
        let cases = problems.len();
        let sums = under_test.family == op::REDUCE && matches!(&*under_test.code, "sum" | "prod");
        if let Some(first) = problems.first_mut().filter(|_| sums && !short) {
            first.push_str(NARROW);
        }
        match problems.into_iter().next() {
            None if cell.plain == "refused" => skip("refused"),
            None => Ok(Outcome::Passed),
            Some(first) if cases > 1 => Err(format!("{first} ({cases} cases fail)")),
            Some(first) => Err(first),
        }
    });
    if cases::PRECISIONS.iter().any(|(name, ..)| *name == cell.code) {
        // Intended roundings do not count as errors in the capability sheet.
        cell.ulp = 0.0;
    }
    if ran {
        recorder.cell(&cell);
    }
}

/// The plans of one op. A plan is valid for all sizes, so it is made only once for its
/// descriptions.
struct Plans<'a> {
    device: &'a Device<'a>,
    all: Vec<(Key, Option<Handle>, bool)>,
}

/// The key of a plan.
#[derive(PartialEq)]
struct Key {
    attributes: Vec<u64>,
    tensors: Vec<(u8, usize, u32)>,
}

impl Plans<'_> {
    /// Returns the plan, or `None` if the op is refused. The flag is true if the op needs
    /// contiguous inputs.
    fn get(&mut self, request: &Request) -> Result<(Option<Handle>, bool)> {
        let tensors = request.inputs.iter().chain(request.outputs());
        let key = Key {
            attributes: request.attributes.clone(),
            tensors: tensors.map(|t| (t.dtype.0, t.shape.len(), t.class)).collect(),
        };
        if let Some(known) = self.all.iter().find(|known| known.0 == key) {
            return Ok((known.1, known.2));
        }
        let made = match run::prepare(self.device, request)? {
            Prepared::Plan(plan) => (Some(plan), false),
            Prepared::Unsupported => (None, false),
            Prepared::NeedsContiguous => (None, true),
        };
        self.all.push((key, made.0, made.1));
        Ok(made)
    }
}

impl Drop for Plans<'_> {
    fn drop(&mut self) {
        for (_, plan, _) in self.all.drain(..) {
            if let Some(plan) = plan {
                self.device.release(plan);
            }
        }
    }
}

fn try_case(
    plans: &mut Plans<'_>,
    stream: Handle,
    under_test: &OpUnderTest,
    case: &Case,
    cell: &mut Cell,
) -> Result<()> {
    let device = plans.device;
    let (plan, needs_contiguous) = plans.get(&case.request)?;
    let strided_output = case.request.output.class != layout::CONTIGUOUS;
    let is_native = cell.plain == "native";
    let state = if case.plain { &mut cell.plain } else { &mut cell.strided };
    let Some(plan) = plan else {
        if needs_contiguous {
            ensure!(!case.plain, "NEEDS_CONTIGUOUS for inputs that are contiguous");
            // Only copies must support every layout, because the host uses them to make tensors
            // contiguous.
            if under_test.family == op::COPY && under_test.code.is_empty() {
                return Err("a copy within a dtype that NEEDS_CONTIGUOUS".into());
            }
            *state = "contiguous";
        } else if under_test.family == op::COPY && strided_output && is_native {
            return Err("a copy into strides is refused".into());
        } else {
            *state = "refused";
        }
        return Ok(());
    };
    if state.is_empty() {
        *state = "native";
    }
    if let Some(check) = &case.check {
        let got = run::submit_all(device, stream, plan, &case.request)?;
        let outputs: Vec<Array> = case
            .request
            .outputs()
            .zip(got)
            .map(|(o, values)| Array { dtype: o.dtype, shape: o.shape.clone(), values })
            .collect();
        cell.ulp = cell.ulp.max(check(&case.operands, &outputs)?);
        if must_repeat(device, under_test, case) {
            let again = run::submit_all(device, stream, plan, &case.request)?;
            let each = outputs.iter().zip(&again);
            ensure!(
                each.into_iter().all(|(a, b)| bits(a.dtype, &a.values) == bits(a.dtype, b)),
                "{VARIES}"
            );
        }
        return Ok(());
    }
    let got = run::submit(device, stream, plan, &case.request)?;
    let flushes = device.flag(device_flag::FLUSHES_SUBNORMALS);
    let (dtype, shape) = (case.request.output.dtype, &case.request.output.shape);
    let worst = compare::all(dtype, shape, &case.expected, &got, flushes, |index| {
        operands(&case.operands, index)
    })?;
    cell.ulp = cell.ulp.max(worst);
    if must_repeat(device, under_test, case) {
        let again = run::submit(device, stream, plan, &case.request)?;
        ensure!(bits(dtype, &got) == bits(dtype, &again), "{VARIES}");
    }
    Ok(())
}

/// In rows with more elements than this, rounding errors add up.
const LONG: usize = 4096;

/// The likely mistake if only long rows are wrong.
const NARROW: &str =
    "; only long rows are wrong: add up in double, or blocks of 64 and these in pairs";

const VARIES: &str = "the device says DETERMINISTIC, but a second run is not bitwise identical";

/// Returns true if a second run has to give bitwise identical results and might not.
fn must_repeat(device: &Device<'_>, under_test: &OpUnderTest, case: &Case) -> bool {
    let may_differ = schema::find(under_test.family).is_some_and(|row| !row.order.is_empty());
    may_differ && case.repeats && device.flag(device_flag::DETERMINISTIC)
}

/// Values as they lie in memory.
fn bits(dtype: DType, values: &[Num]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|v| dtype.write(*v, &mut bytes));
    bytes
}

/// The operands of an element, where operands have the output's shape.
fn operands(arrays: &[Array], index: &[i64]) -> String {
    let fits =
        |a: &&Array| a.shape.len() == index.len() && a.shape.iter().zip(index).all(|(n, i)| i < n);
    let own: Vec<String> = arrays.iter().filter(fits).map(|a| a.at(index).to_string()).collect();
    if own.len() == arrays.len() && !own.is_empty() {
        format!(" (of {})", own.join(", "))
    } else {
        String::new()
    }
}
