//! Ultramarine: lazy arrays with streams, composable transforms, and backends
//! found and loaded while the program runs.

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
