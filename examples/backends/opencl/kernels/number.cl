/* One dtype: T as it is stored, A as it is computed with. Exactly one of IS_BOOL, IS_INT, IS_FLOAT, IS_COMPLEX. */

#if DTYPE == UM_DTYPE_BOOL
#define IS_BOOL 1
typedef uchar T;
typedef uchar A;
#elif DTYPE <= UM_DTYPE_INT64
#define IS_INT 1
#if DTYPE == UM_DTYPE_UINT8 || DTYPE == UM_DTYPE_INT8
#define BITS 8
typedef uchar U;
#elif DTYPE == UM_DTYPE_UINT16 || DTYPE == UM_DTYPE_INT16
#define BITS 16
typedef ushort U;
#elif DTYPE == UM_DTYPE_UINT32 || DTYPE == UM_DTYPE_INT32
#define BITS 32
typedef uint U;
#else
#define BITS 64
typedef ulong U;
#endif
#if DTYPE >= UM_DTYPE_INT8
#define IS_SIGNED 1
#if BITS == 8
typedef char T;
#elif BITS == 16
typedef short T;
#elif BITS == 32
typedef int T;
#else
typedef long T;
#endif
#else
typedef U T;
#endif
typedef T A;
#elif DTYPE == UM_DTYPE_FLOAT16 || DTYPE == UM_DTYPE_BFLOAT16
#define IS_FLOAT 1
#define IS_HALF 1
typedef ushort T;
typedef float A;
#elif DTYPE == UM_DTYPE_FLOAT32
#define IS_FLOAT 1
typedef float T;
typedef float A;
#elif DTYPE == UM_DTYPE_FLOAT64
#define IS_FLOAT 1
#define IS_DOUBLE 1
typedef double T;
typedef double A;
#else
#define IS_COMPLEX 1
typedef float2 T;
typedef float2 A;
#endif

#ifndef NUMBERS_ONCE
#define NUMBERS_ONCE
/* What double precision is used for where there is any. */
#ifdef FP64
typedef double wide;
typedef double2 wide2;
#else
typedef float wide;
typedef float2 wide2;
#endif

/* Complex numbers in the order of their real, then of their imaginary parts. */
static inline bool complex_less(float2 x, float2 y) { return x.x < y.x || (x.x == y.x && x.y < y.y); }
static inline bool complex_nan(float2 x) { return isnan(x.x) || isnan(x.y); }
static inline float2 complex_multiply(float2 x, float2 y) {
  return (float2)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

/* ---- the halves --------------------------------------------------------------------------------------------- */

static inline float bf16_up(ushort bits) { return as_float((uint)bits << 16); }

static inline ushort bf16_down(float x) {
  uint bits = as_uint(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return (ushort)(bits >> 16 | 0x40);
  return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float f16_up(ushort bits) { return vload_half(0, (const half *)&bits); }

static inline ushort f16_down(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (half *)&bits);
  return isnan(x) ? (ushort)(as_uint(x) >> 16 & 0x8000 | 0x7e00) : bits;
}
#endif

/* ---- between T and A ----------------------------------------------------------------------------------------- */

static inline A up(T x) {
#if DTYPE == UM_DTYPE_FLOAT16
  return f16_up(x);
#elif DTYPE == UM_DTYPE_BFLOAT16
  return bf16_up(x);
#else
  return x;
#endif
}

static inline T down(A x) {
#if DTYPE == UM_DTYPE_FLOAT16
  return f16_down(x);
#elif DTYPE == UM_DTYPE_BFLOAT16
  return bf16_down(x);
#else
  return x;
#endif
}

/* Not above, not below anything. */
#ifdef IS_INT
#ifdef IS_SIGNED
#define LOWEST ((A)((U)1 << (BITS - 1)))
#define HIGHEST ((A)(((U)1 << (BITS - 1)) - 1))
#else
#define LOWEST ((A)0)
#define HIGHEST ((A) ~(U)0)
#endif
#elif defined(IS_BOOL)
#define LOWEST 0
#define HIGHEST 1
#else
#define LOWEST (-INFINITY)
#define HIGHEST INFINITY
#endif
