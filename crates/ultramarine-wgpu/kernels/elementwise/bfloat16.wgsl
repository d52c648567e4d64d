// bfloat16, in place of functions of float32 that are far more exact than its 8 bits need.

// x p(x^2), within 2^-15 of it, up to 2.25: what is above rounds to 1.
fn unary_erf(x: f32) -> f32 {
  let z = x * x;
  var p = fma(1.5782241e-5, z, -3.6667462e-4);
  p = fma(p, z, 0.003837956);
  p = fma(p, z, -0.024631307);
  p = fma(p, z, 0.11101237);
  p = fma(p, z, -0.37553814);
  p = fma(p, z, 1.1283463);
  let size = bitcast<u32>(x) & 0x7fffffffu;
  return select(x * p, copysign32(1.0, x), size - 0x40100001u < 0x3f700000u);
}
