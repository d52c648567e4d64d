// Products of up to 8 rows with a matrix of 4 bits whose rows are columns of the factor, a processor having one block. Each of
// many warps has a slice of the depth in all of the block's columns: its part of x stays in registers, as the right operand of
// tensor cores, and words that are unpacked are the left one. Sums are scaled, and not numbers: those over a part of a slice,
// which has a scale of its own. SLOTS: rows are so few that several parts have columns of their own in the right operand, which
// are 0 elsewhere. NVFP4's scales change so often that numbers are scaled instead, in the product that makes numbers of codes.
//
// The depth is whole slices. Where it is more than one of each warp, a block passes over its columns again.

enum { UNIT = 64, SLICE = 4 * UNIT, STREAMS = 16, PASS = STREAMS * SLICE };  // numbers of a warp, and of all warps

// A number as it is, but not before what precedes in the program: what follows from it does not delay that.
#ifdef __EMULATED_CUDA__
INLINE i32 later(i32 x) { return x; }
#else
INLINE i32 later(i32 x) {
  i32 same;
  asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(x));
  return same;
}
#endif

// What codes are multiplied by, of E2M1 in brain floats, or their base: in a register, as `base_of`.
template <class F, class D> INLINE u32 stream_base(bool yes) {
  if (F::is_e2m1) return yes ? 0x1040 : 0;
  return base_of<D>(yes);
}

// Pairs of 4 of a word's 8 codes: at 0 and 4, 1 and 5 of the first half, and so on. Numbers of AFFINE are too large by
// `late_offset`; those of E2M1 are the bits of exponent and mantissa as the lowest ones of a half's, too small by a power of 2.
template <class F, class D> INLINE void stream_numbers(u32 (&pair)[2], u32 word, int half, u32 base) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if constexpr (!F::is_e2m1) {
      pair[i] = (word >> (half * 2 + i) * 4 & 0x000f000f) | base;
    } else {
      // A product has the code in two places at once.
      const u32 codes = (half ? word >> 8 : word) & (i ? 0x00f000f0 : 0x000f000f);
      if (Same<D, BF16>::value) pair[i] = codes * (i ? base >> 4 : base) & 0x81c081c0;
      else pair[i] = (codes << (i ? 8 : 12) & 0x80008000) | (codes << (i ? 5 : 9) & 0x0e000e00);
    }
  }
}

// The scale of sums.
template <class F, class D> INLINE float stream_scale(typename Scales<D, F::mode>::T scale) {
  if constexpr (F::mode == MXFP4) return __uint_as_float(max((u32)scale << 23, 0x400000u));
  else return scale_up<F, D>(scale);
}
// Those of NVFP4's numbers of four units, which are too small, times 2^118 (2^7): of 16 scales, those at `t` of four.
template <class D> INLINE void stream_factors(u32 (&factors)[4], const u8 *scales, u32 t) {
  const float by = Same<D, BF16>::value ? __uint_as_float((127 + 118) << 23) : 128.0f;
  const Four of = *(const Four *)scales;
#pragma unroll
  for (int q = 0; q < 4; q += 2) {
    const u32 both = __byte_perm(of.v[q], of.v[q + 1], t * 0x11 + 0x40);
    float up[2];
#ifdef __EMULATED_CUDA__
    for (int i = 0; i < 2; i++) up[i] = e4m3_up(both >> i * 8 & 0xff);
#else
    u32 halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((u16)both));
    for (int i = 0; i < 2; i++) up[i] = half_up((u16)(halves >> i * 16));
#endif
    // Nothing is cut off.
#pragma unroll
    for (int i = 0; i < 2; i++)
      factors[q + i] = Same<D, BF16>::value ? __byte_perm(__float_as_uint(up[i] * by), 0, 0x3232) : pair_of<D>(up[i] * by);
  }
}

// Copies rows of scales or biases to shared memory: a warp has one at a time.
template <class T> INLINE void stream_rows(T *to, i32 pitch, const T *from, i32 row, i32 step, i32 rows, i32 count) {
  const u32 odd = step == 1 ? (u32)(u64)from | (u32)(row * (i32)sizeof(T)) | (u32)(count * (i32)sizeof(T)) : 1;
  if (odd % 16 != 0) return stage_rows(to, pitch, from, row, step, rows, count, STREAMS * WARP);
  enum { PIECE = 16 / sizeof(T) };
#pragma unroll 1
  for (i32 r = (i32)(threadIdx.x / WARP); r < rows; r += STREAMS)
#pragma unroll 1
    for (i32 at = lane_of() * (i32)PIECE; at < count; at += WARP * PIECE)
      copy_async(place_of(to + (r * pitch + at)), from + (r * row + at), true);
}

// A block, by its number in the product, has `each` columns. AHEAD: tiles of 16 columns of a warp that are on their way at once. More than two were slower, as
// if processors were served unevenly then.
template <class F, class D, Arrangement HOW, int AHEAD, int SLOTS>
INLINE void quantized_stream(const Grouped &s, i32 each, i32 block) {
  typedef typename D::T T;
  typedef typename Scales<D, F::mode>::T S;
  enum {
    SCALED = F::mode == NVFP4, PARTS = F::group < UNIT && !SCALED ? UNIT / F::group : 1,  // of a unit
    NUMBERS = 16 / PARTS, STEPS = 4 / PARTS,                                            // of a lane in a part, and products
    ROUNDS = 4 * PARTS / SLOTS, ROWS = 8 / SLOTS,
    EARLY = SLOTS == 4,  // words of a tile have registers beside those of x, so that others can be asked for before products
    TILE = 16 * SLICE / 8, PITCH = 20  // words of a tile, and sums of a row
  };
  static_assert(F::bits == 4 && (SLOTS == 1 || !SCALED), "numbers of 4 bits");
  DYNAMIC_SHARED(u32, memory);
  const i32 across = HOW == TOGETHER ? 0 : ((i32)s.columns + each - 1) / each;
  const i32 item = HOW == TOGETHER ? 0 : block / across;
  const i32 first = (block - item * across) * each, depth = (i32)s.depth, own = min(each, (i32)s.columns - first);
  const i32 rows = HOW == TOGETHER ? (i32)(s.items * s.rows) : (i32)s.rows, first_row = HOW == TOGETHER ? 0 : item * rows;
  const u32 lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, warp = threadIdx.x / WARP;
  const i64 matrix = factor_matrix(s, HOW == TOGETHER ? 0 : item);
  const u32 base = stream_base<F, D>(depth > 0);

  // Shared memory: words, sums of warps, scales and biases of columns.
  const i32 groups = depth / F::group, pitch = (groups * (i32)sizeof(S) + 31) / 16 * 16 / (i32)sizeof(S);
  const i32 tiles = (each + 15) / 16, passes = (depth + PASS - 1) / PASS;
  u32 *const ring = memory + warp * (AHEAD * TILE);
  float *const parts = (float *)(memory + STREAMS * AHEAD * TILE);
  S *const scales = (S *)(parts + STREAMS * tiles * (rows * PITCH));
  T *const biases = (T *)(scales + tiles * 16 * pitch);

  // Eight lanes ask for a column's words of a slice. Where these lie varies by columns, so that lanes that read the same part of
  // 8 of them, or two parts of 4, meet no common bank.
  auto turn = [](u32 column) { return (column % 4 * 2 + column / 4 % 2) * 16; };
  const u32 place[2] = {lane / 8 * 128 + (lane % 8 * 16 ^ turn(lane / 8)), lane / 8 * 128 + (lane % 8 * 16 ^ turn(lane / 8 + 4))};
  const i32 step = (i32)s.factor_step[1];
  const u32 *const words =
      (const u32 *)s.factor + matrix * s.factor_step[0] + (first * step + (i32)(warp * (SLICE / 8) + lane % 8 * 4));
  i32 next_tile = 0, next_start = 0;
  auto copy = [&](int slot) {
    const bool in = next_start + (i32)(warp * SLICE) < depth;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const i32 column = next_tile * 16 + i * 4 + (i32)(lane / 8);
      const Place to = place_of((const char *)(ring + slot * TILE) + i * 512 + place[i % 2]);
      copy_async(to, words + (column * step + next_start / 8), in && column < own);
    }
    if (++next_tile == tiles) {
      next_tile = 0;
      next_start += PASS;
    }
  };
  copy(0);

  // A lane's numbers of x, of the row and the parts that have its column of the right operand.
  const i32 row = later((i32)(g % ROWS)), slot = (i32)(g / ROWS);
  const i64 x_row = s.items == 1 ? x_matrix(s, 0) * s.x_step[0] + min(row, rows - 1) * s.x_step[1]
                                 : row_offset(s, first_row + min(row, rows - 1));
  const T *const x = (const T *)s.x + x_row + (i32)(warp * SLICE + slot * (UNIT / PARTS) + t * NUMBERS);
  u32 raw[ROUNDS][NUMBERS / 2];
  auto ask_x = [&](i32 start) {
    const bool there = row < rows && start + (i32)(warp * SLICE) < depth;
#pragma unroll
    for (int h = 0; h < ROUNDS; h++)
#pragma unroll
      for (int v = 0; v < NUMBERS / 8; v++) {
        const Four four = there ? *(const Four *)(x + (start + h * SLOTS * (UNIT / PARTS) + v * 8)) : Four();
#pragma unroll
        for (int e = 0; e < 4; e++) raw[h][v * 4 + e] = four.v[e];
      }
  };
  stream_rows(scales, pitch, (const S *)s.scales + matrix * s.scale_step[0] + first * s.scale_step[1], (i32)s.scale_step[1],
              (i32)s.scale_step[2], own, groups);
  if (F::has_biases)
    stream_rows(biases, pitch, (const T *)s.biases + matrix * s.bias_step[0] + first * s.bias_step[1], (i32)s.bias_step[1],
                (i32)s.bias_step[2], own, groups);
  commit_copies();
#pragma unroll 1
  for (int i = 1; i < AHEAD; i++) {
    // No warp's words come before those of others that are needed earlier.
    __syncthreads();
    copy(i);
    commit_copies();
  }
  // Kernels before this one may write x, but not the matrix.
  wait_for_last();
  ask_x(0);

  u32 b[4 * PARTS][STEPS][2];
  float x_sums[ROUNDS][2];  // of the two columns of the right operand that this lane has sums of
  auto put_x = [&] {
#pragma unroll
    for (int h = 0; h < ROUNDS; h++) {
      float sum = 0;
      if (F::has_biases) {
#pragma unroll
        for (int e = 0; e < NUMBERS / 2; e++) sum += D::up(T{(u16)raw[h][e]}) + D::up(T{(u16)(raw[h][e] >> 16)});
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      }
#pragma unroll
      for (int i = 0; i < 2; i++) x_sums[h][i] = F::has_biases ? __shfl_sync(0xffffffffu, sum, (int)(t * 8 + i * 4)) : 0;
#pragma unroll
      for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const int word = step / 2 * 4 + step % 2;
          const u32 both = __byte_perm(raw[h][word], raw[h][word + 2], i ? 0x7632 : 0x5410);
#pragma unroll
          for (int of = 0; of < SLOTS; of++) b[h * SLOTS + of][step][i] = SLOTS == 1 || slot == of ? both : 0;
        }
    }
  };
  put_x();
  // The row of results that this warp finishes.
  const i32 out_row = (i32)(warp % ROWS);
  T *const out = (T *)s.out + out_offset(s, first_row + min(out_row, rows - 1)) + first * s.out_step[2];
  wait_for_copies<AHEAD - 1>();
  __syncthreads();

  const u32 from = g * 128 + (t * (NUMBERS / 2) ^ turn(g));
  int now = 0;
  // Words were read, so that others may take their place.
  auto refill = [&] {
    __syncwarp();
    copy(now);
    commit_copies();
    now = now + 1 == AHEAD ? 0 : now + 1;
  };
#pragma unroll 1
  for (i32 pass = 0, start = 0; pass < passes; pass++, start += PASS) {
    if (pass > 0) {
      ask_x(start);
      put_x();
    }
    const i32 slice = start + (i32)(warp * SLICE);
    // Where this lane's sums have their first scale.
    const i32 part = slice + (i32)(t * SLOTS / 4 * (UNIT / PARTS));
#pragma unroll 1
    for (i32 tile = 0; tile < tiles; tile++) {
      wait_for_copies<AHEAD - 1>();
      __syncwarp();
      float sums[4] = {0, 0, 0, 0}, others[4] = {0, 0, 0, 0};
      const char *const tile_words = (const char *)(ring + now * TILE);
      const i32 line[2] = {(tile * 16 + (i32)g) * pitch, (tile * 16 + 8 + (i32)g) * pitch};
      struct __align__(NUMBERS / 2) Codes { u32 v[NUMBERS / 8]; } codes[4 * PARTS][2];
#pragma unroll
      for (u32 q = 0; q < 4 * PARTS; q++)
#pragma unroll
        for (int c = 0; c < 2; c++) codes[q][c] = *(const Codes *)(tile_words + c * 1024 + (from ^ q * (UNIT / PARTS / 2)));
      if (EARLY) refill();
      if (slice < depth) {
        u32 factors[2][4];
#pragma unroll
        for (int c = 0; c < 2; c++)
          if constexpr (SCALED) stream_factors<D>(factors[c], scales + (line[c] + slice / F::group), t);
#pragma unroll
        for (int h = 0; h < ROUNDS; h++) {
          const float offset = F::has_biases ? -late_offset<F, D>() : 0;
          float late[4] = {x_sums[h][0] * offset, x_sums[h][1] * offset, x_sums[h][0] * offset, x_sums[h][1] * offset};
#pragma unroll
          for (int of = 0; of < SLOTS; of++) {
            const u32 q = h * SLOTS + of;
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
              u32 pair[2][2];
#pragma unroll
              for (int c = 0; c < 2; c++) {
                stream_numbers<F, D>(pair[c], codes[q][c].v[step / 2], step % 2, base);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                  if constexpr (SCALED) pair[c][i] = multiply_add_pair<D>(pair[c][i], factors[c][q], 0x80008000);
                  else if constexpr (F::is_e2m1 && Same<D, BF16>::value)
                    pair[c][i] = multiply_add_pair<D>(pair[c][i], 0x7e807e80, 0x80008000);  // 2^126
                }
              }
              const u32 a[4] = {pair[0][0], pair[1][0], pair[0][1], pair[1][1]};
              if (!SCALED) multiply_add<D>(late, a, b[q][step]);
              else if (step % 2) multiply_add<D>(others, a, b[q][step]);
              else multiply_add<D>(sums, a, b[q][step]);
            }
          }
          if constexpr (!SCALED) {
            const u32 group = (u32)(part + h * SLOTS * (UNIT / PARTS)) / F::group;
#pragma unroll
            for (int e = 0; e < 4; e++) {
              sums[e] = fmaf(stream_scale<F, D>(scales[line[e / 2] + group]), late[e], sums[e]);
              if (F::has_biases) sums[e] = fmaf(D::up(biases[line[e / 2] + group]), x_sums[h][e % 2], sums[e]);
            }
          }
        }
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        if (SCALED) sums[e] += others[e];
        if (SLOTS > 1) sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], 2);
        if (SLOTS > 2) sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], 1);
      }
      if (!EARLY) refill();
      float *const to = parts + ((i32)warp * tiles + tile) * (rows * PITCH) + (i32)(t * 2 * PITCH + g);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        if ((i32)t * 2 + e % 2 >= rows) continue;
        float *const sum = to + e % 2 * PITCH + e / 2 * 8;
        *sum = pass == 0 ? sums[e] : *sum + sums[e];
      }
    }
  }
  __syncthreads();

  const float *global = F::mode == NVFP4 && s.global_scales ? s.global_scales + matrix * s.global_step : nullptr;
  // By what numbers were too small.
  const float small = SCALED ? Same<D, BF16>::value ? 256 : 128 : F::is_e2m1 && Same<D, F16>::value ? 16384 : 1;
  const float factor = F::mode == NVFP4 ? global_up<float>(global) * small : small;
#pragma unroll 1
  for (i32 c = (i32)(warp / ROWS * WARP + lane); c < own && out_row < rows; c += STREAMS / ROWS * WARP) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < STREAMS; w++) sum += parts[(w * tiles + c / 16) * (rows * PITCH) + out_row * PITCH + c % 16];
    out[c * s.out_step[2]] = D::down(F::is_e2m1 ? sum * factor : sum);
  }
}

// Up to three products of the same rows in one launch. The blocks of the second and the third begin at these.
template <class F, class D, int AHEAD, int SLOTS>
INLINE void quantized_streams(const Grouped &a, const Grouped &b, const Grouped &c, i32 second, i32 third, i32 each) {
  const i32 block = (i32)blockIdx.x;
  const Grouped s = block >= third ? c : block >= second ? b : a;
  const i32 before = block >= third ? third : block >= second ? second : 0;
  quantized_stream<F, D, TOGETHER, AHEAD, SLOTS>(s, each, block - before);
}
