// ARG_REDUCE as a reduction (reduce.cuh): values become keys that are ordered as unsigned numbers, the best of them
// the largest, every NaN above all others; of equal keys the first index wins.

template <bool WIDE> struct ArgWord { typedef u32 T; };
template <> struct ArgWord<true> { typedef u64 T; };

INLINE u32 arg_ordered(float x) {
  u32 bits = __float_as_uint(x + 0.0f);  // -0 is 0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
INLINE u64 arg_ordered(double x) {
  u64 bits = (u64)__double_as_longlong(x + 0.0);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
INLINE u64 arg_ordered(complex64 z) { return (u64)arg_ordered(z.re) << 32 | arg_ordered(z.im); }
INLINE u32 arg_ordered(u8 x) { return x; }
INLINE u32 arg_ordered(u16 x) { return x; }
INLINE u32 arg_ordered(u32 x) { return x; }
INLINE u64 arg_ordered(u64 x) { return x; }
INLINE u32 arg_ordered(i8 x) { return (u32)(i32)x ^ 0x80000000u; }
INLINE u32 arg_ordered(i16 x) { return (u32)(i32)x ^ 0x80000000u; }
INLINE u32 arg_ordered(i32 x) { return (u32)x ^ 0x80000000u; }
INLINE u64 arg_ordered(i64 x) { return (u64)x ^ 0x8000000000000000ull; }

template <class D, bool LARGEST>
struct ArgExtreme {
  typedef typename ArgWord<(D::bits == 64)>::T Key;
  struct Acc {
    Key key;
    u32 index;
  };
  typedef U32 Out;
  template <class I> INLINE Acc lift(typename D::A x, I r) {
    Key key = arg_ordered(x);
    Acc y;
    y.key = fold_nan(x) ? ~(Key)0 : LARGEST ? key : ~key;
    y.index = (u32)r;
    return y;
  }
  INLINE Acc neutral() { Acc y; y.key = 0; y.index = 0xffffffffu; return y; }
  INLINE Acc join(Acc a, Acc b) { return b.key > a.key || (b.key == a.key && b.index < a.index) ? b : a; }
  INLINE u32 drop(Acc x) { return x.index; }
};
