//! Operations for Ultramarine that are built outside of it, in Rust.
//!
//! An operation is a [`Primitive`]. It has a name and fields, and a rule for the types of its
//! results if they differ from those of its operands. It is computed by its own kernel on the CPU
//! ([`CpuCall`]) or on accelerators ([`GpuCall`]), or is composed of other operations
//! ([`Primitive::compose`]). If the primitive has no rules for derivatives and batching, they are
//! derived from `compose`. [`apply`] applies a primitive and returns lazy arrays.
//!
//! The same code works inside of a program that uses the crate `ultramarine` (whose `extension`
//! module is this crate) and in a separate library, such as a Python extension (feature `python`).
//! It calls Ultramarine through a table of C functions, so one binary works with every build of the
//! same contract.
//!
//! ```no_run
//! use ultramarine_extension::{Array, CpuCall, Place, Primitive, Result, apply_one};
//!
//! /// x^2 + 1
//! #[derive(Debug)]
//! struct SquarePlusOne;
//!
//! impl Primitive for SquarePlusOne {
//!     fn name(&self) -> &str {
//!         "square_plus_one"
//!     }
//!
//!     fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
//!         call.map1(|x: f32| x * x + 1.0)
//!     }
//!
//!     fn compose(&self, inputs: &[Array]) -> Result<Vec<Array>> {
//!         Ok(vec![(&inputs[0].square()? + 1.0)?])
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let x = Array::from_slice(&[1f32, 2.0, 3.0], &[3])?;
//! let y = apply_one(SquarePlusOne, &[&x], Place::Default)?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0, 10.0]);
//! # Ok(())
//! # }
//! ```
//!
//! * [`Array`], [`Dtype`], [`TensorType`], [`Place`]: arrays and their properties;
//! * [`Primitive`], [`Attributes`], [`apply`]: operations;
//! * [`CpuCall`], [`View`], [`ViewMut`], [`parallel`]: kernels on the CPU;
//! * [`GpuCall`]: kernels in source form, for accelerators;
//! * [`connect`]: connects the primitives to a host;
//! * `python` (a feature): arrays as arguments and results of functions made with PyO3.
//!
//! Rules may panic: at the boundary the panic becomes an error with the panic's message. This
//! requires unwinding panics, which are the default.

mod array;
mod axes;
mod cpu;
mod dtype;
mod error;
mod gpu;
mod host;
mod operations;
mod operators;
mod place;
mod primitive;
#[cfg(feature = "python")]
pub mod python;
mod restore;
mod table;
mod tensor;

pub use array::{
    Array, broadcast_arrays, broadcast_shapes, broadcast_types, eval, issubdtype, promote_types,
};
pub use axes::{Axes, Axis, KeepDims, Reduced};
pub use cpu::{
    CpuCall, Half, Rows, RowsMut, Taken, View, ViewMut, copy_past_cache, parallel, thread_count,
};
pub use dtype::{Dtype, Element, Kind, Number};
pub use error::{Error, Result};
pub use gpu::{GpuCall, GpuTensor, Kernel, KernelBuilder, Launch, Temporary, prelude};
pub use half::{bf16, f16};
pub use host::{connect, connected, version};
pub use num_complex::Complex32;
pub use operations::{Attribute, concatenate, operation, stack, where_};
pub use operators::Operand;
pub use place::{DeviceKind, Place};
pub use primitive::{Attributes, Derivatives, Jvp, Primitive, Vjp, Vmap, apply, apply_one};
pub use restore::{AttributeReader, Restore, provide};
pub use tensor::TensorType;
pub use ultramarine_abi as abi;
