//! DEQUANTIZE: `quantized/dequantize.cuh`.

use super::Format;
use crate::launch::{Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::program::{Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::DequantizeAttrs;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    headers::WALK,
    include_str!("../../../kernels/quantized/unpack.cuh"),
    include_str!("../../../kernels/quantized/dequantize.cuh"),
];
/// Elements per thread.
const EACH: u64 = 8;

struct Dequantize {
    format: Format,
    dtype: Dtype,
    has_biases: bool,
    has_global: bool,
    /// By whether indices have 64 bits.
    kernels: Kernels<bool>,
}

/// DEQUANTIZE.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: DequantizeAttrs = request.attributes()?;
    let DequantizeAttrs { mode, bits, group, biases, global_scale, .. } = attributes;
    let (has_biases, has_global) = (biases == 1, global_scale == 1);
    let dtype = request.output(0)?.dtype;
    let format = Format::of(mode, bits, group, has_biases, dtype)?;
    if request.inputs.len() != 2 + usize::from(has_biases) + usize::from(has_global) {
        let text = format!("numbers of few bits with {} inputs", request.inputs.len());
        return Err(Failure::invalid(text));
    }
    let kernels = Kernels::default();
    Ok(Box::new(Dequantize { format, dtype, has_biases, has_global, kernels }))
}

impl Work for Dequantize {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (words, scales, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let biases = if self.has_biases { Some(job.input(2)?) } else { None };
        let global = if self.has_global { Some(job.input(job.inputs.len() - 1)?) } else { None };
        let [rows, columns] = two(out)?;
        let ([word_rows, of_words], [scale_rows, of_scales]) = (two(words)?, two(scales)?);
        self.format.check(columns, of_words, of_scales)?;
        if [word_rows, scale_rows] != [rows; 2] || biases.is_some_and(|b| b.shape != scales.shape) {
            return Err(Failure::invalid("words, scales and biases of different shapes"));
        }
        let tensors = [words, scales, out];
        let wide = tensors.iter().any(|t| t.span().max(t.len()) > 1 << 30);
        let kernel = self.kernels.get(&job.device.programs, wide, || {
            let (format, d, scales) =
                (self.format.tag(), self.dtype.tag(), self.format.scales(self.dtype));
            let parameters = format!(
                "const u32 *words, const {scales} *scales, const {d}::T *biases, const float *global_scale, {d}::T *out, \
                 const Rows s"
            );
            let arguments = format!("{format}, {d}, {}", index(wide));
            Source::instance(HEADERS, "dequantize", arguments, parameters)
        })?;
        let mut sizes = vec![rows, columns];
        for view in [Some(words), Some(scales), biases, Some(out)] {
            sizes.extend(view.map_or(&[0, 0][..], |view| view.strides));
        }
        let [words, scales, out] = tensors.map(|view| view.address);
        let [biases, global] = [biases, global].map(|view| view.map_or(0, |view| view.address));
        let grid = Grid::over(job.device, (rows * columns) as u64, EACH);
        launch!(job, &kernel, grid; words, scales, biases, global, out, sizes[..])
    }
}

/// The sizes of a tensor of two axes.
fn two(view: &View<'_>) -> Result<[i64; 2]> {
    let text = || format!("numbers of few bits in {} axes", view.shape.len());
    view.shape.try_into().map_err(|_| Failure::invalid(text()))
}
