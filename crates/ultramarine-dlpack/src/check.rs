//! Judging a tensor from outside: nothing of it is believed before.

use crate::{DLDataType, DLTensor, device_type, flag, type_code};
use core::fmt;

/// Most dimensions that a tensor may have here. (NumPy's are 64.)
pub const MAX_NDIM: usize = 64;

/// Why a tensor is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// No tensor at all.
    Null,
    /// Of a major version that is not 1: nothing but the deleter may be touched.
    Version {
        /// The tensor's.
        major: u32,
        /// The tensor's.
        minor: u32,
    },
    /// Negative, or more than [`MAX_NDIM`].
    Dimensions(i32),
    /// No shape, although there are dimensions.
    NoShape,
    /// A negative size of a dimension.
    NegativeSize {
        /// The dimension.
        axis: usize,
        /// Its size.
        size: i64,
    },
    /// More bytes than an address space has, counted by sizes, strides and offset.
    Overflow,
    /// No memory, although there are elements.
    NoData,
    /// A code that DLPack 1.3 does not know, or bits that do not go with it.
    Dtype(DLDataType),
    /// More than one number in each element. (Two in a byte of float4_e2m1fn are known.)
    Lanes(DLDataType),
    /// Handles without a meaning of their own.
    Opaque,
    /// A device type that DLPack 1.3 does not know.
    Device(i32),
    /// Packed elements of less than a byte with gaps or another order than row-major.
    PackedStrides,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Null => f.write_str("there is no tensor: the pointer is NULL"),
            Invalid::Version { major, minor } => write!(
                f,
                "the tensor is of DLPack {major}.{minor}; major version 1 is understood here"
            ),
            Invalid::Dimensions(n) => {
                write!(f, "a tensor cannot have {n} dimensions; 0 to {MAX_NDIM} can be taken")
            }
            Invalid::NoShape => f.write_str("the tensor has dimensions but no shape (NULL)"),
            Invalid::NegativeSize { axis, size } => {
                write!(f, "dimension {axis} has the negative size {size}")
            }
            Invalid::Overflow => {
                f.write_str("sizes, strides and offset lead out of the address space")
            }
            Invalid::NoData => f.write_str("the tensor has elements but no memory (data is NULL)"),
            Invalid::Dtype(d) => write!(
                f,
                "the element type (code {}, {} bits, {} lanes) is not one of DLPack 1.3",
                d.code, d.bits, d.lanes
            ),
            Invalid::Lanes(d) => write!(
                f,
                "elements of {} lanes (code {}, {} bits) cannot be taken: use a tensor with one \
                 more dimension",
                d.lanes, d.code, d.bits
            ),
            Invalid::Opaque => f.write_str("elements that are opaque handles cannot be taken"),
            Invalid::Device(d) => write!(f, "device type {d} is not one of DLPack 1.3"),
            Invalid::PackedStrides => f.write_str(
                "packed elements of less than a byte can be taken row-major only, without gaps",
            ),
        }
    }
}

impl core::error::Error for Invalid {}

/// Where a valid tensor's elements lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Number of elements.
    pub elements: usize,
    /// Bits from one element to the next: more than the type's where it is padded.
    pub bits: usize,
    /// Bytes from the first element (index zero everywhere) down to the lowest one.
    pub below: usize,
    /// Bytes from the lowest element's beginning to the highest one's end.
    pub bytes: usize,
    /// Row-major without gaps.
    pub contiguous: bool,
}

/// Bits of an element in memory, by its type and the tensor's flags.
fn element_bits(d: DLDataType, flags: u64) -> Result<usize, Invalid> {
    use type_code::*;
    let known = match d.code {
        INT | UINT => matches!(d.bits, 8 | 16 | 32 | 64),
        FLOAT => matches!(d.bits, 16 | 32 | 64),
        BFLOAT => d.bits == 16,
        COMPLEX => matches!(d.bits, 32 | 64 | 128),
        BOOL | FLOAT8_E3M4..=FLOAT8_E8M0FNU => d.bits == 8,
        FLOAT6_E2M3FN | FLOAT6_E3M2FN => d.bits == 6,
        FLOAT4_E2M1FN => d.bits == 4,
        OPAQUE => return Err(Invalid::Opaque),
        _ => false,
    };
    if !known {
        return Err(Invalid::Dtype(d));
    }
    match d.lanes {
        // As torch gives it: two numbers in a byte are one element.
        2 if d.code == FLOAT4_E2M1FN => Ok(8),
        1 if d.bits < 8 && flags & flag::IS_SUBBYTE_TYPE_PADDED != 0 => Ok(8),
        1 => Ok(d.bits as usize),
        _ => Err(Invalid::Lanes(d)),
    }
}

fn is_known_device(device: i32) -> bool {
    use device_type::*;
    matches!(device, CPU..=OPENCL | VULKAN..=ROCM_HOST | EXT_DEV..=TRN)
}

/// Judges a tensor and says where its elements lie. Memory of elements is not touched. Strides
/// of dimensions of size 1, or of a tensor without elements, may be anything.
///
/// # Errors
/// [`Invalid`], the first thing that is wrong.
///
/// # Safety
/// `shape` and `strides` of the tensor are NULL or lead to `ndim` numbers, if `ndim` is one
/// that a tensor can have.
pub unsafe fn check(tensor: &DLTensor, flags: u64) -> Result<Checked, Invalid> {
    let ndim = usize::try_from(tensor.ndim)
        .ok()
        .filter(|n| *n <= MAX_NDIM)
        .ok_or(Invalid::Dimensions(tensor.ndim))?;
    if !is_known_device(tensor.device.device_type) {
        return Err(Invalid::Device(tensor.device.device_type));
    }
    let bits = element_bits(tensor.dtype, flags)?;
    if ndim > 0 && tensor.shape.is_null() {
        return Err(Invalid::NoShape);
    }
    let (mut elements, mut empty) = (1i64, false);
    for axis in 0..ndim {
        // SAFETY: not NULL, `ndim` numbers by the caller's promise. They may be misaligned.
        let size = unsafe { tensor.shape.add(axis).read_unaligned() };
        if size < 0 {
            return Err(Invalid::NegativeSize { axis, size });
        }
        empty |= size == 0;
        // Empty ones are counted too, so that strides computed from the sizes do not overflow.
        elements = elements.checked_mul(size.max(1)).ok_or(Invalid::Overflow)?;
    }
    let total_bits = elements.checked_mul(bits as i64).ok_or(Invalid::Overflow)?;
    if empty {
        return Ok(Checked { elements: 0, bits, below: 0, bytes: 0, contiguous: true });
    }
    if tensor.data.is_null() {
        return Err(Invalid::NoData);
    }
    let (mut low, mut high, mut contiguous) = (0i64, 0i64, true);
    if tensor.strides.is_null() {
        high = elements - 1;
    } else {
        let mut expected = 1i64;
        for axis in (0..ndim).rev() {
            // SAFETY: as above.
            let (size, stride) = unsafe {
                (tensor.shape.add(axis).read_unaligned(), tensor.strides.add(axis).read_unaligned())
            };
            if size == 1 {
                continue;
            }
            contiguous &= stride == expected;
            // Below the number of elements, which did not overflow.
            expected *= size;
            let reach = stride.checked_mul(size - 1).ok_or(Invalid::Overflow)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach).ok_or(Invalid::Overflow)?;
        }
    }
    let (below, bytes) = if bits.is_multiple_of(8) {
        let item = bits as i64 / 8;
        let below = low.checked_mul(-item).ok_or(Invalid::Overflow)?;
        let above = high.checked_add(1).and_then(|n| n.checked_mul(item));
        (below, above.and_then(|a| a.checked_add(below)).ok_or(Invalid::Overflow)?)
    } else if contiguous {
        (0, (total_bits as u64).div_ceil(8) as i64)
    } else {
        return Err(Invalid::PackedStrides);
    };
    // Whether it is an address or a handle, the offset has to lead somewhere.
    let start = usize::try_from(tensor.byte_offset).ok().and_then(|o| {
        let lowest = (tensor.data as usize).checked_add(o)?.checked_sub(below as usize)?;
        lowest.checked_add(bytes as usize)
    });
    if start.is_none() || bytes as u64 > isize::MAX as u64 {
        return Err(Invalid::Overflow);
    }
    Ok(Checked {
        elements: elements as usize,
        bits,
        below: below as usize,
        bytes: bytes as usize,
        contiguous,
    })
}
