//! CPU kernels of Ultramarine, behind the backend contract.
//!
//! The crate has no notion of graphs or arrays. It is called through the function table that [`backend_init`] fills.
//! Memory, streams and threads belong to the host.
//!
//! * [`level`]: instruction sets, chosen at run time; [`par`]: the host's pool;
//! * [`kernel`]: the traits that families implement; `table`: the contract's side;
//! * `elementwise`: functions (and `select`, casts) over contiguous tiles that fit the L1 cache;
//! * `fused`: runs programs of such functions over strided tensors. COPY, FILL, UNARY, BINARY, SELECT and
//!   REDUCE are programs of one step or none, with the kernels of `copy` and `reduce`;
//! * the other families have a module of their name: `create`, `arg_reduce`, `scan`, `sort`, `index`, `matmul`,
//!   `conv`, `fft`, `linalg`, `random`, `nn`, `quantized`;
//! * `arith`, `strided`, `scratch`: arithmetic of elements, iteration over strides, memory that threads keep.

#[macro_use(bail, ensure)]
extern crate ultramarine_abi;

#[macro_use]
pub mod dtype;

mod amx;
mod arg_reduce;
mod arith;
mod conv;
mod copy;
mod create;
pub mod elementwise;
#[cfg(feature = "fft")]
mod fft;
mod fused;
mod index;
pub mod kernel;
pub mod level;
#[cfg(feature = "linalg")]
mod linalg;
pub mod matmul;
mod nn;
pub mod par;
mod quantized;
mod random;
mod reduce;
mod scan;
mod scratch;
mod sort;
mod strided;
mod table;
#[doc(hidden)]
pub mod tested;

pub use table::{backend_init, backend_init_at};
