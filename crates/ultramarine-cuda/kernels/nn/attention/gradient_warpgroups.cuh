// ATTENTION_GRADIENT of halves with products of warpgroups, as in warpgroups.cuh.

// By keys and values: a block of 64 GROUPS keys, and all queries of their heads, QUERIES at a time. Scores are transposed,
// so that the weights of a group's keys are the left operand of both sums.
template <class D, int HEAD, int VALUE, int GROUPS, int QUERIES, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_by_keys_warpgroups(const typename D::T *q, const typename D::T *k, const typename D::T *v,
                                         const void *mask, const i32 *lengths, const typename D::T *ct,
                                         const float *logarithms, const float *delta, typename D::T *dk,
                                         typename D::T *dv, const Attention &s, const Gradient &g) {
  typedef typename D::T T;
  enum { KEYS = 64 * GROUPS, THREADS = GROUPS * GROUP, QT = QUERIES / 8 };
  DYNAMIC_SHARED(u16, memory);
  __shared__ KnownQueries<float, MASK, QUERIES, 2> known;
  u16 *keys = aligned_panels(memory), *values = keys + KEYS * HEAD, *queries = values + KEYS * VALUE;
  u16 *cotangents = queries + 2 * QUERIES * HEAD;
  const KeyBlock b = key_block_of(s, lengths, KEYS);
  q += b.batch * s.q[0];
  ct += b.batch * g.ct[0];
  k += b.batch * s.k[0] + b.key_head * s.k[1] + b.first * s.k[2];
  v += b.batch * s.v[0] + b.key_head * s.v[1] + b.first * s.v[2];
  load_rows<Swizzled<KEYS>, HEAD, KEYS, THREADS, VECTORS>((T *)keys, k, s.k[2], s.k[3], s.keys - b.first, s.size);
  load_rows<Swizzled<KEYS>, VALUE, KEYS, THREADS, VECTORS>((T *)values, v, s.v[2], s.v[3], s.keys - b.first,
                                                           s.value_size);
  const int own = (int)threadIdx.x / GROUP * 64 * PANEL;
  const Matrix own_keys = matrix_at(keys + own, KEYS), own_values = matrix_at(values + own, KEYS);

  float by_keys[1][HEAD / 8][4], by_values[1][VALUE / 8][4];
  clear(by_keys);
  clear(by_values);
  // True if a row does not see all of the keys.
  auto load = [&](i32 row, int at) {
    if (row >= b.rows) return false;
    load_queries<Swizzled<QUERIES>, HEAD, QUERIES, THREADS, VECTORS>((T *)queries + at * QUERIES * HEAD, q, s.q, s, b.head,
                                                                     row, b.rows - row, s.size);
    load_queries<Swizzled<QUERIES>, VALUE, QUERIES, THREADS, VECTORS>((T *)cotangents + at * QUERIES * VALUE, ct, g.ct, s,
                                                                      b.head, row, b.rows - row, s.value_size);
    commit_copies();
    return known.template load<THREADS, SCALED>(s, g, logarithms, delta, b.batch, b.head, row, b.rows, b.length,
                                                b.first + KEYS, at);
  };

  i32 row = next_rows(s, b, 0, QUERIES);
  bool partly = load(row, 0);
  for (int at = 0; row < b.rows; at ^= 1) {
    wait_for_copies<0>();
    show_copies();
    const bool some_hidden = __syncthreads_or(partly);
    row = next_rows(s, b, row + QUERIES, QUERIES);
    partly = load(row, at ^ 1);
    const Matrix of_queries = matrix_at(queries + at * QUERIES * HEAD, QUERIES);
    const Matrix of_cts = matrix_at(cotangents + at * QUERIES * VALUE, QUERIES);
    float scores[1][QT][4], slopes[1][QT][4];
    begin_products();
    multiply_rows<D, HEAD, KEYS, QUERIES>(scores, own_keys, of_queries);
    multiply_rows<D, VALUE, KEYS, QUERIES>(slopes, own_values, of_cts);
    end_products();
    wait_for_products<0>();
    pin(scores);
    pin(slopes);
    if (some_hidden) known.template weigh_keys<D, SCALED, false>(s, scores, slopes, at, b.first, mask);
    else known.template weigh_keys<D, SCALED, true>(s, scores, slopes, at, b.first, mask);
    u32 weights[QUERIES / 16][4], packed_slopes[QUERIES / 16][4];
    pack_weights<D>(weights, scores);
    pack_weights<D>(packed_slopes, slopes);
    pin(by_keys);
    pin(by_values);
    begin_products();
    add_weighted<D, QUERIES>(by_values, weights, of_cts);
    add_weighted<D, QUERIES>(by_keys, packed_slopes, of_queries);
    end_products();
    wait_for_products<0>();
    pin(by_keys);
    pin(by_values);
  }
  store_keys<D>(by_keys, dk + b.batch * g.dk[0] + b.key_head * g.dk[1] + b.first * g.dk[2], g.dk[2], g.dk[3],
                s.keys - b.first, s.size, (float)s.scale);
  store_keys<D>(by_values, dv + b.batch * g.dv[0] + b.key_head * g.dv[1] + b.first * g.dv[2], g.dv[2], g.dv[3],
                s.keys - b.first, s.value_size, 1.0f);
}

// By queries: a block of 64 GROUPS rows of a unit, and the keys that they see, KEYS at a time.
template <class D, int HEAD, int VALUE, int GROUPS, int KEYS, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_by_queries_warpgroups(const typename D::T *q, const typename D::T *k, const typename D::T *v,
                                            const void *mask, const i32 *lengths, const typename D::T *ct,
                                            const float *logarithms, const float *delta, typename D::T *dq,
                                            const Attention &s, const Gradient &g) {
  typedef typename D::T T;
  enum { ROWS = 64 * GROUPS, THREADS = GROUPS * GROUP, KT = KEYS / 8 };
  DYNAMIC_SHARED(u16, memory);
  u16 *queries = aligned_panels(memory), *cotangents = queries + ROWS * HEAD, *keys = cotangents + ROWS * VALUE;
  u16 *values = keys + 2 * KEYS * HEAD;
  i32 rows = s.span * s.queries, blocks = (rows + ROWS - 1) / ROWS;
  Placed place = placed_of(s.heads / s.span * s.batches, blocks);
  i32 first = (blocks - 1 - place.block) * ROWS;
  const Rows r = rows_of(s, lengths, place.unit, first, ROWS);
  k += r.batch * s.k[0] + r.head / s.group * s.k[1];
  v += r.batch * s.v[0] + r.head / s.group * s.v[1];
  load_queries<Swizzled<ROWS>, HEAD, ROWS, THREADS, VECTORS>((T *)queries, q + r.batch * s.q[0], s.q, s, r.head, first,
                                                             rows - first, s.size);
  load_queries<Swizzled<ROWS>, VALUE, ROWS, THREADS, VECTORS>((T *)cotangents, ct + r.batch * g.ct[0], g.ct, s, r.head,
                                                              first, rows - first, s.value_size);
  const int own = (int)threadIdx.x / GROUP * 64 * PANEL;
  const Matrix own_queries = matrix_at(queries + own, ROWS), own_cts = matrix_at(cotangents + own, ROWS);
  KnownRows<D, 1, MASK, SCALED> known;
  known.begin(s, g, logarithms, delta, r);
  float sums[1][HEAD / 8][4];
  clear(sums);

  auto load = [&](i32 from, int at) {
    if (from >= r.needed) return;
    load_rows<Swizzled<KEYS>, HEAD, KEYS, THREADS, VECTORS>((T *)keys + at * KEYS * HEAD, k + from * s.k[2], s.k[2],
                                                            s.k[3], s.keys - from, s.size);
    load_rows<Swizzled<KEYS>, VALUE, KEYS, THREADS, VECTORS>((T *)values + at * KEYS * VALUE, v + from * s.v[2], s.v[2],
                                                             s.v[3], s.keys - from, s.value_size);
    commit_copies();
  };
  load(0, 0);
  int at = 0;
  for (i32 from = 0; from < r.needed; from += KEYS, at ^= 1) {
    wait_for_copies<0>();
    show_copies();
    __syncthreads();
    load(from + KEYS, at ^ 1);
    const Matrix of_keys = matrix_at(keys + at * KEYS * HEAD, KEYS), of_values = matrix_at(values + at * KEYS * VALUE, KEYS);
    float scores[1][KT][4], slopes[1][KT][4];
    begin_products();
    multiply_rows<D, HEAD, ROWS, KEYS>(scores, own_queries, of_keys);
    multiply_rows<D, VALUE, ROWS, KEYS>(slopes, own_cts, of_values);
    end_products();
    wait_for_products<0>();
    pin(scores);
    pin(slopes);
    known.weigh_rows(s, scores, slopes, from, mask);
    u32 packed[KEYS / 16][4];
    pack_weights<D>(packed, slopes);
    pin(sums);
    begin_products();
    add_weighted<D, KEYS>(sums, packed, of_keys);
    end_products();
    wait_for_products<0>();
    pin(sums);
  }
  store_queries<D>(sums, dq, s, g, r);
}
