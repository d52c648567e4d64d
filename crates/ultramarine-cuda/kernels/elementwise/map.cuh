// Functions of up to three tensors, element by element. `F::of(x, y, z)` is the function, of elements as they are
// stored; an input that there is not is `Absent`. Tensors are moved in packs of V elements, up to 16 bytes at once,
// and each thread has U packs of every tensor under way. SCALARS has bit k if input k has one element for a whole
// pack. An output may be the memory of an input with the same places: a thread reads its elements before it writes.

static const int THREADS = 256;

struct Absent { typedef u8 T; };

template <class T, int V>
struct __align__(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack { T at[V]; };

// Words in which a pack is written, by an instruction of ours: the compiler writes some packs element by element.
template <int BYTES> struct WordsOf { typedef uint4 W; };
template <> struct WordsOf<8> { typedef uint2 W; };
template <> struct WordsOf<4> { typedef u32 W; };
template <> struct WordsOf<2> { typedef u16 W; };
template <> struct WordsOf<1> { typedef u8 W; };

INLINE void store_word(u8 *p, u8 word) { *p = word; }
INLINE void store_word(u16 *p, u16 word) { *p = word; }
INLINE void store_word(u32 *p, u32 word) { *p = word; }
#ifdef __EMULATED_CUDA__
INLINE void store_word(uint2 *p, uint2 word) { *p = word; }
INLINE void store_word(uint4 *p, uint4 word) { *p = word; }
#else
INLINE void store_word(uint2 *p, uint2 word) {
  u64 to = (u64)__cvta_generic_to_global(p);
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(word.x), "r"(word.y) : "memory");
}
INLINE void store_word(uint4 *p, uint4 word) {
  u64 to = (u64)__cvta_generic_to_global(p);
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}
#endif

template <class T, int V>
INLINE void store(T *p, const Pack<T, V> &pack) {
  typedef typename WordsOf<sizeof(Pack<T, V>)>::W W;
  const int COUNT = sizeof(Pack<T, V>) / sizeof(W);
  union Both {
    Pack<T, V> pack;
    W words[COUNT];
  } both;
  both.pack = pack;
#pragma unroll
  for (int k = 0; k < COUNT; k++) store_word((W *)p + k, both.words[k]);
}

// How an input's packs are read: one element for all, a pack, or nothing.
template <class D, int V, bool SCALAR>
struct Operand {
  typedef typename D::T T;
  template <class I> INLINE Pack<T, V> load(const T *p, I i) { return *(const Pack<T, V> *)(p + i); }
};
template <class D, int V>
struct Operand<D, V, true> {
  typedef typename D::T T;
  template <class I> INLINE Pack<T, V> load(const T *p, I i) {
    T one = p[i];
    Pack<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; v++) pack.at[v] = one;
    return pack;
  }
};
template <int V, bool SCALAR>
struct Operand<Absent, V, SCALAR> {
  template <class I> INLINE Pack<u8, V> load(const u8 *, I) { return Pack<u8, V>(); }
};

template <class F, class O, int V, class X, class Y, class Z>
INLINE Pack<O, V> apply(const Pack<X, V> &x, const Pack<Y, V> &y, const Pack<Z, V> &z) {
  Pack<O, V> out;
#pragma unroll
  for (int v = 0; v < V; v++) out.at[v] = F::of(x.at[v], y.at[v], z.at[v]);
  return out;
}

// Tensors without gaps. `head` elements come before the first whole pack.
template <class F, int V, int U, int SCALARS, class O, class X, class Y, class Z>
static __device__ __forceinline__ void map_flat(typename O::T *out, const typename X::T *x, const typename Y::T *y,
                                                const typename Z::T *z, i64 n, i64 head) {
  const bool sx = SCALARS & 1, sy = SCALARS >> 1 & 1, sz = SCALARS >> 2 & 1;
  typedef Operand<X, V, sx> OX;
  typedef Operand<Y, V, sy> OY;
  typedef Operand<Z, V, sz> OZ;
  i64 packs = (n - head) / V, first = (i64)blockIdx.x * (THREADS * U) + threadIdx.x;
  if (V > 1 && blockIdx.x == 0) {
    // What is no whole pack, before and behind.
    i64 tail = head + packs * V, edge = threadIdx.x < head ? (i64)threadIdx.x : tail + (threadIdx.x - head);
    if (edge < head || (edge >= tail && edge < n)) {
      out[edge] = F::of(Operand<X, 1, sx>::load(x, sx ? 0 : edge).at[0], Operand<Y, 1, sy>::load(y, sy ? 0 : edge).at[0],
                        Operand<Z, 1, sz>::load(z, sz ? 0 : edge).at[0]);
    }
  }
  Pack<typename X::T, V> a[U];
  Pack<typename Y::T, V> b[U];
  Pack<typename Z::T, V> c[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    i64 i = head + (first + u * THREADS) * V;
    if (first + u * THREADS < packs) {
      a[u] = OX::load(x, sx ? 0 : i);
      b[u] = OY::load(y, sy ? 0 : i);
      c[u] = OZ::load(z, sz ? 0 : i);
    }
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    i64 i = head + (first + u * THREADS) * V;
    if (first + u * THREADS < packs) {
      store(out + i, apply<F, typename O::T, V>(a[u], b[u], c[u]));
    }
  }
}

// Tensors of any strides; with V above 1 the walk's last axis counts packs. Its last tensor is the output.
template <class F, int V, int U, int SCALARS, int K, int N, class I, class O, class X, class Y, class Z>
static __device__ __forceinline__ void map_walked(typename O::T *out, const typename X::T *x, const typename Y::T *y,
                                                  const typename Z::T *z, const Walk<K, N> &w) {
  typedef Operand<X, V, (SCALARS & 1) != 0> OX;
  typedef Operand<Y, V, (SCALARS >> 1 & 1) != 0> OY;
  typedef Operand<Z, V, (SCALARS >> 2 & 1) != 0> OZ;
  I first = (I)blockIdx.x * (THREADS * U) + (I)threadIdx.x;
  Pack<typename X::T, V> a[U];
  Pack<typename Y::T, V> b[U];
  Pack<typename Z::T, V> c[U];
  I to[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    I i = first + u * THREADS;
    if (i < (I)w.n) {
      I at[K];
      locate<K, N, I>(w, i, at);
      to[u] = at[K - 1];
      a[u] = OX::load(x, at[0]);
      b[u] = OY::load(y, at[K > 2 ? 1 : 0]);
      c[u] = OZ::load(z, at[K > 3 ? 2 : 0]);
    }
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (first + u * THREADS < (I)w.n) {
      store(out + to[u], apply<F, typename O::T, V>(a[u], b[u], c[u]));
    }
  }
}
