// Sums, products and quotients whose rounding error is kept as a second number: Dekker's ("A
// floating-point technique for extending the available precision", 1971) and Knuth's algorithms.

// a + b and its error, for |a| >= |b| or a = 0.
fn fast_sum_f32(a: f32, b: f32) -> vec2<f32> {
  let s = a + b;
  return vec2<f32>(s, b - (s - a));
}

// a + b and its error.
fn sum_f32(a: f32, b: f32) -> vec2<f32> {
  let s = a + b;
  let t = s - a;
  return vec2<f32>(s, (a - (s - t)) + (b - t));
}

// a b and its error, from halves of 12 bits.
fn product_f32(a: f32, b: f32) -> vec2<f32> {
  let p = a * b;
  let ah = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let bh = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let al = a - ah;
  let bl = b - bh;
  return vec2<f32>(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl);
}

// a / b, as two numbers.
fn quotient_f32(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  let q = a.x / b.x;
  let p = product_f32(q, b.x);
  let rest = ((a.x - p.x) - p.y) + (a.y - q * b.y);
  return vec2<f32>(q, rest / b.x);
}
