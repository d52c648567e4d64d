/* Ops of the integers and of bool (bytes that are 0 or 1). */
#ifdef IS_INT

static A unary_value(uint op, A x) {
  switch (op) {
#ifdef IS_SIGNED
    case UM_UNARY_ABS: return x < 0 ? (A)(0 - (U)x) : x;
    case UM_UNARY_SIGN: return (A)((x > 0) - (x < 0));
#else
    case UM_UNARY_SIGN: return (A)(x != 0);
#endif
    case UM_UNARY_NEGATIVE: return (A)(0 - (U)x);
    case UM_UNARY_SQUARE: return (A)((U)x * (U)x);
    case UM_UNARY_BITWISE_INVERT: return (A)~x;
    case UM_UNARY_IMAG: return 0;
    default: return x;
  }
}

static uchar unary_test(uint op, A x) {
  if (op == UM_UNARY_LOGICAL_NOT) return x == 0;
  return op == UM_UNARY_ISFINITE;
}

/* Rounded down, as in Python. Neither division by zero nor the smallest value by -1 may trap. */
static A floor_divide(A x, A y) {
  if (y == 0) return 0;
#ifdef IS_SIGNED
  if (y == -1) return (A)(0 - (U)x);
  A q = x / y, r = x % y;
  return r != 0 && (r ^ y) < 0 ? (A)(q - 1) : q;
#else
  return x / y;
#endif
}

static A floor_remainder(A x, A y) {
  if (y == 0) return x;
#ifdef IS_SIGNED
  if (y == -1) return 0;
  A r = x % y;
  return r != 0 && (r ^ y) < 0 ? (A)(r + y) : r;
#else
  return x % y;
#endif
}

static A integer_power(A x, A y) {
#ifdef IS_SIGNED
  if (y < 0) return 0;
#endif
  U base = (U)x, product = 1;
  for (U e = (U)y; e != 0; e >>= 1) {
    if (e & 1) product *= base;
    base *= base;
  }
  return (A)product;
}

static A binary_value(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_ADD: return (A)((U)x + (U)y);
    case UM_BINARY_SUBTRACT: return (A)((U)x - (U)y);
    case UM_BINARY_MULTIPLY: return (A)((U)x * (U)y);
    case UM_BINARY_FLOOR_DIVIDE: return floor_divide(x, y);
    case UM_BINARY_REMAINDER: return floor_remainder(x, y);
    case UM_BINARY_POWER: return integer_power(x, y);
    case UM_BINARY_MAXIMUM: return x > y ? x : y;
    case UM_BINARY_MINIMUM: return x < y ? x : y;
    case UM_BINARY_BITWISE_AND: return x & y;
    case UM_BINARY_BITWISE_OR: return x | y;
    case UM_BINARY_BITWISE_XOR: return x ^ y;
    /* A negative count is a large one. */
    case UM_BINARY_LEFT_SHIFT: return (U)y < BITS ? (A)((U)x << (U)y) : (A)0;
    default: {
#ifdef IS_SIGNED
      return (A)(x >> ((U)y < BITS ? (U)y : (U)(BITS - 1)));
#else
      return y < BITS ? (A)(x >> y) : (A)0;
#endif
    }
  }
}

static uchar binary_test(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_NOT_EQUAL: return x != y;
    case UM_BINARY_LESS: return x < y;
    case UM_BINARY_LESS_EQUAL: return x <= y;
    case UM_BINARY_GREATER: return x > y;
    case UM_BINARY_GREATER_EQUAL: return x >= y;
    case UM_BINARY_LOGICAL_AND: return x != 0 && y != 0;
    case UM_BINARY_LOGICAL_OR: return x != 0 || y != 0;
    default: return x == y;
  }
}

#elif defined(IS_BOOL)

static A unary_value(uint op, A x) {
  switch (op) {
    case UM_UNARY_BITWISE_INVERT: return x ^ 1;
    case UM_UNARY_IMAG: return 0;
    default: return x;
  }
}

static uchar unary_test(uint op, A x) {
  if (op == UM_UNARY_LOGICAL_NOT) return x ^ 1;
  return op == UM_UNARY_ISFINITE;
}

/* As numbers that become true again where they are not zero. */
static A binary_value(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_ADD:
    case UM_BINARY_MAXIMUM:
    case UM_BINARY_BITWISE_OR: return x | y;
    case UM_BINARY_SUBTRACT:
    case UM_BINARY_BITWISE_XOR: return x ^ y;
    case UM_BINARY_REMAINDER: return x & (y ^ 1);
    case UM_BINARY_POWER: return x | (y ^ 1);
    default: return x & y;
  }
}

static uchar binary_test(uint op, A x, A y) {
  switch (op) {
    case UM_BINARY_NOT_EQUAL: return x ^ y;
    case UM_BINARY_LESS: return (x ^ 1) & y;
    case UM_BINARY_LESS_EQUAL: return (x ^ 1) | y;
    case UM_BINARY_GREATER: return x & (y ^ 1);
    case UM_BINARY_GREATER_EQUAL: return x | (y ^ 1);
    case UM_BINARY_LOGICAL_AND: return x & y;
    case UM_BINARY_LOGICAL_OR: return x | y;
    default: return x ^ y ^ 1;
  }
}

#endif
