// Numbers as they are stored, and what WGSL cannot write. The halves are converted in integers, since devices round and
// flush as they like; `im.zero` is a zero that compilers do not know, and so cannot fold.

fn f16_up(bits: u32) -> f32 {
  let sign = (bits & 0x8000u) << 16u;
  let rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13u)); }
  if (rest >= 0x0400u) { return bitcast<f32>(sign | ((rest << 13u) + 0x38000000u)); }
  return bitcast<f32>(sign | bitcast<u32>(f32(rest) * 5.9604644775390625e-8));
}

fn f16_down(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x477ff000u) { return sign | 0x7c00u; }
  if (size < 0x33000000u) { return sign; }
  if (size < 0x38800000u) {
    let shift = 126u - (size >> 23u);
    let mantissa = (size & 0x7fffffu) | 0x800000u;
    let whole = mantissa >> shift;
    let rest = mantissa & ((1u << shift) - 1u);
    let half_way = 1u << (shift - 1u);
    let up = rest > half_way || (rest == half_way && (whole & 1u) == 1u);
    return sign | (whole + select(0u, 1u, up));
  }
  return sign | ((size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u);
}

fn bf16_up(bits: u32) -> f32 { return bitcast<f32>(bits << 16u); }

fn bf16_down(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn inf32() -> f32 { return bitcast<f32>(0x7f800000u | im.zero); }
fn nan32() -> f32 { return bitcast<f32>(0x7fc00000u | im.zero); }
fn zero32() -> f32 { return bitcast<f32>(im.zero); }
fn inf64() -> f64 { return f64(inf32()); }
fn nan64() -> f64 { return f64(nan32()); }
fn zero64() -> f64 { return f64(zero32()); }

fn isnan32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn isinf32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn isfinite32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }
fn isnan64(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu; }
fn isinf64(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu; }
fn isfinite64(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) < 0x7ff0000000000000lu; }

fn copysign32(x: f32, s: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(s) & 0x80000000u));
}

fn copysign64(x: f64, s: f64) -> f64 {
  return bitcast<f64>((bitcast<u64>(x) & 0x7ffffffffffffffflu) | (bitcast<u64>(s) & 0x8000000000000000lu));
}
