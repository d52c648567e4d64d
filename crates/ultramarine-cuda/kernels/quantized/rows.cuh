// Products of few rows with matrices of few bits whose rows are columns of the factor. A lane has the words of 32 numbers of
// some columns, which are unpacked as the left operand of tensor cores; rows of x are the right one. The order of the depth in
// a product is that in which words are easily taken apart, and x is permuted alike. Words pass through shared memory, where
// each lane has places of its own for those that are on their way, several steps ahead; so do scales, a chunk of the depth at
// a time. Scales and x are asked for before words, behind which they would wait.
//
// Four lanes have SLOTS groups of numbers, whose sums a product would add. LATE: rows are so few that each group has columns
// of its own in the right operand, which are 0 where other groups meet them. Sums are scaled then, and not numbers; and x
// is in shared memory, too, and so are its sums over groups, which biases are multiplied by.

enum { RUN = 32, STEP = 4 * RUN };  // numbers of a lane, and of the four lanes of a column

template <int BITS> struct __align__(BITS % 4 == 0 ? 16 : BITS % 2 == 0 ? 8 : 4) RunWords { u32 v[BITS]; };

// Codes of pair `p` of a run, of 16. Where words hold whole codes it is one of the lower and one of the upper half of a word.
template <int BITS> INLINE u32 run_codes(const RunWords<BITS> &words, int p) {
  if (32 % BITS == 0) {
    const int each = 16 / BITS;
    return words.v[p / each] >> p % each * BITS;
  }
  const int bit = 2 * p * BITS, word = bit / 32;
  const u32 codes = __funnelshift_r(words.v[word], words.v[word + 1 < BITS ? word + 1 : word], bit % 32);
  return __byte_perm(codes, codes >> BITS, 0x5410);
}

// What of a run of x they meet.
template <int BITS> INLINE u32 run_pair(const u32 (&x)[RUN / 2], int p) {
  if (32 % BITS != 0) return x[p];
  const int each = 16 / BITS, first = p / each * 2 * each + p % each;
  return __byte_perm(x[first / 2], x[(first + each) / 2], first % 2 ? 0x7632 : 0x5410);
}

// What is multiplied where sums are scaled: numbers that are too large by `late_offset`.
template <class F, class D> INLINE u32 late_numbers(u32 codes, u32 base) {
  if (F::mode != AFFINE || (F::bits == 8 && Same<D, BF16>::value)) return numbers_of<F, D>(codes, base);
  return (codes & twice((1u << F::bits) - 1)) | base;
}
template <class F, class D> INLINE float late_offset() {
  if (F::mode != AFFINE || (F::bits == 8 && Same<D, BF16>::value)) return 0;
  return Same<D, BF16>::value ? 128 : 1024;
}

// Copies `count` elements of each of `rows` rows to rows of shared memory, in pieces if rows are of whole ones.
template <int PIECE, class T>
INLINE void stage_pieces(T *to, i32 pitch, const T *from, i32 row, i32 rows, i32 count, int threads) {
  const i32 pieces = count * (i32)sizeof(T) / PIECE;
#pragma unroll 1
  for (i32 i = (i32)threadIdx.x; i < rows * pieces; i += threads) {
    const i32 r = i / pieces, at = (i - r * pieces) * (PIECE / (i32)sizeof(T));
    copy_part_async<PIECE>(place_of(to + (r * pitch + at)), from + (r * row + at), true);
  }
}
template <class T>
INLINE void stage_rows(T *to, i32 pitch, const T *from, i32 row, i32 step, i32 rows, i32 count, int threads) {
  const u32 odd = step == 1 ? (u32)(u64)from | (u32)(row * (i32)sizeof(T)) | (u32)(count * (i32)sizeof(T)) : 1;
  if (odd % 16 == 0) {
    stage_pieces<16>(to, pitch, from, row, rows, count, threads);
  } else if (odd % 4 == 0) {
    stage_pieces<4>(to, pitch, from, row, rows, count, threads);
  } else {
#pragma unroll 1
    for (i32 i = (i32)threadIdx.x; i < rows * count; i += threads) {
      const i32 r = i / count, at = i - r * count;
      to[r * pitch + at] = from[r * row + at * step];
    }
  }
}

struct __align__(16) Four { u32 v[4]; };

// A warp has 16 columns or, so that x is read less often, twice as many, over one of SPLIT parts of the depth. TILES: of 8
// rows.
template <class F, class D, Arrangement HOW, int TILES, int SPLIT, bool LATE>
INLINE void quantized_rows(const Grouped &s, i32 chunk) {
  typedef typename D::T T;
  typedef typename Scales<D, F::mode>::T S;
  enum {
    WARPS = 8, THREADS = WARPS * WARP, WIDE = LATE ? 1 : 2, COLUMNS = WARPS / SPLIT * 16 * WIDE, LINES = 2 * WIDE,
    BITS = F::bits, AHEAD = 2, PIECE = BITS % 4 == 0 ? 16 : BITS % 2 == 0 ? 8 : 4,
    RING = WARPS * AHEAD * LINES * WARP * BITS,  // words on their way
    PARTS = F::group < RUN ? RUN / F::group : 1,                                  // scales of a run
    SLOTS = !LATE || F::group >= STEP ? 1 : F::group > RUN ? STEP / F::group : 4  // groups with columns of their own
  };
  static_assert(!LATE || TILES == 1, "sums are scaled of one tile alone");
  __shared__ float parts[SPLIT][TILES * 8][COLUMNS];
  DYNAMIC_SHARED(u32, memory);
  const i32 across = ((i32)s.columns + COLUMNS - 1) / COLUMNS, item = (i32)blockIdx.x / across;
  const i32 first = (i32)blockIdx.x % across * COLUMNS, depth = (i32)s.depth, left = (i32)s.columns - first;
  const i32 rows = HOW == TOGETHER ? (i32)(s.items * s.rows) : (i32)s.rows, first_row = HOW == TOGETHER ? 0 : item * rows;
  const int lane = lane_of(), g = lane / 4, t = lane % 4, warp = (int)threadIdx.x / WARP, part = warp % SPLIT;
  const int own = warp / SPLIT * 16 * WIDE + g;  // the first of this lane's columns, which are 8 apart
  const i64 matrix = factor_matrix(s, HOW == TOGETHER ? 0 : item);

  const u32 low = base_of<D>(depth > 0);
  // Where this lane's words, scales and biases of the columns begin: 31 bits reach all of a matrix.
  const u32 *const words = (const u32 *)s.factor + matrix * s.factor_step[0] + (part * STEP / RUN + t) * BITS, *next[LINES];
  const S *scales = (const S *)s.scales + matrix * s.scale_step[0] + first * s.scale_step[1];
  const T *biases = (const T *)s.biases + matrix * s.bias_step[0] + first * s.bias_step[1];
#pragma unroll
  for (int i = 0; i < LINES; i++) next[i] = words + (first + min(own + i * 8, left - 1)) * (i32)s.factor_step[1];

  // Shared memory: words, zeros, rows of x, their sums, scales and biases of columns.
  enum { ZEROS = LATE ? STEP / 2 : 0 };
  const i32 x_pitch = chunk / 2 + 16, groups = chunk / F::group, pitch = (groups * (i32)sizeof(S) + 31) / 16 * 16 / (i32)sizeof(S);
  u32 *const zeros = memory + RING, *xs = zeros + ZEROS;
  S *own_scales = (S *)(xs + (LATE ? rows * x_pitch : 0));
  T *own_biases = (T *)(own_scales + COLUMNS * pitch);
  float *x_sums = (float *)(own_biases + (F::has_biases ? COLUMNS * pitch : 0));
  for (int i = (int)threadIdx.x; i < ZEROS; i += THREADS) zeros[i] = 0;
  const i32 end = (depth + STEP - 1) / STEP * STEP;

  // Asks for scales and biases of a chunk.
  auto ask = [&](i32 start) {
    const i32 count = min(chunk, depth - start) / F::group;
    const i32 at = start / F::group, lines = min(left, (i32)COLUMNS);
    stage_rows(own_scales, pitch, scales + at * s.scale_step[2], (i32)s.scale_step[1], (i32)s.scale_step[2], lines, count,
               THREADS);
    if (F::has_biases)
      stage_rows(own_biases, pitch, biases + at * s.bias_step[2], (i32)s.bias_step[1], (i32)s.bias_step[2], lines, count,
                 THREADS);
    commit_copies();
  };
  // A run of x, number `i` of a chunk's. All lanes of a warp have one.
  auto runs_of = [&](i32 start) { return (min(chunk, depth - start) + STEP - 1) / STEP * 4; };
  auto put = [&](i32 start, i32 i) {
    const i32 runs = runs_of(start), r = i / runs, run = i - r * runs, from_at = start + run * RUN;
    const Four *from = (const Four *)((const T *)s.x + row_offset(s, first_row + min(r, rows - 1)) + from_at);
    u32 x[RUN / 2];
#pragma unroll
    for (int v = 0; v < 4; v++) {
      const Four four = from_at < depth ? from[v] : Four();
#pragma unroll
      for (int e = 0; e < 4; e++) x[v * 4 + e] = four.v[e];
    }
    if (F::has_biases) {
#pragma unroll
      for (int p = 0; p < PARTS; p++) {
        float sum = 0;
#pragma unroll
        for (int e = p * (RUN / 2 / PARTS); e < (p + 1) * (RUN / 2 / PARTS); e++)
          sum += D::up(T{(u16)x[e]}) + D::up(T{(u16)(x[e] >> 16)});
#pragma unroll
        for (int lanes = 1; lanes < F::group / RUN; lanes *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
        if (r < rows) x_sums[r * groups + (run * RUN / F::group + p)] = sum;
      }
    }
    if (r >= rows) return;
    // Four lanes read the same part of their runs at once.
#pragma unroll
    for (int v = 0; v < 4; v++) {
      Four four;
#pragma unroll
      for (int e = 0; e < 4; e++) four.v[e] = run_pair<BITS>(x, v * 4 + e);
      *(Four *)(xs + r * x_pitch + run / 4 * (STEP / 2) + (v * 4 + run % 4) * 4) = four;
    }
  };
  // Where this lane reads columns of the right operand: rows of x, or zeros.
  const u32 *late_x = zeros + t * 4;
  const T *x[TILES];
  i32 late_step = 0;
  bool there[TILES];
#pragma unroll
  for (int i = 0; i < TILES; i++) {
    const int row = LATE ? g % (8 / SLOTS) : g + i * 8;
    there[i] = row < rows && (!LATE || g / (8 / SLOTS) == t * SLOTS / 4);
    if (!LATE) x[i] = (const T *)s.x + row_offset(s, first_row + (there[i] ? row : 0)) + t * RUN;
    if (LATE && there[i]) {
      late_x = xs + row * x_pitch + t * 4;
      late_step = 1;
    }
  }

  u32 *const ring = memory + warp * (RING / WARPS);
  auto place = [&](int slot, int line, int piece) {
    return (char *)(ring + (slot * LINES + line) * WARP * BITS) + (piece * WARP + lane) * PIECE;
  };
  // Asks for words of the next step, which is that at `at`.
  auto copy = [&](int slot, i32 at) {
    const bool in = at + t * RUN < depth;
#pragma unroll
    for (int i = 0; i < LINES; i++) {
#pragma unroll
      for (int p = 0; p < BITS * 4 / PIECE; p++) {
        const Place to = place_of(place(slot, i, p));
        const u32 *from = next[i] + p * (PIECE / 4);
        // Of a lane's two pieces the cache keeps what the other one needs of the same 32 bytes.
        if (PIECE == 16 && BITS > 4) copy_async<true>(to, from, in);
        else copy_part_async<PIECE>(to, from, in);
      }
      next[i] += SPLIT * STEP / RUN * BITS;
    }
    commit_copies();
  };
  auto take = [&](RunWords<BITS> (&to)[LINES], int slot) {
    struct __align__(PIECE) Piece { u32 v[PIECE / 4]; };
#pragma unroll
    for (int i = 0; i < LINES; i++)
#pragma unroll
      for (int p = 0; p < BITS * 4 / PIECE; p++) {
        const Piece piece = *(const Piece *)place(slot, i, p);
#pragma unroll
        for (int e = 0; e < PIECE / 4; e++) to[i].v[p * (PIECE / 4) + e] = piece.v[e];
      }
  };
  // Runs of x of a step, where they are not in shared memory.
  struct Runs { u32 v[TILES][RUN / 2]; };
  auto runs_at = [&](Runs &to, i32 at) {
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int v = 0; v < 4; v++) {
        const Four four = there[i] && at + t * RUN < depth ? *(const Four *)(x[i] + at + v * 8) : Four();
#pragma unroll
        for (int e = 0; e < 4; e++) to.v[i][v * 4 + e] = four.v[e];
      }
  };
  float sums[WIDE][TILES][4];
  clear(sums);

  // Adds the products of a step, `at` being its place in the chunk, of `count` numbers.
  auto multiply = [&](const RunWords<BITS> (&from)[LINES], const Runs &runs, i32 at, i32 count) {
    u32 scale[LINES][PARTS], bias[LINES][PARTS];
    // Rows of the columns of the right operand that this lane has sums of.
    const i32 line[2] = {min(t * 2 % (8 / SLOTS), rows - 1) * groups, min((t * 2 + 1) % (8 / SLOTS), rows - 1) * groups};
#pragma unroll
    for (int i = 0; i < LINES; i++)
#pragma unroll
      for (int p = 0; p < PARTS; p++) {
        const u32 group = (u32)min(at + t * RUN + p * F::group, count - 1) / F::group, where = (own + i * 8) * pitch + group;
        scale[i][p] = bits_of(own_scales[where]);
        bias[i][p] = F::has_biases ? bits_of(own_biases[where]) : 0;
      }
    if constexpr (LATE) {
      float late[4] = {0, 0, 0, 0};
#pragma unroll
      for (int v = 0; v < 4; v++) {
        const Four run = *(const Four *)(late_x + late_step * ((u32)at / 2) + v * 16);
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int p = v * 4 + half * 2;
          const u32 b[2] = {run.v[half * 2], run.v[half * 2 + 1]};
          u32 a[4];
#pragma unroll
          for (int i = 0; i < 4; i++) a[i] = late_numbers<F, D>(run_codes<BITS>(from[i % 2], p + i / 2), low);
          multiply_add<D>(late, a, b);
          if ((p + 2) % (RUN / 2 / PARTS) != 0) continue;
          const int now = p * 2 * PARTS / RUN;
#pragma unroll
          for (int e = 0; e < 4; e++) {
            float by;
            if constexpr (F::mode == AFFINE) {
              by = D::up(T{(u16)scale[e / 2][now]});
              const float with = fmaf(by, -late_offset<F, D>(), D::up(T{(u16)bias[e / 2][now]}));
              sums[0][0][e] = fmaf(with, x_sums[line[e % 2] + (u32)(at + t * RUN + now * F::group) / F::group], sums[0][0][e]);
            } else {
              by = scale_up<F, D>((u8)scale[e / 2][now]);
            }
            sums[0][0][e] = fmaf(by, late[e], sums[0][0][e]);
            late[e] = 0;
          }
        }
      }
    } else {
      Scaling<F, D> scaling[LINES][PARTS];
#pragma unroll
      for (int i = 0; i < LINES; i++)
#pragma unroll
        for (int p = 0; p < PARTS; p++) scaling[i][p].set(scale[i][p], bias[i][p]);
#pragma unroll
      for (int p = 0; p < RUN / 2; p += 2)
#pragma unroll
        for (int w = 0; w < WIDE; w++) {
          u32 a[4];
#pragma unroll
          for (int i = 0; i < 4; i++)
            a[i] = scaling[2 * w + i % 2][(p + i / 2) * 2 * PARTS / RUN].apply(
                run_codes<BITS>(from[2 * w + i % 2], p + i / 2), low);
#pragma unroll
          for (int i = 0; i < TILES; i++) {
            const u32 b[2] = {run_pair<BITS>(runs.v[i], p), run_pair<BITS>(runs.v[i], p + 1)};
            multiply_add<D>(sums[w][i], a, b);
          }
        }
    }
  };

  i32 at = part * STEP;
  int slot = 0;
  Runs ahead;
#pragma unroll 1
  for (i32 start = 0; start < depth; start += chunk) {
    if (start > 0) __syncthreads();
    ask(start);
    if (!LATE && start == 0) runs_at(ahead, at);
    if (start == 0) {
#pragma unroll
      for (int a = 0; a < AHEAD; a++) copy(a, at + a * SPLIT * STEP);
    }
    if constexpr (LATE) {
#pragma unroll 1
      for (i32 i = (i32)threadIdx.x; i - lane < rows * runs_of(start); i += THREADS) put(start, i);
    }
    if (start == 0) wait_for_copies<AHEAD>();
    else wait_for_copies<0>();
    __syncthreads();
    const i32 until = min(start + chunk, end), count = min(chunk, depth - start);
#pragma unroll 1
    for (; at < until; at += SPLIT * STEP) {
      wait_for_copies<AHEAD - 1>();
      RunWords<BITS> now[LINES];
      take(now, slot);
      const Runs runs = ahead;
      if (!LATE) runs_at(ahead, at + SPLIT * STEP);
      multiply(now, runs, at - start, count);
      // Its words were used, so that others may take their place.
      copy(slot, at + AHEAD * SPLIT * STEP);
      slot = slot + 1 == AHEAD ? 0 : slot + 1;
    }
  }

#pragma unroll
  for (int w = 0; w < WIDE; w++)
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) parts[part][i * 8 + t * 2 + e % 2][own + w * 16 + e / 2 * 8] = sums[w][i][e];
  __syncthreads();
  const float *global = F::mode == NVFP4 && s.global_scales ? s.global_scales + matrix * s.global_step : nullptr;
  const float factor = F::mode == NVFP4 ? global_up<float>(global) : 1;
  for (int i = (int)threadIdx.x; i < rows * COLUMNS; i += THREADS) {
    const int r = i / COLUMNS, c = i % COLUMNS;
    if (c >= left) continue;
    float sum = 0;
#pragma unroll
    for (int p = 0; p < SPLIT; p++)
#pragma unroll
      for (int slot = 0; slot < SLOTS; slot++) sum += parts[p][r + slot * (8 / SLOTS)][c];
    ((T *)s.out)[out_offset(s, first_row + r) + (first + c) * s.out_step[2]] = D::down(F::mode == NVFP4 ? sum * factor : sum);
  }
}
