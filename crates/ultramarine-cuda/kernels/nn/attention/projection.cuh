// A stand-in for ATTENTION's result, for a library that makes delta of result and cotangent: the multiple of each row of the
// cotangent whose product with it is delta. No row of it is longer than the result's own, which it is the projection of.
// `failed` becomes 1 where there is none: of zeros whose delta is not 0, or with elements that the dtype has not.

struct Projection {
  i64 rows, heads, queries, size;
  i64 ct[4], delta[3];
};

// Lanes of a row, each with so many elements at a time, so many times at most.
enum { LANES = 8, ELEMENTS = 8, TIMES = 2 };

template <class T> struct alignas(16) Part { T x[ELEMENTS]; };

INLINE float across_row(float x, bool sums) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, x, lanes);
    x = sums ? x + other : fmaxf(x, other);
  }
  return x;
}

// The power of 2 that brings a number near to 1.
INLINE float scale_of(float x) {
  int exponent = __float_as_int(x) >> 23 & 0xff;
  return __int_as_float(min(max(254 - exponent, 1), 253) << 23);
}

template <class D>
INLINE void attention_project(const typename D::T *ct, const float *delta, typename D::T *out, u32 *failed,
                              const Projection &s) {
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, row = min(thread / LANES, s.rows - 1);
  const i64 query = row % s.queries, head = row / s.queries % s.heads, batch = row / s.queries / s.heads;
  const int first = (int)(thread % LANES) * ELEMENTS;
  ct += batch * s.ct[0] + head * s.ct[1] + query * s.ct[2];
  const float own = delta[batch * s.delta[0] + head * s.delta[1] + query * s.delta[2]];
  float x[TIMES][ELEMENTS], top = 0, squares = 0;
#pragma unroll
  for (int t = 0; t < TIMES; t++) {
    const int e = first + t * LANES * ELEMENTS;
    const bool there = e < s.size;
    const Part<typename D::T> part = *(const Part<typename D::T> *)(ct + (there ? e : 0));
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) {
      x[t][i] = there ? D::up(part.x[i]) : 0.0f;
      top = fmaxf(top, fabsf(x[t][i]));
    }
  }
  // Scaled by the largest element: squares of small ones are 0.
  top = across_row(top, false);
  const float scale = scale_of(top);
#pragma unroll
  for (int t = 0; t < TIMES; t++)
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) {
      x[t][i] *= scale;
      squares += x[t][i] * x[t][i];
    }
  squares = across_row(squares, true);
  const float factor = top == 0 ? 0.0f : own * scale / squares;
  bool fails = top == 0 && own != 0;
#pragma unroll
  for (int t = 0; t < TIMES; t++) {
    const int e = first + t * LANES * ELEMENTS;
    if (e >= s.size) continue;
    Part<typename D::T> made;
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) {
      made.x[i] = D::down(x[t][i] * factor);
      fails = fails || fabsf(D::up(made.x[i])) == __int_as_float(0x7f800000);
    }
    *(Part<typename D::T> *)(out + row * s.size + e) = made;
  }
  if (fails) *failed = 1;
}
