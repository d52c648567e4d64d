// cuDNN's graph interface on the emulated driver: what the backend asks of it. It is strict where NVIDIA's library would
// read or write astray, or says less: attributes of other types or counts, descriptors that are not finalized, tensors outside
// of allocations. Heuristics find two engines: the first says that its sums differ from call to call, and refuses.
// EMULATED_CUDNN=0: a version that is too old.
#include "descriptors.h"
#include <cstdlib>
#include <cstring>
#include <mutex>

#define DNN_CALL extern "C" __attribute__((visibility("default")))

typedef unsigned long long CUdeviceptr;
extern "C" int emulatedLaunchOwned(void *stream, void (*function)(void *), void *data, void (*release)(void *));
extern "C" int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address);
extern "C" int cuCtxGetCurrent(void **context);

static std::mutex lock;
static std::map<const void *, Link> descriptors;
static std::map<const void *, void *> handles;
static thread_local std::string last_error;

// Bytes of workspace of a plan.
static const int64_t WORKSPACE = 256;

int complain(int status, const std::string &what) {
  last_error = what;
  fprintf(stderr, "emulated cuDNN: %s\n", what.c_str());
  return status;
}

static Link find(const void *handle) {
  std::lock_guard<std::mutex> held(lock);
  auto found = descriptors.find(handle);
  return found == descriptors.end() ? nullptr : found->second;
}

static bool is_handle(const void *handle) {
  std::lock_guard<std::mutex> held(lock);
  return handles.count(handle);
}

static bool has_context() {
  void *context = nullptr;
  return !cuCtxGetCurrent(&context) && context;
}

DNN_CALL size_t cudnnGetVersion() {
  const char *wanted = getenv("EMULATED_CUDNN");
  return wanted && !strcmp(wanted, "0") ? 8907 : 91900;
}

DNN_CALL void cudnnGetLastErrorString(char *text, size_t room) { snprintf(text, room, "%s", last_error.c_str()); }

DNN_CALL int cudnnCreate(void **handle) {
  if (!has_context()) return complain(NOT_INITIALIZED, "no context is current");
  std::lock_guard<std::mutex> held(lock);
  *handle = malloc(1);
  handles[*handle] = nullptr;
  return SUCCESS;
}

DNN_CALL int cudnnDestroy(void *handle) {
  std::lock_guard<std::mutex> held(lock);
  if (!handles.erase(handle)) return BAD_PARAM;
  free(handle);
  return SUCCESS;
}

DNN_CALL int cudnnSetStream(void *handle, void *stream) {
  std::lock_guard<std::mutex> held(lock);
  if (!handles.count(handle)) return BAD_PARAM;
  handles[handle] = stream;
  return SUCCESS;
}

DNN_CALL int cudnnBackendCreateDescriptor(int kind, void **handle) {
  Link made = std::make_shared<Descriptor>();
  made->kind = kind;
  std::lock_guard<std::mutex> held(lock);
  descriptors[*handle = made.get()] = made;
  return SUCCESS;
}

DNN_CALL int cudnnBackendDestroyDescriptor(void *handle) {
  std::lock_guard<std::mutex> held(lock);
  return descriptors.erase(handle) ? SUCCESS : BAD_PARAM;
}

DNN_CALL int cudnnBackendSetAttribute(void *handle, int name, int type, int64_t count, const void *values) {
  Link d = find(handle);
  if (!d) return complain(BAD_NULL, "no descriptor");
  if (type == T_HANDLE && (count != 1 || !is_handle(*(void *const *)values))) return complain(BAD_PARAM, "no handle");
  return set_attribute(*d, name, type, count, values, find);
}

DNN_CALL int cudnnBackendFinalize(void *handle) {
  Link d = find(handle);
  if (!d) return complain(BAD_NULL, "no descriptor");
  if (d->kind == PLAN && !has_context()) return complain(NOT_INITIALIZED, "no context is current");
  return finalize(*d);
}

DNN_CALL int cudnnBackendGetAttribute(void *handle, int name, int type, int64_t room, int64_t *count, void *values) {
  Link d = find(handle);
  if (!d) return complain(BAD_NULL, "no descriptor");
  if (!d->finalized) return complain(NOT_FINALIZED, "an attribute of a descriptor that is not finalized");
  auto give = [&](Link to, Link graph, int place) {
    to->graph = graph;
    to->place = place;
    to->finalized = true;
  };
  if (d->kind == HEURISTICS && name == 202 && type == T_DESCRIPTOR) {
    for (int i = 0; i < 2 && i < room; i++) {
      Link to = find(((void **)values)[i]);
      if (!to || to->kind != CONFIG || to->finalized) return complain(BAD_KIND, "a place that is no new configuration");
      give(to, d->links.at(201)[0], i);
    }
    *count = 2;
    return SUCCESS;
  }
  if (d->kind == CONFIG && name == 300 && type == T_DESCRIPTOR && room == 1) {
    Link to = find(*(void **)values);
    if (!to || to->kind != ENGINE || to->finalized) return complain(BAD_KIND, "a place that is no new engine");
    give(to, d->graph, d->place);
    *count = 1;
    return SUCCESS;
  }
  if (d->kind == ENGINE && name == 1303 && type == T_NOTE && room >= 2) {
    ((int *)values)[0] = TENSOR_CORE;
    ((int *)values)[1] = NONDETERMINISTIC;
    *count = d->place == 0 ? 2 : 1;
    return SUCCESS;
  }
  if (d->kind == PLAN && name == 402 && type == T_INT64 && room == 1) {
    *(int64_t *)values = WORKSPACE;
    *count = 1;
    return SUCCESS;
  }
  return complain(BAD_PARAM, "an attribute that is not emulated: " + std::to_string(name));
}

// ---- calls ------------------------------------------------------------------------------------------------------

struct Job {
  Link graph;
  unsigned char *workspace;
  std::map<int64_t, void *> memory;
  std::map<int64_t, uint32_t> numbers;
};

static void run(void *data) {
  Job &job = *(Job *)data;
  memset(job.workspace, 0x5a, WORKSPACE);
  compute(*job.graph, job.memory, job.numbers);
}

static void release(void *data) { delete (Job *)data; }

static bool lies_inside(const void *first, int64_t bytes) {
  CUdeviceptr base = 0, at = (CUdeviceptr)first;
  size_t size = 0;
  return !cuMemGetAddressRange_v2(&base, &size, at) && at >= base && at + bytes <= base + size;
}

DNN_CALL int cudnnBackendExecute(void *handle, void *plan, void *pack) {
  Link p = find(plan), v = find(pack);
  if (!is_handle(handle) || !p || !v || p->kind != PLAN || v->kind != PACK) return complain(BAD_KIND, "no plan, or no pack");
  if (!p->finalized || !v->finalized) return complain(NOT_FINALIZED, "a plan or a pack that is not finalized");
  if (!has_context()) return complain(NOT_INITIALIZED, "no context is current");
  Link config = p->links.at(401)[0];
  if (config->place == 0) return complain(NOT_SUPPORTED, "the engine that is not wanted was taken");
  unsigned char *workspace = (unsigned char *)v->one<void *>(1003);
  if (!workspace || (uintptr_t)workspace % 256 || !lies_inside(workspace, WORKSPACE))
    return complain(BAD_PARAM, "a workspace outside of memory, or badly aligned");
  Job *job = new Job{config->graph, workspace, {}, {}};
  std::map<int64_t, void *> given;
  auto ids = v->list<int64_t>(1000);
  auto places = v->list<void *>(1001);
  for (size_t i = 0; i < ids.size(); i++) given[ids[i]] = places[i];
  std::map<int64_t, Descriptor *> tensors;
  for (const Link &op : job->graph->links.at(801)) {
    Operands operands = operands_of(op->kind);
    operands.reads.push_back(operands.writes);
    for (int name : operands.reads)
      if (Descriptor *t = op->link(name)) tensors[t->id()] = t;
  }
  auto refuse = [&](int status, const std::string &what) {
    delete job;
    return complain(status, what);
  };
  for (auto &[id, t] : tensors) {
    if (t->is_virtual()) continue;
    if (!given.count(id) || !given[id]) return refuse(BAD_NULL, "no pointer for tensor " + std::to_string(id));
    if (t->is_by_value()) {
      memcpy(&job->numbers[id], given[id], 4);
      continue;
    }
    int64_t low = 0, high = 0;
    auto sizes = t->sizes(), strides = t->strides();
    for (size_t d = 0; d < sizes.size(); d++) (strides[d] < 0 ? low : high) += (sizes[d] - 1) * strides[d];
    int64_t each = data_bytes(t->data());
    if ((uintptr_t)given[id] % t->one<int64_t>(900)) return refuse(BAD_ALIGNMENT, "the address of tensor " + std::to_string(id));
    if (!lies_inside((char *)given[id] + low * each, (high - low + 1) * each)) return refuse(BAD_PARAM, "tensor " + std::to_string(id) + " is outside of memory");
    job->memory[id] = given[id];
  }
  for (auto &[id, place] : given)
    if (!tensors.count(id)) return refuse(BAD_PARAM, "a pointer for tensor " + std::to_string(id) + ", which there is none of");
  void *stream;
  {
    std::lock_guard<std::mutex> held(lock);
    stream = handles[handle];
  }
  return emulatedLaunchOwned(stream, run, job, release) ? EXECUTION_FAILED : SUCCESS;
}
