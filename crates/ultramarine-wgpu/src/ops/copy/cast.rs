//! Conversions between dtypes, as WGSL expressions on register types.

use crate::dtype::{Dtype, Wgsl};

/// Functions for conversions.
pub const LIBRARY: &str = include_str!("../../../kernels/cast.wgsl");

/// Converts a value from one dtype to another. To bool: true unless it is zero. Integers wrap. Floats are truncated
/// towards zero; if they are out of range, the result is an arbitrary integer. If either dtype is a half dtype, the
/// conversion goes through float32.
pub fn convert(value: &str, from: Dtype, to: Dtype) -> String {
    use Dtype::*;
    if from == to {
        return value.to_owned();
    }
    if to == Bool {
        return match from {
            Complex64 => format!("nonzero_complex({value})"),
            _ => format!("select(0u, 1u, {value} != {})", zero(from)),
        };
    }
    if from == Complex64 {
        return convert(&format!("({value}).x"), Float32, to);
    }
    if to == Complex64 {
        return format!("vec2<f32>({}, 0.0)", convert(value, from, Float32));
    }
    let (source, target) = (from.register(), to.register());
    if source == target {
        return value.to_owned();
    }
    match (source, target) {
        // Integers wrap: narrow ones keep the low bits, and signed ones are sign-extended.
        ("u32", "i64") => format!("bitcast<i64>(u64({value}))"),
        // llvmpipe treats 32-bit integers as positive after the widening instruction.
        ("i32", "u64") => format!("u64_of_i32({value})"),
        ("i32", "i64") => format!("bitcast<i64>(u64_of_i32({value}))"),
        ("i64", "u32") => format!("u32(bitcast<u64>({value}))"),
        ("u64", "i32") => format!("bitcast<i32>(u32({value}))"),
        ("i64", "i32") => format!("bitcast<i32>(u32(bitcast<u64>({value})))"),
        ("i64", "u64") | ("i32", "u32") | ("u32", "i32") | ("u64", "i64") => {
            format!("bitcast<{target}>({value})")
        }
        ("f32" | "f64", "u32" | "i32" | "u64" | "i64") => {
            // Narrow integers keep the low bits of a wide one.
            let narrow = to.bytes() < 4;
            let wide = if narrow { "i32" } else { target };
            let cut = format!("{wide}_of_{source}({value})");
            if narrow && target == "u32" { format!("bitcast<u32>({cut})") } else { cut }
        }
        _ => format!("{target}({value})"),
    }
}

/// Zero in a dtype's register type.
pub fn zero(dtype: Dtype) -> &'static str {
    match dtype.register() {
        "u32" => "0u",
        "i32" => "0i",
        "u64" => "0lu",
        "i64" => "0li",
        "f32" => "0.0f",
        "f64" => "0.0lf",
        _ => "vec2<f32>()",
    }
}
