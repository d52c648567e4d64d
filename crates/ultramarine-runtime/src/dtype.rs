//! Element types: the 14 of `mlx.core`, their categories and promotion. `storage.rs` has the types
//! that only store numbers.

mod storage;

pub use storage::{Format, Packing, Storage};

use half::{bf16, f16};
use num_complex::Complex32;
use std::fmt;
use ultramarine_abi::{dlpack::DLDataType, schema};

macro_rules! dtypes {
    (
        arithmetic { $($(#[$m:meta])* $name:ident $text:literal $t:ty, $size:literal $kind:ident;)* }
        storage { $($(#[$sm:meta])* $stored:ident $stext:literal;)* }
    ) => {
        /// An element type. The first fourteen have arithmetic ([`Dtype::ALL`]). The others only
        /// store numbers of 8 bits and less ([`Dtype::STORAGE`]); they are converted before any
        /// computation.
        ///
        /// ```
        /// use ultramarine_runtime::Dtype;
        /// assert_eq!((Dtype::Float32.name(), Dtype::Float32.size()), ("float32", 4));
        /// assert_eq!(Dtype::from_name("bfloat16"), Some(Dtype::Bfloat16));
        /// assert!(Dtype::Float8E4m3fn.is_storage());
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Dtype { $($(#[$m])* $name,)* $($(#[$sm])* $stored),* }

        impl Dtype {
            /// All dtypes that support arithmetic, in the order of the schema's table.
            pub const ALL: [Dtype; 14] = [$(Dtype::$name),*];

            /// All dtypes that only store numbers; see [`Dtype::is_storage`].
            pub const STORAGE: [Dtype; 15] = [$(Dtype::$stored),*];

            /// Returns the number of bytes of an element. The result is 1 for packed dtypes,
            /// although their elements are smaller than a byte: see [`Dtype::bits`] and
            /// [`Dtype::bytes_of`].
            #[inline]
            pub const fn size(self) -> usize {
                match self { $(Dtype::$name => $size,)* $(Dtype::$stored => 1),* }
            }

            /// Returns MLX's name of the dtype, such as `float32`.
            #[inline]
            pub const fn name(self) -> &'static str {
                match self { $(Dtype::$name => $text,)* $(Dtype::$stored => $stext),* }
            }

            /// Returns the kind of number.
            #[inline]
            pub const fn kind(self) -> Kind {
                match self { $(Dtype::$name => Kind::$kind,)* $(Dtype::$stored => Kind::Storage),* }
            }
        }
        $(
            impl Sealed for $t {}
            impl Element for $t { const DTYPE: Dtype = Dtype::$name; }
        )*
    };
}

/// The kind of number that a [`Dtype`] holds: each dtype has one. [`Category`] groups kinds.
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
    /// Numbers that are only stored, see [`Dtype::is_storage`].
    Storage,
}

mod sealed {
    /// Restricts [`super::Element`] to the types of this module, because unsafe code relies on the
    /// correctness of its dtypes.
    pub trait Sealed {}
}
use sealed::Sealed;

/// A Rust type that is the element type of a [`Dtype`]: `bool`, integers, `f16`, `bf16`, `f32`,
/// `f64` and `Complex32`. Other crates cannot add types, because unsafe code relies on this list.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    label = "not an element",
    note = "elements are numbers: name their type, as in `x.item::<f32>()?` and `x.to_vec::<i32>()?`",
    note = "data is one flat slice beside a shape: `Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])`"
)]
pub trait Element: Sealed + Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: Dtype;
}

dtypes! {
    arithmetic {
        /// One byte, 0 or 1.
        Bool "bool" bool, 1 Bool;
        /// 8-bit unsigned integer.
        Uint8 "uint8" u8, 1 Unsigned;
        /// 16-bit unsigned integer.
        Uint16 "uint16" u16, 2 Unsigned;
        /// 32-bit unsigned integer.
        Uint32 "uint32" u32, 4 Unsigned;
        /// 64-bit unsigned integer.
        Uint64 "uint64" u64, 8 Unsigned;
        /// 8-bit signed integer.
        Int8 "int8" i8, 1 Signed;
        /// 16-bit signed integer.
        Int16 "int16" i16, 2 Signed;
        /// 32-bit signed integer.
        Int32 "int32" i32, 4 Signed;
        /// 64-bit signed integer.
        Int64 "int64" i64, 8 Signed;
        /// IEEE half precision.
        Float16 "float16" f16, 2 Floating;
        /// IEEE single precision.
        Float32 "float32" f32, 4 Floating;
        /// IEEE double precision.
        Float64 "float64" f64, 8 Floating;
        /// The upper half of a float32.
        Bfloat16 "bfloat16" bf16, 2 Floating;
        /// Two float32: real and imaginary part.
        Complex64 "complex64" Complex32, 8 Complex;
    }

    storage {
        /// 3 bits of exponent, 4 of mantissa, infinities and NaNs.
        Float8E3m4 "float8_e3m4";
        /// 4 bits of exponent, 3 of mantissa, infinities and NaNs.
        Float8E4m3 "float8_e4m3";
        /// As `float8_e4m3`, bias 11, finite, one NaN in place of the negative zero.
        Float8E4m3b11fnuz "float8_e4m3b11fnuz";
        /// As `float8_e4m3`, without infinities, up to 448.
        Float8E4m3fn "float8_e4m3fn";
        /// As `float8_e4m3fn`, bias 8, one NaN in place of the negative zero.
        Float8E4m3fnuz "float8_e4m3fnuz";
        /// 5 bits of exponent, 2 of mantissa, infinities and NaNs.
        Float8E5m2 "float8_e5m2";
        /// As `float8_e5m2`, bias 16, finite, one NaN in place of the negative zero.
        Float8E5m2fnuz "float8_e5m2fnuz";
        /// Powers of two from 2^-127 to 2^127, and NaN.
        Float8E8m0fnu "float8_e8m0fnu";
        /// 2 bits of exponent, 3 of mantissa, finite, up to 7.5; in the low bits of a byte.
        Float6E2m3fn "float6_e2m3fn";
        /// 3 bits of exponent, 2 of mantissa, finite, up to 28; in the low bits of a byte.
        Float6E3m2fn "float6_e3m2fn";
        /// 2 bits of exponent, 1 of mantissa, finite, up to 6; in the low bits of a byte.
        Float4E2m1fn "float4_e2m1fn";
        /// `float6_e2m3fn`, four in three bytes, the first in the lowest bits; row-major only.
        Float6E2m3fnPacked "float6_e2m3fn_packed";
        /// `float6_e3m2fn`, four in three bytes, the first in the lowest bits; row-major only.
        Float6E3m2fnPacked "float6_e3m2fn_packed";
        /// `float4_e2m1fn`, two in a byte, the first in the lowest bits; row-major only.
        Float4E2m1fnPacked "float4_e2m1fn_packed";
        /// Two `float4_e2m1fn` in a byte. As in PyTorch, the byte counts as one element, so sizes
        /// count bytes. Converted to floats, the last axis is twice as long.
        Float4E2m1fnX2 "float4_e2m1fn_x2";
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Dtype {
    /// Returns the DLPack type. A sub-byte dtype also needs [`Dtype::dl_flags`].
    #[inline]
    pub const fn to_dl(self) -> DLDataType {
        match self.storage() {
            None => schema::DTYPES[self as usize].1,
            Some(storage) => storage.to_dl(),
        }
    }

    /// Returns the dtype of a DLPack type, or `None` if the library has no arithmetic for the type.
    /// [`from_dl_with`] also knows the dtypes that only store numbers.
    ///
    /// [`from_dl_with`]: Dtype::from_dl_with
    #[inline]
    pub fn from_dl(dl: DLDataType) -> Option<Dtype> {
        /// Indexed by the DLPack type code, and by the base-2 logarithm of the size in bytes.
        const FOUND: [[Option<Dtype>; 4]; 7] = {
            let mut found = [[None; 4]; 7];
            let mut i = 0;
            while i < Dtype::ALL.len() {
                let dl = Dtype::ALL[i].to_dl();
                found[dl.code as usize][(dl.bits / 8).trailing_zeros() as usize] =
                    Some(Dtype::ALL[i]);
                i += 1;
            }
            found
        };
        let power = (dl.bits / 8).trailing_zeros() as usize;
        let found = (*FOUND.get(dl.code as usize)?.get(power)?)?;
        (found.to_dl() == dl).then_some(found)
    }

    /// Returns the dtype of a DLPack type, or `None` if no array can hold it. The tensor's `flags`
    /// distinguish elements of less than 8 bits that are padded to a byte from packed ones.
    #[inline]
    pub fn from_dl_with(dl: DLDataType, flags: u64) -> Option<Dtype> {
        Dtype::from_dl(dl).or_else(|| Dtype::storage_from_dl(dl, flags))
    }

    /// Returns the dtype of a name such as `float32` or `float8_e4m3fn`; `None` for any other name.
    #[inline]
    pub fn from_name(name: &str) -> Option<Dtype> {
        Dtype::ALL.into_iter().chain(Dtype::STORAGE).find(|d| d.name() == name)
    }

    /// Returns true for floating and complex dtypes.
    #[inline]
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Floating | Kind::Complex)
    }

    /// Returns true for real floating-point dtypes.
    #[inline]
    pub const fn is_floating(self) -> bool {
        matches!(self.kind(), Kind::Floating)
    }

    /// Returns true for signed and unsigned integers, but not for bool.
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns true for complex64.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self, Dtype::Complex64)
    }

    /// Returns the dtype to which operands of both dtypes are converted, by MLX's rules:
    ///
    /// - a float wins over any integer, and complex64 over everything;
    /// - float16 with bfloat16 gives float32, and uint64 with a signed integer gives float32;
    /// - a storage dtype stays unchanged, so that the operation refuses it and names it in the
    ///   error.
    ///
    /// ```
    /// use ultramarine_runtime::Dtype;
    /// assert_eq!(Dtype::Int64.promote(Dtype::Float16), Dtype::Float16);
    /// assert_eq!(Dtype::Uint8.promote(Dtype::Int8), Dtype::Int16);
    /// ```
    pub const fn promote(self, other: Dtype) -> Dtype {
        use Dtype::*;
        if self as u8 == other as u8 {
            return self;
        }
        // Sort the pair by position in the enum, so that each pair has to be handled in one order
        // only.
        let (a, b) = if (self as u8) < (other as u8) { (self, other) } else { (other, self) };
        match (a, b) {
            _ if b.is_storage() => {
                if a.is_storage() {
                    a
                } else {
                    b
                }
            }
            (_, Complex64) => Complex64,
            (Bool, _) => b,
            (Float16, Bfloat16) => Float32,
            (Float32 | Float64, Bfloat16) => a,
            (_, Bfloat16) => Bfloat16,
            (_, Float16 | Float32 | Float64) => b,
            // All remaining pairs are integers.
            (Uint64, Int8 | Int16 | Int32 | Int64) => Float32,
            (Uint8 | Uint16 | Uint32, Int8 | Int16 | Int32 | Int64) => {
                if b.size() > a.size() {
                    b
                } else {
                    match a {
                        Uint8 => Int16,
                        Uint16 => Int32,
                        _ => Int64,
                    }
                }
            }
            _ => b,
        }
    }

    /// Returns the dtype itself if it is inexact, else float32. For example, `exp` of integers has
    /// the dtype float32. A storage dtype stays unchanged, so that the operation refuses it.
    #[inline]
    pub const fn to_inexact(self) -> Dtype {
        if self.is_inexact() || self.is_storage() { self } else { Dtype::Float32 }
    }

    /// Returns true if the dtype belongs to a category.
    ///
    /// ```
    /// use ultramarine_runtime::{Category, Dtype};
    /// assert!(Dtype::Int8.is_subtype(Category::SignedInteger));
    /// assert!(!Dtype::Bool.is_subtype(Category::Number));
    /// ```
    pub const fn is_subtype(self, category: Category) -> bool {
        let kind = self.kind();
        match category {
            Category::Generic => true,
            Category::Number => !matches!(kind, Kind::Bool | Kind::Storage),
            Category::Integer => matches!(kind, Kind::Signed | Kind::Unsigned),
            Category::SignedInteger => matches!(kind, Kind::Signed),
            Category::UnsignedInteger => matches!(kind, Kind::Unsigned),
            Category::Inexact => matches!(kind, Kind::Floating | Kind::Complex),
            Category::Floating => matches!(kind, Kind::Floating),
            Category::ComplexFloating => matches!(kind, Kind::Complex),
        }
    }
}

/// Groups of dtypes, with the names of NumPy and MLX. [`Dtype::is_subtype`] checks if a dtype
/// belongs to a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// All dtypes.
    Generic,
    /// All dtypes with arithmetic, except bool.
    Number,
    /// Integers, without bool.
    Integer,
    /// int8 to int64.
    SignedInteger,
    /// uint8 to uint64.
    UnsignedInteger,
    /// Floating or complex.
    Inexact,
    /// Real floating-point types.
    Floating,
    /// complex64.
    ComplexFloating,
}

impl Category {
    /// Returns true if every dtype of `self` is also in `other`.
    pub const fn is_subcategory(self, other: Category) -> bool {
        use Category::*;
        match other {
            Generic => true,
            Number => !matches!(self, Generic),
            Integer => matches!(self, Integer | SignedInteger | UnsignedInteger),
            Inexact => matches!(self, Inexact | Floating | ComplexFloating),
            _ => self as u8 == other as u8,
        }
    }
}

/// Limits of a floating-point dtype, from [`finfo`]. For complex64, these are the limits of the
/// real and imaginary parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatInfo {
    /// The dtype asked for.
    pub dtype: Dtype,
    /// Bits of a (real) number.
    pub bits: u32,
    /// Distance from 1 to the next number.
    pub eps: f64,
    /// Largest finite number.
    pub max: f64,
    /// Lowest finite number. For float8_e8m0fnu, which has no sign, it is positive.
    pub min: f64,
    /// Smallest positive number with full precision.
    pub smallest_normal: f64,
}

/// Returns the limits of a floating-point, complex or storage dtype; `None` for bool and integers.
///
/// ```
/// use ultramarine_runtime::dtype::{Dtype, finfo, iinfo};
/// assert_eq!(finfo(Dtype::Float16).map(|f| f.max), Some(65504.0));
/// assert_eq!(finfo(Dtype::Int8), None);
/// assert_eq!(iinfo(Dtype::Int8).map(|i| (i.min, i.max)), Some((-128, 127)));
/// ```
pub fn finfo(dtype: Dtype) -> Option<FloatInfo> {
    if let Some(storage) = dtype.storage() {
        return Some(storage.format.limits(dtype));
    }
    let (bits, mantissa, max, exponent) = match dtype {
        Dtype::Float16 => (16, 10, f16::MAX.to_f64(), -14),
        Dtype::Bfloat16 => (16, 7, bf16::MAX.to_f64(), -126),
        Dtype::Float32 | Dtype::Complex64 => (32, 23, f32::MAX as f64, -126),
        Dtype::Float64 => (64, 52, f64::MAX, -1022),
        _ => return None,
    };
    let power = |e: i32| 2f64.powi(e);
    Some(FloatInfo {
        dtype,
        bits,
        eps: power(-mantissa),
        max,
        min: -max,
        smallest_normal: power(exponent),
    })
}

/// Limits of an integer dtype or bool, from [`iinfo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntInfo {
    /// The dtype asked for.
    pub dtype: Dtype,
    /// Bits of a number.
    pub bits: u32,
    /// Lowest number.
    pub min: i128,
    /// Largest number.
    pub max: i128,
}

/// Returns the limits of an integer dtype, and 0 and 1 for bool; `None` for others. See [`finfo`]
/// for an example.
pub fn iinfo(dtype: Dtype) -> Option<IntInfo> {
    let bits = dtype.size() as u32 * 8;
    let (min, max) = match dtype.kind() {
        Kind::Bool => (0, 1),
        Kind::Unsigned => (0, (1i128 << bits) - 1),
        Kind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        _ => return None,
    };
    Some(IntInfo { dtype, bits, min, max })
}
