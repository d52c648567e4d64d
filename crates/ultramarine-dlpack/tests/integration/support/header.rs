//! Every field of a tensor, as plain data, and how bytes become one.

use ultramarine_dlpack::{DLDataType, DLDevice, MAX_NDIM};

/// Where a tensor's memory is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// At this address, which nobody reads. (Zero: NULL.)
    At(usize),
    /// Really there, and just as long as it has to be, if the tensor is valid and small.
    Real,
}

/// A tensor, before it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Major and minor; `None`: the struct without a version.
    pub version: Option<(u32, u32)>,
    pub flags: u64,
    pub memory: Memory,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    /// `None`: NULL. As many as `ndim` says, where that is possible.
    pub shape: Option<Vec<i64>>,
    pub strides: Option<Vec<i64>>,
    pub byte_offset: u64,
    /// Without one, nobody is told.
    pub has_deleter: bool,
}

/// Type codes with bits that go with them.
pub const TYPES: [(u8, u8); 29] = [
    (0, 8),
    (0, 16),
    (0, 32),
    (0, 64),
    (1, 8),
    (1, 16),
    (1, 32),
    (1, 64),
    (2, 16),
    (2, 32),
    (2, 64),
    (4, 16),
    (5, 32),
    (5, 64),
    (5, 128),
    (6, 8),
    (7, 8),
    (8, 8),
    (9, 8),
    (10, 8),
    (11, 8),
    (12, 8),
    (13, 8),
    (14, 8),
    (15, 6),
    (16, 6),
    (17, 4),
    (17, 4),
    (17, 4),
];

impl Header {
    /// A row-major tensor of float32 in the host's memory, with nothing unusual about it.
    pub fn plain(shape: &[i64]) -> Header {
        Header {
            version: Some((1, 3)),
            flags: 0,
            memory: Memory::Real,
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
            shape: Some(shape.to_vec()),
            strides: Some(row_major(shape)),
            byte_offset: 0,
            has_deleter: true,
        }
    }

    /// The dimensions that there can be numbers for.
    pub fn dimensions(&self) -> Option<usize> {
        usize::try_from(self.ndim).ok().filter(|n| *n <= MAX_NDIM)
    }

    /// Makes a header of bytes: mostly one that is nearly right, so that every check is reached.
    pub fn decode(next: &mut dyn FnMut() -> u8) -> Header {
        let odd = next();
        let ndim = match next() {
            n @ 0..=219 => i32::from(n % 6),
            n @ 220..=239 => i32::from(n - 220) * 4,
            _ => raw(next, 4) as i32,
        };
        let count = usize::try_from(ndim).ok().filter(|n| *n <= MAX_NDIM).unwrap_or(0);
        let lanes = if odd & 0x60 == 0x60 { raw(next, 1) as u16 } else { 1 };
        let dtype = match next() {
            n @ 0..=223 => {
                let (code, bits) = TYPES[n as usize % TYPES.len()];
                DLDataType { code, bits, lanes }
            }
            _ => DLDataType { code: next() % 20, bits: next(), lanes },
        };
        let device_type = match next() {
            0..=191 => 1,
            n @ 192..=247 => i32::from(n - 192) % 21,
            _ => raw(next, 4) as i32,
        };
        let shape: Vec<i64> = (0..count).map(|_| size(next)).collect();
        let strides = match next() % 8 {
            0 => None,
            1 | 2 => Some(row_major(&shape)),
            // Transposed, and some axes backwards.
            3 => {
                let mut turned = row_major(&shape);
                turned.rotate_left((next() as usize) % count.max(1));
                let back = next();
                let signs = turned.iter_mut().enumerate();
                signs.for_each(|(i, s)| {
                    *s = if back >> (i % 8) & 1 == 1 { s.wrapping_neg() } else { *s }
                });
                Some(turned)
            }
            4 | 5 => Some((0..count).map(|_| i64::from(next() as i8 % 8)).collect()),
            _ => Some((0..count).map(|_| number(next)).collect()),
        };
        Header {
            version: match odd & 0x0f {
                0 => None,
                1 => Some((raw(next, 4) as u32, raw(next, 4) as u32)),
                2 => Some((u32::from(next() % 4), u32::from(next()))),
                n => Some((1, u32::from(n % 5))),
            },
            flags: if odd & 0x10 != 0 { raw(next, 8) } else { u64::from(next() % 8) },
            memory: match next() {
                0..=191 => Memory::Real,
                n @ 192..=223 => Memory::At(usize::from(n - 192) * 64),
                _ => Memory::At(number(next) as usize),
            },
            device: DLDevice { device_type, device_id: i32::from(next() as i8) / 100 },
            ndim,
            dtype,
            shape: (odd & 0x80 == 0 || next() > 128).then_some(shape),
            strides,
            byte_offset: if odd & 0x40 != 0 { number(next) as u64 } else { u64::from(next() % 32) },
            has_deleter: !next().is_multiple_of(8),
        }
    }
}

/// Strides without gaps; whatever comes of it where they overflow.
pub fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut step = 1i64;
    let mut strides: Vec<i64> = shape
        .iter()
        .rev()
        .map(|size| {
            let this = step;
            step = step.wrapping_mul((*size).max(1));
            this
        })
        .collect();
    strides.reverse();
    strides
}

/// So many bytes as a number, little-endian.
fn raw(next: &mut dyn FnMut() -> u8, bytes: usize) -> u64 {
    (0..bytes).fold(0, |sum, i| sum | u64::from(next()) << (8 * i))
}

/// A size of a dimension: mostly small.
fn size(next: &mut dyn FnMut() -> u8) -> i64 {
    match next() {
        n @ 0..=239 => i64::from(n % 6),
        _ => number(next),
    }
}

/// Any number, with those about which arithmetic breaks more often than others.
fn number(next: &mut dyn FnMut() -> u8) -> i64 {
    match next() {
        // Near a power of two, of either sign.
        n @ 0..=159 => {
            let near = (1i64 << (n % 64)).wrapping_add(i64::from(next() % 5) - 2);
            if n >= 96 { near.wrapping_neg() } else { near }
        }
        n @ 160..=199 => i64::from(n) - 180,
        // Near the ends.
        n @ 200..=219 => i64::MAX - i64::from(n - 200),
        n @ 220..=229 => i64::MIN + i64::from(n - 220),
        // What times some item is just an address space.
        n @ 230..=239 => (i64::MAX / i64::from(n - 229) - 1).saturating_add(i64::from(next() % 3)),
        _ => raw(next, 8) as i64,
    }
}
