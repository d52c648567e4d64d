// Numbers as they are stored, and what WGSL cannot write. The halves are not converted by devices, which round and flush
// as they like; `im.zero` is a zero that compilers do not know, and so cannot fold.

fn f16_up(bits: u32) -> f32 {
  let rest = bits & 0x7fffu;
  let subnormal = bitcast<u32>(f32(rest) * 5.9604644775390625e-8);
  // Shifted, the exponents of infinities and NaNs are all ones.
  let size = (rest << 13u) + select(0x38000000u, 0x70000000u, rest >= 0x7c00u);
  return bitcast<f32>(((bits & 0x8000u) << 16u) | select(size, subnormal, rest < 0x0400u));
}

fn f16_down(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  // Units of the last place of 0.5 are those of the subnormals.
  let subnormal = bitcast<u32>(bitcast<f32>(size) + 0.5) - 0x3f000000u;
  let normal = (size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u;
  let finite = select(normal, subnormal, size < 0x38800000u);
  let special = select(0x7c00u, 0x7e00u, size > 0x7f800000u);
  return ((bits >> 16u) & 0x8000u) | select(finite, special, size >= 0x477ff000u);
}

fn bf16_up(bits: u32) -> f32 { return bitcast<f32>(bits << 16u); }

fn bf16_down(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let near = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(near, (bits >> 16u) | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u);
}

// The same, in the upper half of a word.
fn bf16_high(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let near = bits + 0x7fffu + ((bits >> 16u) & 1u);
  // Compared as floats, since integers are the slower ones.
  return select(bits | 0x400000u, near, x == x);
}

// Two numbers in a word, the first in its lower half.
fn bf16_pair(x: f32, y: f32) -> u32 { return (bf16_high(x) >> 16u) | (bf16_high(y) & 0xffff0000u); }

// Rounded to a half and back, NaNs but for their payload.
fn f16_rounded(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  let subnormal = bitcast<u32>((bitcast<f32>(size) + 0.5) - 0.5);
  let normal = (size + 0xfffu + ((size >> 13u) & 1u)) & 0xffffe000u;
  let finite = select(normal, subnormal, size < 0x38800000u);
  let special = select(0x7f800000u, 0x7fc00000u, size > 0x7f800000u);
  return bitcast<f32>((bits & 0x80000000u) | select(finite, special, size >= 0x477ff000u));
}

fn bf16_rounded(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let near = (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u;
  // Compared as floats, since integers are the slower ones.
  return select(x, bitcast<f32>(near), x == x);
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
