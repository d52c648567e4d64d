// Ops of complex64. All but the simplest are evaluated in float64, in which nothing that float32 holds overflows, and
// rounded once; signs of zeros are those of C99.

fn complex_less(x: vec2<f32>, y: vec2<f32>) -> bool { return x.x < y.x || (x.x == y.x && x.y < y.y); }
fn complex_nan(z: vec2<f32>) -> bool { return isnan32(z.x) || isnan32(z.y); }
fn complex_zero(z: vec2<f32>) -> bool { return z.x == 0.0 && z.y == 0.0; }
fn complex_equal(x: vec2<f32>, y: vec2<f32>) -> bool { return x.x == y.x && x.y == y.y; }

fn complex_multiply(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

fn z_wide(z: vec2<f32>) -> vec2<f64> { return vec2<f64>(f64(z.x), f64(z.y)); }
fn z_narrow(z: vec2<f64>) -> vec2<f32> { return vec2<f32>(f32(z.x), f32(z.y)); }
fn z_is_nan(z: vec2<f64>) -> bool { return isnan64(z.x) || isnan64(z.y); }
fn z_is_infinite(z: vec2<f64>) -> bool { return isinf64(z.x) || isinf64(z.y); }
fn z_is_finite(z: vec2<f64>) -> bool { return isfinite64(z.x) && isfinite64(z.y); }
fn z_size(z: vec2<f64>) -> f64 { return sqrt(z.x * z.x + z.y * z.y); }

// An infinite number as a direction.
fn z_direction(z: vec2<f64>) -> vec2<f64> {
  let x = select(0.0lf, 1.0lf, isinf64(z.x));
  let y = select(0.0lf, 1.0lf, isinf64(z.y));
  return vec2<f64>(copysign64(x, z.x), copysign64(y, z.y));
}

// By zero and of infinities as in C99's annex G.
fn z_divide(x: vec2<f64>, y: vec2<f64>) -> vec2<f64> {
  let norm = y.x * y.x + y.y * y.y;
  let re = (x.x * y.x + x.y * y.y) / norm;
  let im = (x.y * y.x - x.x * y.y) / norm;
  if (!(isnan64(re) && isnan64(im))) { return vec2<f64>(re, im); }
  if (norm == 0.0lf && !(isnan64(x.x) && isnan64(x.y))) {
    let infinity = copysign64(inf64(), y.x);
    return vec2<f64>(infinity * x.x, infinity * x.y);
  }
  if (z_is_infinite(x) && z_is_finite(y)) {
    let d = z_direction(x);
    return vec2<f64>(inf64() * (d.x * y.x + d.y * y.y), inf64() * (d.y * y.x - d.x * y.y));
  }
  if (z_is_infinite(y) && z_is_finite(x)) {
    let d = z_direction(y);
    return vec2<f64>(zero64() * (x.x * d.x + x.y * d.y), zero64() * (x.y * d.x - x.x * d.y));
  }
  return vec2<f64>(re, im);
}

fn z_sqrt(z: vec2<f64>) -> vec2<f64> {
  if (isinf64(z.y)) { return vec2<f64>(inf64(), z.y); }
  if (z_is_nan(z)) { return vec2<f64>(nan64(), nan64()); }
  if (z.x == 0.0lf && z.y == 0.0lf) { return vec2<f64>(zero64(), z.y); }
  if (isinf64(z.x)) {
    if (z.x > 0.0lf) { return vec2<f64>(z.x, copysign64(zero64(), z.y)); }
    return vec2<f64>(zero64(), copysign64(inf64(), z.y));
  }
  let t = sqrt(0.5lf * (abs(z.x) + z_size(z)));
  if (z.x >= 0.0lf) { return vec2<f64>(t, z.y / (2.0lf * t)); }
  return vec2<f64>(abs(z.y) / (2.0lf * t), copysign64(t, z.y));
}

fn one64() -> vec2<f64> { return vec2<f64>(1.0lf, zero64()); }

fn unary_abs(z: vec2<f32>) -> f32 {
  if (isinf32(z.x) || isinf32(z.y)) { return inf32(); }
  return f32(z_size(z_wide(z)));
}

fn unary_sign(z: vec2<f32>) -> vec2<f32> {
  if (complex_zero(z)) { return z; }
  let wide = z_wide(z);
  let size = z_size(wide);
  if (isinf64(size)) { return vec2<f32>(nan32(), nan32()); }
  return vec2<f32>(f32(wide.x / size), f32(wide.y / size));
}

fn unary_negative(z: vec2<f32>) -> vec2<f32> { return vec2<f32>(-z.x, -z.y); }
fn unary_square(z: vec2<f32>) -> vec2<f32> { return complex_multiply(z, z); }
fn unary_sqrt(z: vec2<f32>) -> vec2<f32> { return z_narrow(z_sqrt(z_wide(z))); }
fn unary_rsqrt(z: vec2<f32>) -> vec2<f32> { return z_narrow(z_divide(one64(), z_sqrt(z_wide(z)))); }
fn unary_reciprocal(z: vec2<f32>) -> vec2<f32> { return z_narrow(z_divide(one64(), z_wide(z))); }
fn unary_round(z: vec2<f32>) -> vec2<f32> { return vec2<f32>(round(z.x), round(z.y)); }
fn unary_conjugate(z: vec2<f32>) -> vec2<f32> { return vec2<f32>(z.x, -z.y); }
fn unary_real(z: vec2<f32>) -> f32 { return z.x; }
fn unary_imag(z: vec2<f32>) -> f32 { return z.y; }
fn unary_logical_not(z: vec2<f32>) -> bool { return complex_zero(z); }
fn unary_isnan(z: vec2<f32>) -> bool { return complex_nan(z); }
fn unary_isinf(z: vec2<f32>) -> bool { return isinf32(z.x) || isinf32(z.y); }
fn unary_isfinite(z: vec2<f32>) -> bool { return isfinite32(z.x) && isfinite32(z.y); }

fn binary_add(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> { return vec2<f32>(x.x + y.x, x.y + y.y); }
fn binary_subtract(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> { return vec2<f32>(x.x - y.x, x.y - y.y); }
fn binary_multiply(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> { return complex_multiply(x, y); }
fn binary_divide(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> { return z_narrow(z_divide(z_wide(x), z_wide(y))); }
// Nothing is rounded down here.
fn binary_floor_divide(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> { return binary_divide(x, y); }

fn binary_maximum(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return select(y, x, complex_less(y, x) || complex_nan(x));
}

fn binary_minimum(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return select(y, x, complex_less(x, y) || complex_nan(x));
}

fn binary_equal(x: vec2<f32>, y: vec2<f32>) -> bool { return complex_equal(x, y); }
fn binary_not_equal(x: vec2<f32>, y: vec2<f32>) -> bool { return !complex_equal(x, y); }
fn binary_less(x: vec2<f32>, y: vec2<f32>) -> bool { return complex_less(x, y); }
fn binary_less_equal(x: vec2<f32>, y: vec2<f32>) -> bool { return complex_less(x, y) || complex_equal(x, y); }
fn binary_greater(x: vec2<f32>, y: vec2<f32>) -> bool { return complex_less(y, x); }
fn binary_greater_equal(x: vec2<f32>, y: vec2<f32>) -> bool { return complex_less(y, x) || complex_equal(x, y); }
fn binary_logical_and(x: vec2<f32>, y: vec2<f32>) -> bool { return !complex_zero(x) && !complex_zero(y); }
fn binary_logical_or(x: vec2<f32>, y: vec2<f32>) -> bool { return !complex_zero(x) || !complex_zero(y); }
fn binary_equal_nan(x: vec2<f32>, y: vec2<f32>) -> bool {
  return complex_equal(x, y) || (complex_nan(x) && complex_nan(y));
}
