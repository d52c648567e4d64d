//! Dtypes as an enum, for backends in Rust.

use crate::schema;
use ultramarine_dlpack::DLDataType;

/// A dtype of the contract, by its index in [`schema::DTYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // they are what they are called
pub enum Dtype {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Complex64,
}

use Dtype::*;

/// All dtypes, in the order of the bits in device masks.
pub const ALL: [Dtype; 14] = [
    Bool, Uint8, Uint16, Uint32, Uint64, Int8, Int16, Int32, Int64, Float16, Float32, Float64,
    Bfloat16, Complex64,
];

/// The device mask with all dtypes.
pub const MASK: u32 = (1 << ALL.len()) - 1;

impl Dtype {
    /// Returns the dtype of a DLPack type; `None` for one that the contract does not have.
    pub fn of(dtype: DLDataType) -> Option<Self> {
        schema::dtype_index(dtype).and_then(|i| ALL.get(i).copied())
    }

    /// Returns the bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Bool | Uint8 | Int8 => 1,
            Uint16 | Int16 | Float16 | Bfloat16 => 2,
            Uint32 | Int32 | Float32 => 4,
            Uint64 | Int64 | Float64 | Complex64 => 8,
        }
    }

    /// Returns a short name, such as `F32`, for names and types in kernels.
    pub const fn tag(self) -> &'static str {
        match self {
            Bool => "Bool",
            Uint8 => "U8",
            Uint16 => "U16",
            Uint32 => "U32",
            Uint64 => "U64",
            Int8 => "I8",
            Int16 => "I16",
            Int32 => "I32",
            Int64 => "I64",
            Float16 => "F16",
            Float32 => "F32",
            Float64 => "F64",
            Bfloat16 => "BF16",
            Complex64 => "C64",
        }
    }

    /// Returns the name in messages, such as `float32`.
    pub fn name(self) -> &'static str {
        schema::DTYPES[self as usize].0
    }

    /// Returns the unsigned integer dtype of the same size, or uint64 if there is none. It is for
    /// kernels that only move elements.
    pub const fn word(self) -> Self {
        match self.bytes() {
            1 => Uint8,
            2 => Uint16,
            4 => Uint32,
            _ => Uint64,
        }
    }

    /// Returns true for uint8 to int64.
    pub const fn is_integer(self) -> bool {
        matches!(self as u8, 1..=8)
    }

    /// Returns true for int8 to int64.
    pub const fn is_signed(self) -> bool {
        matches!(self as u8, 5..=8)
    }

    /// Returns true for float16 and bfloat16.
    pub const fn is_half(self) -> bool {
        matches!(self, Float16 | Bfloat16)
    }

    /// Returns true for real floating dtypes.
    pub const fn is_real(self) -> bool {
        matches!(self, Float16 | Float32 | Float64 | Bfloat16)
    }

    /// Returns true for complex64.
    pub const fn is_complex(self) -> bool {
        matches!(self, Complex64)
    }

    /// Returns its bit in a mask of dtypes, such as the schema has them.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}
