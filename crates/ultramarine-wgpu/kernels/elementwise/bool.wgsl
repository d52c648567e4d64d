// Ops of bool: 0 or 1, as numbers that become true again where they are not zero.

fn unary_abs(x: u32) -> u32 { return x; }
fn unary_sign(x: u32) -> u32 { return x; }
fn unary_square(x: u32) -> u32 { return x; }
fn unary_floor(x: u32) -> u32 { return x; }
fn unary_ceil(x: u32) -> u32 { return x; }
fn unary_round(x: u32) -> u32 { return x; }
fn unary_trunc(x: u32) -> u32 { return x; }
fn unary_conjugate(x: u32) -> u32 { return x; }
fn unary_real(x: u32) -> u32 { return x; }
fn unary_imag(x: u32) -> u32 { return 0u; }
fn unary_bitwise_invert(x: u32) -> u32 { return x ^ 1u; }
fn unary_logical_not(x: u32) -> bool { return x == 0u; }
fn unary_isnan(x: u32) -> bool { return false; }
fn unary_isinf(x: u32) -> bool { return false; }
fn unary_isfinite(x: u32) -> bool { return true; }

fn binary_add(x: u32, y: u32) -> u32 { return x | y; }
fn binary_subtract(x: u32, y: u32) -> u32 { return x ^ y; }
fn binary_multiply(x: u32, y: u32) -> u32 { return x & y; }
fn binary_floor_divide(x: u32, y: u32) -> u32 { return x & y; }
fn binary_remainder(x: u32, y: u32) -> u32 { return x & (y ^ 1u); }
fn binary_power(x: u32, y: u32) -> u32 { return x | (y ^ 1u); }
fn binary_maximum(x: u32, y: u32) -> u32 { return x | y; }
fn binary_minimum(x: u32, y: u32) -> u32 { return x & y; }
fn binary_bitwise_and(x: u32, y: u32) -> u32 { return x & y; }
fn binary_bitwise_or(x: u32, y: u32) -> u32 { return x | y; }
fn binary_bitwise_xor(x: u32, y: u32) -> u32 { return x ^ y; }
fn binary_equal(x: u32, y: u32) -> bool { return x == y; }
fn binary_not_equal(x: u32, y: u32) -> bool { return x != y; }
fn binary_less(x: u32, y: u32) -> bool { return x < y; }
fn binary_less_equal(x: u32, y: u32) -> bool { return x <= y; }
fn binary_greater(x: u32, y: u32) -> bool { return x > y; }
fn binary_greater_equal(x: u32, y: u32) -> bool { return x >= y; }
fn binary_logical_and(x: u32, y: u32) -> bool { return (x & y) != 0u; }
fn binary_logical_or(x: u32, y: u32) -> bool { return (x | y) != 0u; }
fn binary_equal_nan(x: u32, y: u32) -> bool { return x == y; }
