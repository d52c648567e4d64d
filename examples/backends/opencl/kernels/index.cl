/* GATHER, GATHER_AXIS, the dynamic slices, and where indices point for the scatters too. VARIANT is the width of an element. */

#if VARIANT == 1
typedef uchar Bits;
#elif VARIANT == 2
typedef ushort Bits;
#elif VARIANT == 4
typedef uint Bits;
#else
typedef ulong Bits;
#endif

/* Adds an index array's part to the places of the slices; the first one sets them. The layout walks the array. */
KERNEL void places(__global const void *indices, __global long *places, uint dtype, uint first, uint skip, long size,
                   long limit, long step, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[1];
  locate(&l, i, 1, at);
  long by = step_of(index_at(indices, dtype, at[0]), size, limit, step, skip != 0);
  if (!first && by != NOWHERE) by = places[i] == NOWHERE ? NOWHERE : places[i] + by;
  places[i] = by;
}

/* Slices at places, one behind the other. The layout walks a slice. */
KERNEL void gather(__global const Bits *a, __global const long *places, __global Bits *out, long to, ulong n,
                   const Layout l) {
  ulong i = get_global_id(0);
  if (i >= n) return;
  ulong position = i / l.n;
  long at[1];
  locate(&l, i - position * l.n, 1, at);
  out[to + (long)i] = a[at[0] + places[position]];
}

/* The layout walks the output: source (which stands still along the axis), indices. */
KERNEL void gather_axis(__global const Bits *a, __global const void *indices, __global Bits *out, long to, uint dtype,
                        long size, long step, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[2];
  locate(&l, i, 2, at);
  out[to + (long)i] = a[at[0] + step_of(index_at(indices, dtype, at[1]), size, size, step, false)];
}

/* Places of the single elements of slices, from `each` on. The layout walks a slice of the output. */
KERNEL void spread(__global long *places, ulong each, ulong n, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= n) return;
  ulong position = i / l.n;
  long at[1];
  locate(&l, i - position * l.n, 1, at);
  places[each + i] = places[position] == NOWHERE ? NOWHERE : at[0] + places[position];
}

/* Places of the updates of SCATTER_AXIS. The layout walks the updates: output, indices. */
KERNEL void axis_places(__global const void *indices, __global long *each, uint dtype, long size, long step,
                        const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[2];
  locate(&l, i, 2, at);
  long by = step_of(index_at(indices, dtype, at[1]), size, size, step, true);
  each[i] = by == NOWHERE ? NOWHERE : at[0] + by;
}

#define MAX_STARTS 8

/* The axes of a window's starts: the number of places where it can begin on each, and the steps between them. */
typedef struct {
  uint n;
  uint dtype;
  long offset;
  long apart;
  long limit[MAX_STARTS];
  long step[MAX_STARTS];
} Starts;

/* The window that begins at the starts; `into`: of the output, else of the source. The layout walks it: source, output. */
KERNEL void window(__global const Bits *a, __global const void *starts, __global Bits *out, uint into, const Starts s,
                   const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[2], by = 0;
  locate(&l, i, 2, at);
  for (uint k = 0; k < s.n; k++) {
    by += step_of(index_at(starts, s.dtype, s.offset + (long)k * s.apart), 0, s.limit[k], s.step[k], false);
  }
  at[into ? 1 : 0] += by;
  out[at[1]] = a[at[0]];
}
