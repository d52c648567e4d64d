//! The codes and dtypes of the schema that hosts request from a device.

use crate::dtype::{DType, Kind};
use ultramarine_abi::schema::{self, OpId, binary, op, reduce, scatter, unary};

/// Classes of dtypes.
const B: u8 = 1;
const U: u8 = 2;
const I: u8 = 4;
const F: u8 = 8;
const C: u8 = 16;

fn class(dtype: DType) -> u8 {
    match dtype.kind() {
        Kind::Bool => B,
        Kind::Unsigned => U,
        Kind::Signed => I,
        Kind::Float => F,
        Kind::Complex => C,
    }
}

/// Returns true if hosts request the function in this dtype. The schema defines it for more dtypes.
fn unary_takes(code: u32, dtype: DType) -> bool {
    let classes = match code {
        unary::ABS => I | F | C,
        unary::NEGATIVE | unary::SIGN | unary::SQUARE => U | I | F | C,
        unary::EXPM1 | unary::ERF | unary::ERFINV | unary::SIGMOID => F,
        unary::FLOOR | unary::CEIL | unary::TRUNC => F,
        unary::LOGICAL_NOT => B,
        unary::BITWISE_INVERT => U | I,
        unary::CONJUGATE | unary::REAL | unary::IMAG => C,
        _ => F | C,
    };
    classes & class(dtype) != 0
}

/// As [`unary_takes`].
fn binary_takes(code: u32, dtype: DType) -> bool {
    let classes = match code {
        binary::ADD | binary::MULTIPLY | binary::MAXIMUM | binary::MINIMUM => B | U | I | F | C,
        binary::SUBTRACT | binary::FLOOR_DIVIDE | binary::POWER => U | I | F | C,
        binary::DIVIDE | binary::LOGADDEXP | binary::EQUAL_NAN => F | C,
        binary::REMAINDER => U | I | F,
        binary::ARCTAN2 => F,
        binary::LOGICAL_AND | binary::LOGICAL_OR => B,
        binary::BITWISE_AND | binary::BITWISE_OR | binary::BITWISE_XOR => B | U | I,
        binary::LEFT_SHIFT | binary::RIGHT_SHIFT => U | I,
        _ => B | U | I | F | C,
    };
    classes & class(dtype) != 0
}

/// As [`unary_takes`]. Sums and products of integers are requested in 32 and 64 bits only, because
/// hosts widen narrower integers.
fn reduce_takes(code: u32, dtype: DType) -> bool {
    match code {
        reduce::ALL | reduce::ANY => dtype == DType::BOOL,
        reduce::SUM | reduce::PROD => {
            dtype.is_float() || dtype.is_complex() || dtype.is_int() && dtype.bits() >= 32
        }
        reduce::MIN | reduce::MAX => class(dtype) & (U | I | F) != 0,
        _ => false,
    }
}

/// As [`unary_takes`].
fn scan_takes(code: u32, dtype: DType) -> bool {
    match code {
        reduce::SUM | reduce::PROD => class(dtype) & (U | I | F | C) != 0,
        reduce::MIN | reduce::MAX => class(dtype) & (U | I | F) != 0,
        reduce::LOGADDEXP => dtype.is_float(),
        _ => false,
    }
}

/// As [`unary_takes`].
fn scatter_takes(code: u32, dtype: DType) -> bool {
    match code {
        scatter::SET => true,
        scatter::SUM | scatter::PROD => class(dtype) & (U | I | F | C) != 0,
        _ => class(dtype) & (U | I | F) != 0,
    }
}

/// As [`unary_takes`], for families without codes.
fn family_takes(family: u32, dtype: DType) -> bool {
    match family {
        op::ARANGE => class(dtype) & (U | I | F) != 0,
        op::MATMUL => dtype.is_float() || dtype.is_complex(),
        op::RANDOM_BITS => matches!(dtype, DType::U8 | DType::U16 | DType::U32),
        op::SORT | op::ARG_SORT | op::ARG_REDUCE => class(dtype) & (B | U | I | F) != 0,
        _ => true,
    }
}

/// The schema's row of a code.
pub fn code_row(family: OpId, code: u32) -> Option<&'static schema::CodeSchema> {
    schema::find(family)?.code(code)
}

/// True if the schema defines the op, with that code, for a main dtype.
pub fn is_defined(family: OpId, code: Option<u32>, dtype: DType) -> bool {
    let Some(row) = schema::find(family) else { return false };
    let code = match code {
        None => None,
        Some(code) => match row.code(code) {
            None => return false,
            found => found,
        },
    };
    dtype.in_mask(row.dtypes_of(code))
}

/// The tolerance of an op's results, in units of the last place; see
/// [`schema::tolerance`].
pub fn ulps(family: OpId, code: Option<u32>) -> f64 {
    match code {
        Some(code) => code_row(family, code).map_or(0.0, |row| row.ulps),
        None => schema::find(family).map_or(0.0, |row| row.ulps),
    }
}

/// Returns the grade for which an op counts: `basic`, `complete`, or `optional`. Ops that hosts
/// never request, such as the absolute value of a bool, are optional.
pub fn need(family: OpId, code: Option<u32>, dtype: DType, arithmetic: u32) -> &'static str {
    let asked = match (family, code) {
        (op::UNARY, Some(code)) => unary_takes(code, dtype),
        (op::BINARY, Some(code)) => binary_takes(code, dtype),
        (op::REDUCE, Some(code)) => reduce_takes(code, dtype),
        (op::SCAN, Some(code)) => scan_takes(code, dtype),
        (op::SCATTER | op::SCATTER_AXIS, Some(code)) => scatter_takes(code, dtype),
        _ => family_takes(family, dtype),
    };
    let grade = |g: schema::Grade| g == schema::Grade::Basic;
    let basic = schema::find(family).is_some_and(|row| grade(row.grade))
        && code.and_then(|c| code_row(family, c)).is_none_or(|row| grade(row.grade));
    let extra = schema::find(family).is_some_and(|row| row.grade == schema::Grade::Extra);
    if !asked || extra {
        "optional"
    } else if basic && dtype == DType::F32 {
        "basic"
    } else if dtype.in_mask(arithmetic) {
        "complete"
    } else {
        "optional"
    }
}
