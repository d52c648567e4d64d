// Memory: device memory is host memory of which every range is known, so that copies out of range are refused.
#include "state.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

namespace emulated {

constexpr size_t alignment = 256, guard_size = 256, page = 4096;
constexpr unsigned char poison = 0xA5, guard_byte = 0xC3;

Allocation *allocation_of(uintptr_t address, size_t size) {
  auto &memory = world().memory;
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return nullptr;
  Allocation &allocation = std::prev(after)->second;
  uintptr_t offset = address - allocation.base;
  return offset < allocation.size && size <= allocation.size - offset ? &allocation : nullptr;
}

static size_t accounted(size_t size) { return (size + 511) / 512 * 512; }

enum class Guard { none, bytes, page };

static Guard guard_mode() {
  static const Guard mode = [] {
    const char *text = getenv("EMULATED_CUDA_GUARD");
    if (!text || !*text || *text == '0') return Guard::none;
    return strcmp(text, "page") ? Guard::bytes : Guard::page;
  }();
  return mode;
}

// With a guard page an allocation ends (up to its alignment) where memory that nobody may touch begins.
static size_t aligned(size_t size) { return (size + alignment - 1) / alignment * alignment; }
static size_t mapped(size_t size) { return (aligned(size) + page - 1) / page * page + page; }

static void *take(size_t size) {
  void *at = nullptr;
  if (guard_mode() != Guard::page) return posix_memalign(&at, alignment, size + guard_size) ? nullptr : at;
  char *start = (char *)mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char *end = start + mapped(size) - page;
  mprotect(end, page, PROT_NONE);
  return end - aligned(size);
}

static void give(void *at, size_t size) {
  if (guard_mode() != Guard::page) return free(at);
  munmap((char *)at + aligned(size) + page - mapped(size), mapped(size));
}

// The bytes behind an allocation that are watched.
static size_t watched(size_t size) { return guard_mode() == Guard::page ? aligned(size) - size : guard_size; }

// Large allocations are poisoned at their ends only, so that their pages are not all touched.
static void fill(char *at, size_t size, unsigned char byte) {
  constexpr size_t whole = 64 << 20, end = 1 << 20;
  memset(at, byte, size <= whole ? size : end);
  if (size > whole) memset(at + size - end, byte, end);
}

static CUresult allocate(Device *device, Kind kind, size_t size, uintptr_t *address) {
  if (!size || !address) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(world().lock);
  bool counted = kind != Kind::host;
  if (counted && (size > device->total || device->used + accounted(size) > device->total))
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *at = size > (size_t)1 << 46 ? nullptr : take(size);
  if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
  fill((char *)at, size, poison);
  memset((char *)at + size, guard_byte, watched(size));
  if (counted) device->used += accounted(size);
  *address = (uintptr_t)at;
  world().memory[*address] = {*address, size, kind, device};
  return CUDA_SUCCESS;
}

// The lock must be held.
static void release(std::map<uintptr_t, Allocation>::iterator it) {
  Allocation &allocation = it->second;
  if (allocation.kind != Kind::registered && allocation.kind != Kind::global) {
    unsigned char *behind = (unsigned char *)allocation.base + allocation.size;
    for (size_t i = 0; guard_mode() != Guard::none && i < watched(allocation.size); i++) {
      if (behind[i] == guard_byte) continue;
      fprintf(stderr, "emulated CUDA: byte %zu behind an allocation of %zu bytes at %#zx was written\n", i,
              allocation.size, (size_t)allocation.base);
      abort();
    }
    fill((char *)allocation.base, allocation.size, poison);
    give((void *)allocation.base, allocation.size);
    if (allocation.kind != Kind::host) allocation.device->used -= accounted(allocation.size);
  }
  world().memory.erase(it);
}

void free_memory_of(Device *device) {
  std::lock_guard<std::mutex> guard(world().lock);
  auto &memory = world().memory;
  for (auto it = memory.begin(); it != memory.end();) {
    auto next = std::next(it);
    if (it->second.device == device && it->second.kind != Kind::registered) release(it);
    it = next;
  }
}

// Freeing waits for the work of the device, as CUDA's cuMemFree does.
static CUresult free_of(uintptr_t address, bool host) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (CUresult error = safe_for_captures()) return error;
  if (!address) return CUDA_SUCCESS;
  Device *owner;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    auto found = world().memory.find(address);
    if (found == world().memory.end()) return CUDA_ERROR_INVALID_VALUE;
    Kind kind = found->second.kind;
    if (host ? kind != Kind::host : kind != Kind::device && kind != Kind::managed) return CUDA_ERROR_INVALID_VALUE;
    owner = found->second.device;
  }
  wait_for_device(owner);
  std::lock_guard<std::mutex> guard(world().lock);
  auto found = world().memory.find(address);
  if (found == world().memory.end()) return CUDA_ERROR_INVALID_VALUE;
  release(found);
  return CUDA_SUCCESS;
}

// What a side of a copy may be.
enum class Side { host, device, any };

// Pinned: known to the driver, so that a copy does not have to be staged.
static bool check(uintptr_t address, size_t size, Side side, bool *pinned) {
  std::lock_guard<std::mutex> guard(world().lock);
  Allocation *first = allocation_of(address, 1);
  *pinned = first != nullptr;
  if (!first) return side != Side::device;
  if (!allocation_of(address, size)) return false;
  if (side == Side::device) return true;
  return side == Side::any || !first->on_device() || first->kind == Kind::managed;
}

// Memory that is not pinned is read before the call returns and has been written when it returns, as on CUDA.
static CUresult copy(uintptr_t to, Side to_side, uintptr_t from, Side from_side, size_t size, CUstream handle,
                     bool wait) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  auto stream = stream_of(device, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!size) return CUDA_SUCCESS;
  bool to_pinned, from_pinned;
  if (!check(to, size, to_side, &to_pinned) || !check(from, size, from_side, &from_pinned))
    return CUDA_ERROR_INVALID_VALUE;
  Ticket ticket;
  if (stream->capture && (wait || !from_pinned || !to_pinned)) return not_captured(stream);
  if (from_pinned || wait) {
    enqueue_work(stream, NodeKind::memcpy, size, [=] { memmove((void *)to, (void *)from, size); }, &ticket);
  } else {
    auto staged = std::make_shared<std::vector<char>>((char *)from, (char *)from + size);
    ticket = enqueue(stream, [=] { memcpy((void *)to, staged->data(), size); });
  }
  if (!wait && to_pinned) return CUDA_SUCCESS;
  wait_for(ticket);
  return enter(&device);
}

bool is_device_range(uintptr_t address, size_t size) {
  bool pinned;
  return check(address, size, Side::device, &pinned);
}

template <typename T> static CUresult set(CUdeviceptr to, T value, size_t count, CUstream handle, bool wait) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  auto stream = stream_of(device, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!count) return CUDA_SUCCESS;
  bool pinned;
  if (to % sizeof(T) || !check(to, count * sizeof(T), Side::device, &pinned)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture && wait) return not_captured(stream);
  Ticket ticket;
  auto fill = [=] {
    for (size_t i = 0; i < count; i++) ((T *)to)[i] = value;
  };
  enqueue_work(stream, NodeKind::memset, count * sizeof(T), fill, &ticket);
  if (!wait) return CUDA_SUCCESS;
  wait_for(ticket);
  return enter(&device);
}

} // namespace emulated

using namespace emulated;

CUDA_CALL cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (CUresult error = safe_for_captures()) return error;
  return allocate(device, Kind::device, size, (uintptr_t *)address);
}

CUDA_CALL cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (flags != 1 && flags != 2) return CUDA_ERROR_INVALID_VALUE;
  return allocate(device, Kind::managed, size, (uintptr_t *)address);
}

CUDA_CALL cuMemHostAlloc(void **address, size_t size, unsigned) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  return allocate(device, Kind::host, size, (uintptr_t *)address);
}

CUDA_CALL cuMemFree_v2(CUdeviceptr address) { return free_of(address, false); }
CUDA_CALL cuMemFreeHost(void *address) { return free_of((uintptr_t)address, true); }

CUDA_CALL cuMemGetInfo_v2(size_t *available, size_t *total) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  *available = device->total - device->used;
  *total = device->total;
  return CUDA_SUCCESS;
}

CUDA_CALL cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Allocation *allocation = allocation_of((uintptr_t)host, 1);
  if (!allocation || allocation->on_device()) return CUDA_ERROR_INVALID_VALUE;
  *address = (CUdeviceptr)host;
  return CUDA_SUCCESS;
}

CUDA_CALL cuMemHostRegister_v2(void *host, size_t size, unsigned) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (!host || !size) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(world().lock);
  uintptr_t base = (uintptr_t)host;
  auto next = world().memory.lower_bound(base);
  bool overlaps = allocation_of(base, 1) || (next != world().memory.end() && next->first < base + size);
  if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  world().memory[base] = {base, size, Kind::registered, device};
  return CUDA_SUCCESS;
}

CUDA_CALL cuMemHostUnregister(void *host) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  wait_for_device(device);
  std::lock_guard<std::mutex> guard(world().lock);
  auto found = world().memory.find((uintptr_t)host);
  if (found == world().memory.end() || found->second.kind != Kind::registered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  world().memory.erase(found);
  return CUDA_SUCCESS;
}

CUDA_CALL cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
  return copy(to, Side::device, (uintptr_t)from, Side::host, size, stream, false);
}
CUDA_CALL cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy((uintptr_t)to, Side::host, from, Side::device, size, stream, false);
}
CUDA_CALL cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy(to, Side::device, from, Side::device, size, stream, false);
}
CUDA_CALL cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy(to, Side::any, from, Side::any, size, stream, false);
}
CUDA_CALL cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size, CUstream stream) {
  return copy(to, Side::device, from, Side::device, size, stream, false);
}
CUDA_CALL cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy(to, Side::any, from, Side::any, size, nullptr, true);
}
CUDA_CALL cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  return copy(to, Side::device, (uintptr_t)from, Side::host, size, nullptr, true);
}
CUDA_CALL cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  return copy((uintptr_t)to, Side::host, from, Side::device, size, nullptr, true);
}
CUDA_CALL cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy(to, Side::device, from, Side::device, size, nullptr, true);
}
CUDA_CALL cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return set(to, value, count, stream, false);
}
CUDA_CALL cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return set(to, value, count, stream, false);
}
CUDA_CALL cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return set(to, value, count, stream, false);
}
CUDA_CALL cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return set(to, value, count, nullptr, true);
}
CUDA_CALL cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) { return set(to, value, count, nullptr, true); }

CUDA_CALL cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Allocation *allocation = allocation_of(address, 1);
  if (!allocation) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = allocation->base;
  if (size) *size = allocation->size;
  return CUDA_SUCCESS;
}

CUDA_CALL cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
  if (CUresult error = enter_driver()) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Allocation *allocation = allocation_of(address, 1);
  if (!allocation || !data) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case 1: *(CUcontext *)data = allocation->device; break;
  case 2: *(unsigned *)data = allocation->on_device() ? 2 : 1; break;
  case 3: *(CUdeviceptr *)data = address; break;
  case 4:
    if (allocation->kind == Kind::device || allocation->kind == Kind::global) return CUDA_ERROR_INVALID_VALUE;
    *(void **)data = (void *)address;
    break;
  case 8: *(unsigned *)data = allocation->kind == Kind::managed; break;
  case 9: *(int *)data = allocation->device->ordinal; break;
  case 11: *(CUdeviceptr *)data = allocation->base; break;
  case 12: *(size_t *)data = allocation->size; break;
  case 13: *(unsigned *)data = 1; break;
  default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}
