//! The C contract between Ultramarine and its backends.
//!
//! A backend fills a [`BackendTable`]; the host hands it a [`HostTable`]. Both
//! sides see tensors as DLPack's `DLTensor`. The rules that keep the boundary
//! stable:
//!
//! * every struct starts with its own `size`; fields are only appended, and a
//!   reader copies `min(size)` bytes into a zeroed struct;
//! * fixed-width integers only: no `bool`, no enum fields, no bit-fields;
//! * a NULL function means "unsupported";
//! * errors are made by the host ([`HostTable::error_new`]), so they are freed
//!   where they were made; nothing unwinds across the boundary.
//!
//! [`schema`] lists the operations, their attributes and their number rules,
//! [`interface`] what a backend may offer besides. [`negotiate`] says which backends a host
//! takes, [`helper`] helps to write one in Rust. `include/ultramarine/backend.h` says
//! the same in C.

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

/// Incompatible changes of the contract. 0 while nothing is frozen.
pub const ABI_MAJOR: u32 = 0;
/// Additions to the contract.
pub const ABI_MINOR: u32 = 2;

/// Result of a contract function; zero is success.
pub type Status = i32;

/// Values of [`Status`].
pub mod status {
    use super::Status;
    /// Done.
    pub const OK: Status = 0;
    /// Failed; an error object says why.
    pub const ERROR: Status = 1;
    /// The backend does not know this op, dtype or attribute: try another way.
    pub const UNSUPPORTED: Status = 2;
    /// The backend could, were the inputs row-major contiguous.
    pub const NEEDS_CONTIGUOUS: Status = 3;
    /// No memory for the outputs or the workspace.
    pub const OUT_OF_MEMORY: Status = 4;
    /// Called in a forked child of the process that opened the device.
    pub const FORKED: Status = 5;
    /// An argument is wrong: an index, a size, a handle.
    pub const INVALID: Status = 6;
    /// Of the fused interface's `prepare`, and of recordings: kernels are being compiled. Go another
    /// way (unfused, by `submit`), and ask again next time.
    pub const NOT_YET: Status = 7;
}
