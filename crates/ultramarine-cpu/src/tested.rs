//! Internals of this crate, for its tests. The tests are separate programs that link the library as it is built,
//! because its kernels take minutes to compile and unit tests would compile them a second time.

/// The families' kernels.
pub mod families {
    pub use crate::arg_reduce::prepare as arg_reduce;
    pub use crate::conv::prepare as conv;
    pub use crate::create::{prepare_arange as arange, prepare_fill as fill};
    #[cfg(feature = "fft")]
    pub use crate::fft::prepare as fft;
    pub use crate::fused::build as fused;
    pub use crate::index::dynamic_slice::{
        prepare as dynamic_slice, prepare_update as dynamic_slice_update,
    };
    pub use crate::index::gather::prepare as gather;
    pub use crate::index::gather_axis::prepare as gather_axis;
    pub use crate::index::scatter::prepare as scatter;
    pub use crate::index::scatter_axis::prepare as scatter_axis;
    #[cfg(feature = "linalg")]
    pub use crate::linalg::prepare as linalg;
    pub use crate::matmul::prepare as matmul;
    pub use crate::random::prepare as random;
    pub use crate::scan::prepare as scan;
    pub use crate::sort::prepare as sort;
    pub use crate::sort::search::prepare as search;
}

pub use crate::fused::{Instruction, Source};
pub use crate::matmul::simd::Storage;
pub use crate::random::threefry;
pub use crate::sort::SortOutput;
pub use crate::sort::keys::Sortable;

/// Plans of Fourier transforms.
#[cfg(feature = "fft")]
pub mod plan {
    pub use crate::fft::plan::{get, kept};
}

/// Functions of elements that the tables use.
pub mod elements {
    /// Complex functions in float64.
    pub mod complex64_math {
        pub use crate::elementwise::complex64_math::*;
    }
    /// Functions of float64.
    pub mod float64 {
        pub use crate::elementwise::float64::*;
    }
    pub use crate::elementwise::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
}

/// Sorting in vectors.
#[cfg(target_arch = "x86_64")]
pub mod vector {
    pub use crate::sort::vector::arrange;
    pub use crate::sort::vector::lanes::Lane;
    pub use crate::sort::vector::samplesort::sort_by;
}

/// Products by AMX and their emulation.
#[cfg(all(target_arch = "x86_64", debug_assertions))]
pub mod tiles {
    pub use crate::amx::{TILE, Tiles, is_available};
    pub use crate::matmul::tiles::{BFLOAT16, BYTES, ROW, SIDE, Steps, emulated, steps};
}
