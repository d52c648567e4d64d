//! The families of operations, with a file or folder for each. `prepare` finds the operation's
//! family here and gets its `Work`; the kernels are in `kernels/`, in the same families.

pub mod copy;
pub mod create;
pub mod elementwise;
pub mod fused;
pub mod index;
pub mod matmul;
pub mod native;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod select;
pub mod sort;
mod units;

use crate::launch::{Device, OpRequest, Plan, Work};
use ultramarine_abi::helper::{Request, Result};
use ultramarine_abi::schema::{self, Family};

/// Makes a plan, or fails with the reason.
pub fn plan(device: &Device, request: &Request<'_>) -> Result<Plan> {
    device.context.usable()?;
    let request = OpRequest::of(device, request)?;
    let work = prepare(&request)?;
    let op = schema::find(request.op).map_or("an op", |row| row.name);
    let dtype = request.inputs.first().or(request.outputs.first()).map_or("", |d| d.dtype.name());
    Ok(Plan::new(format!("{op} of {dtype}"), work))
}

/// The work of an operation's plan, made by the module of its family.
fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match schema::find(request.op).map(|row| row.family) {
        Some(Family::Copy) => copy::prepare(request),
        Some(Family::Create) => create::prepare(request),
        Some(Family::Elementwise) => elementwise::prepare(request),
        Some(Family::Reduce) => reduce::prepare(request),
        Some(Family::ArgReduce) => reduce::prepare_arg(request),
        Some(Family::Scan) => scan::prepare(request),
        Some(Family::Matmul) => matmul::prepare(request),
        Some(Family::Index) => index::prepare(request),
        Some(Family::Sort) => sort::prepare(request),
        Some(Family::Random) => random::prepare(request),
        Some(Family::Select) => select::prepare(request),
        Some(Family::Quantized) => native::quantized::prepare(request),
        Some(Family::Nn) => native::prepare_nn(request),
        _ => Err(request.unknown(None)),
    }
}
