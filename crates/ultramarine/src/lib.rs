//! Ultramarine: lazy arrays with streams, composable transforms, and backends
//! found and loaded while the program runs.

// Test devices are written for the crate's users.
#[cfg(test)]
extern crate self as ultramarine;

mod array;
mod backend;
pub mod backends;
mod device;
mod device_info;
mod dtype;
mod error;
mod eval;
pub mod extension;
pub mod fast;
pub mod fft;
pub mod interchange;
pub mod io;
pub mod linalg;
mod log;
pub mod memory;
mod node;
mod once;
mod ops;
mod placement;
#[doc(hidden)]
pub mod pool;
pub mod print;
pub mod random;
mod scalar;
pub mod shape;
mod stream;
#[cfg(test)]
mod testing;
mod thread_stream;
pub mod transforms;

pub use array::Array;
#[doc(hidden)]
pub use backend::measure;
pub use backend::{
    BackendInfo, OpCount, Stats, backends, op_counts, register, reset_op_counts, reset_stats,
    set_strict, stats, strict,
};
pub use device::{
    Device, DeviceType, Scope, default_device, device_count, is_available, set_default_device,
    with_stream,
};
pub use device_info::{DeviceInfo, device_info};
pub use dtype::{Category, Dtype, Element, FloatInfo, IntInfo, Kind, finfo, iinfo};
pub use error::{Error, Result};
pub use eval::{async_eval, eval, fusion, set_fusion};
pub use half::{bf16, f16};
pub use memory::buffer::{Buffer, BufferRef, Export};
pub use node::Value;
pub use num_complex::Complex32;
pub use ops::{
    assemble::{PadMode, concatenate, stack},
    binary::Number,
    convolve::{
        Convolution, ConvolveMode, conv_general, conv_transpose1d, conv_transpose2d,
        conv_transpose3d, conv1d, conv2d, conv3d, convolve,
    },
    einsum::{einsum, einsum_path},
    fill::meshgrid,
    identity::depends,
    indexing::{Index, Update},
    matmul::addmm,
    search::Side,
    select::where_,
    unique::Unique,
    view::{Dim, broadcast_arrays},
    window_functions::{bartlett, blackman, hamming, hanning},
};
pub use placement::{TransferPolicy, TransferScope, set_transfer_policy, transfer_policy};
pub use scalar::Scalar;
pub use stream::{Stream, default_stream, new_stream, set_default_stream, synchronize};
pub use thread_stream::{ThreadLocalStream, clear_streams};

/// The pages' examples in Rust are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/interchange.md")]
pub struct Interchange;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/transforms.md")]
pub struct Transforms;

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
