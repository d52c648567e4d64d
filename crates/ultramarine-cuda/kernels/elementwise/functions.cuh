// The functions of the contract's unary and binary codes, by their names: `un_NAME<D>(x)` and `bi_NAME<D>(x, y)` of
// values as they are computed with. Values come out unrounded (`rounded<D>` makes them what a tensor holds), tests as
// 0 or 1, and abs, real and imag of complex64 as float.

template <class D> struct PartOf { typedef D Tag; };
template <> struct PartOf<C64> { typedef F32 Tag; };

#define UNARY(name, type) \
  template <class D>      \
  INLINE type un_##name(typename D::A x)
#define BINARY(name, type) \
  template <class D>       \
  INLINE type bi_##name(typename D::A x, typename D::A y)
#define VALUE typename D::A
#define PART typename PartOf<D>::Tag::A
#define IF_COMPLEX if constexpr (D::kind == COMPLEX)
#define IF_REAL if constexpr (D::kind == REAL)
#define IF_BOOL if constexpr (D::kind == BOOL)
#define WORD typename Integer<D>::W

// ---- unary: floats and complex ---------------------------------------------------------------------------------

#define FLOATING(name)                                           \
  UNARY(name, VALUE) {                                           \
    IF_COMPLEX { return z_down(z_##name(z_up(x))); }             \
    else { return r_##name(x); }                                 \
  }
#define REALS(name) \
  UNARY(name, VALUE) { return r_##name(x); }
// Integers are what they round to.
#define ROUNDING(name)                  \
  UNARY(name, VALUE) {                  \
    IF_REAL { return r_##name(x); }     \
    else { return x; }                  \
  }
FLOATING(sqrt)
FLOATING(rsqrt)
FLOATING(exp)
FLOATING(log)
FLOATING(log2)
FLOATING(log10)
FLOATING(log1p)
FLOATING(sin)
FLOATING(cos)
FLOATING(tan)
FLOATING(arcsin)
FLOATING(arccos)
FLOATING(arctan)
FLOATING(sinh)
FLOATING(cosh)
FLOATING(arcsinh)
FLOATING(arccosh)
FLOATING(arctanh)
REALS(expm1)
REALS(erf)
REALS(erfinv)
REALS(sigmoid)
ROUNDING(floor)
ROUNDING(ceil)
ROUNDING(trunc)
#undef FLOATING
#undef REALS
#undef ROUNDING

UNARY(tanh, VALUE) {
  IF_COMPLEX { return z_down(z_tanh(z_up(x))); }
  else if constexpr (Same<D, BF16>::value) { return brain_tanh(x); }
  else { return r_tanh(x); }
}
UNARY(reciprocal, VALUE) {
  IF_COMPLEX { return z_down(z_reciprocal(z_up(x))); }
  else { return 1 / x; }
}
UNARY(round, VALUE) {
  IF_COMPLEX { return c_of(rintf(x.re), rintf(x.im)); }
  else IF_REAL { return r_round(x); }
  else { return x; }
}

// ---- unary: all ------------------------------------------------------------------------------------------------

UNARY(abs, PART) {
  IF_COMPLEX { return c_abs(x); }
  else IF_REAL { return r_abs(x); }
  else if constexpr (D::is_signed) { return x < 0 ? (VALUE)((WORD)0 - (WORD)x) : x; }
  else { return x; }
}
UNARY(negative, VALUE) {
  IF_COMPLEX { return c_of(-x.re, -x.im); }
  else IF_REAL { return -x; }
  else { return (VALUE)((WORD)0 - (WORD)x); }
}
UNARY(sign, VALUE) {
  IF_COMPLEX { return z_down(z_sign(z_up(x))); }
  else IF_REAL { return r_sign(x); }
  else if constexpr (D::is_signed) { return (VALUE)((x > 0) - (x < 0)); }
  else { return (VALUE)(x != 0); }
}
UNARY(square, VALUE) {
  IF_COMPLEX { return c_multiply(x, x); }
  else IF_REAL { return x * x; }
  else { return (VALUE)((WORD)x * (WORD)x); }
}
UNARY(bitwise_invert, VALUE) {
  IF_BOOL { return x ^ 1; }
  else { return (VALUE)~x; }
}
UNARY(conjugate, VALUE) {
  IF_COMPLEX { return c_of(x.re, -x.im); }
  else { return x; }
}
UNARY(real, PART) {
  IF_COMPLEX { return x.re; }
  else { return x; }
}
UNARY(imag, PART) {
  IF_COMPLEX { return x.im; }
  else { return 0; }
}
UNARY(logical_not, u8) { return nonzero(x) ? 0 : 1; }
UNARY(isnan, u8) {
  IF_COMPLEX { return c_isnan(x); }
  else { return x != x; }
}
UNARY(isinf, u8) {
  IF_COMPLEX { return r_isinf(x.re) || r_isinf(x.im); }
  else IF_REAL { return r_isinf(x); }
  else { return 0; }
}
UNARY(isfinite, u8) {
  IF_COMPLEX { return r_isfinite(x.re) && r_isfinite(x.im); }
  else IF_REAL { return r_isfinite(x); }
  else { return 1; }
}

// ---- binary: values --------------------------------------------------------------------------------------------

// Bools compute as numbers that become true again where they are not zero.
BINARY(add, VALUE) {
  IF_COMPLEX { return c_add(x, y); }
  else IF_REAL { return x + y; }
  else IF_BOOL { return x | y; }
  else { return (VALUE)((WORD)x + (WORD)y); }
}
BINARY(subtract, VALUE) {
  IF_COMPLEX { return c_subtract(x, y); }
  else IF_REAL { return x - y; }
  else IF_BOOL { return x ^ y; }
  else { return (VALUE)((WORD)x - (WORD)y); }
}
BINARY(multiply, VALUE) {
  IF_COMPLEX { return c_multiply(x, y); }
  else IF_REAL { return x * y; }
  else { return (VALUE)((WORD)x * (WORD)y); }
}
BINARY(divide, VALUE) {
  IF_COMPLEX { return z_down(z_divide(z_up(x), z_up(y))); }
  else { return x / y; }
}
// The quotient of floats is rounded to the dtype before it is rounded down; that of complex numbers only divides.
BINARY(floor_divide, VALUE) {
  IF_COMPLEX { return bi_divide<D>(x, y); }
  else IF_REAL { return r_floor(rounded<D>(x / y)); }
  else IF_BOOL { return x & y; }
  else { return i_floor_divide<D>(x, y); }
}
BINARY(remainder, VALUE) {
  IF_REAL { return r_remainder(x, y); }
  else IF_BOOL { return x & (y ^ 1); }
  else { return i_remainder<D>(x, y); }
}
BINARY(power, VALUE) {
  IF_COMPLEX { return z_down(z_power(z_up(x), z_up(y))); }
  else IF_REAL { return r_power(x, y); }
  else IF_BOOL { return x | (y ^ 1); }
  else { return i_power<D>(x, y); }
}
BINARY(maximum, VALUE) {
  IF_COMPLEX { return c_maximum(x, y); }
  else IF_REAL { return r_maximum(x, y); }
  else { return x > y ? x : y; }
}
BINARY(minimum, VALUE) {
  IF_COMPLEX { return c_minimum(x, y); }
  else IF_REAL { return r_minimum(x, y); }
  else { return x < y ? x : y; }
}
BINARY(logaddexp, VALUE) {
  IF_COMPLEX { return c_logaddexp(x, y); }
  else { return r_logaddexp(x, y); }
}
BINARY(arctan2, VALUE) { return r_arctan2(x, y); }
BINARY(bitwise_and, VALUE) { return x & y; }
BINARY(bitwise_or, VALUE) { return x | y; }
BINARY(bitwise_xor, VALUE) { return x ^ y; }
BINARY(left_shift, VALUE) { return i_left_shift<D>(x, y); }
BINARY(right_shift, VALUE) { return i_right_shift<D>(x, y); }

// ---- binary: tests ---------------------------------------------------------------------------------------------

BINARY(equal, u8) {
  IF_COMPLEX { return c_equal(x, y); }
  else { return x == y; }
}
BINARY(not_equal, u8) {
  IF_COMPLEX { return !c_equal(x, y); }
  else { return x != y; }
}
BINARY(less, u8) {
  IF_COMPLEX { return c_less(x, y); }
  else { return x < y; }
}
BINARY(less_equal, u8) {
  IF_COMPLEX { return c_less(x, y) || c_equal(x, y); }
  else { return x <= y; }
}
BINARY(greater, u8) { return bi_less<D>(y, x); }
BINARY(greater_equal, u8) { return bi_less_equal<D>(y, x); }
BINARY(logical_and, u8) { return nonzero(x) && nonzero(y); }
BINARY(logical_or, u8) { return nonzero(x) || nonzero(y); }
BINARY(equal_nan, u8) {
  IF_COMPLEX { return c_equal(x, y) || (c_isnan(x) && c_isnan(y)); }
  else { return x == y || (x != x && y != y); }
}

#undef UNARY
#undef BINARY
#undef VALUE
#undef PART
#undef WORD
#undef IF_COMPLEX
#undef IF_REAL
#undef IF_BOOL
