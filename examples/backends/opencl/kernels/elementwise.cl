/* UNARY and BINARY: the op is the layout's. `_flat` kernels walk contiguous tensors. */

#define FLAT_AT(k) (l.offset[k] + (long)i)
#define ELEMENT                     \
  ulong i = get_global_id(0);       \
  if (i >= l.n) return;
#define WALKED(tensors)             \
  ELEMENT                           \
  long at[tensors];                 \
  locate(&l, i, tensors, at);

#define UNARY(name, O, value)                                                                 \
  KERNEL void name(__global const T *a, __global O *out, const Layout l) {                    \
    WALKED(2)                                                                                 \
    A x = up(a[at[0]]);                                                                       \
    out[at[1]] = value;                                                                       \
  }                                                                                           \
  KERNEL void name##_flat(__global const T *a, __global O *out, const Layout l) {             \
    ELEMENT                                                                                   \
    A x = up(a[FLAT_AT(0)]);                                                                  \
    out[FLAT_AT(1)] = value;                                                                  \
  }

#define BINARY(name, O, value)                                                                \
  KERNEL void name(__global const T *a, __global const T *b, __global O *out, const Layout l) { \
    WALKED(3)                                                                                 \
    A x = up(a[at[0]]), y = up(b[at[1]]);                                                     \
    out[at[2]] = value;                                                                       \
  }                                                                                           \
  KERNEL void name##_flat(__global const T *a, __global const T *b, __global O *out, const Layout l) { \
    ELEMENT                                                                                   \
    A x = up(a[FLAT_AT(0)]), y = up(b[FLAT_AT(1)]);                                           \
    out[FLAT_AT(2)] = value;                                                                  \
  }

#if VARIANT == 0
UNARY(unary, T, down(unary_value(l.op, x)))
UNARY(unary_test_each, uchar, unary_test(l.op, x))
#ifdef IS_COMPLEX
UNARY(unary_part, float, unary_part_value(l.op, x))
#endif
#else
BINARY(binary, T, down(binary_value(l.op, x, y)))
BINARY(binary_test_each, uchar, binary_test(l.op, x, y))
#endif
