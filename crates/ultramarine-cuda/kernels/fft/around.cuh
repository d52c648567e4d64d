// Before and after Fourier transforms by a library: the factor, and halves of spectra.

struct __align__(16) Four { float x, y, z, w; };

INLINE float times(float x, float factor) { return x * factor; }
INLINE complex64 times(complex64 x, float factor) {
  x.re *= factor;
  x.im *= factor;
  return x;
}
INLINE Four times(Four x, float factor) {
  x.x *= factor;
  x.y *= factor;
  x.z *= factor;
  x.w *= factor;
  return x;
}

// Multiplies a tensor, in place.
template <class T, int N, class I>
INLINE void fft_scale(T *out, float factor, const Walk<1, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[1];
    locate<1, N, I>(w, i, at);
    out[at[0]] = times(out[at[0]], factor);
  }
}

// Copies halves of spectra of transforms of n real numbers, times the factor. Along the copy's axis, of `half` elements that
// lie `step` apart, the imaginary parts of element 0 and, for an even n, of the last become 0.
template <int N, class I>
INLINE void fft_half(const complex64 *in, complex64 *out, float factor, i64 step, i64 half, i64 n, const Walk<2, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[2];
    locate<2, N, I>(w, i, at);
    complex64 x = times(in[at[0]], factor);
    I line = divide_whole(at[1], (I)step), k = line - divide_whole(line, (I)half) * (I)half;
    if (k == 0 || 2 * (i64)k == n) x.im = 0;
    out[at[1]] = x;
  }
}
