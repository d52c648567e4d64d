//! One value of one dtype.

use crate::dtype::{Dtype, Element, Packing};
use half::{bf16, f16};
use num_complex::Complex32;

/// A number with its dtype, where the dtype is chosen at run time. The low bytes of `bits` are the
/// element's.
///
/// ```
/// use ultramarine_runtime::{Dtype, Scalar};
/// let third = Scalar::from_f64(Dtype::Float16, 1.0 / 3.0);
/// assert_eq!(third.cast(Dtype::Float32).to_f64(), 0.333251953125);
/// assert_eq!(Scalar::from_f64(Dtype::Uint8, 300.7).to_i64(), 255);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    dtype: Dtype,
    bits: u64,
}

impl Scalar {
    /// Makes a scalar from an element's bits, which are the low bits of `bits`. The higher bits are
    /// ignored. A bool is true if any of its bits is set.
    #[inline]
    pub const fn from_bits(dtype: Dtype, bits: u64) -> Self {
        let bits = bits & (u64::MAX >> (64 - dtype.bits()));
        Scalar { dtype, bits: if matches!(dtype, Dtype::Bool) { (bits != 0) as u64 } else { bits } }
    }

    /// Returns the dtype.
    #[inline]
    pub const fn dtype(self) -> Dtype {
        self.dtype
    }

    /// Returns the element's bits, zero-extended.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Converts a real number to `dtype`. Floats round to the nearest; integers truncate and
    /// saturate.
    pub fn from_f64(dtype: Dtype, v: f64) -> Self {
        let bits = match dtype {
            Dtype::Bool => (v != 0.0) as u64,
            Dtype::Uint8 => v as u8 as u64,
            Dtype::Uint16 => v as u16 as u64,
            Dtype::Uint32 => v as u32 as u64,
            Dtype::Uint64 => v as u64,
            Dtype::Int8 => v as i8 as u8 as u64,
            Dtype::Int16 => v as i16 as u16 as u64,
            Dtype::Int32 => v as i32 as u32 as u64,
            Dtype::Int64 => v as i64 as u64,
            // Convert to float32 first, as for an array of float32.
            Dtype::Float16 => f16::from_f32(v as f32).to_bits() as u64,
            Dtype::Bfloat16 => bf16::from_f32(v as f32).to_bits() as u64,
            Dtype::Float32 | Dtype::Complex64 => (v as f32).to_bits() as u64,
            Dtype::Float64 => v.to_bits(),
            _ => stored(dtype, v as f32),
        };
        Scalar { dtype, bits }
    }

    /// Converts an integer to `dtype`. Narrower integers wrap, as a cast does.
    pub fn from_i64(dtype: Dtype, v: i64) -> Self {
        if dtype.is_integer() {
            let mask = u64::MAX >> (64 - 8 * dtype.size() as u32);
            return Scalar { dtype, bits: v as u64 & mask };
        }
        match dtype {
            Dtype::Bool => Scalar { dtype, bits: (v != 0) as u64 },
            // Round once, not twice.
            Dtype::Float32 => Scalar { dtype, bits: (v as f32).to_bits() as u64 },
            _ => Scalar::from_f64(dtype, v as f64),
        }
    }

    /// Converts a complex number to `dtype`. Real dtypes drop the imaginary part. A bool is true if
    /// either part is not 0.
    pub fn from_complex(dtype: Dtype, v: Complex32) -> Self {
        if dtype == Dtype::Complex64 {
            let bits = v.re.to_bits() as u64 | (v.im.to_bits() as u64) << 32;
            return Scalar { dtype, bits };
        }
        if dtype == Dtype::Bool {
            return Scalar { dtype, bits: (v.re != 0.0 || v.im != 0.0) as u64 };
        }
        Scalar::from_f64(dtype, v.re as f64)
    }

    /// Returns the value as a complex number, in two float64 parts.
    pub fn to_complex(self) -> (f64, f64) {
        let b = self.bits;
        let re = match self.dtype {
            Dtype::Bool | Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64 => b as f64,
            Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => self.to_i64() as f64,
            Dtype::Float16 => f16::from_bits(b as u16).to_f64(),
            Dtype::Bfloat16 => bf16::from_bits(b as u16).to_f64(),
            Dtype::Float32 | Dtype::Complex64 => f32::from_bits(b as u32) as f64,
            Dtype::Float64 => f64::from_bits(b),
            // For a pair, take the first number.
            d => d.storage().map_or(f64::NAN, |s| s.format.decode(b as u32) as f64),
        };
        let im =
            if self.dtype.is_complex() { f32::from_bits((b >> 32) as u32) as f64 } else { 0.0 };
        (re, im)
    }

    /// Returns the value as a real number, without an imaginary part.
    #[inline]
    pub fn to_f64(self) -> f64 {
        self.to_complex().0
    }

    /// Returns the value as an integer. Floats truncate and saturate; uint64 wraps.
    pub fn to_i64(self) -> i64 {
        match self.dtype {
            Dtype::Int8 => self.bits as u8 as i8 as i64,
            Dtype::Int16 => self.bits as u16 as i16 as i64,
            Dtype::Int32 => self.bits as u32 as i32 as i64,
            d if d.is_inexact() || d.is_storage() => self.to_f64() as i64,
            _ => self.bits as i64,
        }
    }

    /// Converts the value to another dtype, by the rules of [`Scalar::from_f64`],
    /// [`Scalar::from_i64`] and [`Scalar::from_complex`].
    pub fn cast(self, dtype: Dtype) -> Self {
        if dtype == self.dtype {
            return self;
        }
        match (self.dtype, dtype) {
            (Dtype::Complex64, _) => {
                let (re, im) = self.to_complex();
                Scalar::from_complex(dtype, Complex32::new(re as f32, im as f32))
            }
            (Dtype::Uint64, d) if d.is_inexact() => Scalar::from_f64(d, self.bits as f64),
            (Dtype::Uint64, d) if d.is_storage() => Scalar::from_f64(d, self.bits as f64),
            (d, _) if d.is_inexact() || d.is_storage() => Scalar::from_f64(dtype, self.to_f64()),
            _ => Scalar::from_i64(dtype, self.to_i64()),
        }
    }
}

/// The bits of a number in a storage dtype. For a pair, both numbers get the value.
fn stored(dtype: Dtype, v: f32) -> u64 {
    let Some(storage) = dtype.storage() else { return 0 };
    let code = storage.format.encode(v) as u64;
    match storage.packing {
        Packing::Pair => code | code << storage.format.bits(),
        Packing::Byte | Packing::Packed => code,
    }
}

impl<T: Element> From<T> for Scalar {
    fn from(v: T) -> Self {
        let mut bits = [0u8; 8];
        // SAFETY: every Element is plain data of at most 8 bytes without padding.
        unsafe {
            std::ptr::copy_nonoverlapping(
                &raw const v as *const u8,
                bits.as_mut_ptr(),
                size_of::<T>(),
            )
        };
        Scalar { dtype: T::DTYPE, bits: u64::from_le_bytes(bits) }
    }
}
