// float32 quotients of which the last bit counts, though division may be off by 2.5 ULP.

// x / y, correctly rounded if it is at least 1/2 and has a fraction: corrected by its remainder, of operands that are
// scaled so that nothing of that is lost.
fn quotient_whole_f32(x: f32, y: f32) -> f32 {
  let q = x / y;
  let b = abs(y);
  let scale = select(select(1.0, 1.8446744e19, b < 1.0e-20), 5.421011e-20, b > 1.0e20);
  let t = y * scale;
  let p = product_f32(q, t);
  let corrected = q + ((x * scale - p.x) - p.y) / t;
  return select(q, corrected, abs(q) >= 0.5 && abs(q) < 16777216.0);
}
