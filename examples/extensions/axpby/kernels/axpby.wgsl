// z = alpha x + beta y in WGSL, for arrays without gaps. Elements of 16 bits lie two in a word.
// WGSL lets compilers fuse a product with a sum: the last bit of a result may differ from that of the composed expression.

@group(0) @binding(3) var<uniform> alpha: f32;
@group(0) @binding(4) var<uniform> beta: f32;
@group(0) @binding(5) var<uniform> n: u32;

@group(0) @binding(0) var<storage, read> x_float32: array<f32>;
@group(0) @binding(1) var<storage, read> y_float32: array<f32>;
@group(0) @binding(2) var<storage, read_write> z_float32: array<f32>;

@compute @workgroup_size(256)
fn axpby_float32(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < n; i += groups.x * 256u) {
    z_float32[i] = alpha * x_float32[i] + beta * y_float32[i];
  }
}

@group(0) @binding(0) var<storage, read> x_complex64: array<um_complex64>;
@group(0) @binding(1) var<storage, read> y_complex64: array<um_complex64>;
@group(0) @binding(2) var<storage, read_write> z_complex64: array<um_complex64>;

@compute @workgroup_size(256)
fn axpby_complex64(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let a = um_complex(alpha, 0.0);
  let b = um_complex(beta, 0.0);
  for (var i = id.x; i < n; i += groups.x * 256u) {
    z_complex64[i] = um_multiply(a, x_complex64[i]) + um_multiply(b, y_complex64[i]);
  }
}

@group(0) @binding(0) var<storage, read> x_words: array<u32>;
@group(0) @binding(1) var<storage, read> y_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> z_words: array<u32>;

fn combine_float16(x: f32, y: f32) -> f32 {
  return quantizeToF16(alpha * x) + quantizeToF16(beta * y);
}

@compute @workgroup_size(256)
fn axpby_float16(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < (n + 1u) / 2u; i += groups.x * 256u) {
    let x = x_words[i];
    let y = y_words[i];
    let low = combine_float16(um_float16_of(x, 0u), um_float16_of(y, 0u));
    let high = combine_float16(um_float16_of(x, 1u), um_float16_of(y, 1u));
    z_words[i] = um_float16_pair(low, high);
  }
}

fn round_bfloat16(x: f32) -> f32 { return um_from_bfloat16(um_to_bfloat16(x)); }
fn combine_bfloat16(x: f32, y: f32) -> f32 {
  return round_bfloat16(alpha * x) + round_bfloat16(beta * y);
}

@compute @workgroup_size(256)
fn axpby_bfloat16(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < (n + 1u) / 2u; i += groups.x * 256u) {
    let x = x_words[i];
    let y = y_words[i];
    let low = combine_bfloat16(um_bfloat16_of(x, 0u), um_bfloat16_of(y, 0u));
    let high = combine_bfloat16(um_bfloat16_of(x, 1u), um_bfloat16_of(y, 1u));
    z_words[i] = um_bfloat16_pair(low, high);
  }
}
