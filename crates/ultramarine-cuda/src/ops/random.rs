//! RANDOM_BITS: Threefry-2x32, the same bits as everywhere.

use super::text;
use crate::launch::{Ask, Axes, Dtype, Grid, Job, MAX_AXES, View, Work, launch};
use crate::program::{Lazy, Source};
use ultramarine_abi::helper::{Failure, Result};

const TEXTS: &[&str] = &[text::NUMBER, text::WALK, include_str!("../../kernels/random.cuh")];

struct Random {
    /// For words that lie one behind another, by the width of indices.
    whole: [Lazy; 2],
    /// For elements wherever they lie.
    elements: [Lazy; 2],
}

/// RANDOM_BITS.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (keys, output) = (ask.input(0)?, ask.output(0)?);
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
    let whole = |index: &str| {
        let tail = format!(
            "extern \"C\" __global__ void kernel(const u32 *in, u32 *out, i64 step, i64 words, \
             const Walk<1, 32> keys) {{ WholeWords to = {{out}}; \
             random_blocks<{index}>(in, step, words, keys, to); }}\n"
        );
        Lazy::new(Source::new(format!("random words {index}"), TEXTS, tail))
    };
    let elements = |index: &str| {
        let tag = output.dtype.tag();
        let tail = format!(
            "extern \"C\" __global__ void kernel(const u32 *in, {tag}::T *out, i64 step, i64 words, \
             const Walk<1, 32> keys, i64 each, const Walk<1, 32> places) {{ \
             Elements<{tag}::T> to = {{out, each, &places}}; \
             random_blocks<{index}>(in, step, words, keys, to); }}\n"
        );
        Lazy::new(Source::new(format!("random {tag} {index}"), TEXTS, tail))
    };
    Ok(Box::new(Random {
        whole: [whole("i32"), whole("i64")],
        elements: [elements("i32"), elements("i64")],
    }))
}

/// 32-bit words of so many elements.
fn words_of(each: u64, dtype: Dtype) -> u64 {
    (each * dtype.bytes()).div_ceil(4)
}

/// Whether the output's memory is that of the keys' words one behind another.
fn is_whole(output: &View<'_>, each: u64) -> bool {
    let whole = (each * output.dtype.bytes()).is_multiple_of(4);
    whole && output.is_contiguous() && output.is_aligned(4)
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
        let each: u64 = output.shape[outer..].iter().map(|n| *n as u64).product();
        let walk = Axes::join(&keys.shape[..outer], [&keys.strides[..outer]]);
        let (step, words) = (keys.strides[outer], words_of(each, output.dtype));
        let blocks = walk.len() * words.div_ceil(2);
        let wide = usize::from(blocks > 1 << 30);
        let grid = Grid::over(job.device, blocks, 4);
        let of_keys = walk.parameter_in(MAX_AXES);
        let (from, to) = (keys.address, output.address);
        if is_whole(output, each) {
            let kernel = self.whole[wide].get(&job.device.programs)?;
            return launch!(job, &kernel, grid; from, to, step, words, of_keys[..]);
        }
        let places = Axes::of([output]).parameter_in(MAX_AXES);
        let kernel = self.elements[wide].get(&job.device.programs)?;
        launch!(job, &kernel, grid; from, to, step, words, of_keys[..], each, places[..])
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
