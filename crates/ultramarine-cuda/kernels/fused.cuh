// Fused programs. The host writes `FusedFunction`, which makes elements of the outputs from elements of the inputs,
// and the kernel, which moves packs of V elements between memory and that function by what is here. An output may be
// the memory of an input with the same places: a thread reads all its elements before it writes one.

#define FUSED_THREADS 256

template <int C> struct FusedConstants { u64 bits[C]; };

// A constant as it is stored.
template <class D>
INLINE typename D::T fused_constant(u64 bits) {
  union { u64 bits; typename D::T x; } both;
  both.bits = bits;
  return both.x;
}

template <class T, int V>
struct __align__(sizeof(T) * V < 16 ? sizeof(T) * V : 16) FusedPack {
  union {
    T at[V];
    u32 pair[sizeof(T) * V < 4 ? 1 : sizeof(T) * V / 4];  // of halves
  };
};

// Pairs of halves in a word. Their sums, differences and products are what float32 gives, rounded: with 24 bits, two roundings
// are one (S. A. Figueroa, When is double rounding innocuous?, 1995).

template <class D>
INLINE float pair_up(u32 x, int i) {
  typename D::T one;
  one.bits = (u16)(i ? x >> 16 : x);
  return D::up(one);
}
#if defined(__EMULATED_CUDA__) || __CUDA_ARCH__ < 900
template <class D>
INLINE u32 pair_down(float a, float b) { return D::down(a).bits | (u32)D::down(b).bits << 16; }
#define PAIRS(name, sign)                                                                      \
  template <class D>                                                                           \
  INLINE u32 pair_##name(u32 a, u32 b) {                                                       \
    return pair_down<D>(pair_up<D>(a, 0) sign pair_up<D>(b, 0), pair_up<D>(a, 1) sign pair_up<D>(b, 1)); \
  }
PAIRS(add, +)
PAIRS(subtract, -)
PAIRS(multiply, *)
#undef PAIRS
#else
template <class D>
INLINE u32 pair_down(float a, float b) {
  u32 both;
  if constexpr (Same<D, BF16>::value) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
  return both;
}
#define PAIRS(name, ptx)                                                                                     \
  template <class D>                                                                                         \
  INLINE u32 pair_##name(u32 a, u32 b) {                                                                     \
    u32 both;                                                                                                \
    if constexpr (Same<D, BF16>::value) asm(ptx ".rn.bf16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));     \
    else asm(ptx ".rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));                                     \
    return both;                                                                                             \
  }
PAIRS(add, "add")
PAIRS(subtract, "sub")
PAIRS(multiply, "mul")
#undef PAIRS
#endif

// The pack at element i of p, which is aligned.
template <class T, int V>
INLINE void fused_load(FusedPack<T, V> &x, const T *p, i64 i) { x = *(const FusedPack<T, V> *)(p + i); }
template <class T, int V>
INLINE void fused_store(const FusedPack<T, V> &x, T *p, i64 i) { *(FusedPack<T, V> *)(p + i) = x; }
// Any pack of n elements. Behind the last one, the last one is read and nothing is written.
template <class T, int V>
INLINE void fused_load_last(FusedPack<T, V> &x, const T *p, i64 i, i64 n) {
#pragma unroll
  for (int v = 0; v < V; v++) x.at[v] = p[i + v < n ? i + v : n - 1];
}
template <class T, int V>
INLINE void fused_store_last(const FusedPack<T, V> &x, T *p, i64 i, i64 n) {
#pragma unroll
  for (int v = 0; v < V; v++) {
    if (i + v < n) p[i + v] = x.at[v];
  }
}

// `count` elements from p, `stride` apart; `whole`: an aligned pack. What is behind the last is read as the first.
template <class T, int V, class I>
INLINE void fused_load(FusedPack<T, V> &x, const T *p, I stride, bool whole, int count) {
  if (whole) {
    x = *(const FusedPack<T, V> *)p;
  } else if (stride == 0) {
    T one = *p;
#pragma unroll
    for (int v = 0; v < V; v++) x.at[v] = one;
  } else {
#pragma unroll
    for (int v = 0; v < V; v++) x.at[v] = p[v < count ? v * stride : (I)0];
  }
}
template <class T, int V, class I>
INLINE void fused_store(const FusedPack<T, V> &x, T *p, I stride, bool whole, int count) {
  if (whole) {
    *(FusedPack<T, V> *)p = x;
  } else {
#pragma unroll
    for (int v = 0; v < V; v++) {
      if (v < count) p[v * stride] = x.at[v];
    }
  }
}

// Mirrors `Layout::words`. Rows are the outer axes together, columns the innermost axis, which is cut into packs.
// A block does a tile: 2^shift packs beside each other in each of its lines.
template <int K, int N>
struct FusedWalk {
  i64 rows, columns, packs;
  i64 tiles, all;  // in a row of tiles, and all
  i64 shift, axes;
  u64 whole;       // bit k: tensor k has aligned packs
  i64 size[N];
  i64 inner[K];
  i64 stride[K][N];
};

// Where tensors have element `column` of a row.
template <int K, int N, class I>
INLINE void fused_place(const FusedWalk<K, N> &w, I row, I column, I (&at)[K]) {
#pragma unroll
  for (int k = 0; k < K; k++) at[k] = column * (I)w.inner[k];
  for (int d = (int)w.axes - 1; d >= 0; d--) {
    I next = 0;
    if (d > 0) next = divide_whole(row, (I)w.size[d]);
    I index = row - next * (I)w.size[d];
#pragma unroll
    for (int k = 0; k < K; k++) at[k] += index * (I)w.stride[k][d];
    row = next;
  }
}

// Row and first column of the thread's pack in a tile; false: it has none.
template <int V, int K, int N, class I>
INLINE bool fused_pack(const FusedWalk<K, N> &w, I tile, I &row, I &column) {
  I down = w.tiles == 1 ? tile : divide_whole(tile, (I)w.tiles), across = tile - down * (I)w.tiles;
  int shift = (int)w.shift, lane = threadIdx.x & ((1 << shift) - 1), line = threadIdx.x >> shift;
  I pack = (across << shift) + lane;
  row = down * (FUSED_THREADS >> shift) + line;
  column = pack * V;
  return tile < (I)w.all && pack < (I)w.packs && row < (I)w.rows;
}

// A command among several, whose tensors are one row each: their addresses, its elements and its first block.
template <int K>
struct FusedPart {
  u64 at[K];
  i64 n;
  u32 begin, aligned;
};
template <int K, int P>
struct FusedMany {
  FusedPart<K> part[P];
  i64 count;
};

// The part of this block: the last that begins no later.
template <int K, int P>
INLINE int fused_part(const FusedMany<K, P> &many) {
  int part = 0;
#pragma unroll
  for (int step = 32; step > 0; step /= 2) {
    if (part + step < (int)many.count && many.part[part + step].begin <= blockIdx.x) part += step;
  }
  return part;
}
