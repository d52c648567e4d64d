// Single elements of a matrix of few bits, for `grouped_tiles`. TRANSPOSE: rows of words are columns of the factor.
template <class F, class D, bool TRANSPOSE> struct Unpacked {
  typedef typename D::A A;
  typedef typename Scales<D, F::mode>::T S;
  const Grouped &s;
  const u32 *words;
  const S *scales;
  const typename D::T *biases;
  A global;
  __device__ __forceinline__ Unpacked(const Grouped &given, i32 matrix) : s(given) {
    words = (const u32 *)s.factor + matrix * s.factor_step[0];
    scales = (const S *)s.scales + matrix * s.scale_step[0];
    biases = (const typename D::T *)s.biases + matrix * s.bias_step[0];
    global = F::mode == NVFP4 ? global_up<A>(s.global_scales ? s.global_scales + matrix * s.global_step : nullptr) : (A)1;
  }
  __device__ __forceinline__ bool depth_first() const { return TRANSPOSE; }
  __device__ __forceinline__ A at(i32 depth, i32 column) const {
    const i32 row = TRANSPOSE ? column : depth, along = TRANSPOSE ? depth : column, group = along / F::group;
    const u32 code = code_at<F>(words + row * s.factor_step[1], s.factor_step[2], along, TRANSPOSE ? s.depth : s.columns);
    const A scale = scale_up<F, D>(scales[row * s.scale_step[1] + group * s.scale_step[2]]);
    if (!F::has_biases) return number_of<F>(code) * scale;
    return multiply_add((A)number_of<F>(code), scale, D::up(biases[row * s.bias_step[1] + group * s.bias_step[2]]));
  }
  __device__ __forceinline__ A finish(A sum) const { return F::mode == NVFP4 ? sum * global : sum; }
};
