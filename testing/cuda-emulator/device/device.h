// CUDA C++ for g++: what a kernel finds without including anything, as far as the emulator has it.
// No header of a standard library is read here: the time to compile a kernel is what counts.
#pragma once
#define __EMULATED_CUDA__ 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// The driver knows these variables by their alignment.
#define __shared__ static __attribute__((aligned(256)))
#define __device_builtin__
#define __cudart_builtin__

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef unsigned long long um_emulated_u64;

#include "abi.h"
#include "vectors.h"

static um_emulated_state um_emulated = {};
constexpr const uint3 &threadIdx = um_emulated.thread;
constexpr const uint3 &blockIdx = um_emulated.block;
constexpr const dim3 &blockDim = um_emulated.block_dim;
constexpr const dim3 &gridDim = um_emulated.grid_dim;
constexpr int warpSize = 32;

// The dynamic shared memory of the block.
inline void *um_emulated_shared() { return um_emulated.shared; }

inline void __trap() { um_emulated.fail(719, "trap"); }
inline void __brkpt() {}
inline void __assert_failed(const char *what) { um_emulated.fail(710, what); }
#define UM_EMULATED_TEXT_(x) #x
#define UM_EMULATED_TEXT(x) UM_EMULATED_TEXT_(x)
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
#define assert(...)                                                                                                    \
  ((__VA_ARGS__) ? (void)0 : __assert_failed(__FILE__ "(" UM_EMULATED_TEXT(__LINE__) "): assertion `" #__VA_ARGS__ "` failed"))
#endif

extern "C" {
int printf(const char *format, ...);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *malloc(size_t size);
void free(void *at);
}
inline void *operator new(size_t, void *at) noexcept { return at; }

#include "math.h"
#include "bits.h"
#include "atomics.h"
#include "warp.h"
#include "half.h"
#include "entry.h"
