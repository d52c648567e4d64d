// Ops of floating dtypes. A is float32 or float64; the halves compute in float32 and are rounded by their store.

fn unary_abs(x: A) -> A { return abs(x); }
fn unary_negative(x: A) -> A { return -x; }
fn unary_sign(x: A) -> A { return select(select(A(0), A(-1), x < A(0)), A(1), x > A(0)); }
fn unary_square(x: A) -> A { return x * x; }
fn unary_sqrt(x: A) -> A { return sqrt(x); }
fn unary_rsqrt(x: A) -> A { return A(1) / sqrt(x); }
fn unary_reciprocal(x: A) -> A { return A(1) / x; }
fn unary_floor(x: A) -> A { return floor(x); }
fn unary_ceil(x: A) -> A { return ceil(x); }
fn unary_round(x: A) -> A { return round(x); }
fn unary_trunc(x: A) -> A { return trunc(x); }
fn unary_conjugate(x: A) -> A { return x; }
fn unary_real(x: A) -> A { return x; }
fn unary_imag(x: A) -> A { return A(0); }
fn unary_logical_not(x: A) -> bool { return x == A(0); }
fn unary_isnan(x: A) -> bool { return is_nan(x); }
fn unary_isinf(x: A) -> bool { return is_inf(x); }
fn unary_isfinite(x: A) -> bool { return is_finite(x); }

fn binary_add(x: A, y: A) -> A { return x + y; }
fn binary_subtract(x: A, y: A) -> A { return x - y; }
fn binary_multiply(x: A, y: A) -> A { return x * y; }
fn binary_divide(x: A, y: A) -> A { return x / y; }

// The quotient is rounded to the dtype before it is rounded down.
fn binary_floor_divide(x: A, y: A) -> A { return floor(rounded(x / y)); }

// A zero has the divisor's sign, too.
fn binary_remainder(x: A, y: A) -> A {
  let rest = remainder_to_zero(x, y);
  let moved = select(rest, rest + y, (rest < A(0)) != (y < A(0)));
  return select(moved, with_sign(rest, y), rest == A(0));
}

fn binary_maximum(x: A, y: A) -> A { return select(y, x, x > y || is_nan(x)); }
fn binary_minimum(x: A, y: A) -> A { return select(y, x, x < y || is_nan(x)); }
fn binary_equal(x: A, y: A) -> bool { return x == y; }
fn binary_not_equal(x: A, y: A) -> bool { return !(x == y); }
fn binary_less(x: A, y: A) -> bool { return x < y; }
fn binary_less_equal(x: A, y: A) -> bool { return x <= y; }
fn binary_greater(x: A, y: A) -> bool { return x > y; }
fn binary_greater_equal(x: A, y: A) -> bool { return x >= y; }
fn binary_logical_and(x: A, y: A) -> bool { return !(x == A(0)) && !(y == A(0)); }
fn binary_logical_or(x: A, y: A) -> bool { return !(x == A(0)) || !(y == A(0)); }
fn binary_equal_nan(x: A, y: A) -> bool { return x == y || (is_nan(x) && is_nan(y)); }
