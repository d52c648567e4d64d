// Ops in which signed integers differ from unsigned ones.

fn unary_abs(x: A) -> A { return select(x, A(0) - x, x < A(0)); }
fn unary_sign(x: A) -> A { return select(select(A(0), A(-1), x < A(0)), A(1), x > A(0)); }

// Rounded down, as in Python.
fn binary_floor_divide(x: A, y: A) -> A {
  if (y == A(0)) { return A(0); }
  if (y == A(-1)) { return A(0) - x; }
  let quotient = x / y;
  let rest = x - quotient * y;
  return select(quotient, quotient - A(1), rest != A(0) && (rest ^ y) < A(0));
}

fn binary_remainder(x: A, y: A) -> A {
  if (y == A(0)) { return x; }
  if (y == A(-1)) { return A(0); }
  let rest = x - (x / y) * y;
  return select(rest, rest + y, rest != A(0) && (rest ^ y) < A(0));
}

fn binary_power(x: A, y: A) -> A {
  if (y < A(0)) { return A(0); }
  return raised(x, y);
}

fn binary_right_shift(x: A, y: A) -> A {
  if (y < A(0) || y >= A(BITS)) { return select(A(0), A(-1), x < A(0)); }
  return x >> u32(y);
}
