// CROSS_ENTROPY and its gradient: the logarithms are a reduction (nn/softmax.cuh), the rest is here.

// The reduction's results in the dtype that sums are in.
template <class D>
struct LogSum : LogSumExp<D> {
  typedef typename D::A R;
  typedef typename LogSumExp<D>::Acc Acc;
  struct Out { typedef R T; };
  INLINE R drop(Acc x) { return x.top + softmax_log(x.sum); }
};

// Rows of logits and of what there is one of for each row.
struct CrossEntropy {
  i64 rows, classes;
  // Strides of the logits, of their gradient, and of targets, logarithms, and losses or cotangents.
  i64 pitch, step, out_pitch, out_step, target, logarithm, other;
};

// A row's class: counted from the end if it is negative, held to the axis.
INLINE i64 cross_entropy_class(const i32 *targets, i64 row, const CrossEntropy &s) {
  i64 t = targets[row * s.target];
  if (t < 0) t += s.classes;
  return t < 0 ? 0 : t < s.classes ? t : s.classes - 1;
}

template <class D>
static __device__ __forceinline__ void cross_entropy_losses(const typename D::T *logits, const i32 *targets,
                                                            const typename D::A *logarithms,
                                                            typename D::A *losses, const CrossEntropy &s) {
  for (i64 row = thread_number<i64>(); row < s.rows; row += thread_count<i64>()) {
    const i64 own = cross_entropy_class(targets, row, s);
    losses[row * s.other] =
        logarithms[row * s.logarithm] - D::up(logits[row * s.pitch + own * s.step]);
  }
}

// V neighbours of a row at a time; I counts them.
template <class D, class I, int V>
static __device__ __forceinline__ void cross_entropy_slopes(const typename D::T *logits, const i32 *targets,
                                                            const typename D::A *logarithms,
                                                            const typename D::A *cotangents, typename D::T *out,
                                                            const CrossEntropy &s) {
  const I each = (I)(s.classes / V), count = (I)s.rows * each;
  for (I i = thread_number<I>(); i < count; i += thread_count<I>()) {
    const I row = i / each;
    const i64 first = (i64)(i - row * each) * V, own = cross_entropy_class(targets, row, s) - first;
    const typename D::A logarithm = logarithms[row * s.logarithm], cotangent = cotangents[row * s.other];
    typename D::A x[V];
    read_many<D, V, false>(logits + row * s.pitch + first * s.step, 0, x);
#pragma unroll
    for (int v = 0; v < V; v++) {
      const typename D::A weight = softmax_exp(x[v] - logarithm);
      x[v] = (v == own ? weight - (typename D::A)1 : weight) * cotangent;
    }
    write_many<D, V>(out + row * s.out_pitch + first * s.out_step, x);
  }
}
