// ATTENTION_GRADIENT with products of a warp, as in tiles.cuh.

// By keys and values: a block of 16 WARPS keys, and all queries of their heads, QUERIES at a time. Scores are
// transposed, so that the weights of a warp's keys are the left operand of both sums.
template <class D, int HEAD, int VALUE, int WARPS, int QUERIES, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_by_keys(const typename D::T *q, const typename D::T *k, const typename D::T *v, const void *mask,
                              const i32 *lengths, const typename D::T *ct, const typename D::A *logarithms,
                              const typename D::A *delta, typename D::T *dk, typename D::T *dv, const Attention &s,
                              const Gradient &g) {
  typedef typename D::T T;
  typedef typename D::A A;
  enum {
    GAP = 16 / sizeof(T), KEYS = 16 * WARPS, THREADS = WARPS * WARP, QP = HEAD + GAP, VP = VALUE + GAP, QT = QUERIES / 8
  };
  typedef Products<D, QP> ByHead;
  typedef Products<D, VP> ByValue;
  DYNAMIC_SHARED(T, keys);
  __shared__ KnownQueries<A, MASK, QUERIES, 2> known;
  T *values = keys + KEYS * QP, *queries = values + KEYS * VP, *cotangents = queries + 2 * QUERIES * QP;
  const int warp = (int)threadIdx.x / WARP;
  const T *own_keys = keys + warp * 16 * QP, *own_values = values + warp * 16 * VP;
  const KeyBlock b = key_block_of(s, lengths, KEYS);
  q += b.batch * s.q[0];
  ct += b.batch * g.ct[0];
  k += b.batch * s.k[0] + b.key_head * s.k[1] + b.first * s.k[2];
  v += b.batch * s.v[0] + b.key_head * s.v[1] + b.first * s.v[2];
  load_rows<Pitched<QP>, HEAD, KEYS, THREADS, VECTORS>(keys, k, s.k[2], s.k[3], s.keys - b.first, s.size);
  load_rows<Pitched<VP>, VALUE, KEYS, THREADS, VECTORS>(values, v, s.v[2], s.v[3], s.keys - b.first, s.value_size);

  A by_keys[1][HEAD / 8][4], by_values[1][VALUE / 8][4];
  clear(by_keys);
  clear(by_values);
  // True if a row does not see all of the keys.
  auto load = [&](i32 row, int at) {
    if (row >= b.rows) return false;
    load_queries<Pitched<QP>, HEAD, QUERIES, THREADS, VECTORS>(queries + at * QUERIES * QP, q, s.q, s, b.head, row,
                                                               b.rows - row, s.size);
    load_queries<Pitched<VP>, VALUE, QUERIES, THREADS, VECTORS>(cotangents + at * QUERIES * VP, ct, g.ct, s, b.head, row,
                                                                b.rows - row, s.value_size);
    commit_copies();
    return known.template load<THREADS, SCALED>(s, g, logarithms, delta, b.batch, b.head, row, b.rows, b.length,
                                                b.first + KEYS, at);
  };

  i32 row = next_rows(s, b, 0, QUERIES);
  bool partly = load(row, 0);
  for (int at = 0; row < b.rows; at ^= 1) {
    wait_for_copies<0>();
    const bool some_hidden = __syncthreads_or(partly);
    row = next_rows(s, b, row + QUERIES, QUERIES);
    partly = load(row, at ^ 1);
    const T *of_queries = queries + at * QUERIES * QP, *of_cts = cotangents + at * QUERIES * VP;
    A weights[1][QT][4], slopes[1][QT][4];
    clear(weights);
    clear(slopes);
    ByHead::template add_rows<HEAD>(weights, own_keys, of_queries);
    ByValue::template add_rows<VALUE>(slopes, own_values, of_cts);
    if (some_hidden) known.template weigh_keys<D, SCALED, false>(s, weights, slopes, at, b.first, mask);
    else known.template weigh_keys<D, SCALED, true>(s, weights, slopes, at, b.first, mask);
    ByValue::add_weighted(by_values, weights, of_cts);
    ByHead::add_weighted(by_keys, slopes, of_queries);
  }
  store_keys<D>(by_keys, dk + b.batch * g.dk[0] + b.key_head * g.dk[1] + b.first * g.dk[2], g.dk[2], g.dk[3],
                s.keys - b.first, s.size, (A)s.scale);
  store_keys<D>(by_values, dv + b.batch * g.dv[0] + b.key_head * g.dv[1] + b.first * g.dv[2], g.dv[2], g.dv[3],
                s.keys - b.first, s.value_size, (A)1);
}

// By queries: a block of 16 TILES WARPS rows of a unit, and the keys that they see, KEYS at a time.
template <class D, int HEAD, int VALUE, int TILES, int WARPS, int KEYS, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_by_queries(const typename D::T *q, const typename D::T *k, const typename D::T *v,
                                 const void *mask, const i32 *lengths, const typename D::T *ct,
                                 const typename D::A *logarithms, const typename D::A *delta, typename D::T *dq,
                                 const Attention &s, const Gradient &g) {
  typedef typename D::T T;
  typedef typename D::A A;
  enum {
    GAP = 16 / sizeof(T), ROWS = 16 * TILES * WARPS, THREADS = WARPS * WARP, QP = HEAD + GAP, VP = VALUE + GAP,
    KT = KEYS / 8
  };
  typedef Products<D, QP> ByHead;
  typedef Products<D, VP> ByValue;
  DYNAMIC_SHARED(T, queries);
  T *cotangents = queries + ROWS * QP, *keys = cotangents + ROWS * VP, *values = keys + 2 * KEYS * QP;
  const int warp = (int)threadIdx.x / WARP;
  const T *own_queries = queries + warp * TILES * 16 * QP, *own_cts = cotangents + warp * TILES * 16 * VP;
  i32 rows = s.span * s.queries, blocks = (rows + ROWS - 1) / ROWS;
  Placed place = placed_of(s.heads / s.span * s.batches, blocks);
  i32 first = (blocks - 1 - place.block) * ROWS;
  const Rows r = rows_of(s, lengths, place.unit, first, ROWS);
  k += r.batch * s.k[0] + r.head / s.group * s.k[1];
  v += r.batch * s.v[0] + r.head / s.group * s.v[1];
  load_queries<Pitched<QP>, HEAD, ROWS, THREADS, VECTORS>(queries, q + r.batch * s.q[0], s.q, s, r.head, first,
                                                          rows - first, s.size);
  load_queries<Pitched<VP>, VALUE, ROWS, THREADS, VECTORS>(cotangents, ct + r.batch * g.ct[0], g.ct, s, r.head, first,
                                                           rows - first, s.value_size);
  KnownRows<D, TILES, MASK, SCALED> known;
  known.begin(s, g, logarithms, delta, r);
  A sums[TILES][HEAD / 8][4];
  clear(sums);

  auto load = [&](i32 from, int at) {
    if (from >= r.needed) return;
    load_rows<Pitched<QP>, HEAD, KEYS, THREADS, VECTORS>(keys + at * KEYS * QP, k + from * s.k[2], s.k[2], s.k[3],
                                                         s.keys - from, s.size);
    load_rows<Pitched<VP>, VALUE, KEYS, THREADS, VECTORS>(values + at * KEYS * VP, v + from * s.v[2], s.v[2], s.v[3],
                                                          s.keys - from, s.value_size);
    commit_copies();
  };
  load(0, 0);
  int at = 0;
  for (i32 from = 0; from < r.needed; from += KEYS, at ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    load(from + KEYS, at ^ 1);
    A scores[TILES][KT][4], slopes[TILES][KT][4];
    clear(scores);
    clear(slopes);
    ByHead::template add_rows<HEAD>(scores, own_queries, keys + at * KEYS * QP);
    ByValue::template add_rows<VALUE>(slopes, own_cts, values + at * KEYS * VP);
    known.weigh_rows(s, scores, slopes, from, mask);
    ByHead::add_weighted(sums, slopes, keys + at * KEYS * QP);
  }
  store_queries<D>(sums, dq, s, g, r);
}
