//! SELECT: chooses elements of one of two tensors; elements are only moved.

use crate::dtype::Dtype;
use crate::launch::{Axes, Job, OpRequest, Walk, Work};
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};

struct Select(Walk);

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(3)?;
    let dtype = request.output(0)?.dtype;
    let [condition, x, y] = [0, 1, 2].map(|i| request.inputs[i].dtype);
    if condition != Dtype::Bool || x != dtype || y != dtype {
        return Err(Failure::invalid("select takes a bool and two values of the output's dtype"));
    }
    let dtype = dtype.word();
    let tensors = [
        Tensor { name: "c", dtype: Dtype::Bool },
        Tensor { name: "x", dtype },
        Tensor { name: "y", dtype },
        Tensor { name: "out", dtype },
    ];
    let value = "select(x2, x1, x0 != 0u)";
    Ok(Box::new(Select(Walk::new(request.device, Program::new(&[]), (&tensors, 0), value)?)))
}

impl Work for Select {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let [c, x, y] = [job.input(0)?, job.input(1)?, job.input(2)?];
        let out = job.output(0)?;
        let strides = |i: usize| [c, x, y, out].map(|view| view.strides[i]);
        let axes = out.shape.iter().enumerate().map(|(i, n)| (*n, strides(i)));
        let axes = Axes::join([c, x, y, out].map(|view| view.offset), axes);
        job.walk(&self.0, &[&c.block, &x.block, &y.block, &out.block], &axes, &[])
    }
}
