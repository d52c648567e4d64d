//! Operations that are built outside of the crate, through `ultramarine-abi`'s table for extensions.
//!
//! Everything that the crate `ultramarine-extension` has is here too: a program implements its `Primitive` trait and
//! applies it in the same way as a library that is loaded later. An [`Array`](crate::Array) becomes one of the extension's
//! by `into()`, and back; streams become places, and errors go through [`from_library`].
//!
//! The core's side: [`host_table`] is what it lends to extensions. Debugging: [`set_poison`] finds outputs that are left
//! unwritten.

mod apply;
mod boundary;
mod call;
mod derive;
mod errors;
mod evaluate;
mod handles;
mod launch;
mod native;
mod operations;
mod poison;
mod primitive;
mod provided;
mod table;
mod types;

pub use errors::{give_error, take_error};
pub use handles::{borrow_handle, own_handle, take_handle};
pub use native::{call, call_one, connect_here, from_library, library_place, provide, to_library};
pub use operations::operations;
pub use poison::{poison, set_poison};
pub(crate) use provided::{package, restored};
pub use table::host_table;
pub use types::{place_of, stream_of};
pub use ultramarine_extension::*;
