//! Tensors and their descriptions, as they cross the boundary.

use core::ffi::c_void;
use ultramarine_dlpack::{DLDataType, DLTensor};

/// Most dimensions a tensor may have at the boundary.
pub const MAX_NDIM: usize = 32;

/// Memory layouts of a tensor that a plan may depend on.
pub mod layout {
    /// Row-major without gaps.
    pub const CONTIGUOUS: u32 = 0;
    /// Any strides: negative, zero (broadcast), permuted.
    pub const STRIDED: u32 = 1;
}

/// How far factors of float32 may be rounded: values of the attribute `precision` of products and convolutions.
pub mod precision {
    /// Not at all.
    pub const HIGHEST: u32 = 0;
    /// To TensorFloat-32, of 11 significant bits.
    pub const HIGH: u32 = 1;
    /// To bfloat16, of 8 significant bits.
    pub const MEDIUM: u32 = 2;

    /// Returns true for a value that has a meaning.
    pub fn is_known(value: u32) -> bool {
        value <= MEDIUM
    }
}

/// A tensor as `prepare` sees it: without sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    /// `size_of::<TensorDesc>()` of the writer.
    pub size: u32,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// One of [`layout`].
    pub layout: u32,
}

/// A tensor of a command.
///
/// For devices with host-addressable memory `dl.data + dl.byte_offset` is the
/// address of the first element (strides may lead below it). `dl.shape` and
/// `dl.strides` are never NULL unless `ndim` is 0; they and the struct are valid
/// only during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// `size_of::<Tensor>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Memory, element type, shape and strides.
    pub dl: DLTensor,
    /// The backend's own handle of the buffer (NULL for host memory).
    pub buffer: *mut c_void,
    /// Bytes in the whole buffer.
    pub buffer_size: u64,
    /// Timeline event of this backend that must reach `wait_value` before the content is
    /// touched, or NULL. Set only for devices with [`crate::device_flag::WAITS_IN_COMMANDS`];
    /// for the others the host has called `event_wait_stream`.
    pub wait: *mut c_void,
    /// Value of `wait`.
    pub wait_value: u64,
}
