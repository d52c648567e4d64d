//! The ops of each dtype: everything MLX accepts, and no more.

use ultramarine_abi::schema::{binary as b, unary as u};
use ultramarine_cpu::elementwise::{TileOp, lookup};
use ultramarine_cpu::{dtype::DType, level::Level};

/// Unary ops that only floating and complex types have (MLX converts integers
/// to float32 before them).
const REAL_UNARY: std::ops::RangeInclusive<u32> = u::SQRT..=u::SIGMOID;

fn unary_exists(code: u32, dtype: DType) -> bool {
    let floating = dtype.is_float();
    match dtype {
        DType::C64 => !matches!(
            code,
            u::EXPM1
                | u::ERF
                | u::ERFINV
                | u::SIGMOID
                | u::FLOOR
                | u::CEIL
                | u::TRUNC
                | u::BITWISE_INVERT
        ),
        DType::Bool if code == u::NEGATIVE => false,
        _ if REAL_UNARY.contains(&code) => floating,
        _ if code == u::BITWISE_INVERT => !floating,
        _ => true,
    }
}

fn binary_exists(code: u32, dtype: DType) -> bool {
    let floating = dtype.is_float() || dtype == DType::C64;
    match code {
        b::DIVIDE | b::LOGADDEXP => floating,
        b::ARCTAN2 => dtype.is_float(),
        b::REMAINDER => dtype != DType::C64,
        b::BITWISE_AND | b::BITWISE_OR | b::BITWISE_XOR => !floating,
        b::LEFT_SHIFT | b::RIGHT_SHIFT => dtype.is_int(),
        _ => true,
    }
}

#[test]
fn every_op_exists_where_it_should() {
    let mut wrong = Vec::new();
    for level in [Level::Baseline, Level::V3, Level::V4, Level::Amx] {
        for dtype in DType::ALL {
            for code in 0..u::NAMES.len() as u32 + 1 {
                let exists = (code as usize) < u::NAMES.len() && unary_exists(code, dtype);
                if lookup(level, TileOp::Unary(code), dtype).is_some() != exists {
                    wrong.push(format!("unary {code} of {dtype:?}, {level:?}"));
                }
            }
            for code in 0..b::NAMES.len() as u32 + 1 {
                let exists = (code as usize) < b::NAMES.len() && binary_exists(code, dtype);
                if lookup(level, TileOp::Binary(code), dtype).is_some() != exists {
                    wrong.push(format!("binary {code} of {dtype:?}, {level:?}"));
                }
            }
            assert!(lookup(level, TileOp::Select, dtype).is_some());
            for to in DType::ALL {
                assert!(lookup(level, TileOp::Cast(to), dtype).is_some());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
