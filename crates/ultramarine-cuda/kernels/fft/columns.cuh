// Transforms of a power of two along an axis whose neighbours lie far apart, of columns that lie side by side. A block has W
// columns of N elements; a thread has 8 elements of a column, which go through shared memory between the passes (Stockham's
// order, radix 8, and at last 4 or 2).

INLINE complex64 plus(complex64 a, complex64 b) { return complex64{a.re + b.re, a.im + b.im}; }
INLINE complex64 minus(complex64 a, complex64 b) { return complex64{a.re - b.re, a.im - b.im}; }
INLINE complex64 product(complex64 a, complex64 b) {
  return complex64{fmaf(a.re, b.re, -(a.im * b.im)), fmaf(a.re, b.im, a.im * b.re)};
}
// Times i or -i.
template <int SIGN>
INLINE complex64 quarter(complex64 a) { return SIGN > 0 ? complex64{-a.im, a.re} : complex64{a.im, -a.re}; }

template <int SIGN>
INLINE void transform_2(complex64 &a, complex64 &b) {
  complex64 sum = plus(a, b);
  b = minus(a, b);
  a = sum;
}
template <int SIGN>
INLINE void transform_4(complex64 &a, complex64 &b, complex64 &c, complex64 &d) {
  complex64 even = plus(a, c), odd = minus(a, c), sum = plus(b, d), turned = quarter<SIGN>(minus(b, d));
  a = plus(even, sum);
  b = plus(odd, turned);
  c = minus(even, sum);
  d = minus(odd, turned);
}

// The transform of R elements.
template <int R, int SIGN> struct Butterfly;
template <int SIGN> struct Butterfly<2, SIGN> {
  INLINE void of(complex64 *v) { transform_2<SIGN>(v[0], v[1]); }
};
template <int SIGN> struct Butterfly<4, SIGN> {
  INLINE void of(complex64 *v) { transform_4<SIGN>(v[0], v[1], v[2], v[3]); }
};
template <int SIGN> struct Butterfly<8, SIGN> {
  INLINE void of(complex64 *v) {
    const float half = 0.70710678118654752f;
#pragma unroll
    for (int i = 0; i < 4; i++) transform_2<SIGN>(v[i], v[i + 4]);
    v[5] = product(v[5], complex64{half, SIGN * half});
    v[6] = quarter<SIGN>(v[6]);
    v[7] = product(v[7], complex64{-half, SIGN * half});
    transform_4<SIGN>(v[0], v[1], v[2], v[3]);
    transform_4<SIGN>(v[4], v[5], v[6], v[7]);
    const complex64 x1 = v[4], x2 = v[1], x3 = v[5], x4 = v[2], x5 = v[6], x6 = v[3];
    v[1] = x1, v[2] = x2, v[3] = x3, v[4] = x4, v[5] = x5, v[6] = x6;
  }
};

// v[r] times the r-th power of w.
template <int R>
INLINE void twiddle(complex64 *v, complex64 w) {
  v[1] = product(v[1], w);
  if (R == 2) return;
  const complex64 w2 = product(w, w), w3 = product(w2, w);
  v[2] = product(v[2], w2);
  v[3] = product(v[3], w3);
  if (R == 4) return;
  const complex64 w4 = product(w2, w2);
  v[4 % R] = product(v[4 % R], w4);
  v[5 % R] = product(v[5 % R], product(w4, w));
  v[6 % R] = product(v[6 % R], product(w4, w2));
  v[7 % R] = product(v[7 % R], product(w4, w3));
}

// The passes from that on whose parts have been transforms of DONE elements.
template <int N, int W, int SIGN, int DONE>
struct Pass {
  static const int R = N / DONE >= 8 ? 8 : N / DONE, EACH = 8 / R, THREADS_ALONG = N / 8;
  static const bool FIRST = DONE == 1, LAST = DONE * R == N;

  // Rows are padded, so that the writes of neighbours meet other banks.
  INLINE int place(int row, int column) { return (row + row / 8) * W + column; }

  INLINE void run(const complex64 *in, complex64 *out, complex64 *tile, float factor, i64 step_in, i64 step_out,
                  int along, int column, bool inside) {
    complex64 v[8];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int j = along + e * THREADS_ALONG;
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int row = j + r * (N / R);
        complex64 x = complex64{0, 0};
        if (!FIRST) x = tile[place(row, column)];
        else if (inside) x = in[row * step_in];
        v[e * R + r] = x;
      }
    }
    if (!FIRST && !LAST) __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int j = along + e * THREADS_ALONG, k = j & (DONE - 1);
      if (!FIRST) {
        complex64 w;
        sincospif((float)(SIGN * 2 * k) / (float)(DONE * R), &w.im, &w.re);
        twiddle<R>(v + e * R, w);
      }
      Butterfly<R, SIGN>::of(v + e * R);
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int row = (j - k) * R + k + r * DONE;
        const complex64 x = v[e * R + r];
        if (!LAST) tile[place(row, column)] = x;
        else if (inside) out[row * step_out] = complex64{x.re * factor, x.im * factor};
      }
    }
    if (!LAST) {
      __syncthreads();
      Pass<N, W, SIGN, LAST ? DONE : DONE * R>::run(in, out, tile, factor, step_in, step_out, along, column, inside);
    }
  }
};

// `tiles` blocks do the columns of each part of the walk.
template <int N, int W, int SIGN, int RANK>
INLINE void fft_columns(const complex64 *in, complex64 *out, float factor, i64 step_in, i64 step_out, i64 columns, i64 tiles,
                        const Walk<2, RANK> &w) {
  DYNAMIC_SHARED(complex64, tile);
  i64 part = divide_whole((i64)blockIdx.x, tiles), at[2];
  locate<2, RANK, i64>(w, part, at);
  const int column = threadIdx.x % W, along = threadIdx.x / W;
  const i64 first = ((i64)blockIdx.x - part * tiles) * W + column;
  Pass<N, W, SIGN, 1>::run(in + at[0] + first, out + at[1] + first, tile, factor, step_in, step_out, along, column,
                           first < columns);
}
