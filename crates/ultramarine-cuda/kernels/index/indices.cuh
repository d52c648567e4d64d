// Index arrays, and the places that they point to.

// Index `at` of an array of X, of which negative ones count from the end of `size`. What no i64 holds is far outside
// of any axis.
template <class X>
static __device__ __forceinline__ i64 index_of(const typename X::T *indices, i64 at, i64 size) {
  i64 index = (i64)indices[at];
  if (!X::is_signed) return index < 0 ? 0x7fffffffffffffffll : index;
  return index < 0 ? index + size : index;
}

static __device__ __forceinline__ i64 clamped(i64 index, i64 limit) {
  return index < 0 ? 0 : index >= limit ? limit - 1 : index;
}

// N index arrays: where they are, the sizes of the axes that they address, the number of places on these where a
// slice can begin, and the steps from one to the next.
template <int N>
struct Picks {
  const void *indices[N];
  i64 size[N];
  i64 limit[N];
  i64 step[N];
};

// Where the slice of a position begins in the source and in the output, by the index arrays. The walk has the arrays
// and the output.
template <class X, int N, int P, class I>
struct Picked {
  const Picks<N> &picks;
  const Walk<N + 1, P> &walk;
  __device__ __forceinline__ void find(I position, I &from, I &to) const {
    I at[N + 1];
    locate<N + 1, P, I>(walk, position, at);
    from = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
      i64 index = index_of<X>((const typename X::T *)picks.indices[k], at[k], picks.size[k]);
      from += (I)clamped(index, picks.limit[k]) * (I)picks.step[k];
    }
    to = at[N];
  }
};

// The same where the offsets of the slices in the source were found before.
template <int P, class I>
struct Placed {
  const I *places;
  const Walk<1, P> &walk;
  __device__ __forceinline__ void find(I position, I &from, I &to) const {
    I at[1];
    locate<1, P, I>(walk, position, at);
    from = places[position];
    to = at[0];
  }
};

// Adds an index array's part to the offsets of the slices; the first one sets them. With SKIP an index outside makes
// the place `nowhere`, else it is moved inside. The walk is that of the array.
template <class X, bool SKIP, int P, class I>
static __device__ __forceinline__ void add_offsets(const typename X::T *indices, I *places, int first, i64 size,
                                                  i64 limit, i64 step, I nowhere, const Walk<1, P> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[1];
    locate<1, P, I>(w, i, at);
    i64 index = index_of<X>(indices, at[0], size);
    I before = first ? (I)0 : places[i];
    bool outside = SKIP && (index < 0 || index >= limit || before == nowhere);
    places[i] = outside ? nowhere : (I)(before + (I)clamped(index, limit) * (I)step);
  }
}

// Offsets of the single elements of slices, one behind the other. The walk is that of a slice.
template <int S, class I>
static __device__ __forceinline__ void spread_offsets(const I *places, I *each, I n, I nowhere, const Walk<1, S> &w) {
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    I position = divide_whole(i, (I)w.n), at[1];
    locate<1, S, I>(w, i - position * (I)w.n, at);
    I place = places[position];
    each[i] = place == nowhere ? nowhere : (I)(place + at[0]);
  }
}

// Offsets of the updates of SCATTER_AXIS. The walk: places, which stand still along the axis, and indices.
template <class X, int P, class I>
static __device__ __forceinline__ void axis_offsets(const typename X::T *indices, I *places, i64 size, i64 step,
                                                   I nowhere, const Walk<2, P> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[2];
    locate<2, P, I>(w, i, at);
    i64 index = index_of<X>(indices, at[1], size);
    places[i] = index < 0 || index >= size ? nowhere : (I)(at[0] + (I)index * (I)step);
  }
}
