// What breaks a context, and that a reset mends it.
#include "harness.h"

static void expect_broken(const char *kernel, unsigned block, int error) {
  Handle module = module_of(R"(
extern "C" __global__ void trap(int *p) { if (threadIdx.x == 3) __trap(); }
extern "C" __global__ void claim(int *p) { assert(*p == 1); }
extern "C" __global__ void wild(int *p) { *(volatile int *)16 = 1; }
extern "C" __global__ void behind(int *p) { ((volatile int *)p)[-1] = p[64]; } // the first int behind 256 bytes
extern "C" __global__ void overflow(int *p) {
  volatile char big[1 << 20];
  for (int i = (1 << 20) - 1; i >= 0; i -= 1024) big[i] = (char)*p;
}
extern "C" __global__ void stuck(int *p) { if (threadIdx.x < 5) __syncwarp(); else __syncthreads(); })");
  Address at = upload(std::vector<int>{0});
  size_t available, total;
  EXPECT(launch(function_of(module, kernel), 2, block, 0, nullptr, {&at}), 0);
  EXPECT(call("cuCtxSynchronize"), error);
  EXPECT(call("cuMemGetInfo_v2", &available, &total), error);
  EXPECT(call("cuMemFree_v2", at), error);
  EXPECT(call("cuDevicePrimaryCtxReset_v2", 0), 0);
  EXPECT(call("cuMemGetInfo_v2", &available, &total), 0);
  EXPECT(available, total);
  EXPECT(call("cuModuleUnload", module), 400);
}

void test_errors() {
  expect_broken("trap", 32, 719);
  expect_broken("claim", 1, 710);
  expect_broken("wild", 1, 700);
  expect_broken("behind", 1, 700);
  expect_broken("overflow", 1, 700);
  expect_broken("stuck", 32, 719);
  Handle module = module_of("extern \"C\" __global__ void f(int x) {}");
  int x = 0;
  EXPECT(launch(function_of(module, "f"), 1, 1025, 0, nullptr, {&x}), 1);
  EXPECT(launch(function_of(module, "f"), 0, 1, 0, nullptr, {&x}), 1);
  EXPECT(launch(function_of(module, "f"), 1, 1, 49153, nullptr, {&x}), 1);
  EXPECT(call("cuFuncSetAttribute", function_of(module, "f"), 8, 65536), 0);
  EXPECT(launch(function_of(module, "f"), 1, 1, 65536, nullptr, {&x}), 0);
  // A kernel of one device is not launched on the other.
  Handle other = nullptr;
  EXPECT(call("cuDevicePrimaryCtxRetain", &other, 1), 0);
  EXPECT(call("cuCtxPushCurrent_v2", other), 0);
  EXPECT(call("cuDevicePrimaryCtxRelease_v2", 1), 0);
  EXPECT(call("cuCtxSynchronize"), 709);
  EXPECT(call("cuCtxPopCurrent_v2", &other), 0);
  EXPECT(call("cuCtxSynchronize"), 0);
}
