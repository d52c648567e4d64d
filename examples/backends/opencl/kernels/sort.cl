/* SORT and ARG_SORT: a stable merge sort of keys, unsigned integers in the order of the elements, with the indices
 * they came from. Blocks of SMALL are ranked element by element; then runs of twice the width are merged, every
 * element finding its place by a binary search in the other run. VARIANT is the width of an index, 4 or 8 bytes. */

#define SMALL 32

#if VARIANT == 8
typedef ulong Index;
#else
typedef uint Index;
#endif

/* Equal elements have equal keys: both zeros, and all NaNs, whose key is the highest. */
#if defined(IS_BOOL)
typedef uchar Key;
static inline Key key_of(T x) { return x; }
#elif defined(IS_INT)
typedef U Key;
#ifdef IS_SIGNED
static inline Key key_of(T x) { return (U)x ^ (U)((U)1 << (BITS - 1)); }
#else
static inline Key key_of(T x) { return x; }
#endif
#else
#define FLOAT_KEY(NAME, K, WIDTH, INFINITE)                            \
  static inline K NAME(K bits) {                                       \
    K sign = (K)1 << (WIDTH - 1);                                      \
    if (bits == sign) bits = 0;                                        \
    if ((K)(bits & ~sign) > (K)(INFINITE)) return (K) ~(K)0;           \
    return bits & sign ? (K)~bits : (K)(bits | sign);                  \
  }
FLOAT_KEY(key_of_f16, ushort, 16, 0x7c00)
FLOAT_KEY(key_of_bf16, ushort, 16, 0x7f80)
FLOAT_KEY(key_of_f32, uint, 32, 0x7f800000u)
FLOAT_KEY(key_of_f64, ulong, 64, 0x7ff0000000000000ul)
#if DTYPE == UM_DTYPE_FLOAT16
typedef ushort Key;
static inline Key key_of(T x) { return key_of_f16(x); }
#elif DTYPE == UM_DTYPE_BFLOAT16
typedef ushort Key;
static inline Key key_of(T x) { return key_of_bf16(x); }
#elif DTYPE == UM_DTYPE_FLOAT32
typedef uint Key;
static inline Key key_of(T x) { return key_of_f32(as_uint(x)); }
#elif DTYPE == UM_DTYPE_FLOAT64
typedef ulong Key;
static inline Key key_of(T x) { return key_of_f64(as_ulong(x)); }
#else
typedef ulong Key;
static inline Key key_of(T x) {
  return complex_nan(x) ? ULONG_MAX : (ulong)key_of_f32(as_uint(x.x)) << 32 | key_of_f32(as_uint(x.y));
}
#endif
#endif

/* Mirrors `struct sort` of sort.c. Places in the workspace count bytes. */
typedef struct {
  ulong lanes;
  ulong length;
  long in_step;
  long out_step;
  ulong width;
  ulong keys_from;
  ulong keys_to;
  ulong indices_from;
  ulong indices_to;
} Sort;

#define LANE_AND_PLACE                              \
  ulong i = get_global_id(0);                       \
  if (i >= s.lanes * s.length) return;              \
  ulong lane = i / s.length, j = i - lane * s.length;

/* The layout walks the lanes: in, out. */
KERNEL void sort_blocks(__global const T *a, __global uchar *work, const Sort s, const Layout l) {
  LANE_AND_PLACE
  long at[1];
  locate(&l, lane, 1, at);
  ulong first = j / SMALL * SMALL, end = min(first + SMALL, s.length);
  Key key = key_of(a[at[0] + (long)j * s.in_step]);
  ulong rank = first;
  for (ulong k = first; k < end; k++) {
    Key other = key_of(a[at[0] + (long)k * s.in_step]);
    rank += other < key || (other == key && k < j);
  }
  ((__global Key *)(work + s.keys_to))[lane * s.length + rank] = key;
  ((__global Index *)(work + s.indices_to))[lane * s.length + rank] = (Index)j;
}

KERNEL void sort_merge(__global uchar *work, const Sort s) {
  LANE_AND_PLACE
  __global const Key *keys = (__global const Key *)(work + s.keys_from) + lane * s.length;
  ulong start = j / (2 * s.width) * (2 * s.width);
  ulong middle = min(start + s.width, s.length), end = min(middle + s.width, s.length);
  Key key = keys[j];
  /* How many of the other run come before: of equals, the left run does. */
  bool left = j < middle;
  ulong low = left ? middle : start, high = left ? end : middle, base = low;
  while (low < high) {
    ulong m = low + (high - low) / 2;
    bool before = left ? keys[m] < key : keys[m] <= key;
    if (before) low = m + 1;
    else high = m;
  }
  ulong place = start + (left ? j - start : j - middle) + (low - base);
  __global const Index *indices = (__global const Index *)(work + s.indices_from);
  ((__global Key *)(work + s.keys_to))[lane * s.length + place] = key;
  ((__global Index *)(work + s.indices_to))[lane * s.length + place] = indices[i];
}

KERNEL void sort_values(__global const T *a, __global T *out, __global const uchar *work, const Sort s,
                        const Layout l) {
  LANE_AND_PLACE
  long at[2];
  locate(&l, lane, 2, at);
  Index index = ((__global const Index *)(work + s.indices_from))[i];
  out[at[1] + (long)j * s.out_step] = a[at[0] + (long)index * s.in_step];
}

KERNEL void sort_indices(__global uint *out, __global const uchar *work, const Sort s, const Layout l) {
  LANE_AND_PLACE
  long at[2];
  locate(&l, lane, 2, at);
  out[at[1] + (long)j * s.out_step] = (uint)((__global const Index *)(work + s.indices_from))[i];
}

/* SEARCHSORTED: a bisection of a row for each value. The layout walks rows (which stand still along the axes that are
 * the values' own), values and output; its op is 1 for the right side. */
KERNEL void searchsorted(__global const T *rows, __global const T *values, __global uint *out, ulong length,
                         long along, const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n) return;
  long at[3];
  locate(&l, i, 3, at);
  Key key = key_of(values[at[1]]);
  ulong passed = 0;
  for (ulong step = (ulong)1 << (63 - clz(length)); step > 0; step /= 2) {
    ulong next = passed + step;
    if (next > length) continue;
    Key other = key_of(rows[at[0] + (long)(next - 1) * along]);
    if (l.op ? other <= key : other < key) passed = next;
  }
  out[at[2]] = (uint)passed;
}
