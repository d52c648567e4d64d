//! Kernels in source form: operations of your own on devices, without building anything.

/// The text that precedes kernels of a language: helpers whose names begin with `um_`. `None` for a language that has none.
///
/// Languages are `opencl-c`, `cuda-c`, `msl` and `wgsl`; `docs/kernels.md` says what there is in each.
pub fn prelude(language: &str) -> Option<&'static str> {
    Some(match language {
        "opencl-c" => include_str!("prelude/opencl.cl"),
        "cuda-c" => include_str!("prelude/cuda.cu"),
        "msl" => include_str!("prelude/metal.metal"),
        "wgsl" => include_str!("prelude/webgpu.wgsl"),
        _ => return None,
    })
}
