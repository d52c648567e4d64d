// A stand-in for ATTENTION's result, for a library that makes delta of result and cotangent: the multiple of each row of the
// cotangent whose product with it is delta. No row of it is longer than the result's own, which it is the projection of.
// `failed` becomes 1 where there is none: of zeros whose delta is not 0, or with elements that the dtype has not.

struct Projection {
  i64 rows, heads, queries, size;
  i64 ct[4], delta[3];
};

// Lanes of a row, each with so many elements at a time.
enum { PROJECTED = 8, TOGETHER_OF_ROW = 8 };

template <class T> struct alignas(16) Eight { T x[PROJECTED]; };

INLINE float across_row(float x, bool sums) {
#pragma unroll
  for (int lanes = TOGETHER_OF_ROW / 2; lanes > 0; lanes /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, x, lanes);
    x = sums ? x + other : fmaxf(x, other);
  }
  return x;
}

template <class D>
INLINE void attention_project(const typename D::T *ct, const float *delta, typename D::T *out, u32 *failed,
                              const Projection &s) {
  typedef Eight<typename D::T> Part;
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, row = min(thread / TOGETHER_OF_ROW, s.rows - 1);
  const i64 query = row % s.queries, head = row / s.queries % s.heads, batch = row / s.queries / s.heads;
  const int first = (int)(thread % TOGETHER_OF_ROW) * PROJECTED, step = TOGETHER_OF_ROW * PROJECTED;
  ct += batch * s.ct[0] + head * s.ct[1] + query * s.ct[2];
  const float own = delta[batch * s.delta[0] + head * s.delta[1] + query * s.delta[2]];
  // Scaled by the largest element: squares of small ones are 0.
  float top = 0, squares = 0;
  for (int e = first; e < s.size; e += step) {
    const Part part = *(const Part *)(ct + e);
#pragma unroll
    for (int i = 0; i < PROJECTED; i++) top = fmaxf(top, fabsf(D::up(part.x[i])));
  }
  top = across_row(top, false);
  const float unit = top == 0 ? 1.0f : top;
  for (int e = first; e < s.size; e += step) {
    const Part part = *(const Part *)(ct + e);
#pragma unroll
    for (int i = 0; i < PROJECTED; i++) {
      const float x = D::up(part.x[i]) / unit;
      squares += x * x;
    }
  }
  squares = across_row(squares, true);
  const float factor = top == 0 ? 0.0f : own / unit / squares;
  bool fails = top == 0 && own != 0;
  for (int e = first; e < s.size; e += step) {
    const Part part = *(const Part *)(ct + e);
    Part made;
#pragma unroll
    for (int i = 0; i < PROJECTED; i++) {
      made.x[i] = D::down(D::up(part.x[i]) / unit * factor);
      fails = fails || fabsf(D::up(made.x[i])) == __int_as_float(0x7f800000);
    }
    *(Part *)(out + row * s.size + e) = made;
  }
  if (fails) *failed = 1;
}
