// SCATTER and SCATTER_AXIS: updates combined into what is there. Each update has the number of its target, or
// `nowhere`, in memory; which targets have which numbers a walk says.

enum { SET, SUM, PROD, MIN, MAX };

INLINE bool is_less(complex64 x, complex64 y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }
INLINE bool is_nan(complex64 z) { return z.re != z.re || z.im != z.im; }
template <class X> INLINE bool is_less(X x, X y) { return x < y; }
template <class X> INLINE bool is_nan(X x) { return x != x; }

// Two values as one. Integers and bools take part in 64 bits, of which they keep the low ones.
template <int OP, Kind K> struct Combine {
  template <class A> INLINE A of(A x, A y) {
    if constexpr (OP == SUM && K == REAL) return x + y;
    else if constexpr (OP == SUM) return (A)((u64)x + (u64)y);
    else if constexpr (OP == PROD && K == REAL) return x * y;
    else if constexpr (OP == PROD) return (A)((u64)x * (u64)y);
    else return is_nan(x) || (!is_nan(y) && !(OP == MIN ? is_less(y, x) : is_less(x, y))) ? x : y;
  }
};
template <int OP> struct Combine<OP, BOOL> {
  template <class A> INLINE A of(A x, A y) { return OP == SUM || OP == MAX ? x | y : x & y; }
};
template <int OP> struct Combine<OP, COMPLEX> {
  INLINE complex64 of(complex64 x, complex64 y) {
    complex64 z;
    if (OP == SUM) {
      z.re = x.re + y.re, z.im = x.im + y.im;
    } else if (OP == PROD) {
      z.re = x.re * y.re - x.im * y.im, z.im = x.re * y.im + x.im * y.re;
    } else {
      z = is_nan(x) || (!is_nan(y) && (OP == MIN ? !is_less(y, x) : !is_less(x, y))) ? x : y;
    }
    return z;
  }
};
template <class D, int OP>
INLINE typename D::A combine(typename D::A x, typename D::A y) {
  if (OP == SET) return y;
  return Combine<OP, D::kind>::of(x, y);
}

// Where updates are and where they go: walks of the positions in the updates, of a slice in updates and output, of the
// targets in the output.
template <int R>
struct Places {
  Walk<1, R> positions;
  Walk<2, R> slice;
  Walk<1, R> targets;
};

// Where the slice of a position, or a target, begins.
template <int R, class I>
INLINE I begin(const Walk<1, R> &w, I number) {
  I at[1];
  locate<1, R, I>(w, number, at);
  return at[0];
}

// ---- updates of which no two have one target, or whose order does not show -------------------------------------

template <class D, int OP> struct Atomic {
  typedef typename D::T T;
  INLINE void put(T *to, T x) { *to = D::down(combine<D, OP>(D::up(*to), D::up(x))); }
};
#define ATOMIC(D, OP, CALL)                                      \
  template <> struct Atomic<D, OP> {                             \
    typedef D::T T;                                              \
    INLINE void put(T *to, T x) { CALL; }                        \
  };
ATOMIC(I32, SUM, atomicAdd(to, x))
ATOMIC(U32, SUM, atomicAdd(to, x))
ATOMIC(I64, SUM, atomicAdd((u64 *)to, (u64)x))
ATOMIC(U64, SUM, atomicAdd(to, x))
ATOMIC(I32, MIN, atomicMin(to, x))
ATOMIC(U32, MIN, atomicMin(to, x))
ATOMIC(I64, MIN, atomicMin(to, x))
ATOMIC(U64, MIN, atomicMin(to, x))
ATOMIC(I32, MAX, atomicMax(to, x))
ATOMIC(U32, MAX, atomicMax(to, x))
ATOMIC(I64, MAX, atomicMax(to, x))
ATOMIC(U64, MAX, atomicMax(to, x))
// All that write the same place write the same.
ATOMIC(Bool, SUM, if (x) *to = 1)
ATOMIC(Bool, MAX, if (x) *to = 1)
ATOMIC(Bool, PROD, if (!x) *to = 0)
ATOMIC(Bool, MIN, if (!x) *to = 0)

template <class D, int OP, int R, class I>
static __device__ __forceinline__ void scatter_each(const typename D::T *updates, typename D::T *out, const I *target,
                                                    I nowhere, const Places<R> &w) {
  const I each = (I)w.slice.n, n = (I)w.positions.n * each;
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    I position = divide_whole(i, each), to = target[position], at[2];
    if (to == nowhere) continue;
    locate<2, R, I>(w.slice, i - position * each, at);
    Atomic<D, OP>::put(out + begin<R, I>(w.targets, to) + at[1], updates[begin<R, I>(w.positions, position) + at[0]]);
  }
}

// ---- SET --------------------------------------------------------------------------------------------------------

INLINE void raise(i32 *to, i32 x) { atomicMax(to, x); }
INLINE void raise(i64 *to, i64 x) { atomicMax(to, x); }

// The last position of each target, plus one.
template <class I>
static __device__ __forceinline__ void find_winners(const I *target, I *winners, I n, I nowhere) {
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    I to = target[i];
    if (to != nowhere) raise(winners + to, (I)(i + 1));
  }
}

// The slices of winners; all where there are no `winners`. W is a pack of elements T, as the walk of a slice counts.
template <class T, class W, int R, class I>
static __device__ __forceinline__ void scatter_words(const T *updates, T *out, const I *target, const I *winners,
                                                     I nowhere, const Places<R> &w) {
  const int ahead = 4;
  const I each = (I)w.slice.n, n = (I)w.positions.n * each, all = thread_count<I>();
  for (I first = thread_number<I>(); first < n; first += ahead * all) {
    W words[ahead];
    W *place[ahead];
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      I i = first + u * all, at[2];
      place[u] = 0;
      if (i >= n) continue;
      I position = divide_whole(i, each), to = target[position];
      if (to == nowhere || (winners && winners[to] != position + 1)) continue;
      locate<2, R, I>(w.slice, i - position * each, at);
      words[u] = *(const W *)(updates + begin<R, I>(w.positions, position) + at[0]);
      place[u] = (W *)(out + begin<R, I>(w.targets, to) + at[1]);
    }
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      if (place[u]) *place[u] = words[u];
    }
  }
}

// ---- sorted updates -----------------------------------------------------------------------------------------------

// N elements that are read and written at once.
template <class T, int N>
struct __align__(sizeof(T) * N) Pack {
  T item[N];
};

template <class D, int OP, int N>
struct Sum {
  typename D::A value[N];
  __device__ __forceinline__ void add(const Sum &other, bool first) {
#pragma unroll
    for (int v = 0; v < N; v++) value[v] = first ? other.value[v] : combine<D, OP>(value[v], other.value[v]);
  }
  __device__ __forceinline__ void read(const typename D::T *from) {
    Pack<typename D::T, N> pack = *(const Pack<typename D::T, N> *)from;
#pragma unroll
    for (int v = 0; v < N; v++) value[v] = D::up(pack.item[v]);
  }
  // Into what is there, with one rounding.
  __device__ __forceinline__ void put(typename D::T *to) const {
    Pack<typename D::T, N> pack = *(const Pack<typename D::T, N> *)to;
#pragma unroll
    for (int v = 0; v < N; v++) pack.item[v] = D::down(combine<D, OP>(D::up(pack.item[v]), value[v]));
    *(Pack<typename D::T, N> *)to = pack;
  }
};

// Sorted positions in chunks of `chunk`, and a thread for each N elements of a slice in each chunk. A target whose
// positions are all in one chunk is done. Of others there remain the chunk's sums: of the target that an earlier
// chunk began, and of the one that goes on in the next. `left` has both, for each chunk. The walk of a slice counts
// packs of N elements, which lie together.
template <class D, int OP, int N, int R, class I>
static __device__ __forceinline__ void sum_chunks(const typename D::T *updates, typename D::T *out, const I *sorted,
                                                  const I *order, Sum<D, OP, N> *left, I chunk, I nowhere,
                                                  const Places<R> &w) {
  const I each = (I)w.slice.n, positions = (I)w.positions.n, chunks = (positions + chunk - 1) / chunk;
  for (I i = thread_number<I>(); i < chunks * each; i += thread_count<I>()) {
    I number = divide_whole(i, each), at[2];
    locate<2, R, I>(w.slice, i - number * each, at);
    I from = number * chunk, end = from + chunk < positions ? from + chunk : positions, to = sorted[from];
    bool earlier = from > 0 && sorted[from - 1] == to, first = true;
    // The next update is on its way while one is added.
    Sum<D, OP, N> sum, coming;
    coming.read(updates + begin<R, I>(w.positions, order[from]) + at[0]);
    for (I j = from; j < end && to != nowhere; j++) {
      Sum<D, OP, N> one = coming;
      I next = j + 1 < positions ? sorted[j + 1] : nowhere;
      if (j + 1 < end) coming.read(updates + begin<R, I>(w.positions, order[j + 1]) + at[0]);
      sum.add(one, first);
      first = next != to;
      if (!first && j + 1 < end) continue;
      if (earlier) left[2 * number * each + i - number * each] = sum;
      else if (!first) left[(2 * number + 1) * each + i - number * each] = sum;
      else sum.put(out + begin<R, I>(w.targets, to) + at[1]);
      earlier = false;
      to = next;
    }
  }
}

// The sums that are left: a thread of the chunk in which a target begins takes those of the following ones.
template <class D, int OP, int N, int R, class I>
static __device__ __forceinline__ void sum_left(typename D::T *out, const I *sorted, const Sum<D, OP, N> *left,
                                                I chunk, I nowhere, const Places<R> &w) {
  const I each = (I)w.slice.n, positions = (I)w.positions.n, chunks = (positions + chunk - 1) / chunk;
  for (I i = thread_number<I>(); i < (chunks - 1) * each; i += thread_count<I>()) {
    I number = divide_whole(i, each), part = i - number * each, from = number * chunk, end = from + chunk, at[2];
    I to = sorted[end - 1];
    if (to == nowhere || sorted[end] != to || (from > 0 && sorted[from - 1] == to)) continue;
    Sum<D, OP, N> sum = left[(2 * number + 1) * each + part];
    // One target may be all there is: several of its sums are on their way.
    const int ahead = N > 4 ? 2 : 8;
    bool more = true;
    for (I first = number + 1; more && first < chunks; first += ahead) {
      Sum<D, OP, N> parts[ahead];
      bool same[ahead];
#pragma unroll
      for (int u = 0; u < ahead; u++) {
        I c = first + u < chunks ? first + u : chunks - 1;
        same[u] = first + u < chunks && sorted[c * chunk] == to;
        parts[u] = left[2 * c * each + part];
      }
#pragma unroll
      for (int u = 0; u < ahead; u++) {
        more &= same[u];
        if (more) sum.add(parts[u], false);
      }
    }
    locate<2, R, I>(w.slice, part, at);
    sum.put(out + begin<R, I>(w.targets, to) + at[1]);
  }
}

// ---- SCATTER_AXIS where there are lanes enough: a thread goes along each ------------------------------------------

// The walk of lanes: indices, updates, output.
template <class D, int OP, class X, int R, class I>
static __device__ __forceinline__ void scatter_lanes(const typename X::T *indices, const typename D::T *updates,
                                                     typename D::T *out, i64 length, i64 size, i64 index_step,
                                                     i64 update_step, i64 out_step, const Walk<3, R> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[3];
    locate<3, R, I>(w, i, at);
    for (I j = 0; j < (I)length; j++) {
      i64 index = index_of<X>(indices, at[0] + j * (I)index_step, size);
      if (index < 0 || index >= size) continue;
      typename D::T *to = out + at[2] + (I)index * (I)out_step;
      *to = D::down(combine<D, OP>(D::up(*to), D::up(updates[at[1] + j * (I)update_step])));
    }
  }
}
