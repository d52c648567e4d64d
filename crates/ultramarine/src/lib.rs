//! Lazy arrays with streams, composable transforms, and backends that are loaded at run time.
//!
//! Ultramarine has the programming model of [MLX]. An [`Array`] is an n-dimensional array in the memory of a device.
//! Operations build a graph, which is computed when a value is needed. Functions of arrays are differentiated,
//! vectorised and compiled by [`transforms`]. Kernels for the CPU are linked in; every other device is served by a
//! backend, a shared library that the program finds while it runs. Other libraries read and give arrays without a copy,
//! by [DLPack].
//!
//! The crate `ultramarine-nn` adds layers, losses and optimizers. The Python package `ultramarine` has the same arrays.
//!
//! # Quick start
//!
//! ```
//! use ultramarine::{Array, Dtype, transforms::grad};
//!
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let y = ((&x * 2.0)? + 1.0)?; // operators borrow or take arrays, and may fail
//! assert_eq!(y.matmul(&x)?.to_vec::<f32>()?, [18.0, 26.0, 34.0, 50.0]);
//!
//! let slope = grad(|x: &Array| x.sin()?.sum(..))(&x)?;
//! assert!(slope.allclose(&x.cos()?, 1e-6, 1e-6, false)?.item::<bool>()?);
//! assert_eq!(slope.dtype(), Dtype::Float32);
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Arrays
//!
//! - An [`Array`] is a handle. A clone shares the elements. Arrays do not change: [`Array::index_update`] gives a new
//!   array, which takes over the old one's memory if no other handle needs it.
//! - The element type is a value, a [`Dtype`], not a type parameter. There are fourteen: booleans, signed and unsigned
//!   integers of 8 to 64 bits, `Float16`, `Bfloat16`, `Float32`, `Float64` and `Complex64`. Operands of different dtypes
//!   are promoted; a plain number takes the dtype of the array beside it.
//! - Shapes broadcast as in NumPy. Sizes may be 0, and an array without axes is a scalar, with shape `[]`.
//! - Axes are given as a number, an array, a range, or `..` for all ([`Axes`]); negative axes count from the last one.
//!   [`KeepDims`] keeps reduced axes with size 1.
//! - [`index!`] writes the entries of [`Array::index`]: numbers, ranges with steps, arrays, new axes.
//!
//! ```
//! use ultramarine::{Array, Dtype, KeepDims, index};
//!
//! let x = Array::arange(0.0, 24.0, 1.0, Dtype::Int32)?.reshape(&[2, 3, 4])?;
//! assert_eq!(x.index(index![1, 0..2, ..; 2])?.to_vec::<i32>()?, [12, 14, 16, 18]); // x[1, 0:2, ::2]
//! assert_eq!(x.sum(KeepDims([0, -1]))?.shape(), [1, 3, 1]);
//! assert_eq!((&x + Array::ones(&[4], Dtype::Float32)?)?.dtype(), Dtype::Float32);
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Laziness
//!
//! An operation checks shapes and dtypes, returns at once, and computes nothing. [`Array::item`], [`Array::to_vec`], printing
//! and exports compute what they need; [`eval`] computes several arrays together, and [`async_eval`] starts that and returns.
//! Chains of elementwise operations run as one fused kernel. A loop that trains evaluates once per step, which bounds the
//! graph. An evaluation that repeats an earlier one replays its commands ([`executables`]).
//!
//! ```
//! use ultramarine::{Array, Dtype, eval};
//!
//! let mut x = Array::ones(&[1000], Dtype::Float32)?;
//! for _ in 0..10 {
//!     x = (&x - 0.1 * x.square()?)?;
//!     eval([&x])?;
//! }
//! assert!(x.index(ultramarine::index![0])?.item::<f32>()? < 0.6);
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Transforms
//!
//! Transforms take functions and give functions, and nest in any order.
//!
//! | transform | result |
//! | --- | --- |
//! | [`grad`](transforms::grad), [`value_and_grad`](transforms::value_and_grad) | the gradient of a function with a scalar result |
//! | [`vjp`](transforms::vjp), [`jvp`](transforms::jvp) | products of the Jacobian with a cotangent, with a tangent |
//! | [`vmap`](transforms::vmap) | the function, over one more axis |
//! | [`compile`](fn@transforms::compile) | the function, traced once per signature; its graph is optimised and kept |
//! | [`checkpoint`](transforms::checkpoint) | the function, whose gradient recomputes intermediate values |
//! | [`CustomFunction`](transforms::CustomFunction) | a function with derivatives of its own |
//!
//! Arguments may be an array, or a tuple, a `Vec`, an option or a `BTreeMap` of those ([`Tree`](transforms::Tree)).
//!
//! ```
//! use ultramarine::{Array, Dtype, transforms::{compile, grad, vmap}};
//!
//! let cube = |x: &Array| x * x * x;
//! assert_eq!(grad(grad(cube))(&Array::scalar(2.0f32))?.item::<f32>()?, 12.0);
//!
//! let rows = Array::ones(&[5, 3], Dtype::Float32)?;
//! let norms = vmap(|x| Ok(vec![x[0].inner(&x[0])?]), &[&rows], 0, 0)?;
//! assert_eq!(norms[0].to_vec::<f32>()?, [3.0; 5]);
//!
//! let f = compile(|x| Ok(vec![(x[0].exp()? * 2.0)?]));
//! assert_eq!(f.call(&[&rows])?[0].shape(), [5, 3]);
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Devices, streams and backends
//!
//! A [`Device`] is a kind and a number (`cpu`, `gpu:0`); [`devices`] lists those that are there. The default device is the CPU.
//! Operations run on the device of their operands. [`with_device`] and [`with_stream`] choose another place for a scope,
//! [`set_default_device`] for the program. Operations of one [`Stream`] run in order; streams run side by side, and the
//! runtime orders work that passes arrays between them.
//!
//! Backends are found by [`backends`](mod@backends) at the first need of a device that is not the CPU, among the files of
//! its search paths: CUDA, Vulkan, Metal, OpenCL, and those of hardware makers. A program may load one itself by
//! [`backends::load`](fn@backends::load), or link one and [`register`] it. An operation that a backend lacks is decomposed into others or computed by the CPU;
//! [`set_strict`] makes that an error, and [`op_counts`] says how often it happened.
//!
//! ```
//! use ultramarine::{Array, Device, Dtype, device_info, devices, with_device};
//!
//! for device in devices() {
//!     println!("{device}: {}", device_info(device)?.name);
//! }
//! let device: Device = "cpu".parse()?; // or "gpu", "gpu:1"
//! let y = with_device(device, || Array::ones(&[64, 64], Dtype::Float32)?.sum(0))?;
//! assert_eq!(y.device(), device);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Interchange and files
//!
//! [`Array::to_dlpack`] and [`Array::from_dlpack`] exchange tensors with other libraries. No element is copied; the memory
//! belongs to its producer until the last consumer lets go of it. [`interchange`] has the rest: views of host memory, the
//! C exchange API, and synchronisation with foreign streams. [`io`] reads and writes `.npy`, `.npz`, `.safetensors` and
//! `.gguf`; a loaded array is read from its file when it is evaluated. [`export`] writes whole functions to a file.
//!
//! ```
//! use ultramarine::Array;
//!
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
//! let y = Array::from_dlpack(x.to_dlpack()?)?; // the same memory
//! assert_eq!((y * 2.0)?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Operations and kernels of your own
//!
//! [`extension::Primitive`] defines an operation: its kernel on the CPU or its composition of other operations, and its
//! derivatives where the composition does not give them. [`fast`] has fused operations of neural networks and runs kernels
//! from source text (CUDA C++, WGSL, OpenCL C). Libraries with operations in C are loaded by [`extension`], too.
//!
//! # Several processes
//!
//! [`distributed`] has groups of processes, collective operations and messages, over NCCL and MPI.
//!
//! # Errors
//!
//! Fallible functions return [`Result`]. An [`Error`] names the operation, the values that were given, and what would do. An
//! error while an array is computed belongs to that array: it is returned where the value is asked for, and dependent
//! operations return it as well. Bad arguments are errors, not panics.
//!
//! ```
//! use ultramarine::{Array, Dtype};
//!
//! let (x, y) = (Array::ones(&[2, 3], Dtype::Float32)?, Array::ones(&[4], Dtype::Float32)?);
//! let error = (&x + &y).unwrap_err();
//! assert!(error.to_string().contains("(2, 3) and (4,) cannot be broadcast"));
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Features
//!
//! All of these are on by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `loader` | backends and extensions from shared libraries; without it, those that are linked in |
//! | `linalg` | decompositions of matrices on the CPU |
//! | `fft` | Fourier transforms on the CPU |
//! | `npz` | files of several arrays in NumPy's format |
//! | `distributed` | groups of processes over MPI |
//!
//! Without a feature, its functions are there and return an error that names it.
//!
//! # Where to read on
//!
//! The pages of the repository's folder `docs` go further: `rust.md` (the whole of the crate by examples, the compiler's
//! messages, and tables for users of ndarray, candle and burn), `transforms.md`, `interchange.md`, `kernels.md`,
//! `write-an-operation.md`, `write-a-backend.md`.
//!
//! [MLX]: https://ml-explore.github.io/mlx/build/html/index.html
//! [DLPack]: https://dmlc.github.io/dlpack/latest/

// Test devices are written for the crate's users.
#[cfg(test)]
extern crate self as ultramarine;

pub mod backends;
pub mod distributed;
mod eval;
pub mod export;
pub mod extension;
pub mod fast;
pub mod fft;
mod graph;
pub mod interchange;
pub mod io;
pub mod linalg;
pub mod memory;
mod ops;
pub mod print;
pub mod profile;
pub mod random;
#[cfg(test)]
mod testing;
pub mod transforms;

use graph::{array, arrays, node, placement};
pub use ultramarine_runtime::shape;
use ultramarine_runtime::{backend, device, devices, dtype, error, once, scalar, stream, sync};
#[doc(hidden)]
pub use ultramarine_runtime::{
    interrupt, measure, memory::deferred_deleters::leak_from_now_on, pool,
};

ultramarine_runtime::built_in_backend!(ultramarine_cpu::backend_init);

/// Has requests of the embedding language end evaluations, between tasks and inside of loops on the CPU.
#[doc(hidden)]
pub fn set_interrupt_handler(handler: interrupt::Handler) {
    ultramarine_cpu::par::set_interrupted(interrupt::is_due);
    interrupt::set_handler(handler);
}

pub use array::Array;
pub use arrays::Arrays;
pub use backend::buffer::{Buffer, BufferRef, Export};
pub use backend::value::Value;
pub use backend::{
    BackendInfo, OpCount, Stats, backends, op_counts, register, reset_op_counts, reset_stats,
    set_strict, stats, strict,
};
pub use device::{Device, DeviceType, UnknownDevice};
/// ```
/// use ultramarine::{Device, device_info};
/// let info = device_info(Device::CPU)?;
/// assert_eq!((info.architecture.as_str(), info.backend.as_str()), (std::env::consts::ARCH, "cpu"));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub use devices::device_info;
/// ```
/// use ultramarine::{Array, Device, devices, with_device};
/// let last = devices().pop().unwrap_or(Device::CPU);
/// let y = with_device(last, || Array::ones(&[3], ultramarine::Dtype::Float32)?.sum(..))?;
/// assert_eq!((y.device(), y.item::<f32>()?), (last, 3.0));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub use devices::devices;
pub use devices::{DeviceInfo, device_count, is_available};
pub use dtype::{Category, Dtype, Element, FloatInfo, IntInfo, Kind, finfo, iinfo};
pub use error::{Error, Message, Result};
pub use eval::{
    SmallEvaluation, async_eval, eval, executables, fusion, set_executables, set_fusion,
};
pub use export::{Exporter, Function, export_function, export_to_dot};
pub use graph::determinism::{DeterministicScope, deterministic, set_deterministic};
pub use graph::precision::{
    MatmulPrecision, PrecisionScope, matmul_precision, set_matmul_precision,
};
pub use half::{bf16, f16};
pub use num_complex::Complex32;
pub use ops::{
    conv::{
        ConvolveMode, conv_general, conv_transpose1d, conv_transpose2d, conv_transpose3d, conv1d,
        conv2d, conv3d, convolve,
        options::{Convolution, Sizes},
    },
    copy::identity::depends,
    create::{
        fill::meshgrid,
        window_functions::{bartlett, blackman, hamming, hanning},
    },
    elementwise::operand::{Given, Number, Operand, OptionalOperand},
    index::{
        entry::{Entries, Index, Stepped},
        indexing::Update,
    },
    matmul::{
        addmm,
        einsum::{einsum, einsum_path},
        grouped::{BlockMasks, block_masked_mm, gather_mm, segmented_mm},
    },
    quantized::{
        Quantized,
        fp8::{from_fp8, to_fp8},
        mode::{Quantization, QuantizationMode},
        product::{SecondFactor, gather_qmm, gather_qqmm, qqmm, quantized_matmul},
        quantize::quantize,
    },
    select::where_,
    shape::{
        axes::{Axes, Axis, KeepDims, Reduced},
        concatenate::{concatenate, stack},
        pad::PadMode,
        reshape::{Dim, broadcast_arrays},
    },
    sort::{search::Side, unique::Unique},
};
pub use placement::{TransferPolicy, TransferScope, set_transfer_policy, transfer_policy};
pub use profile::profile;
pub use scalar::Scalar;
pub use stream::{
    Scope, Stream, clear_streams, default_device, default_stream, new_stream, release_stream,
    set_default_device, set_default_stream, shutdown, synchronize, with_device, with_stream,
};

/// ```
/// use ultramarine::{Array, Device, ThreadLocalStream, with_stream};
/// let local = ThreadLocalStream::new(Device::CPU)?;
/// let here = local.stream();
/// assert_eq!(local.stream(), here);
/// let there = std::thread::spawn(move || local.stream()).join();
/// assert!(there.is_ok_and(|stream| stream != here));
/// let x = Array::scalar(2.0f32);
/// let y = with_stream(here, || x.square())?;
/// assert_eq!((y.stream(), y.item::<f32>()?), (here, 4.0));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub use stream::ThreadLocalStream;

/// The pages' examples in Rust are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/interchange.md")]
pub struct Interchange;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/transforms.md")]
pub struct Transforms;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/export.md")]
pub struct FunctionFiles;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/kernels.md")]
pub struct Kernels;

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::catch_unwind;

    /// The profile `checked` does what it is for.
    #[test]
    fn overflow_and_failed_assertions_are_caught() {
        assert!(catch_unwind(|| black_box(u8::MAX) + black_box(1)).is_err(), "overflow passes");
        assert!(catch_unwind(|| debug_assert!(black_box(false))).is_err(), "assertions are off");
    }
}
