// ATTENTION_GRADIENT of halves by tensor cores. One kernel sums over queries, for the gradients by keys and values, the
// other over keys, for that by queries: both compute the weights anew from the logarithms, and no sum depends on
// the order of blocks.

// The strides of the tensors that the gradient has beside those of attention.
struct Gradient {
  i64 ct[4], logarithms[3], delta[3], dq[4], dk[4], dv[4];
};

// What the forward pass says of a query: weights are 2^(scale score - shift).
struct Known {
  float scale, shift, delta;
  i32 end;  // keys that are seen by place; below 0 where all are masked
};

INLINE Known nothing_known() {
  Known known = {0.0f, INFINITE, 0.0f, 0};
  return known;
}

template <bool SCALED>
INLINE Known known_of(const Attention &s, const Gradient &g, const float *logarithms, const float *delta, i32 batch,
                      Query p, i32 length) {
  Known known;
  float logarithm = logarithms[batch * g.logarithms[0] + p.head * g.logarithms[1] + p.query * g.logarithms[2]];
  bool whole = logarithm <= LOWEST;
  known.scale = whole ? 0.0f : SCALED ? 1.0f : s.log2_scale;
  known.shift = whole ? log2f((float)s.keys) : logarithm * LOG2_E;
  known.delta = delta[batch * g.delta[0] + p.head * g.delta[1] + p.query * g.delta[2]];
  i32 end = s.causal ? min(length, p.query + length - s.queries + 1) : length;
  known.end = whole ? -1 : max(end, 0);
  return known;
}

// The weight of a score, and whether it has a gradient.
template <class D, int MASK, bool SCALED>
INLINE float weight_of(const Attention &s, float score, const Known &known, i32 key, const void *mask, i64 mask_row,
                       bool &flat) {
  flat = known.end < 0;
  if (SCALED) score *= s.log2_scale;
  if (!flat && MASK != NO_MASK && key < known.end) {
    i64 at = mask_row + key * s.mask[3];
    if (MASK == BOOL_MASK) {
      flat = !((const u8 *)mask)[at];
    } else {
      score = fmaf(D::up(((const typename D::T *)mask)[at]), LOG2_E, score);
      flat = score < LOWEST;
    }
    if (flat) return 0.0f;
  }
  if (!flat && key >= known.end) return 0.0f;
  return power_of_2(fmaf(score, known.scale, -known.shift));
}

template <class D>
INLINE void store_pair(typename D::T *row, i64 step, i32 e, i32 size, float first, float second) {
  if (e < size) row[e * step] = D::down(first);
  if (e + 1 < size) row[(e + 1) * step] = D::down(second);
}

// By keys and values: a block of KEYS = 16 WARPS keys, and all queries of their heads, QUERIES at a time. Scores are
// transposed, so that the weights of a warp's keys are the left operand of both sums.
template <class D, int HEAD, int VALUE, int WARPS, int QUERIES, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_by_keys(const typename D::T *q, const typename D::T *k, const typename D::T *v, const void *mask,
                              const i32 *lengths, const typename D::T *ct, const float *logarithms,
                              const float *delta, typename D::T *dk, typename D::T *dv, const Attention &s,
                              const Gradient &g) {
  enum { KEYS = 16 * WARPS, THREADS = WARPS * WARP, QP = HEAD + 8, VP = VALUE + 8, QT = QUERIES / 8 };
  typedef typename D::T T;
  DYNAMIC_SHARED(u16, keys);
  __shared__ Known all_known[2][QUERIES];
  __shared__ i64 all_mask_rows[2][MASK == NO_MASK ? 1 : QUERIES];
  u16 *values = keys + KEYS * QP, *queries = values + KEYS * VP, *cotangents = queries + 2 * QUERIES * QP;
  int lane = lane_of(), warp = (int)threadIdx.x / WARP;
  i32 blocks = (s.keys + KEYS - 1) / KEYS;
  i32 key_heads = s.heads / s.group;
  Placed place = placed_of(key_heads * s.batches, blocks);
  i32 first = place.block * KEYS, batch = place.unit / key_heads, key_head = place.unit % key_heads;
  i32 head = key_head * s.group, rows = s.group * s.queries;
  i32 length = s.keys;
  if (lengths) length = min(lengths[batch * s.lengths[0]], s.keys);
  q += batch * s.q[0];
  ct += batch * g.ct[0];
  const T *own_k = k + batch * s.k[0] + key_head * s.k[1] + first * s.k[2];
  const T *own_v = v + batch * s.v[0] + key_head * s.v[1] + first * s.v[2];
  load_rows<HEAD, QP, KEYS, THREADS, VECTORS>(keys, own_k, s.k[2], s.k[3], s.keys - first, s.size);
  load_rows<VALUE, VP, KEYS, THREADS, VECTORS>(values, own_v, s.v[2], s.v[3], s.keys - first, s.value_size);

  Place left_keys = left_rows<QP>(keys + warp * 16 * QP), left_values = left_rows<VP>(values + warp * 16 * VP);
  Place query_columns = right_columns<QP>(queries), query_rows = right_rows<QP>(queries);
  Place ct_columns = right_columns<VP>(cotangents), ct_rows = right_rows<VP>(cotangents);
  float by_keys[1][HEAD / 8][4] = {}, by_values[1][VALUE / 8][4] = {};

  // The next queries that any of these keys counts for. Those that see no key at all weigh every one.
  auto next = [&](i32 row) {
    for (; row < rows; row += QUERIES) {
      i32 last = min(row + QUERIES, rows) - 1;
      if (!s.causal || length < s.queries || row / s.queries != last / s.queries ||
          last % s.queries + length - s.queries + 1 > first)
        break;
    }
    return row;
  };
  auto load = [&](i32 row, int at) {
    if (row >= rows) return;
    i32 last = min(row + QUERIES, rows) - 1;
    load_queries<HEAD, QP, QUERIES, THREADS, VECTORS>(queries + at * QUERIES * QP, q, s.q, s, head, row, rows - row, s.size);
    load_queries<VALUE, VP, QUERIES, THREADS, VECTORS>(cotangents + at * QUERIES * VP, ct, g.ct, s, head, row, rows - row,
                                                       s.value_size);
    commit_copies();
    for (int i = (int)threadIdx.x; i < QUERIES; i += THREADS) {
      Query p = query_of_row(s, head, min(row + i, last));
      all_known[at][i] = row + i <= last ? known_of<SCALED>(s, g, logarithms, delta, batch, p, length) : nothing_known();
      if (MASK != NO_MASK) all_mask_rows[at][i] = batch * s.mask[0] + p.head * s.mask[1] + p.query * s.mask[2];
    }
  };

  i32 row = next(0);
  load(row, 0);
  for (int at = 0; row < rows; at ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    row = next(row + QUERIES);
    load(row, at ^ 1);
    const Known *known = all_known[at];
    const i64 *mask_rows = all_mask_rows[at];
    Place of_queries = 2 * at * QUERIES * QP + query_columns, of_cts = 2 * at * QUERIES * VP + ct_columns;
    float weights[1][QT][4], slopes[1][QT][4];
    multiply<D, HEAD, QP>(weights, left_keys, of_queries);
    multiply<D, VALUE, VP>(slopes, left_values, of_cts);
#pragma unroll
    for (int j = 0; j < QT; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) {
        int i = j * 8 + lane % 4 * 2 + c % 2;
        i32 key = first + warp * 16 + lane / 4 + c / 2 * 8;
        bool flat;
        float w = weight_of<D, MASK, SCALED>(s, weights[0][j][c], known[i], key, mask,
                                             MASK == NO_MASK ? 0 : mask_rows[i], flat);
        weights[0][j][c] = w;
        slopes[0][j][c] = flat ? 0.0f : w * (slopes[0][j][c] - known[i].delta);
      }
    add_product<D, VP>(by_values, weights, 2 * at * QUERIES * VP + ct_rows);
    add_product<D, QP>(by_keys, slopes, 2 * at * QUERIES * QP + query_rows);
  }

#pragma unroll
  for (int half = 0; half < 2; half++) {
    i32 key = first + warp * 16 + lane / 4 + half * 8;
    if (key >= s.keys) continue;
    T *to_k = dk + batch * g.dk[0] + key_head * g.dk[1] + key * g.dk[2];
    T *to_v = dv + batch * g.dv[0] + key_head * g.dv[1] + key * g.dv[2];
#pragma unroll
    for (int j = 0; j < HEAD / 8; j++) {
      const float *sum = by_keys[0][j] + 2 * half;
      store_pair<D>(to_k, g.dk[3], j * 8 + lane % 4 * 2, s.size, sum[0] * s.scale, sum[1] * s.scale);
    }
#pragma unroll
    for (int j = 0; j < VALUE / 8; j++) {
      const float *sum = by_values[0][j] + 2 * half;
      store_pair<D>(to_v, g.dv[3], j * 8 + lane % 4 * 2, s.value_size, sum[0], sum[1]);
    }
  }
}

// By queries: a block of 16 TILES WARPS rows of a unit, and the keys that they see, KEYS at a time.
template <class D, int HEAD, int VALUE, int TILES, int WARPS, int KEYS, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_by_queries(const typename D::T *q, const typename D::T *k, const typename D::T *v,
                                 const void *mask, const i32 *lengths, const typename D::T *ct,
                                 const float *logarithms, const float *delta, typename D::T *dq, const Attention &s,
                                 const Gradient &g) {
  enum { ROWS = 16 * TILES * WARPS, THREADS = WARPS * WARP, QP = HEAD + 8, VP = VALUE + 8, KT = KEYS / 8 };
  typedef typename D::T T;
  DYNAMIC_SHARED(u16, queries);
  u16 *cotangents = queries + ROWS * QP, *keys = cotangents + ROWS * VP, *values = keys + 2 * KEYS * QP;
  int lane = lane_of(), warp = (int)threadIdx.x / WARP;
  i32 rows = s.span * s.queries, blocks = (rows + ROWS - 1) / ROWS;
  i32 per_batch = s.heads / s.span;
  Placed place = placed_of(per_batch * s.batches, blocks);
  i32 first = (blocks - 1 - place.block) * ROWS, batch = place.unit / per_batch, head = place.unit % per_batch * s.span;
  i32 key_head = head / s.group, last = min(first + ROWS, rows) - 1;
  k += batch * s.k[0] + key_head * s.k[1];
  v += batch * s.v[0] + key_head * s.v[1];
  i32 length = s.keys;
  if (lengths) length = min(lengths[batch * s.lengths[0]], s.keys);
  i32 needed = length;
  if (s.causal) {
    i32 latest = first / s.queries == last / s.queries ? last % s.queries : s.queries - 1;
    needed = min(length, latest + length - s.queries + 1);
  }
  load_queries<HEAD, QP, ROWS, THREADS, VECTORS>(queries, q + batch * s.q[0], s.q, s, head, first, rows - first, s.size);
  load_queries<VALUE, VP, ROWS, THREADS, VECTORS>(cotangents, ct + batch * g.ct[0], g.ct, s, head, first, rows - first,
                                                  s.value_size);
  Known known[2 * TILES];
  i64 mask_rows[2 * TILES];
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    i32 row = min(first + (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8, last);
    Query p = query_of_row(s, head, row);
    known[i] = known_of<SCALED>(s, g, logarithms, delta, batch, p, length);
    mask_rows[i] = batch * s.mask[0] + p.head * s.mask[1] + p.query * s.mask[2];
  }
  Place left_queries = left_rows<QP>(queries + warp * TILES * 16 * QP);
  Place left_ct = left_rows<VP>(cotangents + warp * TILES * 16 * VP);
  Place key_columns = right_columns<QP>(keys), key_rows = right_rows<QP>(keys);
  Place value_columns = right_columns<VP>(values);
  float sums[TILES][HEAD / 8][4] = {};

  auto load = [&](i32 from, int at) {
    if (from >= needed) return;
    load_rows<HEAD, QP, KEYS, THREADS, VECTORS>(keys + at * KEYS * QP, k + from * s.k[2], s.k[2], s.k[3], s.keys - from,
                                                s.size);
    load_rows<VALUE, VP, KEYS, THREADS, VECTORS>(values + at * KEYS * VP, v + from * s.v[2], s.v[2], s.v[3],
                                                 s.keys - from, s.value_size);
    commit_copies();
  };
  load(0, 0);
  int at = 0;
  for (i32 from = 0; from < needed; from += KEYS, at ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    load(from + KEYS, at ^ 1);
    float scores[TILES][KT][4], slopes[TILES][KT][4];
    multiply<D, HEAD, QP>(scores, left_queries, 2 * at * KEYS * QP + key_columns);
    multiply<D, VALUE, VP>(slopes, left_ct, 2 * at * KEYS * VP + value_columns);
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < KT; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
          i32 key = from + j * 8 + lane % 4 * 2 + c % 2, row = 2 * i + c / 2;
          bool flat;
          float w = weight_of<D, MASK, SCALED>(s, scores[i][j][c], known[row], key, mask, mask_rows[row], flat);
          slopes[i][j][c] = flat ? 0.0f : w * (slopes[i][j][c] - known[row].delta);
        }
    add_product<D, QP>(sums, slopes, 2 * at * KEYS * QP + key_rows);
  }

#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    i32 row = first + (warp * TILES + i / 2) * 16 + lane / 4 + i % 2 * 8;
    if (row > last) continue;
    Query p = query_of_row(s, head, row);
    T *to = dq + batch * g.dq[0] + p.head * g.dq[1] + p.query * g.dq[2];
#pragma unroll
    for (int j = 0; j < HEAD / 8; j++) {
      const float *sum = sums[i / 2][j] + 2 * (i % 2);
      store_pair<D>(to, g.dq[3], j * 8 + lane % 4 * 2, s.size, sum[0] * s.scale, sum[1] * s.scale);
    }
  }
}
