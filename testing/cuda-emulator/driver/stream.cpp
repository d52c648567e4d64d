// Streams (a worker thread with a queue each), events, and what is put into streams beside copies and kernels.
#include "state.h"

#include <thread>
#include <unistd.h>

namespace emulated {

static void serve(std::shared_ptr<Stream> stream) {
  World &w = world();
  std::unique_lock<std::mutex> guard(w.lock);
  for (;;) {
    w.changed.wait(guard, [&] { return !stream->work.empty() || stream->closed; });
    if (stream->work.empty()) return;
    Work work = std::move(stream->work.front());
    stream->work.pop_front();
    for (auto &ticket : work.after)
      w.changed.wait(guard, [&] { return ticket.stream->done >= ticket.number; });
    bool broken = stream->device->sticky;
    guard.unlock();
    if (!broken && work.run) work.run();
    work = Work();
    guard.lock();
    stream->done++;
    w.changed.notify_all();
  }
}

static void close_stream(const std::shared_ptr<Stream> &stream) {
  stream->closed = true;
  world().changed.notify_all();
}

// The default streams of this thread, by device.
struct PerThread {
  std::unordered_map<Device *, std::shared_ptr<Stream>> streams;
  ~PerThread() {
    std::lock_guard<std::mutex> guard(world().lock);
    for (auto &of : streams) close_stream(of.second);
  }
};

// The handle under which World::streams keeps a stream is its address. The lock must be held.
static std::shared_ptr<Stream> make_stream(Device *device, bool blocking) {
  auto stream = std::make_shared<Stream>();
  stream->device = device;
  stream->blocking = blocking;
  world().streams[stream.get()] = stream;
  return stream;
}

std::shared_ptr<Stream> stream_of(Device *device, CUstream handle) {
  static thread_local PerThread per_thread;
  std::lock_guard<std::mutex> guard(world().lock);
  if (handle == nullptr || handle == (CUstream)1) return device->legacy;
  if (handle == (CUstream)2) {
    auto &stream = per_thread.streams[device];
    if (!stream) stream = make_stream(device, true);
    return stream;
  }
  auto found = world().streams.find(handle);
  if (found == world().streams.end() || found->second->closed) return nullptr;
  return found->second->device == device ? found->second : nullptr;
}

Ticket enqueue(const std::shared_ptr<Stream> &stream, std::function<void()> run, std::vector<Ticket> after) {
  World &w = world();
  std::lock_guard<std::mutex> guard(w.lock);
  Device *device = stream->device;
  // The legacy stream waits for all blocking streams, and they for it.
  if (stream == device->legacy) {
    for (auto &other : w.streams)
      if (other.second->device == device && other.second->blocking) after.push_back({other.second, other.second->queued});
  } else if (stream->blocking && device->legacy->queued) {
    after.push_back({device->legacy, device->legacy->queued});
  }
  stream->work.push_back({std::move(run), std::move(after)});
  stream->queued++;
  if (!stream->started) {
    stream->started = true;
    std::thread(serve, stream).detach();
  }
  w.changed.notify_all();
  return {stream, stream->queued};
}

void wait_for(const Ticket &ticket) {
  World &w = world();
  std::unique_lock<std::mutex> guard(w.lock);
  w.changed.wait(guard, [&] { return !ticket.stream || ticket.stream->done >= ticket.number; });
}

void wait_for_device(Device *device) {
  World &w = world();
  std::vector<Ticket> all;
  {
    std::lock_guard<std::mutex> guard(w.lock);
    all.push_back({device->legacy, device->legacy->queued});
    for (auto &stream : w.streams)
      if (stream.second->device == device) all.push_back({stream.second, stream.second->queued});
  }
  for (auto &ticket : all) wait_for(ticket);
}

static Event *event_of(CUevent handle) {
  auto found = world().events.find(handle);
  return found == world().events.end() ? nullptr : found->second.get();
}

static bool over(const Ticket &ticket) { return !ticket.stream || ticket.stream->done >= ticket.number; }

} // namespace emulated

using namespace emulated;

#define ENTER_STREAM(handle)                                                                                           \
  Device *device;                                                                                                      \
  if (CUresult error = enter(&device)) return error;                                                                   \
  std::shared_ptr<Stream> stream = stream_of(device, handle);                                                          \
  if (!stream) return CUDA_ERROR_INVALID_HANDLE

CUDA_CALL cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (!handle || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(world().lock);
  auto stream = make_stream(device, !(flags & 1));
  stream->flags = flags;
  stream->priority = priority;
  *handle = stream.get();
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamCreate(CUstream *handle, unsigned flags) { return cuStreamCreateWithPriority(handle, flags, 0); }

// Returns at once; the worker ends when the work is done. The stream stays known until then, for the legacy stream's
// sake: closed streams are forgotten here once they are idle.
CUDA_CALL cuStreamDestroy_v2(CUstream handle) {
  ENTER_STREAM(handle);
  if (handle <= (CUstream)2) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard<std::mutex> guard(world().lock);
  close_stream(stream);
  auto &streams = world().streams;
  for (auto it = streams.begin(); it != streams.end();)
    it = it->second->closed && it->second->done == it->second->queued ? streams.erase(it) : std::next(it);
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamSynchronize(CUstream handle) {
  ENTER_STREAM(handle);
  if (CUresult error = not_captured(stream)) return error;
  Ticket ticket;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    ticket = {stream, stream->queued};
  }
  wait_for(ticket);
  return enter(&device);
}

CUDA_CALL cuStreamQuery(CUstream handle) {
  ENTER_STREAM(handle);
  if (CUresult error = not_captured(stream)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  return stream->done == stream->queued ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUDA_CALL cuStreamGetCtx(CUstream handle, CUcontext *context) {
  ENTER_STREAM(handle);
  *context = stream->device;
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamGetFlags(CUstream handle, unsigned *flags) {
  ENTER_STREAM(handle);
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamGetPriority(CUstream handle, int *priority) {
  ENTER_STREAM(handle);
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

// Events and values are nodes on CUDA; nothing needs them here.
CUDA_CALL cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  ENTER_STREAM(handle);
  if (CUresult error = not_captured(stream)) return error;
  std::shared_ptr<Record> latest;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    Event *found = event_of(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    latest = found->latest;
  }
  if (latest) enqueue(stream, nullptr, {latest->ticket});
  return CUDA_SUCCESS;
}

CUDA_CALL cuLaunchHostFunc(CUstream handle, void (*function)(void *), void *data) {
  ENTER_STREAM(handle);
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  enqueue_work(stream, NodeKind::host, 0, [=] {
    in_host_function = true;
    function(data);
    in_host_function = false;
  });
  return CUDA_SUCCESS;
}

// For the emulated libraries: work with data of its own, which is freed when neither a stream nor a graph has it.
CUDA_CALL emulatedLaunchOwned(CUstream handle, void (*function)(void *), void *data, void (*release)(void *)) {
  std::shared_ptr<void> owned(data, release);
  ENTER_STREAM(handle);
  enqueue_work(stream, NodeKind::host, 0, [function, owned] {
    in_host_function = true;
    function(owned.get());
    in_host_function = false;
  });
  return CUDA_SUCCESS;
}

// flags of a wait: 0 at least (cyclic), 1 equal, 2 and, 3 nor.
template <typename T> static CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  ENTER_STREAM(handle);
  if (CUresult error = not_captured(stream)) return error;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    if (address % sizeof(T) || !allocation_of(address, sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  }
  enqueue(stream, [=] {
    for (;;) {
      T now = __atomic_load_n((T *)address, __ATOMIC_ACQUIRE);
      bool met = false;
      switch (flags & 3) {
      case 0: met = (T)(now - value) >> (8 * sizeof(T) - 1) == 0; break;
      case 1: met = now == value; break;
      case 2: met = (now & value) != 0; break;
      default: met = (T) ~(now | value) != 0;
      }
      if (met) return;
      usleep(20);
    }
  });
  return CUDA_SUCCESS;
}

template <typename T> static CUresult write_value(CUstream handle, CUdeviceptr address, T value) {
  ENTER_STREAM(handle);
  if (CUresult error = not_captured(stream)) return error;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    if (address % sizeof(T) || !allocation_of(address, sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  }
  enqueue(stream, [=] { __atomic_store_n((T *)address, value, __ATOMIC_RELEASE); });
  return CUDA_SUCCESS;
}

CUDA_CALL cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  return wait_value(stream, address, value, flags);
}
CUDA_CALL cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  return wait_value(stream, address, value, flags);
}
CUDA_CALL cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned) {
  return write_value(stream, address, value);
}
CUDA_CALL cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned) {
  return write_value(stream, address, value);
}

CUDA_CALL cuEventCreate(CUevent *handle, unsigned flags) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->device = device;
  event->flags = flags;
  *handle = event.get();
  std::lock_guard<std::mutex> guard(world().lock);
  world().events[*handle] = std::move(event);
  return CUDA_SUCCESS;
}

CUDA_CALL cuEventRecord(CUevent handle, CUstream stream_handle) {
  ENTER_STREAM(stream_handle);
  if (CUresult error = not_captured(stream)) return error;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    Event *event = event_of(handle);
    if (!event || event->device != device) return CUDA_ERROR_INVALID_HANDLE;
  }
  auto record = std::make_shared<Record>();
  Ticket ticket = enqueue(stream, [record] { record->time = std::chrono::steady_clock::now(); });
  std::lock_guard<std::mutex> guard(world().lock);
  record->ticket = ticket;
  if (Event *event = event_of(handle)) event->latest = record;
  return CUDA_SUCCESS;
}

CUDA_CALL cuEventQuery(CUevent handle) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (CUresult error = safe_for_captures()) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Event *event = event_of(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  return !event->latest || over(event->latest->ticket) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUDA_CALL cuEventSynchronize(CUevent handle) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::shared_ptr<Record> latest;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    Event *event = event_of(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    latest = event->latest;
  }
  if (latest) wait_for(latest->ticket);
  return enter(&device);
}

CUDA_CALL cuEventDestroy_v2(CUevent handle) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  return world().events.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_CALL cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Event *a = event_of(start), *b = event_of(end);
  const unsigned disable_timing = 2;
  if (!a || !b || !a->latest || !b->latest || (a->flags | b->flags) & disable_timing) return CUDA_ERROR_INVALID_HANDLE;
  if (!over(a->latest->ticket) || !over(b->latest->ticket)) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(b->latest->time - a->latest->time).count();
  return CUDA_SUCCESS;
}

CUDA_CALL cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}
