// DEQUANTIZE: a thread has EACH elements of a row.

struct Rows { i64 rows, columns, words[2], scales[2], biases[2], out[2]; };

template <class F, class D, class I>
INLINE void dequantize(const u32 *words, const typename Scales<D, F::mode>::T *scales, const typename D::T *biases,
                       const float *global_scale, typename D::T *out, const Rows &s) {
  typedef typename D::T T;
  typedef typename D::A A;
  enum { EACH = 8 };
  struct __align__(EACH * sizeof(T) < 16 ? EACH * sizeof(T) : 16) Line { T v[EACH]; };
  const A global = F::mode == NVFP4 ? global_up<A>(global_scale) : (A)1;
  const bool lines = s.out[1] == 1 && (u64)out % 16 == 0 && s.out[0] % EACH == 0;
  const I across = (I)s.columns / EACH;
  for (I i = thread_number<I>(); i < (I)s.rows * across; i += thread_count<I>()) {
    const I r = divide_whole(i, across), column = (i - r * across) * EACH, g = divide_whole(column, (I)F::group);
    const u32 *row = words + r * s.words[0];
    const A scale = scale_up<F, D>(scales[r * s.scales[0] + g * s.scales[1]]) * global;
    const A bias = F::has_biases ? D::up(biases[r * s.biases[0] + g * s.biases[1]]) : (A)0;
    u32 codes[EACH];
    codes_at<F>(codes, row, s.words[1], column, s.columns);
    Line line;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      // Rounded before the bias is added, as where this is made of operations.
      const T scaled = D::down(number_of<F>(codes[e]) * scale);
      line.v[e] = F::has_biases ? D::down(D::up(scaled) + bias) : scaled;
    }
    T *to = out + r * s.out[0] + column * s.out[1];
    if (lines) {
      *(Line *)to = line;
    } else {
#pragma unroll
      for (int e = 0; e < EACH; e++) to[e * s.out[1]] = line.v[e];
    }
  }
}
