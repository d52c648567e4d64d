// float64 exponentials. x = n ln2 + r with |r| <= ln2/2, by Cody and Waite's subtraction of ln2 in
// two parts; e^r - 1 is r + r^2 q(r), for differences r + r^2/2 + r^3 q(r). The rounding errors of
// r and of the sums' first terms are kept, so only the last rounding counts.

// n, and r with its rounding error. Adding 1.5 * 2^52 rounds. Products of n with 42 bits of ln2 are
// exact.
fn exp_reduce_f64(x: f64) -> vec3<f64> {
  let n = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0;
  let high = x - n * 0.6931471805598903;
  let low = n * 5.497923018708371e-14;
  let r = high - low;
  return vec3<f64>(n, r, (high - r) - low);
}

// e^(r + low) for |r| <= ln2/2; `low` may have a few bits of r. 2^-57 of e^r.
fn exp_small_f64(r: f64, low: f64) -> f64 {
  var q = 2.505381061185809e-8 * r + 2.762622197289708e-7;
  q = q * r + 2.7557407927854294e-6;
  q = q * r + 2.4801504834431696e-5;
  q = q * r + 1.984126971810754e-4;
  q = q * r + 0.0013888888931907527;
  q = q * r + 0.008333333333390125;
  q = q * r + 0.04166666666657579;
  q = q * r + 0.16666666666666588;
  q = q * r + 0.5000000000000006;
  let y = fast_sum_f64(1.0, r);
  let w = (r * r) * q;
  return y.x + (w + (low * (y.x + w) + y.y));
}

// e^(r + low) - 1 as two numbers, for |r| <= ln2/2. 2^-61.7 of e^r - 1.
fn expm1_small_f64(r: f64, low: f64) -> vec2<f64> {
  var q = 2.0875314980887775e-9 * r + 2.5109131637126757e-8;
  q = q * r + 2.7557403123906894e-7;
  q = q * r + 2.755724397181473e-6;
  q = q * r + 2.4801587171461113e-5;
  q = q * r + 1.9841269886326592e-4;
  q = q * r + 0.0013888888888963181;
  q = q * r + 0.008333333333321567;
  q = q * r + 0.041666666666666505;
  q = q * r + 0.16666666666666677;
  let half = product_f64(0.5 * r, r);
  let sum = fast_sum_f64(r, half.x);
  let rest = (low * r + low) + (sum.y + half.y);
  return fast_sum_f64(sum.x, (half.x * (r + r)) * q + rest);
}

// `low` and `high` as bounds; NaN stays or becomes one of them.
fn clamp_f64(x: f64, low: f64, high: f64) -> f64 {
  let bounded = select(x, high, x > high);
  return select(bounded, low, bounded < low);
}

// e^(x + low) for x within [-746, 710] and |low| far below 1; in two steps, as 2^n may be out of
// range.
fn exp_of_sum_f64(x: f64, low: f64) -> f64 {
  let reduced = exp_reduce_f64(x);
  let n = i32(reduced.x);
  let half = n >> 1u;
  let y = exp_small_f64(reduced.y, reduced.z + low);
  return y * power_of_two_f64(half) * power_of_two_f64(n - half);
}

fn exp_f64(x: f64) -> f64 {
  return or_nan_f64(exp_of_sum_f64(clamp_f64(x, -746.0, 710.0), 0.0), x);
}

// 2^m e^x as two numbers, for n + m within an exponent's range.
fn scaled_exp_f64(x: f64, m: i32) -> vec2<f64> {
  let reduced = exp_reduce_f64(x);
  let small = expm1_small_f64(reduced.y, reduced.z);
  let s = power_of_two_f64(i32(reduced.x) + m);
  let y = fast_sum_f64(s, s * small.x);
  return vec2<f64>(y.x, s * small.y + y.y);
}

// 2^m (e^x - 1) as two numbers, for n + m within an exponent's range.
fn scaled_expm1_f64(x: f64, m: i32) -> vec2<f64> {
  let reduced = exp_reduce_f64(x);
  let small = expm1_small_f64(reduced.y, reduced.z);
  let s = power_of_two_f64(i32(reduced.x) + m);
  let one = power_of_two_f64(m);
  let base = s - one;
  // |2^n - 1| is 0 or not below 2^n |small|.
  let y = fast_sum_f64(base, s * small.x);
  return vec2<f64>(y.x, s * small.y + (y.y + ((s - base) - one)));
}

// Half of it first: 2^1024 is no float64. Small x stay, with the sign of zero.
fn expm1_f64(x: f64) -> f64 {
  let half = scaled_expm1_f64(clamp_f64(x, -38.0, 710.0), -1);
  return or_nan_f64(select(2.0 * (half.x + half.y), x, abs(x) < 1.0e-17), x);
}

// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x, which keeps tiny results. 1 + e is d.x + d.y;
// the quotient by d.x, less its share of d.y.
fn sigmoid_f64(x: f64) -> f64 {
  let e = exp_f64(-abs(x));
  let d = fast_sum_f64(1.0, e);
  let y = select(1.0, e, x < 0.0) / d.x;
  return or_nan_f64(y - y * (d.y * (1.0 - 0.5 * e)), x);
}
