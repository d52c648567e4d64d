// For users' kernels where CUDA's headers are not installed: the names of cuda_fp16.h, cuda_bf16.h and
// cooperative_groups.h that kernels use most. Halves are computed with as floats.
#if !__has_include(<cuda_fp16.h>)
struct __align__(2) __half {
  unsigned short bits;
  __half() = default;
  __device__ __half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __half(double x) : __half((float)x) {}
  __device__ __half(int x) : __half((float)x) {}
  __device__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
typedef __half half;
__device__ inline float __half2float(__half x) { return x; }
__device__ inline __half __float2half(float x) { return x; }
__device__ inline __half __float2half_rn(float x) { return x; }
#endif
#if !__has_include(<cuda_bf16.h>)
struct __align__(2) __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  __device__ __nv_bfloat16(float x) {
    unsigned int whole = __float_as_uint(x);
    if ((whole & 0x7fffffff) > 0x7f800000) bits = (unsigned short)(whole >> 16 | 0x40);
    else bits = (unsigned short)((whole + 0x7fff + (whole >> 16 & 1)) >> 16);
  }
  __device__ __nv_bfloat16(double x) : __nv_bfloat16((float)x) {}
  __device__ __nv_bfloat16(int x) : __nv_bfloat16((float)x) {}
  __device__ operator float() const { return __uint_as_float((unsigned int)bits << 16); }
};
typedef __nv_bfloat16 nv_bfloat16;
__device__ inline float __bfloat162float(__nv_bfloat16 x) { return x; }
__device__ inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
__device__ inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
#endif
#if !__has_include(<cooperative_groups.h>)
namespace cooperative_groups {
struct thread_block {
  __device__ void sync() const { __syncthreads(); }
  __device__ dim3 group_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __device__ dim3 thread_index() const { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  __device__ unsigned int thread_rank() const {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __device__ unsigned int size() const { return blockDim.x * blockDim.y * blockDim.z; }
};
struct grid_group {
  __device__ unsigned long long size() const {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * thread_block().size();
  }
  __device__ unsigned long long thread_rank() const {
    unsigned long long block = (blockIdx.z * (unsigned long long)gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    return block * thread_block().size() + thread_block().thread_rank();
  }
};
__device__ inline thread_block this_thread_block() { return {}; }
__device__ inline grid_group this_grid() { return {}; }
}  // namespace cooperative_groups
#endif
