//! Element types.

use half::{bf16, f16};
use num_complex::Complex32;
use std::fmt;
use ultramarine_abi::{dlpack::DLDataType, schema};

/// The kind of number that a [`Dtype`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `bool`.
    Bool,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Real floating point.
    Floating,
    /// Complex floating point.
    Complex,
}

mod sealed {
    /// Restricts the traits to the types of this module, because unsafe code relies on their
    /// dtypes.
    pub trait Sealed {}
}
use sealed::Sealed;

/// A Rust type that is the element type of a [`Dtype`]. Other crates cannot add types.
pub trait Element: Sealed + Copy + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: Dtype;

    /// Returns the number's little-endian bits, in two words.
    fn bits(self) -> [u64; 2];
}

/// An element type for which any bytes are a valid value: all but `bool`. Views have these types.
/// Views of bool arrays have `u8`, where 0 is false and any other value is true.
pub trait Number: Element + Default {}

macro_rules! dtypes {
    ($($(#[$m:meta])* $name:ident $text:literal $t:ty, $kind:ident |$value:ident| $bits:expr;)*) => {
        /// An element type that has arithmetic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Dtype { $($(#[$m])* $name,)* }

        impl Dtype {
            /// All, in the order of the contract's table.
            pub const ALL: [Dtype; 14] = [$(Dtype::$name),*];

            /// Returns the bytes of an element.
            pub const fn size(self) -> usize {
                match self { $(Dtype::$name => size_of::<$t>(),)* }
            }

            /// Returns the name, such as `float32`.
            pub const fn name(self) -> &'static str {
                match self { $(Dtype::$name => $text,)* }
            }

            /// Returns the kind of number.
            pub const fn kind(self) -> Kind {
                match self { $(Dtype::$name => Kind::$kind,)* }
            }
        }
        $(
            impl Sealed for $t {}
            impl Element for $t {
                const DTYPE: Dtype = Dtype::$name;
                fn bits(self) -> [u64; 2] {
                    let $value = self;
                    [$bits, 0]
                }
            }
        )*
    };
}

dtypes! {
    /// One byte, 0 or 1.
    Bool "bool" bool, Bool |v| u64::from(v);
    /// 8-bit unsigned integer.
    Uint8 "uint8" u8, Unsigned |v| u64::from(v);
    /// 16-bit unsigned integer.
    Uint16 "uint16" u16, Unsigned |v| u64::from(v);
    /// 32-bit unsigned integer.
    Uint32 "uint32" u32, Unsigned |v| u64::from(v);
    /// 64-bit unsigned integer.
    Uint64 "uint64" u64, Unsigned |v| v;
    /// 8-bit signed integer.
    Int8 "int8" i8, Signed |v| u64::from(v as u8);
    /// 16-bit signed integer.
    Int16 "int16" i16, Signed |v| u64::from(v as u16);
    /// 32-bit signed integer.
    Int32 "int32" i32, Signed |v| u64::from(v as u32);
    /// 64-bit signed integer.
    Int64 "int64" i64, Signed |v| v as u64;
    /// IEEE half precision.
    Float16 "float16" f16, Floating |v| u64::from(v.to_bits());
    /// IEEE single precision.
    Float32 "float32" f32, Floating |v| u64::from(v.to_bits());
    /// IEEE double precision.
    Float64 "float64" f64, Floating |v| v.to_bits();
    /// The upper half of a float32.
    Bfloat16 "bfloat16" bf16, Floating |v| u64::from(v.to_bits());
    /// Two float32: real and imaginary part.
    Complex64 "complex64" Complex32, Complex
        |v| u64::from(v.re.to_bits()) | u64::from(v.im.to_bits()) << 32;
}

macro_rules! numbers {
    ($($t:ty)*) => {$(impl Number for $t {})*};
}
numbers! { u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 bf16 Complex32 }

impl Dtype {
    /// Returns the type as DLPack describes it.
    pub const fn to_dl(self) -> DLDataType {
        schema::DTYPES[self as usize].1
    }

    /// Returns the dtype of a DLPack type, or `None` if there is no arithmetic for the type.
    ///
    /// ```
    /// use ultramarine_extension::Dtype;
    ///
    /// assert_eq!(Dtype::from_dl(Dtype::Bfloat16.to_dl()), Some(Dtype::Bfloat16));
    /// ```
    pub fn from_dl(dl: DLDataType) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|d| d.to_dl() == dl)
    }

    /// Returns the dtype of a name such as `float32`; `None` for another name.
    pub fn from_name(name: &str) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Returns true for floating and complex dtypes.
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Floating | Kind::Complex)
    }

    /// Returns true for real floating-point dtypes.
    pub const fn is_floating(self) -> bool {
        matches!(self.kind(), Kind::Floating)
    }

    /// Returns true for complex64.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Returns true for signed and unsigned integers, not for bool.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns the bits of a number in this dtype. Floats round to the nearest, integers truncate
    /// and saturate, and bool is true for numbers other than 0.
    pub fn bits_of(self, value: f64) -> [u64; 2] {
        match self {
            Dtype::Bool => (value != 0.0).bits(),
            Dtype::Uint8 => (value as u8).bits(),
            Dtype::Uint16 => (value as u16).bits(),
            Dtype::Uint32 => (value as u32).bits(),
            Dtype::Uint64 => (value as u64).bits(),
            Dtype::Int8 => (value as i8).bits(),
            Dtype::Int16 => (value as i16).bits(),
            Dtype::Int32 => (value as i32).bits(),
            Dtype::Int64 => (value as i64).bits(),
            // Convert to float32 first, as Ultramarine does.
            Dtype::Float16 => f16::from_f32(value as f32).bits(),
            Dtype::Float32 => (value as f32).bits(),
            Dtype::Float64 => value.bits(),
            Dtype::Bfloat16 => bf16::from_f32(value as f32).bits(),
            Dtype::Complex64 => Complex32::new(value as f32, 0.0).bits(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs a body for the Rust type of a dtype: `match_dtype!(dtype, T in [f32, f64] => body)`. Without a last arm the body
/// gives a [`Result`](crate::Result), and a dtype that is not in the list is an error that names those that are.
///
/// ```
/// use ultramarine_extension::{Dtype, Result, match_dtype};
///
/// fn epsilon(dtype: Dtype) -> Result<f64> {
///     match_dtype!(dtype, T in [f32, f64] => Ok(f64::from(T::EPSILON)))
/// }
/// assert_eq!(epsilon(Dtype::Float64)?, f64::EPSILON);
/// let error = epsilon(Dtype::Int8).unwrap_err();
/// assert_eq!(error.to_string(), "[match_dtype] takes float32, float64, got int8. Convert it with astype.");
///
/// let bytes = match_dtype!(Dtype::Int8, T in [i8, i16] => size_of::<T>(), _ => 0);
/// assert_eq!(bytes, 1);
/// # Ok::<(), ultramarine_extension::Error>(())
/// ```
#[macro_export]
macro_rules! match_dtype {
    ($dtype:expr, $T:ident in [$($t:ty),+ $(,)?] => $body:expr, _ => $other:expr $(,)?) => {{
        let dtype: $crate::Dtype = $dtype;
        $(if dtype == <$t as $crate::Element>::DTYPE {
            type $T = $t;
            $body
        } else)+ {
            $other
        }
    }};
    ($dtype:expr, $T:ident in [$($t:ty),+ $(,)?] => $body:expr $(,)?) => {{
        let dtype: $crate::Dtype = $dtype;
        $crate::match_dtype!(dtype, $T in [$($t),+] => $body, _ => {
            let takes = [$(<$t as $crate::Element>::DTYPE),+];
            ::core::result::Result::Err($crate::Error::dtype("match_dtype", dtype, &takes))
        })
    }};
}
