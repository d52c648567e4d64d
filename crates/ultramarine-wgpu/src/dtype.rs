//! Dtypes, and the WGSL types that represent them.

pub use ultramarine_abi::helper::dtype::{ALL, Dtype, MASK};

use Dtype::*;

/// The WGSL types that represent a dtype in registers and in buffers.
pub trait Wgsl {
    /// The type of an element in a buffer. One-byte elements are declared with 16 bits and narrowed
    /// later.
    fn storage(self) -> &'static str;
    /// The type for computations.
    fn register(self) -> &'static str;
}

impl Wgsl for Dtype {
    fn storage(self) -> &'static str {
        match self {
            Bool | Uint8 | Uint16 | Float16 | Bfloat16 => "u16",
            Int8 | Int16 => "i16",
            Uint32 => "u32",
            Uint64 => "u64",
            Int32 => "i32",
            Int64 => "i64",
            Float32 => "f32",
            Float64 => "f64",
            Complex64 => "vec2<f32>",
        }
    }

    fn register(self) -> &'static str {
        match self {
            Bool | Uint8 | Uint16 | Uint32 => "u32",
            Uint64 => "u64",
            Int8 | Int16 | Int32 => "i32",
            Int64 => "i64",
            Float16 | Bfloat16 | Float32 => "f32",
            Float64 => "f64",
            Complex64 => "vec2<f32>",
        }
    }
}
