// Convolutions whose groups are small, depthwise ones above all: a thread makes one element. Rows of one tap and channel are
// next to each other in a warp where groups are.

template <class D, class I>
INLINE void convolve_elements(const typename D::T *x, const typename D::T *w, typename D::T *y, const Convolution &s) {
  const I all = (I)(s.groups * s.outputs), n = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]) * all;
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    const I index = divide_whole(i, all), rest = i - index * all, group = divide_whole(rest, (I)s.outputs);
    const I output = rest - group * (I)s.outputs;
    i64 y_at;
    const Row<I> row = row_of<I>(s, index, y_at);
    const typename D::T *inputs = x + group * s.x[4], *weights = w + group * s.w[0] + output * s.w[1];
    typename D::A sum = 0;
    for (I z = 0; z < (I)s.taps[0]; z++) {
      const I depth = z * (I)s.spread[0];
      if (!is_inside(row.at[0] + depth, (I)s.in[0])) continue;
      for (I v = 0; v < (I)s.taps[1]; v++) {
        const I height = v * (I)s.spread[1];
        if (!is_inside(row.at[1] + height, (I)s.in[1])) continue;
        const typename D::T *from = inputs + row.from + depth * (I)s.x[1] + height * (I)s.x[2];
        const typename D::T *with = weights + z * s.w[2] + v * s.w[3];
        I width = 0, of_w = 0;
        for (I u = 0; u < (I)s.taps[2]; u++, width += (I)s.spread[2], of_w += (I)s.w[4]) {
          if (!is_inside(row.at[2] + width, (I)s.in[2])) continue;
          const I first = width * (I)s.x[3];
          for (I c = 0; c < (I)s.channels; c++)
            sum = multiply_add(D::up(from[first + c * (I)s.x[5]]), D::up(with[of_w + c * (I)s.w[5]]), sum);
        }
      }
    }
    y[y_at + group * s.y[4] + output * s.y[5]] = D::down(sum);
  }
}

// The gradient by the weight: a thread sums an element over one of the parts of the rows. Results are (parts, groups,
// outputs, taps, channels); threads that are neighbours have one tap and are in one group or in the next.
template <class D, class I>
INLINE void convolve_weight_elements(const typename D::T *x, const typename D::T *ct, typename D::A *partial, i64 part,
                                     const Convolution &s) {
  const I channels = (I)(s.groups * s.channels), taps = (I)(s.taps[0] * s.taps[1] * s.taps[2]);
  const I each = channels * taps * (I)s.outputs, rows = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]);
  const I n = each * divide_whole(rows + (I)part - 1, (I)part);
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    const I share = divide_whole(i, each), element = i - share * each;
    I rest = divide_whole(element, channels);
    const I of_all = element - rest * channels, group = divide_whole(of_all, (I)s.channels);
    const I output = divide_whole(rest, taps), begin = share * (I)part;
    const I end = begin + (I)part < rows ? begin + (I)part : rows;
    Tap<I> tap;
    tap.begin(s, rest - output * taps, 1);
    tap.channel = of_all - group * (I)s.channels;
    const typename D::T *inputs = x + group * s.x[4] + tap.offset(s), *cts = ct + group * s.y[4] + output * s.y[5];
    typename D::A sum = 0;
    Row<I> row;
    i64 y_at = 0;
    I left = 0;  // places of the line of outputs
    for (I r = begin; r < end; r++, left--) {
      if (left == 0) {
        row = row_of<I>(s, r, y_at);
        left = (I)s.out[2] - (r - divide_whole(r, (I)s.out[2]) * (I)s.out[2]);
      } else {
        row.at[2] += (I)s.stride[2];
        row.from += (I)(s.stride[2] * s.x[3]);
        y_at += s.y[3];
      }
      if (tap.meets(s, row)) sum = multiply_add(D::up(inputs[row.from]), D::up(cts[y_at]), sum);
    }
    partial[(((share * (I)s.groups + group) * (I)s.outputs + output) * taps + (rest - output * taps)) * (I)s.channels +
            tap.channel] = sum;
  }
}
