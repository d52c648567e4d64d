//! MATMUL.

use crate::dtype::Dtype;
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;
use ultramarine_abi::status;

const MATMUL: &str = include_str!("../../kernels/matmul.wgsl");

/// Rows and columns of an invocation.
const SIDE: i64 = 4;

struct Matmul(Arc<Kernel>);

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    if request.op != op::MATMUL {
        return Err(request.unknown(None));
    }
    request.elementwise(2)?;
    let (a, b, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    if a.dtype != b.dtype || a.dtype != out.dtype || out.ndim < 2 {
        return Err(Failure::invalid(
            "matmul has two inputs and one output of one dtype and of two dimensions at least",
        ));
    }
    if a.dtype == Dtype::Bool {
        return Err(Failure::unsupported("bool has no products of matrices"));
    }
    // The precision that may be left is not: products are exact to float32's rounding.
    request.computes(&[a.dtype])?;
    let dtype = a.dtype;
    let tensors = ["a", "b", "out"].map(|name| Tensor { name, dtype });
    let program = Program::new(&tensors).library(MATMUL).item(&parts(dtype)).body("block(i);");
    Ok(Box::new(Matmul(request.device.programs.get(program.build())?)))
}

/// The vectors of a dtype.
fn parts(dtype: Dtype) -> String {
    let register = dtype.register();
    if dtype == Dtype::Complex64 {
        let mut text = "struct Parts { re: vec4<f32>, im: vec4<f32> }\n\
             fn gathered(x: vec2<f32>, y: vec2<f32>, z: vec2<f32>, w: vec2<f32>) -> Parts {\n\
             return Parts(vec4<f32>(x.x, y.x, z.x, w.x), vec4<f32>(x.y, y.y, z.y, w.y));\n}\n\
             fn added(s: Parts, a: vec2<f32>, b: Parts) -> Parts {\n\
             return Parts(s.re + (a.x * b.re - a.y * b.im), s.im + (a.x * b.im + a.y * b.re));\n}\n"
            .to_owned();
        for (i, part) in ["x", "y", "z", "w"].into_iter().enumerate() {
            text += &format!(
                "fn part{i}(s: Parts) -> vec2<f32> {{ return vec2<f32>(s.re.{part}, s.im.{part}); }}\n"
            );
        }
        return text;
    }
    let mut text = format!(
        "alias Parts = vec4<{register}>;\n\
         fn gathered(x: {register}, y: {register}, z: {register}, w: {register}) -> Parts {{\n\
         return Parts(x, y, z, w);\n}}\n\
         fn added(s: Parts, a: {register}, b: Parts) -> Parts {{ return s + a * b; }}\n"
    );
    for (i, part) in ["x", "y", "z", "w"].into_iter().enumerate() {
        text += &format!("fn part{i}(s: Parts) -> {register} {{ return s.{part}; }}\n");
    }
    text
}

impl Work for Matmul {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (a, b, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let batch = out.shape.len() - 2;
        let axes = (0..batch).map(|i| (out.shape[i], [a.strides[i], b.strides[i], out.strides[i]]));
        let axes = Axes::join([a.offset, b.offset, out.offset], axes);
        let (m, n, k) = (out.shape[batch], out.shape[batch + 1], a.shape[batch + 1]);
        let most = job.device.context.properties.iterations;
        if k > most.into() {
            let text = format!("products of rows of {k} elements, of which the driver adds {most}");
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        }
        let (rows, columns) = ((m + SIDE - 1) / SIDE, (n + SIDE - 1) / SIDE);
        let items = count([axes.elements()?.into(), rows, columns])?;
        let mut words: Vec<u32> = [rows, columns, m, n, k].map(|n| n as u32).into();
        for view in [a, b, out] {
            words.extend(view.strides[batch..].iter().map(|step| *step as u32));
        }
        axes.words(&mut words);
        job.launch(&self.0, &[&a.block, &b.block, &out.block], items, &words)
    }
}
