// The products of attention's tiles by a warp, whose results are spread over lanes as those of mma.cuh are: on tensor cores
// for halves, by multiply-adds for float32 and float64, which stay what they are. PITCH elements are from a row to the next.

template <class D, int PITCH, bool CORES = D::is_half> struct Products {
  typedef typename D::T T;

  // c += a b: a's rows are the warp's, of DEPTH elements, and b's are the columns.
  template <int DEPTH, int TILES, int COLUMNS>
  INLINE void add_rows(float (&c)[TILES][COLUMNS][4], const T *a, const T *b) {
    add_rows_product<D, DEPTH, PITCH>(c, left_rows<PITCH>(a), right_columns<PITCH>(b));
  }

  // sums += weights b: weights in the layout of results, and b as it lies.
  template <int TILES, int ROWS, int COLUMNS>
  INLINE void add_weighted(float (&sums)[TILES][COLUMNS][4], const float (&weights)[TILES][ROWS][4], const T *b) {
    const Place rows = right_rows<PITCH>(b);
#pragma unroll
    for (int step = 0; step < ROWS / 2; step++) {
      u32 a[TILES][4];
#pragma unroll
      for (int i = 0; i < TILES; i++) pack_fragment<D>(a[i], weights[i][2 * step], weights[i][2 * step + 1]);
#pragma unroll
      for (int j = 0; j < COLUMNS; j += 2) {
        u32 columns[4];
        load_transposed(columns, rows + step * 16 * 2 * PITCH + j * 16);
        multiply_columns<D>(sums, j, a, columns);
      }
    }
  }
};

template <class D, int PITCH> struct Products<D, PITCH, false> {
  typedef typename D::T T;
  enum { EACH = 16 / sizeof(T) };
  struct __align__(16) Vector { T v[EACH]; };

  template <int DEPTH, int TILES, int COLUMNS>
  INLINE void add_rows(T (&c)[TILES][COLUMNS][4], const T *a, const T *b) {
    const int g = lane_of() / 4, t = lane_of() % 4;
#pragma unroll 2
    for (int k = 0; k < DEPTH; k += EACH) {
      Vector rows[TILES][2];
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++)
        rows[i / 2][i % 2] = *(const Vector *)(a + (i / 2 * 16 + i % 2 * 8 + g) * PITCH + k);
#pragma unroll
      for (int j = 0; j < 2 * COLUMNS; j++) {
        const Vector column = *(const Vector *)(b + (j / 2 * 8 + 2 * t + j % 2) * PITCH + k);
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++)
#pragma unroll
          for (int e = 0; e < EACH; e++) {
            T &sum = c[i / 2][j / 2][i % 2 * 2 + j % 2];
            sum = multiply_add(rows[i / 2][i % 2].v[e], column.v[e], sum);
          }
      }
    }
  }

  template <int TILES, int ROWS, int COLUMNS>
  INLINE void add_weighted(T (&sums)[TILES][COLUMNS][4], const T (&weights)[TILES][ROWS][4], const T *b) {
    struct __align__(2 * sizeof(T)) Pair { T v[2]; };
    const int g = lane_of() / 4, t = lane_of() % 4;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
#pragma unroll
      for (int c = 0; c < 2; c++)
#pragma unroll
        for (int from = 0; from < 4; from++) {  // the lane of the row's that has this weight
          T own[TILES][2];
#pragma unroll
          for (int i = 0; i < 2 * TILES; i++)
            own[i / 2][i % 2] = __shfl_sync(0xffffffffu, weights[i / 2][j][i % 2 * 2 + c], 4 * g + from);
          const T *row = b + (j * 8 + 2 * from + c) * PITCH + 2 * t;
#pragma unroll
          for (int to = 0; to < COLUMNS; to++) {
            const Pair pair = *(const Pair *)(row + to * 8);
#pragma unroll
            for (int i = 0; i < 4 * TILES; i++) {
              T &sum = sums[i / 4][to][i % 4];
              sum = multiply_add(own[i / 4][i % 4 / 2], pair.v[i % 2], sum);
            }
          }
        }
  }
};
