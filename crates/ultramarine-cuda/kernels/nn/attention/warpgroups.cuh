// ATTENTION of halves with products of warpgroups. Scores of the next keys are computed while the softmax of the present ones
// goes on (Shah and others, FlashAttention-3: Fast and accurate attention with asynchrony and low-precision, 2024).

template <class D, int HEAD, int VALUE, int GROUPS, int KEYS, bool VECTORS, int MASK, bool SCALED>
INLINE void attention_warpgroups(const typename D::T *q, const typename D::T *k, const typename D::T *v,
                                 const void *mask, const typename D::T *sinks, const i32 *lengths,
                                 typename D::T *out, float *lse, const Attention &s) {
  typedef typename D::T T;
  enum { ROWS = GROUPS * 64, THREADS = GROUPS * GROUP, KT = KEYS / 8, VT = VALUE / 8 };
  DYNAMIC_SHARED(u16, memory);
  u16 *queries = aligned_panels(memory), *keys = queries + ROWS * HEAD, *values = keys + 2 * KEYS * HEAD;

  i32 rows = s.span * s.queries, blocks = (rows + ROWS - 1) / ROWS;
  Placed place = placed_of(s.heads / s.span * s.batches, blocks);
  i32 first = (blocks - 1 - place.block) * ROWS;
  const Rows r = rows_of(s, lengths, place.unit, first, ROWS);
  k += r.batch * s.k[0] + r.head / s.group * s.k[1];
  v += r.batch * s.v[0] + r.head / s.group * s.v[1];

  auto load_keys = [&](i32 from) {
    load_rows<Swizzled<KEYS>, HEAD, KEYS, THREADS, VECTORS>((T *)keys + from / KEYS % 2 * KEYS * HEAD, k + from * s.k[2],
                                                            s.k[2], s.k[3], s.keys - from, s.size);
  };
  // Values behind the length may be anything: a weight of 0 does not make NaN nothing.
  auto load_values = [&](i32 from, i32 end) {
    load_rows<Swizzled<KEYS>, VALUE, KEYS, THREADS, VECTORS>((T *)values + from / KEYS % 2 * KEYS * VALUE,
                                                             v + from * s.v[2], s.v[2], s.v[3], end - from,
                                                             s.value_size);
  };
  // What was copied until here is there for the tensor cores, and what they read until here may be overwritten.
  auto arrive = [&]() {
    wait_for_copies<0>();
    show_copies();
    __syncthreads();
  };
  Matrix own_queries = matrix_at(queries + (int)threadIdx.x / GROUP * 64 * PANEL, ROWS);
  auto keys_at = [&](i32 from) { return matrix_at(keys + from / KEYS % 2 * KEYS * HEAD, KEYS); };
  auto values_at = [&](i32 from) { return matrix_at(values + from / KEYS % 2 * KEYS * VALUE, KEYS); };

  Softmax<D, 1, KT, MASK, SCALED> softmax;
  softmax.begin(s, r);
  float sums[1][VT][4], scores[1][KT][4], factors[2];
  u32 weights[KEYS / 16][4];
  clear(sums);
  if (r.needed > 0) {
    load_queries<Swizzled<ROWS>, HEAD, ROWS, THREADS, VECTORS>((T *)queries, q + r.batch * s.q[0], s.q, s, r.head, first,
                                                               rows - first, s.size);
    load_keys(0);
    commit_copies();
    arrive();
    load_values(0, r.length);
    if (KEYS < r.needed) load_keys(KEYS);
    commit_copies();
    begin_products();
    multiply_rows<D, HEAD, ROWS, KEYS>(scores, own_queries, keys_at(0));
    end_products();
    wait_for_products<0>();
    pin(scores);
    softmax.mask_scores(scores, 0, mask, s, r);
    softmax.grows(scores, factors);
    softmax.weigh(scores);
    pack_weights<D>(weights, scores);

    i32 from = 0;
    for (; from + KEYS < r.needed; from += KEYS) {
      arrive();
      load_values(from + KEYS, r.length);
      if (from + 2 * KEYS < r.needed) load_keys(from + 2 * KEYS);
      commit_copies();
      pin(sums);
      begin_products();
      multiply_rows<D, HEAD, ROWS, KEYS>(scores, own_queries, keys_at(from + KEYS));
      end_products();
      add_weighted<D, KEYS>(sums, weights, values_at(from));
      end_products();
      wait_for_products<1>();
      pin(scores);
      softmax.mask_scores(scores, from + KEYS, mask, s, r);
      bool grows = softmax.grows(scores, factors);
      softmax.weigh(scores);
      wait_for_products<0>();
      pin(sums);
      if (grows) {
        softmax.scale_row(sums, 0, factors[0]);
        softmax.scale_row(sums, 1, factors[1]);
      }
      pack_weights<D>(weights, scores);
    }
    arrive();
    pin(sums);
    begin_products();
    add_weighted<D, KEYS>(sums, weights, values_at(from));
    end_products();
    wait_for_products<0>();
    pin(sums);
  }
  softmax.join();

  if (__syncthreads_or(softmax.finish(sums, sinks, s, r))) {
    for (i32 from = 0; from < s.keys; from += KEYS) {
      load_values(from, s.keys);
      commit_copies();
      arrive();
      softmax.weigh_whole(scores, from, s);
      pack_weights<D>(weights, scores);
      pin(sums);
      begin_products();
      add_weighted<D, KEYS>(sums, weights, values_at(from));
      end_products();
      wait_for_products<0>();
      pin(sums);
      __syncthreads();
    }
  }
  softmax.store(sums, out, lse, s, r);
}
