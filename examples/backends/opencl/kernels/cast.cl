/* COPY between dtypes, from DTYPE; the op of the layout is the dtype of the output. ARANGE counts in DTYPE.
 *
 * To bool: not zero. Integers wrap. Through float32 where a half is on either side. Floats truncate to integers;
 * narrow ones take the low bits of the int32. What is out of range, and NaN, gives the smallest integer; unsigned
 * integers of 32 and 64 bits take x - 2^(w-1) that way where x is at least that. */

#ifdef IS_INT
#define REAL A
#define real_of(x) (x)
#define nonzero(x) ((x) != 0)
#elif defined(IS_BOOL)
#define REAL uchar
#define real_of(x) (x)
#define nonzero(x) (x)
#elif defined(IS_COMPLEX)
#define REAL float
#define real_of(z) ((z).x)
#define nonzero(z) ((z).x != 0 || (z).y != 0)
#else
#define REAL A
#define real_of(x) (x)
#define nonzero(x) ((x) != 0)
#endif

#if defined(IS_FLOAT) || defined(IS_COMPLEX)
static inline int to_i32(REAL x) {
#ifdef IS_DOUBLE
  return x < 2147483648.0 && x > -2147483649.0 ? (int)x : INT_MIN;
#else
  return x < 2147483648.0f && x >= -2147483648.0f ? (int)x : INT_MIN;
#endif
}
static inline long to_i64(REAL x) {
  return x < (REAL)9223372036854775808.0f && x >= (REAL)-9223372036854775808.0f ? (long)x : LONG_MIN;
}
static inline uint to_u32(REAL x) {
  bool high = x >= (REAL)2147483648.0f;
  uint low = (uint)to_i32(high ? x - (REAL)2147483648.0f : x);
  return high ? low ^ 0x80000000u : low;
}
static inline ulong to_u64(REAL x) {
  bool high = x >= (REAL)9223372036854775808.0f;
  ulong low = (ulong)to_i64(high ? x - (REAL)9223372036854775808.0f : x);
  return high ? low ^ 0x8000000000000000ul : low;
}
#define to_i8(x) ((char)to_i32(x))
#define to_i16(x) ((short)to_i32(x))
#define to_u8(x) ((uchar)to_i32(x))
#define to_u16(x) ((ushort)to_i32(x))
#else
#define to_i8(x) ((char)(x))
#define to_i16(x) ((short)(x))
#define to_i32(x) ((int)(x))
#define to_i64(x) ((long)(x))
#define to_u8(x) ((uchar)(x))
#define to_u16(x) ((ushort)(x))
#define to_u32(x) ((uint)(x))
#define to_u64(x) ((ulong)(x))
#endif

/* The value as each dtype stores it. */
static inline uchar stored_bool(A value) { return nonzero(value) ? 1 : 0; }
static inline uchar stored_uint8(A value) { return to_u8(real_of(value)); }
static inline ushort stored_uint16(A value) { return to_u16(real_of(value)); }
static inline uint stored_uint32(A value) { return to_u32(real_of(value)); }
static inline ulong stored_uint64(A value) { return to_u64(real_of(value)); }
static inline char stored_int8(A value) { return to_i8(real_of(value)); }
static inline short stored_int16(A value) { return to_i16(real_of(value)); }
static inline int stored_int32(A value) { return to_i32(real_of(value)); }
static inline long stored_int64(A value) { return to_i64(real_of(value)); }
static inline ushort stored_float16(A value) { return f16_down((float)real_of(value)); }
static inline float stored_float32(A value) { return (float)real_of(value); }
#ifdef FP64
static inline double stored_float64(A value) { return (double)real_of(value); }
#endif
static inline ushort stored_bfloat16(A value) { return bf16_down((float)real_of(value)); }
static inline float2 stored_complex64(A value) {
#ifdef IS_COMPLEX
  return value;
#else
  return (float2)((float)value, 0.0f);
#endif
}

#ifndef PROGRAM
#define STORE(DTYPE_OF, TYPE, NAME) \
  case DTYPE_OF: ((__global TYPE *)out)[at] = NAME(value); break;

static void store_as(uint dtype, __global void *out, long at, A value) {
  switch (dtype) {
    STORE(UM_DTYPE_BOOL, uchar, stored_bool)
    STORE(UM_DTYPE_UINT8, uchar, stored_uint8)
    STORE(UM_DTYPE_UINT16, ushort, stored_uint16)
    STORE(UM_DTYPE_UINT32, uint, stored_uint32)
    STORE(UM_DTYPE_UINT64, ulong, stored_uint64)
    STORE(UM_DTYPE_INT8, char, stored_int8)
    STORE(UM_DTYPE_INT16, short, stored_int16)
    STORE(UM_DTYPE_INT32, int, stored_int32)
    STORE(UM_DTYPE_INT64, long, stored_int64)
    STORE(UM_DTYPE_FLOAT16, ushort, stored_float16)
    STORE(UM_DTYPE_FLOAT32, float, stored_float32)
#ifdef FP64
    STORE(UM_DTYPE_FLOAT64, double, stored_float64)
#endif
    STORE(UM_DTYPE_BFLOAT16, ushort, stored_bfloat16)
    STORE(UM_DTYPE_COMPLEX64, float2, stored_complex64)
  }
}

KERNEL void cast(__global const T *a, __global void *out, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[2];
  locate(&l, i, 2, at);
  store_as(l.op, out, at[1], up(a[at[0]]));
}

#if DTYPE == UM_DTYPE_INT64 || defined(IS_DOUBLE) || DTYPE == UM_DTYPE_FLOAT32
KERNEL void arange(__global void *out, A start, A step, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[1];
  locate(&l, i, 1, at);
#ifdef IS_INT
  store_as(l.op, out, at[0], (A)((U)start + i * (U)step));
#else
  store_as(l.op, out, at[0], start + (A)i * step);
#endif
}
#endif
#endif
