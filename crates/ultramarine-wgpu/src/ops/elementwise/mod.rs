//! UNARY and BINARY: a function of the library for each code and kind of dtypes, in a kernel of its own.

mod functions;

pub use functions::with_functions;

use crate::launch::{Axes, Job, OpRequest, Walk, Work};
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Plain, Result};
use ultramarine_abi::schema::{self, BinaryAttrs, CodeSchema, Output, UnaryAttrs, op};

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
        true => code_of::<BinaryAttrs>(request, |attributes| attributes.op)?,
        false => code_of::<UnaryAttrs>(request, |attributes| attributes.op)?,
    };
    let (dtype, out) = (request.input(0)?.dtype, request.output(0)?.dtype);
    if request.inputs.iter().any(|input| input.dtype != dtype) {
        return Err(Failure::invalid("binary ops take two inputs of one dtype"));
    }
    let row = schema::find(request.op).ok_or_else(|| request.unknown(None))?;
    if code.dtypes & dtype.bit() == 0 || row.output_of(Some(code), dtype as usize) != out.bit() {
        return Err(request.unknown(Some(code.code)));
    }
    request.computes(&[dtype])?;

    let mut tensors = vec![Tensor { name: "a", dtype }];
    if binary {
        tensors.push(Tensor { name: "b", dtype });
    }
    tensors.push(Tensor { name: "out", dtype: out });
    let program = with_functions(Program::new(&tensors), dtype);
    let (kind, operands) = match binary {
        true => ("binary", "load_a(at.x), load_b(at.y)"),
        false => ("unary", "load_a(at.x)"),
    };
    let function = format!("{kind}_{}", code.name);
    if !program.has(&function) {
        return Err(request.unknown(Some(code.code)));
    }
    let value = format!("{function}({operands})");
    let value = match code.output {
        Output::Bool => format!("select(0u, 1u, {value})"),
        _ => value,
    };
    let body = match binary {
        true => format!("store_out(at.z, {value});"),
        false => format!("store_out(at.y, {value});"),
    };
    let walk = Walk::new(request.device, program, (tensors.len(), 0), &body)?;
    Ok(Box::new(Elementwise { walk, binary }))
}

/// The code of a request's attributes, as the schema has it.
fn code_of<A: Plain>(
    request: &OpRequest<'_>,
    code: impl Fn(&A) -> u32,
) -> Result<&'static CodeSchema> {
    let code = code(&request.attributes::<A>()?);
    let row = schema::find(request.op).and_then(|row| row.code(code));
    row.ok_or_else(|| Failure::unsupported(format!("code {code} is unknown here")))
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
