// float32 inverse trigonometric functions. pi/2 less its float32 is -4.371139e-8.

// Inverse sine for 0 <= x <= 0.55, z = x^2.
fn arcsin_small_f32(x: f32, z: f32) -> f32 {
  var p = 0.045174453 * z + 0.008678059;
  p = p * z + 0.03341233;
  p = p * z + 0.044315305;
  p = p * z + 0.07501601;
  p = p * z + 0.1666664;
  return (x * z) * p + x;
}

// Above 0.55, pi/2 - 2 arcsin(sqrt((1 - x) / 2)).
fn arcsin_f32(x: f32) -> f32 {
  let a = abs(x);
  let large = a > 0.55;
  let z = select(a * a, 0.5 - 0.5 * a, large);
  let y = arcsin_small_f32(select(a, sqrt(z), large), z);
  let outer = select(1.5707964 - ((y + y) + 4.371139e-8), nan32(), a > 1.0);
  return or_nan_f32(copysign32(select(y, outer, large), x), x);
}

fn arccos_f32(x: f32) -> f32 {
  let a = abs(x);
  let large = a > 0.55;
  let z = select(a * a, 0.5 - 0.5 * a, large);
  let y = arcsin_small_f32(select(a, sqrt(z), large), z);
  let twice = y + y;
  let outer = select(twice, 3.1415927 - (twice + 8.742278e-8), x < 0.0);
  let inner = 1.5707964 - (copysign32(y, x) + 4.371139e-8);
  return or_nan_f32(select(select(inner, outer, large), nan32(), a > 1.0), x);
}

// The angle in [0, pi/2] of the point (x, y), neither negative nor both zero, as two numbers. Near
// the diagonal: pi/4 + arctan((low - high) / (low + high)).
fn angle_f32(y: f32, x: f32) -> vec2<f32> {
  let steep = y > x;
  let low = select(y, x, steep);
  let high = select(x, y, steep);
  let middle = low > high * 0.55;
  let t = quotient_f32(
    select(vec2<f32>(low, 0.0), sum_f32(low, -high), middle),
    select(vec2<f32>(high, 0.0), fast_sum_f32(high, low), middle));
  let z = t.x * t.x;
  var p = 0.033977326 * z - 0.07631023;
  p = p * z + 0.10843823;
  p = p * z - 0.1426003;
  p = p * z + 0.19998844;
  p = p * z - 0.33333316;
  // Products with subnormal numbers have no error that is a number.
  let t_low = select(t.y, 0.0, low < 1.0e-30);
  let a = vec2<f32>(t.x, (t.x * z) * p + (t_low - t_low * z));
  var base = select(vec2<f32>(0.0, 0.0), vec2<f32>(0.7853982, -2.1855695e-8), middle);
  base = select(base, vec2<f32>(1.5707964 - base.x, -4.371139e-8 - base.y), steep);
  let signed = select(a, -a, steep);
  let sum = fast_sum_f32(base.x, signed.x);
  return vec2<f32>(sum.x, sum.y + (base.y + signed.y));
}

// tan(pi/2 - 2^-25) is far below the bound; the sum in `angle_f32` must not overflow.
fn arctan_f32(x: f32) -> f32 {
  let a = angle_f32(clamp_f32(abs(x), 0.0, 1.0e18), 1.0);
  let y = select(a.x + a.y, x, abs(x) < 1.0e-4);
  return or_nan_f32(copysign32(y, x), x);
}

// Angle of the point (x, y) as two numbers, with the sign of y.
fn arctan2_pair_f32(y: f32, x: f32) -> vec2<f32> {
  let most = select(abs(x), abs(y), abs(y) > abs(x));
  // Keeps sums finite and tiny quotients' operands normal.
  var scale = select(1.0, 1.8446744e19, most < 1.0e-20);
  scale = select(scale, 5.421011e-20, most > 1.0e20);
  // Infinities and 0/0 as points in their directions.
  let infinite = isinf32(most);
  let a = select(abs(y) * scale, select(0.0, 1.0, isinf32(y)), infinite);
  let b = select(abs(x) * scale, select(0.0, 1.0, isinf32(x)), infinite);
  var t = angle_f32(a, select(b, 1.0, most == 0.0));
  // Not x < 0: -0 counts.
  if (is_negative_f32(x)) {
    let sum = fast_sum_f32(3.1415927, -t.x);
    t = vec2<f32>(sum.x, sum.y - (t.y + 8.742278e-8));
  }
  t = fast_sum_f32(t.x, t.y);
  return select(t, -t, is_negative_f32(y));
}

fn arctan2_f32(y: f32, x: f32) -> f32 {
  let t = arctan2_pair_f32(y, x);
  return or_nan_f32(or_nan_f32(copysign32(t.x + t.y, y), x), y);
}
