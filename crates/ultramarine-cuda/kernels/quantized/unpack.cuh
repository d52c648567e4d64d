// Numbers of few bits: how they lie in words, and what they mean.

enum Mode { AFFINE, MXFP4, MXFP8, NVFP4 };

template <Mode M, int B, int G> struct Format {
  static const Mode mode = M;
  static const int bits = B, group = G;
  static const bool has_biases = M == AFFINE, is_e2m1 = M == MXFP4 || M == NVFP4;
};

// The type of scales in memory.
template <class D, Mode M> struct Scales { typedef u8 T; };
template <class D> struct Scales<D, AFFINE> { typedef typename D::T T; };

// ---- single numbers -------------------------------------------------------------------------------------------

// Bits of a float that, times 2^126 or 2^120, is the number.
INLINE u32 e2m1_bits(u32 code) { return (code & 8) << 28 | (code & 7) << 22; }
INLINE float e4m3_up(u32 code) {
  if ((code & 0x7f) == 0x7f) return __uint_as_float(0x7fc00000);
  return __uint_as_float((code & 0x80) << 24 | (code & 0x7f) << 20) * __uint_as_float((127 + 120) << 23);
}

// What a code is, before it is scaled.
template <class F> INLINE float number_of(u32 code) {
  if (F::mode == AFFINE) return (float)code;
  if (F::mode == MXFP8) return e4m3_up(code);
  return __uint_as_float(e2m1_bits(code)) * __uint_as_float((127 + 126) << 23);
}

template <class F, class D> INLINE typename D::A scale_up(typename Scales<D, F::mode>::T scale) {
  if constexpr (F::mode == AFFINE) return D::up(scale);
  else if constexpr (F::mode == NVFP4) return e4m3_up(scale);
  else return __uint_as_float(scale ? (u32)scale << 23 : 0x400000);  // 2^-127 is subnormal
}

// What NVFP4's scales are multiplied by.
template <class A> INLINE A global_up(const float *scale) { return scale ? (A)*scale / (A)2688 : (A)1; }

// Bits from `bit` on of a row, of words `step` apart: at least 25 of them, if there are so many up to `end`.
INLINE u32 bits_at(const u32 *row, i64 step, i64 bit, i64 end) {
  const i64 word = bit / 32;
  const u32 low = row[word * step], high = (word + 1) * 32 < end ? row[(word + 1) * step] : 0;
  return __funnelshift_r(low, high, (u32)bit % 32);
}
template <class F> INLINE u32 code_at(const u32 *row, i64 step, i64 column, i64 columns) {
  if (32 % F::bits == 0) return row[column * F::bits / 32 * step] >> column * F::bits % 32 & ((1u << F::bits) - 1);
  return bits_at(row, step, column * F::bits, columns * F::bits) & ((1u << F::bits) - 1);
}

// The codes of 8 numbers from `column` on, a multiple of 8, of a row that ends at `columns`.
template <class F> INLINE void codes_at(u32 (&codes)[8], const u32 *row, i64 step, i64 column, i64 columns) {
  const i64 word = column * F::bits / 32;
  const int shift = (int)(column * F::bits % 32);
  u64 all = row[word * step];
  if (8 * F::bits > 32 || (32 % F::bits != 0 && shift + 8 * F::bits > 32))
    if ((word + 1) * 32 < columns * F::bits) all |= (u64)row[(word + 1) * step] << 32;
  all >>= shift;
#pragma unroll
  for (int e = 0; e < 8; e++) codes[e] = (u32)(all >> e * F::bits) & ((1u << F::bits) - 1);
}

// ---- pairs for tensor cores -----------------------------------------------------------------------------------

#ifdef __EMULATED_CUDA__
template <class D> INLINE u32 multiply_add_pair(u32 a, u32 b, u32 c) {
  return pack_halves<D>(fmaf(half_of<D>(a, 0), half_of<D>(b, 0), half_of<D>(c, 0)),
                        fmaf(half_of<D>(a, 1), half_of<D>(b, 1), half_of<D>(c, 1)));
}
#else
template <class D> INLINE u32 multiply_add_pair(u32 a, u32 b, u32 c) {
  u32 d;
  if (Same<D, F16>::value) asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  else asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
#endif

INLINE u32 bits_of(half_bits x) { return x.bits; }
INLINE u32 bits_of(brain_bits x) { return x.bits; }
INLINE u32 bits_of(u8 x) { return x; }
// Two equal halves.
INLINE u32 twice(u32 half) { return half << 16 | half; }
template <class D> INLINE u32 pair_of(float x) { return twice((u32)D::down(x).bits); }

// 128 (1024), as whose lowest bits codes are numbers. A condition that holds, but is unknown to the compiler, keeps it in a
// register, instead of one that is set again for each pair.
template <class D> INLINE u32 base_of(bool yes) { return yes ? Same<D, BF16>::value ? 0x43004300 : 0x64006400 : 0; }

// The numbers of two codes, which are the low bits of halves whose other bits are of no account.
template <class F, class D> INLINE u32 numbers_of(u32 codes, u32 base) {
  const bool brain = Same<D, BF16>::value;
  const u32 zero = 0x80008000;  // -0, which leaves products their sign
  if constexpr (F::is_e2m1) {
    // The bits of exponent and mantissa as the lowest ones of a half's: it is too small by a power of 2.
    const u32 small = brain ? (codes << 12 & 0x80008000) | (codes << 6 & 0x01c001c0)
                            : (codes << 12 & 0x80008000) | (codes << 9 & 0x0e000e00);
    return multiply_add_pair<D>(small, brain ? 0x7e807e80 : 0x74007400, zero);  // 2^126, 2^14
  } else if constexpr (F::mode == MXFP8) {
    const u32 small = brain ? (codes << 8 & 0x80008000) | (codes << 4 & 0x07f007f0)
                            : (codes << 8 & 0x80008000) | (codes << 7 & 0x3f803f80);
    const u32 nan = ((codes & 0x007f007f) + 0x00010001 & 0x00800080) * 0xff;
    return multiply_add_pair<D>(small, brain ? 0x7b807b80 : 0x5c005c00, zero) | nan;  // 2^120, 2^8
  } else if constexpr (F::bits == 8 && Same<D, BF16>::value) {
    // More bits than a mantissa has beside the one above: by way of floats, which are cut off without a loss.
    const float low = __uint_as_float(0x4b000000 | (codes & 0xff)) - 8388608.0f;
    const float high = __uint_as_float(0x4b000000 | (codes >> 16 & 0xff)) - 8388608.0f;
    return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
  } else {
    // The code as the lowest bits of the base, which is taken away again.
    const u32 mask = twice((1u << F::bits) - 1);
    return multiply_add_pair<D>((codes & mask) | base, brain ? 0x3f803f80 : 0x3c003c00, brain ? 0xc300c300 : 0xe400e400);
  }
}

// A scale and a bias for pairs, rounded to D. Scales of MX may be above what a float16 holds, unlike their products: they
// stay floats.
template <class F, class D> struct Scaling {
  static const bool wide = Same<D, F16>::value && (F::mode == MXFP4 || F::mode == MXFP8);
  u32 scale, bias;
  // Of the bits of both.
  __device__ __forceinline__ void set(u32 of_scale, u32 of_bias) {
    if constexpr (F::mode == AFFINE) {
      scale = twice(of_scale);
      bias = twice(of_bias);
    } else {
      const float up = scale_up<F, D>((u8)of_scale);
      scale = wide ? __float_as_uint(up) : pair_of<D>(up);
      bias = 0x80008000;
    }
  }
  __device__ __forceinline__ u32 apply(u32 codes, u32 base) const {
    const u32 numbers = numbers_of<F, D>(codes, base);
    if (!wide) return multiply_add_pair<D>(numbers, scale, bias);
    const float factor = __uint_as_float(scale);
    return pack_halves<D>(half_up((u16)numbers) * factor, half_up((u16)(numbers >> 16)) * factor);
  }
};
