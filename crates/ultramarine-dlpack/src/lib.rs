//! [DLPack 1.3](https://dmlc.github.io/dlpack/latest/) in Rust: the C structures, validation of
//! foreign tensors, and owners that run a tensor's deleter exactly once. This crate knows nothing
//! of Ultramarine's arrays, graphs or devices, and has no dependencies.
//!
//! - [`check`] validates a foreign tensor before its data is touched, and returns the extent of its
//!   elements.
//! - [`ManagedTensor`] owns a tensor: an imported one, or one that is made here for export.
//! - [`byte_range`] returns the memory that a strided view touches.
//! - [`exchange`] is the C exchange API that belongs to tensor types.
//!
//! Layouts follow `dlpack.h`; sizes and offsets are asserted at compile time.

mod check;
pub mod exchange;
mod extent;
mod make;
mod managed;

pub use check::{Checked, Invalid, MAX_NDIM, check};
pub use extent::{byte_range, element_range};
pub use make::Description;
pub use managed::ManagedTensor;

use core::ffi::c_void;

/// Major version of the DLPack ABI that this crate implements.
pub const DLPACK_MAJOR: u32 = 1;
/// Minor version of the DLPack ABI that this crate implements.
pub const DLPACK_MINOR: u32 = 3;

/// `DLDeviceType`: the device that has a tensor's memory. It is a plain integer, because an unknown
/// value from another library must not be undefined behaviour.
pub mod device_type {
    /// Host memory.
    pub const CPU: i32 = 1;
    /// CUDA device memory.
    pub const CUDA: i32 = 2;
    /// CUDA pinned host memory.
    pub const CUDA_HOST: i32 = 3;
    /// OpenCL buffer.
    pub const OPENCL: i32 = 4;
    /// Vulkan buffer.
    pub const VULKAN: i32 = 7;
    /// Metal buffer.
    pub const METAL: i32 = 8;
    /// Verilog simulator buffer.
    pub const VPI: i32 = 9;
    /// ROCm device memory.
    pub const ROCM: i32 = 10;
    /// ROCm pinned host memory.
    pub const ROCM_HOST: i32 = 11;
    /// Reserved for extension devices.
    pub const EXT_DEV: i32 = 12;
    /// CUDA managed memory.
    pub const CUDA_MANAGED: i32 = 13;
    /// oneAPI unified shared memory.
    pub const ONE_API: i32 = 14;
    /// WebGPU buffer.
    pub const WEBGPU: i32 = 15;
    /// Qualcomm Hexagon DSP.
    pub const HEXAGON: i32 = 16;
    /// Microsoft MAIA.
    pub const MAIA: i32 = 17;
    /// AWS Trainium.
    pub const TRN: i32 = 18;
}

/// `DLDataTypeCode`: the kind of number in each lane.
pub mod type_code {
    /// Signed integer.
    pub const INT: u8 = 0;
    /// Unsigned integer.
    pub const UINT: u8 = 1;
    /// IEEE float.
    pub const FLOAT: u8 = 2;
    /// Opaque handle.
    pub const OPAQUE: u8 = 3;
    /// bfloat16.
    pub const BFLOAT: u8 = 4;
    /// Complex number; `bits` counts both parts.
    pub const COMPLEX: u8 = 5;
    /// Boolean, one byte.
    pub const BOOL: u8 = 6;
    /// 8-bit float: 3 bits of exponent, 4 of mantissa, with infinities.
    pub const FLOAT8_E3M4: u8 = 7;
    /// 8-bit float: 4 bits of exponent, 3 of mantissa, with infinities.
    pub const FLOAT8_E4M3: u8 = 8;
    /// As E4M3, bias 11, finite, one NaN in place of the negative zero.
    pub const FLOAT8_E4M3B11FNUZ: u8 = 9;
    /// As E4M3, without infinities.
    pub const FLOAT8_E4M3FN: u8 = 10;
    /// As E4M3FN, bias 8, one NaN in place of the negative zero.
    pub const FLOAT8_E4M3FNUZ: u8 = 11;
    /// 8-bit float: 5 bits of exponent, 2 of mantissa, with infinities.
    pub const FLOAT8_E5M2: u8 = 12;
    /// As E5M2, bias 16, finite, one NaN in place of the negative zero.
    pub const FLOAT8_E5M2FNUZ: u8 = 13;
    /// Powers of two: 8 bits of exponent, no sign, no zero, one NaN.
    pub const FLOAT8_E8M0FNU: u8 = 14;
    /// 6-bit float: 2 bits of exponent, 3 of mantissa, finite.
    pub const FLOAT6_E2M3FN: u8 = 15;
    /// 6-bit float: 3 bits of exponent, 2 of mantissa, finite.
    pub const FLOAT6_E3M2FN: u8 = 16;
    /// 4-bit float: 2 bits of exponent, 1 of mantissa, finite.
    pub const FLOAT4_E2M1FN: u8 = 17;
}

/// Bits of `DLManagedTensorVersioned::flags`.
pub mod flag {
    /// The producer forbids writing.
    pub const READ_ONLY: u64 = 1;
    /// The producer made a copy for this export.
    pub const IS_COPIED: u64 = 2;
    /// Sub-byte elements are padded to a byte each.
    pub const IS_SUBBYTE_TYPE_PADDED: u64 = 4;
}

/// A device: its type, and its ordinal among devices of that type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// One of [`device_type`].
    pub device_type: i32,
    /// Ordinal, from zero.
    pub device_id: i32,
}

/// An element type: the kind of number, its bits, and how many numbers make an element.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// One of [`type_code`].
    pub code: u8,
    /// Bits per lane.
    pub bits: u8,
    /// Lanes per element; 1 for ordinary types.
    pub lanes: u16,
}

/// A borrowed tensor: memory, element type, shape and strides (in elements). [`check`] validates a
/// foreign one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Base pointer, or a device's opaque handle.
    pub data: *mut c_void,
    /// Device that owns `data`.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// `ndim` sizes.
    pub shape: *mut i64,
    /// `ndim` strides in elements; NULL means row-major.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// The unversioned owner of a tensor, from before DLPack 1.0. It has no flags.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Producer's context.
    pub manager_ctx: *mut c_void,
    /// Frees this struct and what it owns; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// The version of the ABI with which a tensor was made.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Incremented by incompatible changes.
    pub major: u32,
    /// Incremented by additions.
    pub minor: u32,
}

/// The versioned owner of a tensor, of DLPack 1.0 and later. [`ManagedTensor`] owns either kind.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version. It is the first field, so that it can be read in structs of any version.
    pub version: DLPackVersion,
    /// Producer's context.
    pub manager_ctx: *mut c_void,
    /// Frees this struct and what it owns; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Bits of [`flag`].
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<DLTensor>() == 48);
    assert!(offset_of!(DLTensor, ndim) == 16);
    assert!(offset_of!(DLTensor, dtype) == 20);
    assert!(offset_of!(DLTensor, shape) == 24);
    assert!(offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensor>() == 64);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};
