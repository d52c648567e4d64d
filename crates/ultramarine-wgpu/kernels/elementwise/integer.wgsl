// Ops of all integers. A is the type of registers, BITS the width of the dtype: a store keeps so many of the low bits.

fn unary_negative(x: A) -> A { return A(0) - x; }
fn unary_square(x: A) -> A { return x * x; }
fn unary_bitwise_invert(x: A) -> A { return ~x; }
fn unary_floor(x: A) -> A { return x; }
fn unary_ceil(x: A) -> A { return x; }
fn unary_round(x: A) -> A { return x; }
fn unary_trunc(x: A) -> A { return x; }
fn unary_conjugate(x: A) -> A { return x; }
fn unary_real(x: A) -> A { return x; }
fn unary_imag(x: A) -> A { return A(0); }
fn unary_logical_not(x: A) -> bool { return x == A(0); }
fn unary_isnan(x: A) -> bool { return false; }
fn unary_isinf(x: A) -> bool { return false; }
fn unary_isfinite(x: A) -> bool { return true; }

fn binary_add(x: A, y: A) -> A { return x + y; }
fn binary_subtract(x: A, y: A) -> A { return x - y; }
fn binary_multiply(x: A, y: A) -> A { return x * y; }
fn binary_maximum(x: A, y: A) -> A { return select(y, x, x > y); }
fn binary_minimum(x: A, y: A) -> A { return select(y, x, x < y); }
fn binary_bitwise_and(x: A, y: A) -> A { return x & y; }
fn binary_bitwise_or(x: A, y: A) -> A { return x | y; }
fn binary_bitwise_xor(x: A, y: A) -> A { return x ^ y; }
fn binary_equal(x: A, y: A) -> bool { return x == y; }
fn binary_not_equal(x: A, y: A) -> bool { return x != y; }
fn binary_less(x: A, y: A) -> bool { return x < y; }
fn binary_less_equal(x: A, y: A) -> bool { return x <= y; }
fn binary_greater(x: A, y: A) -> bool { return x > y; }
fn binary_greater_equal(x: A, y: A) -> bool { return x >= y; }
fn binary_logical_and(x: A, y: A) -> bool { return x != A(0) && y != A(0); }
fn binary_logical_or(x: A, y: A) -> bool { return x != A(0) || y != A(0); }
fn binary_equal_nan(x: A, y: A) -> bool { return x == y; }

// A negative count is a large one.
fn binary_left_shift(x: A, y: A) -> A {
  if (y < A(0) || y >= A(BITS)) { return A(0); }
  return x << u32(y);
}

fn raised(x: A, y: A) -> A {
  var base = x;
  var exponent = y;
  var product = A(1);
  loop {
    if (exponent == A(0)) { break; }
    if ((exponent & A(1)) != A(0)) { product *= base; }
    base *= base;
    exponent = exponent >> 1u;
  }
  return product;
}
