// Kernels: barriers, warps, shared memory, functions.
#include "harness.h"

static void test_reduction() {
  Handle module = module_of(R"(
extern "C" __global__ void __launch_bounds__(256) total(const float *x, float *out, int n) {
  __shared__ float parts[8];
  extern __shared__ __align__(16) double scratch[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  scratch[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < 8 ? parts[threadIdx.x] : 0;
    sum = __reduce_add_sync(~0u, (int)sum);
    if (!threadIdx.x) atomicAdd(out, sum + (float)scratch[255] - 255);
  }
}
// comment: extern "C" __global__ void no(int x)
extern "C" __global__ void early(int *out) { // some threads leave before the barrier
  if (threadIdx.x % 3 == 0) return;
  int count = __syncthreads_count(threadIdx.x % 2);
  unsigned odd = __ballot_sync(__activemask(), threadIdx.x % 2);
  out[threadIdx.x] = count * 100 + __popc(odd);
}
extern "C" __global__ void neighbours(int *out) {
  int t = threadIdx.x;
  out[t] = __shfl_up_sync(~0u, t, 1) * 1000000 + __shfl_xor_sync(~0u, t, 3) * 1000 + __shfl_sync(~0u, t, 5, 8);
})");
  std::vector<float> x(10000, 1);
  Address in = upload(x), out = upload(std::vector<float>{0});
  int n = (int)x.size();
  EXPECT(launch(function_of(module, "total"), 3, 256, 2048, nullptr, {&in, &out, &n}), 0);
  EXPECT(download<float>(out, 1)[0], 10000);
  Address ints = upload(std::vector<int>(64, -1));
  EXPECT(launch(function_of(module, "early"), 1, 64, 0, nullptr, {&ints}), 0);
  auto early = download<int>(ints, 64);
  EXPECT(early[0], -1);
  EXPECT(early[1], 2100 + 11); // of 42 threads 21 are odd; of the first warp's 21 11 are
  EXPECT(launch(function_of(module, "neighbours"), 1, 64, 0, nullptr, {&ints}), 0);
  auto near = download<int>(ints, 64);
  EXPECT(near[0], 0 * 1000000 + 3 * 1000 + 5);
  EXPECT(near[42], 41 * 1000000 + 41 * 1000 + 45);
  Handle none = nullptr;
  EXPECT(call("cuModuleGetFunction", &none, module, "no"), 500);
  EXPECT(call("cuMemFree_v2", in) + call("cuMemFree_v2", out) + call("cuMemFree_v2", ints), 0);
  EXPECT(call("cuModuleUnload", module), 0);
}

static void test_functions() {
  Handle module = module_of(R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuComplex.h>
#include <math_constants.h>
#define CHECK(x) if (!(x)) atomicAdd(failed, 1), printf("%d: %s\n", __LINE__, #x)
extern "C" __global__ void check(int *failed) {
  const float ps[] = {-0.999f, -0.5f, 1e-6f, 0.3f, 0.75f, 0.99999f};
  for (float p : ps) CHECK(fabsf(erff(erfinvf(p)) - p) <= 1e-7f);
  const double qs[] = {-0.999999999, 0.1, 0.9};
  for (double p : qs) CHECK(fabs(erf(erfinv(p)) - p) < 1e-15);
  CHECK(erfcinv(1.0) == 0 && erfinvf(1) == CUDART_INF_F && isnan(erfinvf(2)));
  CHECK(fabs(erfc(erfcinv(1e-100)) / 1e-100 - 1) < 1e-12);
  CHECK(sinpif(1.5f) == -1 && cospif(0.5f) == 0 && sinpi(1e10) == 0 && fabs(sinpi(0.25) - CUDART_SQRT_HALF) < 2e-16);
  CHECK(fabs(normcdff(0) - 0.5f) < 1e-7 && rsqrtf(4) == 0.5f);
  CHECK(exp(1.0f) == expf(1) && sizeof(exp(1.0f)) == 4 && abs(-3.5f) == 3.5f && max(2u, 3) == 3 && min(-1ll, 2ll) == -1);
  CHECK(__brev(1) == 0x80000000u && __clz(1) == 31 && __ffs(8) == 4 && __popcll(~0ull) == 64 && __clzll(0) == 64);
  CHECK(__byte_perm(0x33221100, 0x77665544, 0x7520) == 0x77552200u && __funnelshift_l(0x80000000u, 1, 1) == 3);
  CHECK(__umulhi(1u << 31, 4) == 2 && __mulhi(-1, 1) == -1 && __umul64hi(1ull << 63, 2) == 1);
  CHECK(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.9f) == -2 && __float2int_rz(1e20f) == 2147483647);
  CHECK(__half2float(__float2half_rn(1.0009765f)) == 1.0009765625f && __half2float(__float2half(65520.f)) == CUDART_INF_F);
  CHECK(__half2float(__float2half(6e-8f)) == 5.9604644775390625e-8f && __half_as_ushort(__float2half(-1.f)) == 0xBC00);
  CHECK(__half2float(__float2half(2049.f)) == 2048 && __half2float(__float2half(2051.f)) == 2052);
  CHECK(__bfloat162float(__float2bfloat16_rn(1.00390625f)) == 1 && isnan(__bfloat162float(__float2bfloat16(CUDART_NAN_F))));
  __half h = __float2half(1.5f);
  h += __half(2.0f);
  CHECK((float)h == 3.5f && __hmul(h, h) == __half(12.25f) && cuCabsf(make_cuFloatComplex(3, 4)) == 5);
  half2 p = __floats2half2_rn(1, 2);
  CHECK(__half22float2(p + p).y == 4);
  float4 v = make_float4(1, 2, 3, 4);
  CHECK(sizeof(float3) == 12 && alignof(float4) == 16 && v.w == 4 && sizeof(uchar3) == 3 && sizeof(dim3) == 12);
  unsigned u = 5;
  CHECK(atomicCAS(&u, 5u, 7u) == 5 && atomicMax(&u, 9u) == 7 && atomicExch(&u, 1u) == 9 && atomicInc(&u, 1u) == 1 && u == 0);
  CHECK(__hiloint2double(__double2hiint(-2.5), __double2loint(-2.5)) == -2.5 && copysignf(1, -0.0f) == -1);
  // A GPU divides by zero.
  volatile int zero = 0, minus = -1, least = -2147483647 - 1;
  volatile unsigned long long wide = 0, got;
  volatile unsigned char narrow = 0;
  int at[3] = {zero, 5, zero};
#define DIVIDES(x, result) got = (unsigned long long)(x); CHECK(got == (result))
  DIVIDES(7 / zero, ~0ull);
  DIVIDES(7 % zero, 7);
  DIVIDES(least / minus, (unsigned long long)least);
  DIVIDES(least % minus, 0);
  DIVIDES(9 / wide, ~0ull);
  DIVIDES(9 % wide, 9);
  DIVIDES(6u / (unsigned)zero, 0xFFFFFFFFu);
  DIVIDES(7 / at[minus + 3], ~0ull);
  DIVIDES(5 % at[zero], 5);
  DIVIDES((unsigned char)(100 / narrow), 255);
})");
  Address failed = upload(std::vector<int>{0});
  EXPECT(launch(function_of(module, "check"), 1, 1, 0, nullptr, {&failed}), 0);
  EXPECT(download<int>(failed, 1)[0], 0);
  EXPECT(call("cuMemFree_v2", failed), 0);
}

// Two modules with the same names have their own variables.
static void test_variables() {
  const char *source = R"(
__constant__ int table[4];
extern "C" __device__ int counter;
__device__ int counter = 10;
template <typename T> __device__ T next() { static T at = 0; return ++at; }
extern "C" __global__ void count(int *out) { *out = ++counter * 100 + next<int>(); })";
  Handle a = module_of(source), b = module_of(source);
  Address out = upload(std::vector<int>{0}), at = 0;
  launch(function_of(a, "count"), 1, 1, 0, nullptr, {&out});
  EXPECT(download<int>(out, 1)[0], 1101);
  launch(function_of(b, "count"), 1, 1, 0, nullptr, {&out});
  EXPECT(download<int>(out, 1)[0], 1101);
  size_t size = 0;
  EXPECT(call("cuModuleGetGlobal_v2", &at, &size, a, "counter"), 0);
  EXPECT(size, 4);
  EXPECT(call("cuMemsetD32Async", at, 70u, (size_t)1, nullptr), 0);
  launch(function_of(a, "count"), 1, 1, 0, nullptr, {&out});
  EXPECT(download<int>(out, 1)[0], 7102);
  EXPECT(call("cuModuleUnload", a) + call("cuModuleUnload", b), 0);
  EXPECT(call("cuMemsetD32Async", at, 70u, (size_t)1, nullptr), 1);
}

static void test_groups() {
  Handle module = module_of(R"(
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void tiles(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int sum = block.thread_rank();
  for (int o = tile.size() / 2; o; o /= 2) sum += tile.shfl_down(sum, o);
  block.sync();
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum + 1000 * tile.any(0);
  else tile.any(1);
}
extern "C" __global__ void ranks(unsigned long long *out) {
  auto grid = cg::this_grid();
  out[grid.thread_rank()] = 100 * grid.size() + threadIdx.x + 10 * blockIdx.x;
})");
  Address out = upload(std::vector<int>(4, 0));
  EXPECT(launch(function_of(module, "tiles"), 1, 32, 0, nullptr, {&out}), 0);
  EXPECT(download<int>(out, 4)[2], 16 * 8 + 28 + 1000);
  Address ranks = upload(std::vector<unsigned long long>(6, 0));
  EXPECT(launch(function_of(module, "ranks"), 3, 2, 0, nullptr, {&ranks}), 0);
  EXPECT(download<unsigned long long>(ranks, 6)[5], 621);
}

// Every block finds poison in its shared memory, also in that of templates.
static void test_shared() {
  Handle module = module_of(R"(
template <typename T> __device__ T *room() { __shared__ T kept[4]; return kept; }
extern "C" __global__ void look(unsigned *out) {
  static __shared__ unsigned plain;
  __shared__ alignas(16) float4 aligned[2];
  unsigned seen = plain | (unsigned)room<int>()[0] | (unsigned)room<long long>()[3];
  atomicOr(out, seen);
  plain = room<int>()[0] = 0x5A000000;
  room<long long>()[3] = 0x5A000000;
  out[1] = (unsigned)((size_t)aligned % 16);
})");
  Address out = upload(std::vector<unsigned>{0, 1});
  EXPECT(launch(function_of(module, "look"), 3, 1, 0, nullptr, {&out}), 0);
  EXPECT(download<unsigned>(out, 1)[0], 0xA5A5A5A5u);
  EXPECT(download<unsigned>(out, 2)[1], 0);
}

void test_kernels() {
  test_groups();
  test_shared();
  test_reduction();
  test_functions();
  test_variables();
}
