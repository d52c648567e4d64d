//! The C contract between Ultramarine and operations that are built outside of it.
//!
//! An extension gives the host [`Primitive`]s and gets arrays back. It calls the host through an
//! [`ExtensionHost`]. The rules of the boundary are those for backends (see the crate's page). In
//! addition:
//!
//! * Arrays are handles. A handle that is passed in is borrowed: it is valid until the call
//!   returns, and [`ExtensionHost::array_retain`] makes an owned one from it. A handle that is
//!   passed out belongs to the receiver, which frees it by [`ExtensionHost::array_release`].
//! * A rule may return one of its inputs as a result, by [`ExtensionHost::array_retain`]. A rule
//!   that fails releases the arrays that it has made.
//! * If a function takes ownership of an argument, its documentation says so. It takes ownership
//!   even if it fails. A function that fails writes no output.
//! * The host holds no lock when it calls rules. It calls them from any thread, and at the same
//!   time for different arrays. They may call the host.
//! * A missing rule is a NULL function, or returns [`crate::status::UNSUPPORTED`] without an error
//!   object. An evaluation may return this status with an error object, which is reported if there
//!   is no `compose` either.
//! * The caller sets the `size` of a struct that is to be filled. A rule's results are NULL before
//!   the call.
//! * `error` may be NULL in functions of the host, and is never NULL in rules.
//! * If an array of structs has no explicit stride, the `size` of its first element is the stride.
//!
//! `include/ultramarine/extension.h` is the same contract in C.

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

/// Counts the incompatible changes of this contract, which has its own version. A host accepts
/// extensions with its own major version.
pub const EXTENSION_MAJOR: u16 = 1;
/// Counts the additions to this contract, which append fields to structs.
pub const EXTENSION_MINOR: u16 = 2;

/// A handle of an array. It is opaque, and any thread may use it.
#[repr(C)]
pub struct ArrayHandle {
    _opaque: [u8; 0],
}

/// Values of [`PlaceCode::kind`].
pub mod place {
    /// The home device of the operands; if they have none, the default device.
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
    /// Sizes. Only the first `ndim` are used.
    pub shape: [i64; MAX_NDIM],
}

/// Bits of [`View::flags`].
pub mod view {
    /// Row-major without gaps.
    pub const ROW_CONTIGUOUS: u32 = 1;
    /// For an input: `take` would succeed for an output of the same size.
    pub const MAY_TAKE: u32 = 2;
}

/// A tensor of an evaluation: its elements in memory. It is valid during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// `size_of::<View>()` of the writer.
    pub size: u32,
    /// Bits of [`view`].
    pub flags: u32,
    /// The address of the first element. NULL on devices, and for outputs that have no memory yet.
    pub data: *mut c_void,
    /// `ndim` sizes.
    pub shape: *const i64,
    /// `ndim` strides in elements. They may have either sign, and are 0 along broadcast axes.
    pub strides: *const i64,
    /// Number of elements.
    pub elements: i64,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
}
