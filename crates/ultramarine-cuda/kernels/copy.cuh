// COPY between tensors whose elements lie in different orders. Other copies are maps (elementwise/map.cuh).

// Two axes of a copy: along `j` the input's elements lie close together, along `l` the output's.
struct TransposePlane {
  i64 size_j, size_l;
  i64 in_j, in_l, out_j, out_l;  // strides
  i64 tiles_j, tiles_l;
  i64 in_packs, out_packs;  // whether every pack of P elements begins at a multiple of its bytes
};

// A block transposes a tile of 32 P by 32 P elements in shared memory, so that both sides are moved in packs of P
// elements, one beside the other. The tile holds packs along l, a row for each j; where in its row a pack lies
// depends on the row, so that the packs of a column are in different banks.
template <class From, class To, int P, int N>
static __device__ __forceinline__ void transpose_tiles(const typename From::T *in, typename To::T *out, const TransposePlane &t,
                                                   const Walk<2, N> &w) {
  typedef Pack<typename From::T, P> Read;
  typedef Pack<typename To::T, P> Written;
  const int SIDE = 32 * P, ROWS = THREADS / 32, EACH = 32 / ROWS;
  __shared__ Written tile[SIDE * 32];
  int lane = threadIdx.x % 32, row = threadIdx.x / 32;
  i64 block = blockIdx.x, next = divide_whole(block, t.tiles_l), tile_l = block - next * t.tiles_l;
  block = next;
  next = divide_whole(block, t.tiles_j);
  i64 tile_j = block - next * t.tiles_j, at[2];
  locate<2, N, i64>(w, next, at);
  in += at[0];
  out += at[1];

  i64 j = tile_j * SIDE + P * lane;
  bool whole = t.in_packs && j + P <= t.size_j;
  Read read[EACH][P];
#pragma unroll
  for (int m = 0; m < EACH; m++) {
#pragma unroll
    for (int q = 0; q < P; q++) {
      i64 l = tile_l * SIDE + P * (row + ROWS * m) + q;
      if (l >= t.size_l) continue;
      const typename From::T *from = in + (l * t.in_l + j * t.in_j);
      if (whole) {
        read[m][q] = *(const Read *)from;
      } else {
#pragma unroll
        for (int e = 0; e < P; e++) {
          if (j + e < t.size_j) read[m][q].at[e] = from[e * t.in_j];
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < EACH; m++) {
#pragma unroll
    for (int e = 0; e < P; e++) {
      Written pack;
#pragma unroll
      for (int q = 0; q < P; q++) pack.at[q] = convert<To, From>(read[m][q].at[e]);
      tile[(P * lane + e) * 32 + ((row + ROWS * m) ^ lane)] = pack;
    }
  }
  __syncthreads();

  i64 l = tile_l * SIDE + P * lane;
  whole = t.out_packs && l + P <= t.size_l;
#pragma unroll
  for (int r = row; r < SIDE; r += ROWS) {
    i64 to_j = tile_j * SIDE + r;
    if (to_j >= t.size_j) break;
    Written pack = tile[r * 32 + (lane ^ (r / P))];
    typename To::T *to = out + (to_j * t.out_j + l * t.out_l);
    if (whole) {
      *(Written *)to = pack;
    } else {
#pragma unroll
      for (int q = 0; q < P; q++) {
        if (l + q < t.size_l) to[q * t.out_l] = pack.at[q];
      }
    }
  }
}
