// float64 by its bits, beside the library's own.

// y, or x where that is NaN. Compilers may exchange comparisons for those that NaN ends differently.
fn or_nan_f64(y: f64, x: f64) -> f64 {
  return select(y, x, isnan64(x));
}

fn is_negative_f64(x: f64) -> bool {
  return (bitcast<u64>(x) >> 63u) != 0lu;
}

// 2^n for -1022 <= n <= 1023.
fn power_of_two_f64(n: i32) -> f64 {
  return bitcast<f64>(u64(n + 1023) << 52u);
}
