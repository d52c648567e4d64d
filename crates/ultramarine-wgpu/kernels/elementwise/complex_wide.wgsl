// Quotients of complex64 in float64, in which nothing that float32 holds overflows: rounded once.

fn z_divide(x: vec2<f64>, y: vec2<f64>) -> vec2<f64> {
  let norm = y.x * y.x + y.y * y.y;
  let re = (x.x * y.x + x.y * y.y) / norm;
  let im = (x.y * y.x - x.x * y.y) / norm;
  if (!(isnan64(re) && isnan64(im))) { return vec2<f64>(re, im); }
  // By zero and of infinities as in C99's annex G.
  if (norm == 0.0lf && !(isnan64(x.x) && isnan64(x.y))) {
    let infinity = copysign64(inf64(), y.x);
    return vec2<f64>(infinity * x.x, infinity * x.y);
  }
  if ((isinf64(x.x) || isinf64(x.y)) && isfinite64(y.x) && isfinite64(y.y)) {
    let d = z_direction(x);
    return vec2<f64>(inf64() * (d.x * y.x + d.y * y.y), inf64() * (d.y * y.x - d.x * y.y));
  }
  if ((isinf64(y.x) || isinf64(y.y)) && isfinite64(x.x) && isfinite64(x.y)) {
    let d = z_direction(y);
    return vec2<f64>(zero64() * (x.x * d.x + x.y * d.y), zero64() * (x.y * d.x - x.x * d.y));
  }
  return vec2<f64>(re, im);
}

// An infinite number as a direction.
fn z_direction(z: vec2<f64>) -> vec2<f64> {
  let x = select(0.0lf, 1.0lf, isinf64(z.x));
  let y = select(0.0lf, 1.0lf, isinf64(z.y));
  return vec2<f64>(copysign64(x, z.x), copysign64(y, z.y));
}

fn binary_divide(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
  let z = z_divide(vec2<f64>(f64(x.x), f64(x.y)), vec2<f64>(f64(y.x), f64(y.y)));
  return vec2<f32>(f32(z.x), f32(z.y));
}
