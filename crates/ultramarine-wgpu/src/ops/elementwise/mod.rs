//! UNARY and BINARY: there is a kernel for each code and combination of dtypes, which calls a function
//! of the library.

mod functions;

pub use functions::{Function, Functions, function_of, narrowed, with_functions};

use crate::launch::{Axes, Job, OpRequest, Walk, Work};
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{BinaryAttrs, UnaryAttrs, op};

struct Elementwise {
    walk: Walk,
    binary: bool,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let binary = match request.op {
        op::UNARY => false,
        op::BINARY => true,
        _ => return Err(request.unknown(None)),
    };
    request.elementwise(if binary { 2 } else { 1 })?;
    let code = match binary {
        true => request.attributes::<BinaryAttrs>()?.op,
        false => request.attributes::<UnaryAttrs>()?.op,
    };
    let (dtype, out) = (request.input(0)?.dtype, request.output(0)?.dtype);
    if request.inputs.iter().any(|input| input.dtype != dtype) {
        return Err(Failure::invalid("binary ops take two inputs of one dtype"));
    }
    let float64 = request.device.context.properties.float64;
    let unknown = || request.unknown(Some(code));
    let function = function_of(request.op, code, dtype).ok_or_else(unknown)?;
    if function.output != out || !Functions::of(dtype, float64).has(&function.name) {
        return Err(unknown());
    }
    request.computes(&[dtype])?;

    let mut tensors = vec![Tensor { name: "a", dtype }];
    if binary {
        tensors.push(Tensor { name: "b", dtype });
    }
    tensors.push(Tensor { name: "out", dtype: out });
    let program = with_functions(Program::new(&[]), dtype, float64);
    let operands = if binary { "x0, x1" } else { "x0" };
    let value = match (format!("{}({operands})", function.name), function.is_test) {
        (value, true) => format!("select(0u, 1u, {value})"),
        (value, false) => value,
    };
    let walk = Walk::new(request.device, program, (&tensors, 0), &value)?;
    Ok(Box::new(Elementwise { walk, binary }))
}

impl Work for Elementwise {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (a, out) = (job.input(0)?, job.output(0)?);
        let sizes = out.shape.iter().enumerate();
        if !self.binary {
            let axes = sizes.map(|(i, n)| (*n, [a.strides[i], out.strides[i]]));
            let axes = Axes::join([a.offset, out.offset], axes);
            return job.walk(&self.walk, &[&a.block, &out.block], &axes, &[]);
        }
        let b = job.input(1)?;
        let axes = sizes.map(|(i, n)| (*n, [a.strides[i], b.strides[i], out.strides[i]]));
        let axes = Axes::join([a.offset, b.offset, out.offset], axes);
        job.walk(&self.walk, &[&a.block, &b.block, &out.block], &axes, &[])
    }
}
