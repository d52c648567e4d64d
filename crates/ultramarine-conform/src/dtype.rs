//! Element types and their numbers, as the kit computes with them.

use half::{bf16, f16};
use ultramarine_abi::{dlpack::DLDataType, schema};

/// A dtype, by its index in [`schema::DTYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(pub u8);

/// The kind of a dtype's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

/// A number, wide enough for every dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// Integers and bool.
    Int(i128),
    /// Floats.
    Real(f64),
    /// complex64.
    Complex(f64, f64),
}

impl Num {
    /// As a real number; the real part of a complex one.
    pub fn real(self) -> f64 {
        match self {
            Num::Int(i) => i as f64,
            Num::Real(x) | Num::Complex(x, _) => x,
        }
    }

    /// As an integer, towards zero.
    pub fn int(self) -> i128 {
        match self {
            Num::Int(i) => i,
            Num::Real(x) | Num::Complex(x, _) => x as i128,
        }
    }

    /// As a complex number.
    pub fn complex(self) -> num_complex::Complex64 {
        match self {
            Num::Complex(re, im) => num_complex::Complex64::new(re, im),
            other => num_complex::Complex64::new(other.real(), 0.0),
        }
    }

    /// Not zero; NaN is not.
    pub fn truth(self) -> bool {
        match self {
            Num::Int(i) => i != 0,
            Num::Real(x) => x != 0.0,
            Num::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    pub fn is_nan(self) -> bool {
        match self {
            Num::Int(_) => false,
            Num::Real(x) => x.is_nan(),
            Num::Complex(re, im) => re.is_nan() || im.is_nan(),
        }
    }
}

impl std::fmt::Display for Num {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Num::Int(i) => write!(f, "{i}"),
            Num::Real(x) => write!(f, "{x:?}"),
            Num::Complex(re, im) => write!(f, "{re:?}{im:+?}i"),
        }
    }
}

#[allow(dead_code, reason = "a complete list reads better than one with holes")]
impl DType {
    pub const BOOL: DType = DType(0);
    pub const U8: DType = DType(1);
    pub const U16: DType = DType(2);
    pub const U32: DType = DType(3);
    pub const U64: DType = DType(4);
    pub const I8: DType = DType(5);
    pub const I16: DType = DType(6);
    pub const I32: DType = DType(7);
    pub const I64: DType = DType(8);
    pub const F16: DType = DType(9);
    pub const F32: DType = DType(10);
    pub const F64: DType = DType(11);
    pub const BF16: DType = DType(12);
    pub const C64: DType = DType(13);

    pub fn all() -> impl Iterator<Item = DType> {
        (0..schema::DTYPES.len() as u8).map(DType)
    }

    pub fn in_mask(self, mask: u32) -> bool {
        mask >> self.0 & 1 == 1
    }

    pub fn name(self) -> &'static str {
        schema::DTYPES.get(self.0 as usize).map_or("unknown", |d| d.0)
    }

    pub fn dl(self) -> DLDataType {
        schema::DTYPES[self.0 as usize].1
    }

    pub fn kind(self) -> Kind {
        match self.0 {
            0 => Kind::Bool,
            1..=4 => Kind::Unsigned,
            5..=8 => Kind::Signed,
            13 => Kind::Complex,
            _ => Kind::Float,
        }
    }

    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    pub fn is_complex(self) -> bool {
        self == DType::C64
    }

    /// Unsigned or signed; not bool.
    pub fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Unsigned | Kind::Signed)
    }

    pub fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    pub fn bits(self) -> u32 {
        self.dl().bits.into()
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        self.bits() as usize / 8
    }

    /// Returns the bits of the significand, and the exponent of the smallest normal number. For
    /// complex64, they are those of its parts. Integers have neither.
    fn format(self) -> (i32, i32, f64) {
        match self {
            DType::F16 => (11, -14, 65504.0),
            DType::BF16 => (8, -126, bf16::MAX.to_f64()),
            DType::F64 => (53, -1022, f64::MAX),
            _ => (24, -126, f32::MAX.into()),
        }
    }

    /// Distance of neighbours at 1.
    pub fn epsilon(self) -> f64 {
        2f64.powi(1 - self.format().0)
    }

    /// Largest finite value.
    pub fn max_float(self) -> f64 {
        self.format().2
    }

    /// Smallest normal value.
    pub fn min_normal(self) -> f64 {
        2f64.powi(self.format().1)
    }

    /// Distance of neighbours at `x`.
    pub fn ulp(self, x: f64) -> f64 {
        let (bits, least, max) = self.format();
        if !x.is_finite() {
            return max * self.epsilon();
        }
        let exponent = if x == 0.0 { least } else { exponent(x).max(least) };
        if self == DType::F64 && exponent < -960 {
            return f64::from_bits(1).max(2f64.powi(exponent) * self.epsilon());
        }
        2f64.powi(exponent - bits + 1)
    }

    /// Smallest and largest integer of an integer dtype.
    pub fn range(self) -> (i128, i128) {
        match self.kind() {
            Kind::Bool => (0, 1),
            Kind::Unsigned => (0, (1 << self.bits()) - 1),
            _ => (-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1),
        }
    }

    /// An integer modulo the dtype's width.
    pub fn wrap(self, i: i128) -> i128 {
        if self.kind() == Kind::Bool {
            return (i != 0).into();
        }
        let low = i & ((1i128 << self.bits()) - 1);
        if low > self.range().1 { low - (1i128 << self.bits()) } else { low }
    }

    /// A real number rounded to a floating dtype, to nearest even.
    pub fn round(self, x: f64) -> f64 {
        match self {
            DType::F16 => f16::from_f64(x).to_f64(),
            DType::BF16 => bf16::from_f64(x).to_f64(),
            DType::F64 => x,
            _ => x as f32 as f64,
        }
    }

    /// Returns the value that the dtype has for a number: rounded, wrapped, or converted to the
    /// dtype's kind.
    pub fn value(self, n: Num) -> Num {
        match self.kind() {
            Kind::Bool => Num::Int(n.truth().into()),
            Kind::Unsigned | Kind::Signed => Num::Int(self.wrap(n.int())),
            Kind::Float => Num::Real(self.round(n.real())),
            Kind::Complex => {
                let z = n.complex();
                Num::Complex(self.round(z.re), self.round(z.im))
            }
        }
    }

    /// Writes a value of the dtype as its bytes.
    pub fn write(self, n: Num, to: &mut Vec<u8>) {
        match self {
            DType::F16 => to.extend(f16::from_f64(n.real()).to_le_bytes()),
            DType::BF16 => to.extend(bf16::from_f64(n.real()).to_le_bytes()),
            DType::F32 => to.extend((n.real() as f32).to_le_bytes()),
            DType::F64 => to.extend(n.real().to_le_bytes()),
            DType::C64 => {
                let z = n.complex();
                to.extend((z.re as f32).to_le_bytes());
                to.extend((z.im as f32).to_le_bytes());
            }
            _ => to.extend(&self.wrap(n.int()).to_le_bytes()[..self.size()]),
        }
    }

    /// Reads an element. Bytes of a bool other than 0 and 1 are returned unchanged.
    pub fn read(self, bytes: &[u8]) -> Num {
        let mut wide = [0u8; 16];
        let n = self.size().min(bytes.len());
        wide[..n].copy_from_slice(&bytes[..n]);
        let low = u64::from_le_bytes([
            wide[0], wide[1], wide[2], wide[3], wide[4], wide[5], wide[6], wide[7],
        ]);
        match self {
            DType::BOOL => Num::Int(low.into()),
            DType::F16 => Num::Real(f16::from_bits(low as u16).to_f64()),
            DType::BF16 => Num::Real(bf16::from_bits(low as u16).to_f64()),
            DType::F32 => Num::Real(f32::from_bits(low as u32).into()),
            DType::F64 => Num::Real(f64::from_bits(low)),
            DType::C64 => Num::Complex(
                f32::from_bits(low as u32).into(),
                f32::from_bits((low >> 32) as u32).into(),
            ),
            _ => Num::Int(self.wrap(low.into())),
        }
    }

    /// A value as a scalar of a command.
    pub fn scalar(self, n: Num) -> [u64; 2] {
        let mut bytes = Vec::new();
        self.write(n, &mut bytes);
        bytes.resize(8, 0);
        let mut low = [0; 8];
        low.copy_from_slice(&bytes);
        [u64::from_le_bytes(low), 0]
    }
}

/// The exponent of a finite number that is not zero: 2^e <= |x| < 2^(e+1).
fn exponent(x: f64) -> i32 {
    let bits = (x.to_bits() >> 52 & 0x7ff) as i32;
    if bits == 0 { -1022 } else { bits - 1023 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap() {
        assert_eq!(DType::U8.wrap(-1), 255);
        assert_eq!(DType::I8.wrap(200), -56);
        assert_eq!(DType::I64.wrap(1 << 63), -(1 << 63));
        assert_eq!(DType::U64.wrap(-1), (1 << 64) - 1);
        assert_eq!(DType::BOOL.wrap(7), 1);
    }

    #[test]
    fn what_is_written_is_read() {
        for dtype in DType::all() {
            for x in [0.0, 1.0, -3.0, 100.5] {
                let value = dtype.value(Num::Complex(x, 2.0 * x));
                let mut bytes = Vec::new();
                dtype.write(value, &mut bytes);
                assert_eq!(bytes.len(), dtype.size());
                assert_eq!(dtype.read(&bytes), value, "{}", dtype.name());
            }
        }
    }

    #[test]
    fn neighbours() {
        assert_eq!(DType::F32.ulp(1.0), f64::from(f32::EPSILON));
        assert_eq!(DType::F32.ulp(0.0), f64::from(f32::from_bits(1)));
        assert_eq!(DType::F16.ulp(1024.0), 1.0);
        assert_eq!(DType::F64.ulp(1.0), f64::EPSILON);
        assert_eq!(DType::BF16.ulp(-2.0), 1.0 / 64.0);
    }
}
