// Tensor cores, for kernels whose operands are in shared memory: PTX where there is a GPU, and for the emulator the
// same pieces by shuffles, so that kernels are the same. The layouts of fragments are those of PTX's mma.m16n8k16:
// lane l, in group g = l / 4 at place t = l % 4, has
//   a: rows g and g + 8 (a[0], a[1]), columns 2t and 2t + 1, and the same 8 columns on (a[2], a[3]);
//   b: rows 2t and 2t + 1 of column g, and the same 8 rows on; c: row g (c[0], c[1]) and g + 8, columns 2t and 2t + 1.
// A pair of halves may also be a TF32, of which there is one where there are two halves (mma.m16n8k8): D is F32 then.

enum { WARP = 32 };

INLINE int lane_of() { return (int)threadIdx.x % WARP; }

#ifdef __EMULATED_CUDA__

// A place in shared memory, in bytes.
typedef const char *Place;
INLINE Place place_of(const void *p) { return (const char *)p; }

// Two numbers as halves, the first in the low bits.
template <class D> INLINE u32 pack_halves(float low, float high) {
  return (u32)D::down(low).bits | (u32)D::down(high).bits << 16;
}

// 2^x: 0 below the smallest normal number.
INLINE float power_of_2(float x) { return x < -126.0f ? 0.0f : exp2f(x); }

template <class D> INLINE float half_of(u32 pair, int high) {
  u16 bits = (u16)(high ? pair >> 16 : pair);
  return Same<D, F16>::value ? half_up(bits) : brain_up(bits);
}

template <class D> INLINE void multiply_add(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  int lane = lane_of(), g = lane / 4, t = lane % 4;
  for (int q = 0; q < 4; q++) {
    u32 rows[4], columns[2][2];
    for (int i = 0; i < 4; i++) rows[i] = __shfl_sync(0xffffffffu, a[i], 4 * g + q);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 2; i++) columns[j][i] = __shfl_sync(0xffffffffu, b[i], 4 * (2 * t + j) + q);
    for (int i = 0; i < 4; i++) {
      for (int part = 0; part < 2; part++) {
        u32 row = rows[i / 2 + 2 * part], column = columns[i % 2][part];
        if (Same<D, F32>::value) c[i] = fmaf(__uint_as_float(row), __uint_as_float(column), c[i]);
        else
          for (int high = 0; high < 2; high++) c[i] = fmaf(half_of<D>(row, high), half_of<D>(column, high), c[i]);
      }
    }
  }
}

// A float32 rounded to TF32: ties away from zero.
INLINE u32 as_tf32(u32 bits) { return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000; }

INLINE const u16 *row_of(Place own, int lane) {
  return (const u16 *)__shfl_sync(0xffffffffu, (unsigned long long)own, lane);
}

// Four matrices of 8 rows of 16 bytes: lane 8 i + r has the address of row r of matrix i.
INLINE void load_matrices(u32 (&to)[4], Place row) {
  int lane = lane_of();
  for (int i = 0; i < 4; i++) to[i] = ((const u32 *)row_of(row, 8 * i + lane / 4))[lane % 4];
}

// The same, transposed.
INLINE void load_transposed(u32 (&to)[4], Place row) {
  int lane = lane_of();
  for (int i = 0; i < 4; i++) {
    u32 low = row_of(row, 8 * i + lane % 4 * 2)[lane / 4], high = row_of(row, 8 * i + lane % 4 * 2 + 1)[lane / 4];
    to[i] = low | high << 16;
  }
}

// Copies 16 bytes, or zeros, to shared memory. CACHED: by way of L1, for what the processor reads again soon.
template <bool CACHED = false> INLINE void copy_async(Place to, const void *from, bool there) {
  for (int i = 0; i < 4; i++) ((u32 *)to)[i] = there ? ((const u32 *)from)[i] : 0;
}
// The same of 4, 8 or 16 bytes.
template <int BYTES> INLINE void copy_part_async(Place to, const void *from, bool there) {
  for (int i = 0; i < BYTES / 4; i++) ((u32 *)to)[i] = there ? ((const u32 *)from)[i] : 0;
}
INLINE void commit_copies() {}
template <int LEFT> INLINE void wait_for_copies() {}

#else

// A place in shared memory, in bytes.
typedef u32 Place;
INLINE Place place_of(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// Two numbers as halves, the first in the low bits.
template <class D> INLINE u32 pack_halves(float low, float high) {
  u32 pair;
  if (Same<D, F16>::value) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// 2^x: 0 below the smallest normal number.
INLINE float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class D> INLINE void multiply_add(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if (Same<D, F16>::value)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else if (Same<D, F32>::value)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A float32 rounded to TF32: ties away from zero.
INLINE u32 as_tf32(u32 bits) {
  u32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
}

// Four matrices of 8 rows of 16 bytes: lane 8 i + r has the address of row r of matrix i.
INLINE void load_matrices(u32 (&to)[4], Place row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// The same, transposed.
INLINE void load_transposed(u32 (&to)[4], Place row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// Copies 16 bytes, or zeros, to shared memory. CACHED: by way of L1, for what the processor reads again soon.
template <bool CACHED = false> INLINE void copy_async(Place to, const void *from, bool there) {
  if (CACHED)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
// The same of 4, 8 or 16 bytes.
template <int BYTES> INLINE void copy_part_async(Place to, const void *from, bool there) {
  if (BYTES == 16) copy_async(to, from, there);
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(there ? BYTES : 0)
                 : "memory");
}
INLINE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most so many groups of copies are under way.
template <int LEFT> INLINE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

#endif

// Where a lane's rows of matrices begin, in rows of PITCH halves: as the left operand of a product, as the right one whose
// columns are rows in memory, and as the right one that lies as it is.
template <int PITCH> INLINE Place left_rows(const void *p) {
  return place_of(p) + lane_of() % 16 * (2 * PITCH) + lane_of() / 16 * 16;
}
template <int PITCH> INLINE Place right_columns(const void *p) {
  return place_of(p) + (lane_of() % 8 + lane_of() / 16 * 8) * (2 * PITCH) + lane_of() / 8 % 2 * 16;
}
template <int PITCH> INLINE Place right_rows(const void *p) { return left_rows<PITCH>(p); }
// As the left operand whose rows are columns in memory.
template <int PITCH> INLINE Place left_columns(const void *p) { return right_columns<PITCH>(p); }

template <class A, int TILES, int COLUMNS> INLINE void clear(A (&c)[TILES][COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) c[i][j][e] = 0;
}

// Adds the products of TILES rows of matrices and of two columns.
template <class D, int TILES, int COLUMNS>
INLINE void multiply_columns(float (&c)[TILES][COLUMNS][4], int j, const u32 (&a)[TILES][4], const u32 (&b)[4]) {
  u32 left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
#pragma unroll
  for (int i = 0; i < TILES; i++) {
    multiply_add<D>(c[i][j], a[i], left);
    multiply_add<D>(c[i][j + 1], a[i], right);
  }
}

// Two results of 8 columns each, as halves of a left operand.
template <class D> INLINE void pack_fragment(u32 (&to)[4], const float (&low)[4], const float (&high)[4]) {
  to[0] = pack_halves<D>(low[0], low[1]);
  to[1] = pack_halves<D>(low[2], low[3]);
  to[2] = pack_halves<D>(high[0], high[1]);
  to[3] = pack_halves<D>(high[2], high[3]);
}

template <class D> INLINE void round_fragment(u32 (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (Same<D, F32>::value) to[i] = as_tf32(to[i]);
}

// c += a b, for rows of DEPTH halves: a's are TILES times 16, b's are the columns.
template <class D, int DEPTH, int PITCH, int TILES, int COLUMNS>
INLINE void add_rows_product(float (&c)[TILES][COLUMNS][4], Place a, Place b) {
#pragma unroll
  for (int step = 0; step < DEPTH / 16; step++) {
    u32 rows[TILES][4];
#pragma unroll
    for (int i = 0; i < TILES; i++) {
      load_matrices(rows[i], a + i * 16 * 2 * PITCH + step * 32);
      round_fragment<D>(rows[i]);
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2) {
      u32 columns[4];
      load_matrices(columns, b + j * 8 * 2 * PITCH + step * 32);
      round_fragment<D>(columns);
      multiply_columns<D>(c, j, rows, columns);
    }
  }
}

// c += a^T b, for DEPTH rows of both as they lie.
template <class D, int DEPTH, int A_PITCH, int B_PITCH, int TILES, int COLUMNS>
INLINE void add_columns_product(float (&c)[TILES][COLUMNS][4], Place a, Place b) {
#pragma unroll
  for (int step = 0; step < DEPTH / 16; step++) {
    u32 rows[TILES][4];
#pragma unroll
    for (int i = 0; i < TILES; i++) load_transposed(rows[i], a + step * 16 * 2 * A_PITCH + i * 32);
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2) {
      u32 columns[4];
      load_transposed(columns, b + step * 16 * 2 * B_PITCH + j * 16);
      multiply_columns<D>(c, j, rows, columns);
    }
  }
}
