// float32 exponentials. x = n ln2 + r with |r| <= ln2/2; e^r - 1 is r + r^2 q(r), where q is a
// polynomial fitted to the smallest greatest error (0.12 ULP of the result). fma() may round once or twice: both are
// within the bounds.

// e^r - 1 for |r| <= ln2/2.
fn expm1_small_f32(r: f32) -> f32 {
  let q = fma(fma(fma(fma(0.0013946554, r, 0.008366647), r, 0.04166628), r, 0.16666542), r, 0.5);
  return fma(r * r, q, r);
}

// k and r; |x| < 2^15. Adding 1.5 * 2^23 rounds, and leaves n + 127 in the low bits of k = n + 127 + 1.5 * 2^23, from where
// powers take it: conversions to integers are slow. ln2 in two parts: products with the first, 355/512, are exact.
fn exp_reduce_f32(x: f32) -> vec2<f32> {
  let k = fma(x, 1.442695, 12583039.0);
  let n = k - 12583039.0;
  return vec2<f32>(k, fma(n, 2.1219444e-4, fma(n, -0.6933594, x)));
}

// 2^(n - less) for n - less from -126 to 127, and 0 for -127.
fn power_of_k_f32(k: f32, less: u32) -> f32 {
  return bitcast<f32>((bitcast<u32>(k) - less) << 23u);
}

// `low` and `high` as bounds; NaN stays or becomes one of them.
fn clamp_f32(x: f32, low: f32, high: f32) -> f32 {
  let bounded = select(x, high, x > high);
  return select(bounded, low, bounded < low);
}

// e^(x + low), |low| far below 1, as a number near 1 and two powers of two, as their product may be out
// of range.
fn exp_parts_f32(x: f32, low: f32) -> vec3<f32> {
  let reduced = exp_reduce_f32(clamp_f32(x, -170.0, 170.0));
  let n = bitcast<i32>(bitcast<u32>(reduced.x) - 0x4b40007fu);
  let half = n >> 1u;
  return vec3<f32>(
    1.0 + expm1_small_f32(reduced.y + low), power_of_two_f32(half), power_of_two_f32(n - half));
}

fn exp_f32(x: f32) -> f32 {
  let e = exp_parts_f32(x, 0.0);
  return or_nan_f32(e.x * e.y * e.z, x);
}

// Small x stay, with the sign of zero.
fn expm1_f32(x: f32) -> f32 {
  let reduced = exp_reduce_f32(clamp_f32(x, -18.0, 89.0));
  // Half of it first: 2^128 is no float32.
  let scale = power_of_k_f32(reduced.x, 1u);
  let half = scale * expm1_small_f32(reduced.y) + (scale - 0.5);
  return or_nan_f32(select(half + half, x, abs(x) < 1.0e-8), x);
}

// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x, which keeps tiny results, and as 1 less the quotient near 1,
// which inexact divisions do not carry beyond it.
fn sigmoid_f32(x: f32) -> f32 {
  let e = exp_f32(-abs(x));
  let q = select(e, 1.0, x >= 0.0 && x <= 2.0) / (1.0 + e);
  return or_nan_f32(select(q, 1.0 - q, x > 2.0), x);
}

// m / (m + 2) with m = e^(2|x|) - 1, near 1 as 1 - 2 / (m + 2).
fn tanh_f32(x: f32) -> f32 {
  let a = clamp_f32(abs(x), 0.0, 9.1);
  let reduced = exp_reduce_f32(a + a);
  let scale = power_of_k_f32(reduced.x, 0u);
  let m = scale * expm1_small_f32(reduced.y) + (scale - 1.0);
  let near = m > 8.0;
  let q = select(m, 2.0, near) / (m + 2.0);
  return or_nan_f32(copysign32(select(q, 1.0 - q, near), x), x);
}

// (e^|x| - 1) / 4, which does not overflow before sinh and cosh do.
fn quarter_expm1_f32(x: f32) -> f32 {
  let reduced = exp_reduce_f32(clamp_f32(abs(x), 0.0, 89.5));
  let scale = power_of_k_f32(reduced.x, 2u);
  return scale * expm1_small_f32(reduced.y) + (scale - 0.25);
}

// (m + m / (m + 1)) / 2 with m = e^|x| - 1, for small x a polynomial.
fn sinh_f32(x: f32) -> f32 {
  let q = quarter_expm1_f32(x);
  let z = x * x;
  let p = ((2.8169513e-6 * z + 1.983616e-4) * z + 0.00833335) * z + 0.16666667;
  let y = select(2.0 * (q + q / (4.0 * q + 1.0)), inf32(), abs(x) > 89.5);
  return or_nan_f32(copysign32(select(y, (x * z) * p + x, abs(x) < 1.0), x), x);
}

// (e^|x| + e^-|x|) / 2.
fn cosh_f32(x: f32) -> f32 {
  let q = quarter_expm1_f32(x) + 0.25;
  return or_nan_f32(2.0 * q + 0.125 / q, x);
}
