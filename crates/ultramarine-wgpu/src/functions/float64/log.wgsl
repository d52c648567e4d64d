// float64 logarithms. x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). With s = f / (2 + f),
// ln(1 + f) is 2 artanh(s) = f - s (f - R), R = s^2 p(s^2) (W. J. Cody and W. Waite, "Software
// Manual for the Elementary Functions"), which is f - f^2/2 + s (f^2/2 + R). The first two terms are
// summed without an error, so only the last rounding counts.

// k and 1 + f of a positive normal x. Carries into the exponent where the mantissa is above sqrt(2).
fn log_split_f64(x: f64) -> vec2<f64> {
  let shifted = bitcast<u64>(x) - 0x3fe6a09e667f3bcdlu;
  let m = bitcast<f64>((shifted & 0x000ffffffffffffflu) + 0x3fe6a09e667f3bcdlu);
  return vec2<f64>(f64(i32(bitcast<i64>(shifted) >> 52u)), m);
}

// As log_split_f64, of subnormal numbers too.
fn log_split_all_f64(x: f64) -> vec2<f64> {
  let tiny = x < 2.2250738585072014e-308;
  let km = log_split_f64(select(x, x * 18014398509481984.0, tiny));
  return vec2<f64>(select(km.x, km.x - 54.0, tiny), km.y);
}

// ln(1 + f) as two numbers, the second below a twentieth of f, and s. 2^-59.5 of it.
fn log1p_small_f64(f: f64) -> vec3<f64> {
  let s = f / (2.0 + f);
  let z = s * s;
  var p = 0.147961054834854 * z + 0.15314035830174916;
  p = p * z + 0.18183564867145732;
  p = p * z + 0.22222198563462863;
  p = p * z + 0.28571428742475363;
  p = p * z + 0.39999999999414315;
  p = p * z + 0.6666666666666734;
  let half = product_f64(0.5 * f, f);
  let y = fast_sum_f64(f, -half.x);
  return vec3<f64>(y.x, s * (z * p + half.x) + (y.y - half.y), s);
}

// y for a positive finite x, else the logarithm of x.
fn log_specials_f64(x: f64, y: f64) -> f64 {
  let above = select(y, x, isinf64(x));
  let outside = select(nan64(), -inf64(), x == 0.0);
  return or_nan_f64(select(outside, above, x > 0.0), x);
}

// k ln2 + high + low: products of k with 42 bits of ln2 are exact.
fn log_sum_f64(k: f64, high: f64, low: f64) -> f64 {
  let sum = fast_sum_f64(k * 0.6931471805598903, high);
  return sum.x + (sum.y + (k * 5.497923018708371e-14 + low));
}

fn log_f64(x: f64) -> f64 {
  let km = log_split_all_f64(x);
  let l = log1p_small_f64(km.y - 1.0);
  return log_specials_f64(x, log_sum_f64(km.x, l.x, l.y));
}

fn log2_f64(x: f64) -> f64 {
  let km = log_split_all_f64(x);
  let l = log1p_small_f64(km.y - 1.0);
  let p = product_f64(l.x, 1.4426950408889634);
  let low = l.y * 1.4426950408889634 + (l.x * 2.0355273740931033e-17 + p.y);
  let sum = fast_sum_f64(km.x, p.x);
  return log_specials_f64(x, sum.x + (sum.y + low));
}

// log10 2 in two parts, the first of 42 bits.
fn log10_f64(x: f64) -> f64 {
  let km = log_split_all_f64(x);
  let l = log1p_small_f64(km.y - 1.0);
  let p = product_f64(l.x, 0.4342944819032518);
  let low = l.y * 0.4342944819032518 + (l.x * 1.098319650216765e-17 + p.y);
  let sum = fast_sum_f64(km.x * 0.30102999566395283, p.x);
  let rest = sum.y + (km.x * 2.8363394551044964e-14 + low);
  return log_specials_f64(x, sum.x + rest);
}

// ln(1 + x + low) for x > -1, `low` below a unit of x; other x give anything.
fn log1p_of_sum_f64(x: f64, low: f64) -> f64 {
  let u = sum_f64(1.0, x);
  let km = log_split_f64(u.x);
  let near = km.x == 0.0;
  let l = log1p_small_f64(select(km.y - 1.0, x, near));
  // The exact sum less u, scaled as f is. 2^-k is m / u.
  let unit = bitcast<f64>(0x3ff0000000000000lu + bitcast<u64>(km.y) - bitcast<u64>(u.x));
  var lacking = select((u.y + low) * unit, low, near);
  lacking = select(lacking, 0.0, x > 1.0e18);
  // 1 / (1 + f) = (1 - s) / (1 + s), to 1 %.
  lacking = lacking * ((l.z + l.z) * (l.z - 1.0) + 1.0);
  return log_sum_f64(km.x, l.x, l.y + lacking);
}

// Small x stay, with the sign of zero.
fn log1p_f64(x: f64) -> f64 {
  let y = select(log1p_of_sum_f64(x, 0.0), x, isinf64(x) || abs(x) < 1.0e-17);
  let outside = select(nan64(), -inf64(), x == -1.0);
  return or_nan_f64(select(outside, y, x > -1.0), x);
}

// ln(1 + x) for 0 <= x <= 1, as two numbers.
fn log1p_to_one_f64(x: f64) -> vec2<f64> {
  let u = fast_sum_f64(1.0, x);
  let above = x > 0.41421356237309515;
  let f = select(x, 0.5 * u.x - 1.0, above);
  let l = log1p_small_f64(f);
  // The exact sum less u, over u = 2 (1 + f).
  let low = select(l.y, (0.5 * u.y) * (1.0 - f) + l.y, above);
  let sum = fast_sum_f64(select(0.0lf, 0.6931471805599453lf, above), l.x);
  return vec2<f64>(sum.x, sum.y + low);
}

// The larger plus ln(1 + e^-|x - y|).
fn logaddexp_f64(x: f64, y: f64) -> f64 {
  let high = select(y, x, x > y);
  let low = select(x, y, x > y);
  // Equal infinities differ by NaN.
  let difference = select(low - high, 0.0, low == high);
  let rest = log1p_to_one_f64(exp_f64(difference));
  let sum = sum_f64(high, rest.x);
  let infinite = isinf64(high) || (isinf64(low) && is_negative_f64(low));
  let y_or_sum = select(sum.x + (sum.y + rest.y), high, infinite);
  return or_nan_f64(or_nan_f64(y_or_sum, x), y);
}
