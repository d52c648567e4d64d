//! What is true of a tensor, reckoned in a slow and obvious way, with numbers so wide that
//! nothing overflows.

use super::header::{Header, Memory};
use ultramarine_dlpack::{Checked, Invalid};

/// More elements than this are not counted one by one.
pub const FEW: u128 = 256;

/// Tensors of more bytes than this get no memory.
pub const MOST: usize = 1 << 16;

/// Which kinds of [`Invalid`] hold of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Version,
    Dimensions,
    NoShape,
    NegativeSize,
    Overflow,
    NoData,
    Dtype,
    Lanes,
    Opaque,
    Device,
    PackedStrides,
}

/// The reason that an error names.
pub fn reason(invalid: &Invalid) -> Reason {
    match invalid {
        Invalid::Version { .. } => Reason::Version,
        Invalid::Dimensions(_) => Reason::Dimensions,
        Invalid::NoShape => Reason::NoShape,
        Invalid::NegativeSize { .. } => Reason::NegativeSize,
        Invalid::Overflow => Reason::Overflow,
        Invalid::NoData => Reason::NoData,
        Invalid::Dtype(_) => Reason::Dtype,
        Invalid::Lanes(_) => Reason::Lanes,
        Invalid::Opaque => Reason::Opaque,
        Invalid::Device(_) => Reason::Device,
        Invalid::PackedStrides => Reason::PackedStrides,
        other => panic!("unknown to the model: {other}"),
    }
}

/// Where the elements lie, or all that is wrong (as far as it can be told).
pub fn validate(header: &Header, data: usize) -> Result<Checked, Vec<Reason>> {
    if header.version.is_some_and(|(major, _)| major != 1) {
        return Err(vec![Reason::Version]);
    }
    let mut wrong = Vec::new();
    if !matches!(header.device.device_type, 1 | 2 | 3 | 4 | 7..=18) {
        wrong.push(Reason::Device);
    }
    let bits = match bits(header) {
        Ok(bits) => bits,
        Err(reason) => {
            wrong.push(reason);
            8
        }
    };
    let Some(ndim) = header.dimensions() else {
        wrong.push(Reason::Dimensions);
        return Err(wrong);
    };
    let shape = match &header.shape {
        Some(shape) => &shape[..],
        None if ndim == 0 => &[],
        None => {
            wrong.push(Reason::NoShape);
            return Err(wrong);
        }
    };
    if shape.iter().any(|s| *s < 0) {
        wrong.push(Reason::NegativeSize);
    }
    let most = isize::MAX as u128;
    let nonzero = shape.iter().filter(|s| **s > 0);
    let product = nonzero.fold(1u128, |n, s| n.saturating_mul(*s as u128));
    if product > most || product.saturating_mul(bits).div_ceil(8) > most {
        wrong.push(Reason::Overflow);
    }
    if shape.contains(&0) || !wrong.is_empty() {
        let none =
            Checked { elements: 0, bits: bits as usize, below: 0, bytes: 0, contiguous: true };
        return if wrong.is_empty() { Ok(none) } else { Err(wrong) };
    }

    if data == 0 {
        wrong.push(Reason::NoData);
    }
    let found = reach(shape, header.strides.as_deref(), product);
    let contiguous = found.contiguous;
    let (below, bytes) = if bits.is_multiple_of(8) {
        let item = (bits / 8) as i128;
        (-found.low * item, (found.high - found.low + 1) * item)
    } else if contiguous {
        (0, (product * bits).div_ceil(8) as i128)
    } else {
        wrong.push(Reason::PackedStrides);
        return Err(wrong);
    };
    let first = data as i128 + i128::from(header.byte_offset);
    let space = usize::MAX as i128;
    let inside = first <= space && first - below >= 0 && first - below + bytes <= space;
    if bytes > most as i128 || !inside {
        wrong.push(Reason::Overflow);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(Checked {
        elements: product as usize,
        bits: bits as usize,
        below: below as usize,
        bytes: bytes as usize,
        contiguous,
    })
}

/// Steps from the first element to the lowest and the highest one.
#[derive(Debug, PartialEq, Eq)]
struct Reach {
    low: i128,
    high: i128,
    contiguous: bool,
}

fn reach(shape: &[i64], strides: Option<&[i64]>, elements: u128) -> Reach {
    let Some(strides) = strides else {
        return Reach { low: 0, high: elements as i128 - 1, contiguous: true };
    };
    let (mut low, mut high, mut contiguous, mut expected) = (0i128, 0i128, true, 1i128);
    for (size, stride) in shape.iter().zip(strides).rev() {
        let (size, stride) = (i128::from(*size), i128::from(*stride));
        let last = (size - 1) * stride;
        low += last.min(0);
        high += last.max(0);
        contiguous &= size == 1 || stride == expected;
        expected *= size;
    }
    let by_formula = Reach { low, high, contiguous };
    if elements <= FEW {
        assert_eq!(by_formula, one_by_one(shape, strides), "the model contradicts itself");
    }
    by_formula
}

/// The same by going to every element.
fn one_by_one(shape: &[i64], strides: &[i64]) -> Reach {
    let mut found = Reach { low: 0, high: 0, contiguous: true };
    let mut index = vec![0i64; shape.len()];
    for number in 0i128.. {
        let steps = index.iter().zip(strides).map(|(i, s)| i128::from(*i) * i128::from(*s));
        let place: i128 = steps.sum();
        found.low = found.low.min(place);
        found.high = found.high.max(place);
        found.contiguous &= place == number;
        if !advance(&mut index, shape) {
            break;
        }
    }
    found
}

/// The next index in row-major order; false after the last one.
pub fn advance(index: &mut [i64], shape: &[i64]) -> bool {
    for axis in (0..shape.len()).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return true;
        }
        index[axis] = 0;
    }
    false
}

/// Bits from one element to the next.
fn bits(header: &Header) -> Result<u128, Reason> {
    let d = header.dtype;
    let padded = header.version.is_some() && header.flags & 4 != 0;
    let allowed: &[u8] = match d.code {
        0 | 1 => &[8, 16, 32, 64],
        2 => &[16, 32, 64],
        3 => return Err(Reason::Opaque),
        4 => &[16],
        5 => &[32, 64, 128],
        6..=14 => &[8],
        15 | 16 => &[6],
        17 => &[4],
        _ => &[],
    };
    if !allowed.contains(&d.bits) {
        return Err(Reason::Dtype);
    }
    match (d.lanes, d.bits, padded) {
        (1, 4 | 6, true) => Ok(8),
        (1, bits, _) => Ok(u128::from(bits)),
        (2, 4, false) => Ok(8),
        _ => Err(Reason::Lanes),
    }
}

/// How much memory a tensor needs that says it has some.
pub fn needs(header: &Header) -> Option<Checked> {
    let there = Header { byte_offset: 0, memory: Memory::Real, ..header.clone() };
    validate(&there, 1 << (usize::BITS - 2)).ok().filter(|c| c.bytes <= MOST)
}
