// Ops in which unsigned integers differ from signed ones.

fn unary_abs(x: A) -> A { return x; }
fn unary_sign(x: A) -> A { return select(A(0), A(1), x != A(0)); }

fn binary_floor_divide(x: A, y: A) -> A {
  if (y == A(0)) { return A(0); }
  return x / y;
}

fn binary_remainder(x: A, y: A) -> A {
  if (y == A(0)) { return x; }
  return x - (x / y) * y;
}

fn binary_power(x: A, y: A) -> A { return raised(x, y); }

fn binary_right_shift(x: A, y: A) -> A {
  if (y >= A(BITS)) { return A(0); }
  return x >> u32(y);
}
