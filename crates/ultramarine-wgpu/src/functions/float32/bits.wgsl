// float32 by its bits, beside the library's own.

// y, or x where that is NaN. Compilers may exchange comparisons for those that NaN ends differently.
fn or_nan_f32(y: f32, x: f32) -> f32 {
  return select(y, x, isnan32(x));
}

fn is_negative_f32(x: f32) -> bool {
  return (bitcast<u32>(x) >> 31u) != 0u;
}

// 2^n for -126 <= n <= 127, and 0 for n = -127.
fn power_of_two_f32(n: i32) -> f32 {
  return bitcast<f32>(u32(n + 127) << 23u);
}
