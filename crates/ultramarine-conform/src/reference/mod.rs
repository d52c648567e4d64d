//! Reference implementations of the contract's ops: naive loops in float64 and 128-bit integers,
//! written from the schema's text.

pub mod arg_reduce;
pub mod conv;
pub mod copy;
pub mod create;
pub mod elementwise;
pub mod fft;
pub mod grouped;
pub mod index;
mod lanes;
pub mod linalg;
pub mod matmul;
pub mod nn;
pub mod quantized;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod sort;

use crate::compare::Expected;
use crate::dtype::{DType, Num};
use ultramarine_abi::schema;

/// An expected value with a tolerance in units of the last place, measured at `at`.
pub fn expected(ulps: f64, dtype: DType, value: Num, at: f64) -> Expected {
    if !(dtype.is_float() || dtype.is_complex()) {
        return Expected::exact(value);
    }
    let at = if at.is_finite() { at } else { 0.0 };
    let allowed = schema::tolerance(ulps, dtype.0.into());
    // Rounding to nearest causes an error of up to half a unit. 16-bit floats are computed in
    // float32 and rounded again.
    let twice = if dtype.is_half() { 0.5 * DType::F32.ulp(at) } else { 0.0 };
    Expected { at, ..Expected::near(value, (allowed - 0.5).max(0.0) * dtype.ulp(at) + twice) }
}

/// Returns the dtype in which a dtype's operations are computed.
pub fn working(dtype: DType) -> DType {
    if dtype.is_half() || dtype.is_complex() { DType::F32 } else { dtype }
}
