//! The C contract between Ultramarine and its backends.
//!
//! A backend fills a [`BackendTable`]; the host lends it a [`HostTable`]. Both sides see tensors as
//! DLPack's `DLTensor`. The rules that keep the boundary stable:
//!
//! * Every struct begins with its own `size`. Fields are only appended, and a reader copies
//!   `min(size)` bytes into a zeroed struct.
//! * Integers have fixed widths: no `bool`, no enum fields, no bit-fields.
//! * A NULL function means "unsupported".
//! * The host makes errors ([`HostTable::error_new`]) and frees them. Nothing unwinds across the
//!   boundary.
//!
//! The modules:
//!
//! * [`schema`] lists the operations with their attributes, which `docs/operations.md` specifies;
//! * [`interface`] has the optional interfaces;
//! * [`negotiate`] has the rules by which a host accepts a backend;
//! * [`helper`] helps to write a backend in Rust;
//! * [`extension`] is the contract of extensions.
//!
//! `include/ultramarine/backend.h` is the same contract in C.

pub mod extension;
pub mod helper;
mod info;
pub mod interface;
pub mod negotiate;
pub mod schema;
mod table;
mod tensor;

pub use info::*;
pub use interface::fused;
pub use table::*;
pub use tensor::*;
pub use ultramarine_dlpack as dlpack;

/// Major version of the contract, which counts incompatible changes. While it is 0 nothing is
/// frozen, and [`ABI_MINOR`] must be equal on both sides too.
pub const ABI_MAJOR: u32 = 0;
/// Minor version of the contract, which counts additions.
pub const ABI_MINOR: u32 = 2;

/// Result of a contract function: one of [`status`]; zero is success.
pub type Status = i32;

/// Values of [`Status`].
pub mod status {
    use super::Status;
    /// Success.
    pub const OK: Status = 0;
    /// Failed for another reason; the error object has the text.
    pub const ERROR: Status = 1;
    /// The operation, dtype, attribute or feature is unknown to the backend. This is not a failure:
    /// the host tries another way, and needs no text.
    pub const UNSUPPORTED: Status = 2;
    /// From [`crate::BackendTable::prepare`]: the backend could run the operation if the inputs
    /// were row-major without gaps. The host copies them and asks again.
    pub const NEEDS_CONTIGUOUS: Status = 3;
    /// There is no memory for a buffer, the outputs or the workspace. The host frees its caches and
    /// asks once more.
    pub const OUT_OF_MEMORY: Status = 4;
    /// Called in a forked child of the process that opened the device.
    pub const FORKED: Status = 5;
    /// An argument is wrong: an index, a size, a handle.
    pub const INVALID: Status = 6;
    /// The object is still being compiled. The host runs the work in another way this time, and
    /// asks again later. It is an answer of `prepare` of [`crate::fused`], of
    /// [`crate::interface::replay`], and of `status` of [`crate::interface::collective`].
    pub const NOT_YET: Status = 7;
}
