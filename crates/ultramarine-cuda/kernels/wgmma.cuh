// Tensor cores that the four warps of a warpgroup drive together (PTX's wgmma, of compute capability 9.0 alone), beside the
// products of mma.cuh, whose fragments they share: a warp has 16 of the group's 64 rows. Operands are matrices of halves in
// shared memory, or on the left a fragment; for the emulator the same by loops. Products run on behind their call: results
// may be read, and operands overwritten, after wait_for_products.

enum { GROUP = 128, PANEL = 64 };

// Matrices in shared memory are panels of 64 columns, rows of 128 bytes from a multiple of 1024 on. The 16-byte parts of a row
// are permuted by its number (the swizzle of 128 bytes), so that neither rows nor columns meet in a bank.
template <int ROWS> struct Swizzled {
  // Where a part of 8 columns is, in halves.
  INLINE int at(int row, int column) {
    return column / PANEL * ROWS * PANEL + row * PANEL + ((column / 8 ^ row) % 8) * 8;
  }
};

// The first address from which matrices may begin, in memory that is 1024 bytes larger than what they need.
INLINE u16 *aligned_panels(u16 *p) {
#ifdef __EMULATED_CUDA__
  return (u16 *)(((unsigned long long)p + 1023) / 1024 * 1024);
#else
  u32 at = (u32)__cvta_generic_to_shared(p);
  return p + (1024 - at % 1024) % 1024 / 2;
#endif
}

#ifdef __EMULATED_CUDA__

// An operand: where it begins, and whether its rows (of the sum's axis) lie one behind the other.
struct Matrix {
  const char *start;
  int panel;  // bytes from a panel to the next
};

INLINE Matrix matrix_at(const u16 *p, int rows) {
  Matrix m = {(const char *)p, rows * 2 * PANEL};
  return m;
}
INLINE Matrix advanced(Matrix m, int bytes) {
  m.start += bytes;
  return m;
}
// The half at a row and a column of panels. A start in the middle of a row of 128 bytes is one of columns.
INLINE u16 half_at(const Matrix &m, int row, int column) {
  unsigned long long start = (unsigned long long)m.start, inside = start % 128;
  column += (int)inside / 2;
  unsigned long long at = start - inside + column / PANEL * m.panel + row * 128 + column % PANEL * 2;
  return *(const u16 *)(at ^ (at / 128 % 8 * 16));
}

template <class D> INLINE float operand_at(const Matrix &m, bool transposed, int line, int k) {
  u16 bits = transposed ? half_at(m, k, line) : half_at(m, line, k);
  return Same<D, F16>::value ? half_up(bits) : brain_up(bits);
}

template <class D, bool TRANSPOSED, int COLUMNS>
INLINE void add_group_rows(float (&c)[1][COLUMNS][4], const float (&rows)[2][16], Matrix b, bool add) {
  for (int j = 0; j < COLUMNS; j++)
    for (int i = 0; i < 4; i++) {
      float sum = add ? c[0][j][i] : 0.0f;
      for (int k = 0; k < 16; k++)
        sum = fmaf(rows[i / 2][k], operand_at<D>(b, TRANSPOSED, j * 8 + lane_of() % 4 * 2 + i % 2, k), sum);
      c[0][j][i] = sum;
    }
}

template <class D, bool TRANSPOSED, int COLUMNS>
INLINE void multiply_group(float (&c)[1][COLUMNS][4], Matrix a, Matrix b, bool add) {
  float rows[2][16];
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 16; k++)
      rows[i][k] = operand_at<D>(a, false, (int)threadIdx.x % GROUP / WARP * 16 + lane_of() / 4 + i * 8, k);
  add_group_rows<D, TRANSPOSED>(c, rows, b, add);
}

template <class D, bool TRANSPOSED, int COLUMNS>
INLINE void multiply_group(float (&c)[1][COLUMNS][4], const u32 (&a)[4], Matrix b, bool add) {
  float rows[2][16];
  for (int i = 0; i < 4; i++)
    for (int q = 0; q < 4; q++) {
      u32 pair = __shfl_sync(0xffffffffu, a[i], lane_of() / 4 * 4 + q);
      for (int high = 0; high < 2; high++) rows[i % 2][i / 2 * 8 + 2 * q + high] = half_of<D>(pair, high);
    }
  add_group_rows<D, TRANSPOSED>(c, rows, b, add);
}

INLINE void begin_products() {}
INLINE void end_products() {}
template <int LEFT> INLINE void wait_for_products() {}
INLINE void show_copies() {}
template <int COLUMNS> INLINE void pin(float (&)[1][COLUMNS][4]) {}

#else

// An operand's descriptor: address and, in units of 16 bytes, the steps from a panel to the next and by 8 rows.
typedef u64 Matrix;

INLINE Matrix matrix_at(const u16 *p, int rows) {
  u64 start = (u32)__cvta_generic_to_shared(p);
  return (start & 0x3ffff) >> 4 | (u64)(rows * 2 * PANEL >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}
INLINE Matrix advanced(Matrix m, int bytes) { return m + (bytes >> 4); }

#define SUMS_4(j) "+f"(c[0][j][0]), "+f"(c[0][j][1]), "+f"(c[0][j][2]), "+f"(c[0][j][3])
#define SUMS_16(j) SUMS_4(j), SUMS_4(j + 1), SUMS_4(j + 2), SUMS_4(j + 3)
#define SUMS_32 SUMS_16(0), SUMS_16(4)
#define SUMS_64 SUMS_32, SUMS_16(8), SUMS_16(12)
#define SUMS_128 SUMS_64, SUMS_16(16), SUMS_16(20), SUMS_16(24), SUMS_16(28)
#define NAMES_32                                                                                                    \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
  "%30,%31"
#define NAMES_64                                                                                                      \
  NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57," \
           "%58,%59,%60,%61,%62,%63"
#define NAMES_128                                                                                                    \
  NAMES_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87," \
           "%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
           "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// A product of 64 rows and N columns, whose R sums are the first operands, and whose others are the numbers A, B and so on.
#define PRODUCT(R, N, TYPE, A, B, ADD, LAYOUT, ...)                                                                  \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD ", 0;\n"                                                 \
               "wgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" NAMES_##R "}, " A ", " B          \
               ", add, 1, 1, " LAYOUT ";\n}"                                                                         \
               : SUMS_##R                                                                                            \
               : __VA_ARGS__, "l"(b), "r"((int)add), "n"(TRANSPOSED))
#define TYPED_PRODUCT(...)                                            \
  if (Same<D, F16>::value) PRODUCT_OF_TYPE("f16", __VA_ARGS__);       \
  else PRODUCT_OF_TYPE("bf16", __VA_ARGS__)
#define PRODUCT_OF_TYPE(TYPE, R, N, ...) PRODUCT(R, N, TYPE, __VA_ARGS__)

// c = a b, or c += a b, for 16 columns of a. TRANSPOSED: b's rows are the sum's axis; else its columns are.
template <class D, bool TRANSPOSED, int COLUMNS>
INLINE void multiply_group(float (&c)[1][COLUMNS][4], Matrix a, Matrix b, bool add) {
  static_assert(COLUMNS == 8 || COLUMNS == 16, "64 or 128 columns");
  if constexpr (COLUMNS == 8)
    TYPED_PRODUCT(32, "64", "%32", "%33", "%34", "0, %35", "l"(a));
  else
    TYPED_PRODUCT(64, "128", "%64", "%65", "%66", "0, %67", "l"(a));
}
template <class D, bool TRANSPOSED, int COLUMNS>
INLINE void multiply_group(float (&c)[1][COLUMNS][4], const u32 (&a)[4], Matrix b, bool add) {
  static_assert(COLUMNS == 8 || COLUMNS == 16 || COLUMNS == 32, "64, 128 or 256 columns");
  if constexpr (COLUMNS == 8)
    TYPED_PRODUCT(32, "64", "{%32,%33,%34,%35}", "%36", "%37", "%38", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
  else if constexpr (COLUMNS == 16)
    TYPED_PRODUCT(64, "128", "{%64,%65,%66,%67}", "%68", "%69", "%70", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
  else
    TYPED_PRODUCT(128, "256", "{%128,%129,%130,%131}", "%132", "%133", "%134", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
}

// Before the first product after registers that it uses were written.
INLINE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Behind those that are waited for together.
INLINE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most so many of those are under way.
template <int LEFT> INLINE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
// Shows tensor cores what this thread wrote to shared memory, before the barrier behind which they read it.
INLINE void show_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Keeps the compiler from moving accesses to sums across.
template <int COLUMNS> INLINE void pin(float (&c)[1][COLUMNS][4]) {
#pragma unroll
  for (int j = 0; j < COLUMNS; j++)
    asm volatile("" : "+f"(c[0][j][0]), "+f"(c[0][j][1]), "+f"(c[0][j][2]), "+f"(c[0][j][3])::"memory");
}

#endif

// c = a b: a has the group's 64 rows of matrices with A_ROWS, and b's columns are rows of matrices with B_ROWS, of DEPTH
// columns.
template <class D, int DEPTH, int A_ROWS, int B_ROWS, int COLUMNS>
INLINE void multiply_rows(float (&c)[1][COLUMNS][4], Matrix a, Matrix b) {
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) {
    int panel = k / PANEL, inside = k % PANEL * 2;
    multiply_group<D, false>(c, advanced(a, panel * A_ROWS * 2 * PANEL + inside),
                             advanced(b, panel * B_ROWS * 2 * PANEL + inside), k > 0);
  }
}

// c += a b: a as packed fragments of DEPTH / 16 times 16 columns, b as it lies.
template <class D, int DEPTH, int COLUMNS>
INLINE void add_weighted(float (&c)[1][COLUMNS][4], const u32 (&a)[DEPTH / 16][4], Matrix b) {
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) multiply_group<D, true>(c, a[k / 16], advanced(b, k * 2 * PANEL), true);
}

// Weights in the layout of results, as fragments of a left operand.
template <class D, int COLUMNS>
INLINE void pack_weights(u32 (&to)[COLUMNS / 2][4], const float (&weights)[1][COLUMNS][4]) {
#pragma unroll
  for (int step = 0; step < COLUMNS / 2; step++)
    pack_fragment<D>(to[step], weights[0][2 * step], weights[0][2 * step + 1]);
}
