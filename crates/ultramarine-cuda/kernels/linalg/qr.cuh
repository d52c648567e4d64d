// QR of small matrices by reflections (Householder's), a block for each, in shared memory.

INLINE float real_of(float x) { return x; }
INLINE double real_of(double x) { return x; }
INLINE float real_of(complex64 x) { return x.re; }
INLINE float square(float x) { return x * x; }
INLINE double square(double x) { return x * x; }
INLINE float square(complex64 x) { return x.re * x.re + x.im * x.im; }
INLINE float largest_part(float x) { return fabsf(x); }
INLINE double largest_part(double x) { return fabs(x); }
INLINE float largest_part(complex64 x) { return fmaxf(fabsf(x.re), fabsf(x.im)); }
INLINE float times(float x, float y) { return x * y; }
INLINE double times(double x, double y) { return x * y; }
INLINE complex64 times(complex64 x, complex64 y) {
  return complex64{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
INLINE float plus(float x, float y) { return x + y; }
INLINE double plus(double x, double y) { return x + y; }
INLINE complex64 plus(complex64 x, complex64 y) { return complex64{x.re + y.re, x.im + y.im}; }
INLINE float minus(float x, float y) { return x - y; }
INLINE double minus(double x, double y) { return x - y; }
INLINE complex64 minus(complex64 x, complex64 y) { return complex64{x.re - y.re, x.im - y.im}; }
INLINE float scaled(float x, float y) { return x * y; }
INLINE double scaled(double x, double y) { return x * y; }
INLINE complex64 scaled(complex64 x, float y) { return complex64{x.re * y, x.im * y}; }
INLINE float inverse(float x) { return 1 / x; }
INLINE double inverse(double x) { return 1 / x; }
INLINE complex64 inverse(complex64 x) {
  const float norm = square(x);
  return complex64{x.re / norm, -x.im / norm};
}
template <class T, class R> struct FromReal { INLINE T of(R x) { return x; } };
template <> struct FromReal<complex64, float> { INLINE complex64 of(float x) { return complex64{x, 0}; } };

INLINE float warp_sum(float x) {
  for (int step = 16; step; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
INLINE double warp_sum(double x) {
  for (int step = 16; step; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
INLINE complex64 warp_sum(complex64 x) { return complex64{warp_sum(x.re), warp_sum(x.im)}; }

// Columns from `first` on of a (of `columns`) less tau times v (v^H a), from row j on. A warp does a column; v is 1 and what
// is below the diagonal in column j of `from`.
template <class T>
INLINE void reflect(T *a, int columns, int first, const T *from, int width, int m, int j, T tau) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int c = first + threadIdx.x / 32; c < columns; c += warps) {
    T sum = T();
    for (int i = j + lane; i < m; i += 32) {
      const T x = a[i * columns + c];
      sum = plus(sum, i == j ? x : times(conjugate(from[i * width + j]), x));
    }
    sum = times(tau, warp_sum(sum));
    for (int i = j + lane; i < m; i += 32) {
      const T step = i == j ? sum : times(sum, from[i * width + j]);
      a[i * columns + c] = minus(a[i * columns + c], step);
    }
  }
}

// a of (m, n), row by row, with some strides: q of (m, k) and r of (k, n). Matrices are divided by their largest element
// meanwhile, so that squares neither overflow nor vanish.
template <class T, class R, int N>
INLINE void qr_small(const T *in, T *q, T *r, i64 m64, i64 n64, i64 row, i64 col, const Walk<1, N> &w) {
  DYNAMIC_SHARED(T, shared);
  __shared__ R partial[32];
  __shared__ T tau_of[1];
  const int m = (int)m64, n = (int)n64, k = m < n ? m : n, lane = threadIdx.x % 32;
  T *a = shared, *made = shared + m * n, *taus = made + m * k;
  i64 at[1];
  locate<1, N, i64>(w, (i64)blockIdx.x, at);
  R most = 0;
  for (int i = threadIdx.x; i < m * n; i += blockDim.x) {
    const T x = in[at[0] + (i / n) * row + (i % n) * col];
    a[i] = x;
    const R part = largest_part(x);
    if (!(part <= most)) most = part;
  }
  for (int step = 16; step; step /= 2) {
    const R other = __shfl_xor_sync(0xffffffffu, most, step);
    if (!(other <= most)) most = other;
  }
  if (lane == 0) partial[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < (int)blockDim.x / 32; i++) {
    if (!(partial[i] <= most)) most = partial[i];
  }
  // Infinities and NaN stay, to come out as NaN.
  const R size = most > 0 && most <= (R)3e38 ? most : (R)1;
  for (int i = threadIdx.x; i < m * n; i += blockDim.x) a[i] = scaled(a[i], 1 / size);
  for (int i = threadIdx.x; i < m * k; i += blockDim.x) made[i] = FromReal<T, R>::of(i / k == i % k ? 1 : 0);
  __syncthreads();
  for (int j = 0; j < k; j++) {
    if (threadIdx.x < 32) {
      R below = 0;
      for (int i = j + 1 + lane; i < m; i += 32) below += square(a[i * n + j]);
      below = warp_sum(below);
      const T alpha = a[j * n + j];
      const R real = real_of(alpha), norm = square(alpha);
      T tau = T();
      // A column that is real and nothing below needs no reflection.
      if (!(below == 0 && norm == real * real)) {
        const R beta = real > 0 ? -sqrt(norm + below) : sqrt(norm + below);
        const T first = FromReal<T, R>::of(beta), factor = inverse(minus(alpha, first));
        tau = scaled(minus(first, alpha), 1 / beta);
        for (int i = j + 1 + lane; i < m; i += 32) a[i * n + j] = times(a[i * n + j], factor);
        __syncwarp();
        if (lane == 0) a[j * n + j] = first;
      }
      if (lane == 0) tau_of[0] = taus[j] = tau;
    }
    __syncthreads();
    reflect(a, n, j + 1, a, n, m, j, conjugate(tau_of[0]));
    __syncthreads();
  }
  for (int j = k - 1; j >= 0; j--) {
    reflect(made, k, j, a, n, m, j, taus[j]);
    __syncthreads();
  }
  for (int i = threadIdx.x; i < m * k; i += blockDim.x) q[(i64)blockIdx.x * m * k + i] = made[i];
  for (int i = threadIdx.x; i < k * n; i += blockDim.x) {
    r[(i64)blockIdx.x * k * n + i] = i % n < i / n ? T() : scaled(a[i], size);
  }
}
