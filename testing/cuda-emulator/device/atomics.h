// Atomic functions. Kernels run one thread at a time, but the host may look at the same memory.
#pragma once

// Bodies are written out by macros: a template that device.h itself uses would be instantiated in every program.

// Each also for a block and for the whole system.
#define UM_EMULATED_SCOPES(T, name)                                                                                    \
  inline T name##_block(T *at, T x) { return name(at, x); }                                                            \
  inline T name##_system(T *at, T x) { return name(at, x); }
#define UM_EMULATED_ATOMIC(T, name, expression)                                                                        \
  inline T name(T *at, T x) {                                                                                          \
    T old, next;                                                                                                       \
    __atomic_load(at, &old, __ATOMIC_RELAXED);                                                                         \
    do next = expression;                                                                                              \
    while (!__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));                    \
    return old;                                                                                                        \
  }                                                                                                                    \
  UM_EMULATED_SCOPES(T, name)
#define UM_EMULATED_EXCHANGE(T)                                                                                        \
  inline T atomicExch(T *at, T x) {                                                                                    \
    T old;                                                                                                             \
    __atomic_exchange(at, &x, &old, __ATOMIC_SEQ_CST);                                                                 \
    return old;                                                                                                        \
  }                                                                                                                    \
  UM_EMULATED_SCOPES(T, atomicExch)
#define UM_EMULATED_CAS(T)                                                                                             \
  inline T atomicCAS(T *at, T expected, T x) {                                                                         \
    __atomic_compare_exchange(at, &expected, &x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
    return expected;                                                                                                   \
  }                                                                                                                    \
  inline T atomicCAS_block(T *at, T expected, T x) { return atomicCAS(at, expected, x); }                              \
  inline T atomicCAS_system(T *at, T expected, T x) { return atomicCAS(at, expected, x); }
#define UM_EMULATED_BITWISE(T)                                                                                         \
  UM_EMULATED_ATOMIC(T, atomicMin, old < x ? old : x)                                                                  \
  UM_EMULATED_ATOMIC(T, atomicMax, old > x ? old : x)                                                                  \
  UM_EMULATED_ATOMIC(T, atomicAnd, old & x)                                                                            \
  UM_EMULATED_ATOMIC(T, atomicOr, old | x)                                                                             \
  UM_EMULATED_ATOMIC(T, atomicXor, old ^ x)

UM_EMULATED_ATOMIC(int, atomicAdd, (int)((unsigned)old + (unsigned)x))
UM_EMULATED_ATOMIC(unsigned, atomicAdd, old + x)
UM_EMULATED_ATOMIC(um_emulated_u64, atomicAdd, old + x)
UM_EMULATED_ATOMIC(float, atomicAdd, old + x)
UM_EMULATED_ATOMIC(double, atomicAdd, old + x)
UM_EMULATED_ATOMIC(int, atomicSub, (int)((unsigned)old - (unsigned)x))
UM_EMULATED_ATOMIC(unsigned, atomicSub, old - x)
UM_EMULATED_ATOMIC(unsigned, atomicInc, old >= x ? 0 : old + 1)
UM_EMULATED_ATOMIC(unsigned, atomicDec, old == 0 || old > x ? x : old - 1)
UM_EMULATED_BITWISE(int)
UM_EMULATED_BITWISE(unsigned)
UM_EMULATED_BITWISE(long long)
UM_EMULATED_BITWISE(um_emulated_u64)
UM_EMULATED_EXCHANGE(int)
UM_EMULATED_EXCHANGE(unsigned)
UM_EMULATED_EXCHANGE(um_emulated_u64)
UM_EMULATED_EXCHANGE(float)
UM_EMULATED_CAS(int)
UM_EMULATED_CAS(unsigned)
UM_EMULATED_CAS(um_emulated_u64)
UM_EMULATED_CAS(unsigned short)
