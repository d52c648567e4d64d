// float64 powers: e^(y ln |x|), with ln |x| to 2^-65 of it as two numbers.

// ln(1 + f) = 2 artanh(s) = s (2 + z (2/3 + z p)), s = f / (2 + f), z = s^2.
fn log_pair_f64(x: f64) -> vec2<f64> {
  let km = log_split_all_f64(x);
  let f = km.y - 1.0;
  let inverse = 1.0 / (2.0 + f);
  let s = f * inverse;
  // f - 2s is exact.
  let sf = product_f64(s, f);
  let s_low = (((f - (s + s)) - sf.x) - sf.y) * inverse;
  let square = product_f64(s, s);
  let z = square.x;
  let z_low = (s + s) * s_low + square.y;
  // 2^-66.3 of ln(1 + f).
  var p = 0.13196368911975137 * z + 0.13256813211317134;
  p = p * z + 0.1538675753666308;
  p = p * z + 0.1818178436238011;
  p = p * z + 0.22222222519981058;
  p = p * z + 0.2857142857009922;
  p = p * z + 0.40000000000002256;
  let tail = z * p + (z_low * 0.4 + 3.700743415417188e-17);
  let b = fast_sum_f64(0.6666666666666666, tail);
  let t = product_f64(z, b.x);
  let t_low = z * b.y + (z_low * b.x + t.y);
  let g = fast_sum_f64(2.0, t.x);
  let l = product_f64(s, g.x);
  let l_low = s * (g.y + t_low) + (s_low * g.x + l.y);
  let sum = fast_sum_f64(km.x * 0.6931471805598903, l.x);
  return vec2<f64>(sum.x, km.x * 5.497923018708371e-14 + (sum.y + l_low));
}

fn power_f64(x: f64, y: f64) -> f64 {
  let a = abs(x);
  let l = log_pair_f64(a);
  // No exponent beyond it makes a difference, but its products are finite.
  let bounded = clamp_f64(y, -1.0e24, 1.0e24);
  let e = product_f64(bounded, l.x);
  let inside = clamp_f64(e.x, -746.0, 710.0);
  let low = select(0.0, bounded * l.y + e.y, inside == e.x);
  let edge = select(0.0, inf64(), (a == 0.0) == (y < 0.0));
  var r = select(exp_of_sum_f64(inside, low), edge, a == 0.0 || isinf64(a));
  let whole = round(y) == y;
  let half = 0.5 * y;
  let odd = whole && round(half) != half;
  r = select(r, copysign64(r, x), odd);
  // (-1)^infinity is 1.
  r = select(r, nan64(), x < 0.0 && !isinf64(x) && !whole);
  r = or_nan_f64(or_nan_f64(r, x), y);
  return select(r, 1.0, y == 0.0 || x == 1.0);
}
