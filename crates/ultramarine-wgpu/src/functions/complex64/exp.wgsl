// Exponentials, logarithms and roots of complex64. Special values are those of C99.

// Where the real part is large, sizes are kept in parts: a product with a small sine may be finite.
fn unary_exp(z: vec2<f32>) -> vec2<f32> {
  return exp_of_sum_c64(z, vec2<f32>(0.0, 0.0));
}

// e^(z + low), both parts of `low` far below 1.
fn exp_of_sum_c64(z: vec2<f32>, low: vec2<f32>) -> vec2<f32> {
  let size = exp_parts_f32(z.x, low.x);
  let turn = sin_cos_f32(z.y, low.y);
  let w = vec2<f32>(turn.y, turn.x) * size.x * size.y * size.z;
  if (isnan32(z.x)) {
    return vec2<f32>(z.x, select(z.x, z.y, z.y == 0.0));
  }
  if (z.y == 0.0) {
    return vec2<f32>(w.x, z.y);
  }
  if (is_infinite_turned_c64(z)) {
    return select(vec2<f32>(0.0, copysign32(0.0, z.y)), vec2<f32>(z.x, nan32()), z.x > 0.0);
  }
  return w;
}

// ln |z|. Near the unit circle it is small: from |z|^2 - 1.
fn log_abs_c64(z: vec2<f32>) -> f32 {
  let big = max(abs(z.x), abs(z.y));
  let small = min(abs(z.x), abs(z.y));
  let square = big * big + small * small;
  let near = square > 0.25 && square < 4.0;
  let ratio = small / select(big, 1.0, small == 0.0);
  let rest = select(ratio * ratio, (big - 1.0) * (big + 1.0) + small * small, near);
  let size = select(log_f32(big), 0.0, near) + 0.5 * log1p_f32(rest);
  return select(size, inf32(), unary_isinf(z));
}

fn unary_log(z: vec2<f32>) -> vec2<f32> {
  if (unary_isnan(z)) {
    return vec2<f32>(select(nan32(), inf32(), unary_isinf(z)), nan32());
  }
  return vec2<f32>(log_abs_c64(z), arctan2_f32(z.y, z.x));
}

fn unary_log2(z: vec2<f32>) -> vec2<f32> {
  return unary_log(z) * 1.442695;
}

fn unary_log10(z: vec2<f32>) -> vec2<f32> {
  return unary_log(z) * 0.4342945;
}

// From |1 + z|^2 - 1, unless 1 + z is exact or as good.
fn unary_log1p(z: vec2<f32>) -> vec2<f32> {
  let sum = vec2<f32>(1.0 + z.x, z.y);
  let big = max(abs(z.x), abs(z.y));
  if (!(big < 1.0e3) || unary_isnan(z) || max(abs(sum.x), abs(sum.y)) < 0.5) {
    return unary_log(sum);
  }
  let size = 0.5 * log1p_f32(z.x * (2.0 + z.x) + z.y * z.y);
  return vec2<f32>(size, arctan2_f32(sum.y, sum.x));
}

// ln(e^x + e^y): the larger plus ln(1 + the ratio).
fn binary_logaddexp(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  let swap = binary_less(y, x);
  let high = select(y, x, swap);
  let low = select(x, y, swap);
  if (unary_isnan(high) || unary_isnan(low)) {
    return nan_c64();
  }
  if ((isinf32(low.x) && low.x < 0.0) || (isinf32(high.x) && high.x > 0.0)) {
    return high;
  }
  return high + unary_log1p(unary_exp(low - high));
}

// In between z is scaled by 2^-2k.
fn unary_sqrt(z: vec2<f32>) -> vec2<f32> {
  if (isinf32(z.y)) {
    return vec2<f32>(inf32(), z.y);
  }
  if (isinf32(z.x)) {
    let zero = select(0.0, nan32(), isnan32(z.y));
    let below = vec2<f32>(zero, copysign32(z.x, z.y));
    return select(below, vec2<f32>(z.x, copysign32(zero, z.y)), z.x > 0.0);
  }
  if (unary_isnan(z)) {
    return nan_c64();
  }
  if (is_zero_c64(z)) {
    return vec2<f32>(0.0, z.y);
  }
  let k = exponent_c64(z) >> 1u;
  let near = scale_c64(z, -2 * k);
  let t = sqrt(0.5 * (abs(near.x) + near_abs_c64(near)));
  let low = abs(near.y) / (t + t);
  let size = select(vec2<f32>(low, t), vec2<f32>(t, low), z.x >= 0.0) * power_of_two_f32(k);
  return vec2<f32>(size.x, copysign32(size.y, z.y));
}

fn unary_rsqrt(z: vec2<f32>) -> vec2<f32> {
  return unary_reciprocal(unary_sqrt(z));
}

// ln |z| of a finite z other than 0, as two numbers: half of the logarithm of |z|^2.
fn log_abs_pair_c64(z: vec2<f32>) -> vec2<f32> {
  let e = exponent_c64(z);
  let near = z * power_of_two_f32(-e);
  let a = product_f32(near.x, near.x);
  let b = product_f32(near.y, near.y);
  let sum = sum_f32(a.x, b.x);
  let square = fast_sum_f32(sum.x, sum.y + (a.y + b.y));
  let kf = log_split_f32(square.x);
  let f = fast_sum_f32(kf.y, square.y * power_of_two_f32(-i32(kf.x)));
  let l = log2_pair_f32(kf.x + 2.0 * f32(e), f);
  // ln2/2 in two parts.
  let p = product_f32(l.x, 0.3465736);
  return fast_sum_f32(p.x, p.y + (l.y * 0.3465736 - l.x * 9.5232805e-10));
}

// e^(y ln x), with the exponent as two numbers; x^0 is 1, and 0 to any other power is 0 if its real
// part is positive.
fn binary_power(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  if (is_zero_c64(y)) {
    return vec2<f32>(1.0, 0.0);
  }
  if (is_zero_c64(x)) {
    return select(nan_c64(), vec2<f32>(0.0, 0.0), y.x > 0.0);
  }
  if (!unary_isfinite(x) || !unary_isfinite(y)) {
    return unary_exp(binary_multiply(y, unary_log(x)));
  }
  let size = log_abs_pair_c64(x);
  let turn = arctan2_pair_f32(x.y, x.x);
  let a = product_f32(y.x, size.x);
  let b = product_f32(y.y, turn.x);
  let c = product_f32(y.x, turn.x);
  let d = product_f32(y.y, size.x);
  let re = sum_f32(a.x, -b.x);
  let im = sum_f32(c.x, d.x);
  let re_low = re.y + (a.y - b.y) + (y.x * size.y - y.y * turn.y);
  let im_low = im.y + (c.y + d.y) + (y.x * turn.y + y.y * size.y);
  let w = vec2<f32>(re.x, im.x);
  // Huge products have no error that is a number, and their low parts no meaning.
  let low = vec2<f32>(re_low, im_low);
  return exp_of_sum_c64(w, select(vec2<f32>(0.0, 0.0), low, abs(low) < vec2<f32>(0.01)));
}
