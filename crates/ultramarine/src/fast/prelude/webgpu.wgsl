// What kernels in WGSL find before their text; docs/kernels.md has the table. All names begin with um_.
// WGSL stores 32 bits at least: smaller elements lie packed in words, the first in the lowest bits.

alias um_complex64 = vec2<f32>;

fn um_complex(re: f32, im: f32) -> um_complex64 { return um_complex64(re, im); }
fn um_real(z: um_complex64) -> f32 { return z.x; }
fn um_imag(z: um_complex64) -> f32 { return z.y; }
fn um_conjugate(z: um_complex64) -> um_complex64 { return um_complex64(z.x, -z.y); }
fn um_multiply(a: um_complex64, b: um_complex64) -> um_complex64 {
  return um_complex64(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
fn um_divide(a: um_complex64, b: um_complex64) -> um_complex64 {
  let n = b.x * b.x + b.y * b.y;
  return um_complex64((a.x * b.x + a.y * b.y) / n, (a.y * b.x - a.x * b.y) / n);
}

// Element `i` of packed elements, of the word `i / 2` or `i / 4`.
fn um_float16_of(word: u32, i: u32) -> f32 { return unpack2x16float(word)[i & 1u]; }
fn um_bfloat16_of(word: u32, i: u32) -> f32 { return bitcast<f32>((word >> (16u * (i & 1u))) << 16u); }
fn um_uint8_of(word: u32, i: u32) -> u32 { return (word >> (8u * (i & 3u))) & 0xffu; }
fn um_int8_of(word: u32, i: u32) -> i32 { return i32(word << (24u - 8u * (i & 3u))) >> 24u; }
fn um_uint16_of(word: u32, i: u32) -> u32 { return (word >> (16u * (i & 1u))) & 0xffffu; }
fn um_int16_of(word: u32, i: u32) -> i32 { return i32(word << (16u - 16u * (i & 1u))) >> 16u; }

// Bits of two elements, for a word. bfloat16 rounds to the nearest, ties to even; a NaN stays one.
fn um_float16_pair(low: f32, high: f32) -> u32 { return pack2x16float(vec2<f32>(low, high)); }
fn um_to_bfloat16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return (bits >> 16u) | 0x40u;
  }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
fn um_from_bfloat16(bits: u32) -> f32 { return bitcast<f32>(bits << 16u); }
fn um_bfloat16_pair(low: f32, high: f32) -> u32 { return um_to_bfloat16(low) | (um_to_bfloat16(high) << 16u); }

// The offset, in elements, of element `elem` in row-major order, for up to four axes. (A kernel made by `fast` has
// `um_loc_NAME(elem)` for each input that its body names so, of any rank.)
fn um_elem_to_loc(elem: u32, shape: vec4<i32>, strides: vec4<i32>, ndim: i32) -> i32 {
  var rest = i32(elem);
  var at = 0;
  for (var d = ndim - 1; d >= 0; d -= 1) {
    let next = rest / shape[d];
    at += (rest - next * shape[d]) * strides[d];
    rest = next;
  }
  return at;
}
