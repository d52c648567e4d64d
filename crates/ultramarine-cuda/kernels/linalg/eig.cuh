// Eigenvalues and eigenvectors as cuSOLVER gives them, of one matrix, as complex64. What it failed at (`info` is not 0) is NaN.

template <class R> struct Two { R re, im; };

INLINE complex64 rounded_to_complex(double re, double im, bool failed) {
  complex64 x = {(float)re, (float)im};
  if (failed) x.re = x.im = __uint_as_float(0x7fc00000u);
  return x;
}

template <class R>
INLINE void linalg_eigenvalues(const Two<R> *in, complex64 *out, const int *info, i64 n) {
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>())
    out[i] = rounded_to_complex(in[i].re, in[i].im, *info != 0);
}

// Vectors are columns, of a real matrix as LAPACK packs them: two values that are conjugates have the real parts of the first
// one's vector in one column and the imaginary parts in the next.
template <class R, bool REAL>
INLINE void linalg_eigenvectors(const R *in, const Two<R> *values, complex64 *out, const int *info, i64 n) {
  for (i64 at = thread_number<i64>(); at < n * n; at += thread_count<i64>()) {
    const i64 row = divide_whole(at, n), column = at - row * n;
    R re, im;
    if (REAL) {
      const R sign = values[column].im;
      const i64 first = sign < 0 ? column - 1 : column;
      re = in[first * n + row];
      im = sign == 0 ? (R)0 : sign < 0 ? -in[(first + 1) * n + row] : in[(first + 1) * n + row];
    } else {
      re = in[2 * (column * n + row)];
      im = in[2 * (column * n + row) + 1];
    }
    out[at] = rounded_to_complex(re, im, *info != 0);
  }
}
