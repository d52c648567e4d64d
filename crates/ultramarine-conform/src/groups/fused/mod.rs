//! Fused programs: results are bitwise identical to those of single ops.

mod anchored;
mod lists;
mod random;
mod reductions;

use super::with_device;
use crate::cases::none;
use crate::device::{Device, Handle, desc, words};
use crate::dtype::{DType, Num};
use crate::options::Options;
use crate::plugin::{FUSED_PREPARE, Source, call};
use crate::record::{Outcome, PASSED, Recorder, Result, skip};
use crate::run::{self, Answer, Request};
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, edges, ordinary};
use std::ffi::c_void;
use std::time::{Duration, Instant};
use ultramarine_abi::fused::{
    self, AnchoredInterface, FusedInterface, Instruction, NO_REDUCTION, Program, family,
};
use ultramarine_abi::schema::{
    BinaryAttrs, OpId, ReduceAttrs, UnaryAttrs, binary, op, reduce, unary,
};
use ultramarine_abi::{Error, Status, TensorDesc, status};

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "fused", |recorder, device| {
        // SAFETY: the id is this interface's.
        let interface = unsafe { device.interface::<FusedInterface>(fused::INTERFACE) };
        let Some(interface) = interface else {
            recorder.check("fused", || skip("the backend has no fused programs"));
            return;
        };
        let longest = device.info.fused_max_instructions;
        recorder.check("fused/as many instructions as the device says", || {
            longest_program(device, &interface, longest)
        });
        for (name, sketch) in sketches() {
            for layout in [Layout::Contiguous, Layout::Transposed, Layout::Broadcast] {
                recorder.check(&format!("fused/{name} {}", layout.name()), || {
                    program(device, &interface, &sketch, layout)
                });
            }
        }
        for layout in Layout::STRIDED.into_iter().chain([Layout::Offset]) {
            recorder.check(&format!("fused/reductions of an operand {}", layout.name()), || {
                reductions::run(device, &interface, layout, options.full)
            });
        }
        // SAFETY: the id is this interface's.
        match unsafe { device.interface::<AnchoredInterface>(fused::ANCHORED_INTERFACE) } {
            Some(interface) => {
                for layout in [Layout::Contiguous, Layout::Transposed, Layout::Broadcast] {
                    recorder.check(&format!("fused/norm of a program {}", layout.name()), || {
                        anchored::run(device, &interface, layout, options.full)
                    });
                }
            }
            None => recorder.check("fused/norm of a program", || {
                skip("the backend has no programs with an anchor")
            }),
        }
        for seed in 0..4 {
            recorder.check(&format!("fused/list of one program's commands {seed}"), || {
                lists::run(device, &interface, seed)
            });
        }
        for seed in 0..if options.full { 40 } else { 12 } {
            recorder.check(&format!("fused/random program {seed}"), || {
                random::run(device, &interface, seed)
            });
        }
    });
}

/// A step of a program; operands count the inputs, the constants, the steps.
enum Step {
    Unary(u32, u16),
    Binary(u32, u16, u16),
    Select(u16, u16, u16),
    Cast(u16),
}

/// A program of two float32 inputs and one constant (operands 0, 1, 2).
struct Sketch {
    steps: Vec<Step>,
    /// Dtypes of the steps' results.
    dtypes: Vec<DType>,
    /// Epilogue: a sum or extreme over the last axis.
    reduce: Option<u32>,
}

fn sketches() -> Vec<(&'static str, Sketch)> {
    use Step::{Binary, Cast, Select, Unary};
    let float = DType::F32;
    let arithmetic = || vec![Binary(binary::MULTIPLY, 0, 1), Binary(binary::ADD, 3, 2)];
    vec![
        ("multiply-add", Sketch { steps: arithmetic(), dtypes: vec![float; 2], reduce: None }),
        (
            "functions",
            Sketch {
                steps: vec![
                    Unary(unary::EXP, 0),
                    Unary(unary::TANH, 1),
                    Binary(binary::DIVIDE, 3, 4),
                    Unary(unary::SQUARE, 5),
                    Binary(binary::SUBTRACT, 6, 2),
                ],
                dtypes: vec![float; 5],
                reduce: None,
            },
        ),
        (
            "choice and conversion",
            Sketch {
                steps: vec![
                    Binary(binary::LESS, 0, 1),
                    Select(3, 0, 2),
                    Cast(4),
                    Unary(unary::NEGATIVE, 5),
                    Cast(6),
                ],
                dtypes: vec![DType::BOOL, float, DType::I32, DType::I32, float],
                reduce: None,
            },
        ),
        (
            "sum of products",
            Sketch { steps: arithmetic(), dtypes: vec![float; 2], reduce: Some(reduce::SUM) },
        ),
        (
            "largest product",
            Sketch { steps: arithmetic(), dtypes: vec![float; 2], reduce: Some(reduce::MAX) },
        ),
    ]
}

/// A program as long as the device allows has to be accepted.
fn longest_program(device: &Device<'_>, interface: &FusedInterface, n: u32) -> Result {
    if n == 0 {
        // The backend offers the interface, but one of its devices may not use it.
        return skip("the device says that it takes none");
    }
    // The first negates input 0, each other the one before it.
    let mut steps = vec![Step::Unary(unary::NEGATIVE, 0)];
    steps.extend((1..n.min(1000)).map(|i| Step::Unary(unary::NEGATIVE, 2 + i as u16)));
    let dtypes = vec![DType::F32; steps.len()];
    let sketch = Sketch { steps, dtypes, reduce: None };
    match program(device, interface, &sketch, Layout::Contiguous)? {
        Outcome::Passed => PASSED,
        Outcome::Skipped(why) => Err(format!("a program of {n} instructions: {why}")),
    }
}

/// The longest compilation of a program, during which the answer is "not yet".
const PATIENCE: Duration = Duration::from_secs(120);
const SHAPE: [i64; 2] = [37, 53];
const CONSTANT: f64 = 0.625;

fn inputs(sketch: &Sketch, layout: Layout) -> Vec<(Placed, Array)> {
    let rng = &mut Rng::new(50);
    (0..2)
        .map(|i| {
            let mut values = ordinary(DType::F32, 600, rng);
            // The contract leaves conversions of infinities to integers open.
            if i == 0 && sketch.dtypes.iter().all(|d| d.is_float()) && sketch.reduce.is_none() {
                values.extend(edges(DType::F32, false));
            }
            let mut array = Array::cycle(DType::F32, &SHAPE, &values);
            (Placed::new(&mut array, layout), array)
        })
        .collect()
}

fn program(
    device: &Device<'_>,
    interface: &FusedInterface,
    sketch: &Sketch,
    layout: Layout,
) -> Result {
    let instructions: Vec<Instruction> = sketch
        .steps
        .iter()
        .zip(&sketch.dtypes)
        .map(|(step, dtype)| {
            let (family, op, a, b, c) = match *step {
                Step::Unary(op, a) => (family::UNARY, op, a, 0, 0),
                Step::Binary(op, a, b) => (family::BINARY, op, a, b, 0),
                Step::Select(a, b, c) => (family::SELECT, 0, a, b, c),
                Step::Cast(a) => (family::CAST, 0, a, 0, 0),
            };
            Instruction { family, op: op as u8, a, b, c, dtype: dtype.dl() }
        })
        .collect();
    let outputs = [2 + sketch.steps.len() as u16];
    let constants = [DType::F32.dl()];
    let made = Program {
        size: size_of::<Program>() as u32,
        reduce: sketch.reduce.unwrap_or(NO_REDUCTION),
        axes: if sketch.reduce.is_some() { 0b10 } else { 0 },
        instructions: instructions.as_ptr(),
        constants: constants.as_ptr(),
        outputs: outputs.as_ptr(),
        n_instructions: instructions.len() as u32,
        n_constants: 1,
        n_outputs: 1,
        n_inputs: 2,
    };
    let given = inputs(sketch, layout);
    let last = *sketch.dtypes.last().ok_or("a program without steps")?;
    let shape = if sketch.reduce.is_some() { vec![SHAPE[0], 1] } else { SHAPE.to_vec() };
    let output = Placed::output(last, &shape, Layout::Contiguous);
    let descs: Vec<TensorDesc> = given.iter().map(|g| desc(DType::F32, 2, g.0.class)).collect();
    let target = desc(last, 2, output.class);
    let plan = match asked(device, interface, &made, [&descs, &[target]])? {
        Ok(plan) => plan,
        Err(why) => return skip(why),
    };
    let request = Request {
        op: op::COPY,
        attributes: none(),
        inputs: given.iter().map(|g| g.0.clone()).collect(),
        output,
        more: Vec::new(),
        scalars: vec![DType::F32.scalar(Num::Real(CONSTANT))],
        donated: None,
    };
    let stream = device.stream()?;
    let together = run::submit(device, stream, plan, &request);
    device.release(plan);
    let apart = one_by_one(device, stream, sketch, given.into_iter().map(|g| g.1).collect());
    device.destroy_stream(stream);
    let (together, Some(apart)) = (together?, apart?) else {
        return skip("one of the ops is not native");
    };
    if let Some(i) = bits_differ(last, &together, &apart.values) {
        let (a, b) = (together[i], apart.values[i]);
        return Err(format!("element {i} is {a} in the program, {b} op by op"));
    }
    PASSED
}

/// Asks for a program's plan; or says why there is none.
fn asked(
    device: &Device<'_>,
    interface: &FusedInterface,
    program: &Program,
    [inputs, outputs]: [&[TensorDesc]; 2],
) -> Result<Result<Handle>> {
    let prepare = interface.prepare.ok_or("the interface has no prepare")?;
    // SAFETY: the program's lists have the lengths that it says, and outlive the call.
    patiently(|plan, e| unsafe {
        prepare(device.handle, program, inputs.as_ptr(), outputs.as_ptr(), plan, e)
    })
}

/// Asks for a plan, and again while it is being compiled. The error is the reason why there is no
/// plan.
fn patiently(
    mut prepare: impl FnMut(*mut *mut c_void, *mut *mut Error) -> Status,
) -> Result<Result<Handle>> {
    let mut plan = std::ptr::null_mut();
    let start = Instant::now();
    loop {
        match call(FUSED_PREPARE, |e| prepare(&mut plan, e)) {
            Ok(()) => return Ok(Ok(Handle(plan))),
            Err(f) if f.code == status::NOT_YET && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(f) if matches!(f.code, status::UNSUPPORTED | status::NEEDS_CONTIGUOUS) => {
                return Ok(Err(f.to_string()));
            }
            Err(f) => return Err(f.to_string()),
        }
    }
}

/// The first element that is not bitwise identical; all NaN are equal.
fn bits_differ(dtype: DType, a: &[Num], b: &[Num]) -> Option<usize> {
    let bits = |x: Num| {
        let mut bits = Vec::new();
        dtype.write(x, &mut bits);
        bits
    };
    let differ = |(a, b): (&Num, &Num)| bits(*a) != bits(*b) && !(a.is_nan() && b.is_nan());
    a.iter().zip(b).position(differ)
}

/// The program's ops as single commands; none if one is not native.
fn one_by_one(
    device: &Device<'_>,
    stream: Handle,
    sketch: &Sketch,
    mut values: Vec<Array>,
) -> Result<Option<Array>> {
    values.push(Array::cycle(DType::F32, &SHAPE, &[Num::Real(CONSTANT)]));
    for (step, dtype) in sketch.steps.iter().zip(&sketch.dtypes) {
        let (op, attributes, operands): (OpId, _, Vec<u16>) = match *step {
            Step::Unary(code, a) => (op::UNARY, words(&UnaryAttrs::new(code)), vec![a]),
            Step::Binary(code, a, b) => (op::BINARY, words(&BinaryAttrs::new(code)), vec![a, b]),
            Step::Select(a, b, c) => (op::SELECT, none(), vec![a, b, c]),
            Step::Cast(a) => (op::COPY, none(), vec![a]),
        };
        let operands = operands.iter().map(|i| values[usize::from(*i)].clone()).collect();
        match single(device, stream, (op, attributes), operands, (*dtype, SHAPE.to_vec()))? {
            Some(array) => values.push(array),
            None => return Ok(None),
        }
    }
    let Some(last) = values.pop() else { return Ok(None) };
    let Some(code) = sketch.reduce else { return Ok(Some(last)) };
    let attributes = words(&ReduceAttrs::new(code, 0b10));
    let to = (last.dtype, vec![SHAPE[0], 1]);
    single(device, stream, (op::REDUCE, attributes), vec![last], to)
}

/// One op by itself; none if it is not native.
fn single(
    device: &Device<'_>,
    stream: Handle,
    (op, attributes): (OpId, Vec<u64>),
    mut operands: Vec<Array>,
    (dtype, shape): (DType, Vec<i64>),
) -> Result<Option<Array>> {
    let request = Request {
        op,
        attributes,
        inputs: operands.iter_mut().map(|a| Placed::new(a, Layout::Contiguous)).collect(),
        output: Placed::output(dtype, &shape, Layout::Contiguous),
        more: Vec::new(),
        scalars: Vec::new(),
        donated: None,
    };
    match run::run(device, stream, &request)? {
        Answer::Values(values) => Ok(Some(Array { dtype, shape, values })),
        _ => Ok(None),
    }
}
