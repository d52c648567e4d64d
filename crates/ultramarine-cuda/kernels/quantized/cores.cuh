// Matrices of few bits for `grouped_cores`: words pass through shared memory, and are unpacked to fragments.

// The part of a matrix that both ways of lying have in common.
template <class F, class D> struct Packed {
  typedef typename Scales<D, F::mode>::T S;
  typedef typename D::T T;
  enum { PIECE = F::bits % 2 ? 8 : 16 };  // bytes of a copy
  const char *words;
  const S *scales;
  const T *biases;
  i64 row_bytes, scale_row, scale_step, bias_row, bias_step;
  float global;
  __device__ __forceinline__ Packed(const Grouped &s, i32 matrix) {
    words = (const char *)((const u32 *)s.factor + matrix * s.factor_step[0]);
    row_bytes = s.factor_step[1] * 4;
    scales = (const S *)s.scales + matrix * s.scale_step[0];
    scale_row = s.scale_step[1];
    scale_step = s.scale_step[2];
    biases = (const T *)s.biases + matrix * s.bias_step[0];
    bias_row = s.bias_step[1];
    bias_step = s.bias_step[2];
    global = F::mode == NVFP4 ? global_up<float>(s.global_scales ? s.global_scales + matrix * s.global_step : nullptr) : 1;
  }
  __device__ __forceinline__ float finish(float sum) const { return F::mode == NVFP4 ? sum * global : sum; }
  // Copies a quarter of ROWS rows of PARTS pieces, of which `rows` and `bytes` are there. CLAMPED: the last row is in the
  // place of those that are not.
  template <int ROWS, int PARTS, int PITCH, int THREADS, bool CLAMPED>
  __device__ __forceinline__ void copy_words(char *to, int quarter, const char *from, i32 rows, i32 bytes) const {
    enum { EACH = (ROWS * PARTS + THREADS - 1) / THREADS };
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      if (i * 4 / EACH != quarter) continue;
      const int p = (int)threadIdx.x + i * THREADS, r = p / PARTS, part = p % PARTS * PIECE;
      if (ROWS * PARTS % THREADS != 0 && p >= ROWS * PARTS) break;
      const bool there = part < bytes && (CLAMPED || r < rows);
      const u32 at = (u32)min(r, rows - 1) * (u32)row_bytes + (u32)(there ? part : 0);
      copy_part_async<PIECE>(place_of(to + r * PITCH + part), from + at, there);
    }
  }
};

// Rows of words are columns of the factor. A lane has numbers 2t and 2t + 1 of each 8 of a row. STAGED: scales and biases lie
// in aligned words, and come with the words; else registers fetch them a step ahead.
template <class F, class D, int GROUPS, bool STAGED> struct PackedByDepth : Packed<F, D> {
  typedef Packed<F, D> Base;
  typedef typename Base::S S;
  typedef typename Base::T T;
  enum {
    WIDE = GROUPS * 64, THREADS = GROUPS * 128, PITCH = DEEP * F::bits / 8, WORDS = WIDE * PITCH, BYTES = WORDS + THREADS * 4,
    EACH = F::group < DEEP ? F::group : DEEP, PARTS = DEEP / EACH  // numbers under a scale, and scales of a step
  };
  // A quad of lanes needs the scales and biases of two columns: each lane fetches one of the four.
  const S *own;
  i32 own_step, columns, depth;
  u32 next[PARTS], select, spread;
  Scaling<F, D> scaling[2][PARTS];
  __device__ __forceinline__ PackedByDepth(const Grouped &s, i32 matrix, i32 column) : Base(s, matrix) {
    columns = (i32)s.columns - column;
    depth = (i32)s.depth;
    this->words += column * this->row_bytes;
    const int t = lane_of() % 4;
    const i64 row = column + min(own_column() + t % 2 * 8, columns - 1);
    own = this->scales + row * this->scale_row;
    own_step = (i32)this->scale_step;
    if (F::has_biases && t >= 2) {
      own = (const S *)this->biases + row * this->bias_row;
      own_step = (i32)this->bias_step;
    }
    select = t | 0x4440;
    spread = depth > 0 ? 0x1001 : 0;
    if (!STAGED) fetch(0);
  }
  __device__ __forceinline__ void copy(char *to, int quarter, i32 start, i32) const {
    this->template copy_words<WIDE, PITCH / Base::PIECE, PITCH, THREADS, true>(
        to, quarter, this->words + start * F::bits / 8, columns, (depth - start) * F::bits / 8);
    if (STAGED && quarter == 3)
      copy_part_async<4>(place_of(to + WORDS + threadIdx.x * 4),
                         (const char *)own + (start / F::group * (i32)sizeof(S) & -4), true);
  }
  __device__ __forceinline__ void fetch(i32 start) {
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
      const i32 at = start + p * EACH;
      next[p] = at < depth ? bits_of(own[at / F::group * own_step]) : 0;
    }
  }
  __device__ __forceinline__ void begin(const char *at, i32 start, char *) {
    if (STAGED) {
      struct __align__(16) Four { u32 v[4]; };
      const Four all = *(const Four *)(at + WORDS + threadIdx.x / 4 * 16);
#pragma unroll
      for (int p = 0; p < PARTS; p++) {
        // Two bytes are the low and the high one of a half, or one byte the low one.
        const u32 byte = (start / F::group + p) * (u32)sizeof(S) % 4;
        const u32 low = sizeof(S) == 1 ? byte | 0x4440 : byte * 0x11 + 0x4410;
#pragma unroll
        for (int i = 0; i < 2; i++)
          scaling[i][p].set(__byte_perm(all.v[i], 0, low), F::has_biases ? __byte_perm(all.v[i + 2], 0, low) : 0);
      }
    } else {
#pragma unroll
      for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int i = 0; i < 2; i++)
          scaling[i][p].set(__shfl_sync(0xffffffffu, next[p], i, 4),
                            F::has_biases ? __shfl_sync(0xffffffffu, next[p], i + 2, 4) : 0);
      fetch(start + DEEP);
    }
  }
  // Two codes of 8 numbers at a row, the 8 being number `eight` of the step.
  __device__ __forceinline__ u32 codes(const char *row, int eight) const {
    const u32 bit = (eight * 8 + lane_of() % 4 * 2) * F::bits, *at = (const u32 *)row + bit / 32;
    const u32 all = 32 % F::bits == 0 ? *at >> bit % 32 : __funnelshift_r(at[0], at[1], bit % 32);
    return __byte_perm(all, all >> F::bits, 0x5410);
  }
  __device__ __forceinline__ void fragment(u32 (&a)[4], const char *at, const char *, int step) const {
    const char *rows = at + own_column() * PITCH;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const Scaling<F, D> &by = scaling[i][step * 16 / EACH];
      if (F::bits == 4) {
        struct __align__(8) Two { u32 v[2]; };
        const Two two = *(const Two *)(rows + i * 8 * PITCH + step * 8);
        a[i] = by.apply(__byte_perm(two.v[0], 0, select) * spread, base_of<D>(true));
        a[i + 2] = by.apply(__byte_perm(two.v[1], 0, select) * spread, base_of<D>(true));
      } else {
        a[i] = by.apply(codes(rows + i * 8 * PITCH, step * 2), base_of<D>(true));
        a[i + 2] = by.apply(codes(rows + i * 8 * PITCH, step * 2 + 1), base_of<D>(true));
      }
    }
  }
};

// Rows of words are rows of the factor: numbers that a lane multiplies lie in several of them. They are unpacked to shared
// memory, from where fragments are read as those of `ByColumns`. A thread unpacks 8 numbers under one scale at a time.
template <class F, class D, int GROUPS> struct PackedByColumns : Packed<F, D> {
  typedef Packed<F, D> Base;
  enum {
    WIDE = GROUPS * 64, THREADS = GROUPS * 128, LONG = WIDE * F::bits / 8, PITCH = LONG + Base::PIECE, BYTES = DEEP * PITCH,
    ACROSS = WIDE / 8, EACH = DEEP * ACROSS / THREADS
  };
  i32 column, columns, depth;
  u32 next_scales[EACH], next_biases[EACH];
  __device__ __forceinline__ PackedByColumns(const Grouped &s, i32 matrix, i32 first) : Base(s, matrix) {
    column = first;
    columns = (i32)s.columns;
    depth = (i32)s.depth;
    fetch(0);
  }
  __device__ __forceinline__ void copy(char *to, int quarter, i32 first, i32) const {
    this->template copy_words<DEEP, LONG / Base::PIECE, PITCH, THREADS, false>(
        to, quarter, this->words + first * this->row_bytes + (i64)column * F::bits / 8, depth - first,
        (columns - column) * F::bits / 8);
  }
  __device__ __forceinline__ void fetch(i32 start) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int u = (int)threadIdx.x + i * THREADS;
      const i32 row = start + u / ACROSS, at = column + u % ACROSS * 8, group = at / F::group;
      const bool there = row < depth && at < columns;
      next_scales[i] = there ? bits_of(this->scales[row * this->scale_row + group * this->scale_step]) : 0;
      next_biases[i] = F::has_biases && there ? bits_of(this->biases[row * this->bias_row + group * this->bias_step]) : 0;
    }
  }
  __device__ __forceinline__ void begin(const char *at, i32 start, char *aside) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int u = (int)threadIdx.x + i * THREADS, row = u / ACROSS, first = u % ACROSS * 8, bit = first * F::bits;
      const u32 *words = (const u32 *)(at + row * PITCH) + bit / 32;
      Scaling<F, D> scaling;
      scaling.set(next_scales[i], next_biases[i]);
      struct __align__(16) Four { u32 v[4]; } four;
      const u64 all = (words[0] | (u64)(F::bits < 3 || F::bits == 4 ? 0 : words[1]) << 32) >> bit % 32;
#pragma unroll
      for (int p = 0; p < 4; p++) {
        const u32 both = (u32)(all >> 2 * p * F::bits);
        four.v[p] = scaling.apply(F::bits == 4 ? __byte_perm((u32)all, (u32)all >> 4, p * 0x0011 | (p + 4) * 0x1100)
                                               : __byte_perm(both, both >> F::bits, 0x5410), base_of<D>(true));
      }
      *(Four *)((u16 *)aside + first / PANEL * DEEP * PANEL + Swizzled<DEEP>::at(row, first % PANEL)) = four;
    }
    fetch(start + DEEP);
    __syncthreads();
  }
  __device__ __forceinline__ void fragment(u32 (&a)[4], const char *, const char *aside, int step) const {
    load_column_fragment(a, (const u16 *)aside, step);
  }
};
