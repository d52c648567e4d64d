// PARTITION and ARG_PARTITION of long rows: the key of the rank is found by its digits, from the highest; then elements
// are divided into those below it, those that have it, and those above, each in the order in which they were. So the
// result is the same however many blocks share a row.
//
// Each pass counts, for one digit, the elements whose known bits are those of the key sought. The next digit begins at
// the highest bit in which these differ at all, and once few are left they are listed and read from there.

const int PARTITION_THREADS = 512, PARTITION_WARPS = PARTITION_THREADS / 32;

template <class D> struct Digit {
  typedef typename Unsigned<sizeof(typename D::T)>::K K;
  static const int key_bits = 8 * sizeof(K), bits = key_bits < 11 ? key_bits : 11, values = 1 << bits;
  static const int passes = (key_bits + bits - 1) / bits;
};

// What is known of the key: `prefix` in the bits of `mask`, which are the highest.
struct Target {
  u64 prefix;
  u64 mask;
  u64 rank;   // among the elements that have the prefix
  u64 count;  // of them
  int shift;  // of the next digit
  int done;   // they are equal, or there is one
};

template <class D>
INLINE Target first_target(u64 rank, i64 length) {
  Target t;
  t.prefix = t.mask = 0;
  t.rank = rank;
  t.count = (u64)length;
  t.shift = Digit<D>::key_bits - Digit<D>::bits;
  t.done = 0;
  return t;
}

// The digit that has the rank.
struct Found {
  u64 before;
  u64 count;
  int digit;
};

// ---- sums of a block ---------------------------------------------------------------------------------------------

INLINE u64 sum_of_warp(u64 x) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(EVERYONE, x, by);
  return x;
}

INLINE u64 sum_of_block(u64 x, u64 *sums) {
  x = sum_of_warp(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = x;
  __syncthreads();
  x = 0;
#pragma unroll
  for (int k = 0; k < PARTITION_WARPS; k++) x += sums[k];
  return x;
}

// Which digit has a rank, by the counts of each; what `found` is holds for all threads behind.
template <int VALUES, class C>
INLINE void find_digit(const C *counts, u64 rank, u64 *sums, Found *found) {
  const int each = VALUES > PARTITION_THREADS ? VALUES / PARTITION_THREADS : 1, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = (int)threadIdx.x * each;
  u64 count[each], own = 0;
#pragma unroll
  for (int i = 0; i < each; i++) {
    count[i] = first + i < VALUES ? (u64)counts[first + i] : 0;
    own += count[i];
  }
  u64 before = own;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    u64 other = __shfl_up_sync(EVERYONE, before, by);
    if (lane >= by) before += other;
  }
  __syncthreads();
  if (lane == 31) sums[warp] = before;
  __syncthreads();
  before -= own;
#pragma unroll
  for (int k = 0; k < PARTITION_WARPS; k++) before += k < warp ? sums[k] : 0;
#pragma unroll
  for (int i = 0; i < each; i++) {
    if (before <= rank && rank < before + count[i]) {
      found->before = before;
      found->count = count[i];
      found->digit = first + i;
    }
    before += count[i];
  }
  __syncthreads();
}

// What is known with a further digit. `ones` and `zeros` are the bits that are set, and that are not, in any of the
// keys that were counted.
template <class D>
INLINE Target further(Target t, const Found &found, u64 ones, u64 zeros) {
  t.rank -= found.before;
  t.count = found.count;
  t.prefix |= (u64)found.digit << t.shift;
  t.mask |= ~0ull << t.shift;
  u64 differ = ones & zeros & ~t.mask;
  t.done = t.count == 1 || differ == 0;
  if (!t.done) {
    int highest = 63 - __clzll((i64)differ);
    u64 above = ~((2ull << highest) - 1);
    t.prefix |= ones & above & ~t.mask;
    t.mask |= above;
    t.shift = highest + 1 > Digit<D>::bits ? highest + 1 - Digit<D>::bits : 0;
  }
  return t;
}

// ---- counts ------------------------------------------------------------------------------------------------------

// Counts the digits of the keys that have the target's prefix, and may list these keys. All lanes of a warp call it
// together.
template <class D>
struct Counter {
  typedef typename Digit<D>::K K;
  K prefix, mask, ones, zeros;
  int shift;
  u32 *counts;
  K *list;       // where the keys go, or null
  u32 *listed;   // how many did

  __device__ __forceinline__ Counter(const Target &t, u32 *counts, K *list, u32 *listed)
      : prefix((K)t.prefix), mask((K)t.mask), ones(0), zeros(0), shift(t.shift), counts(counts), list(list), listed(listed) {}

  __device__ __forceinline__ void add(bool mine, K key) {
    const int lane = threadIdx.x & 31;
    bool fits = mine && (K)(key & mask) == prefix;
    u32 digit = (u32)(key >> shift) & (Digit<D>::values - 1), other = __shfl_sync(EVERYONE, digit, 0);
    // High digits are often all the same; then one lane counts for all.
    if (__all_sync(EVERYONE, fits && digit == other)) {
      if (lane == 0) atomicAdd(&counts[digit], 32u);
    } else if (fits) {
      atomicAdd(&counts[digit], 1u);
    }
    if (fits) {
      ones |= key;
      zeros |= (K)~key;
    }
    if (list) {
      u32 those = __ballot_sync(EVERYONE, fits);
      if (those) {
        u32 at = 0;
        if (lane == 0) at = atomicAdd(listed, (u32)__popc(those));
        at = __shfl_sync(EVERYONE, at, 0);
        if (fits) list[at + __popc(those & ((1u << lane) - 1))] = key;
      }
    }
  }

  // The bits seen by all threads; `common` was zero.
  __device__ __forceinline__ void share(u64 *common) {
    u64 any[2] = {ones, zeros};
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
      for (int by = 16; by > 0; by /= 2) any[k] |= __shfl_xor_sync(EVERYONE, any[k], by);
      if ((threadIdx.x & 31) == 0 && any[k]) atomicOr(&common[k], any[k]);
    }
  }
};

template <class T> struct __align__(16) Sixteen { T v[16 / sizeof(T)]; };

// All elements of a row's part are counted, by a block.
template <class D>
INLINE void count_row(const typename D::T *from, i64 step, i64 size, Counter<D> &counter) {
  typedef typename D::T T;
  const int t = (int)threadIdx.x;
  if (step == 1) {
    const int each = 16 / sizeof(T), ahead = sizeof(T) < 4 ? 2 : 4;
    i64 head = (i64)(((0 - (u64)from) & 15) / sizeof(T));
    if (head > size) head = size;
    const i64 packs = (size - head) / each;
    if (t < 32) {
      // What is before and behind the packs is less than two of them.
      bool mine = t < (int)(size - packs * each);
      T x = from[mine ? t < head ? t : packs * each + t : 0];
      counter.add(mine, key_of<D>(x));
    }
    const Sixteen<T> *all = (const Sixteen<T> *)(from + head);
    for (i64 base = 0; base < packs; base += PARTITION_THREADS * ahead) {
      Sixteen<T> pack[ahead];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        i64 j = base + k * PARTITION_THREADS + t;
        pack[k] = all[j < packs ? j : base];
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        bool mine = base + k * PARTITION_THREADS + t < packs;
#pragma unroll
        for (int e = 0; e < each; e++) counter.add(mine, key_of<D>(pack[k].v[e]));
      }
    }
  } else {
    const int ahead = 8;
    for (i64 base = 0; base < size; base += PARTITION_THREADS * ahead) {
      T x[ahead];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        i64 j = base + k * PARTITION_THREADS + t;
        x[k] = from[(j < size ? j : base) * step];
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) counter.add(base + k * PARTITION_THREADS + t < size, key_of<D>(x[k]));
    }
  }
}

template <class D>
INLINE void count_list(const typename Digit<D>::K *list, i64 size, Counter<D> &counter) {
  for (i64 base = 0; base < size; base += PARTITION_THREADS) {
    i64 j = base + threadIdx.x;
    counter.add(j < size, list[j < size ? j : base]);
  }
}

// ---- the division ------------------------------------------------------------------------------------------------

// Where a row goes, and the key it is divided by.
template <class D, bool INDEXED> struct Division {
  typename Result<D, INDEXED>::T *out;
  i64 step;
  typename Digit<D>::K prefix, mask;
  i64 place[3];  // of the next element below, equal, above
};

// Writes a tile, of which a warp has 32 * ITEMS elements that lie together. `sums` has room for two numbers of each
// warp, and is another one than that of the tile before.
template <class D, bool INDEXED, int ITEMS>
INLINE void divide_tile(const typename D::T (&value)[ITEMS], i64 first, int size, Division<D, INDEXED> &to, u32 *sums) {
  typedef typename Digit<D>::K K;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, start = warp * (32 * ITEMS);
  const u32 lower = (1u << lane) - 1;
  u32 below = 0, equal = 0, belows = 0, equals = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    bool mine = start + i * 32 + lane < size;
    K key = (K)(key_of<D>(value[i]) & to.mask);
    bool less = mine && key < to.prefix, same = mine && key == to.prefix;
    belows += __popc(__ballot_sync(EVERYONE, less));
    equals += __popc(__ballot_sync(EVERYONE, same));
    below |= (u32)less << i;
    equal |= (u32)same << i;
  }
  if (lane == 0) {
    sums[warp] = belows;
    sums[PARTITION_WARPS + warp] = equals;
  }
  __syncthreads();
  // Half a warp sums each.
  u32 own = sums[lane], sum = own;
#pragma unroll
  for (int by = 1; by < PARTITION_WARPS; by *= 2) {
    u32 other = __shfl_up_sync(EVERYONE, sum, by);
    if ((lane & (PARTITION_WARPS - 1)) >= by) sum += other;
  }
  const u32 before = sum - own;
  const u32 below_before = __shfl_sync(EVERYONE, before, warp), equal_before = __shfl_sync(EVERYONE, before, PARTITION_WARPS + warp);
  const u32 below_all = __shfl_sync(EVERYONE, sum, PARTITION_WARPS - 1), equal_all = __shfl_sync(EVERYONE, sum, 31);
  // Of the next elements of this warp, behind those of the tile.
  int behind[3] = {(int)below_before, (int)equal_before,
                   (start < size ? start : size) - (int)(below_before + equal_before)};
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const int j = start + i * 32 + lane;
    const bool mine = j < size, less = below >> i & 1, same = equal >> i & 1;
    const u32 lesser = __ballot_sync(EVERYONE, less), sames = __ballot_sync(EVERYONE, same);
    const u32 others = __ballot_sync(EVERYONE, mine) & ~(lesser | sames);
    if (mine) {
      i64 at = less ? to.place[0] + (behind[0] + __popc(lesser & lower))
                    : same ? to.place[1] + (behind[1] + __popc(sames & lower))
                           : to.place[2] + (behind[2] + __popc(others & lower));
      if constexpr (INDEXED) to.out[at * to.step] = (u32)(first + j);
      else to.out[at * to.step] = value[i];
    }
    behind[0] += __popc(lesser);
    behind[1] += __popc(sames);
    behind[2] += __popc(others);
  }
  to.place[0] += below_all;
  to.place[1] += equal_all;
  to.place[2] += size - (int)(below_all + equal_all);
}

template <class D, int ITEMS>
INLINE void load_tile(typename D::T (&value)[ITEMS], const typename D::T *from, i64 step, int size) {
  const int start = (threadIdx.x >> 5) * (32 * ITEMS) + (threadIdx.x & 31);
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    int j = start + i * 32;
    value[i] = from[(j < size ? j : 0) * step];
  }
}

// `start` is the index of the part's first element in its row.
template <class D, bool INDEXED>
INLINE void divide_part(const typename D::T *from, i64 step, i64 start, i64 size, Division<D, INDEXED> &to,
                        u32 (*sums)[2 * PARTITION_WARPS]) {
  const int items = sizeof(typename D::T) == 8 ? 8 : 12, tile = PARTITION_THREADS * items;
  int turn = 0;
  for (i64 base = 0; base < size; base += tile, turn ^= 1) {
    const int here = size - base < tile ? (int)(size - base) : tile;
    typename D::T value[items];
    load_tile<D, items>(value, from + base * step, step, here);
    divide_tile<D, INDEXED, items>(value, start + base, here, to, sums[turn]);
  }
}

// ---- rows that a block has each ------------------------------------------------------------------------------------

// Passes after the first find a row that is not too long in the caches.
template <class D, bool INDEXED, int N>
static __device__ __forceinline__ void partition_row(const typename D::T *in, typename Result<D, INDEXED>::T *out,
                                                  const Line &line, u64 rank, const Walk<2, N> &w) {
  typedef typename D::T T;
  typedef typename Digit<D>::K K;
  const int room = sizeof(K) >= 4 ? 2048 : 1;
  __shared__ u32 counts[Digit<D>::values];
  __shared__ K list[room];
  __shared__ u32 listed;
  __shared__ u64 sums[PARTITION_WARPS], common[2];
  __shared__ u32 tile_sums[2][2 * PARTITION_WARPS];
  __shared__ Found found;
  const int t = (int)threadIdx.x;
  for (i64 row = blockIdx.x; row < w.n; row += gridDim.x) {
    i64 at[2];
    locate<2, N, i64>(w, row, at);
    const T *from = in + at[0];
    Target target = first_target<D>(rank, line.length);
    u64 in_list = 0;
    while (!target.done) {
      for (int i = t; i < Digit<D>::values; i += PARTITION_THREADS) counts[i] = 0;
      if (t < 2) common[t] = 0;
      if (t == 0) listed = 0;
      __syncthreads();
      const bool lists = room > 1 && in_list == 0 && target.mask != 0 && target.count <= room;
      Counter<D> counter(target, counts, lists ? list : (K *)0, &listed);
      if (in_list) count_list<D>(list, (i64)in_list, counter);
      else count_row<D>(from, line.in_step, line.length, counter);
      counter.share(common);
      __syncthreads();
      find_digit<Digit<D>::values>(counts, target.rank, sums, &found);
      if (lists) in_list = target.count;
      target = further<D>(target, found, common[0], common[1]);
      __syncthreads();
    }
    const i64 below = (i64)(rank - target.rank);
    Division<D, INDEXED> to = {out + at[1], line.out_step, (K)target.prefix, (K)target.mask,
                               {0, below, below + (i64)target.count}};
    divide_part<D, INDEXED>(from, line.in_step, 0, line.length, to, tile_sums);
    __syncthreads();
  }
}

// ---- rows that blocks share ----------------------------------------------------------------------------------------

// What a block knows of its chunk of a row.
struct Share {
  u64 below;
  u64 fits;    // elements with the target's prefix
  u64 listed;  // how many its list has; 0: there is none
};

// Mirrors the parts of `Partition::share`: addresses in the workspace.
struct PartitionParts {
  i64 rows;
  i64 chunks;       // of a row
  i64 chunk;        // elements of each but the last
  u64 *counts;      // by pass and row: of each digit; then the bits that are set and those that are not
  Target *targets;  // by pass, from the second, and row
  Share *shares;    // by row and chunk
  u32 *own;         // by row and chunk: of each digit, of the last pass
  void *lists;      // by row and chunk: keys of a quarter of the chunk
};

// Passes from 0 count; each begins with what the one before found. The last one, of number `passes`, does this alone.
template <class D, int N>
static __device__ __forceinline__ void partition_count(const typename D::T *in, const Line &line, const PartitionParts &parts,
                                                    u64 rank, int pass, const Walk<2, N> &w) {
  typedef typename Digit<D>::K K;
  const int values = Digit<D>::values;
  __shared__ u32 counts[values];
  __shared__ u32 listed;
  __shared__ u64 sums[PARTITION_WARPS], common[2];
  __shared__ Found found;
  const int t = (int)threadIdx.x;
  const i64 block = blockIdx.x, row = divide_whole(block, parts.chunks), c = block - row * parts.chunks;
  const i64 start = c * parts.chunk, size = line.length - start < parts.chunk ? line.length - start : parts.chunk;
  u32 *own = parts.own + block * values;
  Target target = first_target<D>(rank, line.length);
  Share share = {0, (u64)size, 0};
  if (pass > 1) target = parts.targets[(pass - 2) * parts.rows + row];
  if (pass > 0) share = parts.shares[block];
  const bool was_done = target.done;
  if (pass > 0) {
    if (!was_done) {
      const u64 *all = parts.counts + ((pass - 1) * parts.rows + row) * (values + 2);
      find_digit<values>(all, target.rank, sums, &found);
      if (share.fits) {
        u64 below = 0;
        for (int i = t; i < found.digit; i += PARTITION_THREADS) below += own[i];
        share.below += sum_of_block(below, sums);
        share.fits = own[found.digit];
      }
      target = further<D>(target, found, all[values], all[values + 1]);
    }
    if (c == 0 && t == 0) parts.targets[(pass - 1) * parts.rows + row] = target;
  }
  if (was_done) return;
  const bool counting = !target.done && pass < Digit<D>::passes && share.fits;
  const u64 in_list = share.listed, room = (u64)parts.chunk / 4;
  const bool lists = counting && pass > 0 && pass + 1 < Digit<D>::passes && !in_list && share.fits <= room;
  if (lists) share.listed = share.fits;
  if (t == 0) parts.shares[block] = share;
  if (!counting) return;

  for (int i = t; i < values; i += PARTITION_THREADS) counts[i] = 0;
  if (t < 2) common[t] = 0;
  if (t == 0) listed = 0;
  __syncthreads();
  K *list = (K *)parts.lists + block * (i64)room;
  Counter<D> counter(target, counts, lists ? list : (K *)0, &listed);
  if (in_list) {
    count_list<D>(list, (i64)in_list, counter);
  } else {
    i64 at[2];
    locate<2, N, i64>(w, row, at);
    count_row<D>(in + at[0] + start * line.in_step, line.in_step, size, counter);
  }
  counter.share(common);
  __syncthreads();
  u64 *all = parts.counts + (pass * parts.rows + row) * (values + 2);
  for (int i = t; i < values; i += PARTITION_THREADS) {
    u32 count = counts[i];
    own[i] = count;
    if (count) atomicAdd(&all[i], (u64)count);
  }
  if (t < 2) atomicOr(&all[values + t], common[t]);
}

template <class D, bool INDEXED, int N>
static __device__ __forceinline__ void partition_divide(const typename D::T *in, typename Result<D, INDEXED>::T *out,
                                                     const Line &line, const PartitionParts &parts, u64 rank,
                                                     const Walk<2, N> &w) {
  typedef typename Digit<D>::K K;
  __shared__ u64 sums[PARTITION_WARPS];
  __shared__ u32 tile_sums[2][2 * PARTITION_WARPS];
  const i64 row = divide_whole((i64)blockIdx.x, parts.chunks), c = blockIdx.x - row * parts.chunks;
  const i64 start = c * parts.chunk, size = line.length - start < parts.chunk ? line.length - start : parts.chunk;
  const Target target = parts.targets[(Digit<D>::passes - 1) * parts.rows + row];
  u64 below = 0, equal = 0;
  for (i64 i = threadIdx.x; i < c; i += PARTITION_THREADS) {
    const Share share = parts.shares[row * parts.chunks + i];
    below += share.below;
    equal += share.fits;
  }
  below = sum_of_block(below, sums);
  equal = sum_of_block(equal, sums);
  const i64 all_below = (i64)(rank - target.rank);
  i64 at[2];
  locate<2, N, i64>(w, row, at);
  Division<D, INDEXED> to = {out + at[1], line.out_step, (K)target.prefix, (K)target.mask,
                             {(i64)below, all_below + (i64)equal,
                              all_below + (i64)target.count + start - (i64)(below + equal)}};
  divide_part<D, INDEXED>(in + at[0] + start * line.in_step, line.in_step, start, size, to, tile_sums);
}
