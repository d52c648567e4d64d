// Long rows: a digit of 8 bits at a time, from the lowest. All digits are counted at once; then each pass reads the
// elements, finds their ranks within a tile, learns from the tiles before it how many of each digit they have
// (looking back until one knows the sum up to itself; tiles are taken in order, so those before are under way), and
// writes them to their places. Passes in which all elements of every row have one digit are left out.
//
// C is the unsigned type that counts elements of a row, with two bits to spare.

// Mirrors `Parts` of radix.rs: addresses in the workspace.
struct Parts {
  i64 rows;
  i64 tiles;     // of a row
  u32 *control;  // a ticket for each pass, then the passes that move anything, as bits
  void *first;   // by pass, row and digit: how many, then where the first goes
  void *status;  // by pass, tile and digit: how many in the tile, or up to it
  void *values[2];
  u32 *indices[2];
};

const int RADIX_CONTROL = 8;       // tickets
const int RADIX_SECTION = 1 << 15;  // elements that a block counts

template <class D, class C, int N>
static __device__ __forceinline__ void radix_count(const typename D::T *in, const Line &line, const Parts &parts,
                                                   const Walk<2, N> &w) {
  typedef typename D::T T;
  const int passes = sizeof(T), ahead = 4;
  __shared__ u32 counts[passes][256];
  const i64 sections = (line.length + RADIX_SECTION - 1) / RADIX_SECTION;
  for (i64 task = blockIdx.x; task < w.n * sections; task += gridDim.x) {
    for (int i = threadIdx.x; i < passes * 256; i += SORT_THREADS) counts[i >> 8][i & 255] = 0;
    __syncthreads();
    i64 row = divide_whole(task, sections), start = (task - row * sections) * RADIX_SECTION, at[2];
    locate<2, N, i64>(w, row, at);
    const T *from = in + at[0] + start * line.in_step;
    const int size = line.length - start < RADIX_SECTION ? (int)(line.length - start) : RADIX_SECTION;
    for (int base = 0; base < size; base += SORT_THREADS * ahead) {
      T value[ahead];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        int j = base + k * SORT_THREADS + (int)threadIdx.x;
        if (j < size) value[k] = from[j * line.in_step];
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        bool mine = base + k * SORT_THREADS + (int)threadIdx.x < size;
        auto key = mine ? key_of<D>(value[k]) : 0;
#pragma unroll
        for (int p = 0; p < passes; p++) {
          u32 digit = (u32)(key >> (8 * p)) & 255;
          // High digits are often all the same; then one lane counts for all.
          u32 other = __shfl_sync(EVERYONE, digit, 0);
          if (__all_sync(EVERYONE, mine && digit == other)) {
            if ((threadIdx.x & 31) == 0) atomicAdd(&counts[p][digit], 32u);
          } else if (mine) {
            atomicAdd(&counts[p][digit], 1u);
          }
        }
      }
    }
    __syncthreads();
    C *all = (C *)parts.first;
    for (int i = threadIdx.x; i < passes * 256; i += SORT_THREADS) {
      u32 count = counts[i >> 8][i & 255];
      if (count) atomicAdd(&all[((i >> 8) * parts.rows + row) * 256 + (i & 255)], (C)count);
    }
    __syncthreads();
  }
}

// A block for each pass and row: counts become places.
template <class C>
static __device__ __forceinline__ void radix_places(i64 length, int passes, const Parts &parts) {
  __shared__ C sums[SORT_WARPS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 task = blockIdx.x; task < parts.rows * passes; task += gridDim.x) {
    C *first = (C *)parts.first + task * 256 + threadIdx.x, count = *first, sum = count;
    for (int by = 1; by < 32; by *= 2) {
      C other = __shfl_up_sync(EVERYONE, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    int constant = __syncthreads_or(count == (C)length);
    for (int k = 0; k < warp; k++) sum += sums[k];
    *first = sum - count;
    if (!constant && threadIdx.x == 0) atomicOr(&parts.control[RADIX_CONTROL], 1u << (int)(task / parts.rows));
    __syncthreads();
  }
}

template <class D, class C, bool INDEXED, int ITEMS, int N>
static __device__ __forceinline__ void radix_pass(const typename D::T *in, typename Result<D, INDEXED>::T *out,
                                                  const Line &line, const Parts &parts, int pass,
                                                  const Walk<2, N> &w) {
  typedef typename D::T T;
  const int tile_size = SORT_THREADS * ITEMS, shift = 8 * pass;
  const C partial = (C)1 << (8 * sizeof(C) - 2), whole = (C)2 << (8 * sizeof(C) - 2), number = partial - 1;
  __shared__ u32 counts[SORT_WARPS][256];
  __shared__ u32 sums[SORT_WARPS];
  __shared__ C places[256];
  __shared__ u32 ticket;
  __shared__ __align__(16) unsigned char stage[tile_size * (sizeof(T) > 4 || !INDEXED ? sizeof(T) : 4)];
  // The passes that move: which of them this one is tells where elements are and go.
  u32 moving = parts.control[RADIX_CONTROL];
  if (moving == 0) moving = 1;
  if (!(moving >> pass & 1)) return;
  const int order = __popc(moving & ((1u << pass) - 1));
  const bool last = moving >> pass == 1;
  if (threadIdx.x == 0) ticket = atomicAdd(&parts.control[pass], 1u);
  __syncthreads();
  const i64 tile = ticket, row = divide_whole(tile, parts.tiles), t = tile - row * parts.tiles;
  i64 at[2];
  locate<2, N, i64>(w, row, at);
  const i64 step = order == 0 ? line.in_step : 1, start = t * tile_size;
  const T *from = (order == 0 ? in + at[0] : (const T *)parts.values[(order - 1) & 1] + row * line.length) + start * step;
  const int size = line.length - start < tile_size ? (int)(line.length - start) : tile_size;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = warp * (32 * ITEMS) + lane;
  T value[ITEMS];
  u32 digit[ITEMS], place[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    int j = mine + i * 32;
    if (j < size) value[i] = from[j * step];
  }
#pragma unroll
  for (int i = 0; i < ITEMS; i++) digit[i] = mine + i * 32 < size ? digit_of<D>(value[i], shift) : 255;
  rank_in_warp<ITEMS>(digit, place, counts[warp]);
  __syncthreads();

  // From here a thread is a digit's. What is behind the row was taken for the last digit.
  u32 count = count_of_digit(counts);
  const u32 own = threadIdx.x == 255 ? count - (u32)(tile_size - size) : count;
  volatile C *status = (volatile C *)parts.status + (((i64)pass * parts.rows + row) * parts.tiles + t) * 256 + threadIdx.x;
  *status = (t == 0 ? whole : partial) | (C)own;
  u32 before = sum_before(count, sums);
  place_of_digit(counts, before);
  C earlier = 0;
  if (t > 0) {
    volatile C *look = status;
    C seen;
    do {
      look -= 256;
      do {
        seen = *look;
      } while (seen == 0);
      earlier += seen & number;
    } while (!(seen & whole));
    *status = whole | (earlier + (C)own);
  }
  const C first = ((const C *)parts.first)[((i64)pass * parts.rows + row) * 256 + threadIdx.x];
  places[threadIdx.x] = first + earlier - (C)before;
  __syncthreads();

  // Elements are put in order here first, so that those of a digit are written side by side.
  T *staged = (T *)stage;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    place[i] += counts[warp][digit[i]];
    staged[place[i]] = value[i];
  }
  __syncthreads();
  T *to = (T *)parts.values[order & 1] + row * line.length;
  C goal[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    int q = (int)threadIdx.x + i * SORT_THREADS;
    if (q < size) {
      T x = staged[q];
      goal[i] = places[digit_of<D>(x, shift)] + (C)q;
      if constexpr (!INDEXED) {
        if (last) out[at[1] + (i64)goal[i] * line.out_step] = x;
        else to[goal[i]] = x;
      } else if (!last) {
        to[goal[i]] = x;
      }
    }
  }
  if constexpr (INDEXED) {
    const u32 *source = parts.indices[(order + 1) & 1] + row * line.length + start;
    u32 *target = parts.indices[order & 1] + row * line.length;
    u32 *staged_indices = (u32 *)stage, index[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      int j = mine + i * 32;
      if (j < size) index[i] = order == 0 ? (u32)(start + j) : source[j];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      if (mine + i * 32 < size) staged_indices[place[i]] = index[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      int q = (int)threadIdx.x + i * SORT_THREADS;
      if (q < size) {
        u32 x = staged_indices[q];
        if (last) out[at[1] + (i64)goal[i] * line.out_step] = x;
        else target[goal[i]] = x;
      }
    }
  }
}
