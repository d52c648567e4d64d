// float32 powers: 2^(y log2 |x|), with the exponent as two numbers.

// k + log2(1 + f) to 2^-30 of it: log2(1 + f) = s (2/ln2 + z p(z)), s = f / (2 + f), z = s^2.
fn log2_pair_f32(k: f32, f: vec2<f32>) -> vec2<f32> {
  let d = fast_sum_f32(2.0, f.x);
  let s = quotient_f32(f, vec2<f32>(d.x, d.y + f.y));
  let z = s.x * s.x;
  let p = ((0.34074745 * z + 0.41167175) * z + 0.5770836) * z + 0.96179667;
  // 2/ln2 in two parts.
  let l = product_f32(s.x, 2.8853901);
  let rest = l.y + (s.x * (z * p + 3.851926e-8) + s.y * 2.8853901);
  let sum = sum_f32(k, l.x);
  return fast_sum_f32(sum.x, sum.y + rest);
}

// 2^(e + low) for |e| < 250.
fn exp2_pair_f32(e: f32, low: f32) -> f32 {
  let n = (e + 12582912.0) - 12582912.0;
  let r = ((e - n) + low) * 0.6931472;
  let whole = i32(n);
  let half = whole >> 1u;
  return (1.0 + expm1_small_f32(r)) * power_of_two_f32(half) * power_of_two_f32(whole - half);
}

fn power_f32(x: f32, y: f32) -> f32 {
  let a = abs(x);
  let kf = log_split_all_f32(a);
  let l = log2_pair_f32(kf.x, vec2<f32>(kf.y, 0.0));
  // No exponent beyond it makes a difference, but its products are finite.
  let bounded = clamp_f32(y, -1.0e10, 1.0e10);
  let e = product_f32(bounded, l.x);
  let inside = clamp_f32(e.x, -200.0, 200.0);
  let low = select(0.0, e.y + bounded * l.y, inside == e.x);
  let edge = select(0.0, inf32(), (a == 0.0) == (y < 0.0));
  var r = select(exp2_pair_f32(inside, low), edge, a == 0.0 || isinf32(a));
  let whole = trunc(y) == y;
  let half = 0.5 * y;
  let odd = whole && trunc(half) != half;
  r = select(r, copysign32(r, x), odd);
  // (-1)^infinity is 1.
  r = select(r, nan32(), x < 0.0 && !isinf32(x) && !whole);
  r = or_nan_f32(or_nan_f32(r, x), y);
  return select(r, 1.0, y == 0.0 || x == 1.0);
}
