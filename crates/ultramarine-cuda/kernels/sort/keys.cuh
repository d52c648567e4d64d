// Numbers sorted by their keys, those of equal keys in their order. K is an unsigned integer; keys and numbers have
// this type.

const int SORT_THREADS = 256, SORT_EACH = 8, SORT_TILE = SORT_THREADS * SORT_EACH, SORT_WARPS = SORT_THREADS / 32;

// Up to 2048 of them by one block: a bitonic sort of key and number together. `padded` is a power of two.
static __device__ __forceinline__ void sort_few(const u32 *keys, u32 *sorted, u32 *order, int n, int padded) {
  __shared__ u64 all[2048];
  for (int i = threadIdx.x; i < padded; i += blockDim.x) all[i] = i < n ? (u64)keys[i] << 32 | (u32)i : ~0ull;
  for (int size = 2; size <= padded; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int pair = threadIdx.x; pair < padded / 2; pair += blockDim.x) {
        int i = pair / step * 2 * step + pair % step;
        u64 low = all[i], high = all[i + step];
        bool rises = (i & size) == 0;
        if ((low > high) == rises) all[i] = high, all[i + step] = low;
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sorted[i] = (u32)(all[i] >> 32);
    order[i] = (u32)all[i];
  }
}

// One pass of a radix sort, by 8 bits from `shift` on. First, how many keys of each tile have each digit.
template <class K>
static __device__ __forceinline__ void count_digits(const K *keys, K *counts, K n, int shift, K tiles) {
  __shared__ u32 here[256];
  K tile = blockIdx.x;
  here[threadIdx.x] = 0;
  __syncthreads();
  for (int j = 0; j < SORT_EACH; j++) {
    K i = tile * SORT_TILE + j * SORT_THREADS + threadIdx.x;
    if (i < n) atomicAdd(&here[(u32)(keys[i] >> shift) & 255], 1u);
  }
  __syncthreads();
  counts[threadIdx.x * tiles + tile] = here[threadIdx.x];
}

// The running sum over the threads of a block, without the thread's own value; `total` is that of all.
template <class K>
static __device__ __forceinline__ K sum_before(K value, K *total) {
  __shared__ K sums[SORT_THREADS];
  int t = threadIdx.x;
  __syncthreads();
  sums[t] = value;
  for (int step = 1; step < SORT_THREADS; step *= 2) {
    __syncthreads();
    K before = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += before;
  }
  __syncthreads();
  *total = sums[SORT_THREADS - 1];
  return sums[t] - value;
}

// A block for each digit: where each tile's keys begin among those of the digit, and how many it has in all.
template <class K>
static __device__ __forceinline__ void sum_digits(K *counts, K *totals, K tiles) {
  K *row = counts + (K)blockIdx.x * tiles, sum = 0;
  for (K first = 0; first < tiles; first += SORT_THREADS) {
    K i = first + threadIdx.x, total, before = sum_before<K>(i < tiles ? row[i] : 0, &total);
    if (i < tiles) row[i] = sum + before;
    sum += total;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// Keys and numbers go where they belong. Without `numbers` they are those from 0 on.
template <class K>
static __device__ __forceinline__ void move_digits(const K *keys, const K *numbers, K *keys_to, K *numbers_to,
                                                   const K *counts, const K *totals, K n, int shift, K tiles) {
  __shared__ u32 seen[SORT_WARPS][256];
  __shared__ K begin[256];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  K tile = blockIdx.x, key[SORT_EACH], total;
  u32 rank[SORT_EACH], digit[SORT_EACH];
  begin[t] = sum_before<K>(totals[t], &total) + counts[t * tiles + tile];
  for (int w = 0; w < SORT_WARPS; w++) seen[w][t] = 0;
  __syncthreads();
  // A warp has keys that lie together; those of one digit are counted in their order.
#pragma unroll
  for (int j = 0; j < SORT_EACH; j++) {
    K i = tile * SORT_TILE + warp * 32 * SORT_EACH + j * 32 + lane;
    key[j] = i < n ? keys[i] : 0;
    digit[j] = i < n ? (u32)(key[j] >> shift) & 255 : 256;
    u32 equal = __match_any_sync(0xffffffff, digit[j]);
    u32 before = digit[j] < 256 ? seen[warp][digit[j]] : 0;
    rank[j] = before + __popc(equal & ((1u << lane) - 1));
    __syncwarp();
    if (digit[j] < 256 && (equal >> lane) == 1) seen[warp][digit[j]] = before + __popc(equal);
    __syncwarp();
  }
  __syncthreads();
  u32 sum = 0;
  for (int w = 0; w < SORT_WARPS; w++) {
    u32 count = seen[w][t];
    seen[w][t] = sum;
    sum += count;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < SORT_EACH; j++) {
    if (digit[j] == 256) continue;
    K i = tile * SORT_TILE + warp * 32 * SORT_EACH + j * 32 + lane;
    K to = begin[digit[j]] + seen[warp][digit[j]] + rank[j];
    keys_to[to] = key[j];
    numbers_to[to] = numbers ? numbers[i] : i;
  }
}
