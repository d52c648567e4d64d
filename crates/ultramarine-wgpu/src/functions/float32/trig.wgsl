// float32 sine, cosine and tangent.

// The 64 bits behind the window's start of m w, w = w.x 2^64 + w.y 2^32 + w.z, m < 2^24.
fn multiply_window_f32(m: u32, w: vec3<u32>) -> vec2<u32> {
  let low = m * w.y;
  let second = low + multiply_high_f32(m, w.z);
  return vec2<u32>(m * w.x + multiply_high_f32(m, w.y) + select(0u, 1u, second < low), second);
}

// m w / 2^32 for m < 2^24.
fn multiply_high_f32(m: u32, w: u32) -> u32 {
  let a = m & 0xffffu;
  let b = m >> 16u;
  let c = w & 0xffffu;
  let d = w >> 16u;
  let middle = a * d;
  let sum = ((a * c) >> 16u) + b * c + (middle & 0xffffu);
  return b * d + (middle >> 16u) + (sum >> 16u);
}

// Words k to k + 3, k <= 4, of 32 zeros and the bits of 2/pi. Choices take less time than arrays of the invocation.
fn two_over_pi_f32(k: u32) -> vec4<u32> {
  let t0 = vec4<u32>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u);
  let t1 = vec4<u32>(0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
  let low = select(t0, t1, k == 4u);
  let two = (k & 2u) != 0u;
  let w = select(low, vec4<u32>(low.zw, t1.xy), two);
  return select(w, vec4<u32>(w.yzw, select(t1.x, t1.z, two)), (k & 1u) != 0u);
}

// |x| less the nearest multiple of pi/2, as two numbers, and the multiple's quadrant.
// M. H. Payne and R. N. Hanek's reduction ("Radian reduction for trigonometric functions", 1983):
// |x| is m 2^(e - 150), and only those bits of 2/pi matter that give the product's last two whole
// bits and its fraction: the window of them has 96 bits.
fn reduce_f32(x: f32) -> vec3<f32> {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits <= 0x3f490fdau) {
    return vec3<f32>(abs(x), 0.0, 0.0);
  }
  let m = (bits & 0x007fffffu) | 0x00800000u;
  let at = (bits >> 23u) - 120u;
  let w = two_over_pi_f32(at >> 5u);
  let b = vec3<u32>(at & 31u);
  // In two steps, as a shift by 32 is none.
  let p = multiply_window_f32(m, (w.xyz << b) | ((w.yzw >> vec3<u32>(1u)) >> (vec3<u32>(31u) - b)));
  // Two whole bits and 62 of the fraction, rounded to the nearest.
  let quadrant = (p.x + 0x20000000u) >> 30u;
  var f = vec2<u32>(p.x - (quadrant << 30u), p.y);
  let below = (f.x & 0x80000000u) != 0u;
  if (below) {
    f = vec2<u32>(~f.x + select(0u, 1u, f.y == 0u), ~f.y + 1u);
  }
  // Parts of at most 24 bits: 2^-22, 2^-46 and 2^-62.
  let first = f32(i32(f.x >> 8u)) * 2.3841858e-7;
  let second = f32(i32(((f.x & 0xffu) << 16u) | (f.y >> 16u))) * 1.4210855e-14;
  let turn = fast_sum_f32(first, second);
  let rest = turn.y + f32(i32(f.y & 0xffffu)) * 2.168404e-19;
  let r = product_f32(turn.x, 1.5707964);
  let sum = fast_sum_f32(r.x, r.y + (rest * 1.5707964 - turn.x * 4.371139e-8));
  return vec3<f32>(select(sum, -sum, below), f32(i32(quadrant & 3u)));
}

// sin(r + low) and cos(r + low) for |r| <= pi/4, each as two numbers.
fn sin_cos_small_f32(r: f32, low: f32) -> vec4<f32> {
  let z = r * r;
  let s = ((2.7181e-6 * z - 1.983931e-4) * z + 0.008333329) * z - 0.16666667;
  let c = ((-2.7205553e-7 * z + 2.4799458e-5) * z - 0.0013888883) * z + 0.041666668;
  let cosine = fast_sum_f32(1.0, -0.5 * z);
  return vec4<f32>(
    r, (r * z) * s + (low - 0.5 * z * low), cosine.x, (z * z) * c + (cosine.y - r * low));
}

// sin(x + low) and cos(x + low), |low| far below 1.
fn sin_cos_f32(x: f32, low: f32) -> vec2<f32> {
  let reduced = reduce_f32(x);
  let quadrant = u32(i32(reduced.z));
  let negative = is_negative_f32(x);
  let parts = sin_cos_small_f32(reduced.x, reduced.y + select(low, -low, negative));
  let s = parts.x + parts.y;
  let c = parts.z + parts.w;
  let turned = select(vec2<f32>(s, c), vec2<f32>(c, s), (quadrant & 1u) != 0u);
  let sine = select(quadrant, quadrant + 2u, negative);
  let signs = (vec2<u32>(sine, quadrant + 1u) & vec2<u32>(2u)) << vec2<u32>(30u);
  let y = bitcast<vec2<f32>>(bitcast<vec2<u32>>(turned) ^ signs);
  return select(y, vec2<f32>(nan32()), !isfinite32(x));
}

fn sin_f32(x: f32) -> f32 {
  return sin_cos_f32(x, 0.0).x;
}

fn cos_f32(x: f32) -> f32 {
  return sin_cos_f32(x, 0.0).y;
}

// The quotient of both as two numbers each, or it would be three units off.
fn tan_f32(x: f32) -> f32 {
  let reduced = reduce_f32(x);
  let parts = sin_cos_small_f32(reduced.x, reduced.y);
  let s = fast_sum_f32(parts.x, parts.y);
  let c = fast_sum_f32(parts.z, parts.w);
  let odd = (i32(reduced.z) & 1) != 0;
  let q = quotient_f32(select(s, -c, odd), select(c, s, odd));
  let y = q.x + q.y;
  let signed = select(select(y, -y, is_negative_f32(x)), x, abs(x) < 1.0e-4);
  return select(signed, nan32(), !isfinite32(x));
}
