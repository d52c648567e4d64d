//! Operations built outside of this crate, through `ultramarine-abi`'s table for extensions.
//!
//! The whole crate `ultramarine-extension` is re-exported here. A program implements its `Primitive` trait and applies
//! the primitive just as a library that is loaded later does. `into()` converts an [`Array`](crate::Array) to the
//! extension's type and back; streams become places, and errors go through [`from_library`].
//!
//! The core's side: [`host_table`] is the table that extensions get. For debugging, [`set_poison`] finds outputs that a
//! primitive leaves unwritten.

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
