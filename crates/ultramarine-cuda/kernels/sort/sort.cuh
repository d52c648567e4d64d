// SORT and ARG_SORT, and PARTITION of short rows: keys, and rows that a block sorts in shared memory. Elements are moved
// as they are: the two zeros, and NaNs of any bits, have one key each and keep their order.

// Mirrors `Line` of sort.rs. Rows begin where `Walk` says.
struct Line {
  i64 length;
  i64 in_step;
  i64 out_step;
};

// ---- keys: unsigned integers in the order of the elements ------------------------------------------------------

template <int BYTES> struct Unsigned;
template <> struct Unsigned<1> { typedef u8 K; };
template <> struct Unsigned<2> { typedef u16 K; };
template <> struct Unsigned<4> { typedef u32 K; };
template <> struct Unsigned<8> { typedef u64 K; };

INLINE u16 bits_of(half_bits x) { return x.bits; }
INLINE u16 bits_of(brain_bits x) { return x.bits; }
INLINE u32 bits_of(float x) { return __float_as_uint(x); }
INLINE u64 bits_of(double x) { return (u64)__double_as_longlong(x); }

template <class K>
INLINE K float_key(K bits, K infinity) {
  const K sign = (K)((K)1 << (8 * sizeof(K) - 1));
  if ((K)(bits & (K)~sign) > infinity) return (K)~(K)0;
  if (bits == sign) bits = 0;
  return bits & sign ? (K)~bits : (K)(bits | sign);
}

template <class D> struct Infinity { static const u64 bits = 0; };
template <> struct Infinity<F16> { static const u64 bits = 0x7c00; };
template <> struct Infinity<BF16> { static const u64 bits = 0x7f80; };
template <> struct Infinity<F32> { static const u64 bits = 0x7f800000; };
template <> struct Infinity<F64> { static const u64 bits = 0x7ff0000000000000; };

template <class D, Kind K> struct KeyOf;
template <class D> struct KeyOf<D, BOOL> { INLINE u8 of(u8 x) { return x; } };
template <class D> struct KeyOf<D, INTEGER> {
  typedef typename Unsigned<sizeof(typename D::T)>::K Key;
  INLINE Key of(typename D::T x) { return (Key)((Key)x ^ (D::is_signed ? (Key)((Key)1 << (D::bits - 1)) : (Key)0)); }
};
template <class D> struct KeyOf<D, REAL> {
  typedef typename Unsigned<sizeof(typename D::T)>::K Key;
  INLINE Key of(typename D::T x) { return float_key<Key>(bits_of(x), (Key)Infinity<D>::bits); }
};
template <class D> struct KeyOf<D, COMPLEX> {
  INLINE u64 of(complex64 z) {
    const u32 infinity = (u32)Infinity<F32>::bits;
    if (z.re != z.re || z.im != z.im) return ~0ull;
    return (u64)float_key<u32>(bits_of(z.re), infinity) << 32 | float_key<u32>(bits_of(z.im), infinity);
  }
};
template <class D>
INLINE typename Unsigned<sizeof(typename D::T)>::K key_of(typename D::T x) { return KeyOf<D, D::kind>::of(x); }

template <class D>
INLINE u32 digit_of(typename D::T x, int shift) { return (u32)(key_of<D>(x) >> shift) & 255; }

// ---- what is written: elements, or where they were ---------------------------------------------------------------

template <class D, bool INDEXED> struct Result { typedef typename D::T T; };
template <class D> struct Result<D, true> { typedef u32 T; };

// ---- rows of up to SMALL elements: a bitonic network ------------------------------------------------------------

const int SMALL = 512, SORT_THREADS = 256, SORT_WARPS = 8;
#define EVERYONE 0xffffffffu

// A key and the index that tells equals apart.
template <int BYTES> struct Entry {
  u32 bits;
  INLINE Entry of(u32 key, u32 index) { Entry e; e.bits = key << 16 | index; return e; }
  __device__ __forceinline__ u32 index() const { return bits & 0xffff; }
  __device__ __forceinline__ bool before(const Entry &o) const { return bits < o.bits; }
};
template <> struct Entry<4> {
  u64 bits;
  INLINE Entry of(u32 key, u32 index) { Entry e; e.bits = (u64)key << 32 | index; return e; }
  __device__ __forceinline__ u32 index() const { return (u32)bits; }
  __device__ __forceinline__ bool before(const Entry &o) const { return bits < o.bits; }
};
template <> struct Entry<8> {
  u64 key;
  u32 place;
  INLINE Entry of(u64 key, u32 index) { Entry e; e.key = key; e.place = index; return e; }
  __device__ __forceinline__ u32 index() const { return place; }
  __device__ __forceinline__ bool before(const Entry &o) const { return key < o.key || (key == o.key && place < o.place); }
};

// `width` is the power of two at or above the length; a block has SMALL / width rows. With `rows_first`, neighbours
// in memory are of neighbouring rows.
template <class D, bool INDEXED, int N>
static __device__ __forceinline__ void sort_small(const typename D::T *in, typename Result<D, INDEXED>::T *out,
                                                  const Line &line, int width, int rows_first, const Walk<2, N> &w) {
  typedef typename D::T T;
  typedef Entry<sizeof(T)> E;
  __shared__ E entries[SMALL];
  __shared__ T values[INDEXED ? 1 : SMALL];
  const int rows = SMALL / width, shift = __ffs(width) - 1, length = (int)line.length;
  for (i64 first = (i64)blockIdx.x * rows; first < w.n; first += (i64)gridDim.x * rows) {
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int e = (int)threadIdx.x + half * SORT_THREADS;
      int row = rows_first ? e & (rows - 1) : e >> shift, j = rows_first ? e >> (9 - shift) : e & (width - 1);
      int place = (row << shift) | j;
      E entry = E::of((typename Unsigned<sizeof(T) < 8 ? 4 : 8>::K)~0ull, (u32)j);
      if (first + row < w.n && j < length) {
        i64 at[2];
        locate<2, N, i64>(w, first + row, at);
        T value = in[at[0] + j * line.in_step];
        entry = E::of(key_of<D>(value), (u32)j);
        if (!INDEXED) values[place] = value;
      }
      entries[place] = entry;
    }
    __syncthreads();
    const int t = (int)threadIdx.x;
    for (int k = 2; k <= width; k *= 2) {
      for (int s = k / 2; s > 0; s /= 2) {
        int i = 2 * t - (t & (s - 1));
        bool up = (i & (width - 1) & k) == 0;
        E a = entries[i], b = entries[i + s];
        if (b.before(a) == up) {
          entries[i] = b;
          entries[i + s] = a;
        }
        // A warp's pairs up to 32 apart are nobody else's.
        int next = s > 1 ? s / 2 : k;
        if (s > 32 || next > 32) __syncthreads();
        else __syncwarp();
      }
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int e = (int)threadIdx.x + half * SORT_THREADS;
      int row = rows_first ? e & (rows - 1) : e >> shift, j = rows_first ? e >> (9 - shift) : e & (width - 1);
      if (first + row < w.n && j < length) {
        i64 at[2];
        locate<2, N, i64>(w, first + row, at);
        u32 index = entries[(row << shift) | j].index();
        if constexpr (INDEXED) out[at[1] + j * line.out_step] = index;
        else out[at[1] + j * line.out_step] = values[(row << shift) | index];
      }
    }
  }
}

// ---- ranks by a digit ------------------------------------------------------------------------------------------

// The order of a block's items is by warps, then by i, then by lanes. Of items with the digit of item i, how many come
// before it in its warp; `counts` are the warp's numbers of each digit then.
template <int ITEMS>
INLINE void rank_in_warp(const u32 (&digit)[ITEMS], u32 (&rank)[ITEMS], u32 *counts) {
  const int lane = threadIdx.x & 31;
  const u32 lower = (1u << lane) - 1;
#pragma unroll
  for (int i = lane; i < 256; i += 32) counts[i] = 0;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    u32 peers = EVERYONE;
#pragma unroll
    for (int b = 0; b < 8; b++) {
      bool bit = digit[i] >> b & 1;
      u32 vote = __ballot_sync(EVERYONE, bit);
      peers &= bit ? vote : ~vote;
    }
    u32 before = counts[digit[i]], own = __popc(peers & lower);
    __syncwarp();
    if (own == 0) counts[digit[i]] = before + __popc(peers);
    __syncwarp();
    rank[i] = before + own;
  }
}

// Of a number for each of 256 threads, the sum of those before. `sums` has room for the warps.
INLINE u32 sum_before(u32 x, u32 *sums) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u32 sum = x;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    u32 other = __shfl_up_sync(EVERYONE, sum, by);
    if (lane >= by) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  u32 before = sum - x;
#pragma unroll
  for (int k = 0; k < SORT_WARPS; k++) before += k < warp ? sums[k] : 0;
  return before;
}

// How many items have the thread's digit, all warps ranked.
INLINE u32 count_of_digit(const u32 (*counts)[256]) {
  u32 total = 0;
#pragma unroll
  for (int k = 0; k < SORT_WARPS; k++) total += counts[k][threadIdx.x];
  return total;
}

// The counts become the block's places of the first item of each digit and warp.
INLINE void place_of_digit(u32 (*counts)[256], u32 first) {
#pragma unroll
  for (int k = 0; k < SORT_WARPS; k++) {
    u32 count = counts[k][threadIdx.x];
    counts[k][threadIdx.x] = first;
    first += count;
  }
}

// ---- rows of up to 256 * ITEMS elements: by digits, in shared memory ----------------------------------------------

template <class D, bool INDEXED, int ITEMS, int N>
static __device__ __forceinline__ void sort_block(const typename D::T *in, typename Result<D, INDEXED>::T *out,
                                                  const Line &line, const Walk<2, N> &w) {
  typedef typename D::T T;
  const int tile = SORT_THREADS * ITEMS;
  __shared__ u32 counts[SORT_WARPS][256];
  __shared__ u32 sums[SORT_WARPS];
  __shared__ T values[tile];
  __shared__ u16 indices[INDEXED ? tile : 1];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, first = warp * (32 * ITEMS) + lane;
  const int length = (int)line.length;
  for (i64 row = blockIdx.x; row < w.n; row += gridDim.x) {
    i64 at[2];
    locate<2, N, i64>(w, row, at);
    const T *from = in + at[0];
    T value[ITEMS];
    u16 index[ITEMS];
    u64 differ = 0;
    const u64 some = key_of<D>(from[0]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      int j = first + i * 32;
      index[i] = (u16)j;
      value[i] = from[(j < length ? j : 0) * line.in_step];
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) differ |= key_of<D>(value[i]) ^ some;
    for (int shift = 0; shift < 8 * (int)sizeof(T); shift += 8) {
      // Nothing moves where all have one digit.
      if (!__syncthreads_or((int)(differ >> shift & 255))) continue;
      u32 digit[ITEMS], rank[ITEMS];
#pragma unroll
      for (int i = 0; i < ITEMS; i++) {
        // What is behind the row stays there.
        digit[i] = first + i * 32 < length ? digit_of<D>(value[i], shift) : 255;
      }
      rank_in_warp<ITEMS>(digit, rank, counts[warp]);
      __syncthreads();
      u32 before = sum_before(count_of_digit(counts), sums);
      place_of_digit(counts, before);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < ITEMS; i++) {
        u32 place = counts[warp][digit[i]] + rank[i];
        values[place] = value[i];
        if (INDEXED) indices[place] = index[i];
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < ITEMS; i++) {
        value[i] = values[first + i * 32];
        if (INDEXED) index[i] = indices[first + i * 32];
      }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      int j = first + i * 32;
      if (j < length) {
        if constexpr (INDEXED) out[at[1] + j * line.out_step] = index[i];
        else out[at[1] + j * line.out_step] = value[i];
      }
    }
  }
}
