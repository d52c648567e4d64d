//! Texts of kernels, to the letter; and as far as there are tools on this machine, that compilers would take them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use ultramarine::fast::{Kernel, LANGUAGES, Launch, Template, prelude};
use ultramarine::{Array, Dtype, Error, Result};

const BODY: &str =
    "uint i = thread_position_in_grid.x;\nout[i] = a[i] + a_shape[0] * a_ndim + s_strides[0];";

fn kernel() -> Result<Kernel> {
    let all = Kernel::new("my kernel", &["a", "s"], &["out"])?.header("// header");
    Ok(LANGUAGES.iter().fold(all, |k, language| k.source(language, BODY)))
}

fn generated(kernel: &Kernel, language: &str, launch: &Launch) -> Result<String> {
    let a = Array::zeros(&[2, 3], Dtype::Float16)?;
    let text = kernel.whole_source(language, &[&a, &Array::scalar(1i32)], launch)?;
    let own = prelude(language).unwrap_or("");
    let rest = text.strip_prefix(own);
    assert!(rest.is_some(), "the prelude comes first");
    Ok(rest.unwrap_or("").to_owned())
}

fn exact() -> Launch {
    Launch::new([6, 1, 1], [3, 1, 1]).output(&[2, 3], Dtype::Bfloat16)
}

fn guarded() -> Launch {
    Launch::new([6, 1, 1], [4, 1, 1])
        .output(&[2, 3], Dtype::Bfloat16)
        .template("T", Template::Dtype(Dtype::Float32))
        .template("N", Template::Int(-3))
        .template("B", Template::Bool(true))
}

#[test]
fn whole_words_only() -> Result<()> {
    let a = Array::scalar(1.0f32);
    let has = |body: &str| -> Result<bool> {
        let k = Kernel::new("k", &["a"], &["out"])?.source("opencl-c", body);
        let text = k.whole_source("opencl-c", &[&a], &exact())?;
        Ok(text.contains("__global const int *a_shape"))
    };
    assert!(has("x a_shape[0]")? && has("+a_shape")? && has("ba_shape a_shape")?);
    assert!(!has("ba_shape")? && !has("a_shapes")? && !has("")? && !has("a_shape2")?);
    Ok(())
}

#[test]
fn opencl_c() -> Result<()> {
    let want = r#"#line 1 "my_kernel_header"
// header
#line 1 "my_kernel_signature"
__kernel void um_kernel_my_kernel(
    __global const um_float16 *a,
    __global const int *a_shape,
    const int a_ndim,
    __global const um_int32 *s,
    __global const long *s_strides,
    __global um_bfloat16 *out) {
  const uint3 thread_position_in_grid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
#line 1 "my_kernel"
uint i = thread_position_in_grid.x;
out[i] = a[i] + a_shape[0] * a_ndim + s_strides[0];
}
"#;
    assert_eq!(generated(&kernel()?, "opencl-c", &exact())?, want);
    let atomic = kernel()?.atomic_outputs(true).shared_memory(8);
    let want = r#"#line 1 "my_kernel_header"
// header
#line 1 "my_kernel_signature"
#define T um_float32
#define N (-3)
#define B 1
__kernel void um_kernel_my_kernel(
    __global const um_float16 *a,
    __global const int *a_shape,
    const int a_ndim,
    __global const um_int32 *s,
    __global const long *s_strides,
    volatile __global um_bfloat16 *out,
    const unsigned int um_grid_x,
    const unsigned int um_grid_y,
    const unsigned int um_grid_z,
    __local uchar *um_shared) {
  if (get_global_id(0) >= um_grid_x || get_global_id(1) >= um_grid_y || get_global_id(2) >= um_grid_z) return;
"#;
    assert!(generated(&atomic, "opencl-c", &guarded())?.starts_with(want));
    Ok(())
}

#[test]
fn cuda_c() -> Result<()> {
    let want = r#"#line 1 "my_kernel_header"
// header
#line 1 "my_kernel_signature"
extern "C" __global__ void um_kernel_my_kernel(
    const um_float16 *a,
    const int *um_a_shape,
    const int a_ndim,
    const um_int32 *s,
    const long long *um_s_strides,
    um_bfloat16 *out) {
  const um_list<int> a_shape = {um_a_shape};
  const um_list<long long> s_strides = {um_s_strides};
  const uint3 thread_position_in_grid = make_uint3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.z * blockDim.z + threadIdx.z);
#line 1 "my_kernel"
uint i = thread_position_in_grid.x;
out[i] = a[i] + a_shape[0] * a_ndim + s_strides[0];
}
"#;
    assert_eq!(generated(&kernel()?, "cuda-c", &exact())?, want);
    let made = generated(&kernel()?, "cuda-c", &guarded())?;
    let head = r#"template <typename T, int N, bool B>
__device__ __forceinline__ void um_body_my_kernel(
    const um_float16 *a,
    const int *um_a_shape,
    const int a_ndim,
    const um_int32 *s,
    const long long *um_s_strides,
    um_bfloat16 *out,
    const unsigned int um_grid_x,
    const unsigned int um_grid_y,
    const unsigned int um_grid_z) {
  if (blockIdx.x * blockDim.x + threadIdx.x >= um_grid_x || blockIdx.y * blockDim.y + threadIdx.y >= um_grid_y || blockIdx.z * blockDim.z + threadIdx.z >= um_grid_z) return;
"#;
    let tail = r#"    const unsigned int um_grid_z) {
  um_body_my_kernel<um_float32, -3, true>(a, um_a_shape, a_ndim, s, um_s_strides, out, um_grid_x, um_grid_y, um_grid_z);
}
"#;
    assert!(made.contains(head), "{made}");
    assert!(made.ends_with(tail), "{made}");
    let mlx = kernel()?.with_names_of_mlx();
    assert!(
        generated(&mlx, "cuda-c", &exact())?.starts_with("#define elem_to_loc um_elem_to_loc\n")
    );
    Ok(())
}

#[test]
fn metal() -> Result<()> {
    let want = r#"#line 1 "my_kernel_header"
// header
#line 1 "my_kernel_signature"
[[kernel]] void um_kernel_my_kernel(
    const device um_float16 *a [[buffer(0)]],
    const constant int *a_shape [[buffer(1)]],
    const constant int &a_ndim [[buffer(2)]],
    const constant um_int32 &s [[buffer(3)]],
    const constant int64_t *s_strides [[buffer(4)]],
    device um_bfloat16 *out [[buffer(5)]],
    uint3 thread_position_in_grid [[thread_position_in_grid]]) {
#line 1 "my_kernel"
uint i = thread_position_in_grid.x;
out[i] = a[i] + a_shape[0] * a_ndim + s_strides[0];
}
"#;
    assert_eq!(generated(&kernel()?, "msl", &exact())?, want);
    let made = generated(&kernel()?.atomic_outputs(true), "msl", &guarded())?;
    for part in [
        "template <typename T, int N, bool B>\n[[kernel]] void um_body_my_kernel(\n",
        "device atomic<um_bfloat16> *out [[buffer(5)]],\n    const constant unsigned int &um_grid_x [[buffer(6)]],",
        "if (thread_position_in_grid.x >= um_grid_x ||",
        "template [[host_name(\"um_kernel_my_kernel\")]] [[kernel]] decltype(um_body_my_kernel<um_float32, -3, true>) \
         um_body_my_kernel<um_float32, -3, true>;\n",
    ] {
        assert!(made.contains(part), "{made}");
    }
    let double = Launch::new([1, 1, 1], [1, 1, 1]).output(&[], Dtype::Float64);
    assert!(
        generated(&kernel()?, "msl", &double).is_err_and(|e| e.to_string().contains("no float64"))
    );
    Ok(())
}

const SHADER: &str = "let i = thread_position_in_grid.x;
let at = um_loc_a(i * threads_per_threadgroup.x / threads_per_grid.x);
if (B && um_float16_of(a[at / 2], u32(at)) > T(N)) { out[i] = pick(a_ndim); }
out[i] = u32(s[0]);";

fn shader() -> Result<Kernel> {
    let header = "fn pick(x: i32) -> u32 { return u32(x); }";
    Ok(Kernel::new("my kernel", &["a", "s"], &["out"])?.source("wgsl", SHADER).header(header))
}

#[test]
fn wgsl() -> Result<()> {
    let want = r#"fn pick(x: i32) -> u32 { return u32(x); }
alias T = f32;
const N: i32 = -3;
const B: bool = true;
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> a_shape: array<i32>;
@group(0) @binding(2) var<storage, read> a_strides: array<i32>;
@group(0) @binding(3) var<storage, read> s: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<storage, read> um_grid: array<u32, 3>;
const a_ndim: i32 = 2;
fn um_loc_a(elem: u32) -> i32 {
  var rest = i32(elem);
  var at = 0;
  for (var d = 1; d >= 0; d -= 1) {
    let next = rest / a_shape[d];
    at += (rest - next * a_shape[d]) * a_strides[d];
    rest = next;
  }
  return at;
}
const threads_per_threadgroup = vec3<u32>(4u, 1u, 1u);
@compute @workgroup_size(4, 1, 1)
fn um_kernel_my_kernel(@builtin(global_invocation_id) thread_position_in_grid: vec3<u32>) {
  let threads_per_grid = vec3<u32>(um_grid[0], um_grid[1], um_grid[2]);
  if (thread_position_in_grid.x >= um_grid[0] || thread_position_in_grid.y >= um_grid[1] || thread_position_in_grid.z >= um_grid[2]) { return; }
"#;
    assert_eq!(generated(&shader()?, "wgsl", &guarded())?, format!("{want}{SHADER}\n}}\n"));
    let atomic = shader()?.atomic_outputs(true);
    assert!(
        generated(&atomic, "wgsl", &guarded())
            .is_err_and(|e| e.to_string().contains("int32 or uint32"))
    );
    assert!(generated(&shader()?.shared_memory(4), "wgsl", &guarded()).is_err());
    Ok(())
}

/// Runs a checker over a text; `None` where there is no such program, which is said.
fn check(program: &str, arguments: &[&str], text: &str) -> Option<(bool, String)> {
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        eprintln!("SKIPPED: there is no {program} here");
        return None;
    };
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn naga_takes_the_wgsl() -> Result<()> {
    let whole = |launch: &Launch| {
        let a = Array::zeros(&[2, 3], Dtype::Float16)?;
        shader()?.whole_source("wgsl", &[&a, &Array::scalar(1i32)], launch)
    };
    let path = std::env::temp_dir().join(format!("ultramarine-{}.wgsl", std::process::id()));
    let file = path.to_string_lossy().into_owned();
    for text in [whole(&guarded())?, prelude("wgsl").unwrap_or("").to_owned()] {
        std::fs::write(&path, &text).map_err(|e| Error::Runtime(e.to_string().into()))?;
        if let Some((good, message)) = check("naga", &[&file], "") {
            assert!(good, "{message}\n{text}");
        }
    }
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// As much of CUDA as the texts use, for a C++ compiler.
const CUDA: &str = r#"
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
typedef unsigned int uint;
struct uint3 { unsigned int x, y, z; };
inline uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z) { return {x, y, z}; }
uint3 blockIdx, blockDim, threadIdx, gridDim;
int warpSize;
struct __half { unsigned short bits; operator float() const; __half &operator=(float); };
struct __nv_bfloat16 { unsigned short bits; operator float() const; __nv_bfloat16 &operator=(float); };
float __half2float(__half);
float __bfloat162float(__nv_bfloat16);
__half __float2half_rn(float);
__nv_bfloat16 __float2bfloat16_rn(float);
float __int_as_float(int);
float atomicAdd(float *, float);
"#;

/// As much of Metal.
const METAL: &str = r#"
#include <stdint.h>
#define device
#define constant
#define thread
#define threadgroup
namespace metal {}
typedef unsigned int uint;
struct uint3 { uint x, y, z; uint3(uint x, uint y, uint z) : x(x), y(y), z(z) {} };
struct half { unsigned short bits; half(float); operator float() const; };
struct bfloat { unsigned short bits; bfloat(float); operator float() const; };
template <typename T> struct atomic { T held; };
enum { memory_order_relaxed };
template <typename T> void atomic_fetch_add_explicit(atomic<T> *, T, int);
"#;

/// A body that uses what the prelude has.
const USES: &str = "uint i = thread_position_in_grid.x;
um_compute(T) v = um_load(T, x, um_elem_to_loc(i, x_shape, x_strides, x_ndim));
um_complex64 z = um_multiply(um_complex(1, 2), um_conjugate(um_complex(v, 0))) / um_complex(3, 4);
v = v + um_real(z) + um_imag(z + z - z) + threads_per_grid.x;
if (FLAG && N > 2) { um_store(T, y, i, v); }
loc = elem_to_loc(i, x_shape, x_strides, x_ndim);";

fn uses(language: &str, template: bool) -> Result<String> {
    let (body, name) = match template {
        true => (USES.replace("loc =", "long where ="), "uses"),
        false => ("y[thread_position_in_grid.x] = x[0];".to_owned(), "plain"),
    };
    let k = Kernel::new(name, &["x"], &["y"])?
        .source(language, &body)
        .ensure_row_contiguous(false)
        .with_names_of_mlx();
    let mut launch = Launch::new([5, 1, 1], [4, 1, 1]).output(&[5], Dtype::Bfloat16);
    if template {
        launch = launch
            .template("T", Template::Dtype(Dtype::Bfloat16))
            .template("N", Template::Int(3))
            .template("FLAG", Template::Bool(true));
    }
    k.whole_source(language, &[&Array::zeros(&[5], Dtype::Bfloat16)?], &launch)
}

#[test]
fn a_compiler_takes_the_cuda() -> Result<()> {
    for template in [true, false] {
        let text = format!("{CUDA}{}", uses("cuda-c", template)?);
        if let Some((good, message)) =
            check("c++", &["-std=c++17", "-fsyntax-only", "-xc++", "-"], &text)
        {
            assert!(good, "{message}");
        }
    }
    Ok(())
}

#[test]
fn a_compiler_takes_the_metal() -> Result<()> {
    for template in [true, false] {
        let text = uses("msl", template)?.replace("#include <metal_stdlib>", "");
        // These are Metal's own syntax.
        let text = text.replace(" thread = default", " = default");
        let text = text.replace("  um_complex64() threadgroup = default;\n", "");
        let text =
            text.replace("template [[host_name(\"um_kernel_uses\")]] [[kernel]]", "template");
        let text = format!("{METAL}{text}");
        let arguments = ["-std=c++17", "-fsyntax-only", "-Wno-attributes", "-xc++", "-"];
        if let Some((good, message)) = check("c++", &arguments, &text) {
            assert!(good, "{message}");
        }
    }
    Ok(())
}
