//! The C contract between Ultramarine and operations that are built outside of it.
//!
//! An extension hands the host [`Primitive`]s and gets arrays back; it reaches the host through an [`ExtensionHost`].
//! The rules of the boundary are those of backends (see the crate's page). Besides:
//!
//! * Arrays are handles. One that is passed in is borrowed: it is good until the call returns;
//!   [`ExtensionHost::array_retain`] makes one of your own. One that is passed out is the receiver's, who ends it by
//!   [`ExtensionHost::array_release`].
//! * A function that fails writes no output. What it was to take over (it says so) it takes over also when it fails.
//! * Rules are called without a lock of the host's, from any thread. They may call the host.
//! * A rule that is not there is a NULL function, or returns [`crate::status::UNSUPPORTED`] without an error object. An
//!   evaluation may return it with words, which are reported where there is no `compose` either.
//! * A struct that is to be filled comes with its `size` set by whoever asks. A rule's results are NULL before the call.
//! * A rule may hand out one of its inputs as a result, by [`ExtensionHost::array_retain`]. If it fails it releases what it
//!   made itself.
//! * `error` may be NULL where the host is called and is never NULL where a rule is called.
//! * In arrays of structs without a stride of their own, elements lie `size` bytes apart, the first one's.
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
/// Additions to this contract, which stand behind the sizes of structs.
pub const EXTENSION_MINOR: u16 = 2;

/// An array. Opaque.
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

/// Place where an operation runs.
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

/// Shape and dtype.
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

/// A tensor of an evaluation. Valid during the call.
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
