//! MATMUL. `choice.rs` chooses a kernel for the shape and the device; `source.rs` and `matrices.rs`
//! generate it.

mod choice;
mod matrices;
mod operand;
mod source;

use crate::context::lock;
use crate::dtype::Dtype;
use crate::launch::{Axes, Device, Job, OpRequest, View, Work, count, row_major};
use crate::ops::units::EIGHT;
use crate::program::{Deferred, Kernel};
use choice::{Choice, Limits, Method, Shape, choose};
use operand::{Matrix, Reading};
use source::{Variant, sum_of};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{PrecisionAttrs, op};

struct Matmul {
    dtype: Dtype,
    kernels: Mutex<HashMap<Variant, Arc<Kernel>>>,
    merge: Deferred,
}

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
    // The attributes are only decoded to reject values of later versions: products are exact to float32's rounding,
    // which every precision allows.
    request.attributes::<PrecisionAttrs>()?;
    request.computes(&[a.dtype])?;
    let matmul = Matmul {
        dtype: a.dtype,
        kernels: Mutex::default(),
        merge: Deferred::new(source::merge(a.dtype)),
    };
    // If there is only one kernel, compiling it now reports errors early.
    let properties = &request.device.context.properties;
    if !properties.gpu_kernels || a.dtype == Dtype::Complex64 {
        let reading = [Reading { along_k: true, vector: false }; 2];
        let variant = Variant { method: Method::Block, reading, out: a.dtype };
        matmul.kernel(request.device, variant)?;
    }
    Ok(Box::new(matmul))
}

/// A command's product, transposed if its method requires it.
struct Product {
    choice: Choice,
    variant: Variant,
    /// The batch: sizes, and strides of the matrices in the order in which they are multiplied.
    axes: Vec<(i64, [i64; 2])>,
    /// Rows and columns.
    shape: [i64; 2],
    k: i64,
    /// Strides across k and along k of both matrices.
    steps: [(i64, i64); 2],
    /// Indices of the inputs.
    inputs: [usize; 2],
    results: u64,
}

impl Matmul {
    fn kernel(&self, device: &Device, variant: Variant) -> Result<Arc<Kernel>> {
        if let Some(kernel) = lock(&self.kernels).get(&variant) {
            return Ok(kernel.clone());
        }
        let made = device.programs.get(variant.source(self.dtype))?;
        Ok(lock(&self.kernels).entry(variant).or_insert(made).clone())
    }

    fn product(&self, job: &Job<'_>) -> Result<Product> {
        let (a, b, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let batch = out.shape.len() - 2;
        let (m, n, k) = (out.shape[batch], out.shape[batch + 1], a.shape[batch + 1]);
        let products = out.shape[..batch].iter().map(|n| *n as u64).product();
        let shape = Shape { batch: products, m: m as u64, n: n as u64, k: k as u64 };
        let mut steps =
            [(a.strides[batch], a.strides[batch + 1]), (b.strides[batch + 1], b.strides[batch])];
        let mut inputs = [0, 1];
        let mut sides = [m, n];
        let mut matrices = [(m, steps[0], a), (n, steps[1], b)].map(|(side, steps, view)| Matrix {
            outer: (side, steps.0),
            inner: (k, steps.1),
            offset: view.offset,
            batch: &view.strides[..batch],
        });
        let mut limits = Limits::of(&job.device.context.properties);
        let eights = [a, b]
            .into_iter()
            .zip(&matrices)
            .all(|(view, matrix)| Reading::lies_in(matrix, EIGHT) && view.ends_with(EIGHT as u64));
        limits.along_k = Reading::of(&matrices[1]).along_k;
        if !eights {
            limits.units = [None; 2];
        }
        let choice = choose(shape, self.dtype, &limits);
        if matches!(choice.method, Method::Few { transposed: true, .. }) {
            steps.reverse();
            inputs.reverse();
            sides.reverse();
            matrices.reverse();
        }
        let reading = matrices.each_ref().map(Reading::of);
        let out_dtype = if choice.splits == 1 { self.dtype } else { sum_of(self.dtype) };
        let reading = match choice.method {
            Method::Block => [Reading { along_k: true, vector: false }; 2],
            _ => reading,
        };
        let variant = Variant { method: choice.method, reading, out: out_dtype };
        let strides = |d: usize| inputs.map(|i| job.inputs[i].strides[d]);
        Ok(Product {
            choice,
            variant,
            axes: (0..batch).map(|d| (out.shape[d], strides(d))).collect(),
            shape: sides,
            k,
            steps,
            inputs,
            results: out.len(),
        })
    }

    /// Enqueues a product into a tensor, or its splits into the workspace.
    fn multiply(&self, job: &Job<'_>, product: &Product, out: &View<'_>, apart: u64) -> Result<()> {
        let Product { choice, variant, .. } = product;
        let batch = product.axes.len();
        let mut out_steps = [out.strides[batch], out.strides[batch + 1]];
        if product.inputs == [1, 0] {
            out_steps.reverse();
        }
        let [a, b] = product.inputs.map(|i| &job.inputs[i]);
        let axes = product.axes.iter().enumerate();
        let axes = axes.map(|(d, (n, [a, b]))| (*n, [*a, *b, out.strides[d]]));
        let axes = Axes::join([a.offset, b.offset, out.offset], axes);
        let [m, n] = product.shape;
        let (row, column) = match choice.method {
            Method::Block => (4, 4),
            Method::Tile { side } => (side.into(), side.into()),
            Method::Units { tile, .. } => (tile.sides[0].into(), tile.sides[1].into()),
            Method::Few { rows, .. } if variant.reading[1].along_k => (rows.into(), 8),
            Method::Few { rows, .. } => (rows.into(), 128),
        };
        let (rows, columns) = ((m + row - 1) / row, (n + column - 1) / column);
        let products = axes.elements()?;
        let items = count([products.into(), choice.splits as i64, rows, columns])?;
        let [(a_outer, a_inner), (b_outer, b_inner)] = product.steps;
        let mut words: Vec<u32> = [rows, columns, m, n, product.k].map(|n| n as u32).into();
        words.extend([choice.length as u32, choice.splits as u32]);
        words.extend([a_outer, a_inner, b_inner, b_outer].map(|step| step as u32));
        words.extend(out_steps.map(|step| step as u32));
        words.push(apart as u32);
        axes.words(&mut words);
        let mut blocks = Vec::new();
        let vectors = variant.vectors();
        let matrices = [&a.block, &b.block].into_iter().zip(vectors);
        blocks.extend(matrices.clone().filter(|(_, vector)| !vector).map(|(block, _)| block));
        blocks.push(&out.block);
        blocks.extend(matrices.filter(|(_, vector)| *vector).map(|(block, _)| block));
        let kernel = self.kernel(job.device, *variant)?;
        match choice.method {
            Method::Block => job.launch(&kernel, &blocks, items, &words),
            _ => job.launch_groups(&kernel, &blocks, items, &words),
        }
    }
}

impl Work for Matmul {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let product = self.product(job)?;
        Ok(match product.choice.splits {
            1 => 0,
            n => n * product.results * sum_of(self.dtype).bytes(),
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let product = self.product(job)?;
        let out = job.output(0)?;
        if product.choice.splits == 1 {
            return self.multiply(job, &product, out, 0);
        }
        let strides = row_major(out.shape);
        let (block, dtype) = (job.scratch()?, sum_of(self.dtype));
        let parts =
            View { block, offset: 0, misaligned: 0, dtype, shape: out.shape, strides: &strides };
        self.multiply(job, &product, &parts, product.results)?;
        let merge = self.merge.get(&job.device.programs)?;
        // Sums are numbered with 32 bits.
        count([product.choice.splits as i64, product.results as i64])?;
        let mut words = vec![product.choice.splits as u32, product.results as u32];
        let axes = Axes::join([out.offset], out.axes().map(|(n, stride)| (n, [stride])));
        axes.words(&mut words);
        job.launch(&merge, &[&parts.block, &out.block], axes.elements()?, &words)
    }
}
