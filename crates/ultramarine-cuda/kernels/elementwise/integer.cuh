// Functions of integers and of bools, which are bytes that are 0 or 1. Integers are computed with in the unsigned
// words of 32 or 64 bits, where everything wraps, and cut to their width.

template <bool WIDE> struct WordOf { typedef u32 T; };
template <> struct WordOf<true> { typedef u64 T; };
template <class D> struct Integer {
  typedef typename D::A A;
  typedef typename WordOf<D::bits == 64>::T W;
};

// Quotients of 64 bits mostly are of small numbers, whose division is several times faster.
INLINE u32 quotient(u32 x, u32 y) { return x / y; }
INLINE i32 quotient(i32 x, i32 y) { return x / y; }
INLINE u64 quotient(u64 x, u64 y) { return (x | y) >> 32 ? x / y : (u64)((u32)x / (u32)y); }
INLINE i64 quotient(i64 x, i64 y) {
  return ((u64)x | (u64)y) >> 32 ? x / y : (i64)((u32)x / (u32)y);
}

// Rounded down, as in Python. Neither by zero nor by -1 is anything divided.
template <class D>
INLINE typename D::A i_floor_divide(typename D::A x, typename D::A y) {
  typedef typename D::A A;
  typedef typename Integer<D>::W W;
  if (y == 0) return 0;
  if constexpr (D::is_signed) {
    if (y == -1) return (A)((W)0 - (W)x);
    A q = (A)quotient(x, y), r = (A)(x - q * y);
    return r != 0 && (r ^ y) < 0 ? (A)(q - 1) : q;
  } else {
    return (A)quotient((W)x, (W)y);
  }
}
template <class D>
INLINE typename D::A i_remainder(typename D::A x, typename D::A y) {
  typedef typename D::A A;
  typedef typename Integer<D>::W W;
  if (y == 0) return x;
  if constexpr (D::is_signed) {
    if (y == -1) return 0;
    A r = (A)(x - quotient(x, y) * y);
    return r != 0 && (r ^ y) < 0 ? (A)(r + y) : r;
  } else {
    return (A)((W)x - quotient((W)x, (W)y) * (W)y);
  }
}

// By squaring; any power below 0 is 0.
template <class D>
INLINE typename D::A i_power(typename D::A x, typename D::A y) {
  typedef typename Integer<D>::W W;
  if (D::is_signed && y < (typename D::A)0) return 0;
  W base = (W)x, product = 1;
  for (W e = (W)y; e != 0; e >>= 1) {
    if (e & 1) product *= base;
    base *= base;
  }
  return (typename D::A)product;
}

// A count below 0 is a large one.
template <class D>
INLINE typename D::A i_left_shift(typename D::A x, typename D::A y) {
  typedef typename Integer<D>::W W;
  return (W)y < (W)D::bits ? (typename D::A)((W)x << (W)y) : (typename D::A)0;
}
template <class D>
INLINE typename D::A i_right_shift(typename D::A x, typename D::A y) {
  typedef typename Integer<D>::W W;
  bool inside = (W)y < (W)D::bits;
  if (D::is_signed) return (typename D::A)(x >> (int)(inside ? (W)y : (W)(D::bits - 1)));
  return inside ? (typename D::A)(x >> (int)(W)y) : (typename D::A)0;
}
