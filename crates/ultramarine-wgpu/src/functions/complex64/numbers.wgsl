// Operations of complex64. Errors are relative to the modulus, so float32 suffices throughout.

fn unary_isnan(z: vec2<f32>) -> bool {
  return isnan32(z.x) || isnan32(z.y);
}

fn unary_isinf(z: vec2<f32>) -> bool {
  return isinf32(z.x) || isinf32(z.y);
}

fn unary_isfinite(z: vec2<f32>) -> bool {
  return isfinite32(z.x) && isfinite32(z.y);
}

fn is_zero_c64(z: vec2<f32>) -> bool {
  return z.x == 0.0 && z.y == 0.0;
}

// An infinite real part beside an angle that has no sine.
fn is_infinite_turned_c64(z: vec2<f32>) -> bool {
  return isinf32(z.x) && !isfinite32(z.y);
}

fn nan_c64() -> vec2<f32> {
  return vec2<f32>(nan32(), nan32());
}

// i z.
fn times_i_c64(z: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(-z.y, z.x);
}

// -i z.
fn over_i_c64(z: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(z.y, -z.x);
}

// The larger part's exponent, of which 2^e and 2^-e are normal numbers.
fn exponent_c64(z: vec2<f32>) -> i32 {
  let bits = bitcast<vec2<u32>>(z) & vec2<u32>(0x7fffffffu);
  return clamp(i32(max(bits.x, bits.y) >> 23u) - 127, -126, 126);
}

// 2^n z, |n| <= 252.
fn scale_c64(z: vec2<f32>, n: i32) -> vec2<f32> {
  let half = n >> 1u;
  return z * power_of_two_f32(half) * power_of_two_f32(n - half);
}

// |z| of a z that is neither huge nor tiny.
fn near_abs_c64(z: vec2<f32>) -> f32 {
  return sqrt(z.x * z.x + z.y * z.y);
}

fn unary_abs(z: vec2<f32>) -> f32 {
  let e = exponent_c64(z);
  let size = near_abs_c64(z * power_of_two_f32(-e)) * power_of_two_f32(e);
  return select(size, inf32(), unary_isinf(z));
}

fn unary_negative(z: vec2<f32>) -> vec2<f32> {
  return -z;
}

fn unary_conjugate(z: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(z.x, -z.y);
}

fn unary_real(z: vec2<f32>) -> f32 {
  return z.x;
}

fn unary_imag(z: vec2<f32>) -> f32 {
  return z.y;
}

fn unary_round(z: vec2<f32>) -> vec2<f32> {
  return round(z);
}

// z / |z|; 0 for zeros of any sign. The errors of root and quotient are seen in the square of the modulus.
fn unary_sign(z: vec2<f32>) -> vec2<f32> {
  let near = z * power_of_two_f32(-exponent_c64(z));
  let w = near / near_abs_c64(near);
  let beyond = (w.x * w.x - 1.0) + w.y * w.y;
  let direction = select(w - 0.5 * beyond * w, nan_c64(), unary_isinf(z));
  return select(direction, vec2<f32>(0.0, 0.0), is_zero_c64(z));
}

fn unary_square(z: vec2<f32>) -> vec2<f32> {
  return binary_multiply(z, z);
}

fn unary_logical_not(z: vec2<f32>) -> bool {
  return is_zero_c64(z);
}

fn binary_add(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return x + y;
}

fn binary_subtract(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return x - y;
}

fn binary_multiply(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

// x times the conjugate of y.
fn multiply_conjugate_c64(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(x.x * y.x + x.y * y.y, x.y * y.x - x.x * y.y);
}

// An infinite number as a direction.
fn direction_c64(z: vec2<f32>) -> vec2<f32> {
  let x = copysign32(select(0.0, 1.0, isinf32(z.x)), z.x);
  return vec2<f32>(x, copysign32(select(0.0, 1.0, isinf32(z.y)), z.y));
}

// x infinity by bits, NaN for 0.
fn times_infinity_f32(x: f32) -> f32 {
  return select(copysign32(inf32(), x), nan32(), x == 0.0 || isnan32(x));
}

// x / y; by zero and of infinities as in C99's annex G. Both are scaled to about 1.
fn binary_divide(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  if (unary_isinf(y) && unary_isfinite(x)) {
    let sign = multiply_conjugate_c64(x, direction_c64(y));
    return vec2<f32>(copysign32(0.0, sign.x), copysign32(0.0, sign.y));
  }
  let ex = exponent_c64(x);
  let ey = exponent_c64(y);
  let near = y * power_of_two_f32(-ey);
  let norm = near.x * near.x + near.y * near.y;
  let q = scale_c64(multiply_conjugate_c64(x * power_of_two_f32(-ex), near) / norm, ex - ey);
  let zero = is_zero_c64(y);
  let turned = select(multiply_conjugate_c64(direction_c64(x), near), x, zero);
  let infinite = vec2<f32>(times_infinity_f32(turned.x), times_infinity_f32(turned.y));
  let signed = select(infinite, -infinite, zero && is_negative_f32(y.x));
  let grows = zero || (unary_isinf(x) && unary_isfinite(y));
  return select(q, signed, grows && isnan32(q.x) && isnan32(q.y));
}

// Nothing is rounded down here.
fn binary_floor_divide(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return binary_divide(x, y);
}

fn unary_reciprocal(z: vec2<f32>) -> vec2<f32> {
  return binary_divide(vec2<f32>(1.0, zero32()), z);
}

// By real part, then by imaginary part; false if a part that decides is NaN.
fn binary_less(x: vec2<f32>, y: vec2<f32>) -> bool {
  return x.x < y.x || (x.x == y.x && x.y < y.y);
}

fn binary_less_equal(x: vec2<f32>, y: vec2<f32>) -> bool {
  return x.x < y.x || (x.x == y.x && x.y <= y.y);
}

fn binary_greater(x: vec2<f32>, y: vec2<f32>) -> bool {
  return binary_less(y, x);
}

fn binary_greater_equal(x: vec2<f32>, y: vec2<f32>) -> bool {
  return binary_less_equal(y, x);
}

fn binary_equal(x: vec2<f32>, y: vec2<f32>) -> bool {
  return x.x == y.x && x.y == y.y;
}

fn binary_not_equal(x: vec2<f32>, y: vec2<f32>) -> bool {
  return !binary_equal(x, y);
}

fn binary_equal_nan(x: vec2<f32>, y: vec2<f32>) -> bool {
  return binary_equal(x, y) || (unary_isnan(x) && unary_isnan(y));
}

fn binary_logical_and(x: vec2<f32>, y: vec2<f32>) -> bool {
  return !is_zero_c64(x) && !is_zero_c64(y);
}

fn binary_logical_or(x: vec2<f32>, y: vec2<f32>) -> bool {
  return !is_zero_c64(x) || !is_zero_c64(y);
}

fn binary_maximum(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return select(y, x, binary_less(y, x) || unary_isnan(x));
}

fn binary_minimum(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  return select(y, x, binary_less(x, y) || unary_isnan(x));
}
