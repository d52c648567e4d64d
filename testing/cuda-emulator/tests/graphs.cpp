// Graphs, their changes, and captures.
#include "harness.h"

struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
  Handle kernel, context;
};
struct FillNode {
  Address to;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
};
struct CopySide {
  size_t place[4];
  unsigned type;
  void *host;
  Address device;
  void *others[2];
  size_t rows[2];
};
struct CopyNode {
  CopySide from, to;
  size_t extent[3];
};

static CopyNode copy_of(Address to, Address from, size_t bytes) {
  return {{{}, 2, nullptr, from, {}, {}}, {{}, 2, nullptr, to, {}, {}}, {bytes, 1, 1}};
}

static void increment(void *data) { ++*(int *)data; }

static void test_nodes(Handle context, Handle stream, Handle add) {
  Address a = upload(std::vector<int>{1, 2, 3, 4}), b = upload(std::vector<int>{9, 9, 9, 9});
  Handle graph, exec, fill, kernel, copied, wrong;
  EXPECT(call("cuGraphCreate", &graph, 0u), 0);
  FillNode filled = {a, 0, 5, 4, 4, 1};
  EXPECT(call("cuGraphAddMemsetNode", &fill, graph, (Handle *)nullptr, (size_t)0, &filled, context), 0);
  int amount = 2;
  void *parameters[] = {&a, &amount};
  KernelNode launched = {add, {1, 1, 1}, {4, 1, 1}, 0, parameters, nullptr, nullptr, nullptr};
  EXPECT(call("cuGraphAddKernelNode_v2", &kernel, graph, &fill, (size_t)1, &launched), 0);
  CopyNode copy = copy_of(b, a, 12);
  EXPECT(call("cuGraphAddMemcpyNode", &copied, graph, &kernel, (size_t)1, &copy, context), 0);
  copy = copy_of(b, a, 17);
  EXPECT(call("cuGraphAddMemcpyNode", &wrong, graph, &kernel, (size_t)1, &copy, context), 1); // beyond the allocation
  EXPECT(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  EXPECT(download<int>(a, 1)[0], 1); // nothing ran
  amount = 100;                      // parameters were copied
  EXPECT(call("cuGraphLaunch", exec, stream), 0);
  EXPECT(call("cuStreamSynchronize", stream), 0);
  EXPECT(download<int>(b, 4)[2], 7);
  EXPECT(download<int>(b, 4)[3], 9);
  // Changes are of later launches.
  EXPECT(call("cuGraphLaunch", exec, stream), 0);
  EXPECT(call("cuGraphExecKernelNodeSetParams_v2", exec, kernel, &launched), 0);
  filled.value = 1;
  EXPECT(call("cuGraphExecMemsetNodeSetParams", exec, fill, &filled, context), 0);
  copy = copy_of(b, a, 16);
  EXPECT(call("cuGraphExecMemcpyNodeSetParams", exec, copied, &copy, context), 0);
  EXPECT(call("cuStreamSynchronize", stream), 0);
  EXPECT(download<int>(b, 1)[0], 7);
  EXPECT(call("cuGraphLaunch", exec, stream), 0);
  EXPECT(call("cuStreamSynchronize", stream), 0);
  EXPECT(download<int>(b, 4)[3], 101);
  filled.width = 2;
  EXPECT(call("cuGraphExecMemsetNodeSetParams", exec, fill, &filled, context), 1); // another size
  EXPECT(call("cuGraphExecMemsetNodeSetParams", exec, kernel, &filled, context), 1); // another kind
  EXPECT(call("cuGraphExecDestroy", exec), 0);
  EXPECT(call("cuGraphLaunch", exec, stream), 1);
  EXPECT(call("cuGraphDestroy", graph), 0);
  EXPECT(call("cuGraphDestroy", graph), 1);
  EXPECT(call("cuMemFree_v2", a), 0);
  EXPECT(call("cuMemFree_v2", b), 0);
}

static void test_captures(Handle context, Handle stream) {
  int calls = 0, others = 0, status = 0, mode = 2;
  Handle child, graph, exec, node, event;
  EXPECT(call("cuStreamBeginCapture_v2", stream, 1), 0);
  EXPECT(call("cuStreamIsCapturing", stream, &status), 0);
  EXPECT(status, 1);
  EXPECT(call("cuLaunchHostFunc", stream, increment, (void *)&calls), 0);
  // A thread-local capture forbids this thread what could harm it, unless it is relaxed, and others nothing.
  Address memory = 0;
  EXPECT(call("cuMemAlloc_v2", &memory, (size_t)16), 900);
  std::thread([&] {
    EXPECT(call("cuCtxPushCurrent_v2", context), 0);
    EXPECT(call("cuMemAlloc_v2", &memory, (size_t)16), 0);
    EXPECT(call("cuMemFree_v2", memory), 0);
    Handle ended;
    EXPECT(call("cuStreamEndCapture", stream, &ended), 908); // of another thread
  }).join();
  EXPECT(call("cuThreadExchangeStreamCaptureMode", &mode), 0);
  EXPECT(call("cuMemAlloc_v2", &memory, (size_t)16), 0);
  EXPECT(call("cuMemFree_v2", memory), 0);
  EXPECT(call("cuThreadExchangeStreamCaptureMode", &mode), 0);
  EXPECT(call("cuStreamEndCapture", stream, &child), 0);
  EXPECT(calls, 0);
  EXPECT(call("cuStreamEndCapture", stream, &node), 903);
  // A child graph is copied, and changed by another one of its form.
  EXPECT(call("cuGraphCreate", &graph, 0u), 0);
  EXPECT(call("cuGraphAddChildGraphNode", &node, graph, (Handle *)nullptr, (size_t)0, child), 0);
  EXPECT(call("cuGraphDestroy", child), 0);
  EXPECT(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  for (int i = 0; i < 2; i++) EXPECT(call("cuGraphLaunch", exec, stream), 0);
  EXPECT(call("cuStreamSynchronize", stream), 0);
  EXPECT(calls, 2);
  EXPECT(call("cuStreamBeginCapture_v2", stream, 1), 0);
  EXPECT(call("cuLaunchHostFunc", stream, increment, (void *)&others), 0);
  EXPECT(call("cuStreamEndCapture", stream, &child), 0);
  EXPECT(call("cuGraphExecChildGraphNodeSetParams", exec, node, child), 0);
  EXPECT(call("cuGraphDestroy", child), 0);
  EXPECT(call("cuGraphLaunch", exec, stream), 0);
  EXPECT(call("cuStreamSynchronize", stream), 0);
  EXPECT(calls, 2);
  EXPECT(others, 1);
  EXPECT(call("cuStreamBeginCapture_v2", stream, 1), 0);
  EXPECT(call("cuStreamEndCapture", stream, &child), 0); // empty
  EXPECT(call("cuGraphExecChildGraphNodeSetParams", exec, node, child), 1);
  // A call that a captured stream does not take ends its capture.
  EXPECT(call("cuEventCreate", &event, 0u), 0);
  EXPECT(call("cuStreamBeginCapture_v2", stream, 1), 0);
  EXPECT(call("cuStreamQuery", stream), 900);
  EXPECT(call("cuStreamIsCapturing", stream, &status), 0);
  EXPECT(status, 2);
  EXPECT(call("cuStreamEndCapture", stream, &child), 901);
  EXPECT(call("cuStreamQuery", stream), 0);
  EXPECT(call("cuEventDestroy_v2", event), 0);
}

void test_graphs() {
  Handle context = nullptr, stream;
  EXPECT(call("cuCtxGetCurrent", &context), 0);
  EXPECT(call("cuStreamCreate", &stream, 1u), 0);
  Handle module = module_of(
      "extern \"C\" __global__ void add(int *x, int n) { x[threadIdx.x] += n; }");
  test_nodes(context, stream, function_of(module, "add"));
  test_captures(context, stream);
  EXPECT(call("cuStreamDestroy_v2", stream), 0);
}
