// float32 logarithms. x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); ln(1 + f) is
// f - f^2/2 + f^3 p(f), where p is a polynomial fitted to the smallest greatest error (0.1 ULP).

// ln(1 + f) for f of the reduced range.
fn log1p_small_f32(f: f32) -> f32 {
  var p = -0.07636254 * f + 0.12763633;
  p = p * f - 0.13160513;
  p = p * f + 0.14201508;
  p = p * f - 0.166233;
  p = p * f + 0.20001236;
  p = p * f - 0.25000823;
  p = p * f + 0.3333333;
  return (f * f) * (f * p - 0.5) + f;
}

// k and f of a positive normal x. Carries into the exponent where the mantissa is above sqrt(2).
fn log_split_f32(x: f32) -> vec2<f32> {
  let shifted = bitcast<u32>(x) - 0x3f3504f3u;
  let m = bitcast<f32>((shifted & 0x007fffffu) + 0x3f3504f3u);
  return vec2<f32>(f32(bitcast<i32>(shifted) >> 23u), m - 1.0);
}

// As log_split_f32, of subnormal numbers too.
fn log_split_all_f32(x: f32) -> vec2<f32> {
  let tiny = x < 1.1754944e-38;
  let kf = log_split_f32(select(x, x * 8388608.0, tiny));
  return vec2<f32>(select(kf.x, kf.x - 23.0, tiny), kf.y);
}

// y for a positive finite x, else the logarithm of x.
fn log_specials_f32(x: f32, y: f32) -> f32 {
  let above = select(y, x, isinf32(x));
  let outside = select(nan32(), -inf32(), x == 0.0);
  return or_nan_f32(select(outside, above, x > 0.0), x);
}

// ln2 is 355/512, of which products with k are exact, and a rest.
fn log_f32(x: f32) -> f32 {
  let kf = log_split_all_f32(x);
  let y = kf.x * 0.6933594 + (log1p_small_f32(kf.y) - kf.x * 2.1219444e-4);
  return log_specials_f32(x, y);
}

fn log2_f32(x: f32) -> f32 {
  let kf = log_split_all_f32(x);
  return log_specials_f32(x, log1p_small_f32(kf.y) * 1.442695 + kf.x);
}

// log10 2 is 4932/2^14 and a rest.
fn log10_f32(x: f32) -> f32 {
  let kf = log_split_all_f32(x);
  let y = log1p_small_f32(kf.y) * 0.4342945;
  return log_specials_f32(x, kf.x * 0.3010254 + (kf.x * 4.605039e-6 + y));
}

// ln(1 + x + low) for 1 + x > 0, `low` below a unit of x: the loss of the sum 1 + x is added to f.
fn log1p_of_sum_f32(x: f32, low: f32) -> f32 {
  let u = sum_f32(1.0, x);
  let kf = log_split_f32(u.x);
  let k = i32(kf.x);
  // 2^-127 becomes 0, which is right: nothing is lost of such x.
  let f = (u.y + low) * power_of_two_f32(select(-k, -127, k > 127)) + kf.y;
  return kf.x * 0.6933594 + (log1p_small_f32(f) - kf.x * 2.1219444e-4);
}

// The sum loses nothing of small x, which keep the sign of zero.
fn log1p_f32(x: f32) -> f32 {
  let y = select(log1p_of_sum_f32(x, 0.0), x, isinf32(x) || abs(x) < 1.0e-10);
  let outside = select(nan32(), -inf32(), x == -1.0);
  return or_nan_f32(select(outside, y, x > -1.0), x);
}

// The larger plus ln(1 + e^-|x - y|).
fn logaddexp_f32(x: f32, y: f32) -> f32 {
  let high = select(y, x, x > y);
  let low = select(x, y, x > y);
  // Equal infinities differ by NaN.
  let difference = select(low - high, 0.0, low == high);
  let sum = high + log1p_f32(exp_f32(difference));
  let infinite = isinf32(low) && is_negative_f32(low);
  return or_nan_f32(or_nan_f32(select(sum, high, infinite), x), y);
}

// ln(1 + (a + a^2 / (1 + sqrt(a^2 + 1)))); a^2 may overflow for large a, where it is ln(2a).
fn arcsinh_f32(x: f32) -> f32 {
  let a = abs(x);
  let large = a > 1.0e9;
  let s = select(a, 1.0, large);
  let z = s + s * s / (1.0 + sqrt(s * s + 1.0));
  let y = log1p_f32(select(z, a, large));
  return or_nan_f32(copysign32(select(y, y + 0.6931472, large), x), x);
}

// ln(1 + (t + sqrt(2t + t^2))), t = x - 1.
fn arccosh_f32(x: f32) -> f32 {
  let large = x > 1.0e9;
  let t = select(x - 1.0, 1.0, large);
  let z = t + sqrt(t * t + (t + t));
  let y = log1p_f32(select(z, x, large));
  return or_nan_f32(select(select(y, y + 0.6931472, large), nan32(), x < 1.0), x);
}

// ln(1 + 2a / (1 - a)) / 2.
fn arctanh_f32(x: f32) -> f32 {
  let a = abs(x);
  let twice = a + a;
  let z = twice * (a / (1.0 - a)) + twice;
  let y = 0.5 * log1p_f32(select(z, inf32(), a == 1.0));
  return or_nan_f32(copysign32(select(y, nan32(), a > 1.0), x), x);
}
