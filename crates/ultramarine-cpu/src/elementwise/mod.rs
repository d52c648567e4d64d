//! Elementwise functions over contiguous tiles. UNARY, BINARY, SELECT and conversions are programs of a single such
//! function, prepared and run by `fused`.
//!
//! [`lookup`] finds the function of an operation for a dtype and an instruction-set level; [`ultramarine_abi::schema`]
//! defines the operations. Every function is purely elementwise: the bits of a result depend only on the operands, not
//! on the element's position in the tile or the tile's size. Fused programs and single operations therefore agree.
//!
//! * `loops`: the loop around every op, compiled per level;
//! * `float`, `int`, `boolean`, `complex`, `half`: which ops a dtype has;
//! * `cast`, `select`: conversions and `a ? b : c`;
//! * `exp32`, `log32`, ...: float32 functions that vectorise; `float64`: those of float64; `remainder`: of both;
//! * `complex64_lanes`: complex64 in lanes of float64; `complex64_math`: the others, and special values.

mod boolean;
mod cast;
mod complex;
mod complex64_lanes;
pub(crate) mod complex64_math;
mod erf32;
pub(crate) mod exp32;
mod float;
pub(crate) mod float64;
pub(crate) mod half;
mod int;
mod log32;
mod loops;
pub mod pair;
mod poly;
mod pow32;
mod remainder;
mod select;
mod trig32;

pub(crate) use float64::exp as exp64;

use crate::{dtype::DType, level::Level};
use ultramarine_abi::schema::{binary, unary};

/// Computes `n` elements: `dst[i] = op(a[i], b[i], c[i])`. Operands that the op
/// does not have are ignored.
///
/// # Safety
/// `n >= 1`. The operands the op has and `dst` are contiguous, valid for `n`
/// elements of their dtypes and aligned for them. `dst` may equal an operand of
/// the same element size; it overlaps none otherwise. The machine has the level
/// that the function was looked up for.
pub type TileFn = unsafe fn(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize);

/// An elementwise op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOp {
    /// A code of [`unary`].
    Unary(u32),
    /// A code of [`binary`]; both operands of one dtype.
    Binary(u32),
    /// `a ? b : c`; `a` is bool.
    Select,
    /// Conversion to this dtype.
    Cast(DType),
}

/// The function for `op` on operands of `dtype` (for [`TileOp::Select`]: of `b`
/// and `c`), or `None` where the op is not defined for the dtype.
pub fn lookup(level: Level, op: TileOp, dtype: DType) -> Option<TileFn> {
    match op {
        TileOp::Unary(code) => match dtype {
            DType::Bool => boolean::unary(level, code),
            DType::F32 => float::unary_f32(level, code),
            DType::F64 => float::unary_f64(level, code),
            DType::F16 | DType::BF16 => half::unary(level, code, dtype),
            DType::C64 => complex::unary(level, code),
            _ => int::unary(level, code, dtype),
        },
        TileOp::Binary(code) => match dtype {
            DType::Bool => boolean::binary(level, code),
            DType::F32 => float::binary_f32(level, code),
            DType::F64 => float::binary_f64(level, code),
            DType::F16 | DType::BF16 => half::binary(level, code, dtype),
            DType::C64 => complex::binary(level, code),
            _ => int::binary(level, code, dtype),
        },
        TileOp::Select => Some(select::function(level, dtype.size())),
        TileOp::Cast(to) => cast::function(level, dtype, to),
    }
}

/// The dtype of the result of `op` on operands of `dtype`.
pub fn result_dtype(op: TileOp, dtype: DType) -> DType {
    match op {
        TileOp::Unary(code) => match code {
            unary::LOGICAL_NOT | unary::ISNAN | unary::ISINF | unary::ISFINITE => DType::Bool,
            unary::REAL | unary::IMAG | unary::ABS if dtype == DType::C64 => DType::F32,
            _ => dtype,
        },
        TileOp::Binary(code) => match code {
            binary::EQUAL..=binary::LOGICAL_OR | binary::EQUAL_NAN => DType::Bool,
            _ => dtype,
        },
        TileOp::Select => dtype,
        TileOp::Cast(to) => to,
    }
}
