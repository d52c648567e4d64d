/* SCATTER and SCATTER_AXIS: updates combined into what is there, those of one element in their order. There are no
 * atomic operations: either a work-item goes through all positions for its element of the slices, or the updates'
 * places were sorted and a work-item takes all of one place. */

/* With a NaN on either side the extremes become the update. */
static inline T combine(uint op, T there, T update) {
  if (op == UM_SCATTER_SET) return update;
  A x = up(there), y = up(update);
#ifdef IS_COMPLEX
  switch (op) {
    case UM_SCATTER_SUM: return x + y;
    case UM_SCATTER_PROD: return complex_multiply(x, y);
    case UM_SCATTER_MIN: return complex_less(x, y) ? x : y;
    default: return complex_less(y, x) ? x : y;
  }
#elif defined(IS_BOOL)
  return op == UM_SCATTER_SUM || op == UM_SCATTER_MAX ? x | y : x & y;
#else
  switch (op) {
#ifdef IS_INT
    case UM_SCATTER_SUM: return (A)((U)x + (U)y);
    case UM_SCATTER_PROD: return (A)((U)x * (U)y);
#else
    case UM_SCATTER_SUM: return down(x + y);
    case UM_SCATTER_PROD: return down(x * y);
#endif
    case UM_SCATTER_MIN: return down(x < y ? x : y);
    default: return down(y < x ? x : y);
  }
#endif
}

/* A work-item per element of a slice, through all positions. The layout walks a slice of the output; the updates are
 * contiguous. */
KERNEL void scatter_slices(__global const T *updates, __global T *out, __global const long *places, long from,
                           ulong positions, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[1];
  locate(&l, i, 1, at);
  for (ulong position = 0; position < positions; position++) {
    if (places[position] == NOWHERE) continue;
    long to = at[0] + places[position];
    out[to] = combine(l.op, out[to], updates[from + (long)(position * l.n + i)]);
  }
}

/* A work-item per lane. The layout walks the lanes: output, indices, updates; the steps go along one. */
KERNEL void scatter_lanes(__global const T *updates, __global T *out, __global const void *indices, uint dtype,
                          ulong length, long size, long out_step, long index_step, long update_step,
                          const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[3];
  locate(&l, i, 3, at);
  for (ulong j = 0; j < length; j++) {
    long by = step_of(index_at(indices, dtype, at[1] + (long)j * index_step), size, size, out_step, true);
    if (by == NOWHERE) continue;
    long to = at[0] + by;
    out[to] = combine(l.op, out[to], updates[at[2] + (long)j * update_step]);
  }
}

#if VARIANT == 8
typedef ulong Index;
#else
typedef uint Index;
#endif

/* A work-item per sorted place: the first of equal places takes them all, in order. `places` and `sorted` are where
 * the unsorted places and their order begin in the workspace, in bytes. The layout walks the updates. */
KERNEL void scatter_sorted(__global const T *updates, __global T *out, __global const uchar *work, ulong places,
                           ulong sorted, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  __global const long *place = (__global const long *)(work + places);
  __global const Index *order = (__global const Index *)(work + sorted);
  long to = place[order[i]];
  if (to == NOWHERE || (i > 0 && place[order[i - 1]] == to)) return;
  T value = out[to];
  for (; i < l.n && place[order[i]] == to; i++) {
    long from[1];
    locate(&l, order[i], 1, from);
    value = combine(l.op, value, updates[from[0]]);
  }
  out[to] = value;
}
