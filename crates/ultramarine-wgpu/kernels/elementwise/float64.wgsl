// float64 under the names that the ops of floating dtypes use.

fn is_nan(x: f64) -> bool { return isnan64(x); }
fn is_inf(x: f64) -> bool { return isinf64(x); }
fn is_finite(x: f64) -> bool { return isfinite64(x); }
fn with_sign(x: f64, s: f64) -> f64 { return copysign64(x, s); }

fn leading_zeros(x: u64) -> u32 {
  let high = u32(x >> 32u);
  if (high != 0u) { return countLeadingZeros(high); }
  return 32u + countLeadingZeros(u32(x));
}

// x - y trunc(x / y), exactly: by a division of the mantissas bit by bit.
fn remainder_to_zero(x: f64, y: f64) -> f64 {
  let sign = bitcast<u64>(x) & 0x8000000000000000lu;
  let a = bitcast<u64>(x) & 0x7ffffffffffffffflu;
  let b = bitcast<u64>(y) & 0x7ffffffffffffffflu;
  if (a >= 0x7ff0000000000000lu || b > 0x7ff0000000000000lu || b == 0lu) { return nan64(); }
  if (a < b) { return x; }
  var exponent = i32(u32(a >> 52u));
  var rest = (a & 0xffffffffffffflu) | 0x10000000000000lu;
  if (exponent == 0) {
    let shift = leading_zeros(a) - 11u;
    rest = a << shift;
    exponent = 1 - i32(shift);
  }
  var low = i32(u32(b >> 52u));
  var divisor = (b & 0xffffffffffffflu) | 0x10000000000000lu;
  if (low == 0) {
    let shift = leading_zeros(b) - 11u;
    divisor = b << shift;
    low = 1 - i32(shift);
  }
  loop {
    if (rest >= divisor) { rest -= divisor; }
    if (exponent <= low) { break; }
    rest = rest << 1u;
    exponent -= 1;
  }
  if (rest == 0lu) { return bitcast<f64>(sign); }
  let shift = leading_zeros(rest) - 11u;
  rest = rest << shift;
  exponent -= i32(shift);
  if (exponent > 0) { return bitcast<f64>(sign | (rest - 0x10000000000000lu) | (u64(u32(exponent)) << 52u)); }
  return bitcast<f64>(sign | (rest >> u32(1 - exponent)));
}
