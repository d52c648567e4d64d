// Tensor cores, for kernels whose operands are halves in shared memory: PTX where there is a GPU, and for the emulator the
// same pieces by shuffles, so that kernels are the same. The layouts of fragments are those of PTX's mma.m16n8k16:
// lane l, in group g = l / 4 at place t = l % 4, has
//   a: rows g and g + 8 (a[0], a[1]), columns 2t and 2t + 1, and the same 8 columns on (a[2], a[3]);
//   b: rows 2t and 2t + 1 of column g, and the same 8 rows on; c: row g (c[0], c[1]) and g + 8, columns 2t and 2t + 1.

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
  typename D::T x;
  x.bits = (u16)(high ? pair >> 16 : pair);
  return D::up(x);
}

template <class D> INLINE void multiply_add(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  int lane = lane_of(), g = lane / 4, t = lane % 4;
  for (int q = 0; q < 4; q++) {
    u32 rows[4], columns[2][2];
    for (int i = 0; i < 4; i++) rows[i] = __shfl_sync(0xffffffffu, a[i], 4 * g + q);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 2; i++) columns[j][i] = __shfl_sync(0xffffffffu, b[i], 4 * (2 * t + j) + q);
    for (int i = 0; i < 4; i++)
      for (int half = 0; half < 4; half++)
        c[i] = fmaf(half_of<D>(rows[i / 2 + half / 2 * 2], half % 2), half_of<D>(columns[i % 2][half / 2], half % 2), c[i]);
  }
}

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

// Copies 16 bytes, or zeros, to shared memory.
INLINE void copy_async(Place to, const void *from, bool there) {
  for (int i = 0; i < 4; i++) ((u32 *)to)[i] = there ? ((const u32 *)from)[i] : 0;
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
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

// Copies 16 bytes, or zeros, to shared memory.
INLINE void copy_async(Place to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
INLINE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most so many groups of copies are under way.
template <int LEFT> INLINE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

#endif
