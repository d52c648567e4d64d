// NCCL among processes of one host, on the emulated driver: collectives and messages run in stream order, over memory that the
// processes share. Strict where NVIDIA's library would hang or go astray: one call at a time for a communicator, none while an
// earlier one goes on, buffers inside of allocations, no empty operations. EMULATED_NCCL=0: an old version.
//
// Communicators that are not blocking answer "in progress" and go on in a thread, also for every group of operations.
#include "shared.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#define NCCL_CALL extern "C" __attribute__((visibility("default")))

using namespace emulated_nccl;

typedef unsigned long long CUdeviceptr;
extern "C" int emulatedLaunchOwned(void *stream, void (*function)(void *), void *data, void (*release)(void *));
extern "C" int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address);
extern "C" int cuCtxGetCurrent(void **context);
extern "C" int cuCtxSetCurrent(void *context);

enum { SUCCESS = 0, UNHANDLED_CUDA_ERROR = 1, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, IN_PROGRESS = 7 };

struct UniqueId {
  char bytes[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
  int cga_cluster_size, min_ctas, max_ctas;
};

// INT_MIN: NCCL's own choice.
static bool takes(int ctas) { return ctas == INT_MIN || (ctas >= 1 && ctas <= 64); }

static thread_local std::string last_error;

static int complain(int code, const std::string &what) {
  last_error = what;
  fprintf(stderr, "emulated NCCL: %s\n", what.c_str());
  return code;
}

// A call with a communicator: one at a time, and none while another goes on.
struct Inside {
  Comm *comm;
  bool entered;
  explicit Inside(Comm *comm) : comm(comm), entered(comm && !comm->busy.exchange(true)) {}
  ~Inside() {
    if (entered) comm->busy = false;
  }
  int refusal(const char *call) const {
    if (!comm) return complain(INVALID_ARGUMENT, std::string(call) + " of no communicator");
    if (!entered) return complain(INVALID_USAGE, std::string(call) + " beside another call with the communicator");
    if (comm->state == IN_PROGRESS) return complain(INVALID_USAGE, std::string(call) + " while an earlier call goes on");
    return SUCCESS;
  }
};

// ---- communicators ----------------------------------------------------------------------------------------------

NCCL_CALL int ncclGetVersion(int *version) {
  const char *off = getenv("EMULATED_NCCL");
  *version = off && !strcmp(off, "0") ? 2000 : 22809;
  return SUCCESS;
}

NCCL_CALL const char *ncclGetErrorString(int code) {
  switch (code) {
  case SUCCESS: return "no error";
  case UNHANDLED_CUDA_ERROR: return "unhandled cuda error";
  case INVALID_ARGUMENT: return "invalid argument";
  case INVALID_USAGE: return "invalid usage";
  case IN_PROGRESS: return "in progress";
  default: return "unknown result code";
  }
}

NCCL_CALL const char *ncclGetLastError(void *) { return last_error.c_str(); }

NCCL_CALL int ncclGetUniqueId(UniqueId *id) {
  static std::atomic<unsigned> made{0};
  memset(id, 0, sizeof *id);
  unsigned long long word = 0;
  if (FILE *file = fopen("/dev/urandom", "rb")) {
    if (fread(&word, sizeof word, 1, file) != 1) word = 0;
    fclose(file);
  }
  snprintf(id->bytes, sizeof id->bytes, "%d-%u-%llx", (int)getpid(), made++, word);
  return SUCCESS;
}

// Goes on in a thread of its own, with the context of the calling one, or here.
template <class Body> static int go_on(Comm *of, bool blocking, Body body) {
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) || !context) return complain(UNHANDLED_CUDA_ERROR, "no context is current");
  if (blocking) return body();
  of->state = IN_PROGRESS;
  of->under_way++;
  std::thread([=] {
    cuCtxSetCurrent(context);
    int code = body();
    of->state = code;
    of->under_way--;
  }).detach();
  return IN_PROGRESS;
}

NCCL_CALL int ncclCommInitRankConfig(Comm **place, int size, UniqueId id, int rank, Config *config) {
  if (!place || size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
    return complain(INVALID_ARGUMENT, "a rank that is not below the size, or more than 8 ranks");
  if (config && (config->magic != 0xcafebeef || config->version < 21400))
    return complain(INVALID_ARGUMENT, "a configuration without its initializer");
  if (config && !takes(config->max_ctas)) return complain(INVALID_ARGUMENT, "a number of thread blocks that is not 1 to 64");
  Comm *comm = new Comm;
  comm->name.assign(id.bytes, strnlen(id.bytes, sizeof id.bytes));
  comm->rank = rank;
  comm->size = size;
  comm->blocking = !config || config->blocking != 0;
  *place = comm;
  return go_on(comm, comm->blocking, [comm] { return attach(*comm) ? SUCCESS : (int)INVALID_USAGE; });
}

NCCL_CALL int ncclCommSplit(Comm *comm, int color, int key, Comm **place, Config *config) {
  Inside inside(comm);
  if (int code = inside.refusal("ncclCommSplit")) return code;
  if (config && (config->magic != 0xcafebeef || config->version < 21400))
    return complain(INVALID_ARGUMENT, "a configuration without its initializer");
  if (config && (config->blocking != 0) != comm->blocking)
    return complain(INVALID_ARGUMENT, "the emulator's parts block as the whole does");
  if (config && !takes(config->max_ctas)) return complain(INVALID_ARGUMENT, "a number of thread blocks that is not 1 to 64");
  if (!place || color < -1) return complain(INVALID_ARGUMENT, "a color below -1");
  // The place is filled when the whole communicator has settled.
  return go_on(comm, comm->blocking, [=] {
    // Operations of before, and this.
    while (comm->under_way > !comm->blocking && !comm->aborted) usleep(100);
    comm->shared->split[comm->rank] = {color, key};
    if (!barrier(*comm)) return (int)INVALID_USAGE;
    Comm *part = new Comm;
    part->name = comm->name + "-" + std::to_string(comm->splits++) + "-" + std::to_string(color);
    part->blocking = comm->blocking;
    for (int rank = 0; rank < comm->size; rank++) {
      auto other = comm->shared->split[rank];
      if (other.color != color) continue;
      part->size++;
      part->rank += other.key < key || (other.key == key && rank < comm->rank);
    }
    bool met = barrier(*comm);
    *place = nullptr;
    if (color == -1) {
      delete part;
    } else if (!met || !attach(*part)) {
      return (int)INVALID_USAGE;
    } else {
      *place = part;
    }
    return (int)SUCCESS;
  });
}

NCCL_CALL int ncclCommGetAsyncError(Comm *comm, int *state) {
  if (!comm || !state) return INVALID_ARGUMENT;
  *state = comm->state;
  return SUCCESS;
}

NCCL_CALL int ncclCommCount(Comm *comm, int *size) { return *size = comm->size, SUCCESS; }
NCCL_CALL int ncclCommUserRank(Comm *comm, int *rank) { return *rank = comm->rank, SUCCESS; }

NCCL_CALL int ncclCommFinalize(Comm *comm) {
  Inside inside(comm);
  if (int code = inside.refusal("ncclCommFinalize")) return code;
  return go_on(comm, comm->blocking, [] { return (int)SUCCESS; });
}

static std::atomic<int> ending{0};

// EMULATED_NCCL_SLOW_END: milliseconds that a communicator takes to end. An exit meanwhile crashes, as NVIDIA's may.
static int destroy(Comm *comm) {
  static std::once_flag watched;
  std::call_once(watched, [] {
    atexit([] {
      if (!ending) return;
      fprintf(stderr, "emulated NCCL: the process exits while a communicator ends\n");
      _exit(139);
    });
  });
  ending++;
  if (const char *slow = getenv("EMULATED_NCCL_SLOW_END")) usleep(1000 * atoi(slow));
  while (comm->under_way) usleep(100);
  detach(*comm);
  delete comm;
  ending--;
  return SUCCESS;
}

NCCL_CALL int ncclCommDestroy(Comm *comm) {
  {
    Inside inside(comm);
    if (int code = inside.refusal("ncclCommDestroy")) return code;
  }
  return destroy(comm);
}

NCCL_CALL int ncclCommAbort(Comm *comm) {
  if (!comm) return INVALID_ARGUMENT;
  comm->aborted = true;
  return destroy(comm);
}

// ---- operations -------------------------------------------------------------------------------------------------

struct Group {
  Comm *comm;
  void *stream;
  std::vector<Call> calls;
};

static thread_local int depth = 0;
static thread_local std::vector<Group> groups;

// EMULATED_NCCL_CONNECT=1: the first collective of a communicator waits on the host for the other ranks, as NVIDIA's does.
static void connect(const Group &group) {
  static const bool wanted = getenv("EMULATED_NCCL_CONNECT") != nullptr;
  Comm &comm = *group.comm;
  int kind = group.calls[0].kind;
  if (!wanted || kind == Call::send || kind == Call::receive || comm.shared->connected[comm.rank].exchange(1)) return;
  for (int rank = 0; rank < comm.size; rank++)
    while (!comm.shared->connected[rank] && !comm.aborted) usleep(100);
}

static int launch(const Group &group) {
  connect(group);
  group.comm->under_way++;
  auto work = [](void *data) {
    Group *group = (Group *)data;
    run(*group->comm, group->calls.data(), group->calls.size());
  };
  // Also where the work never runs, as in a lost context.
  auto release = [](void *data) {
    Group *group = (Group *)data;
    group->comm->under_way--;
    delete group;
  };
  int code = emulatedLaunchOwned(group.stream, work, new Group(group), release);
  return code ? complain(UNHANDLED_CUDA_ERROR, "the stream takes no work") : (int)SUCCESS;
}

NCCL_CALL int ncclGroupStart() { return depth++, SUCCESS; }

NCCL_CALL int ncclGroupEnd() {
  if (depth == 0) return complain(INVALID_USAGE, "the end of no group");
  if (--depth > 0) return SUCCESS;
  std::vector<Group> all = std::move(groups);
  groups.clear();
  int outcome = SUCCESS;
  for (const Group &group : all) {
    int code = go_on(group.comm, group.comm->blocking, [group] { return launch(group); });
    if (code) outcome = code;
  }
  return outcome;
}

static bool inside_allocation(const void *at, size_t bytes) {
  CUdeviceptr base = 0;
  size_t size = 0;
  if (cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)at)) return false;
  return (CUdeviceptr)at - base + bytes <= size;
}

static int enqueue(const char *name, Comm *comm, void *stream, Call call) {
  ncclGroupStart();
  int code;
  {
    Inside inside(comm);
    code = inside.refusal(name);
    size_t each = size_of(call.dtype), whole = comm ? comm->size : 1;
    size_t in = call.count * (call.kind == Call::reduce_scatter ? whole : 1) * each;
    size_t out = call.count * (call.kind == Call::all_gather ? whole : 1) * each;
    bool sides = call.kind == Call::send || call.kind == Call::receive;
    if (!code && (!each || call.count == 0)) code = complain(INVALID_ARGUMENT, std::string(name) + " of nothing");
    if (!code && sides && (call.peer < 0 || call.peer >= comm->size || call.peer == comm->rank))
      code = complain(INVALID_ARGUMENT, std::string(name) + " with a rank that is not another one");
    if (!code && ((call.from && !inside_allocation(call.from, in)) || (call.to && !inside_allocation(call.to, out))))
      code = complain(INVALID_ARGUMENT, std::string(name) + " outside of an allocation");
    if (!code) {
      if (groups.empty() || groups.back().comm != comm || groups.back().stream != stream)
        groups.push_back({comm, stream, {}});
      groups.back().calls.push_back(call);
    }
  }
  int ended = ncclGroupEnd();
  return code ? code : ended;
}

NCCL_CALL int ncclAllReduce(const void *from, void *to, size_t n, int dtype, int op, Comm *comm, void *stream) {
  return enqueue("ncclAllReduce", comm, stream,
                 {Call::all_reduce, (const unsigned char *)from, (unsigned char *)to, n, dtype, op, 0});
}
NCCL_CALL int ncclAllGather(const void *from, void *to, size_t n, int dtype, Comm *comm, void *stream) {
  return enqueue("ncclAllGather", comm, stream,
                 {Call::all_gather, (const unsigned char *)from, (unsigned char *)to, n, dtype, 0, 0});
}
NCCL_CALL int ncclReduceScatter(const void *from, void *to, size_t n, int dtype, int op, Comm *comm, void *stream) {
  return enqueue("ncclReduceScatter", comm, stream,
                 {Call::reduce_scatter, (const unsigned char *)from, (unsigned char *)to, n, dtype, op, 0});
}
NCCL_CALL int ncclSend(const void *from, size_t n, int dtype, int peer, Comm *comm, void *stream) {
  return enqueue("ncclSend", comm, stream, {Call::send, (const unsigned char *)from, nullptr, n, dtype, 0, peer});
}
NCCL_CALL int ncclRecv(void *to, size_t n, int dtype, int peer, Comm *comm, void *stream) {
  return enqueue("ncclRecv", comm, stream, {Call::receive, nullptr, (unsigned char *)to, n, dtype, 0, peer});
}
