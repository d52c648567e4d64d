//! The families of operations, with a file or folder for each. `prepare` finds the operation's
//! family here and gets its `Work`; the kernels are in `kernels/`, in the same families.

pub mod arg_reduce;
pub mod conv;
pub mod copy;
pub mod create;
pub mod cudnn;
pub mod elementwise;
pub mod fft;
pub mod fused;
pub mod index;
pub mod linalg;
pub mod matmul;
pub mod nn;
pub mod quantized;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod select;
pub mod sort;

use crate::launch::{Device, OpRequest, Plan, Work};
use ultramarine_abi::helper::{Failure, Request, Result};
use ultramarine_abi::schema::{self, Family};

/// Maximum number of instructions of a fused program.
pub const FUSED_INSTRUCTIONS: u32 = fused::INSTRUCTIONS as u32;
/// Maximum number of inputs of a fused program.
pub const FUSED_INPUTS: u32 = fused::INPUTS as u32;

/// Headers of `kernels/`.
pub mod headers {
    /// Dtypes: storage, arithmetic, conversions.
    pub const NUMBER: &str = include_str!("../../kernels/number.cuh");
    /// Tensor cores.
    pub const MMA: &str = include_str!("../../kernels/mma.cuh");
    /// Tensor cores driven by warpgroups; it comes after `MMA`.
    pub const WGMMA: &str = include_str!("../../kernels/wgmma.cuh");
    /// Walks over tensors.
    pub const WALK: &str = include_str!("../../kernels/walk.cuh");
}

/// Makes a plan, or fails with the reason. The context is current.
pub fn plan(device: &Device, request: &Request<'_>) -> Result<Plan> {
    let request = OpRequest::of(device, request)?;
    let work = prepare(&request)?;
    let op = schema::find(request.op).map_or("an op", |row| row.name);
    let dtype = request.inputs.first().or(request.outputs.first()).map_or("", |d| d.dtype.name());
    Ok(Plan::new(format!("{op} of {dtype}"), work))
}

/// The work of an operation's plan, made by the module of its family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match schema::find(request.op).map(|row| row.family) {
        Some(Family::Copy) => copy::prepare(request),
        Some(Family::Create) => create::prepare(request),
        Some(Family::Elementwise) => elementwise::prepare(request),
        Some(Family::Select) => select::prepare(request),
        Some(Family::Reduce) => reduce::prepare(request),
        Some(Family::ArgReduce) => arg_reduce::prepare(request),
        Some(Family::Scan) => scan::prepare(request),
        Some(Family::Sort) => sort::prepare(request),
        Some(Family::Index) => index::prepare(request),
        Some(Family::Matmul) => matmul::prepare(request),
        Some(Family::Conv) => conv::prepare(request),
        Some(Family::Random) => random::prepare(request),
        Some(Family::Nn) => nn::prepare(request),
        Some(Family::Quantized) => quantized::prepare(request),
        Some(Family::Fft) => fft::prepare(request),
        Some(Family::Linalg) => linalg::prepare(request),
        None => Err(unknown(request)),
    }
}

/// The error for an operation without a kernel.
pub fn unknown(request: &OpRequest<'_>) -> Failure {
    request.unknown(None)
}
