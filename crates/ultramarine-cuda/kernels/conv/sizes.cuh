// CONVOLVE as a product of matrices: rows are places of the output, columns outputs of a group, and sums go over taps and
// channels. The left matrix is never written out: its rows are read from the input as they are needed (an implicit
// product; Chetlur et al., cuDNN: Efficient primitives for deep learning, 2014). I is i32 where 32 bits reach every element
// and every place.

// A convolution whose input is not dilated, without the reversal of its kernel. Strides in elements.
struct Convolution {
  i64 batch, groups, channels, outputs;  // channels and outputs of a group
  i64 in[3], out[3], taps[3];
  i64 stride[3], low[3], spread[3];  // spread: dilation of the kernel
  i64 x[6], w[6], y[6];              // strides: (n, d, h, w, group, channel), (group, output, d, h, w, channel)
};

template <class T> struct __align__(16) Vector { T v[16 / sizeof(T)]; };

// The place in the input where the first tap of a row is; whether there is something is known with the tap.
template <class I> struct __align__(16) Row {
  I from, at[3];
};

// The row of a place of the output, and where that is in the output.
template <class I>
INLINE Row<I> row_of(const Convolution &s, I index, i64 &y_at) {
  Row<I> row;
  row.from = 0;
  y_at = 0;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    const I next = divide_whole(index, (I)s.out[d]), place = index - next * (I)s.out[d];
    row.at[d] = place * (I)s.stride[d] - (I)s.low[d];
    row.from += row.at[d] * (I)s.x[d + 1];
    y_at += place * s.y[d + 1];
    index = next;
  }
  row.from += index * (I)s.x[0];
  y_at += index * s.y[0];
  return row;
}

// A row that no tap meets.
template <class I> INLINE Row<I> no_row() {
  Row<I> row;
  row.from = 0;
#pragma unroll
  for (int d = 0; d < 3; d++) row.at[d] = -((I)1 << (8 * sizeof(I) - 2));
  return row;
}

template <class I> struct Unsigned { typedef u32 U; };
template <> struct Unsigned<i64> { typedef u64 U; };

template <class I> INLINE bool is_inside(I at, I size) {
  typedef typename Unsigned<I>::U U;
  return (U)at < (U)size;
}

// Steps along the sum: a channel of a tap, how far the tap is from the first one, and whether there is one.
template <class I> struct Tap {
  I channel, index[3];

  __device__ __forceinline__ void begin(const Convolution &s, I along, I channels) {
    I tap = divide_whole(along, channels);
    channel = along - tap * channels;
#pragma unroll
    for (int d = 2; d > 0; d--) {
      const I next = divide_whole(tap, (I)s.taps[d]);
      index[d] = tap - next * (I)s.taps[d];
      tap = next;
    }
    index[0] = tap;
  }
  __device__ __forceinline__ void advance(const Convolution &s, I by, I channels) {
    channel += by;
    while (channel >= channels) {
      channel -= channels;
      if (++index[2] < (I)s.taps[2]) continue;
      index[2] = 0;
      if (++index[1] < (I)s.taps[1]) continue;
      index[1] = 0;
      index[0]++;
    }
  }
  __device__ __forceinline__ I ahead(const Convolution &s, int d) const { return index[d] * (I)s.spread[d]; }
  __device__ __forceinline__ bool is_there(const Convolution &s) const { return index[0] < (I)s.taps[0]; }
  // Whether a row has something there.
  __device__ __forceinline__ bool meets(const Convolution &s, const Row<I> &row) const {
    bool inside = true;
#pragma unroll
    for (int d = 0; d < 3; d++) inside = inside && is_inside(row.at[d] + ahead(s, d), (I)s.in[d]);
    return inside;
  }
  // The distance from the row's first place.
  __device__ __forceinline__ I offset(const Convolution &s) const {
    I at = channel * (I)s.x[5];
#pragma unroll
    for (int d = 0; d < 3; d++) at += ahead(s, d) * (I)s.x[d + 1];
    return at;
  }
};
