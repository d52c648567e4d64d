// float64 inverse trigonometric functions. Arcs are reduced to |t| <= tan(pi/8), or to |t| <= 1/2
// for arcsine. pi/2 less its float64 is 6.123233995736766e-17.

// arcsin s as two numbers, for s = a, or s = sqrt((1 - a) / 2) if a > 1/2. 2^-59.8 of it.
fn arcsin_parts_f64(a: f64) -> vec2<f64> {
  let large = a > 0.5;
  let z = select(a * a, 0.5 - 0.5 * a, large);
  let s = select(a, sqrt(z), large);
  var p = 0.03270217700391086 * z - 0.02111671571283559;
  p = p * z + 0.0217906238024221;
  p = p * z + 0.003672203654436732;
  p = p * z + 0.010789313801325721;
  p = p * z + 0.011397294791275879;
  p = p * z + 0.013981018271721005;
  p = p * z + 0.017351595526084063;
  p = p * z + 0.02237221590425659;
  p = p * z + 0.030381942675344033;
  p = p * z + 0.044642857175284635;
  p = p * z + 0.074999999999701;
  p = p * z + 0.16666666666666763;
  return vec2<f64>(s, (s * z) * p + select(0.0, root_rest_f64(z, s), large));
}

// Above 1/2, pi/2 - 2 arcsin(sqrt((1 - x) / 2)).
fn arcsin_f64(x: f64) -> f64 {
  let a = abs(x);
  let s = arcsin_parts_f64(a);
  let sum = fast_sum_f64(1.5707963267948966, -2.0 * s.x);
  let outer = sum.x + (sum.y + (6.123233995736766e-17 - 2.0 * s.y));
  let y = select(s.x + s.y, outer, a > 0.5);
  return or_nan_f64(copysign64(select(y, nan64(), a > 1.0), x), x);
}

// Beyond 1/2 twice the arcsine, or pi less that.
fn arccos_f64(x: f64) -> f64 {
  let a = abs(x);
  let large = a > 0.5;
  let parts = arcsin_parts_f64(a);
  let s = select(parts, parts + parts, large);
  let signed = select(s, -s, x < 0.0 && !large);
  let sum = fast_sum_f64(select(1.5707963267948966lf, 3.141592653589793lf, large), -signed.x);
  let low = select(6.123233995736766e-17lf, 1.2246467991473532e-16lf, large);
  let y = select(sum.x + (sum.y + (low - signed.y)), s.x + s.y, large && x >= 0.0);
  return or_nan_f64(select(y, nan64(), a > 1.0), x);
}

// The angle in [0, pi/2] of the point (x, y), neither negative nor both zero, as two numbers. Near
// the diagonal: pi/4 + arctan((low - high) / (low + high)). 2^-59.5 of the arctangent.
fn angle_f64(y: f64, x: f64) -> vec2<f64> {
  let steep = y > x;
  let low = select(y, x, steep);
  let high = select(x, y, steep);
  let middle = low > high * 1.4142135623730951 - high;
  let t = quotient_f64(
    select(vec2<f64>(low, 0.0), sum_f64(low, -high), middle),
    select(vec2<f64>(high, 0.0), fast_sum_f64(high, low), middle));
  // Products with subnormal numbers have no error that is a number.
  let t_low = select(t.y, 0.0, low < 1.0e-290);
  let z = t.x * t.x;
  var p = -0.01790735270156744 * z + 0.03806496310631082;
  p = p * z - 0.050393311407278124;
  p = p * z + 0.05847897455699531;
  p = p * z - 0.06663105463091608;
  p = p * z + 0.0769206036226565;
  p = p * z - 0.09090897767092325;
  p = p * z + 0.11111110783814247;
  p = p * z - 0.14285714280203998;
  p = p * z + 0.19999999999953663;
  p = p * z - 0.333333333333332;
  let a = vec2<f64>(t.x, (t.x * z) * p + (t_low - t_low * z));
  var base = select(vec2<f64>(0.0, 0.0), vec2<f64>(0.7853981633974483, 3.061616997868383e-17), middle);
  base = select(base, vec2<f64>(1.5707963267948966 - base.x, 6.123233995736766e-17 - base.y), steep);
  let signed = select(a, -a, steep);
  let sum = fast_sum_f64(base.x, signed.x);
  return vec2<f64>(sum.x, sum.y + (base.y + signed.y));
}

// pi/2 is nearest from far below the bound on; products must not overflow.
fn arctan_f64(x: f64) -> f64 {
  let a = abs(x);
  let t = angle_f64(clamp_f64(a, 0.0, 1.0e18), 1.0);
  return or_nan_f64(copysign64(select(t.x + t.y, a, a < 1.0e-9), x), x);
}

// Angle of the point (x, y).
fn arctan2_f64(y: f64, x: f64) -> f64 {
  let most = select(abs(x), abs(y), abs(y) > abs(x));
  // Keeps sums and inverses finite and tiny quotients' operands normal.
  var scale = select(1.0lf, 1.329227995784916e36lf, most < 1.0e-200);
  scale = select(scale, 7.52316384526264e-37, most > 1.0e200);
  // Infinities and 0/0 as points in their directions.
  let infinite = isinf64(most);
  let a = select(abs(y) * scale, select(0.0lf, 1.0lf, isinf64(y)), infinite);
  let b = select(abs(x) * scale, select(0.0lf, 1.0lf, isinf64(x)), infinite);
  let t = angle_f64(a, select(b, 1.0, most == 0.0));
  // Not x < 0: -0 counts.
  let sum = fast_sum_f64(3.141592653589793, -t.x);
  let left = sum.x + (sum.y + (1.2246467991473532e-16 - t.y));
  let angle = select(t.x + t.y, left, is_negative_f64(x));
  return or_nan_f64(or_nan_f64(copysign64(angle, y), x), y);
}
