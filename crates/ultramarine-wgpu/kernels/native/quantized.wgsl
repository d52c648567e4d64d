// Numbers of few bits. Compilers and devices may flush subnormal operands, so numbers are made of normal ones.

// Sign, 2 bits of exponent, 1 of mantissa.
fn e2m1(code: u32) -> f32 {
  let size = code & 7u;
  let normal = bitcast<f32>((((size >> 1u) + 126u) << 23u) | ((size & 1u) << 22u));
  return copysign32(select(normal, 0.5 * f32(size), size < 2u), bitcast<f32>((code & 8u) << 28u));
}

// Sign, 4 bits of exponent, 3 of mantissa; all ones are NaN.
fn e4m3(code: u32) -> f32 {
  let size = code & 0x7fu;
  let normal = bitcast<f32>((size << 20u) + (120u << 23u));
  let finite = select(normal, f32(size) * 0.001953125, size < 8u);
  return select(copysign32(finite, bitcast<f32>((code & 0x80u) << 24u)), nan32(), size == 0x7fu);
}

// An exponent; the largest is infinite, the smallest subnormal.
fn e8m0(code: u32) -> f32 { return bitcast<f32>(select(code << 23u, 0x400000u, code == 0u)); }
