//! CONVOLVE and its gradients. They are matrix products whose left factor is read directly from the input. The gradient
//! with respect to the input is also a convolution; the gradient with respect to the weight sums over positions
//! (`weight`). Convolutions with input dilation are split into convolutions without it (`geometry`). Convolutions for
//! which cuDNN is faster are left to cuDNN (`cudnn`).

mod cudnn;
mod depthwise;
mod geometry;
mod halo;
mod pack;
mod product;
mod weight;

use super::matmul::check_precision;
use super::matmul::gemm::Gemm;
use super::matmul::kernels::Addresses;
use super::matmul::library::{Library, Products, Steps};
use super::matmul::product::Product;
use super::{headers, unknown};
use crate::launch::{Axes, Dtype, Job, OpRequest, Work};
use geometry::{Convolution, pitch};
use pack::Packs;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::precision;
use ultramarine_abi::schema::{ConvolveAttrs, op};

/// The tensor that is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Output,
    Input,
    Weight,
}

/// CONVOLVE or one of its gradients.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let role = match request.op {
        op::CONVOLVE => Role::Output,
        op::CONVOLVE_INPUT => Role::Input,
        op::CONVOLVE_WEIGHT => Role::Weight,
        _ => return Err(unknown(request)),
    };
    let (a, b, c) = (request.input(0)?, request.input(1)?, request.output(0)?);
    if [a, b, c].iter().any(|t| t.ndim != 5) {
        return Err(Failure::invalid(format!(
            "a convolution of ranks {} and {} into {}: expected 5",
            a.ndim, b.ndim, c.ndim
        )));
    }
    let dtype = a.dtype;
    if dtype != b.dtype || dtype != c.dtype || !dtype.is_real() {
        return Err(Failure::unsupported(format!(
            "a convolution of {} and {}: expected one floating dtype",
            dtype.name(),
            b.dtype.name()
        )));
    }
    let ConvolveAttrs { flip, precision, .. } = request.attributes()?;
    check_precision(precision)?;
    let shortens = dtype == Dtype::Float32 && precision != precision::HIGHEST;
    let common = Common {
        role,
        flip: flip != 0,
        dtype,
        shortens,
        networks: cudnn::Networks::new(role, dtype, shortens, flip != 0),
        library: Products::new(dtype, precision).filter(|_| Library::of(request.device).is_some()),
        packs: Packs::new(dtype),
    };
    Ok(match role {
        Role::Weight => Box::new(weight::Weight::new(common)),
        Role::Output | Role::Input => Box::new(product::Forward::new(common)),
    })
}

/// The common parts of the plans.
struct Common {
    role: Role,
    flip: bool,
    dtype: Dtype,
    /// True for float32 that may be rounded to TF32.
    shortens: bool,
    networks: Option<cudnn::Networks>,
    library: Option<Products>,
    packs: Packs,
}

impl Common {
    /// Splits the command's convolution into convolutions without input dilation.
    fn phases(&self, job: &Job<'_>) -> Result<Vec<Convolution>> {
        Ok(Convolution::of(job, self.role, self.flip)?.phases())
    }

    /// cuDNN's call for a command, if cuDNN is to compute it.
    fn network(&self, job: &Job<'_>) -> Result<Option<cudnn::Call>> {
        self.networks.as_ref().map_or(Ok(None), |networks| networks.call(job))
    }

    /// The library's steps for a convolution of one tap, and the addresses of the operands. The convolution is a matrix
    /// product of positions, channels and outputs for each group.
    fn steps(&self, job: &Job<'_>, conv: &Convolution) -> Option<(Steps, Addresses)> {
        let library = self.library.as_ref()?;
        if !conv.is_worth_a_call() {
            return None;
        }
        let [xs, _, ys] = conv.shapes();
        let (x, w, y) = (conv.x.strides, conv.w.strides, conv.y.strides);
        let (rows, channels, outputs) = (conv.rows(), conv.channels, conv.outputs);
        let [of_x, of_y] = [[pitch(&conv.x, xs)?, x[5]], [pitch(&conv.y, ys)?, y[5]]];
        let ([m, n, k], [a, b, out], groups, at) = match self.role {
            Role::Weight => (
                [outputs, channels, rows],
                [[of_y[1], of_y[0]], of_x, [w[1], w[5]]],
                [y[4], x[4], w[0]],
                [conv.y.address, conv.x.address, conv.w.address],
            ),
            Role::Output | Role::Input => (
                [rows, outputs, channels],
                [of_x, [w[5], w[1]], of_y],
                [x[4], w[0], y[4]],
                [conv.x.address, conv.w.address, conv.y.address],
            ),
        };
        let [of_a, of_b, of_out] = groups.map(|step| [step]);
        let batch = Axes::join(&[conv.groups], [&of_a, &of_b, &of_out]);
        let gemm = Gemm::of(&Product { m, n, k, a, b, out, batch }, conv.bytes)?;
        Some((library.steps(job.device, gemm, at)?, at))
    }

    /// Bytes of workspace that the library needs for a convolution.
    fn library_bytes(&self, job: &Job<'_>, conv: &Convolution) -> u64 {
        self.steps(job, conv).map_or(0, |(steps, _)| steps.workspace())
    }

    /// Returns true if the library computed it.
    fn by_library(&self, job: &Job<'_>, conv: &Convolution) -> Result<bool> {
        match (&self.library, self.steps(job, conv)) {
            (Some(library), Some((steps, at))) => library.run(job, &steps, at, 0),
            _ => Ok(false),
        }
    }

    /// Bytes of a tile's row that are loaded at a time; this value was fastest on an H100.
    fn chunk(&self) -> i64 {
        if self.dtype.is_half() { 128 } else { 64 }
    }

    /// Bytes of a sum.
    fn sum_bytes(&self) -> u64 {
        self.dtype.bytes().max(4)
    }
}

/// A division of work into parts of several units each; no part is empty.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parts {
    /// Units per part.
    each: i64,
    count: i64,
}

impl Parts {
    /// Divides `all` units into about `wanted` parts, each a multiple of `least` units.
    fn of(all: i64, wanted: i64, least: i64) -> Self {
        let most = all / least;
        let wanted = wanted.min(most).max(1);
        let each = ((all + wanted - 1) / wanted + least - 1) / least * least;
        Self { each, count: (all + each - 1) / each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all() {
        for (all, wanted, least) in [(1, 5, 8), (100, 3, 8), (100, 1000, 8), (64, 8, 8), (5, 1, 1)]
        {
            let parts = Parts::of(all, wanted, least);
            assert!(parts.each * parts.count >= all && parts.each * (parts.count - 1) < all);
            assert!(parts.count <= wanted && parts.each % least == 0, "{parts:?}");
        }
    }
}
