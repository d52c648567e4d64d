//! Kernels that run beside NCCL's: conversions to dtypes that NCCL supports, and the maximum and
//! minimum of complex numbers.

use crate::launch::{Device, Dtype, Grid, Job, launch};
use crate::ops::{elementwise, headers};
use crate::program::{Kernels, Source};
use crate::streams::Stream;
use smallvec::SmallVec;
use ultramarine_abi::helper::Result;

/// Headers of the conversion kernels.
const CONVERTS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../kernels/collective/forms.cuh")];

/// Headers of the selection kernels.
const CHOOSES: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    elementwise::REAL,
    elementwise::COMPLEX,
    include_str!("../../kernels/collective/choose.cuh"),
];

/// Bit patterns of a float dtype: infinity, and a NaN.
fn special(dtype: Dtype) -> (u64, u64) {
    match dtype {
        Dtype::Float16 => (0x7c00, 0x7e00),
        Dtype::Bfloat16 => (0x7f80, 0x7fc0),
        Dtype::Float64 => (0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000),
        _ => (0x7f80_0000, 0x7fc0_0000),
    }
}

/// The unsigned types of a float dtype's bits and of its keys; NCCL supports the latter.
fn words(dtype: Dtype) -> (&'static str, &'static str) {
    match dtype.bytes() {
        2 => ("u16", "u32"),
        8 => ("u64", "u64"),
        _ => ("u32", "u32"),
    }
}

/// Where kernels around a collective are enqueued: the device, whose context is current, and the
/// stream.
pub type On<'a> = (&'a Device, &'a Stream);

/// The kernels of a device that run before and after NCCL's collectives. They are compiled at their
/// first use; see [`Kernels`].
#[derive(Default)]
pub struct Helpers {
    conversions: Kernels<(Dtype, Dtype)>,
    /// By dtype, and by whether the largest is wanted.
    keys: Kernels<(Dtype, bool)>,
    floats: Kernels<Dtype>,
    choices: Kernels<bool>,
}

/// A job on a stream, without tensors.
fn job<'a>(device: &'a Device, stream: &'a Stream) -> Job<'a> {
    Job {
        device,
        stream: Some(stream),
        graph: None,
        inputs: SmallVec::new(),
        outputs: SmallVec::new(),
        scalars: SmallVec::new(),
        workspace: 0,
    }
}

impl Helpers {
    /// Enqueues the conversion of `count` elements at `from` to `to`. The context is current.
    pub fn convert(
        &self,
        (device, stream): On<'_>,
        (to, to_dtype): (u64, Dtype),
        (from, from_dtype): (u64, Dtype),
        count: u64,
    ) -> Result<()> {
        let source = || {
            let (to, from) = (to_dtype.tag(), from_dtype.tag());
            let parameters = format!("{to}::T *out, const {from}::T *in, i64 n");
            Source::instance(CONVERTS, "convert_elements", format!("{to}, {from}"), parameters)
        };
        let kernel = self.conversions.get(&device.programs, (to_dtype, from_dtype), source)?;
        launch!(&job(device, stream), &kernel, Grid::over(device, count, 4); to, from, count)
    }

    /// Enqueues the conversion of `count` floats at `from` to keys at `to`. The context is current.
    pub fn keys(
        &self,
        (device, stream): On<'_>,
        (dtype, largest): (Dtype, bool),
        (to, from): (u64, u64),
        count: u64,
    ) -> Result<()> {
        let source = || {
            let (bits, key) = words(dtype);
            let parameters = format!("{key} *out, const {bits} *in, i64 n, {bits} infinity");
            let arguments = format!("{bits}, {key}, {largest}");
            Source::instance(CONVERTS, "keys_of_floats", arguments, parameters)
        };
        let kernel = self.keys.get(&device.programs, (dtype, largest), source)?;
        let (grid, infinity) = (Grid::over(device, count, 4), special(dtype).0);
        launch!(&job(device, stream), &kernel, grid; to, from, count, infinity)
    }

    /// Enqueues the conversion of `count` keys at `from` to floats at `to`. The context is current.
    pub fn floats(
        &self,
        (device, stream): On<'_>,
        dtype: Dtype,
        (to, from): (u64, u64),
        count: u64,
    ) -> Result<()> {
        let source = || {
            let (bits, key) = words(dtype);
            let parameters = format!("{bits} *out, const {key} *in, i64 n, {bits} nan");
            Source::instance(CONVERTS, "floats_of_keys", format!("{bits}, {key}"), parameters)
        };
        let kernel = self.floats.get(&device.programs, dtype, source)?;
        let (grid, nan) = (Grid::over(device, count, 4), special(dtype).1);
        launch!(&job(device, stream), &kernel, grid; to, from, count, nan)
    }

    /// For each of `count` elements, enqueues the selection of the largest or smallest complex number among the ranks. The
    /// context is current.
    pub fn choose(
        &self,
        (device, stream): On<'_>,
        largest: bool,
        (to, from): (u64, u64),
        (count, ranks): (u64, u32),
    ) -> Result<()> {
        let source = || {
            let parameters = "complex64 *out, const complex64 *in, i64 n, i32 ranks";
            Source::instance(CHOOSES, "choose_over_ranks", largest.to_string(), parameters)
        };
        let kernel = self.choices.get(&device.programs, largest, source)?;
        let grid = Grid::over(device, count, 2);
        launch!(&job(device, stream), &kernel, grid; to, from, count, ranks)
    }
}
