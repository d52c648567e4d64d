// Contexts, memory, streams and events.
#include "harness.h"

#include <atomic>

static void sleep_in_stream(void *) { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

static void test_contexts() {
  int count = 0, value = 0;
  Handle context = nullptr, current = nullptr;
  EXPECT(call("cuDeviceGetCount", &count), 3); // not initialised
  EXPECT(call("cuInit", 0u), 0);
  EXPECT(call("cuDeviceGetCount", &count), 0);
  EXPECT(count, 2);
  char name[64];
  EXPECT(call("cuDeviceGetName", name, 64, 0), 0);
  EXPECT(strcmp(name, "Emulated CUDA device"), 0);
  EXPECT(call("cuDeviceGetAttribute", &value, 75, 0), 0);
  EXPECT(value, 9);
  Address at;
  EXPECT(call("cuMemAlloc_v2", &at, (size_t)16), 201); // no context
  EXPECT(call("cuDeviceGet", &value, 2), 101);
  EXPECT(call("cuDevicePrimaryCtxRetain", &context, 0), 0);
  EXPECT(call("cuCtxPushCurrent_v2", context), 0);
  EXPECT(call("cuCtxGetCurrent", &current), 0);
  EXPECT(current == context, true);
  int mode = 2;
  EXPECT(call("cuThreadExchangeStreamCaptureMode", &mode), 0);
  EXPECT(mode, 0);
  EXPECT(call("cuThreadExchangeStreamCaptureMode", &mode), 0);
  EXPECT(mode, 2);
}

static void test_memory() {
  size_t available = 0, total = 0, after = 0;
  EXPECT(call("cuMemGetInfo_v2", &available, &total), 0);
  Address a = 0, b = 0, base = 0;
  EXPECT(call("cuMemAlloc_v2", &a, (size_t)1000), 0);
  EXPECT(a % 256, 0);
  EXPECT(download<unsigned char>(a, 1000)[999], 0xA5);
  EXPECT(call("cuMemGetInfo_v2", &after, &total), 0);
  EXPECT(available - after, 1024);
  EXPECT(call("cuMemAlloc_v2", &b, total), 2); // out of memory
  char host[2000];
  EXPECT(call("cuMemcpyDtoH_v2", (void *)host, a, (size_t)1001), 1);
  EXPECT(call("cuMemcpyHtoD_v2", a + 999, (const void *)host, (size_t)2), 1);
  EXPECT(call("cuMemcpyHtoD_v2", a + 999, (const void *)host, (size_t)1), 0);
  EXPECT(call("cuMemsetD32Async", a, 7u, (size_t)250, nullptr), 0);
  EXPECT(download<unsigned>(a, 250)[249], 7);
  EXPECT(call("cuPointerGetAttribute", (void *)&base, 11, a + 500), 0);
  EXPECT(base, a);
  EXPECT(call("cuMemFree_v2", a + 4), 1);
  EXPECT(call("cuMemFree_v2", a), 0);
  EXPECT(call("cuMemFree_v2", a), 1);
  EXPECT(call("cuMemGetInfo_v2", &after, &total), 0);
  EXPECT(after, available);
}

static void test_streams() {
  Handle first, second, event;
  EXPECT(call("cuStreamCreate", &first, 1u), 0);
  EXPECT(call("cuStreamCreate", &second, 1u), 0);
  EXPECT(call("cuEventCreate", &event, 0u), 0);
  EXPECT(call("cuStreamWaitEvent", second, event, 0u), 0); // never recorded: over
  EXPECT(call("cuStreamSynchronize", second), 0);
  int *host = nullptr;
  EXPECT(call("cuMemHostAlloc", (void **)&host, sizeof(int), 0u), 0);
  Address at = upload(std::vector<int>{1});
  // second reads what first writes only because of the event.
  EXPECT(call("cuLaunchHostFunc", first, sleep_in_stream, (void *)nullptr), 0);
  EXPECT(call("cuMemsetD32Async", at, 42u, (size_t)1, first), 0);
  EXPECT(call("cuEventRecord", event, first), 0);
  EXPECT(call("cuStreamWaitEvent", second, event, 0u), 0);
  EXPECT(call("cuMemcpyDtoHAsync_v2", (void *)host, at, sizeof(int), second), 0);
  EXPECT(call("cuEventQuery", event), 600);
  EXPECT(call("cuStreamQuery", second), 600);
  EXPECT(call("cuStreamSynchronize", second), 0);
  EXPECT(*host, 42);
  EXPECT(call("cuEventQuery", event), 0);
  // A stream waits for a value that the other one writes.
  EXPECT(call("cuStreamWaitValue32_v2", second, at, 100u, 0u), 0);
  EXPECT(call("cuMemcpyDtoHAsync_v2", (void *)host, at, sizeof(int), second), 0);
  EXPECT(call("cuStreamWriteValue32_v2", first, at, 101u, 0u), 0);
  EXPECT(call("cuStreamSynchronize", second), 0);
  EXPECT(*host, 101);
  // The legacy stream waits for blocking streams.
  Handle blocking;
  EXPECT(call("cuStreamCreate", &blocking, 0u), 0);
  EXPECT(call("cuLaunchHostFunc", blocking, sleep_in_stream, (void *)nullptr), 0);
  EXPECT(call("cuMemsetD32Async", at, 5u, (size_t)1, blocking), 0);
  EXPECT(download<int>(at, 1)[0], 5);
  for (Handle stream : {first, second, blocking}) EXPECT(call("cuStreamDestroy_v2", stream), 0);
  EXPECT(call("cuStreamSynchronize", first), 400);
  EXPECT(call("cuEventDestroy_v2", event), 0);
  EXPECT(call("cuEventQuery", event), 400);
  EXPECT(call("cuMemFree_v2", at), 0);
  EXPECT(call("cuMemFreeHost", (void *)host), 0);
}

void test_driver() {
  test_contexts();
  test_memory();
  test_streams();
}
