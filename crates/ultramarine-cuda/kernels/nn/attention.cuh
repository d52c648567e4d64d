// ATTENTION of halves by tensor cores, in blocks of queries and keys (Dao, FlashAttention-2: Faster attention with better
// parallelism and work partitioning, 2023): the scores stay in registers.

// Sizes and strides, in elements. A unit is what blocks of rows are cut from: the queries of one head or, where they are
// few, those of all heads of a key head, one behind the other.
struct Attention {
  i32 batches, span;         // and heads of a unit
  i32 heads, group;          // query heads, and those of a key head
  i32 queries, keys, size, value_size;
  i32 causal;
  float scale, log2_scale;
  i64 q[4], k[4], v[4], out[4], lse[3], mask[4], sinks[2], lengths[1];
};

enum { NO_MASK, BOOL_MASK, ADDED_MASK };

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f
#define ROOM 8.0f
#define LOWEST (-3.4028234663852886e38f)
#define INFINITE (__int_as_float(0x7f800000))

// Where a row of a unit is.
struct Query { i32 head, query; };

INLINE Query query_of_row(const Attention &s, i32 unit_head, i32 row) {
  Query p;
  p.head = unit_head + row / s.queries;
  p.query = row % s.queries;
  return p;
}

// Which block of which unit this one is: some units at a time, whose tensors stay in the L2 cache, and of these the first
// blocks first, which have most to do.
struct Placed { i32 unit, block; };

INLINE Placed placed_of(i32 units, i32 blocks) {
  enum { TOGETHER = 16 };
  i32 before = (i32)blockIdx.x / (TOGETHER * blocks) * TOGETHER, of_them = min(TOGETHER, units - before);
  i32 place = (i32)blockIdx.x - before * blocks;
  Placed placed;
  placed.unit = before + place % of_them;
  placed.block = place / of_them;
  return placed;
}

// Loads 8 halves, of which `count` are there, and zeros. `any` is an address that may be read.
template <bool VECTORS, class T>
INLINE void load_part(u16 *to, const T *from, const T *any, i64 step, i32 count) {
  if (VECTORS) {
    copy_async(place_of(to), count > 0 ? from : any, count > 0);
  } else {
    for (int i = 0; i < 8; i++) to[i] = i < count ? from[i * step].bits : (u16)0;
  }
}

// Loads `count` rows of `size` halves into rows of PITCH halves, of which COLUMNS are used: what is not there is 0.
template <int COLUMNS, int PITCH, int ROWS, int THREADS, bool VECTORS, class T>
INLINE void load_rows(u16 *to, const T *from, i64 stride, i64 step, i32 count, i32 size) {
  enum { PARTS = COLUMNS / 8 };
  for (int c = (int)threadIdx.x; c < ROWS * PARTS; c += THREADS) {
    int row = c / PARTS, part = c % PARTS * 8;
    load_part<VECTORS>(to + row * PITCH + part, from + row * stride + part * step, from, step,
                       row < count ? size - part : 0);
  }
}

// sums += weights b, for weights in the layout of results and b as it lies.
template <class D, int PITCH, int TILES, int ROWS, int COLUMNS>
INLINE void add_product(float (&sums)[TILES][COLUMNS][4], const float (&weights)[TILES][ROWS][4], Place b) {
#pragma unroll
  for (int step = 0; step < ROWS / 2; step++) {
    u32 a[TILES][4];
#pragma unroll
    for (int i = 0; i < TILES; i++) {
      const float *low = weights[i][2 * step], *high = weights[i][2 * step + 1];
      a[i][0] = pack_halves<D>(low[0], low[1]);
      a[i][1] = pack_halves<D>(low[2], low[3]);
      a[i][2] = pack_halves<D>(high[0], high[1]);
      a[i][3] = pack_halves<D>(high[2], high[3]);
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2) {
      u32 columns[4];
      load_transposed(columns, b + step * 16 * 2 * PITCH + j * 16);
      multiply_columns<D>(sums, j, a, columns);
    }
  }
}

// Loads rows of queries, or of what has their rows, of a unit.
template <int COLUMNS, int PITCH, int ROWS, int THREADS, bool VECTORS, class T>
INLINE void load_queries(u16 *to, const T *from, const i64 (&strides)[4], const Attention &s, i32 head, i32 first,
                         i32 count, i32 size) {
  enum { PARTS = COLUMNS / 8 };
  for (int c = (int)threadIdx.x; c < ROWS * PARTS; c += THREADS) {
    int row = c / PARTS, part = c % PARTS * 8;
    bool in = row < count;
    Query p = query_of_row(s, head, in ? first + row : first);
    const T *source = from + p.head * strides[1] + p.query * strides[2] + part * strides[3];
    load_part<VECTORS>(to + row * PITCH + part, source, from, strides[3], in ? size - part : 0);
  }
}

template <class D, int HEAD, int VALUE, int TILES, int WARPS, int KEYS, bool VECTORS, int MASK, bool SCALED,
          bool SPLIT>
INLINE void attention_halves(const typename D::T *q, const typename D::T *k, const typename D::T *v, const void *mask,
                             const typename D::T *sinks, const i32 *lengths, typename D::T *out, float *lse,
                             float *partial, i32 splits, const Attention &s) {
  enum {
    ROWS = WARPS * TILES * 16, THREADS = WARPS * WARP, QP = HEAD + 8, VP = VALUE + 8,
    KT = KEYS / 8, VT = VALUE / 8
  };
  typedef typename D::T T;
  DYNAMIC_SHARED(u16, queries);
  u16 *keys = queries + ROWS * QP, *values = keys + KEYS * QP;
  Place of_queries = left_rows<QP>(queries + (int)threadIdx.x / WARP * TILES * 16 * QP);
  Place of_keys = right_columns<QP>(keys), of_values = right_rows<VP>(values);
  int lane = lane_of(), warp = (int)threadIdx.x / WARP;

  i32 rows = s.span * s.queries, blocks = (rows + ROWS - 1) / ROWS;
  Placed place = placed_of(s.heads / s.span * s.batches, blocks);
  i32 unit = place.unit, first = (blocks - 1 - place.block) * ROWS, split = 0;
  if (SPLIT) {  // all rows of a unit are one block
    unit = (i32)(blockIdx.x / splits);
    split = (i32)(blockIdx.x % splits);
    first = 0;
  }
  i32 per_batch = s.heads / s.span, batch = unit / per_batch, head = unit % per_batch * s.span;
  i32 key_head = head / s.group;
  k += batch * s.k[0] + key_head * s.k[1];
  v += batch * s.v[0] + key_head * s.v[1];
  i32 length = s.keys;
  if (lengths) length = min(lengths[batch * s.lengths[0]], s.keys);

  load_queries<HEAD, QP, ROWS, THREADS, VECTORS>(queries, q + batch * s.q[0], s.q, s, head, first, rows - first, s.size);

  // The number of keys that each row of this thread sees by its place, and that any row of the block needs.
  i32 ends[2 * TILES], least = length;
  i32 last = min(first + ROWS, rows) - 1, needed = length;
  if (s.causal) {
    bool one_head = first / s.queries == last / s.queries;
    i32 latest = one_head ? last % s.queries : s.queries - 1;
    needed = min(length, latest + length - s.queries + 1);
  }
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    i32 row = first + (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8;
    i32 place = min(row, last) % s.queries;
    ends[i] = s.causal ? min(length, place + length - s.queries + 1) : length;
    least = min(least, ends[i]);
  }

  float sums[TILES][VT][4], top[2 * TILES], total[2 * TILES];
  clear(sums);
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    top[i] = -INFINITE;
    total[i] = 0.0f;
  }

  auto load_keys = [&](i32 from) {
    load_rows<HEAD, QP, KEYS, THREADS, VECTORS>(keys, k + from * s.k[2], s.k[2], s.k[3], s.keys - from, s.size);
    commit_copies();
  };
  auto load_values = [&](i32 from) {
    load_rows<VALUE, VP, KEYS, THREADS, VECTORS>(values, v + from * s.v[2], s.v[2], s.v[3], s.keys - from, s.value_size);
    commit_copies();
  };

  i32 begin = 0;
  if (SPLIT) {
    i32 part = ((needed + splits - 1) / splits + KEYS - 1) / KEYS * KEYS;
    begin = split * part;
    needed = min(needed, begin + part);
  }
  if (begin < needed) load_keys(begin);
  for (i32 from = begin; from < needed; from += KEYS) {
    wait_for_copies<0>();
    __syncthreads();
    load_values(from);

    float scores[TILES][KT][4];
    multiply<D, HEAD, QP>(scores, of_queries, of_keys);
    // All have read the keys, and the values are there.
    wait_for_copies<0>();
    __syncthreads();
    if (from + KEYS < needed) load_keys(from + KEYS);

    // Scores in units of ln 2 where numbers are added, or the scale would turn their order round.
    if (SCALED || MASK != NO_MASK) {
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++) {
        i32 row = min(first + (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8, last);
        Query p = query_of_row(s, head, row);
        i64 mask_row = batch * s.mask[0] + p.head * s.mask[1] + p.query * s.mask[2];
#pragma unroll
        for (int j = 0; j < KT; j++)
#pragma unroll
          for (int c = 0; c < 2; c++) {
            float &score = scores[i / 2][j][2 * (i % 2) + c];
            i32 key = from + j * 8 + lane % 4 * 2 + c;
            if (SCALED) score *= s.log2_scale;
            if (MASK != NO_MASK && key < length) {
              i64 at = mask_row + key * s.mask[3];
              if (MASK == BOOL_MASK) {
                if (!((const u8 *)mask)[at]) score = -INFINITE;
              } else {
                score = fmaf(D::up(((const T *)mask)[at]), LOG2_E, score);
                if (score < LOWEST) score = -INFINITE;
              }
            }
          }
      }
    }
    if (from + KEYS > least) {
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++)
#pragma unroll
        for (int j = 0; j < KT; j++)
#pragma unroll
          for (int c = 0; c < 2; c++)
            if (from + j * 8 + lane % 4 * 2 + c >= ends[i]) scores[i / 2][j][2 * (i % 2) + c] = -INFINITE;
    }

    // The softmax so far; rows are spread over four neighbouring lanes. Sums are scaled again where a score is far above
    // what they are relative to, which is seldom: float has room for the others (Zadouri and others, FlashAttention-4).
    float unit_scale = SCALED ? 1.0f : s.log2_scale, largest[2 * TILES];
    bool grows = false;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      largest[i] = top[i];
#pragma unroll
      for (int j = 0; j < KT; j++)
        largest[i] = fmaxf(largest[i], fmaxf(scores[i / 2][j][2 * (i % 2)], scores[i / 2][j][2 * (i % 2) + 1]));
      largest[i] = fmaxf(largest[i], __shfl_xor_sync(0xffffffffu, largest[i], 1));
      largest[i] = fmaxf(largest[i], __shfl_xor_sync(0xffffffffu, largest[i], 2));
      grows = grows || (largest[i] - top[i]) * unit_scale > ROOM;
    }
    if (__any_sync(0xffffffffu, grows)) {
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++) {
        float shift = largest[i] == -INFINITE ? 0.0f : largest[i] * unit_scale;
        float factor = power_of_2(fmaf(top[i], unit_scale, -shift));
        top[i] = largest[i];
        total[i] *= factor;
#pragma unroll
        for (int j = 0; j < VT; j++) {
          sums[i / 2][j][2 * (i % 2)] *= factor;
          sums[i / 2][j][2 * (i % 2) + 1] *= factor;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      float shift = top[i] == -INFINITE ? 0.0f : top[i] * unit_scale, sum = 0.0f;
#pragma unroll
      for (int j = 0; j < KT; j++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
          float &score = scores[i / 2][j][2 * (i % 2) + c];
          score = power_of_2(fmaf(score, unit_scale, -shift));
          sum += score;
        }
      total[i] += sum;
    }
    add_product<D, VP>(sums, scores, of_values);
  }

  // Sums of rows, and sinks. A row that sees no key weighs all values equally.
  bool whole[2 * TILES], any = false;
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    total[i] += __shfl_xor_sync(0xffffffffu, total[i], 1);
    total[i] += __shfl_xor_sync(0xffffffffu, total[i], 2);
    top[i] = top[i] == -INFINITE ? -INFINITE : top[i] * (SCALED ? 1.0f : s.log2_scale);
    if (SPLIT) {
      i32 row = (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8;
      if (row > last) continue;
      i64 at = ((i64)unit * rows + row) * splits + split;
#pragma unroll
      for (int j = 0; j < VT; j++) {
        const float *sum = sums[i / 2][j] + 2 * (i % 2);
        float *target = partial + at * VALUE + j * 8 + lane % 4 * 2;
        target[0] = sum[0];
        target[1] = sum[1];
      }
      float *state = partial + (i64)per_batch * s.batches * rows * splits * VALUE + 2 * at;
      if (lane % 4 == 0) {
        state[0] = top[i];
        state[1] = total[i];
      }
      continue;
    }
    if (sinks) {
      i32 row = min(first + (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8, last);
      float sink = D::up(sinks[batch * s.sinks[0] + query_of_row(s, head, row).head * s.sinks[1]]) * LOG2_E;
      float largest = fmaxf(top[i], sink), shift = largest == -INFINITE ? 0.0f : largest;
      float factor = power_of_2(top[i] - shift);
      total[i] = fmaf(total[i], factor, power_of_2(sink - shift));
      top[i] = largest;
#pragma unroll
      for (int j = 0; j < VT; j++) {
        sums[i / 2][j][2 * (i % 2)] *= factor;
        sums[i / 2][j][2 * (i % 2) + 1] *= factor;
      }
    }
    whole[i] = total[i] == 0.0f;
    any = any || whole[i];
  }
  if (SPLIT) return;
  if (__syncthreads_or(any)) {
    float weights[TILES][KT][4];
    for (i32 from = 0; from < s.keys; from += KEYS) {
      __syncthreads();
      load_values(from);
      wait_for_copies<0>();
      __syncthreads();
#pragma unroll
      for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int j = 0; j < KT; j++)
#pragma unroll
          for (int c = 0; c < 4; c++)
            weights[i][j][c] = whole[2 * i + c / 2] && from + j * 8 + lane % 4 * 2 + c % 2 < s.keys ? 1.0f : 0.0f;
      add_product<D, VP>(sums, weights, of_values);
    }
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
      if (whole[i]) total[i] = (float)s.keys;
  }

#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    i32 row = first + (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8;
    if (row > last) continue;
    Query p = query_of_row(s, head, row);
    float factor = 1.0f / total[i];
    T *target = out + batch * s.out[0] + p.head * s.out[1] + p.query * s.out[2];
    bool pairs = s.out[3] == 1 && ((u64)target | s.value_size * sizeof(T)) % 4 == 0;
#pragma unroll
    for (int j = 0; j < VT; j++) {
      const float *sum = sums[i / 2][j] + 2 * (i % 2);
      i32 e = j * 8 + lane % 4 * 2;
      if (pairs && e < s.value_size) *(u32 *)(target + e) = pack_halves<D>(sum[0] * factor, sum[1] * factor);
      for (int c = 0; c < 2; c++)
        if (!pairs && e + c < s.value_size) target[(e + c) * s.out[3]] = D::down(sum[c] * factor);
    }
    if (lane % 4 == 0)
      lse[batch * s.lse[0] + p.head * s.lse[1] + p.query * s.lse[2]] =
          whole[i] ? LOWEST : (top[i] + log2f(total[i])) * LN_2;
  }
}

// Joins the parts of the keys of a row: a block for each, a thread for each element of the result.
template <class D, int VALUE>
INLINE void attention_join(const float *partial, const typename D::T *v, const typename D::T *sinks,
                           typename D::T *out, float *lse, i32 splits, const Attention &s) {
  i32 rows = s.span * s.queries, per_batch = s.heads / s.span;
  i32 unit = (i32)(blockIdx.x / rows), row = (i32)(blockIdx.x % rows);
  i32 batch = unit / per_batch, head = unit % per_batch * s.span;
  Query p = query_of_row(s, head, row);
  i64 at = ((i64)unit * rows + row) * splits;
  const float *states = partial + (i64)per_batch * s.batches * rows * splits * VALUE + 2 * at;
  float sink = sinks ? D::up(sinks[batch * s.sinks[0] + p.head * s.sinks[1]]) * LOG2_E : -INFINITE;
  float top = sink;
  for (i32 i = 0; i < splits; i++) top = fmaxf(top, states[2 * i]);
  float shift = top == -INFINITE ? 0.0f : top, total = power_of_2(sink - shift);
  for (i32 i = 0; i < splits; i++) total = fmaf(states[2 * i + 1], power_of_2(states[2 * i] - shift), total);
  bool whole = total == 0.0f;
  for (i32 e = (i32)threadIdx.x; e < s.value_size; e += (i32)blockDim.x) {
    float sum = 0.0f;
    if (whole) {
      const typename D::T *values = v + batch * s.v[0] + p.head / s.group * s.v[1] + e * s.v[3];
      for (i32 key = 0; key < s.keys; key++) sum += D::up(values[key * s.v[2]]);
      sum /= (float)s.keys;
    } else {
      for (i32 i = 0; i < splits; i++)
        sum = fmaf(partial[(at + i) * VALUE + e], power_of_2(states[2 * i] - shift), sum);
      sum /= total;
    }
    out[batch * s.out[0] + p.head * s.out[1] + p.query * s.out[2] + e * s.out[3]] = D::down(sum);
  }
  if (threadIdx.x == 0)
    lse[batch * s.lse[0] + p.head * s.lse[1] + p.query * s.lse[2]] = whole ? LOWEST : (top + log2f(total)) * LN_2;
}
