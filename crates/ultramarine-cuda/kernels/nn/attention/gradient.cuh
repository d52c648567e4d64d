// ATTENTION_GRADIENT. One kernel sums over queries, for the gradients by keys and values, the other over keys, for that by
// queries: both compute the weights anew from the logarithms, and no sum depends on the order of blocks. The parts that do
// not depend on how products are computed.

// The strides of the tensors that the gradient has beside those of attention.
struct Gradient {
  i64 ct[4], logarithms[3], delta[3], dq[4], dk[4], dv[4];
};

// What the forward pass says of a query: weights are 2^(scale score - shift).
template <class A> struct Known {
  A scale, shift, delta;
  i32 end;  // keys that are seen by place; below 0 where all are masked, and weigh the same
};

// Of a row that is not there: its weights are 0.
template <class A> INLINE Known<A> nothing_known() {
  Known<A> known = {0, INFINITE, 0, 0x7fffffff};
  return known;
}

template <bool SCALED, class A>
INLINE Known<A> known_of(const Attention &s, const Gradient &g, const A *logarithms, const A *delta, i32 batch, Query p,
                         i32 length) {
  Known<A> known;
  A logarithm = logarithms[batch * g.logarithms[0] + p.head * g.logarithms[1] + p.query * g.logarithms[2]];
  bool whole = logarithm <= LOWEST;
  known.scale = whole ? (A)0 : SCALED ? (A)1 : (A)s.log2_scale;
  known.shift = whole ? log_2((A)s.keys) : logarithm * LOG2_E;
  known.delta = delta[batch * g.delta[0] + p.head * g.delta[1] + p.query * g.delta[2]];
  known.end = whole ? -1 : max(end_of(s, p.query, length), 0);
  return known;
}

// Makes a weight of a score, and the gradient by it of the product of value and cotangent. ALL: the query sees the key.
template <class D, int MASK, bool SCALED, bool ALL>
INLINE void weigh(const Attention &s, typename D::A &score, typename D::A &slope, const Known<typename D::A> &known,
                  i32 key, const void *mask, i64 mask_row) {
  typedef typename D::A A;
  bool flat = !ALL && known.end < 0, hidden = !ALL && !flat && key >= known.end;
  if (SCALED) score *= (A)s.log2_scale;
  if (MASK != NO_MASK && !flat && !hidden) {
    i64 at = mask_row + key * s.mask[3];
    if (MASK == BOOL_MASK) {
      hidden = !((const u8 *)mask)[at];
    } else {
      score = multiply_add(D::up(((const typename D::T *)mask)[at]), LOG2_E, score);
      hidden = score < LOWEST;
    }
  }
  score = hidden ? (A)0 : power_of_2(multiply_add(score, known.scale, -known.shift));
  slope = flat || hidden ? (A)0 : score * (slope - known.delta);
}

// What is known of the queries at hand, in STAGES.
template <class A, int MASK, int QUERIES, int STAGES> struct KnownQueries {
  A scale[STAGES][QUERIES], shift[STAGES][QUERIES], delta[STAGES][QUERIES];
  i32 end[STAGES][QUERIES];
  i64 mask_row[STAGES][MASK == NO_MASK ? 1 : QUERIES];

  // True if a row of this thread's does not see every key before `keys`.
  template <int THREADS, bool SCALED>
  __device__ __forceinline__ bool load(const Attention &s, const Gradient &g, const A *logarithms, const A *deltas,
                                       i32 batch, i32 head, i32 row, i32 rows, i32 length, i32 keys, int at) {
    bool partly = MASK != NO_MASK;
    for (int i = (int)threadIdx.x; i < QUERIES; i += THREADS) {
      Query p = query_of_row(s, head, min(row + i, rows - 1));
      Known<A> known =
          row + i < rows ? known_of<SCALED>(s, g, logarithms, deltas, batch, p, length) : nothing_known<A>();
      scale[at][i] = known.scale;
      shift[at][i] = known.shift;
      delta[at][i] = known.delta;
      end[at][i] = known.end;
      partly = partly || known.end < keys;
      if (MASK != NO_MASK) mask_row[at][i] = batch * s.mask[0] + p.head * s.mask[1] + p.query * s.mask[2];
    }
    return partly;
  }

  // Weighs transposed scores of the thread's keys, from `first` on, and of the queries of a stage.
  template <class D, bool SCALED, bool ALL, int QT>
  __device__ __forceinline__ void weigh_keys(const Attention &s, A (&scores)[1][QT][4], A (&slopes)[1][QT][4], int at,
                                             i32 first, const void *mask) const {
    const A scale_of_all = SCALED ? (A)1 : (A)s.log2_scale;
#pragma unroll
    for (int j = 0; j < QT; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) {
        const int i = j * 8 + lane_of() % 4 * 2 + c % 2;
        Known<A> known = {ALL ? scale_of_all : scale[at][i], shift[at][i], delta[at][i], end[at][i]};
        weigh<D, MASK, SCALED, ALL>(s, scores[0][j][c], slopes[0][j][c], known, first + row_of_thread<1>(c / 2), mask,
                                    MASK == NO_MASK ? 0 : mask_row[at][i]);
      }
  }
};

// The same of scores that are not transposed: what is known of a thread's rows.
template <class D, int TILES, int MASK, bool SCALED> struct KnownRows {
  typedef typename D::A A;
  Known<A> known[2 * TILES];
  i64 mask_row[2 * TILES];
  i32 least;  // keys that all rows see

  __device__ __forceinline__ void begin(const Attention &s, const Gradient &g, const A *logarithms, const A *delta,
                                        const Rows &r) {
    least = MASK == NO_MASK ? r.length : 0;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      Query p = query_of_row(s, r.head, min(r.first + row_of_thread<TILES>(i), r.last));
      known[i] = known_of<SCALED>(s, g, logarithms, delta, r.batch, p, r.length);
      mask_row[i] = r.batch * s.mask[0] + p.head * s.mask[1] + p.query * s.mask[2];
      least = min(least, known[i].end);
    }
  }

  template <int KT>
  __device__ __forceinline__ void weigh_rows(const Attention &s, A (&scores)[TILES][KT][4], A (&slopes)[TILES][KT][4],
                                             i32 from, const void *mask) const {
    if (__all_sync(0xffffffffu, from + KT * 8 <= least)) weigh_seen<true>(s, scores, slopes, from, mask);
    else weigh_seen<false>(s, scores, slopes, from, mask);
  }

  template <bool ALL, int KT>
  __device__ __forceinline__ void weigh_seen(const Attention &s, A (&scores)[TILES][KT][4], A (&slopes)[TILES][KT][4],
                                             i32 from, const void *mask) const {
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < KT; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
          weigh<D, MASK, SCALED, ALL>(s, scores[i][j][c], slopes[i][j][c], known[2 * i + c / 2],
                                      from + j * 8 + lane_of() % 4 * 2 + c % 2, mask, mask_row[2 * i + c / 2]);
  }
};

// Where a block that sums over queries has its keys, and which queries it meets.
struct KeyBlock {
  i32 first, batch, key_head, head, rows, length;
};

INLINE KeyBlock key_block_of(const Attention &s, const i32 *lengths, i32 keys) {
  KeyBlock b;
  i32 key_heads = s.heads / s.group;
  Placed place = placed_of(key_heads * s.batches, (s.keys + keys - 1) / keys);
  b.first = place.block * keys;
  b.batch = place.unit / key_heads;
  b.key_head = place.unit % key_heads;
  b.head = b.key_head * s.group;
  b.rows = s.group * s.queries;
  b.length = lengths ? min(lengths[b.batch * s.lengths[0]], s.keys) : s.keys;
  return b;
}

// The next rows, from `row` on, for any of which these keys count. Queries that see no key at all weigh every one.
INLINE i32 next_rows(const Attention &s, const KeyBlock &b, i32 row, i32 queries) {
  for (; row < b.rows; row += queries) {
    i32 last = min(row + queries, b.rows) - 1;
    if (!s.causal || b.length < s.queries || row / s.queries != last / s.queries ||
        last % s.queries + b.length - s.queries + 1 > b.first)
      break;
  }
  return row;
}

// Stores rows of sums, times `scale`: those of a thread, of which there are `count`.
template <class D, int COLUMNS>
INLINE void store_keys(const typename D::A (&sums)[1][COLUMNS][4], typename D::T *to, i64 stride, i64 step, i32 count,
                       i32 size, typename D::A scale) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    i32 row = row_of_thread<1>(i);
    if (row < count) store_row<D>(sums[0], i, to + row * stride, step, size, scale);
  }
}

template <class D, int TILES, int COLUMNS>
INLINE void store_queries(const typename D::A (&sums)[TILES][COLUMNS][4], typename D::T *dq, const Attention &s,
                          const Gradient &g, const Rows &r) {
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    i32 row = r.first + row_of_thread<TILES>(i);
    if (row > r.last) continue;
    Query p = query_of_row(s, r.head, row);
    store_row<D>(sums[i / 2], i % 2, dq + r.batch * g.dq[0] + p.head * g.dq[1] + p.query * g.dq[2], g.dq[3], s.size,
                 (typename D::A)s.scale);
  }
}
