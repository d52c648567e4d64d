// Functions of complex64. All but the simplest are evaluated in double, in which nothing overflows that float holds,
// and rounded once. Branch cuts and signs of zeros are C99's (annex G); the inverse functions follow W. Kahan,
// "Branch cuts for complex elementary functions" (1987).

struct __align__(16) wide64 { double re, im; };

INLINE complex64 c_of(float re, float im) { complex64 z; z.re = re; z.im = im; return z; }
INLINE wide64 z_of(double re, double im) { wide64 z; z.re = re; z.im = im; return z; }
INLINE wide64 z_up(complex64 z) { return z_of(z.re, z.im); }
INLINE complex64 z_down(wide64 z) { return c_of((float)z.re, (float)z.im); }

INLINE bool c_isnan(complex64 z) { return z.re != z.re || z.im != z.im; }
// In the order of the real, then of the imaginary parts.
INLINE bool c_less(complex64 x, complex64 y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }
INLINE bool c_equal(complex64 x, complex64 y) { return x.re == y.re && x.im == y.im; }
INLINE complex64 c_add(complex64 x, complex64 y) { return c_of(x.re + y.re, x.im + y.im); }
INLINE complex64 c_subtract(complex64 x, complex64 y) { return c_of(x.re - y.re, x.im - y.im); }
INLINE complex64 c_multiply(complex64 x, complex64 y) {
  return c_of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
INLINE complex64 c_maximum(complex64 x, complex64 y) { return c_less(y, x) || c_isnan(x) ? x : y; }
INLINE complex64 c_minimum(complex64 x, complex64 y) { return c_less(x, y) || c_isnan(x) ? x : y; }
INLINE float c_abs(complex64 z) {
  float infinity = infinite(0.0f);
  return fabsf(z.re) == infinity || fabsf(z.im) == infinity ? infinity : (float)hypot((double)z.re, (double)z.im);
}

#define Z_INFINITE infinite(0.0)
#define Z_NAN not_a_number(0.0)
#define Z_QUARTER_TURN 1.5707963267948966
INLINE bool z_isnan(wide64 z) { return r_isnan(z.re) || r_isnan(z.im); }
INLINE bool z_isinf(wide64 z) { return r_isinf(z.re) || r_isinf(z.im); }
INLINE bool z_isfinite(wide64 z) { return r_isfinite(z.re) && r_isfinite(z.im); }
INLINE wide64 z_times_i(wide64 z) { return z_of(-z.im, z.re); }
INLINE wide64 z_over_i(wide64 z) { return z_of(z.im, -z.re); }

// An infinite number as the direction in which it lies.
INLINE wide64 z_direction(wide64 z) {
  return z_of(copysign(r_isinf(z.re) ? 1.0 : 0.0, z.re), copysign(r_isinf(z.im) ? 1.0 : 0.0, z.im));
}
INLINE wide64 z_scaled(double a, double re, double im) { return z_of(a * re, a * im); }

INLINE wide64 z_divide(wide64 x, wide64 y) {
  double norm = y.re * y.re + y.im * y.im;
  double re = (x.re * y.re + x.im * y.im) / norm, im = (x.im * y.re - x.re * y.im) / norm;
  if (!(r_isnan(re) && r_isnan(im))) return z_of(re, im);
  if (norm == 0 && !(r_isnan(x.re) && r_isnan(x.im))) return z_scaled(copysign(Z_INFINITE, y.re), x.re, x.im);
  double factor = Z_INFINITE;
  if (z_isinf(x) && z_isfinite(y)) {
    x = z_direction(x);
  } else if (z_isinf(y) && z_isfinite(x)) {
    y = z_direction(y);
    factor = 0;
  } else {
    return z_of(re, im);
  }
  return z_scaled(factor, x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im);
}
INLINE wide64 z_reciprocal(wide64 z) { return z_divide(z_of(1, 0), z); }

INLINE wide64 z_sign(wide64 z) {
  if (z.re == 0 && z.im == 0) return z_of(0, 0);
  double size = hypot(z.re, z.im);
  return r_isinf(size) ? z_of(Z_NAN, Z_NAN) : z_of(z.re / size, z.im / size);
}

INLINE wide64 z_sqrt(wide64 z) {
  if (r_isinf(z.im)) return z_of(Z_INFINITE, z.im);
  if (r_isinf(z.re)) {
    double other = r_isnan(z.im) ? Z_NAN : 0.0;
    return z.re > 0 ? z_of(z.re, copysign(other, z.im)) : z_of(other, copysign(Z_INFINITE, z.im));
  }
  if (z_isnan(z)) return z_of(Z_NAN, Z_NAN);
  if (z.re == 0 && z.im == 0) return z_of(0, z.im);
  double t = sqrt(0.5 * (fabs(z.re) + hypot(z.re, z.im)));
  return z.re >= 0 ? z_of(t, z.im / (2 * t)) : z_of(fabs(z.im) / (2 * t), copysign(t, z.im));
}
INLINE wide64 z_rsqrt(wide64 z) { return z_reciprocal(z_sqrt(z)); }

// a b, where 0 times infinity is 0, and 0 times NaN the zero that was given: NaN has no sign.
INLINE double z_product(double a, double b) {
  if (a == 0 && r_isnan(b)) return a;
  if (b == 0 && r_isnan(a)) return b;
  return a == 0 || b == 0 ? copysign(0.0, a) * copysign(1.0, b) : a * b;
}
// An infinite real part beside an angle that has no sine.
INLINE bool z_is_infinite_turned(wide64 z) { return r_isinf(z.re) && !r_isfinite(z.im); }

INLINE wide64 z_exp(wide64 z) {
  double size = exp(z.re);
  if (z.im == 0) return z_of(size, z.im);
  if (z_is_infinite_turned(z)) return z.re > 0 ? z_of(size, Z_NAN) : z_of(0, z_product(0, z.im));
  double s, c;
  sincos(z.im, &s, &c);
  return z_of(size * c, size * s);
}

INLINE wide64 z_log(wide64 z) {
  if (z_isnan(z)) return z_of(z_isinf(z) ? Z_INFINITE : Z_NAN, Z_NAN);
  double size = hypot(z.re, z.im), re;
  if (size >= 0.5 && size < 2) {
    // Near the unit circle the logarithm is small: from what the number differs by from 1.
    double big = fmax(fabs(z.re), fabs(z.im)), small = fmin(fabs(z.re), fabs(z.im));
    re = 0.5 * log1p((big - 1) * (big + 1) + small * small);
  } else {
    re = log(size);
  }
  return z_of(re, atan2(z.im, z.re));
}
INLINE wide64 z_log2(wide64 z) { z = z_log(z); return z_scaled(1.4426950408889634, z.re, z.im); }
INLINE wide64 z_log10(wide64 z) { z = z_log(z); return z_scaled(0.4342944819032518, z.re, z.im); }
INLINE wide64 z_log1p(wide64 z) {
  if (z_isnan(z) || z_isinf(z)) return z_log(z);
  return z_of(0.5 * log1p(z.re * (2 + z.re) + z.im * z.im), atan2(z.im, 1 + z.re));
}

INLINE complex64 c_logaddexp(complex64 x, complex64 y) {
  bool first = c_less(y, x);
  wide64 high = z_up(first ? x : y), low = z_up(first ? y : x);
  if (z_isnan(high) || z_isnan(low)) return z_down(z_of(Z_NAN, Z_NAN));
  if (low.re == -Z_INFINITE || high.re == Z_INFINITE) return z_down(high);
  wide64 more = z_log1p(z_exp(z_of(low.re - high.re, low.im - high.im)));
  return z_down(z_of(high.re + more.re, high.im + more.im));
}

// e^(y ln x); x^0 is 1, and 0 to any other power is 0 if the power's real part is positive.
INLINE wide64 z_power(wide64 x, wide64 y) {
  if (y.re == 0 && y.im == 0) return z_of(1, 0);
  if (x.re == 0 && x.im == 0) return y.re > 0 ? z_of(0, 0) : z_of(Z_NAN, Z_NAN);
  wide64 l = z_log(x);
  return z_exp(z_of(y.re * l.re - y.im * l.im, y.re * l.im + y.im * l.re));
}

INLINE wide64 z_sinh(wide64 z) {
  if (z_is_infinite_turned(z)) return z_of(z.re, Z_NAN);
  double s, c;
  sincos(z.im, &s, &c);
  return z_of(z_product(sinh(z.re), c), z_product(cosh(z.re), s));
}
INLINE wide64 z_cosh(wide64 z) {
  if (z_is_infinite_turned(z)) return z_of(Z_INFINITE, Z_NAN);
  double s, c;
  sincos(z.im, &s, &c);
  return z_of(z_product(cosh(z.re), c), z_product(sinh(z.re), s));
}
INLINE wide64 z_tanh(wide64 z) {
  if (z_is_infinite_turned(z)) return z_of(copysign(1.0, z.re), z_product(0, z.im));
  if (r_isnan(z.re)) return z_of(z.re, z.im == 0 ? z.im : Z_NAN);
  if (!r_isfinite(z.im)) return z_of(z.re == 0 ? z.re : Z_NAN, Z_NAN);
  if (fabs(z.re) > 300) return z_of(copysign(1.0, z.re), copysign(0.0, sin(2 * z.im)));
  double t = tan(z.im), s = sinh(z.re), b = 1 + t * t, d = 1 + b * s * s;
  return z_of(b * sqrt(1 + s * s) * s / d, t / d);
}
INLINE wide64 z_sin(wide64 z) { return z_over_i(z_sinh(z_times_i(z))); }
INLINE wide64 z_cos(wide64 z) { return z_cosh(z_times_i(z)); }
INLINE wide64 z_tan(wide64 z) { return z_over_i(z_tanh(z_times_i(z))); }

// Infinite parts made huge, so that angles come out as the limits.
INLINE double z_bounded(double x) { return fmin(fmax(x, -1.0e150), 1.0e150); }
INLINE wide64 z_bounded(wide64 z) { return z_of(z_bounded(z.re), z_bounded(z.im)); }
// `y`, infinite if `z` is.
INLINE double z_grown(double y, wide64 z) { return z_isinf(z) ? copysign(Z_INFINITE, y) : y; }

INLINE wide64 z_arcsin(wide64 z) {
  if (z_isnan(z)) {
    double im = r_isinf(z.im) ? z.im : Z_NAN;
    return z_of(z.re == 0 ? z.re : Z_NAN, r_isinf(z.re) ? Z_INFINITE : im);
  }
  wide64 w = z_bounded(z), minus = z_sqrt(z_of(1 - w.re, -w.im)), plus = z_sqrt(z_of(1 + w.re, w.im));
  double re = atan2(w.re, minus.re * plus.re - minus.im * plus.im);
  double im = asinh(minus.re * plus.im - minus.im * plus.re);
  return z_of(re, copysign(z_grown(im, z), z.im));
}
INLINE wide64 z_arccos(wide64 z) {
  if (z_isnan(z)) {
    wide64 w = z_arcsin(z);
    return z_of(Z_QUARTER_TURN - w.re, -w.im);
  }
  wide64 w = z_bounded(z), minus = z_sqrt(z_of(1 - w.re, -w.im)), plus = z_sqrt(z_of(1 + w.re, w.im));
  double im = asinh(plus.re * minus.im - plus.im * minus.re);
  return z_of(2 * atan2(minus.re, plus.re), copysign(z_grown(im, z), -z.im));
}
INLINE wide64 z_arccosh(wide64 z) {
  if (z_isnan(z)) {
    wide64 w = z_arccos(z);
    return z_of(fabs(w.im), w.re);
  }
  wide64 w = z_bounded(z), minus = z_sqrt(z_of(w.re - 1, w.im)), plus = z_sqrt(z_of(w.re + 1, w.im));
  double re = w.im == 0 && w.re >= 1 ? acosh(w.re) : asinh(minus.re * plus.re + minus.im * plus.im);
  return z_of(z_grown(re, z), 2 * atan2(minus.im, plus.re));
}
INLINE wide64 z_arctanh(wide64 z) {
  if (z_isnan(z)) {
    double re = z.re == 0 || z_isinf(z) ? z_product(0, z.re) : Z_NAN;
    return z_of(re, r_isinf(z.im) ? copysign(Z_QUARTER_TURN, z.im) : Z_NAN);
  }
  wide64 w = z_bounded(z);
  double x = fabs(w.re), below = 1 - x, square = w.im * w.im;
  double re = 0.25 * log1p(4 * x / (below * below + square));
  double im = 0.5 * atan2(2 * w.im, below * (1 + x) - square);
  return z_of(copysign(re, z.re), im);
}
INLINE wide64 z_arcsinh(wide64 z) { return z_over_i(z_arcsin(z_times_i(z))); }
INLINE wide64 z_arctan(wide64 z) { return z_over_i(z_arctanh(z_times_i(z))); }
