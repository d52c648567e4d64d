//! ROPE, with any strides.

use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Device, Forms, Job, Once, OpRequest, View, Work, places};
use crate::ops::copy::Copy;
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::RopeAttrs;

/// Number of words before the layout: the distances between the elements of a pair, in x and in the output, and 1 for the
/// inverse rotation.
const WORDS: u32 = 3;
/// Rotates a pair. Every product is rounded.
const ROTATE: &str = "let left = R(load_x(at2));
let right = R(load_x(at2 + word(1u)));
let c = load_cos(at0);
let s = select(load_sin(at1), -load_sin(at1), word(3u) != 0u);
store_out(at3, left * c - right * s);
store_out(at3 + word(2u), left * s + right * c);";

struct Rope {
    kernels: Forms<Kernel>,
    dtype: Dtype,
    /// Moves the elements after the pairs.
    rest: Copy,
    pairs: i64,
    traditional: bool,
    inverse: bool,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(3)?;
    let attributes: RopeAttrs = request.attributes()?;
    let dtype = request.output(0)?.dtype;
    let table = angles(dtype);
    let dtypes: Vec<Dtype> = request.inputs.iter().map(|desc| desc.dtype).collect();
    if !dtype.is_real() || dtypes != [dtype, table, table] {
        let text =
            "rope is of a floating dtype, by angles of float64 for float64 and else of float32";
        return Err(Failure::unsupported(text));
    }
    if request.output(0)?.ndim == 0 || attributes.pairs == 0 {
        return Err(Failure::invalid("rope rotates one pair of the last axis at least"));
    }
    request.computes(&[dtype])?;
    let rope = Rope {
        kernels: Forms::default(),
        dtype,
        rest: Copy::new(request.device, dtype, dtype)?,
        pairs: attributes.pairs.into(),
        traditional: attributes.traditional != 0,
        inverse: attributes.inverse != 0,
    };
    // Compiling now reports errors early.
    rope.kernel(request.device, 1)?;
    Ok(Box::new(rope))
}

/// The dtype of angles: for float16 and bfloat16 it is float32.
fn angles(dtype: Dtype) -> Dtype {
    if dtype.is_half() { Dtype::Float32 } else { dtype }
}

impl Rope {
    fn kernel(&self, device: &Device, axes: usize) -> Result<Arc<Kernel>> {
        self.kernels.get(axes, |axes| {
            let (dtype, table) = (self.dtype, angles(self.dtype));
            let tensors = [("cos", table), ("sin", table), ("x", dtype), ("out", dtype)];
            let tensors = tensors.map(|(name, dtype)| Tensor { name, dtype });
            let (once, found) = places(&format!("{}u", WORDS + 1), (4, 4), axes);
            let program = Program::new(&tensors).item(&format!("alias R = {};", dtype.register()));
            let program = program.prologue(&Once::lets(&once)).body(&(found + ROTATE));
            device.programs.get(program.build())
        })
    }
}

impl Work for Rope {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (x, cos, sin, out) = (job.input(0)?, job.input(1)?, job.input(2)?, job.output(0)?);
        let last = out.shape.len() - 1;
        let mut shape = out.shape.to_vec();
        shape[last] = self.pairs;
        if x.shape != out.shape
            || [cos, sin].iter().any(|t| t.shape != shape)
            || out.shape[last] < 2 * self.pairs
        {
            return Err(Failure::invalid("the shapes of rope do not fit"));
        }
        let every = |d: usize| if d == last && self.traditional { 2 } else { 1 };
        let axes = shape.iter().enumerate().map(|(d, n)| {
            let of_x = [x, out].map(|view| view.strides[d] * every(d));
            (*n, [cos.strides[d], sin.strides[d], of_x[0], of_x[1]])
        });
        let axes = Axes::join([cos.offset, sin.offset, x.offset, out.offset], axes);
        let between = if self.traditional { 1 } else { self.pairs };
        let apart = [x, out].map(|view| (view.strides[last] * between) as u32);
        let mut words = vec![apart[0], apart[1], self.inverse.into()];
        axes.layout(&mut words);
        let kernel = self.kernel(job.device, axes.list.len())?;
        let blocks = [&cos.block, &sin.block, &x.block, &out.block];
        job.launch(&kernel, &blocks, axes.elements()?, &words)?;

        shape[last] = out.shape[last] - 2 * self.pairs;
        if shape[last] == 0 {
            return Ok(());
        }
        let [x, out] = [x, out].map(|view| part(view, &shape, 2 * self.pairs));
        self.rest.run_views(job, &x, &out)
    }
}

/// The part of a view after the first elements of the last axis.
fn part<'s>(view: &View<'s>, shape: &'s [i64], elements: i64) -> View<'s> {
    let step = view.strides.last().map_or(0, |step| step * elements);
    View { shape, offset: view.offset + step, ..view.clone() }
}
