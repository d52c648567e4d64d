// float32 error function and its inverse.

// x p(x^2) up to 0.94, above it 1 - e^q(|x|).
fn erf_f32(x: f32) -> f32 {
  let a = abs(x);
  let z = x * x;
  var p = fma(8.193777e-5, z, -8.0998766e-4);
  p = fma(p, z, 0.005197155);
  p = fma(p, z, -0.026857791);
  p = fma(p, z, 0.11283666);
  p = fma(p, z, -0.37612632);
  p = fma(p, z, 0.12837917);
  let c = min(a, 4.05);
  var q = fma(-2.1217946e-5, c, 4.3588498e-4);
  q = fma(q, c, -0.0041779634);
  q = fma(q, c, 0.025137624);
  q = fma(q, c, -0.10830828);
  q = fma(q, c, -0.6333212);
  q = fma(q, c, -1.1295277);
  q = fma(q, c, 1.773351e-4);
  // q is between -19 and 1: e^q needs one power of two.
  let reduced = exp_reduce_f32(q);
  let power = power_of_k_f32(reduced.x, 0u);
  let far = 1.0 - fma(power, expm1_small_f32(reduced.y), power);
  // The sign of zero: x p + x is 0 for -0.
  return or_nan_f32(copysign32(select(far, fma(x, p, x), a < 0.94), x), x);
}

// x p(w) with w = -ln(1 - x^2), in sqrt(w) for w > 5.
fn erfinv_f32(x: f32) -> f32 {
  let w = -log_f32((1.0 - x) * (1.0 + x));
  let t = w - 2.5;
  var near = -8.791057e-9 * t + 2.3232644e-8;
  near = near * t + 4.6617066e-7;
  near = near * t - 3.4627049e-6;
  near = near * t - 4.9633477e-6;
  near = near * t + 2.1834445e-4;
  near = near * t - 0.0012527419;
  near = near * t - 0.004177387;
  near = near * t + 0.24664028;
  near = near * t + 1.5014094;
  let u = sqrt(w) - 3.0;
  var far = -1.6542853e-4 * u + 8.610835e-5;
  far = far * u + 0.0013002249;
  far = far * u - 0.0036601378;
  far = far * u + 0.0057617994;
  far = far * u - 0.0076253046;
  far = far * u + 0.009435622;
  far = far * u + 1.0016742;
  far = far * u + 2.832977;
  let y = x * select(far, near, w < 5.0);
  let edge = select(y, copysign32(inf32(), x), abs(x) == 1.0);
  return or_nan_f32(select(edge, nan32(), abs(x) > 1.0), x);
}
