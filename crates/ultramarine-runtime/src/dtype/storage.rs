//! Number formats of less than 16 bits. One set of rules decodes and encodes all of them, given
//! their widths, bias and special values.
//!
//! Conversions give bitwise the same results as the package `ml_dtypes`: they round to the nearest
//! number, and ties to even. Depending on the format, numbers beyond the largest become infinity,
//! NaN or the largest number.

use super::{Dtype, FloatInfo};
use ultramarine_abi::dlpack::{DLDataType, flag, type_code as code};

/// The special values of a format in addition to finite numbers, and their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Infinities and NaNs have the highest exponent, as in IEEE 754.
    Ieee,
    /// All codes are finite, except those with all bits set after the sign, which are NaN.
    Nan,
    /// All codes are finite, except that the code of negative zero is the NaN.
    NanForZero,
    /// All codes are finite and positive, without zero, except that all bits set is the NaN.
    Unsigned,
    /// All codes are finite. NaN becomes zero with the opposite sign, and too large numbers become
    /// the largest number.
    Finite,
}

/// A number format: a sign (except in unsigned formats), an exponent and a mantissa.
/// [`Format::encode`] and [`Format::decode`] convert numbers.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    special: Special,
}

/// The layout of numbers in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each number takes a byte.
    Byte,
    /// Numbers are stored without gaps, the first in the lowest bits.
    Packed,
    /// Two numbers are in a byte, which counts as one element.
    Pair,
}

/// A dtype that only stores numbers: the format of a number, and the layout of several.
/// [`Dtype::storage`] returns it.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// The encoding of a number.
    pub format: Format,
    /// The layout of numbers in bytes.
    pub packing: Packing,
    dl: u8,
}

const fn format(exponent: u32, mantissa: u32, bias: i32, special: Special) -> Format {
    Format { exponent, mantissa, bias, special }
}

const E3M4: Format = format(3, 4, 3, Special::Ieee);
const E4M3: Format = format(4, 3, 7, Special::Ieee);
const E4M3B11FNUZ: Format = format(4, 3, 11, Special::NanForZero);
const E4M3FN: Format = format(4, 3, 7, Special::Nan);
const E4M3FNUZ: Format = format(4, 3, 8, Special::NanForZero);
const E5M2: Format = format(5, 2, 15, Special::Ieee);
const E5M2FNUZ: Format = format(5, 2, 16, Special::NanForZero);
const E8M0FNU: Format = format(8, 0, 127, Special::Unsigned);
const E2M3FN: Format = format(2, 3, 1, Special::Finite);
const E3M2FN: Format = format(3, 2, 3, Special::Finite);
const E2M1FN: Format = format(2, 1, 1, Special::Finite);

const fn storage(format: Format, packing: Packing, dl: u8) -> Storage {
    Storage { format, packing, dl }
}

/// In the order of [`Dtype::STORAGE`].
const TABLE: [Storage; Dtype::STORAGE.len()] = [
    storage(E3M4, Packing::Byte, code::FLOAT8_E3M4),
    storage(E4M3, Packing::Byte, code::FLOAT8_E4M3),
    storage(E4M3B11FNUZ, Packing::Byte, code::FLOAT8_E4M3B11FNUZ),
    storage(E4M3FN, Packing::Byte, code::FLOAT8_E4M3FN),
    storage(E4M3FNUZ, Packing::Byte, code::FLOAT8_E4M3FNUZ),
    storage(E5M2, Packing::Byte, code::FLOAT8_E5M2),
    storage(E5M2FNUZ, Packing::Byte, code::FLOAT8_E5M2FNUZ),
    storage(E8M0FNU, Packing::Byte, code::FLOAT8_E8M0FNU),
    storage(E2M3FN, Packing::Byte, code::FLOAT6_E2M3FN),
    storage(E3M2FN, Packing::Byte, code::FLOAT6_E3M2FN),
    storage(E2M1FN, Packing::Byte, code::FLOAT4_E2M1FN),
    storage(E2M3FN, Packing::Packed, code::FLOAT6_E2M3FN),
    storage(E3M2FN, Packing::Packed, code::FLOAT6_E3M2FN),
    storage(E2M1FN, Packing::Packed, code::FLOAT4_E2M1FN),
    storage(E2M1FN, Packing::Pair, code::FLOAT4_E2M1FN),
];

impl Dtype {
    /// Returns the format of a storage dtype. `None` for a dtype that supports arithmetic.
    #[inline]
    pub const fn storage(self) -> Option<&'static Storage> {
        match (self as usize).checked_sub(Dtype::ALL.len()) {
            Some(i) => Some(&TABLE[i]),
            None => None,
        }
    }

    /// Returns true if the dtype only stores numbers, of 8 bits or less. They are converted by
    /// `Array::astype`, and have no arithmetic.
    #[inline]
    pub const fn is_storage(self) -> bool {
        self as usize >= Dtype::ALL.len()
    }

    /// Returns the dtype of an array's derivatives: its own dtype, or float32 for a storage dtype.
    #[inline]
    pub const fn derivative(self) -> Dtype {
        if self.is_storage() { Dtype::Float32 } else { self }
    }

    /// Returns true if elements are stored without gaps, so that some cross bytes. Such elements
    /// have no addresses.
    #[inline]
    pub const fn is_packed(self) -> bool {
        matches!(
            self,
            Dtype::Float6E2m3fnPacked | Dtype::Float6E3m2fnPacked | Dtype::Float4E2m1fnPacked
        )
    }

    /// Returns the bits of an element in memory. Only packed dtypes have less than 8 bits.
    #[inline]
    pub const fn bits(self) -> usize {
        match self.storage() {
            Some(Storage { packing: Packing::Packed, format, .. }) => format.bits() as usize,
            _ => self.size() * 8,
        }
    }

    /// Returns the bytes of `elements` elements. `usize::MAX` if they exceed the address space.
    ///
    /// ```
    /// use ultramarine_runtime::Dtype;
    /// assert_eq!(Dtype::Float4E2m1fnPacked.bytes_of(5), 3);
    /// assert_eq!(Dtype::Float4E2m1fn.bytes_of(5), 5);
    /// ```
    #[inline]
    pub const fn bytes_of(self, elements: usize) -> usize {
        match self.storage() {
            // Count whole groups of 8 first and then the rest, so that nothing overflows.
            Some(s) if matches!(s.packing, Packing::Packed) => {
                let bits = s.format.bits() as usize;
                elements / 8 * bits + (elements % 8 * bits).div_ceil(8)
            }
            _ => elements.saturating_mul(self.size()),
        }
    }

    /// Returns the storage dtype of a DLPack type. `flags` are the tensor's.
    pub(super) fn storage_from_dl(dl: DLDataType, flags: u64) -> Option<Dtype> {
        let padded = flags & flag::IS_SUBBYTE_TYPE_PADDED != 0;
        Dtype::STORAGE.into_iter().find(|d| {
            d.to_dl() == dl
                && d.storage().is_some_and(|s| match s.packing {
                    Packing::Byte => s.format.bits() == 8 || padded,
                    Packing::Packed => !padded,
                    Packing::Pair => true,
                })
        })
    }

    /// Returns the flag that a DLPack tensor of this dtype needs in addition to its type: the flag
    /// for elements of less than 8 bits that are padded to a byte each. Returns 0 for other dtypes.
    #[inline]
    pub const fn dl_flags(self) -> u64 {
        match self.storage() {
            Some(s) if matches!(s.packing, Packing::Byte) && s.format.bits() < 8 => {
                flag::IS_SUBBYTE_TYPE_PADDED
            }
            _ => 0,
        }
    }
}

impl Storage {
    /// Returns the DLPack type.
    #[inline]
    pub const fn to_dl(self) -> DLDataType {
        let lanes = if matches!(self.packing, Packing::Pair) { 2 } else { 1 };
        DLDataType { code: self.dl, bits: self.format.bits() as u8, lanes }
    }
}

impl Format {
    /// Returns the bits of a number.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.exponent + self.mantissa + self.is_signed() as u32
    }

    const fn is_signed(self) -> bool {
        !matches!(self.special, Special::Unsigned)
    }

    const fn sign_bit(self) -> u32 {
        if self.is_signed() { 1 << (self.bits() - 1) } else { 0 }
    }

    /// Returns the code of the largest number.
    const fn largest(self) -> u32 {
        let all = (1 << (self.exponent + self.mantissa)) - 1;
        match self.special {
            Special::Ieee => self.infinity() - 1,
            Special::Nan | Special::Unsigned => all - 1,
            Special::NanForZero | Special::Finite => all,
        }
    }

    const fn infinity(self) -> u32 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// Returns the code of NaN, given the sign of the number that became NaN.
    const fn nan(self, negative: bool) -> u32 {
        let sign = if negative { self.sign_bit() } else { 0 };
        match self.special {
            Special::Ieee => sign | self.infinity() | 1 << (self.mantissa - 1),
            Special::Nan => sign | (self.largest() + 1),
            Special::NanForZero => self.sign_bit(),
            Special::Unsigned => self.largest() + 1,
            Special::Finite => sign ^ self.sign_bit(),
        }
    }

    /// Returns the limits of the format. `dtype` is the dtype in the result. See
    /// [`finfo`](super::finfo).
    pub fn limits(self, dtype: Dtype) -> FloatInfo {
        let max = self.decode(self.largest()) as f64;
        let lowest = if self.is_signed() { 1 - self.bias } else { -self.bias };
        let smallest_normal = 2f64.powi(lowest);
        FloatInfo {
            dtype,
            bits: self.bits(),
            eps: 2f64.powi(-(self.mantissa as i32)),
            max,
            min: if self.is_signed() { -max } else { smallest_normal },
            smallest_normal,
        }
    }

    /// Decodes a number. Bits above the format's are ignored.
    pub fn decode(self, code: u32) -> f32 {
        let magnitude = code & (self.sign_bit().wrapping_sub(1) & ((1 << self.bits()) - 1));
        let negative = code & self.sign_bit() != 0;
        let special = match self.special {
            Special::Ieee if magnitude == self.infinity() => Some(f32::INFINITY),
            Special::NanForZero if negative && magnitude == 0 => Some(f32::NAN),
            Special::Ieee | Special::Nan | Special::Unsigned if magnitude > self.largest() => {
                Some(f32::NAN)
            }
            _ => None,
        };
        let value = special.unwrap_or_else(|| {
            let (field, fraction) =
                (magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1));
            // The exponent field 0 has the subnormal numbers, with the same exponent as field 1.
            let (field, whole) = match self.special {
                Special::Unsigned => (field, 1),
                _ => (field.max(1), if field > 0 { 1 << self.mantissa } else { 0 }),
            };
            let exponent = field as i32 - self.bias - self.mantissa as i32;
            ((whole + fraction) as f64 * 2f64.powi(exponent)) as f32
        });
        if negative { -value } else { value }
    }

    /// Returns the code of the nearest number, ties to even. Depending on the format, a number
    /// beyond the largest becomes infinity, NaN or the largest number.
    pub fn encode(self, value: f32) -> u32 {
        let (bits, negative) = (value.to_bits() & 0x7fff_ffff, value.is_sign_negative());
        if bits > 0x7f80_0000 {
            return self.nan(negative);
        }
        // The format has no sign and no zero, so only positive numbers can be represented.
        if self.special == Special::Unsigned && (negative || bits == 0) {
            return self.nan(negative);
        }
        let magnitude = self.magnitude(bits);
        let sign = if negative { self.sign_bit() } else { 0 };
        match self.special {
            _ if magnitude <= self.largest() => match self.special {
                Special::NanForZero if magnitude == 0 => 0,
                _ => sign | magnitude,
            },
            Special::Ieee => sign | self.infinity(),
            Special::Finite => sign | self.largest(),
            Special::Nan | Special::NanForZero | Special::Unsigned => self.nan(negative),
        }
    }

    /// Returns the code of the nearest positive number, as if the exponent were unlimited. `bits`
    /// are those of a float32 that is not negative and not NaN.
    fn magnitude(self, bits: u32) -> u32 {
        if bits == 0x7f80_0000 {
            return u32::MAX;
        }
        // value = whole * 2^(exponent - 23), where bit 23 of `whole` is the leading 1 of normal
        // numbers.
        let (field, fraction) = (bits >> 23, bits & 0x7f_ffff);
        let (exponent, whole) = match field {
            0 => (-126, fraction),
            _ => (field as i32 - 127, fraction | 0x80_0000),
        };
        // Subnormal numbers have the lowest normal exponent.
        let unsigned = self.special == Special::Unsigned;
        let lowest = if unsigned { -self.bias } else { 1 - self.bias };
        let above = (exponent.max(lowest) - lowest) as u32;
        let shift = (23 - self.mantissa as i32 + (lowest - exponent).max(0)).min(31) as u32;
        let (half, odd) = ((1u32 << shift) >> 1, whole >> shift & 1);
        let rounded = (whole + (half - 1) + odd) >> shift;
        if unsigned {
            // `rounded` is 1, or 2 if the next power of two is nearer. For a number below all
            // powers it is 0 or 1. The format has no zero, so such a number becomes the lowest
            // power.
            return (above + rounded).saturating_sub(1);
        }
        (above << self.mantissa) + rounded
    }
}
