// Sums, products and quotients whose rounding error is kept as a second number: Dekker's ("A
// floating-point technique for extending the available precision", 1971) and Knuth's algorithms.

// a + b and its error, for |a| >= |b| or a = 0.
fn fast_sum_f64(a: f64, b: f64) -> vec2<f64> {
  let s = a + b;
  return vec2<f64>(s, b - (s - a));
}

// a + b and its error.
fn sum_f64(a: f64, b: f64) -> vec2<f64> {
  let s = a + b;
  let t = s - a;
  return vec2<f64>(s, (a - (s - t)) + (b - t));
}

// a b and its error, from halves of 26 and 27 bits.
fn product_f64(a: f64, b: f64) -> vec2<f64> {
  let p = a * b;
  let ah = bitcast<f64>(bitcast<u64>(a) & 0xfffffffff8000000lu);
  let bh = bitcast<f64>(bitcast<u64>(b) & 0xfffffffff8000000lu);
  let al = a - ah;
  let bl = b - bh;
  return vec2<f64>(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl);
}

// a / b, as two numbers.
fn quotient_f64(a: vec2<f64>, b: vec2<f64>) -> vec2<f64> {
  let inverse = 1.0 / b.x;
  let q = a.x * inverse;
  let p = product_f64(q, b.x);
  let rest = ((a.x - p.x) - p.y) + (a.y - q * b.y);
  return vec2<f64>(q, rest * inverse);
}

// The exact square root of z less its float64 s. No 0/0 at 0.
fn root_rest_f64(z: f64, s: f64) -> f64 {
  let p = product_f64(s, s);
  return ((z - p.x) - p.y) * (0.5 / (s + 2.2250738585072014e-308));
}
