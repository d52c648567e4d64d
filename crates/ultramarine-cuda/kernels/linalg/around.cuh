// Around decompositions by a library: results as they are stored, pivots, addresses of the matrices of a batch.

INLINE float conjugate(float x) { return x; }
INLINE double conjugate(double x) { return x; }
INLINE complex64 conjugate(complex64 x) {
  x.im = -x.im;
  return x;
}

INLINE void set_nan(float &x) { x = __uint_as_float(0x7fc00000u); }
INLINE void set_nan(double &x) { x = __longlong_as_double(0x7ff8000000000000ll); }
INLINE void set_nan(complex64 &x) { x.re = x.im = __uint_as_float(0x7fc00000u); }

enum Keep { WHOLE, LOWER, UPPER };

// Where the elements of matrices are that a library made.
struct Made {
  i64 rows, cols;
  i64 batch, row, col;
};

// Stores `n` elements of a batch of matrices, row by row: conjugates, or one triangle with zeros in the other. What a library
// failed at (`info` is not 0) is NaN. The memory may be the library's own if it has the same order.
template <class T, bool CONJUGATE, int KEEP>
INLINE void linalg_store(const T *in, T *out, const int *info, i64 n, const Made made) {
  for (i64 at = thread_number<i64>(); at < n; at += thread_count<i64>()) {
    i64 line = divide_whole(at, made.cols), col = at - line * made.cols;
    i64 b = divide_whole(line, made.rows), row = line - b * made.rows;
    T x = in[b * made.batch + row * made.row + col * made.col];
    if (CONJUGATE) x = conjugate(x);
    if (info[b] != 0) set_nan(x);
    if ((KEEP == LOWER && col > row) || (KEEP == UPPER && col < row)) x = T();
    out[at] = x;
  }
}

INLINE bool is_nan(float x) { return x != x; }
INLINE bool is_nan(double x) { return x != x; }
INLINE bool is_nan(complex64 x) { return x.re != x.re || x.im != x.im; }
INLINE bool is_zero(float x) { return x == 0; }
INLINE bool is_zero(double x) { return x == 0; }
INLINE bool is_zero(complex64 x) { return x.re == 0 && x.im == 0; }
INLINE bool is_finite(float x) { return fabsf(x) < __uint_as_float(0x7f800000u); }
INLINE bool is_finite(double x) { return fabs(x) < __longlong_as_double(0x7ff0000000000000ll); }
INLINE bool is_finite(complex64 x) { return is_finite(x.re) && is_finite(x.im); }

// Finds the first matrix of `n` elements in all, `each` in a matrix and `cols` in a row, that has a 0 on its diagonal, and
// where; or the first that has an element that is infinite or NaN, in the triangle that counts. `found` is the place of
// the diagonal's element among all, or the matrix, and was beyond all of them.
template <class T, bool ON_DIAGONAL, int KEEP>
INLINE void linalg_find(const T *in, u32 *found, i64 n, i64 each, i64 cols) {
  for (i64 at = thread_number<i64>(); at < n; at += thread_count<i64>()) {
    if (ON_DIAGONAL) {
      const i64 b = divide_whole(at, cols), i = at - b * cols;
      if (is_zero(in[b * each + i * (cols + 1)])) atomicMin(found, (u32)at);
    } else if (!is_finite(in[at])) {
      const i64 b = divide_whole(at, each), inner = at - b * each, row = divide_whole(inner, cols);
      const i64 col = inner - row * cols;
      if (!((KEEP == LOWER && col > row) || (KEEP == UPPER && col < row))) atomicMin(found, (u32)b);
    }
  }
}

// Notes the matrices, of `each` elements, that have a NaN: a library's pivots may lose it.
template <class T>
INLINE void linalg_note_nan(const T *in, int *info, i64 n, i64 each) {
  for (i64 at = thread_number<i64>(); at < n; at += thread_count<i64>()) {
    const T x = in[at];
    if (is_nan(x)) info[divide_whole(at, each)] = 1;
  }
}

// Pivots from 0 on instead of from 1, and the row of the matrix that each row of the factors is. A block does a matrix.
INLINE void linalg_rows(const int *in, u32 *pivots, u32 *rows, i64 k, i64 m, int has_room) {
  DYNAMIC_SHARED(u32, shared);
  const int *from = in + blockIdx.x * k;
  u32 *out = rows + blockIdx.x * m, *order = has_room ? shared : out;
  u32 *others = has_room ? shared + m : pivots + blockIdx.x * k;
  for (i64 i = threadIdx.x; i < m; i += blockDim.x) order[i] = (u32)i;
  for (i64 i = threadIdx.x; i < k; i += blockDim.x) others[i] = (u32)(from[i] - 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (i64 i = 0; i < k; i++) {
      u32 other = others[i], row = order[i];
      order[i] = order[other];
      order[other] = row;
    }
  }
  __syncthreads();
  if (has_room) {
    for (i64 i = threadIdx.x; i < k; i += blockDim.x) pivots[blockIdx.x * k + i] = others[i];
    for (i64 i = threadIdx.x; i < m; i += blockDim.x) out[i] = order[i];
  }
}

// The addresses of matrices that lie some bytes apart.
INLINE void linalg_addresses(u64 *out, u64 first, u64 step, i64 n) {
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>()) out[i] = first + (u64)i * step;
}
