//! Element types, under the names that the kernels use.

use half::{bf16, f16};
use ultramarine_abi::{dlpack::DLDataType, schema};

/// A complex number of two float32, real part first.
#[repr(C, align(4))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(non_camel_case_types, reason = "named as f32 is")]
pub struct c64 {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

macro_rules! dtypes {
    ($($name:ident $t:ty = $index:literal;)*) => {
        /// An element type; the discriminant is its place in [`schema::DTYPES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "named after their types")]
        pub enum DType { $($name = $index),* }

        impl DType {
            /// All of them, in order.
            pub const ALL: [DType; 14] = [$(DType::$name),*];

            /// Bytes of an element.
            #[inline]
            pub const fn size(self) -> usize {
                match self { $(DType::$name => size_of::<$t>()),* }
            }
        }

        $(impl Element for $t { const DTYPE: DType = DType::$name; })*

        /// Evaluates `$body` with the type alias `$T` bound to the Rust type of
        /// the dtype (bool is `u8` holding 0 or 1).
        #[doc(hidden)]
        #[macro_export]
        macro_rules! for_dtype {
            ($d:expr, $T:ident => $body:expr) => {
                match $d {
                    $($crate::dtype::DType::$name => { type $T = $crate::dtype::rust::$name; $body })*
                }
            };
        }

        /// The Rust type of each dtype, under the dtype's name.
        pub mod rust {
            use super::*;
            $(#[doc = stringify!($name)] pub type $name = $t;)*
        }
    };
}

/// One byte that is 0 or 1. Rust's `bool` is not used, because any other byte would be undefined
/// behaviour.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bool(pub u8);

/// A type that arrays hold.
pub trait Element: Copy + Send + Sync + Default + PartialEq + 'static {
    /// Its dtype.
    const DTYPE: DType;
}

dtypes! {
    Bool crate::dtype::Bool = 0;
    U8 u8 = 1;
    U16 u16 = 2;
    U32 u32 = 3;
    U64 u64 = 4;
    I8 i8 = 5;
    I16 i16 = 6;
    I32 i32 = 7;
    I64 i64 = 8;
    F16 f16 = 9;
    F32 f32 = 10;
    F64 f64 = 11;
    BF16 bf16 = 12;
    C64 c64 = 13;
}

impl DType {
    /// The dtype for a type of the boundary, if the kernels support it.
    #[inline]
    pub fn from_dl(dl: DLDataType) -> Option<DType> {
        DType::ALL.into_iter().find(|d| schema::DTYPES[*d as usize].1 == dl)
    }

    /// Float16, bfloat16, float32 or float64.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64 | DType::BF16)
    }

    /// True for integer types (bool is not one).
    pub const fn is_int(self) -> bool {
        matches!(self as u8, 1..=8)
    }
}
