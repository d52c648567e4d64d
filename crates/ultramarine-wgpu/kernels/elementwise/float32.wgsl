// float32 under the names that the ops of floating dtypes use.

fn is_nan(x: f32) -> bool { return isnan32(x); }
fn is_inf(x: f32) -> bool { return isinf32(x); }
fn is_finite(x: f32) -> bool { return isfinite32(x); }
fn with_sign(x: f32, s: f32) -> f32 { return copysign32(x, s); }

// x - y trunc(x / y), exactly: by a division of the mantissas bit by bit.
fn remainder_to_zero(x: f32, y: f32) -> f32 {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return nan32(); }
  if (a < b) { return x; }
  var exponent = i32(a >> 23u);
  var rest = (a & 0x7fffffu) | 0x800000u;
  if (exponent == 0) {
    let shift = countLeadingZeros(a) - 8u;
    rest = a << shift;
    exponent = 1 - i32(shift);
  }
  var low = i32(b >> 23u);
  var divisor = (b & 0x7fffffu) | 0x800000u;
  if (low == 0) {
    let shift = countLeadingZeros(b) - 8u;
    divisor = b << shift;
    low = 1 - i32(shift);
  }
  loop {
    if (rest >= divisor) { rest -= divisor; }
    if (exponent <= low) { break; }
    rest = rest << 1u;
    exponent -= 1;
  }
  if (rest == 0u) { return bitcast<f32>(sign); }
  let shift = countLeadingZeros(rest) - 8u;
  rest = rest << shift;
  exponent -= i32(shift);
  if (exponent > 0) { return bitcast<f32>(sign | (rest - 0x800000u) | (u32(exponent) << 23u)); }
  return bitcast<f32>(sign | (rest >> u32(1 - exponent)));
}
