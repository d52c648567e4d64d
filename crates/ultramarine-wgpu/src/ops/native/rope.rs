//! ROPE: any strides.

use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, View, Walk, Work};
use crate::ops::copy::Copy;
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::RopeAttrs;

/// Rotates the pair at `at` and `apart` behind it. Every product is rounded.
const ROTATE: &str = "let behind = at + vec4<u32>(0u, 0u, word(1u), word(2u));
let left = R(load_x(at.z));
let right = R(load_x(behind.z));
let c = load_cos(at.x);
let s = select(load_sin(at.y), -load_sin(at.y), word(3u) != 0u);
store_out(at.w, left * c - right * s);
store_out(behind.w, left * s + right * c);";

struct Rope {
    walk: Walk,
    /// Moves what is behind the pairs.
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
    let table = if dtype.is_half() { Dtype::Float32 } else { dtype };
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
    let tensors = [("cos", table), ("sin", table), ("x", dtype), ("out", dtype)];
    let tensors = tensors.map(|(name, dtype)| Tensor { name, dtype });
    let program = Program::new(&tensors).item(&format!("alias R = {};", dtype.register()));
    Ok(Box::new(Rope {
        walk: Walk::new(request.device, program, (4, 3), ROTATE)?,
        rest: Copy::new(request.device, dtype, dtype)?,
        pairs: attributes.pairs.into(),
        traditional: attributes.traditional != 0,
        inverse: attributes.inverse != 0,
    }))
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
        let words = [apart[0], apart[1], self.inverse.into()];
        job.walk(&self.walk, &[&cos.block, &sin.block, &x.block, &out.block], &axes, &words)?;

        shape[last] = out.shape[last] - 2 * self.pairs;
        if shape[last] == 0 {
            return Ok(());
        }
        let [x, out] = [x, out].map(|view| part(view, &shape, 2 * self.pairs));
        self.rest.run_views(job, &x, &out)
    }
}

/// The part of that shape behind so many elements of the last axis.
fn part<'s>(view: &View<'s>, shape: &'s [i64], elements: i64) -> View<'s> {
    let step = view.strides.last().map_or(0, |step| step * elements);
    View { shape, offset: view.offset + step, ..view.clone() }
}
