//! On accelerators: a kernel for each language, in `kernels/`.
//!
//! Each has two entries: one for arrays without gaps, one for any strides (not in WGSL, where arrays are copied first).

use crate::primitive::Axpby;
use ultramarine_extension::{Dtype, Error, GpuCall, Result};

const SOURCES: &[(&str, &str)] = &[
    ("opencl-c", include_str!("../kernels/axpby.cl")),
    ("cuda-c", include_str!("../kernels/axpby.cu")),
    ("msl", include_str!("../kernels/axpby.metal")),
    ("wgsl", include_str!("../kernels/axpby.wgsl")),
];

/// Groups that a launch has at most: WGSL has no more along an axis. Threads go on in steps of all threads.
const MOST_GROUPS: usize = 65535;

pub fn eval(of: &Axpby, call: &mut GpuCall<'_>) -> Result<()> {
    let (language, source) = call.pick("axpby", SOURCES)?;
    let (n, dtype) = (call.output(0)?.len(), call.output(0)?.dtype()?);
    let short = matches!(dtype, Dtype::Float16 | Dtype::Bfloat16);
    let wgsl = language == "wgsl";
    if (dtype == Dtype::Float64 && matches!(language, "msl" | "wgsl"))
        || (wgsl && n > u32::MAX as usize)
    {
        let text = format!("[axpby] has no kernel in {language} for {n} elements of {dtype}.");
        return Err(Error::unsupported(text));
    }
    if wgsl {
        call.contiguous(0)?;
        call.contiguous(1)?;
    }
    let dense = call.input(0)?.is_row_contiguous() && call.input(1)?.is_row_contiguous();
    let base = if dense { "axpby" } else { "axpby_strided" };
    // The dtype of a kernel: a macro, a template argument, a name of its own.
    let kernel = match language {
        "opencl-c" => {
            call.kernel(language, source, base).options(&format!("-DT=um_{dtype}")).build()
        }
        "cuda-c" => {
            let arguments = [format!("um_{dtype}")];
            let kernel = call.kernel(language, source, base).template(&[&arguments[0]]);
            kernel.options("--fmad=false").build()
        }
        _ => call.kernel(language, source, &format!("{base}_{dtype}")).build(),
    }?;

    // WGSL's smallest element is a word, so that a thread has two of the halves.
    let threads = if wgsl && short { n.div_ceil(2) } else { n };
    // The text in WGSL says 256 itself.
    let group = if wgsl { 256 } else { call.properties(&kernel)?.max_group.clamp(1, 256) };
    let groups = threads.div_ceil(group as usize).min(MOST_GROUPS) as u32;
    let (shape, x, y) =
        (call.output(0)?.shape_i64(), call.input(0)?.strides_i64(), call.input(1)?.strides_i64());
    // float64 has factors of its own, float32 computes for the others; those of the halves are rounded as `alpha * x` does.
    let factor = if dtype == Dtype::Float64 { Dtype::Float64 } else { Dtype::Float32 };
    let rounded = |value: f64| match dtype {
        Dtype::Float16 => f64::from(ultramarine_extension::f16::from_f32(value as f32)),
        Dtype::Bfloat16 => f64::from(ultramarine_extension::bf16::from_f32(value as f32)),
        _ => value,
    };
    let mut launch = call.launch(&kernel).input(0).input(1).output(0);
    launch = launch.scalar_of(factor, rounded(of.alpha)).scalar_of(factor, rounded(of.beta));
    launch = if wgsl { launch.scalar(n as u32) } else { launch.scalar(n as u64) };
    if !dense {
        launch = launch.constants(&shape).constants(&x).constants(&y).scalar(shape.len() as i32);
    }
    launch.grid([groups, 1, 1]).group([group, 1, 1]).run()
}
