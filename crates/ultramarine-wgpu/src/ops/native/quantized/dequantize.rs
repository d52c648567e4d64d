//! DEQUANTIZE, with one invocation per chunk of a row.

use super::Format;
use crate::dtype::Dtype;
use crate::launch::{Job, OpRequest, View, Work, count};
use crate::program::Kernel;
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::DequantizeAttrs;

const QUANTIZED: &str = include_str!("../../../../kernels/native/quantized.wgsl");

struct Dequantize {
    format: Format,
    global: bool,
    kernel: Arc<Kernel>,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: DequantizeAttrs = request.attributes()?;
    let DequantizeAttrs { mode, bits, group, biases, global_scale, .. } = attributes;
    let dtype = request.output(0)?.dtype;
    let format = Format::of(mode, bits, group, biases == 1, dtype)?;
    let global = global_scale == 1;
    let dtypes: Vec<Dtype> = request.inputs.iter().map(|desc| desc.dtype).collect();
    let mut expected = vec![Dtype::Uint32, format.scales(dtype)];
    expected.extend(format.is_affine().then_some(dtype));
    expected.extend(global.then_some(Dtype::Float32));
    let ranks = request.inputs.iter().take(2).all(|desc| desc.ndim == 2);
    if dtypes != expected || !ranks || request.output(0)?.ndim != 2 {
        return Err(Failure::invalid("words, scales, biases and output do not fit"));
    }
    let kernel = request.device.programs.get(source(format, dtype, global))?;
    Ok(Box::new(Dequantize { format, global, kernel }))
}

/// The words are: the number of invocations, the chunks of a row; offset, row stride and column stride of the words,
/// scales, biases and output; the global scale's offset.
pub(super) fn source(format: Format, dtype: Dtype, global: bool) -> Source {
    let mut tensors = vec![("packed", Dtype::Uint32), ("scales", format.scales(dtype))];
    tensors.extend(format.is_affine().then_some(("biases", dtype)));
    tensors.extend(global.then_some(("global", Dtype::Float32)));
    tensors.push(("out", dtype));
    let tensors: Vec<Tensor> =
        tensors.into_iter().map(|(name, dtype)| Tensor { name, dtype }).collect();
    let per_group = format.group / format.chunk();
    let mut body = format!(
        "let row = i / word(1u);\nlet c = i - row * word(1u);\nlet g = c / {per_group}u;\n\
         let at = word(2u) + row * word(3u) + c * {}u * word(4u);\n\
         let scale = scale_of(word(5u) + row * word(6u) + g * word(7u)){};\n\
         let bias = bias_of(word(8u) + row * word(9u) + g * word(10u));\n\
         let to = word(11u) + row * word(12u) + c * {}u * word(13u);\n{}",
        format.words(),
        if global { " * (R(load_global(word(14u))) / R(2688))" } else { "" },
        format.chunk(),
        format.unpack("at", "word(4u)"),
    );
    for e in 0..format.chunk() {
        let bias = if format.is_affine() { " + bias" } else { "" };
        _ = writeln!(body, "store_out(to + {e}u * word(13u), q{e} * scale{bias});");
    }
    Program::new(&tensors).library(QUANTIZED).item(&format.items(dtype)).body(&body).build()
}

impl Work for Dequantize {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (packed, scales, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let biases = if self.format.is_affine() { Some(job.input(2)?) } else { None };
        let global = if self.global { Some(job.input(job.inputs.len() - 1)?) } else { None };
        let (rows, columns) = (out.shape[0], out.shape[1]);
        self.format.check(columns, packed.shape[1], scales.shape[1])?;
        let fits = [packed.shape[0], scales.shape[0]] == [rows; 2];
        if !fits || biases.is_some_and(|biases| biases.shape != scales.shape) {
            return Err(Failure::invalid("words, scales and biases of different shapes"));
        }
        let chunks = columns / i64::from(self.format.chunk());
        let mut words = vec![chunks as u32];
        for view in [Some(packed), Some(scales), biases, Some(out)] {
            words.extend(view.map_or([0; 3], |view: &View<'_>| {
                [view.offset, view.strides[0], view.strides[1]].map(|n| n as u32)
            }));
        }
        words.push(global.map_or(0, |view| view.offset as u32));
        let blocks: Vec<_> = job.inputs.iter().chain([out]).map(|view| &view.block).collect();
        job.launch(&self.kernel, &blocks, count([rows, chunks])?, &words)
    }
}
