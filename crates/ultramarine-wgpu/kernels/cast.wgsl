// Floats to integers, cut off towards zero. What is out of range, and NaN, gives the smallest integer; unsigned ones of
// x - 2^(w-1), where that is not below 0, are turned back.

fn nonzero_complex(z: vec2<f32>) -> u32 { return select(0u, 1u, z.x != 0.0 || z.y != 0.0); }

fn u64_of_i32(x: i32) -> u64 {
  return u64(bitcast<u32>(x)) | (u64(select(0u, 0xffffffffu, x < 0i)) << 32u);
}

fn i32_of_f32(x: f32) -> i32 {
  if (x < 2147483648.0 && x >= -2147483648.0) { return i32(x); }
  return bitcast<i32>(0x80000000u);
}

fn i32_of_f64(x: f64) -> i32 {
  if (x < 2147483648.0lf && x > -2147483649.0lf) { return i32(x); }
  return bitcast<i32>(0x80000000u);
}

fn i64_of_f32(x: f32) -> i64 {
  if (x < 9223372036854775808.0f && x >= -9223372036854775808.0f) { return i64(x); }
  return bitcast<i64>(0x8000000000000000lu);
}

fn i64_of_f64(x: f64) -> i64 {
  if (x < 9223372036854775808.0lf && x >= -9223372036854775808.0lf) { return i64(x); }
  return bitcast<i64>(0x8000000000000000lu);
}

fn u32_of_f32(x: f32) -> u32 {
  if (x >= 2147483648.0) { return bitcast<u32>(i32_of_f32(x - 2147483648.0)) ^ 0x80000000u; }
  return bitcast<u32>(i32_of_f32(x));
}

fn u32_of_f64(x: f64) -> u32 {
  if (x >= 2147483648.0lf) { return bitcast<u32>(i32_of_f64(x - 2147483648.0lf)) ^ 0x80000000u; }
  return bitcast<u32>(i32_of_f64(x));
}

fn u64_of_f32(x: f32) -> u64 {
  if (x >= 9223372036854775808.0f) { return bitcast<u64>(i64_of_f32(x - 9223372036854775808.0f)) ^ 0x8000000000000000lu; }
  return bitcast<u64>(i64_of_f32(x));
}

fn u64_of_f64(x: f64) -> u64 {
  if (x >= 9223372036854775808.0lf) { return bitcast<u64>(i64_of_f64(x - 9223372036854775808.0lf)) ^ 0x8000000000000000lu; }
  return bitcast<u64>(i64_of_f64(x));
}
