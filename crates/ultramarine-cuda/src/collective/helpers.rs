//! Kernels beside NCCL's: conversions to dtypes that it has, and the order of complex numbers.

use crate::launch::{Device, Dtype, Grid, Job, launch};
use crate::ops::{elementwise, headers};
use crate::program::{Kernels, Source};
use crate::streams::Stream;
use smallvec::SmallVec;
use ultramarine_abi::helper::Result;

/// Headers of conversions.
const CONVERTS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../kernels/collective.cuh")];

/// Headers of all functions.
const CHOOSES: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    elementwise::REAL,
    elementwise::COMPLEX,
    include_str!("../../kernels/collective.cuh"),
];

/// The kernels of a device, once they were used.
#[derive(Default)]
pub struct Helpers {
    conversions: Kernels<(Dtype, Dtype)>,
    choices: Kernels<bool>,
}

/// Work of a stream without tensors.
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
        (device, stream): (&Device, &Stream),
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

    /// Enqueues the choice of the largest or smallest complex number of each of `count` places over the ranks. The context is
    /// current.
    pub fn choose(
        &self,
        (device, stream): (&Device, &Stream),
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
