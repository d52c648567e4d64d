// Graphs: nodes made one by one or captured from a stream, and what is instantiated of them. A node holds its work with
// all parameters copied; a launch enqueues the work that the nodes have then, in the order in which they were added,
// which every dependency keeps to.
//
// Stricter than CUDA may be: a change of an instantiated fill's size is refused always, as CUDA may do.
#include "state.h"

#include <algorithm>
#include <thread>
#include <unordered_set>

namespace emulated {

struct Graph;

struct Node {
  NodeKind kind;
  size_t size; // bytes of a fill or copy
  std::function<void()> run;
  std::shared_ptr<Graph> child;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::thread::id thread = std::this_thread::get_id();
  int mode = 0;
  bool invalid = false;
};

struct Exec {
  Device *device;
  // The nodes of the graph, by which they are found, and those of this one.
  std::vector<std::pair<const Node *, Node>> nodes;
  Ticket last;
};

enum { global_mode = 0, thread_local_mode = 1, relaxed_mode = 2 };

// Never destroyed, as World. The lock of the world guards them.
static auto &graphs = *new std::unordered_map<void *, std::shared_ptr<Graph>>;
static auto &execs = *new std::unordered_map<void *, std::shared_ptr<Exec>>;
static int global_captures = 0;

static thread_local int capture_mode = global_mode;
// Captures that this thread began and that are not relaxed.
static thread_local int own_captures = 0;

int exchange_capture_mode(int mode) {
  std::swap(capture_mode, mode);
  return mode;
}

CUresult safe_for_captures() {
  std::lock_guard<std::mutex> guard(world().lock);
  if (capture_mode == relaxed_mode) return CUDA_SUCCESS;
  bool harms = own_captures > 0 || (capture_mode == global_mode && global_captures > 0);
  return harms ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult not_captured(const std::shared_ptr<Stream> &stream) {
  if (!stream->capture) return CUDA_SUCCESS;
  stream->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void enqueue_work(const std::shared_ptr<Stream> &stream, NodeKind kind, size_t size, std::function<void()> run,
                  Ticket *ticket) {
  if (stream->capture) {
    stream->capture->graph->nodes.emplace_back(new Node{kind, size, std::move(run), nullptr});
    return;
  }
  Ticket made = enqueue(stream, std::move(run));
  if (ticket) *ticket = made;
}

static std::shared_ptr<Graph> graph_of(void *handle) {
  std::lock_guard<std::mutex> guard(world().lock);
  auto found = graphs.find(handle);
  return found == graphs.end() ? nullptr : found->second;
}

static std::shared_ptr<Exec> exec_of(void *handle) {
  std::lock_guard<std::mutex> guard(world().lock);
  auto found = execs.find(handle);
  return found == execs.end() ? nullptr : found->second;
}

static bool has_node(const Graph &graph, const void *node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](auto &n) { return n.get() == node; });
}

static std::shared_ptr<Graph> copy_of(const Graph &graph) {
  auto copy = std::make_shared<Graph>();
  for (auto &node : graph.nodes) {
    copy->nodes.emplace_back(new Node(*node));
    if (node->child) copy->nodes.back()->child = copy_of(*node->child);
  }
  return copy;
}

static bool same_topology(const Graph &a, const Graph &b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (size_t i = 0; i < a.nodes.size(); i++) {
    const Node &x = *a.nodes[i], &y = *b.nodes[i];
    if (x.kind != y.kind || (x.kind == NodeKind::memset && x.size != y.size)) return false;
    if (x.child && !same_topology(*x.child, *y.child)) return false;
  }
  return true;
}

static void works_of(const Node &node, std::vector<std::function<void()>> *works) {
  if (!node.child) return works->push_back(node.run);
  for (auto &inner : node.child->nodes) works_of(*inner, works);
}

static CUresult add(void **handle, void *graph_handle, void *const *after, size_t count, Node node) {
  auto graph = graph_of(graph_handle);
  if (!graph || !handle || (count && !after)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (!has_node(*graph, after[i])) return CUDA_ERROR_INVALID_VALUE;
  graph->nodes.emplace_back(new Node(std::move(node)));
  *handle = graph->nodes.back().get();
  return CUDA_SUCCESS;
}

// The instantiated node of a graph's; null where it is none, or of another kind.
static Node *node_of(Exec *exec, const void *handle, NodeKind kind) {
  for (auto &node : exec->nodes)
    if (node.first == handle) return node.second.kind == kind ? &node.second : nullptr;
  return nullptr;
}

struct KernelParameters {
  CUfunction function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
  void *kernel;
  CUcontext context;
};

struct FillParameters {
  CUdeviceptr to;
  size_t pitch;
  unsigned value, element_size;
  size_t width, height;
};

struct CopySide {
  size_t x, y, z, lod;
  unsigned type;
  void *host;
  CUdeviceptr device;
  void *array, *reserved;
  size_t pitch, height;
};
struct CopyParameters {
  CopySide from, to;
  size_t width, height, depth;
};
static_assert(sizeof(KernelParameters) == 72 && sizeof(FillParameters) == 40 && sizeof(CopyParameters) == 200,
              "as cuda.h has them");

static CUresult kernel_node(Device *device, const KernelParameters *p, Node *node) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  *node = {NodeKind::kernel, 0, nullptr, nullptr};
  return kernel_work(device, p->function, p->grid, p->block, p->shared, p->parameters, p->extra, &node->run);
}

static CUresult fill_node(Device *device, const FillParameters *p, void *context, Node *node) {
  if (!p || context != device || p->height != 1 || !p->width) return CUDA_ERROR_INVALID_VALUE;
  size_t each = p->element_size, bytes = p->width * each;
  if ((each != 1 && each != 2 && each != 4) || p->to % each || !is_device_range(p->to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  *node = {NodeKind::memset, bytes, [to = p->to, each, bytes, value = p->value] {
             for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = (char)(value >> (8 * (i % each)));
           }, nullptr};
  return CUDA_SUCCESS;
}

static CUresult copy_node(Device *device, const CopyParameters *p, void *context, Node *node) {
  const unsigned on_device = 2;
  if (!p || context != device || !p->width || p->height != 1 || p->depth != 1) return CUDA_ERROR_INVALID_VALUE;
  for (const CopySide *side : {&p->from, &p->to}) {
    bool plain = !side->x && !side->y && !side->z && !side->lod && !side->reserved && side->type == on_device;
    if (!plain || !is_device_range(side->device, p->width)) return CUDA_ERROR_INVALID_VALUE;
  }
  *node = {NodeKind::memcpy, p->width, [to = p->to.device, from = p->from.device, bytes = p->width] {
             memmove((void *)to, (void *)from, bytes);
           }, nullptr};
  return CUDA_SUCCESS;
}

static CUresult child_node(void *handle, Node *node) {
  auto graph = graph_of(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  *node = {NodeKind::child, 0, nullptr, copy_of(*graph)};
  return CUDA_SUCCESS;
}

static CUresult change(void *exec_handle, void *handle, Node made) {
  auto exec = exec_of(exec_handle);
  Node *node = exec ? node_of(exec.get(), handle, made.kind) : nullptr;
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  if (node->kind == NodeKind::memset && node->size != made.size) return CUDA_ERROR_INVALID_VALUE;
  if (node->child && !same_topology(*node->child, *made.child)) return CUDA_ERROR_INVALID_VALUE;
  *node = std::move(made);
  return CUDA_SUCCESS;
}

} // namespace emulated

using namespace emulated;

#define ENTER                                                                                                          \
  Device *device;                                                                                                      \
  if (CUresult error = enter(&device)) return error

CUDA_CALL cuGraphCreate(void **handle, unsigned flags) {
  ENTER;
  if (!handle || flags) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>();
  std::lock_guard<std::mutex> guard(world().lock);
  graphs[*handle = graph.get()] = graph;
  return CUDA_SUCCESS;
}

CUDA_CALL cuGraphDestroy(void *handle) {
  ENTER;
  std::lock_guard<std::mutex> guard(world().lock);
  return graphs.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_CALL cuGraphAddKernelNode_v2(void **handle, void *graph, void *const *after, size_t count,
                                  const KernelParameters *parameters) {
  ENTER;
  Node node;
  if (CUresult error = kernel_node(device, parameters, &node)) return error;
  return add(handle, graph, after, count, std::move(node));
}

CUDA_CALL cuGraphAddMemsetNode(void **handle, void *graph, void *const *after, size_t count,
                               const FillParameters *parameters, CUcontext context) {
  ENTER;
  Node node;
  if (CUresult error = fill_node(device, parameters, context, &node)) return error;
  return add(handle, graph, after, count, std::move(node));
}

CUDA_CALL cuGraphAddMemcpyNode(void **handle, void *graph, void *const *after, size_t count,
                               const CopyParameters *parameters, CUcontext context) {
  ENTER;
  Node node;
  if (CUresult error = copy_node(device, parameters, context, &node)) return error;
  return add(handle, graph, after, count, std::move(node));
}

CUDA_CALL cuGraphAddChildGraphNode(void **handle, void *graph, void *const *after, size_t count, void *child) {
  ENTER;
  Node node;
  if (CUresult error = child_node(child, &node)) return error;
  return add(handle, graph, after, count, std::move(node));
}

CUDA_CALL cuGraphInstantiateWithFlags(void **handle, void *graph_handle, unsigned long long flags) {
  ENTER;
  auto graph = graph_of(graph_handle);
  if (!graph || !handle || flags) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<Exec>();
  exec->device = device;
  for (auto &node : graph->nodes) {
    exec->nodes.emplace_back(node.get(), *node);
    if (node->child) exec->nodes.back().second.child = copy_of(*node->child);
  }
  std::lock_guard<std::mutex> guard(world().lock);
  execs[*handle = exec.get()] = exec;
  return CUDA_SUCCESS;
}

CUDA_CALL cuGraphExecDestroy(void *handle) {
  ENTER;
  std::lock_guard<std::mutex> guard(world().lock);
  return execs.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_CALL cuGraphExecKernelNodeSetParams_v2(void *exec, void *handle, const KernelParameters *parameters) {
  ENTER;
  Node node;
  if (CUresult error = kernel_node(device, parameters, &node)) return error;
  return change(exec, handle, std::move(node));
}

CUDA_CALL cuGraphExecMemsetNodeSetParams(void *exec, void *handle, const FillParameters *parameters, CUcontext context) {
  ENTER;
  Node node;
  if (CUresult error = fill_node(device, parameters, context, &node)) return error;
  return change(exec, handle, std::move(node));
}

CUDA_CALL cuGraphExecMemcpyNodeSetParams(void *exec, void *handle, const CopyParameters *parameters, CUcontext context) {
  ENTER;
  Node node;
  if (CUresult error = copy_node(device, parameters, context, &node)) return error;
  return change(exec, handle, std::move(node));
}

CUDA_CALL cuGraphExecChildGraphNodeSetParams(void *exec, void *handle, void *child) {
  ENTER;
  Node node;
  if (CUresult error = child_node(child, &node)) return error;
  return change(exec, handle, std::move(node));
}

// A launch comes after the stream's earlier work and after earlier launches of the same graph.
CUDA_CALL cuGraphLaunch(void *handle, CUstream stream_handle) {
  ENTER;
  auto exec = exec_of(handle);
  auto stream = stream_of(device, stream_handle);
  if (!exec || !stream || exec->device != device) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = not_captured(stream)) return error;
  std::vector<std::function<void()>> works;
  for (auto &node : exec->nodes) works_of(node.second, &works);
  std::vector<Ticket> after;
  if (exec->last.stream) after.push_back(exec->last);
  Ticket last = enqueue(stream, nullptr, after);
  for (auto &work : works) last = enqueue(stream, work);
  exec->last = last;
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamBeginCapture_v2(CUstream handle, int mode) {
  ENTER;
  auto stream = stream_of(device, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (mode < global_mode || mode > relaxed_mode || stream->capture) return CUDA_ERROR_INVALID_VALUE;
  if (stream == device->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->capture = std::make_shared<Capture>();
  stream->capture->mode = mode;
  std::lock_guard<std::mutex> guard(world().lock);
  if (mode != relaxed_mode) own_captures++;
  if (mode == global_mode) global_captures++;
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamEndCapture(CUstream handle, void **graph) {
  ENTER;
  auto stream = stream_of(device, handle);
  if (!stream || !graph) return CUDA_ERROR_INVALID_HANDLE;
  auto capture = stream->capture;
  if (!capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != relaxed_mode && capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  stream->capture = nullptr;
  *graph = nullptr;
  std::lock_guard<std::mutex> guard(world().lock);
  if (capture->mode != relaxed_mode) own_captures--;
  if (capture->mode == global_mode) global_captures--;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graphs[*graph = capture->graph.get()] = capture->graph;
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamIsCapturing(CUstream handle, int *status) {
  ENTER;
  auto stream = stream_of(device, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
  return CUDA_SUCCESS;
}
