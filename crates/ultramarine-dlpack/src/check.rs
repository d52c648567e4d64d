//! Validation of a foreign tensor before its data is touched.

use crate::{DLDataType, DLTensor, byte_range, device_type, flag, type_code};
use core::fmt;

/// The most dimensions that a tensor may have here. It is NumPy's limit, too.
pub const MAX_NDIM: usize = 64;

/// The reason why [`check`] refuses a tensor. `Display` gives a sentence for the consumer's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// The pointer to the tensor is NULL.
    Null,
    /// The major version is not 1, so only the deleter may be touched.
    Version {
        /// The tensor's major version.
        major: u32,
        /// The tensor's minor version.
        minor: u32,
    },
    /// The number of dimensions is negative, or more than [`MAX_NDIM`].
    Dimensions(i32),
    /// The shape is NULL, although there are dimensions.
    NoShape,
    /// The size of a dimension is negative.
    NegativeSize {
        /// The dimension.
        axis: usize,
        /// Its size.
        size: i64,
    },
    /// The tensor has more elements or bytes than an address space. Either the sizes alone are too
    /// large (without those that are 0), or sizes, strides, offset and address together.
    Overflow,
    /// The data pointer is NULL, although there are elements.
    NoData,
    /// DLPack 1.3 does not know the type code, or the bits do not match the code.
    Dtype(DLDataType),
    /// An element has more than one number. (The exception is float4_e2m1fn with two in a byte.)
    Lanes(DLDataType),
    /// The elements are opaque handles, whose meaning is unknown.
    Opaque,
    /// DLPack 1.3 does not know the device type.
    Device(i32),
    /// Packed elements of less than a byte have gaps, or are not in row-major order.
    PackedStrides,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Null => f.write_str("the pointer to the tensor is NULL"),
            Invalid::Version { major, minor } => write!(
                f,
                "the tensor has DLPack version {major}.{minor}, and this library supports major version 1; ask for max_version=(1, 3)"
            ),
            Invalid::Dimensions(n) => {
                write!(f, "the tensor has {n} dimensions, and 0 to {MAX_NDIM} are supported; reshape it first")
            }
            Invalid::NoShape => f.write_str("the tensor has dimensions but no shape (NULL)"),
            Invalid::NegativeSize { axis, size } => {
                write!(f, "dimension {axis} has the negative size {size}")
            }
            Invalid::Overflow => {
                f.write_str("sizes, strides and offset reach outside the address space")
            }
            Invalid::NoData => f.write_str("the tensor has elements but no memory (data is NULL)"),
            Invalid::Dtype(d) => write!(
                f,
                "the element type (code {}, {} bits, {} lanes) is not one of DLPack 1.3",
                d.code, d.bits, d.lanes
            ),
            Invalid::Lanes(d) => write!(
                f,
                "elements of {} lanes (code {}, {} bits) are not supported; use a tensor with one \
                 more dimension",
                d.lanes, d.code, d.bits
            ),
            Invalid::Opaque => f.write_str("elements that are opaque handles are not supported; export numbers"),
            Invalid::Device(d) => write!(f, "device type {d} is not one of DLPack 1.3"),
            Invalid::PackedStrides => f.write_str(
                "packed elements of less than a byte must be row-major without gaps; copy the tensor first",
            ),
        }
    }
}

impl core::error::Error for Invalid {}

/// The extent of a valid tensor's elements in memory, from [`check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Number of elements.
    pub elements: usize,
    /// Bits from one element to the next. If the type is padded, this is more than the type's bits.
    pub bits: usize,
    /// Bytes from the first element (all indices zero) down to the lowest one.
    pub below: usize,
    /// Bytes from the beginning of the lowest element to the end of the highest one.
    pub bytes: usize,
    /// True if the elements are row-major without gaps.
    pub contiguous: bool,
}

/// For each type code, the sizes in bytes that a number may have: bit `n` is set for size `n`. Types
/// of less than a byte are not listed.
const SIZES: [u32; 18] = {
    use type_code::*;
    let mut sizes = [0; 18];
    sizes[INT as usize] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8;
    sizes[UINT as usize] = sizes[INT as usize];
    sizes[FLOAT as usize] = 1 << 2 | 1 << 4 | 1 << 8;
    sizes[BFLOAT as usize] = 1 << 2;
    sizes[COMPLEX as usize] = 1 << 4 | 1 << 8 | 1 << 16;
    sizes[BOOL as usize] = 1 << 1;
    let mut code = FLOAT8_E3M4;
    while code <= FLOAT8_E8M0FNU {
        sizes[code as usize] = 1 << 1;
        code += 1;
    }
    sizes
};

/// Returns the bits of an element in memory, given its type and the tensor's flags.
#[inline]
fn element_bits(d: DLDataType, flags: u64) -> Result<i64, Invalid> {
    let sizes = SIZES.get(d.code as usize).copied().unwrap_or(0);
    let known = d.bits.is_multiple_of(8) && sizes >> (d.bits / 8) & 1 != 0;
    if known && d.lanes == 1 { Ok(i64::from(d.bits)) } else { unusual_bits(d, flags, known) }
}

#[cold]
fn unusual_bits(d: DLDataType, flags: u64, known: bool) -> Result<i64, Invalid> {
    use type_code::*;
    let padded = flags & flag::IS_SUBBYTE_TYPE_PADDED != 0;
    match (d.code, d.bits, d.lanes) {
        (OPAQUE, ..) => Err(Invalid::Opaque),
        (FLOAT6_E2M3FN | FLOAT6_E3M2FN, 6, 1) | (FLOAT4_E2M1FN, 4, 1) => {
            Ok(if padded { 8 } else { i64::from(d.bits) })
        }
        // PyTorch exports this: two numbers in a byte are one element. In addition they cannot be
        // padded to a byte each.
        (FLOAT4_E2M1FN, 4, 2) if !padded => Ok(8),
        (FLOAT6_E2M3FN | FLOAT6_E3M2FN, 6, _) | (FLOAT4_E2M1FN, 4, _) => Err(Invalid::Lanes(d)),
        _ if known => Err(Invalid::Lanes(d)),
        _ => Err(Invalid::Dtype(d)),
    }
}

/// Returns true if DLPack 1.3 has the device type: all numbers from 1 to 18 except 5 and 6.
#[inline]
fn is_known_device(device: i32) -> bool {
    use device_type::*;
    matches!(device, CPU..=OPENCL | VULKAN..=TRN)
}

/// Returns the bytes of adjacent elements without gaps.
#[inline]
fn side_by_side(elements: i64, bits: i64) -> Option<i64> {
    let bytes =
        if bits % 8 == 0 { elements.checked_mul(bits / 8)? } else { packed(elements, bits)? };
    isize::try_from(bytes).is_ok().then_some(bytes)
}

/// Returns the bytes of packed elements of less than a byte. Their number may exceed the number of
/// bytes in an address space.
#[cold]
fn packed(elements: i64, bits: i64) -> Option<i64> {
    isize::try_from(elements).ok()?;
    // Neither part can overflow.
    Some(elements / 8 * bits + (elements % 8 * bits + 7) / 8)
}

/// Returns the bytes below the first element, and the bytes of all elements, for strides that are
/// not row-major.
///
/// # Safety
/// `shape` and `strides` point to `ndim` numbers.
unsafe fn strided(
    shape: *const i64,
    strides: *const i64,
    ndim: usize,
    bits: i64,
) -> Option<(i64, i64)> {
    let axes = (0..ndim).map(|axis| {
        // SAFETY: the caller's promise. The numbers may be misaligned.
        unsafe { (shape.add(axis).read_unaligned(), strides.add(axis).read_unaligned()) }
    });
    let (first, end) = byte_range(axes, usize::try_from(bits).ok()?)?;
    let (below, bytes) = (first.checked_neg()?, end.checked_sub(first)?);
    isize::try_from(bytes).is_ok().then_some((below, bytes))
}

/// Validates a tensor and returns the extent of its elements. The memory of elements is not
/// touched. Strides of dimensions of size 1 may have any value. In a tensor without elements, all
/// strides, the memory and the offset may have any value.
///
/// ```
/// use core::ptr::null_mut;
/// use ultramarine_dlpack::{DLDataType, DLDevice, DLTensor, Invalid, check, device_type, type_code};
///
/// // The last three of six numbers, backwards.
/// let mut numbers = [0.5f32, 1.5, 2.5, 3.5, 4.5, 5.5];
/// let (mut shape, mut strides) = ([3i64], [-1i64]);
/// let mut tensor = DLTensor {
///     data: numbers.as_mut_ptr().cast(),
///     device: DLDevice { device_type: device_type::CPU, device_id: 0 },
///     ndim: 1,
///     dtype: DLDataType { code: type_code::FLOAT, bits: 32, lanes: 1 },
///     shape: shape.as_mut_ptr(),
///     strides: strides.as_mut_ptr(),
///     byte_offset: 20,
/// };
/// // SAFETY: as many sizes and strides as dimensions.
/// let found = unsafe { check(&tensor, 0) }?;
/// assert_eq!((found.elements, found.below, found.bytes), (3, 8, 12));
///
/// tensor.data = null_mut();
/// // SAFETY: as above.
/// assert_eq!(unsafe { check(&tensor, 0) }, Err(Invalid::NoData));
/// # Ok::<(), Invalid>(())
/// ```
///
/// # Errors
/// [`Invalid`], for the first problem that is found.
///
/// # Safety
/// If `ndim` is valid, `shape` and `strides` of the tensor are NULL or point to `ndim` numbers,
/// which may be misaligned.
#[inline]
pub unsafe fn check(tensor: &DLTensor, flags: u64) -> Result<Checked, Invalid> {
    // A negative number becomes a huge one.
    let ndim = tensor.ndim as usize;
    if ndim > MAX_NDIM {
        return Err(Invalid::Dimensions(tensor.ndim));
    }
    if !is_known_device(tensor.device.device_type) {
        return Err(Invalid::Device(tensor.device.device_type));
    }
    let bits = element_bits(tensor.dtype, flags)?;
    if ndim > 0 && tensor.shape.is_null() {
        return Err(Invalid::NoShape);
    }
    let (mut elements, mut empty, mut contiguous) = (1i64, false, true);
    for axis in (0..ndim).rev() {
        // SAFETY: not NULL, and `ndim` numbers by the caller's promise. They may be misaligned.
        let size = unsafe { tensor.shape.add(axis).read_unaligned() };
        if size <= 1 {
            if size < 0 {
                return Err(Invalid::NegativeSize { axis, size });
            }
            empty |= size == 0;
            continue;
        }
        if !tensor.strides.is_null() {
            // SAFETY: as above.
            contiguous &= unsafe { tensor.strides.add(axis).read_unaligned() } == elements;
        }
        // Count in empty tensors too, so that strides computed from the sizes do not overflow.
        elements = elements.checked_mul(size).ok_or(Invalid::Overflow)?;
    }
    let mut bytes = side_by_side(elements, bits).ok_or(Invalid::Overflow)?;
    if empty {
        let bits = bits as usize;
        return Ok(Checked { elements: 0, bits, below: 0, bytes: 0, contiguous: true });
    }
    if tensor.data.is_null() {
        return Err(Invalid::NoData);
    }
    let mut below = 0;
    if !contiguous {
        if bits % 8 != 0 {
            return Err(Invalid::PackedStrides);
        }
        // SAFETY: as above. A tensor without strides would be contiguous.
        let found = unsafe { strided(tensor.shape, tensor.strides, ndim, bits) };
        (below, bytes) = found.ok_or(Invalid::Overflow)?;
    }
    // The offset has to be a valid address, even if `data` is a handle.
    let end = usize::try_from(tensor.byte_offset).ok().and_then(|offset| {
        let first = (tensor.data as usize).checked_add(offset)?;
        first.checked_sub(below as usize)?.checked_add(bytes as usize)
    });
    if end.is_none() {
        return Err(Invalid::Overflow);
    }
    Ok(Checked {
        elements: elements as usize,
        bits: bits as usize,
        below: below as usize,
        bytes: bytes as usize,
        contiguous,
    })
}
