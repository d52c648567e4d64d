//! Tensors and their descriptions, in the form in which they cross the boundary.

use core::ffi::c_void;
use ultramarine_dlpack::{DLDataType, DLTensor};

/// Most dimensions of a tensor.
pub const MAX_NDIM: usize = 32;

/// Memory layouts of a tensor that a plan may depend on.
pub mod layout {
    /// Row-major without gaps.
    pub const CONTIGUOUS: u32 = 0;
    /// Any strides: negative, zero (broadcast), permuted.
    pub const STRIDED: u32 = 1;
}

/// Precision of the factors of float32 products: values of the attribute `precision` of MATMUL and
/// convolutions.
pub mod precision {
    /// The factors are used unchanged.
    pub const HIGHEST: u32 = 0;
    /// Factors may be rounded to TensorFloat-32: 11 significant bits.
    pub const HIGH: u32 = 1;
    /// Factors may be rounded to bfloat16: 8 significant bits.
    pub const MEDIUM: u32 = 2;

    /// Returns true for one of the three values.
    pub fn is_known(value: u32) -> bool {
        value <= MEDIUM
    }
}

/// A tensor in a request for a plan ([`crate::BackendTable::prepare`]). It has no sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    /// `size_of::<TensorDesc>()` of the writer.
    pub size: u32,
    /// Number of dimensions, 0 to [`MAX_NDIM`].
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// One of [`layout`].
    pub layout: u32,
}

/// A tensor of a [`crate::Command`]. No size in `dl.shape` is 0.
///
/// On a device with host memory the first element is at `dl.data + dl.byte_offset`. On any other
/// device `dl.data` is NULL, and the first element is at byte `dl.byte_offset` of `buffer`. With
/// negative strides other elements lie before the first, but none lies outside of the buffer.
///
/// `dl.shape` and `dl.strides` are not NULL unless `dl.ndim` is 0. Strides count elements. The
/// struct and everything it points to are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// `size_of::<Tensor>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Memory, element type, shape and strides.
    pub dl: DLTensor,
    /// Handle of the buffer; NULL for memory of the host.
    pub buffer: *mut c_void,
    /// Size of the whole buffer in bytes.
    pub buffer_size: u64,
    /// Timeline event that must reach `wait_value` before the memory is used, or NULL. Set only for
    /// devices with [`crate::device_flag::WAITS_IN_COMMANDS`]; for others the host has called
    /// [`crate::BackendTable::event_wait_stream`].
    pub wait: *mut c_void,
    /// Value that `wait` must reach.
    pub wait_value: u64,
}
