// The state of the emulated driver: devices, streams, events, memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction;

#define CUDA_CALL extern "C" __attribute__((visibility("default"))) CUresult

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_UNKNOWN = 999,
};

namespace emulated {

constexpr int warp_size = 32;
constexpr int max_threads = 1024;
constexpr int multiprocessors = 4;
constexpr int shared_default = 49152;
// What a block can have of shared memory when it asks: of compute capability 9.0, and of the others.
constexpr int most_shared = 232448;
constexpr int shared_elsewhere = 101376;

struct Stream;

// The end of a piece of work: it is over when the stream has done that many pieces.
struct Ticket {
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;
};

struct Device {
  int ordinal = 0;
  size_t total = 0, used = 0;
  int retained = 0;
  unsigned flags = 0;
  // What a kernel broke: every later call returns it, until the context is reset.
  CUresult sticky = CUDA_SUCCESS;
  std::shared_ptr<Stream> legacy;
};

struct Work {
  std::function<void()> run;
  std::vector<Ticket> after;
};

struct Stream {
  Device *device = nullptr;
  bool blocking = true; // whether it is ordered with the legacy stream
  unsigned flags = 0;
  int priority = 0;
  bool started = false, closed = false;
  uint64_t queued = 0, done = 0;
  std::deque<Work> work;
  // What is put into the stream becomes nodes of this graph (see graph.h).
  std::shared_ptr<struct Capture> capture;
};

struct Record {
  Ticket ticket;
  std::chrono::steady_clock::time_point time;
};

struct Event {
  Device *device = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Record> latest;
};

enum class Kind { device, managed, host, registered, global };

struct Allocation {
  uintptr_t base = 0;
  size_t size = 0;
  Kind kind = Kind::device;
  Device *device = nullptr;
  bool on_device() const { return kind == Kind::device || kind == Kind::managed || kind == Kind::global; }
};

// Everything of the process. Never destroyed: workers may still run while the process ends.
struct World {
  std::mutex lock;
  std::condition_variable changed;
  bool initialised = false;
  std::vector<std::unique_ptr<Device>> devices;
  std::unordered_map<void *, std::shared_ptr<Stream>> streams;
  std::unordered_map<void *, std::unique_ptr<Event>> events;
  std::map<uintptr_t, Allocation> memory;
};
World &world();

// The device of the calling thread's current context, or why there is none to work on.
CUresult enter(Device **device);
// The same without asking for a context.
CUresult enter_driver();
Device *current_device();
// Whether this thread runs a function given to cuLaunchHostFunc (which may not call the driver).
extern thread_local bool in_host_function;

// The stream of a handle (0, 1 and 2 are the default ones); null for a handle that is none. Takes the lock.
std::shared_ptr<Stream> stream_of(Device *device, CUstream handle);
Ticket enqueue(const std::shared_ptr<Stream> &stream, std::function<void()> run, std::vector<Ticket> after = {});
void wait_for(const Ticket &ticket);
void wait_for_device(Device *device);
// The same for work of the program, which becomes a node where the stream is captured: a kernel, a copy, a fill, a call.
enum class NodeKind { kernel, memcpy, memset, host, child };
void enqueue_work(const std::shared_ptr<Stream> &stream, NodeKind kind, size_t size, std::function<void()> run,
                  Ticket *ticket = nullptr);
// CUDA_SUCCESS, or the error of a call that a captured stream does not take, which ends the capture.
CUresult not_captured(const std::shared_ptr<Stream> &stream);
// CUDA_SUCCESS, or the error of a call that could harm a capture: of this thread, or of any in global mode.
CUresult safe_for_captures();
int exchange_capture_mode(int mode);
void break_device(Device *device, CUresult error, const std::string &message);

// The allocation that holds all of [address, address + size); null if none does. The lock must be held.
Allocation *allocation_of(uintptr_t address, size_t size);
void free_memory_of(Device *device);

// A variable of the environment; `otherwise` where it is not set.
size_t number_of_environment(const char *name, size_t otherwise);
int compute_capability();
int shared_opt_in();

void free_modules_of(Device *device);
// A launch of a kernel as work: its parameters are copied.
CUresult kernel_work(Device *device, CUfunction handle, const unsigned grid[3], const unsigned block[3], unsigned shared,
                     void **parameters, void **extra, std::function<void()> *run);
// Whether all of [address, address + size) is in one allocation on a device.
bool is_device_range(uintptr_t address, size_t size);

} // namespace emulated
