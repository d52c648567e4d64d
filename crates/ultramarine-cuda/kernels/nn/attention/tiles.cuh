// ATTENTION with products of a warp: tensor cores for halves, multiply-adds for the others. Few queries may share a block,
// whose keys are cut into parts that are joined later.

template <class D, int HEAD, int VALUE, int TILES, int WARPS, int KEYS, bool VECTORS, int MASK, bool SCALED,
          bool SPLIT>
INLINE void attention_tiles(const typename D::T *q, const typename D::T *k, const typename D::T *v, const void *mask,
                            const typename D::T *sinks, const i32 *lengths, typename D::T *out, typename D::A *lse,
                            typename D::A *partial, i32 splits, const Attention &s) {
  typedef typename D::T T;
  typedef typename D::A A;
  enum {
    GAP = 16 / sizeof(T), ROWS = WARPS * TILES * 16, THREADS = WARPS * WARP, QP = HEAD + GAP, VP = VALUE + GAP,
    KT = KEYS / 8, VT = VALUE / 8
  };
  typedef Products<D, QP> ByHead;
  typedef Products<D, VP> ByValue;
  DYNAMIC_SHARED(T, queries);
  T *keys = queries + ROWS * QP, *values = keys + KEYS * QP;
  const T *own_queries = queries + (int)threadIdx.x / WARP * TILES * 16 * QP;

  i32 rows = s.span * s.queries, blocks = (rows + ROWS - 1) / ROWS;
  Placed place = placed_of(s.heads / s.span * s.batches, blocks);
  i32 unit = place.unit, first = (blocks - 1 - place.block) * ROWS, split = 0;
  if (SPLIT) {  // all rows of a unit are one block
    unit = (i32)(blockIdx.x / splits);
    split = (i32)(blockIdx.x % splits);
    first = 0;
  }
  const Rows r = rows_of(s, lengths, unit, first, ROWS);
  k += r.batch * s.k[0] + r.head / s.group * s.k[1];
  v += r.batch * s.v[0] + r.head / s.group * s.v[1];
  load_queries<Pitched<QP>, HEAD, ROWS, THREADS, VECTORS>(queries, q + r.batch * s.q[0], s.q, s, r.head, first,
                                                          rows - first, s.size);
  Softmax<D, TILES, KT, MASK, SCALED> softmax;
  softmax.begin(s, r);
  A sums[TILES][VT][4];
  clear(sums);

  auto load_keys = [&](i32 from) {
    load_rows<Pitched<QP>, HEAD, KEYS, THREADS, VECTORS>(keys, k + from * s.k[2], s.k[2], s.k[3], s.keys - from, s.size);
    commit_copies();
  };
  // Values behind the length may be anything: a weight of 0 does not make NaN nothing.
  auto load_values = [&](i32 from, i32 end) {
    load_rows<Pitched<VP>, VALUE, KEYS, THREADS, VECTORS>(values, v + from * s.v[2], s.v[2], s.v[3], end - from,
                                                          s.value_size);
    commit_copies();
  };

  i32 begin = 0, needed = r.needed;
  if (SPLIT) {
    i32 part = ((needed + splits - 1) / splits + KEYS - 1) / KEYS * KEYS;
    begin = split * part;
    needed = min(needed, begin + part);
  }
  if (begin < needed) load_keys(begin);
  for (i32 from = begin; from < needed; from += KEYS) {
    wait_for_copies<0>();
    __syncthreads();
    load_values(from, r.length);

    A scores[TILES][KT][4];
    clear(scores);
    ByHead::template add_rows<HEAD>(scores, own_queries, keys);
    // All have read the keys, and the values are there.
    wait_for_copies<0>();
    __syncthreads();
    if (from + KEYS < needed) load_keys(from + KEYS);

    softmax.mask_scores(scores, from, mask, s, r);
    A factors[2 * TILES];
    if (softmax.grows(scores, factors)) {
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++) softmax.scale_row(sums, i, factors[i]);
    }
    softmax.weigh(scores);
    ByValue::add_weighted(sums, scores, values);
  }
  softmax.join();

  if (SPLIT) {
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      i32 row = row_of_thread<TILES>(i);
      if (row > r.last) continue;
      i64 at = ((i64)unit * rows + row) * splits + split;
#pragma unroll
      for (int j = 0; j < VT; j++) {
        const A *sum = sums[i / 2][j] + 2 * (i % 2);
        A *target = partial + at * VALUE + j * 8 + lane_of() % 4 * 2;
        target[0] = sum[0];
        target[1] = sum[1];
      }
      A *state = partial + (i64)(s.heads / s.span) * s.batches * rows * splits * VALUE + 2 * at;
      if (lane_of() % 4 == 0) {
        state[0] = softmax.top[i];
        state[1] = softmax.total[i];
      }
    }
    return;
  }
  if (__syncthreads_or(softmax.finish(sums, sinks, s, r))) {
    A weights[TILES][KT][4];
    for (i32 from = 0; from < s.keys; from += KEYS) {
      __syncthreads();
      load_values(from, s.keys);
      wait_for_copies<0>();
      __syncthreads();
      softmax.weigh_whole(weights, from, s);
      ByValue::add_weighted(sums, weights, values);
    }
  }
  softmax.store(sums, out, lse, s, r);
}

// Joins the parts of the keys of a row: a block for each. SHARES groups of threads, one of them for each element of the
// result, have every SHARES-th part each.
template <class D, int VALUE, int SHARES>
INLINE void attention_join(const typename D::A *partial, const typename D::T *v, const typename D::T *sinks,
                           typename D::T *out, typename D::A *lse, i32 splits, const Attention &s) {
  typedef typename D::A A;
  enum { WIDTH = (VALUE + WARP - 1) / WARP * WARP };
  __shared__ A sums[SHARES][WIDTH], tops[SHARES], totals[SHARES];
  const i32 rows = s.span * s.queries, per_batch = s.heads / s.span;
  const i32 unit = (i32)blockIdx.x / rows, row = (i32)blockIdx.x % rows;
  const i32 batch = unit / per_batch, head = unit % per_batch * s.span;
  const i32 e = (i32)threadIdx.x % WIDTH, share = (i32)threadIdx.x / WIDTH;
  const i64 at = ((i64)unit * rows + row) * splits;
  const A *states = partial + (i64)per_batch * s.batches * rows * splits * VALUE + 2 * at;
  const A *own = partial + at * VALUE + (e < VALUE ? e : 0);
  A top = -INFINITE, total = 0, sum = 0;
#pragma unroll 4
  for (i32 i = share; i < splits; i += SHARES) {
    const A next = larger(top, states[2 * i]), shift = next == -INFINITE ? (A)0 : next;
    const A before = power_of_2(top - shift), now = power_of_2(states[2 * i] - shift);
    total = multiply_add(states[2 * i + 1], now, total * before);
    sum = multiply_add(own[i * VALUE], now, sum * before);
    top = next;
  }
  sums[share][e] = sum;
  if (e == 0) {
    tops[share] = top;
    totals[share] = total;
  }
  const Query p = query_of_row(s, head, row);
  const A sink = sinks ? D::up(sinks[batch * s.sinks[0] + p.head * s.sinks[1]]) * LOG2_E : -INFINITE;
  __syncthreads();
  top = sink;
#pragma unroll
  for (int i = 0; i < SHARES; i++) top = larger(top, tops[i]);
  const A shift = top == -INFINITE ? (A)0 : top;
  total = power_of_2(sink - shift);
  sum = 0;
#pragma unroll
  for (int i = 0; i < SHARES; i++) {
    const A factor = power_of_2(tops[i] - shift);
    total = multiply_add(totals[i], factor, total);
    sum = multiply_add(sums[i][e], factor, sum);
  }
  const bool whole = total == 0;  // no key is seen: all count alike
  if (whole) {
    const typename D::T *values = v + batch * s.v[0] + p.head / s.group * s.v[1] + e * s.v[3];
    sum = 0;
    if (e < s.value_size)
      for (i32 key = share; key < s.keys; key += SHARES) sum += D::up(values[key * s.v[2]]);
    __syncthreads();
    sums[share][e] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < SHARES; i++) sum += sums[i][e];
    total = (A)s.keys;
  }
  if (share == 0 && e < s.value_size)
    out[batch * s.out[0] + p.head * s.out[1] + p.query * s.out[2] + e * s.out[3]] = D::down(sum / total);
  if (threadIdx.x == 0)
    lse[batch * s.lse[0] + p.head * s.lse[1] + p.query * s.lse[2]] = whole ? LOWEST : (top + log_2(total)) * LN_2;
}
