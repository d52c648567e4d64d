// CONVOLVE: as a product of matrices whose rows are places of the output, whose columns are outputs of a group, and
// whose sums go over taps and channels; the rows of the left one are read from the input as they are needed. After
// matmul.cuh. I is int where 32 bits reach every element and every place.

struct Convolution {
  i64 batch, groups, channels, outputs;  // channels and outputs of a group
  i64 in[3], out[3], taps[3];
  i64 stride[3], low[3], spread[3], gaps[3];  // spread: dilation of the kernel; gaps: of the input
  i64 x[5], w[5], y[5];
  i64 flip;
};

// The place in the input of a place of the dilated one along an axis. Whether there is one.
template <class I>
INLINE bool settle(I &at, I size, I gaps) {
  if (at < 0) return false;
  if (gaps != 1) {
    const I whole = divide_whole(at, gaps);
    if (whole * gaps != at) return false;
    at = whole;
  }
  return at < size;
}

// The place of a row of the product: its element of the batch, and the first tap's places.
template <class I>
INLINE I begin_of(const Convolution &s, I row, I (&at)[3], i64 &y_at) {
  y_at = 0;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    const I next = divide_whole(row, (I)s.out[d]), index = row - next * (I)s.out[d];
    at[d] = index * (I)s.stride[d] - (I)s.low[d];
    y_at += index * s.y[d + 1];
    row = next;
  }
  y_at += row * s.y[0];
  return row * (I)s.x[0];
}

// Taps of an index of the sum, and the place of its weight.
template <class I>
INLINE I tap_of(const Convolution &s, I along, I (&ahead)[3], I &w_at) {
  I tap = divide_whole(along, (I)s.channels);
  const I channel = along - tap * (I)s.channels;
  w_at = channel * (I)s.w[4];
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    const I next = divide_whole(tap, (I)s.taps[d]), index = tap - next * (I)s.taps[d];
    ahead[d] = index * (I)s.spread[d];
    w_at += (s.flip ? (I)s.taps[d] - 1 - index : index) * (I)s.w[d + 1];
    tap = next;
  }
  return channel;
}

// An element of the input, or zero.
template <class D, class I>
INLINE typename D::A input_at(const typename D::T *x, const Convolution &s, I from, const I (&at)[3],
                              const I (&ahead)[3]) {
#pragma unroll
  for (int d = 0; d < 3; d++) {
    I place = at[d] + ahead[d];
    if (!settle<I>(place, (I)s.in[d], (I)s.gaps[d])) return (typename D::A)0;
    from += place * (I)s.x[d + 1];
  }
  return D::up(x[from]);
}

template <class D, class I>
INLINE void convolve_tiles(const typename D::T *x, const typename D::T *w, typename D::T *y, const Convolution &s) {
  typedef Sum<D, D::kind> Sums;
  typedef typename Sums::S S;
  enum { STEP = THREADS / DEPTH };
  __shared__ S a_tile[DEPTH][TILE + 1];
  __shared__ S b_tile[DEPTH][TILE + 1];
  const int tx = (int)threadIdx.x % SIDE, ty = (int)threadIdx.x / SIDE;
  // A thread fetches LOADS rows and columns, STEP apart, at one index of the sum.
  const int depth = (int)threadIdx.x % DEPTH, side = (int)threadIdx.x / DEPTH;
  const I rows = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]);
  const I k = (I)(s.taps[0] * s.taps[1] * s.taps[2] * s.channels);
  const u64 across = ((u64)s.outputs + TILE - 1) / TILE, down = ((u64)rows + TILE - 1) / TILE;
  for (u64 t = blockIdx.x; t < across * down * (u64)s.groups; t += gridDim.x) {
    const I row = (I)(t / across % down * TILE), column = (I)(t % across * TILE), group = (I)(t / (across * down));
    const typename D::T *inputs = x + group * s.channels * s.x[4], *weights = w + group * s.outputs * s.w[0];
    I from[LOADS], at[LOADS][3];
    i64 y_at;
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
      const I r = row + side + l * STEP;
      from[l] = begin_of<I>(s, r < rows ? r : rows - 1, at[l], y_at);
    }
    S sum[EACH][EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[i][j] = Sums::zero();
    }
    for (I start = 0; start < k; start += DEPTH) {
      const bool inside = start + depth < k;
      I ahead[3], w_at;
      const I channel = tap_of<I>(s, inside ? start + depth : 0, ahead, w_at);
      S a_next[LOADS], b_next[LOADS];
#pragma unroll
      for (int l = 0; l < LOADS; l++) {
        const I c = column + side + l * STEP;
        a_next[l] = inside ? input_at<D, I>(inputs, s, from[l] + channel * (I)s.x[4], at[l], ahead) : Sums::zero();
        b_next[l] = inside && c < (I)s.outputs ? Sums::load(weights[c * (I)s.w[0] + w_at]) : Sums::zero();
      }
      __syncthreads();
#pragma unroll
      for (int l = 0; l < LOADS; l++) {
        a_tile[depth][side + l * STEP] = a_next[l];
        b_tile[depth][side + l * STEP] = b_next[l];
      }
      __syncthreads();
      multiply_step<Sums>(sum, a_tile, b_tile, tx, ty);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const I r = row + ty + i * SIDE;
      if (r >= rows) continue;
      I unused[3];
      begin_of<I>(s, r, unused, y_at);
#pragma unroll
      for (int j = 0; j < EACH; j++) {
        const I c = column + tx + j * SIDE;
        if (c < (I)s.outputs) y[y_at + (group * s.outputs + c) * s.y[4]] = Sums::store(sum[i][j]);
      }
    }
  }
}

// For groups with few outputs, depthwise convolutions above all: a thread makes one element.
template <class D, class I>
INLINE void convolve_elements(const typename D::T *x, const typename D::T *w, typename D::T *y, const Convolution &s) {
  typedef Sum<D, D::kind> Sums;
  const I all = (I)(s.groups * s.outputs), n = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]) * all;
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    const I row = divide_whole(i, all), output = i - row * all, group = divide_whole(output, (I)s.outputs);
    I at[3], ahead[3];
    i64 y_at;
    const I from = begin_of<I>(s, row, at, y_at) + group * (I)s.channels * (I)s.x[4];
    typename Sums::S sum = Sums::zero();
    for (I z = 0; z < (I)s.taps[0]; z++) {
      ahead[0] = z * (I)s.spread[0];
      for (I v = 0; v < (I)s.taps[1]; v++) {
        ahead[1] = v * (I)s.spread[1];
        for (I u = 0; u < (I)s.taps[2]; u++) {
          ahead[2] = u * (I)s.spread[2];
          I w_at = output * (I)s.w[0];
          w_at += (s.flip ? (I)s.taps[0] - 1 - z : z) * (I)s.w[1] + (s.flip ? (I)s.taps[1] - 1 - v : v) * (I)s.w[2];
          w_at += (s.flip ? (I)s.taps[2] - 1 - u : u) * (I)s.w[3];
          for (I c = 0; c < (I)s.channels; c++)
            sum = Sums::dot(sum, input_at<D, I>(x, s, from + c * (I)s.x[4], at, ahead),
                            Sums::load(w[w_at + c * (I)s.w[4]]));
        }
      }
    }
    y[y_at + output * s.y[4]] = Sums::store(sum);
  }
}

// ---- unfolded -------------------------------------------------------------------------------------------------

// What the sums read, written out for a library: rows first..first + rows of (groups, taps, channels). E is an
// element, or 16 bytes of them, with the sizes and strides of channels counted in these.
struct __align__(16) Words { u64 word[2]; };

template <class E, class I>
INLINE void unfold(const E *x, E *to, i64 first, i64 rows, const Convolution &s) {
  const I k = (I)(s.taps[0] * s.taps[1] * s.taps[2] * s.channels), line = k * (I)s.groups, n = (I)rows * line;
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    const I row = divide_whole(i, line), rest = i - row * line, group = divide_whole(rest, k);
    I at[3], ahead[3], unused;
    i64 y_at;
    I from = begin_of<I>(s, (I)first + row, at, y_at);
    const I channel = tap_of<I>(s, rest - group * k, ahead, unused);
#pragma unroll
    for (int d = 0; d < 3; d++) {
      // The weights keep their order.
      if (s.flip) ahead[d] = ((I)s.taps[d] - 1) * (I)s.spread[d] - ahead[d];
    }
    from += (group * (I)s.channels + channel) * (I)s.x[4];
    bool inside = true;
#pragma unroll
    for (int d = 0; d < 3; d++) {
      I place = at[d] + ahead[d];
      inside = inside && settle<I>(place, (I)s.in[d], (I)s.gaps[d]);
      from += place * (I)s.x[d + 1];
    }
    E value = {};
    if (inside) value = x[from];
    to[i] = value;
  }
}
