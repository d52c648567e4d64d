//! SOFTMAX and LOGSUMEXP.

use super::reduce::{Reduction, kernels_of, vector};
use super::reduction::{self, Fold, Kernels, Kind, Problem};
use super::{rooms::ByRoom, text};
use crate::dtype::Dtype;
use crate::job::Job;
use crate::launch::{Grid, launch};
use crate::plan::{Ask, Work};
use crate::program::Source;
use crate::view::{View, row_major};
use crate::walk::Axes;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AxesAttrs;

/// `kernels/softmax.cuh`; goes behind `reduce.cuh`.
pub const TEXT: &str = include_str!("../../kernels/softmax.cuh");

const TEXTS: &[&str] = &[text::NUMBER, text::WALK, reduction::TEXT, TEXT];

/// The operand's dtype and the axes of a request.
fn asked(ask: &Ask<'_>) -> Result<(Dtype, u64)> {
    ask.elementwise(1)?;
    let AxesAttrs { axes, .. } = ask.attributes()?;
    let (input, output) = (ask.input(0)?, ask.output(0)?);
    if input.dtype != output.dtype || !input.dtype.is_real() {
        return Err(Failure::unsupported(format!(
            "of {} into {}: the exponentials' dtypes are floating, and the output's is the input's",
            input.dtype.name(),
            output.dtype.name()
        )));
    }
    Ok((input.dtype, axes))
}

/// Bytes of `ScaledSum`.
fn accumulator(dtype: Dtype) -> u64 {
    if dtype == Dtype::Float64 { 16 } else { 8 }
}

/// LOGSUMEXP: any axes, any strides.
pub fn prepare_logsumexp(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (dtype, axes) = asked(ask)?;
    Ok(Box::new(Reduction {
        axes,
        accumulator: accumulator(dtype),
        vector: vector(dtype),
        longest: u64::MAX,
        kernels: kernels_of(format!("LogSumExp<{}>", dtype.tag()), dtype, TEXTS),
    }))
}

/// How rows are held in registers: `E` times `V` elements in each of `TEAM` threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Threads of a row.
    pub team: u64,
    /// `E`.
    pub times: u64,
    /// `V`.
    pub vector: u64,
}

impl Rows {
    /// The smallest team that holds so many elements, if one does. `words`: registers of an element.
    pub fn of(count: u64, most: u64, words: u64) -> Option<Self> {
        let mut vector = most;
        while !count.is_multiple_of(vector) {
            vector /= 2;
        }
        let held = |(team, registers): (u64, u64)| {
            let times = count.div_ceil(vector).div_ceil(team).next_power_of_two();
            (times * vector * words <= registers).then_some(Self { team, times, vector })
        };
        [(32, 16), (256, 32), (1024, 32)].into_iter().find_map(held)
    }

    /// Threads of a block.
    pub fn threads(self) -> u64 {
        self.team.max(256)
    }
}

struct Softmax {
    axes: u64,
    dtype: Dtype,
    sums: Kernels,
    apply: ByRoom,
}

/// SOFTMAX: any axes, any strides.
pub fn prepare_softmax(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (dtype, axes) = asked(ask)?;
    let d = dtype.tag();
    let sums = kernels_of(format!("SoftmaxSum<{d}>"), dtype, TEXTS);
    let apply = ByRoom::new(&format!("softmax {d}"), TEXTS, |room, index| {
        (
            format!(
                "const {d}::T *in, {d}::T *out, const ScaledSum<{d}::A> *sums, const Walk<3, {room}> w"
            ),
            format!("softmax_apply<{d}, {room}, {index}>(in, out, sums, w);"),
        )
    });
    Ok(Box::new(Softmax { axes, dtype, sums, apply }))
}

/// The rows of a tensor, as a reduction into packed sums.
struct Sums {
    fold: Fold,
    /// The sums' strides over the tensor's shape.
    strides: Vec<i64>,
    bytes: u64,
}

impl Softmax {
    /// Input and output walked together, where a row is one contiguous axis that fits in registers.
    fn rows(&self, job: &Job<'_>, input: &View<'_>, output: &View<'_>) -> Option<(Fold, Rows)> {
        let bytes = self.dtype.bytes();
        let fold = Fold::of(
            &job.device.facts,
            &Problem {
                shape: input.shape,
                strides: &[input.strides, output.strides],
                places: &[(input.address, bytes), (output.address, bytes)],
                out: &vec![0; input.shape.len()],
                axes: self.axes,
                vector: vector(self.dtype),
            },
        );
        let packed = fold.along.as_ref().is_some_and(|along| along.iter().all(|s| *s == 1));
        let by_rows = matches!(fold.variant.kind, Kind::Rows(_));
        let words = if self.dtype == Dtype::Float64 { 2 } else { 1 };
        let rows = Rows::of(fold.count, fold.variant.vector.into(), words)?;
        (packed && by_rows).then_some((fold, rows))
    }

    fn sums(&self, job: &Job<'_>, input: &View<'_>) -> Sums {
        let gone = |i: usize| self.axes >> i & 1 == 1;
        let kept: Vec<i64> =
            input.shape.iter().enumerate().map(|(i, n)| if gone(i) { 1 } else { *n }).collect();
        let mut strides = row_major(&kept);
        strides.iter_mut().enumerate().filter(|(i, _)| gone(*i)).for_each(|(_, s)| *s = 0);
        let fold = Fold::of(
            &job.device.facts,
            &Problem {
                shape: input.shape,
                strides: &[input.strides],
                places: &[(input.address, self.dtype.bytes())],
                out: &strides,
                axes: self.axes,
                vector: vector(self.dtype),
            },
        );
        let bytes = (fold.outputs * accumulator(self.dtype)).next_multiple_of(256);
        Sums { fold, strides, bytes }
    }

    fn run_rows(&self, job: &Job<'_>, fold: &Fold, rows: Rows) -> Result<()> {
        let (d, kept, index) = (self.dtype.tag(), fold.variant.rooms.0, fold.variant.index());
        let Rows { team, times, vector } = rows;
        let template = format!("{d}, {kept}, {index}, {team}, {times}, {vector}");
        let tail = format!(
            "extern \"C\" __global__ void __launch_bounds__({}) kernel(const {d}::T *in, {d}::T *out, const Fold<2, {kept}, 1> w) {{ softmax_rows<{template}>(in, out, w); }}\n",
            rows.threads()
        );
        let source = Source::new(format!("softmax rows {template}"), TEXTS, tail);
        let kernel = job.device.programs.kernel(job.device, &source)?;
        let blocks = fold.outputs.div_ceil(rows.threads() / team).min(1 << 30);
        let grid = Grid::line(blocks as u32, rows.threads() as u32);
        let (input, output) = (job.input(0)?.address, job.output(0)?.address);
        launch!(job, &kernel, grid; input, output, fold.words[..])
    }
}

impl Work for Softmax {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let (input, output) = (job.input(0)?, job.output(0)?);
        if self.rows(job, input, output).is_some() {
            return Ok(0);
        }
        let sums = self.sums(job, input);
        Ok(sums.bytes + sums.fold.workspace(accumulator(self.dtype)))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, output) = (job.input(0)?, job.output(0)?);
        if input.shape != output.shape {
            return Err(Failure::invalid(format!(
                "softmax of {:?} into {:?}",
                input.shape, output.shape
            )));
        }
        if let Some((fold, rows)) = self.rows(job, input, output) {
            return self.run_rows(job, &fold, rows);
        }
        let sums = self.sums(job, input);
        let fold = &sums.fold;
        let (from, to, at) = (input.address, output.address, job.scratch()?);
        let partial = at + sums.bytes;
        let kernel = self.sums.get(job.device, &fold.variant)?;
        launch!(job, &kernel, fold.grid(); from, at, partial, fold.words[..])?;
        self.sums.merge(job, fold, at, partial)?;
        let axes = Axes::join(input.shape, [input.strides, output.strides, &sums.strides]);
        let (words, _) = axes.parameter();
        let kernel = self.apply.get(job.device, &axes)?;
        let grid = Grid::over(job.device, axes.len(), 4);
        launch!(job, &kernel, grid; from, to, at, words[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_the_smallest_team() {
        let rows =
            |count, most, words| Rows::of(count, most, words).map(|r| (r.team, r.times, r.vector));
        assert_eq!(rows(512, 4, 1), Some((32, 4, 4)));
        assert_eq!(rows(4096, 4, 1), Some((256, 4, 4)));
        assert_eq!(rows(4098, 4, 1), Some((256, 16, 2)));
        assert_eq!(rows(32_768, 8, 1), Some((1024, 4, 8)));
        assert_eq!(rows(32_768, 2, 2), None);
        assert_eq!(rows(33, 4, 1), Some((32, 2, 1)));
        assert_eq!(rows(40_000, 4, 1), None);
    }
}
