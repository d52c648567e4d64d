//! The families of operations, a file or folder each. `prepare` looks up the operation here and
//! gets its `Work`; the kernels are in `kernels/`, by the same families.

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

/// Most instructions of a fused program.
pub const FUSED_INSTRUCTIONS: u32 = fused::INSTRUCTIONS as u32;
/// Most inputs of a fused program.
pub const FUSED_INPUTS: u32 = fused::INPUTS as u32;

/// Headers of `kernels/`.
pub mod headers {
    /// Dtypes: storage, arithmetic, conversions.
    pub const NUMBER: &str = include_str!("../../kernels/number.cuh");
    /// Tensor cores.
    pub const MMA: &str = include_str!("../../kernels/mma.cuh");
    /// Tensor cores of warpgroups, behind those.
    pub const WGMMA: &str = include_str!("../../kernels/wgmma.cuh");
    /// Walking tensors.
    pub const WALK: &str = include_str!("../../kernels/walk.cuh");
}

/// Makes a plan, or says why not. The context is current.
pub fn plan(device: &Device, request: &Request<'_>) -> Result<Plan> {
    let request = OpRequest::of(device, request)?;
    let work = prepare(&request)?;
    let op = schema::find(request.op).map_or("an op", |row| row.name);
    let dtype = request.inputs.first().or(request.outputs.first()).map_or("", |d| d.dtype.name());
    Ok(Plan::new(format!("{op} of {dtype}"), work))
}

/// The work of an op's plan, which the module of its family makes.
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

/// The refusal of an operation without a kernel.
pub fn unknown(request: &OpRequest<'_>) -> Failure {
    request.unknown(None)
}
