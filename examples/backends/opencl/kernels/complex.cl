/* Ops of complex64. All but the simplest are evaluated in float64 (where the device has it), in which nothing that
 * float32 holds overflows, and rounded once; branch cuts and signs of zeros are those of C99. The inverse functions
 * follow W. Kahan, "Branch cuts for complex elementary functions" (1987). */
#ifdef IS_COMPLEX

#ifdef FP64
#define HUGE_PART 1.0e150
#define QUARTER_TURN 1.5707963267948966
#else
#define HUGE_PART 1.0e18f
#define QUARTER_TURN 1.5707964f
#endif

static inline wide2 z_of(wide re, wide im) { return (wide2)(re, im); }
static inline wide2 z_nan(void) { return (wide2)(NAN, NAN); }
static inline bool z_is_nan(wide2 z) { return isnan(z.x) || isnan(z.y); }
static inline bool z_is_infinite(wide2 z) { return isinf(z.x) || isinf(z.y); }
static inline bool z_is_finite(wide2 z) { return isfinite(z.x) && isfinite(z.y); }
/* An infinite real part beside an angle that has no sine. */
static inline bool z_is_infinite_turned(wide2 z) { return isinf(z.x) && !isfinite(z.y); }
static inline bool z_is_zero(wide2 z) { return z.x == 0 && z.y == 0; }
static inline wide2 z_times_i(wide2 z) { return (wide2)(-z.y, z.x); }
static inline wide2 z_over_i(wide2 z) { return (wide2)(z.y, -z.x); }
static inline wide2 z_multiply(wide2 x, wide2 y) { return (wide2)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); }

/* Infinite parts made huge, so that angles come out as limits. */
static inline wide2 z_bounded(wide2 z) {
  return (wide2)(clamp(z.x, (wide)-HUGE_PART, (wide)HUGE_PART), clamp(z.y, (wide)-HUGE_PART, (wide)HUGE_PART));
}

/* a b, where 0 times infinity is 0, and 0 times NaN the zero that was given: NaN has no sign. */
static inline wide z_product(wide a, wide b) {
  if (a == 0 && isnan(b)) return a;
  if (b == 0 && isnan(a)) return b;
  return a == 0 || b == 0 ? copysign((wide)0, a) * copysign((wide)1, b) : a * b;
}

/* An infinite number as a direction. */
static inline wide2 z_direction(wide2 z) {
  return (wide2)(copysign(isinf(z.x) ? (wide)1 : (wide)0, z.x), copysign(isinf(z.y) ? (wide)1 : (wide)0, z.y));
}

/* By zero and of infinities as in C99's annex G. */
static wide2 z_divide(wide2 x, wide2 y) {
  wide scale = 1;
#ifndef FP64
  /* In float32 squares overflow: the divisor is brought near 1. */
  wide largest = fmax(fabs(y.x), fabs(y.y));
  if (isfinite(largest) && largest > 0) scale = ldexp(1.0f, -ilogb(largest));
#endif
  wide2 s = y * scale;
  wide norm = s.x * s.x + s.y * s.y;
  wide re = (x.x * s.x + x.y * s.y) / norm * scale;
  wide im = (x.y * s.x - x.x * s.y) / norm * scale;
  if (!(isnan(re) && isnan(im))) return z_of(re, im);
  wide infinity = INFINITY;
  if (norm == 0 && !(isnan(x.x) && isnan(x.y))) {
    infinity = copysign(infinity, y.x);
    return z_of(infinity * x.x, infinity * x.y);
  }
  if (z_is_infinite(x) && z_is_finite(y)) {
    x = z_direction(x);
    return z_of(infinity * (x.x * y.x + x.y * y.y), infinity * (x.y * y.x - x.x * y.y));
  }
  if (z_is_infinite(y) && z_is_finite(x)) {
    y = z_direction(y);
    return z_of(0 * (x.x * y.x + x.y * y.y), 0 * (x.y * y.x - x.x * y.y));
  }
  return z_of(re, im);
}

static wide2 z_sign(wide2 z) {
  if (z_is_zero(z)) return z_of(0, 0);
  wide size = hypot(z.x, z.y);
  return isinf(size) ? z_nan() : z_of(z.x / size, z.y / size);
}

static wide2 z_sqrt(wide2 z) {
  if (isinf(z.y)) return z_of(INFINITY, z.y);
  if (isinf(z.x)) {
    wide other = isnan(z.y) ? (wide)NAN : 0;
    return z.x > 0 ? z_of(z.x, copysign(other, z.y)) : z_of(other, copysign((wide)INFINITY, z.y));
  }
  if (z_is_nan(z)) return z_nan();
  if (z_is_zero(z)) return z_of(0, z.y);
  wide t = sqrt((wide)0.5 * (fabs(z.x) + hypot(z.x, z.y)));
  return z.x >= 0 ? z_of(t, z.y / (2 * t)) : z_of(fabs(z.y) / (2 * t), copysign(t, z.y));
}

static wide2 z_exp(wide2 z) {
  wide size = exp(z.x);
  if (z.y == 0) return z_of(size, z.y);
  if (z_is_infinite_turned(z)) return z.x > 0 ? z_of(size, NAN) : z_of(0, z_product(0, z.y));
  return z_of(size * cos(z.y), size * sin(z.y));
}

static wide2 z_log(wide2 z) {
  if (z_is_nan(z)) return z_is_infinite(z) ? z_of(INFINITY, NAN) : z_nan();
  wide size = hypot(z.x, z.y);
  wide re = log(size);
  /* Near the unit circle the logarithm is small: from what is left of 1. */
  if (size >= (wide)0.5 && size < 2) {
    wide big = fmax(fabs(z.x), fabs(z.y)), small = fmin(fabs(z.x), fabs(z.y));
    re = (wide)0.5 * log1p((big - 1) * (big + 1) + small * small);
  }
  return z_of(re, atan2(z.y, z.x));
}

static wide2 z_log1p(wide2 z) {
  if (z_is_nan(z) || z_is_infinite(z)) return z_log(z);
  return z_of((wide)0.5 * log1p(z.x * (2 + z.x) + z.y * z.y), atan2(z.y, 1 + z.x));
}

static wide2 z_logaddexp(wide2 high, wide2 low) {
  if (z_is_nan(high) || z_is_nan(low)) return z_nan();
  if (low.x == -INFINITY || high.x == INFINITY) return high;
  return high + z_log1p(z_exp(low - high));
}

/* e^(y ln x); x^0 is 1, and 0 to any other power is 0 if its real part is positive. */
static wide2 z_power(wide2 x, wide2 y) {
  if (z_is_zero(y)) return z_of(1, 0);
  if (z_is_zero(x)) return y.x > 0 ? z_of(0, 0) : z_nan();
  return z_exp(z_multiply(y, z_log(x)));
}

static wide2 z_sinh(wide2 z) {
  if (z_is_infinite_turned(z)) return z_of(z.x, NAN);
  return z_of(z_product(sinh(z.x), cos(z.y)), z_product(cosh(z.x), sin(z.y)));
}

static wide2 z_cosh(wide2 z) {
  if (z_is_infinite_turned(z)) return z_of(INFINITY, NAN);
  return z_of(z_product(cosh(z.x), cos(z.y)), z_product(sinh(z.x), sin(z.y)));
}

static wide2 z_tanh(wide2 z) {
  if (z_is_infinite_turned(z)) return z_of(copysign((wide)1, z.x), z_product(0, z.y));
  if (isnan(z.x)) return z_of(z.x, z.y == 0 ? z.y : (wide)NAN);
  if (!isfinite(z.y)) return z_of(z.x == 0 ? z.x : (wide)NAN, NAN);
#ifdef FP64
  if (fabs(z.x) > 300) {
#else
  if (fabs(z.x) > 20) {
#endif
    return z_of(copysign((wide)1, z.x), copysign((wide)0, sin(2 * z.y)));
  }
  wide t = tan(z.y), s = sinh(z.x);
  wide b = 1 + t * t;
  wide d = 1 + b * s * s;
  return z_of(b * sqrt(1 + s * s) * s / d, t / d);
}

/* `y`, infinite if `z` is. */
static inline wide z_grown(wide y, wide2 z) { return z_is_infinite(z) ? copysign((wide)INFINITY, y) : y; }

static wide2 z_arcsin(wide2 z) {
  if (z_is_nan(z)) {
    wide im = isinf(z.y) ? z.y : (wide)NAN;
    return z_of(z.x == 0 ? z.x : (wide)NAN, isinf(z.x) ? (wide)INFINITY : im);
  }
  wide2 w = z_bounded(z);
  wide2 minus = z_sqrt(z_of(1 - w.x, -w.y)), plus = z_sqrt(z_of(1 + w.x, w.y));
  wide re = atan2(w.x, minus.x * plus.x - minus.y * plus.y);
  wide im = asinh(minus.x * plus.y - minus.y * plus.x);
  return z_of(re, copysign(z_grown(im, z), z.y));
}

static wide2 z_arccos(wide2 z) {
  if (z_is_nan(z)) {
    wide2 w = z_arcsin(z);
    return z_of((wide)QUARTER_TURN - w.x, -w.y);
  }
  wide2 w = z_bounded(z);
  wide2 minus = z_sqrt(z_of(1 - w.x, -w.y)), plus = z_sqrt(z_of(1 + w.x, w.y));
  wide re = 2 * atan2(minus.x, plus.x);
  wide im = asinh(plus.x * minus.y - plus.y * minus.x);
  return z_of(re, copysign(z_grown(im, z), -z.y));
}

static wide2 z_arccosh(wide2 z) {
  if (z_is_nan(z)) {
    wide2 w = z_arccos(z);
    return z_of(fabs(w.y), w.x);
  }
  wide2 w = z_bounded(z);
  wide2 minus = z_sqrt(z_of(w.x - 1, w.y)), plus = z_sqrt(z_of(w.x + 1, w.y));
  wide re = w.y == 0 && w.x >= 1 ? acosh(w.x) : asinh(minus.x * plus.x + minus.y * plus.y);
  return z_of(z_grown(re, z), 2 * atan2(minus.y, plus.x));
}

static wide2 z_arctanh(wide2 z) {
  if (z_is_nan(z)) {
    wide re = z.x == 0 || z_is_infinite(z) ? z_product(0, z.x) : (wide)NAN;
    return z_of(re, isinf(z.y) ? copysign((wide)QUARTER_TURN, z.y) : (wide)NAN);
  }
  wide2 w = z_bounded(z);
  wide x = fabs(w.x);
  wide gap = (1 - x) * (1 - x) + w.y * w.y;
  wide re = (wide)0.25 * log1p(4 * x / gap);
  wide im = (wide)0.5 * atan2(2 * w.y, (1 - x) * (1 + x) - w.y * w.y);
  return z_of(copysign(re, z.x), im);
}

static wide2 z_function(uint op, wide2 z) {
  switch (op) {
    case UM_UNARY_SIGN: return z_sign(z);
    case UM_UNARY_SQRT: return z_sqrt(z);
    case UM_UNARY_RSQRT: return z_divide(z_of(1, 0), z_sqrt(z));
    case UM_UNARY_RECIPROCAL: return z_divide(z_of(1, 0), z);
    case UM_UNARY_EXP: return z_exp(z);
    case UM_UNARY_LOG: return z_log(z);
    case UM_UNARY_LOG2: return z_log(z) * (wide)(1.4426950408889634);
    case UM_UNARY_LOG10: return z_log(z) * (wide)(0.4342944819032518);
    case UM_UNARY_LOG1P: return z_log1p(z);
    case UM_UNARY_SIN: return z_over_i(z_sinh(z_times_i(z)));
    case UM_UNARY_COS: return z_cosh(z_times_i(z));
    case UM_UNARY_TAN: return z_over_i(z_tanh(z_times_i(z)));
    case UM_UNARY_ARCSIN: return z_arcsin(z);
    case UM_UNARY_ARCCOS: return z_arccos(z);
    case UM_UNARY_ARCTAN: return z_over_i(z_arctanh(z_times_i(z)));
    case UM_UNARY_SINH: return z_sinh(z);
    case UM_UNARY_COSH: return z_cosh(z);
    case UM_UNARY_TANH: return z_tanh(z);
    case UM_UNARY_ARCSINH: return z_over_i(z_arcsin(z_times_i(z)));
    case UM_UNARY_ARCCOSH: return z_arccosh(z);
    default: return z_arctanh(z);
  }
}

static inline wide2 z_wide(float2 z) { return (wide2)(z.x, z.y); }
static inline float2 z_narrow(wide2 z) { return (float2)((float)z.x, (float)z.y); }

static A unary_value(uint op, A z) {
  switch (op) {
    case UM_UNARY_NEGATIVE: return -z;
    case UM_UNARY_CONJUGATE: return (float2)(z.x, -z.y);
    case UM_UNARY_SQUARE: return complex_multiply(z, z);
    case UM_UNARY_ROUND: return rint(z);
    default: return z_narrow(z_function(op, z_wide(z)));
  }
}

static float unary_part_value(uint op, A z) {
  if (op == UM_UNARY_REAL) return z.x;
  if (op == UM_UNARY_IMAG) return z.y;
  return isinf(z.x) || isinf(z.y) ? INFINITY : (float)hypot((wide)z.x, (wide)z.y);
}

static uchar unary_test(uint op, A z) {
  switch (op) {
    case UM_UNARY_LOGICAL_NOT: return z.x == 0 && z.y == 0;
    case UM_UNARY_ISNAN: return complex_nan(z);
    case UM_UNARY_ISINF: return isinf(z.x) || isinf(z.y);
    default: return isfinite(z.x) && isfinite(z.y);
  }
}

static A binary_value(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_ADD: return x + y;
    case UM_BINARY_SUBTRACT: return x - y;
    case UM_BINARY_MULTIPLY: return complex_multiply(x, y);
    /* Nothing is rounded down here. */
    case UM_BINARY_DIVIDE:
    case UM_BINARY_FLOOR_DIVIDE: return z_narrow(z_divide(z_wide(x), z_wide(y)));
    case UM_BINARY_POWER: return z_narrow(z_power(z_wide(x), z_wide(y)));
    case UM_BINARY_MAXIMUM: return complex_less(y, x) || complex_nan(x) ? x : y;
    case UM_BINARY_MINIMUM: return complex_less(x, y) || complex_nan(x) ? x : y;
    default: {
      bool first = complex_less(y, x);
      return z_narrow(z_logaddexp(z_wide(first ? x : y), z_wide(first ? y : x)));
    }
  }
}

static uchar binary_test(uint op, A x, A y) {
  bool equal = x.x == y.x && x.y == y.y;
  bool true_x = x.x != 0 || x.y != 0, true_y = y.x != 0 || y.y != 0;
  switch (op) {
    case UM_BINARY_EQUAL: return equal;
    case UM_BINARY_NOT_EQUAL: return !equal;
    case UM_BINARY_LESS: return complex_less(x, y);
    case UM_BINARY_LESS_EQUAL: return complex_less(x, y) || equal;
    case UM_BINARY_GREATER: return complex_less(y, x);
    case UM_BINARY_GREATER_EQUAL: return complex_less(y, x) || equal;
    case UM_BINARY_LOGICAL_AND: return true_x && true_y;
    case UM_BINARY_LOGICAL_OR: return true_x || true_y;
    default: return equal || (complex_nan(x) && complex_nan(y));
  }
}

#endif
