// float64 sine, cosine and tangent.

// m w / 2^64.
fn multiply_high_f64(m: u64, w: u64) -> u64 {
  let a = m & 0xfffffffflu;
  let b = m >> 32u;
  let c = w & 0xfffffffflu;
  let d = w >> 32u;
  let middle = a * d;
  // b < 2^21: no overflow.
  let sum = ((a * c) >> 32u) + b * c + (middle & 0xfffffffflu);
  return b * d + (middle >> 32u) + (sum >> 32u);
}

// Words k to k + 3, k <= 16, of 64 zeros and the bits of 2/pi. Choices take less time than arrays of the invocation.
fn two_over_pi_f64(k: u32) -> vec4<u64> {
  let t0 = vec4<u64>(0lu, 0xa2f9836e4e441529lu, 0xfc2757d1f534ddc0lu, 0xdb6295993c439041lu);
  let t1 = vec4<u64>(0xfe5163abdebbc561lu, 0xb7246e3a424dd2e0lu, 0x06492eea09d1921clu, 0xfe1deb1cb129a73elu);
  let t2 = vec4<u64>(0xe88235f52ebb4484lu, 0xe99c7026b45f7e41lu, 0x3991d639835339f4lu, 0x9c845f8bbdf9283blu);
  let t3 = vec4<u64>(0x1ff897ffde05980flu, 0xef2f118b5a0a6d1flu, 0x6d367ecf27cb09b7lu, 0x4f463f669e5fea2dlu);
  let t4 = vec4<u64>(0x7527bac7ebe5f17blu, 0x3d0739f78a5292ealu, 0x6bfb5fb11f8d5d08lu, 0x56033046fc7b6bablu);
  let four = (k & 4u) != 0u;
  let eight = (k & 8u) != 0u;
  let low = select(select(select(t0, t1, four), select(t2, t3, four), eight), t4, k == 16u);
  let high = select(select(t1, t2, four), select(t3, t4, four), eight);
  let two = (k & 2u) != 0u;
  let w = select(low, vec4<u64>(low.zw, high.xy), two);
  return select(w, vec4<u64>(w.yzw, select(high.x, high.z, two)), (k & 1u) != 0u);
}

// |x| less the nearest multiple of pi/2, as two numbers, and the multiple's quadrant.
// M. H. Payne and R. N. Hanek's reduction ("Radian reduction for trigonometric functions", 1983):
// |x| is m 2^(e - 1075), and only those bits of 2/pi matter that give the product's last two whole
// bits and its fraction: the window of them has 192 bits.
fn reduce_f64(x: f64) -> vec3<f64> {
  let bits = bitcast<u64>(x) & 0x7ffffffffffffffflu;
  // pi/4.
  if (bits <= 0x3fe921fb54442d18lu) {
    return vec3<f64>(abs(x), 0.0, 0.0);
  }
  let m = (bits & 0x000ffffffffffffflu) | 0x0010000000000000lu;
  let at = u32(bits >> 52u) - 1013u;
  let w = two_over_pi_f64(at >> 6u);
  let b = at & 63u;
  // In two steps, as a shift by 64 is none.
  let first = (w.x << b) | ((w.y >> 1u) >> (63u - b));
  let second = (w.y << b) | ((w.z >> 1u) >> (63u - b));
  let third = (w.z << b) | ((w.w >> 1u) >> (63u - b));
  // The product's first 128 bits: two whole bits and 126 of the fraction, rounded to the nearest.
  let low = m * second;
  var f1 = low + multiply_high_f64(m, third);
  var f0 = m * first + multiply_high_f64(m, second) + select(0lu, 1lu, f1 < low);
  let quadrant = (f0 + 0x2000000000000000lu) >> 62u;
  f0 -= quadrant << 62u;
  let below = (f0 >> 63u) != 0lu;
  if (below) {
    f0 = ~f0 + select(0lu, 1lu, f1 == 0lu);
    f1 = ~f1 + 1lu;
  }
  // Parts of at most 53 bits: 2^-46, 2^-99 and 2^-126.
  let turn = fast_sum_f64(
    f64(f0 >> 16u) * 1.4210854715202004e-14,
    f64(((f0 & 0xfffflu) << 37u) | (f1 >> 27u)) * 1.5777218104420236e-30);
  let rest = turn.y + f64(f1 & 0x7fffffflu) * 1.1754943508222875e-38;
  let r = product_f64(turn.x, 1.5707963267948966);
  let sum = fast_sum_f64(r.x, r.y + (rest * 1.5707963267948966 + turn.x * 6.123233995736766e-17));
  return vec3<f64>(select(sum, -sum, below), f64(i32(quadrant) & 3));
}

// sin(r + low) and cos(r + low) for |r| <= pi/4, each as two numbers. 2^-58 of the sine, 2^-64 of
// the cosine.
fn sin_cos_small_f64(r: f64, low: f64) -> vec4<f64> {
  let z = r * r;
  var s = 1.5896747137054423e-10 * z - 2.505075730751144e-8;
  s = s * z + 2.755731368696081e-6;
  s = s * z - 1.9841269829794155e-4;
  s = s * z + 0.008333333333322398;
  s = s * z - 0.16666666666666632;
  var c = -1.1359614569269514e-11 * z + 2.087572265406201e-9;
  c = c * z - 2.7557314347955775e-7;
  c = c * z + 2.480158728946770e-5;
  c = c * z - 0.00138888888888741;
  c = c * z + 0.0416666666666666;
  let half = 0.5 * z;
  let cosine = fast_sum_f64(1.0, -half);
  return vec4<f64>(
    r, (r * z) * s + (low - half * low), cosine.x, (z * z) * c + (cosine.y - r * low));
}

// Sine and cosine of |x|.
fn sin_cos_f64(x: f64) -> vec2<f64> {
  let reduced = reduce_f64(x);
  let quadrant = u32(i32(reduced.z));
  let parts = sin_cos_small_f64(reduced.x, reduced.y);
  let s = parts.x + parts.y;
  let c = parts.z + parts.w;
  let odd = (quadrant & 1u) != 0u;
  let a = select(s, c, odd);
  let b = select(c, s, odd);
  let sine = select(a, -a, (quadrant & 2u) != 0u);
  let cosine = select(b, -b, ((quadrant + 1u) & 2u) != 0u);
  let finite = isfinite64(x);
  return vec2<f64>(select(nan64(), sine, finite), select(nan64(), cosine, finite));
}

// Small x stay, with the sign of zero.
fn sin_f64(x: f64) -> f64 {
  let y = sin_cos_f64(x).x;
  return select(select(y, -y, is_negative_f64(x)), x, abs(x) < 1.0e-9);
}

fn cos_f64(x: f64) -> f64 {
  return sin_cos_f64(x).y;
}

// The quotient of both.
fn tan_f64(x: f64) -> f64 {
  let reduced = reduce_f64(x);
  let parts = sin_cos_small_f64(reduced.x, reduced.y);
  let s = fast_sum_f64(parts.x, parts.y);
  let c = fast_sum_f64(parts.z, parts.w);
  let odd = (i32(reduced.z) & 1) != 0;
  let q = quotient_f64(select(s, -c, odd), select(c, s, odd));
  let y = q.x + q.y;
  let signed = select(select(y, -y, is_negative_f64(x)), x, abs(x) < 1.0e-9);
  return select(signed, nan64(), !isfinite64(x));
}
