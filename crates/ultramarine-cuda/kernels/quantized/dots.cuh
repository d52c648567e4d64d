// Products of few rows with matrices of few bits whose rows are columns of the factor, by multiply-adds and over any strides:
// a warp has a column and all ROWS, a lane 8 numbers at a time.

template <class F, class D, Arrangement HOW, int ROWS> INLINE void quantized_dots(const Grouped &s) {
  typedef typename D::T T;
  typedef typename D::A A;
  enum { WARPS = 8, EACH = 8 };
  const i32 across = ((i32)s.columns + WARPS - 1) / WARPS, item = (i32)blockIdx.x / across;
  const i32 column = (i32)blockIdx.x % across * WARPS + (i32)threadIdx.x / WARP, lane = lane_of();
  const i32 rows = HOW == TOGETHER ? (i32)(s.items * s.rows) : (i32)s.rows, first_row = HOW == TOGETHER ? 0 : item * rows;
  if (column >= (i32)s.columns) return;
  const i64 matrix = factor_matrix(s, HOW == TOGETHER ? 0 : item);
  const u32 *words = (const u32 *)s.factor + matrix * s.factor_step[0] + column * s.factor_step[1];
  const typename Scales<D, F::mode>::T *scales =
      (const typename Scales<D, F::mode>::T *)s.scales + matrix * s.scale_step[0] + column * s.scale_step[1];
  const T *biases = (const T *)s.biases + matrix * s.bias_step[0] + column * s.bias_step[1], *x[ROWS];
  A sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    x[r] = (const T *)s.x + row_offset(s, first_row + min(r, rows - 1));
    sums[r] = 0;
  }
#pragma unroll 2
  for (i32 at = lane * EACH; at < (i32)s.depth; at += WARP * EACH) {
    u32 codes[EACH];
    codes_at<F>(codes, words, s.factor_step[2], at, s.depth);
    const i32 group = at / F::group;
    const A scale = scale_up<F, D>(scales[group * s.scale_step[2]]);
    const A bias = F::has_biases ? D::up(biases[group * s.bias_step[2]]) : (A)0;
    A numbers[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      numbers[e] = number_of<F>(codes[e]);
      numbers[e] = F::has_biases ? multiply_add(numbers[e], scale, bias) : numbers[e] * scale;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int e = 0; e < EACH; e++) sums[r] = multiply_add(D::up(x[r][(at + e) * s.x_step[2]]), numbers[e], sums[r]);
  }
  const float *global = F::mode == NVFP4 && s.global_scales ? s.global_scales + matrix * s.global_step : nullptr;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], lanes);
    if (lane == r && r < rows) {
      const A sum = F::mode == NVFP4 ? sums[r] * global_up<A>(global) : sums[r];
      ((T *)s.out)[out_offset(s, first_row + r) + column * s.out_step[2]] = D::down(sum);
    }
  }
}
