// COPY and FILL over any strides.

template <class From, class To, int N, class I>
static __device__ __forceinline__ void copy_elements(const typename From::T *in, typename To::T *out,
                                                     const Walk<2, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[2];
    locate<2, N, I>(w, i, at);
    out[at[1]] = convert<To, From>(in[at[0]]);
  }
}

template <class D, int N, class I>
static __device__ __forceinline__ void fill_elements(typename D::T *out, u64 value, const Walk<1, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[1];
    locate<1, N, I>(w, i, at);
    out[at[0]] = (typename D::T)value;
  }
}
