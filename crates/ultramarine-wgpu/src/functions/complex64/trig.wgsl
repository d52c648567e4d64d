// Trigonometric and hyperbolic functions of complex64 and their inverses. Special values are those of
// C99. The inverse functions follow W. Kahan, "Branch cuts for complex elementary functions" (1987).

// a b, where 0 times infinity is 0, and 0 times NaN the zero that was given: NaN has no sign.
fn product_c64(a: f32, b: f32) -> f32 {
  let sign_a = select(bitcast<u32>(a), 0u, isnan32(a));
  let sign_b = select(bitcast<u32>(b), 0u, isnan32(b));
  return select(a * b, copysign32(0.0, bitcast<f32>(sign_a ^ sign_b)), a == 0.0 || b == 0.0);
}

// a sinh x and b cosh x: beyond 20 both are e^|x| / 2, in parts as they may overflow before the
// products do.
fn sinh_cosh_c64(x: f32, a: f32, b: f32) -> vec2<f32> {
  if (abs(x) > 20.0) {
    let e = exp_parts_f32(abs(x), 0.0);
    let size = vec2<f32>(copysign32(a, bitcast<f32>(bitcast<u32>(a) ^ bitcast<u32>(x))), b);
    let half = 0.5 * size * e.x;
    let w = half * e.y * e.z;
    return select(w, half, half == vec2<f32>(0.0));
  }
  return vec2<f32>(product_c64(sinh_f32(x), a), product_c64(cosh_f32(x), b));
}

fn unary_sinh(z: vec2<f32>) -> vec2<f32> {
  if (is_infinite_turned_c64(z)) {
    return vec2<f32>(z.x, nan32());
  }
  let turn = sin_cos_f32(z.y, 0.0);
  return sinh_cosh_c64(z.x, turn.y, turn.x);
}

fn unary_cosh(z: vec2<f32>) -> vec2<f32> {
  if (is_infinite_turned_c64(z)) {
    return vec2<f32>(inf32(), nan32());
  }
  let turn = sin_cos_f32(z.y, 0.0);
  let w = sinh_cosh_c64(z.x, turn.x, turn.y);
  return vec2<f32>(w.y, w.x);
}

fn unary_sin(z: vec2<f32>) -> vec2<f32> {
  return over_i_c64(unary_sinh(times_i_c64(z)));
}

fn unary_cos(z: vec2<f32>) -> vec2<f32> {
  return unary_cosh(times_i_c64(z));
}

// sinh cosh + i sin cos over sinh^2 + cos^2; beyond 20 the real part is 1 to the last bit.
fn unary_tanh(z: vec2<f32>) -> vec2<f32> {
  if (is_infinite_turned_c64(z)) {
    return vec2<f32>(copysign32(1.0, z.x), copysign32(0.0, z.y));
  }
  if (isnan32(z.x)) {
    return vec2<f32>(z.x, select(nan32(), z.y, z.y == 0.0));
  }
  if (!isfinite32(z.y)) {
    return vec2<f32>(select(nan32(), z.x, z.x == 0.0), nan32());
  }
  let turn = sin_cos_f32(z.y, 0.0);
  let both = turn.x * turn.y;
  if (abs(z.x) > 20.0) {
    let im = select(4.0 * exp_f32(-2.0 * abs(z.x)) * both, copysign32(0.0, both), isinf32(z.x));
    return vec2<f32>(copysign32(1.0, z.x), im);
  }
  let s = sinh_f32(z.x);
  let w = vec2<f32>(s * cosh_f32(z.x), both);
  let norm = s * s + turn.y * turn.y;
  return w / norm;
}

fn unary_tan(z: vec2<f32>) -> vec2<f32> {
  return over_i_c64(unary_tanh(times_i_c64(z)));
}

// Far from 0 the arcs' other part is ln |2z|.
fn is_far_c64(z: vec2<f32>) -> bool {
  return abs(z.x) > 1.0e10 || abs(z.y) > 1.0e10;
}

fn unary_arcsin(z: vec2<f32>) -> vec2<f32> {
  if (unary_isnan(z)) {
    let im = select(nan32(), z.y, isinf32(z.y));
    return vec2<f32>(select(nan32(), z.x, z.x == 0.0), select(im, inf32(), isinf32(z.x)));
  }
  if (is_far_c64(z)) {
    return vec2<f32>(arctan2_f32(z.x, abs(z.y)), copysign32(log_abs_c64(z) + 0.6931472, z.y));
  }
  let minus = unary_sqrt(vec2<f32>(1.0 - z.x, -z.y));
  let plus = unary_sqrt(vec2<f32>(1.0 + z.x, z.y));
  let re = arctan2_f32(z.x, minus.x * plus.x - minus.y * plus.y);
  return vec2<f32>(re, copysign32(arcsinh_f32(minus.x * plus.y - minus.y * plus.x), z.y));
}

fn unary_arccos(z: vec2<f32>) -> vec2<f32> {
  if (unary_isnan(z)) {
    let w = unary_arcsin(z);
    return vec2<f32>(select(nan32(), 1.5707964, z.x == 0.0), -w.y);
  }
  if (is_far_c64(z)) {
    return vec2<f32>(arctan2_f32(abs(z.y), z.x), copysign32(log_abs_c64(z) + 0.6931472, -z.y));
  }
  let minus = unary_sqrt(vec2<f32>(1.0 - z.x, -z.y));
  let plus = unary_sqrt(vec2<f32>(1.0 + z.x, z.y));
  let re = 2.0 * arctan2_f32(minus.x, plus.x);
  return vec2<f32>(re, copysign32(arcsinh_f32(plus.x * minus.y - plus.y * minus.x), -z.y));
}

// i or -i times the inverse cosine: the one with a positive real part.
fn unary_arccosh(z: vec2<f32>) -> vec2<f32> {
  let w = unary_arccos(z);
  return vec2<f32>(abs(w.y), copysign32(w.x, z.y));
}

fn unary_arcsinh(z: vec2<f32>) -> vec2<f32> {
  return over_i_c64(unary_arcsin(times_i_c64(z)));
}

// Far from 0 it is 1/z and pi/2 i. At 1 + iy, |y| small, the square of y underflows.
fn unary_arctanh(z: vec2<f32>) -> vec2<f32> {
  if (unary_isnan(z)) {
    let zero = select(z.x, 0.0, isnan32(z.x));
    let re = select(nan32(), copysign32(0.0, zero), z.x == 0.0 || unary_isinf(z));
    return vec2<f32>(re, select(nan32(), copysign32(1.5707964, z.y), isinf32(z.y)));
  }
  if (is_far_c64(z)) {
    return vec2<f32>(copysign32(unary_reciprocal(z).x, z.x), copysign32(1.5707964, z.y));
  }
  let x = abs(z.x);
  let gap = (1.0 - x) * (1.0 - x) + z.y * z.y;
  let near = 0.5 * (0.6931472 - log_f32(abs(z.y)));
  let re = select(0.25 * log1p_f32(4.0 * x / gap), near, gap < 1.0e-20);
  let im = 0.5 * arctan2_f32(z.y + z.y, (1.0 - x) * (1.0 + x) - z.y * z.y);
  return vec2<f32>(copysign32(re, z.x), im);
}

fn unary_arctan(z: vec2<f32>) -> vec2<f32> {
  return over_i_c64(unary_arctanh(times_i_c64(z)));
}
