// float64 hyperbolic functions and their inverses, from e^x - 1 and ln(1 + x) as two numbers. Below
// 1e-9 those with f(x) = x + O(x^3) are x.

// m / (m + 2) with m = e^(2|x|) - 1.
fn tanh_f64(x: f64) -> f64 {
  let a = clamp_f64(abs(x), 0.0, 20.0);
  let m = scaled_expm1_f64(a + a, 0);
  let d = sum_f64(m.x, 2.0);
  let q = quotient_f64(m, vec2<f64>(d.x, d.y + m.y));
  return or_nan_f64(copysign64(select(q.x + q.y, a, a < 1.0e-9), x), x);
}

// (m + m / (m + 1)) / 2 with m = e^|x| - 1, a quarter of which does not overflow before the result
// does. The quotient matters for small m.
fn sinh_f64(x: f64) -> f64 {
  let a = abs(x);
  let m = scaled_expm1_f64(clamp_f64(a, 0.0, 710.6), -2);
  let small = select(m.x, 1.0e18, m.x > 1.0e18);
  let d = sum_f64(4.0 * small, 1.0);
  let q = quotient_f64(vec2<f64>(small, m.y), vec2<f64>(d.x, 4.0 * m.y + d.y));
  let y = fast_sum_f64(m.x, q.x);
  let sum = 2.0 * (y.x + (y.y + (q.y + m.y)));
  return or_nan_f64(copysign64(select(sum, a, a < 1.0e-9), x), x);
}

// (e^|x| + e^-|x|) / 2.
fn cosh_f64(x: f64) -> f64 {
  let e = scaled_exp_f64(clamp_f64(abs(x), 0.0, 710.6), -2);
  return or_nan_f64(2.0 * (e.x + (0.0625 / e.x + e.y)), x);
}

// ln(1 + z), and ln(2x) for x above 1e9.
fn log1p_or_log_twice_f64(x: f64, z: vec2<f64>) -> f64 {
  let large = x > 1.0e9;
  let y = log1p_of_sum_f64(select(z.x, x - 1.0, large), select(z.y, 0.0, large));
  return select(select(y, y + 0.6931471805599453, large), x, isinf64(x));
}

// ln(1 + (a + a^2 / (1 + sqrt(a^2 + 1)))).
fn arcsinh_f64(x: f64) -> f64 {
  let a = abs(x);
  let s = select(a, 1.0, a > 1.0e9);
  let z = fast_sum_f64(s, s * s / (1.0 + sqrt(s * s + 1.0)));
  let y = log1p_or_log_twice_f64(a, z);
  return or_nan_f64(copysign64(select(y, a, a < 1.0e-9), x), x);
}

// ln(1 + (t + sqrt(2t + t^2))), t = x - 1.
fn arccosh_f64(x: f64) -> f64 {
  let t = select(x - 1.0, 1.0, x > 1.0e9);
  let z = fast_sum_f64(sqrt(t * t + (t + t)), t);
  let y = log1p_or_log_twice_f64(x, z);
  return or_nan_f64(select(y, nan64(), x < 1.0), x);
}

// ln(1 + 2a / (1 - a)) / 2.
fn arctanh_f64(x: f64) -> f64 {
  let a = abs(x);
  let z = quotient_f64(vec2<f64>(a + a, 0.0), fast_sum_f64(1.0, -a));
  let y = select(0.5 * log1p_of_sum_f64(z.x, z.y), a, a < 1.0e-9);
  let outside = select(nan64(), inf64(), a == 1.0);
  return or_nan_f64(copysign64(select(outside, y, a < 1.0), x), x);
}
