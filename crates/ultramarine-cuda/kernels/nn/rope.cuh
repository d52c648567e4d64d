// ROPE: pairs of elements of the last axis rotated by angles of which there are the cosines and sines.

// The left and the right elements of V pairs: V neighbours each, so far apart.
template <class T, int V, bool NEIGHBOURS>
struct Pairs {
  Pack<T, V> left, right;
  __device__ __forceinline__ void load(const T *p, i64 apart) {
    left = *(const Pack<T, V> *)p;
    right = *(const Pack<T, V> *)(p + apart);
  }
  __device__ __forceinline__ void save(T *p, i64 apart) const {
    store(p, left);
    store(p + apart, right);
  }
  __device__ __forceinline__ T &a(int v) { return left.at[v]; }
  __device__ __forceinline__ T &b(int v) { return right.at[v]; }
};

// The elements of a pair are neighbours.
template <class T, int V>
struct Pairs<T, V, true> {
  Pack<T, 2 * V> both;
  __device__ __forceinline__ void load(const T *p, i64) { both = *(const Pack<T, 2 * V> *)p; }
  __device__ __forceinline__ void save(T *p, i64) const { store(p, both); }
  __device__ __forceinline__ T &a(int v) { return both.at[2 * v]; }
  __device__ __forceinline__ T &b(int v) { return both.at[2 * v + 1]; }
};

// A rotation: input, output, cosines and sines walked together, V pairs at each place. A thread has U rows that rotate by
// the same angles under way, which lie `in_row` and `out_row` apart.
template <class D, int N>
struct Rotation {
  const typename D::T *in;
  typename D::T *out;
  const typename D::A *cos, *sin;
  i64 in_apart, out_apart, in_row, out_row;
  Walk<4, N> walk;
};

template <class D, int V, int U, bool NEIGHBOURS, int N, class I, int M>
static __device__ __forceinline__ void rope_rotate(const Several<Rotation<D, N>, M> &several, i32 inverse) {
  typedef typename D::A A;
  const Rotation<D, N> &r = several.own();
  const I i = (I)blockIdx.x * THREADS + (I)threadIdx.x;
  if (i >= (I)r.walk.n) return;
  I at[4];
  locate<4, N, I>(r.walk, i, at);
  Pairs<typename D::T, V, NEIGHBOURS> rows[U];
#pragma unroll
  for (int u = 0; u < U; u++) rows[u].load(r.in + at[0] + u * r.in_row, r.in_apart);
  Pack<A, V> c = *(const Pack<A, V> *)(r.cos + at[2]), s = *(const Pack<A, V> *)(r.sin + at[3]);
#pragma unroll
  for (int v = 0; v < V; v++) s.at[v] = inverse ? -s.at[v] : s.at[v];
#pragma unroll
  for (int u = 0; u < U; u++) {
#pragma unroll
    for (int v = 0; v < V; v++) {
      A a = D::up(rows[u].a(v)), b = D::up(rows[u].b(v));
      rows[u].a(v) = D::down(a * c.at[v] - b * s.at[v]);
      rows[u].b(v) = D::down(a * s.at[v] + b * c.at[v]);
    }
    rows[u].save(r.out + at[1] + u * r.out_row, r.out_apart);
  }
}
