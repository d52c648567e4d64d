// Depthwise convolutions: groups of one channel and one output, whose channels lie together. A thread makes STRIP outputs
// along the last axis for V channels. Along a line it keeps a window of the input in registers, into which each tap brings
// one place, if outputs and taps are one place apart (SLIDES). Weights are in shared memory.

enum { STRIP = 8 };

template <class D, int V> struct __align__(V * sizeof(typename D::T)) Lane { typename D::T v[V]; };

template <class D, int V> INLINE Lane<D, V> zero_lane() {
  Lane<D, V> lane;
#pragma unroll
  for (int c = 0; c < V; c++) lane.v[c] = D::down(0);
  return lane;
}

// A line of the input, from the place of a strip's first output and first tap. CHECKED: some places may be outside.
template <class D, class I, int V, bool CHECKED> struct Line {
  const typename D::T *x;
  I at, size, step;

  __device__ __forceinline__ Lane<D, V> operator[](I place) const {
    const bool inside = !CHECKED || is_inside(at + place, size);
    // Without a branch: outside the line's first place is read.
    const Lane<D, V> lane = *(const Lane<D, V> *)(x + (inside ? place : -at) * step);
    return inside ? lane : zero_lane<D, V>();
  }
};

template <class D, int V>
INLINE void multiply_add(typename D::A (&sum)[V], const typename D::A (&x)[V], const typename D::A *w) {
#pragma unroll
  for (int c = 0; c < V; c++) sum[c] = multiply_add(x[c], w[c], sum[c]);
}

template <class D, int V> INLINE void raise(typename D::A (&to)[V], const Lane<D, V> &from) {
#pragma unroll
  for (int c = 0; c < V; c++) to[c] = D::up(from.v[c]);
}

// Adds a line's taps, whose weights are `pitch` apart.
template <bool SLIDES, class D, class I, int V, bool CHECKED>
INLINE void add_line(typename D::A (&sum)[STRIP][V], const Line<D, I, V, CHECKED> &line, const typename D::A *w, int pitch,
                     int taps, I stride, I spread) {
  typedef typename D::A A;
  A window[STRIP][V];
  if (!SLIDES) {
    for (int u = 0; u < taps; u++, w += pitch) {
#pragma unroll
      for (int p = 0; p < STRIP; p++) raise<D, V>(window[p], line[p * stride + u * spread]);
#pragma unroll
      for (int p = 0; p < STRIP; p++) multiply_add<D, V>(sum[p], window[p], w);
    }
    return;
  }
#pragma unroll
  for (int p = 0; p < STRIP - 1; p++) raise<D, V>(window[p], line[p]);
  Lane<D, V> next = line[STRIP - 1];
  for (int first = 0; first < taps; first += STRIP) {
#pragma unroll
    for (int u = 0; u < STRIP; u++, w += pitch) {
      if (first + u >= taps) break;
      raise<D, V>(window[(u + STRIP - 1) % STRIP], next);
      // The next tap's place is on its way meanwhile; behind the last tap it is read again.
      next = line[(first + u + 1 < taps ? first + u + 1 : first + u) + STRIP - 1];
#pragma unroll
      for (int p = 0; p < STRIP; p++) multiply_add<D, V>(sum[p], window[(u + p) % STRIP], w);
    }
  }
}

// Adds all taps of a strip, whose line begins at `at`; `from` is its place in the first line of the image.
template <class D, class I, int V, bool SLIDES, bool CHECKED>
INLINE void add_taps(typename D::A (&sum)[STRIP][V], const typename D::T *from, const typename D::A *w, int pitch,
                     const Row<I> &strip, const Convolution &s) {
  Line<D, I, V, CHECKED> line;
  line.at = strip.at[2];
  line.size = (I)s.in[2];
  line.step = (I)s.x[3];
  for (I z = 0; z < (I)s.taps[0]; z++) {
    const I d = strip.at[0] + z * (I)s.spread[0];
    if (!is_inside(d, (I)s.in[0])) continue;
    for (I v = 0; v < (I)s.taps[1]; v++) {
      const I h = strip.at[1] + v * (I)s.spread[1];
      if (!is_inside(h, (I)s.in[1])) continue;
      line.x = from + d * (I)s.x[1] + h * (I)s.x[2];
      const typename D::A *of = w + (int)((z * (I)s.taps[1] + v) * (I)s.taps[2]) * pitch;
      add_line<SLIDES>(sum, line, of, pitch, (int)s.taps[2], (I)s.stride[2], (I)s.spread[2]);
    }
  }
}

// A block has `width` times V channels, and strips one below the other: its lines are in L1 for the next.
template <class D, class I, int V, bool SLIDES>
INLINE void convolve_depthwise(const typename D::T *x, const typename D::T *w, typename D::T *y, i64 width,
                               const Convolution &s) {
  typedef typename D::A A;
  DYNAMIC_SHARED(A, weights);  // taps, channels and a gap against conflicts of banks
  const int wide = (int)width * V, pitch = wide + V, taps = (int)(s.taps[0] * s.taps[1] * s.taps[2]);
  const I chunks = divide_whole((I)s.groups + wide - 1, (I)wide), block = (I)blockIdx.x;
  const I shares = divide_whole((I)gridDim.x, chunks), share = divide_whole(block, chunks);
  const I first = (block - share * chunks) * wide;
  const int channels = (I)s.groups - first < wide ? (int)((I)s.groups - first) : wide;
  // Neighbours read taps of a channel, which are neighbours in memory.
  const int step = taps < (int)blockDim.x ? (int)blockDim.x / taps : 1, beside = (int)threadIdx.x / taps;
  for (int tap = (int)threadIdx.x - beside * taps; tap < taps && beside < step; tap += (int)blockDim.x) {
    const int line = tap / (int)s.taps[2], plane = line / (int)s.taps[1];
    const typename D::T *of = w + first * s.w[0] + plane * s.w[2] + (line - plane * (int)s.taps[1]) * s.w[3] +
                              (tap - line * (int)s.taps[2]) * s.w[4];
#pragma unroll 4
    for (int c = beside; c < channels; c += step) weights[tap * pitch + c] = D::up(of[c * (I)s.w[0]]);
  }
  __syncthreads();

  const int lines = (int)blockDim.x / (int)width, own = (int)threadIdx.x / (int)width;
  const int lane = ((int)threadIdx.x - own * (int)width) * V;
  const I channel = first + lane;
  if (own >= lines || lane >= channels) return;
  const I across = ((I)s.out[2] + STRIP - 1) / STRIP, strips = (I)(s.batch * s.out[0] * s.out[1]) * across;
  for (I strip = share * lines + own; strip < strips; strip += shares * lines) {
    const I column = divide_whole(strip, (I)s.out[1]), height = strip - column * (I)s.out[1];
    const I plane = divide_whole(column, across), begin = (column - plane * across) * STRIP;
    const I image = divide_whole(plane, (I)s.out[0]), depth = plane - image * (I)s.out[0];
    Row<I> row;
    row.at[0] = depth * (I)s.stride[0] - (I)s.low[0];
    row.at[1] = height * (I)s.stride[1] - (I)s.low[1];
    row.at[2] = begin * (I)s.stride[2] - (I)s.low[2];
    const typename D::T *from = x + image * (I)s.x[0] + row.at[2] * (I)s.x[3] + channel;
    A sum[STRIP][V];
#pragma unroll
    for (int p = 0; p < STRIP; p++)
#pragma unroll
      for (int c = 0; c < V; c++) sum[p][c] = 0;
    const I last = row.at[2] + (STRIP - 1) * (I)s.stride[2] + ((I)s.taps[2] - 1) * (I)s.spread[2];
    if (row.at[2] >= 0 && last < (I)s.in[2]) add_taps<D, I, V, SLIDES, false>(sum, from, weights + lane, pitch, row, s);
    else add_taps<D, I, V, SLIDES, true>(sum, from, weights + lane, pitch, row, s);
    typename D::T *to = y + image * s.y[0] + depth * s.y[1] + height * s.y[2] + begin * s.y[3] + channel;
#pragma unroll
    for (int p = 0; p < STRIP; p++) {
      Lane<D, V> lanes;
#pragma unroll
      for (int c = 0; c < V; c++) lanes.v[c] = D::down(sum[p][c]);
      if (begin + p < (I)s.out[2]) *(Lane<D, V> *)(to + p * s.y[3]) = lanes;
    }
  }
}
