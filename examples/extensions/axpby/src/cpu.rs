//! On the CPU: one pass over memory, for any strides, on all threads. Large results go past the caches (`blocks2` does that).
//!
//! The bits are those of the composed expression: products and sum are rounded one by one, never fused.

use crate::primitive::Axpby;
use ultramarine_extension::{Complex32, CpuCall, Dtype, Error, Half, Result, bf16, f16};

pub fn eval(of: &Axpby, call: &mut CpuCall<'_>) -> Result<()> {
    let Axpby { alpha, beta } = *of;
    match call.input_dtype(0)? {
        Dtype::Float32 => {
            let (a, b) = (alpha as f32, beta as f32);
            call.map2(|x: f32, y: f32| a * x + b * y)
        }
        Dtype::Float64 => call.map2(|x: f64, y: f64| alpha * x + beta * y),
        Dtype::Complex64 => {
            let (a, b) = (Complex32::from(alpha as f32), Complex32::from(beta as f32));
            call.map2(|x: Complex32, y: Complex32| a * x + b * y)
        }
        Dtype::Float16 => float16(alpha as f32, beta as f32, call),
        Dtype::Bfloat16 => {
            // Computed in float32. The factors have the operands' dtype, as in `alpha * x`.
            let (a, b) = (bf16::of(alpha as f32).wide(), bf16::of(beta as f32).wide());
            call.map2(|x: bf16, y: bf16| {
                let (u, v) = (bf16::of(a * x.wide()), bf16::of(b * y.wide()));
                bf16::of(u.wide() + v.wide())
            })
        }
        other => Err(Error::unsupported(format!("[axpby] has no kernel for {other}."))),
    }
}

/// Computed in float32, block by block: conversions are fast for many at once only.
fn float16(alpha: f32, beta: f32, call: &mut CpuCall<'_>) -> Result<()> {
    let (a, b) = (f16::of(alpha).wide(), f16::of(beta).wide());
    call.blocks2(|x: &[f16], y: &[f16], z: &mut [f16]| {
        let n = z.len();
        let (mut u, mut v) = ([0f32; CpuCall::BLOCK], [0f32; CpuCall::BLOCK]);
        let (u, v) = (&mut u[..n], &mut v[..n]);
        for (from, to, factor) in [(x, &mut *u, a), (y, &mut *v, b)] {
            f16::widen(from, to);
            to.iter_mut().for_each(|t| *t *= factor);
            f16::round(to);
        }
        u.iter_mut().zip(v).for_each(|(u, v)| *u += *v);
        f16::narrow(u, z);
    })
}
