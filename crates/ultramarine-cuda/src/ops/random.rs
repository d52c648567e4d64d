//! RANDOM_BITS: Threefry-2x32, with the same bits as on all other devices.

use super::headers;
use crate::launch::{Axes, Dtype, Grid, Job, MAX_AXES, OpRequest, View, Work, launch};
use crate::program::{Kernel, Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};

/// Header that comes after the walks.
pub const HEADER: &str = include_str!("../../kernels/random.cuh");
const HEADERS: &[&str] = &[headers::NUMBER, headers::WALK, HEADER];

struct Random {
    dtype: Dtype,
    kernels: Kernels<Variant>,
}

/// The memory layout of the words.
#[derive(Clone, Copy, PartialEq)]
enum Places {
    /// The words of one key, contiguous, and aligned to 16 bytes.
    Line,
    /// The words of all keys, contiguous.
    Whole,
    /// As single elements, with any strides.
    Elements,
}

#[derive(Clone, Copy, PartialEq)]
struct Variant {
    places: Places,
    /// True for 64-bit indices.
    wide: bool,
}

/// RANDOM_BITS.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let (keys, output) = (request.input(0)?, request.output(0)?);
    if keys.dtype != Dtype::Uint32 || keys.ndim == 0 || output.ndim + 1 < keys.ndim {
        return Err(Failure::invalid(format!(
            "keys of {} and rank {} for an output of rank {}: keys are uint32 of shape (..., 2), \
             and the output's shape begins with what precedes the 2",
            keys.dtype.name(),
            keys.ndim,
            output.ndim
        )));
    }
    if !matches!(output.dtype, Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32) {
        return Err(Failure::unsupported(format!(
            "random bits as {}: they are uint8, uint16 or uint32",
            output.dtype.name()
        )));
    }
    Ok(Box::new(Random { dtype: output.dtype, kernels: Kernels::default() }))
}

impl Random {
    fn kernel(&self, job: &Job<'_>, variant: Variant) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, variant, || {
            let (tag, index) = (self.dtype.tag(), index(variant.wide));
            let (arguments, out, places, to) = match variant.places {
                Places::Line => {
                    let parameters = "const u32 *in, u32 *out, i64 step, i64 words, bool fourths";
                    let body = format!(
                        "const Line to = {{out}}; random_line<{index}>(in, step, words, fourths, to);"
                    );
                    let arguments = format!("line {index}");
                    return Source::with_body(HEADERS, "random_line", arguments, parameters, body);
                }
                Places::Whole => (
                    format!("words {index}"),
                    "u32 *out".to_owned(),
                    "",
                    "WholeWords to = {out};".to_owned(),
                ),
                Places::Elements => (
                    format!("{tag} {index}"),
                    format!("{tag}::T *out"),
                    ", i64 each, const Walk<1, 32> places",
                    format!("Elements<{tag}::T> to = {{out, each, &places}};"),
                ),
            };
            let parameters = format!(
                "const u32 *in, {out}, i64 step, i64 words, const Walk<1, 32> keys{places}"
            );
            let body = format!("{to} random_blocks<{index}>(in, step, words, keys, to);");
            Source::with_body(HEADERS, "random_blocks", arguments, parameters, body)
        })
    }
}

/// Number of 32-bit words for `each` elements.
fn words_of(each: u64, dtype: Dtype) -> u64 {
    (each * dtype.bytes()).div_ceil(4)
}

/// True if the words of all keys are contiguous in the output.
fn is_whole(output: &View<'_>, each: u64) -> bool {
    let whole = (each * output.dtype.bytes()).is_multiple_of(4);
    whole && output.is_contiguous() && output.is_aligned(4)
}

/// The parameters of `random_line`, which makes the words of one key.
pub struct Line {
    /// True for 64-bit indices.
    pub wide: bool,
    /// Address of the key's words, and the distance between them.
    pub key: (u64, i64),
    /// Number of words.
    pub words: u64,
    /// True if the second half of the words begins at a multiple of four.
    pub fourths: bool,
    /// Blocks and threads.
    pub grid: Grid,
}

impl Line {
    /// The parameters for a command with a single key whose words are contiguous and aligned to 16
    /// bytes. `None` for other commands.
    pub fn of(job: &Job<'_>) -> Option<Self> {
        let (keys, output) = (job.inputs.first()?, job.outputs.first()?);
        let (two, outer) = keys.shape.split_last()?;
        let fits = *two == 2 && output.shape.starts_with(outer) && outer.iter().all(|n| *n == 1);
        let each = output.len();
        if !fits || !is_whole(output, each) || !output.is_aligned(16) {
            return None;
        }
        let words = words_of(each, output.dtype);
        let blocks = words.div_ceil(2);
        Some(Self {
            wide: blocks > 1 << 30,
            key: (keys.address, keys.strides[outer.len()]),
            words,
            fourths: blocks.is_multiple_of(4),
            grid: Grid::over(job.device, blocks, 4),
        })
    }
}

impl Work for Random {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (keys, output) = (job.input(0)?, job.output(0)?);
        let outer = keys.shape.len().wrapping_sub(1);
        let fits = keys.shape.last() == Some(&2)
            && output.shape.get(..outer).is_some_and(|shape| shape == &keys.shape[..outer]);
        if !fits {
            return Err(Failure::invalid(format!(
                "keys {:?} for an output {:?}: keys are (..., 2), the output (..., n)",
                keys.shape, output.shape
            )));
        }
        if let Some(line) = Line::of(job) {
            let kernel = self.kernel(job, Variant { places: Places::Line, wide: line.wide })?;
            let Line { key: (from, step), words, fourths, grid, .. } = line;
            return launch!(job, &kernel, grid; from, output.address, step, words, fourths);
        }
        let each: u64 = output.shape[outer..].iter().map(|n| *n as u64).product();
        let walk = Axes::join(&keys.shape[..outer], [&keys.strides[..outer]]);
        let (step, words) = (keys.strides[outer], words_of(each, output.dtype));
        let blocks = walk.len() * words.div_ceil(2);
        let wide = blocks > 1 << 30;
        let grid = Grid::over(job.device, blocks, 4);
        let whole = is_whole(output, each);
        let of_keys = walk.parameter_in(MAX_AXES);
        let (from, to) = (keys.address, output.address);
        if whole {
            let kernel = self.kernel(job, Variant { places: Places::Whole, wide })?;
            return launch!(job, &kernel, grid; from, to, step, words, of_keys[..]);
        }
        let places = Axes::of([output]).parameter_in(MAX_AXES);
        let kernel = self.kernel(job, Variant { places: Places::Elements, wide })?;
        launch!(job, &kernel, grid; from, to, step, words, of_keys[..], each, places[..])
    }

    fn leads(&self, job: &Job<'_>) -> bool {
        self.dtype == Dtype::Uint32 && Line::of(job).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_places() {
        assert_eq!([1, 4, 5].map(|n| words_of(n, Dtype::Uint8)), [1, 1, 2]);
        assert_eq!([1, 2, 3].map(|n| words_of(n, Dtype::Uint16)), [1, 1, 2]);
        let view = |address, dtype, strides: &'static [i64]| View {
            address,
            dtype,
            shape: &[3, 6],
            strides,
        };
        assert!(is_whole(&view(4, Dtype::Uint16, &[6, 1]), 6));
        assert!(!is_whole(&view(2, Dtype::Uint16, &[6, 1]), 6), "between two words");
        assert!(!is_whole(&view(4, Dtype::Uint8, &[6, 1]), 6), "half a word is left over");
        assert!(!is_whole(&view(4, Dtype::Uint32, &[12, 2]), 6), "gaps");
    }
}
