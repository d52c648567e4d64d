//! The C contract between Ultramarine and operations that are built outside of it.
//!
//! An extension gives the host [`Primitive`]s and gets arrays back. It calls the host through an [`ExtensionHost`]. The
//! rules of the boundary are those of backends (see the crate's page). Besides:
//!
//! * Arrays are handles. A handle that is passed in is borrowed: it is valid until the call returns, and
//!   [`ExtensionHost::array_retain`] makes one that you own. A handle that is passed out belongs to the receiver, who
//!   ends it by [`ExtensionHost::array_release`].
//! * A rule may return one of its inputs as a result, by [`ExtensionHost::array_retain`]. A rule that fails releases
//!   what it has made.
//! * A function that takes something over says so, and takes it over also if it fails. A function that fails writes no
//!   output.
//! * Rules are called without a lock of the host's, from any thread, at the same time for different arrays. They may
//!   call the host.
//! * A missing rule is a NULL function, or returns [`crate::status::UNSUPPORTED`] without an error object. An evaluation
//!   may return it with an error object, which is reported if there is no `compose` either.
//! * The caller sets the `size` of a struct that is to be filled. A rule's results are NULL before the call.
//! * `error` may be NULL in functions of the host, and is never NULL in rules.
//! * In an array of structs without a stride of its own, elements are as far apart as the first one's `size` says.
//!
//! `include/ultramarine/extension.h` says the same in C.

mod call;
mod host;
mod python;
mod rules;

pub use call::*;
pub use host::*;
pub use python::*;
pub use rules::*;

use crate::MAX_NDIM;
use core::ffi::c_void;
use ultramarine_dlpack::DLDataType;

/// Incompatible changes of this contract, which has its own version. A host takes extensions of its own major.
pub const EXTENSION_MAJOR: u16 = 1;
/// Additions to this contract, which append fields to structs.
pub const EXTENSION_MINOR: u16 = 2;

/// A handle of an array. Opaque, usable from any thread.
#[repr(C)]
pub struct ArrayHandle {
    _opaque: [u8; 0],
}

/// Values of [`PlaceCode::kind`].
pub mod place {
    /// Where the operands are at home, else the default device.
    pub const DEFAULT: u32 = 0;
    /// The default stream of a device.
    pub const DEVICE: u32 = 1;
    /// A stream.
    pub const STREAM: u32 = 2;
    /// [`super::PlaceCode::device_type`] of the CPU.
    pub const CPU: u32 = 0;
    /// [`super::PlaceCode::device_type`] of accelerators.
    pub const GPU: u32 = 1;
}

/// The place where an operation runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceCode {
    /// `size_of::<PlaceCode>()` of the writer.
    pub size: u32,
    /// One of [`place`].
    pub kind: u32,
    /// [`place::CPU`] or [`place::GPU`].
    pub device_type: u32,
    /// Index of the device.
    pub device_index: u32,
    /// Index of the stream.
    pub stream_index: u32,
    /// Reserved, zero.
    pub reserved: u32,
}

/// Shape and dtype of an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorType {
    /// `size_of::<TensorType>()` of the writer.
    pub size: u32,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Reserved, zero.
    pub reserved: u32,
    /// Sizes; the first `ndim` count.
    pub shape: [i64; MAX_NDIM],
}

/// Bits of [`View::flags`].
pub mod view {
    /// Row-major without gaps.
    pub const ROW_CONTIGUOUS: u32 = 1;
    /// Of an input: `take` would succeed for an output of its size.
    pub const MAY_TAKE: u32 = 2;
}

/// A tensor of an evaluation: its elements in memory. Valid during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// `size_of::<View>()` of the writer.
    pub size: u32,
    /// Bits of [`view`].
    pub flags: u32,
    /// The first element; NULL on devices, and for outputs without memory yet.
    pub data: *mut c_void,
    /// `ndim` sizes.
    pub shape: *const i64,
    /// `ndim` strides, in elements; any sign, 0 where broadcast.
    pub strides: *const i64,
    /// Number of elements.
    pub elements: i64,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
}
