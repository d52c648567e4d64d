/* COPY of one dtype, FILL and SELECT: bits of VARIANT bytes that are only moved. */

#if VARIANT == 1
typedef uchar Bits;
#elif VARIANT == 2
typedef ushort Bits;
#elif VARIANT == 4
typedef uint Bits;
#else
typedef ulong Bits;
#endif

KERNEL void move(__global const Bits *a, __global Bits *out, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[2];
  locate(&l, i, 2, at);
  out[at[1]] = a[at[0]];
}

KERNEL void fill(__global Bits *out, ulong value, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[1];
  locate(&l, i, 1, at);
  out[at[0]] = (Bits)value;
}

KERNEL void choose(__global const uchar *condition, __global const Bits *x, __global const Bits *y,
                   __global Bits *out, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[4];
  locate(&l, i, 4, at);
  out[at[3]] = condition[at[0]] ? x[at[1]] : y[at[2]];
}
