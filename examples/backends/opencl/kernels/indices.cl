/* What index arrays mean. */

/* Marks what an index outside points to, where such are skipped. */
#define NOWHERE LONG_MIN

/* An index as it stands, of any integer type; what no long holds is far outside any axis. */
static inline long index_at(__global const void *indices, uint dtype, long at) {
  switch (dtype) {
    case UM_DTYPE_UINT8: return ((__global const uchar *)indices)[at];
    case UM_DTYPE_UINT16: return ((__global const ushort *)indices)[at];
    case UM_DTYPE_UINT32: return ((__global const uint *)indices)[at];
    case UM_DTYPE_INT8: return ((__global const char *)indices)[at];
    case UM_DTYPE_INT16: return ((__global const short *)indices)[at];
    case UM_DTYPE_INT32: return ((__global const int *)indices)[at];
    case UM_DTYPE_UINT64: {
      ulong index = ((__global const ulong *)indices)[at];
      return index > (ulong)LONG_MAX ? LONG_MAX : (long)index;
    }
    default: return ((__global const long *)indices)[at];
  }
}

/* What an index adds to an offset: valid are those below `limit` once those below zero have had `size` added. */
static inline long step_of(long index, long size, long limit, long step, bool skip) {
  if (index < 0) index += size;
  if (skip) return index < 0 || index >= limit ? NOWHERE : index * step;
  return clamp(index, 0l, limit - 1) * step;
}
