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
