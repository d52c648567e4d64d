/* Ops of float32 and float64; the halves compute in float32 and round once. */
#ifdef IS_FLOAT

#ifdef IS_DOUBLE
/* Halley's method from Winitzki's approximation. */
static A inverse_erf(A x) {
  A a = fabs(x);
  if (!(a < 1)) return a == 1 ? copysign((A)INFINITY, x) : (A)NAN;
  if (a < 1.0e-9) return x * 0.886226925452758;
  A w = log((1 - a) * (1 + a));
  A h = 2 / (M_PI * 0.147) + 0.5 * w;
  A y = sqrt(sqrt(h * h - w / 0.147) - h);
  for (int i = 0; i < 3; i++) {
    A error = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
    A step = error / (M_2_SQRTPI * exp(-y * y));
    y -= step / (1 + y * step);
  }
  return copysign(y, x);
}
#else
/* x p(w) with w = -ln(1 - x^2), in sqrt(w) for w > 5: the polynomials of the built-in CPU kernels. */
static A inverse_erf(A x) {
  A w = -log((1.0f - x) * (1.0f + x));
  A p;
  if (w < 5.0f) {
    w -= 2.5f;
    p = -8.791057e-9f;
    p = fma(p, w, 2.3232644e-8f);
    p = fma(p, w, 4.6617066e-7f);
    p = fma(p, w, -3.4627049e-6f);
    p = fma(p, w, -4.9633477e-6f);
    p = fma(p, w, 2.1834445e-4f);
    p = fma(p, w, -0.0012527419f);
    p = fma(p, w, -0.004177387f);
    p = fma(p, w, 0.24664028f);
    p = fma(p, w, 1.5014094f);
  } else {
    w = sqrt(w) - 3.0f;
    p = -1.6542853e-4f;
    p = fma(p, w, 8.610835e-5f);
    p = fma(p, w, 0.0013002249f);
    p = fma(p, w, -0.0036601378f);
    p = fma(p, w, 0.0057617994f);
    p = fma(p, w, -0.0076253046f);
    p = fma(p, w, 0.009435622f);
    p = fma(p, w, 1.0016742f);
    p = fma(p, w, 2.832977f);
  }
  return fabs(x) == 1.0f ? copysign((A)INFINITY, x) : x * p;
}
#endif

static A unary_value(uint op, A x) {
  switch (op) {
    case UM_UNARY_ABS: return fabs(x);
    case UM_UNARY_NEGATIVE: return -x;
    case UM_UNARY_SIGN: return x > 0 ? (A)1 : x < 0 ? (A)-1 : (A)0;
    case UM_UNARY_SQUARE: return x * x;
    case UM_UNARY_SQRT: return sqrt(x);
    case UM_UNARY_RSQRT: return 1 / sqrt(x);
    case UM_UNARY_RECIPROCAL: return 1 / x;
    case UM_UNARY_EXP: return exp(x);
    case UM_UNARY_EXPM1: return expm1(x);
    case UM_UNARY_LOG: return log(x);
    case UM_UNARY_LOG2: return log2(x);
    case UM_UNARY_LOG10: return log10(x);
    case UM_UNARY_LOG1P: return log1p(x);
    case UM_UNARY_SIN: return sin(x);
    case UM_UNARY_COS: return cos(x);
    case UM_UNARY_TAN: return tan(x);
    case UM_UNARY_ARCSIN: return asin(x);
    case UM_UNARY_ARCCOS: return acos(x);
    case UM_UNARY_ARCTAN: return atan(x);
    case UM_UNARY_SINH: return sinh(x);
    case UM_UNARY_COSH: return cosh(x);
    case UM_UNARY_TANH: return tanh(x);
    case UM_UNARY_ARCSINH: return asinh(x);
    case UM_UNARY_ARCCOSH: return acosh(x);
    case UM_UNARY_ARCTANH: return atanh(x);
    case UM_UNARY_ERF: return erf(x);
    case UM_UNARY_ERFINV: return inverse_erf(x);
    case UM_UNARY_SIGMOID: {
      A e = exp(-fabs(x));
      return (x < 0 ? e : (A)1) / (1 + e);
    }
    case UM_UNARY_FLOOR: return floor(x);
    case UM_UNARY_CEIL: return ceil(x);
    case UM_UNARY_ROUND: return rint(x);
    case UM_UNARY_TRUNC: return trunc(x);
    case UM_UNARY_IMAG: return 0;
    default: return x;
  }
}

static uchar unary_test(uint op, A x) {
  switch (op) {
    case UM_UNARY_LOGICAL_NOT: return x == 0;
    case UM_UNARY_ISNAN: return isnan(x) != 0;
    case UM_UNARY_ISINF: return isinf(x) != 0;
    default: return isfinite(x) != 0;
  }
}

static A binary_value(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_ADD: return x + y;
    case UM_BINARY_SUBTRACT: return x - y;
    case UM_BINARY_MULTIPLY: return x * y;
    case UM_BINARY_DIVIDE: return x / y;
    /* The quotient is rounded to the dtype before it is rounded down. */
    case UM_BINARY_FLOOR_DIVIDE: return floor(up(down(x / y)));
    case UM_BINARY_REMAINDER: {
      A r = fmod(x, y);
      if (r == 0) return copysign(r, y);
      return (r < 0) != (y < 0) ? r + y : r;
    }
    case UM_BINARY_POWER: return pow(x, y);
    case UM_BINARY_MAXIMUM: return x > y || isnan(x) ? x : y;
    case UM_BINARY_MINIMUM: return x < y || isnan(x) ? x : y;
    case UM_BINARY_LOGADDEXP: {
      A high = x > y ? x : y, low = x > y ? y : x;
      if (isnan(x) || isnan(y)) return NAN;
      if (low == -INFINITY || low == high && isinf(high)) return high;
      return high + log1p(exp(low - high));
    }
    default: return atan2(x, y);
  }
}

static uchar binary_test(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_EQUAL: return x == y;
    case UM_BINARY_NOT_EQUAL: return x != y;
    case UM_BINARY_LESS: return x < y;
    case UM_BINARY_LESS_EQUAL: return x <= y;
    case UM_BINARY_GREATER: return x > y;
    case UM_BINARY_GREATER_EQUAL: return x >= y;
    case UM_BINARY_LOGICAL_AND: return x != 0 && y != 0;
    case UM_BINARY_LOGICAL_OR: return x != 0 || y != 0;
    default: return x == y || (isnan(x) && isnan(y));
  }
}

#endif
