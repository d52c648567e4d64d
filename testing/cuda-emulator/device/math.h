// The functions of CUDA's math library: libm's where they are the same, others made of them.
// Results are libm's: closer to the truth than CUDA's fast functions, and not the same in the last bits.
#pragma once

#define UM_EMULATED_1(name)                                                                                            \
  double name(double);                                                                                                 \
  float name##f(float);
#define UM_EMULATED_2(name)                                                                                            \
  double name(double, double);                                                                                         \
  float name##f(float, float);
#define UM_EMULATED_EACH_1(X)                                                                                          \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(exp) X(exp2)       \
  X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(cbrt) X(erf) X(erfc) X(tgamma) X(lgamma) X(ceil) X(floor)        \
  X(trunc) X(round) X(rint) X(nearbyint) X(fabs) X(logb) X(j0) X(j1) X(y0) X(y1)
#define UM_EMULATED_EACH_2(X)                                                                                          \
  X(pow) X(atan2) X(hypot) X(fmod) X(remainder) X(fmin) X(fmax) X(fdim) X(copysign) X(nextafter)

extern "C" {
UM_EMULATED_EACH_1(UM_EMULATED_1)
UM_EMULATED_EACH_2(UM_EMULATED_2)
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double scalbn(double, int);
float scalbnf(float, int);
double scalbln(double, long);
float scalblnf(float, long);
double frexp(double, int *);
float frexpf(float, int *);
double modf(double, double *);
float modff(float, float *);
double remquo(double, double, int *);
float remquof(float, float, int *);
double nan(const char *);
float nanf(const char *);
void sincos(double, double *, double *);
void sincosf(float, float *, float *);
int ilogb(double);
int ilogbf(float);
long lrint(double);
long lrintf(float);
long long llrint(double);
long long llrintf(float);
long lround(double);
long lroundf(float);
long long llround(double);
long long llroundf(float);
double exp10(double);
float exp10f(float);
double jn(int, double);
float jnf(int, float);
double yn(int, double);
float ynf(int, float);
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}

#define UM_EMULATED_OVERLOAD_1(name)                                                                                   \
  inline float name(float x) { return name##f(x); }
#define UM_EMULATED_OVERLOAD_2(name)                                                                                   \
  inline float name(float x, float y) { return name##f(x, y); }
UM_EMULATED_EACH_1(UM_EMULATED_OVERLOAD_1)
UM_EMULATED_EACH_2(UM_EMULATED_OVERLOAD_2)

// Integers go to the functions of doubles, as the overloads of <cmath> do.
template <typename T> struct um_emulated_integer {};
#define UM_EMULATED_INTEGER(T)                                                                                         \
  template <> struct um_emulated_integer<T> {                                                                          \
    typedef double type;                                                                                               \
  };
UM_EMULATED_INTEGER(int)
UM_EMULATED_INTEGER(unsigned)
UM_EMULATED_INTEGER(long)
UM_EMULATED_INTEGER(unsigned long)
UM_EMULATED_INTEGER(long long)
UM_EMULATED_INTEGER(unsigned long long)
#define UM_EMULATED_OF_INTEGER(f)                                                                                      \
  template <typename T> inline typename um_emulated_integer<T>::type f(T x) { return f((double)x); }
UM_EMULATED_EACH_1(UM_EMULATED_OF_INTEGER)

// Two arguments of different types are computed as doubles.
inline double pow(float x, double y) { return pow((double)x, y); }
inline double pow(double x, float y) { return pow(x, (double)y); }
inline float pow(float x, int y) { return powf(x, (float)y); }
inline double pow(double x, int y) { return pow(x, (double)y); }
inline double pow(int x, int y) { return pow((double)x, (double)y); }
inline double fmod(float x, double y) { return fmod((double)x, y); }
inline double fmod(double x, float y) { return fmod(x, (double)y); }
inline double fmax(float x, double y) { return fmax((double)x, y); }
inline double fmax(double x, float y) { return fmax(x, (double)y); }
inline double fmin(float x, double y) { return fmin((double)x, y); }
inline double fmin(double x, float y) { return fmin(x, (double)y); }

inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float ldexp(float x, int n) { return ldexpf(x, n); }
inline float scalbn(float x, int n) { return scalbnf(x, n); }
inline float frexp(float x, int *n) { return frexpf(x, n); }
inline float modf(float x, float *whole) { return modff(x, whole); }
inline float remquo(float x, float y, int *n) { return remquof(x, y, n); }
inline void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
inline int ilogb(float x) { return ilogbf(x); }
inline long lrint(float x) { return lrintf(x); }
inline long long llrint(float x) { return llrintf(x); }
inline long lround(float x) { return lroundf(x); }
inline long long llround(float x) { return llroundf(x); }
inline float exp10(float x) { return exp10f(x); }

inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }

inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
inline float rcbrt(float x) { return rcbrtf(x); }
inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline float rhypotf(float x, float y) { return (float)(1.0 / hypot((double)x, (double)y)); }
inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
inline float norm3df(float x, float y, float z) { return (float)hypot(hypot((double)x, (double)y), (double)z); }
inline float fdividef(float x, float y) { return x / y; }

// The sine and cosine of pi x: x is first brought to [-1/2, 1/2], which is exact.
constexpr double um_emulated_pi = 3.14159265358979323846;
inline double sinpi(double x) {
  if (!isfinite(x)) return x - x;
  if (x == trunc(x)) return copysign(0.0, x);
  double r = remainder(x, 2.0);
  if (r > 0.5) r = 1 - r;
  if (r < -0.5) r = -1 - r;
  return sin(um_emulated_pi * r);
}
inline double cospi(double x) {
  if (!isfinite(x)) return x - x;
  double r = fabs(remainder(x, 2.0));
  return r <= 0.25 ? cos(um_emulated_pi * r) : sin(um_emulated_pi * (0.5 - r));
}
inline float sinpif(float x) { return (float)sinpi((double)x); }
inline float cospif(float x) { return (float)cospi((double)x); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }

// The inverse of erfc on (0, 2): an asymptotic start, then Newton's steps on the logarithm, which converge for all y.
inline double erfcinv(double y) {
  if (!(y >= 0 && y <= 2)) return nan("");
  if (y == 0) return __builtin_inf();
  if (y == 2) return -__builtin_inf();
  if (y > 1) return -erfcinv(2 - y);
  double x = 0;
  if (y < 0.1) {
    double l = -2 * log(y);
    x = sqrt(0.5 * (l - log(l * um_emulated_pi / 2 + 1)));
  }
  for (int i = 0; i < 60; i++) {
    double e = erfc(x), slope = 1.1283791670955126 * exp(-x * x);
    if (!(e > 0) || slope == 0) break;
    double step = y < 0.5 ? log(e / y) * e / slope : (e - y) / slope;
    x += step;
    if (fabs(step) <= 1e-16 * fabs(x)) break;
  }
  return x;
}
inline double erfinv(double y) {
  if (fabs(y) > 0.5) return copysign(erfcinv(1 - fabs(y)), y);
  double x = y * 0.88622692545275801;
  for (int i = 0; i < 30; i++) {
    double step = (y - erf(x)) / (1.1283791670955126 * exp(-x * x));
    x += step;
    if (!(fabs(step) > 1e-17 * fabs(x))) break;
  }
  return x;
}
inline float erfinvf(float y) { return (float)erfinv((double)y); }
inline float erfcinvf(float y) { return (float)erfcinv((double)y); }
inline float erfinv(float y) { return erfinvf(y); }
inline float erfcinv(float y) { return erfcinvf(y); }
inline double erfcx(double x) { return x < 25 ? exp(x * x) * erfc(x) : 0.56418958354775629 / x * (1 - 0.5 / (x * x)); }
inline float erfcxf(float x) { return (float)erfcx((double)x); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
inline float normcdff(float x) { return (float)normcdf((double)x); }
inline double normcdfinv(double p) { return -1.4142135623730951 * erfcinv(2 * p); }
inline float normcdfinvf(float p) { return (float)normcdfinv((double)p); }
inline float normcdf(float x) { return normcdff(x); }
inline float normcdfinv(float p) { return normcdfinvf(p); }

// The modified Bessel functions of the first kind, by their series (large arguments: asymptotic).
inline double um_emulated_bessel_i(int order, double x) {
  double a = fabs(x), sum, term;
  if (a < 30) {
    term = sum = order ? a / 2 : 1;
    for (int k = 1; k < 200 && term > sum * 1e-18; k++) sum += term *= a * a / (4.0 * k * (k + order));
  } else {
    term = sum = 1;
    for (int k = 1; k < 20; k++) sum += term *= -(4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k * a);
    sum *= exp(a) / sqrt(2 * um_emulated_pi * a);
  }
  return order && x < 0 ? -sum : sum;
}
inline double cyl_bessel_i0(double x) { return um_emulated_bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return um_emulated_bessel_i(1, x); }
inline float cyl_bessel_i0f(float x) { return (float)um_emulated_bessel_i(0, (double)x); }
inline float cyl_bessel_i1f(float x) { return (float)um_emulated_bessel_i(1, (double)x); }

inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }

#define UM_EMULATED_MINMAX(A, B, T)                                                                                    \
  inline T min(A a, B b) { return (T)a < (T)b ? (T)a : (T)b; }                                                         \
  inline T max(A a, B b) { return (T)a > (T)b ? (T)a : (T)b; }
UM_EMULATED_MINMAX(int, int, int)
UM_EMULATED_MINMAX(unsigned, unsigned, unsigned)
UM_EMULATED_MINMAX(int, unsigned, unsigned)
UM_EMULATED_MINMAX(unsigned, int, unsigned)
UM_EMULATED_MINMAX(long, long, long)
UM_EMULATED_MINMAX(unsigned long, unsigned long, unsigned long)
UM_EMULATED_MINMAX(long, unsigned long, unsigned long)
UM_EMULATED_MINMAX(unsigned long, long, unsigned long)
UM_EMULATED_MINMAX(long long, long long, long long)
UM_EMULATED_MINMAX(unsigned long long, unsigned long long, unsigned long long)
UM_EMULATED_MINMAX(long long, unsigned long long, unsigned long long)
UM_EMULATED_MINMAX(unsigned long long, long long, unsigned long long)
#undef UM_EMULATED_MINMAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin((double)a, b); }
inline double max(float a, double b) { return fmax((double)a, b); }
inline double min(double a, float b) { return fmin(a, (double)b); }
inline double max(double a, float b) { return fmax(a, (double)b); }
inline int umin(unsigned a, unsigned b) { return min(a, b); }
inline int umax(unsigned a, unsigned b) { return max(a, b); }

// Arithmetic with a stated rounding: to nearest is what the processor does; the others are left out but for conversions.
#define UM_EMULATED_ROUNDED(T, prefix, fma_name, fma)                                                                  \
  inline T __##prefix##add_rn(T a, T b) { return a + b; }                                                              \
  inline T __##prefix##sub_rn(T a, T b) { return a - b; }                                                              \
  inline T __##prefix##mul_rn(T a, T b) { return a * b; }                                                              \
  inline T __##prefix##div_rn(T a, T b) { return a / b; }                                                              \
  inline T __##prefix##sqrt_rn(T a) { return sqrt(a); }                                                                \
  inline T __##prefix##rcp_rn(T a) { return (T)1 / a; }                                                                \
  inline T fma_name(T a, T b, T c) { return fma(a, b, c); }
UM_EMULATED_ROUNDED(float, f, __fmaf_rn, fmaf)
UM_EMULATED_ROUNDED(double, d, __fma_rn, fma)
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __saturatef(float x) { return isnan(x) ? 0 : fminf(fmaxf(x, 0), 1); }
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_inf()
#define HUGE_VALF __builtin_inff()
