// Initialisation, devices and contexts. A device's only context is its primary one; its handle is the device.
#include "state.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <utility>

namespace emulated {

thread_local bool in_host_function = false;
static thread_local std::vector<Device *> contexts;

World &world() {
  static World &world = *new World;
  return world;
}

size_t number_of_environment(const char *name, size_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, nullptr, 0) : otherwise;
}

CUresult enter_driver() {
  if (!world().initialised) return CUDA_ERROR_NOT_INITIALIZED;
  return in_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

Device *current_device() { return contexts.empty() ? nullptr : contexts.back(); }

CUresult enter(Device **device) {
  if (CUresult error = enter_driver()) return error;
  Device *current = current_device();
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard<std::mutex> guard(world().lock);
  if (!current->retained) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *device = current;
  return current->sticky;
}

void break_device(Device *device, CUresult error, const std::string &message) {
  fprintf(stderr, "emulated CUDA device %d: %s\n", device->ordinal, message.c_str());
  std::lock_guard<std::mutex> guard(world().lock);
  if (!device->sticky) device->sticky = error;
}

static Device *device_of(CUdevice ordinal) {
  auto &devices = world().devices;
  return ordinal >= 0 && ordinal < (int)devices.size() ? devices[ordinal].get() : nullptr;
}

static bool is_context(CUcontext context) {
  for (auto &device : world().devices)
    if (device.get() == context) return true;
  return false;
}

// Ends the context: its memory and modules go, and so does its error.
static void reset(Device *device) {
  wait_for_device(device);
  free_memory_of(device);
  free_modules_of(device);
  std::lock_guard<std::mutex> guard(world().lock);
  device->sticky = CUDA_SUCCESS;
}

// Attributes by CUdevice_attribute; those not here are 0.
static const struct {
  int attribute, value;
} attributes[] = {
    {1, max_threads},   {2, 1024},           {3, 1024},       {4, 64},
    {5, 2147483647},    {6, 65535},          {7, 65535},      {8, shared_default},
    {9, 65536},         {10, warp_size},     {11, 2147483647}, {12, 65536},
    {13, 1000000},      {14, 512},           {15, 1},         {16, multiprocessors},
    {19, 1},            {31, 1},             {36, 1000000},   {37, 256},
    {38, 4 << 20},      {39, 2048},          {40, 2},         {41, 1},
    {78, 1},            {81, 102400},
    {82, 65536},        {83, 1},             {89, 1},         {91, 1},
    {92, 1},            {93, 1},             {94, 1},         {99, 1},         {106, 32},           {111, 1024},     {122, 1},
    {123, 1},
};

int compute_capability() { return (int)number_of_environment("EMULATED_CUDA_CAPABILITY", 90); }

int shared_opt_in() { return compute_capability() == 90 ? most_shared : shared_elsewhere; }

} // namespace emulated

using namespace emulated;

#define DEVICE(device, ordinal)                                                                                        \
  if (CUresult error = enter_driver()) return error;                                                                   \
  Device *device = device_of(ordinal);                                                                                 \
  if (!device) return CUDA_ERROR_INVALID_DEVICE

CUDA_CALL cuInit(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  World &w = world();
  std::lock_guard<std::mutex> guard(w.lock);
  if (w.initialised) return CUDA_SUCCESS;
  size_t count = number_of_environment("EMULATED_CUDA_DEVICES", 1);
  if (!count) return 100; // CUDA_ERROR_NO_DEVICE
  for (size_t i = 0; i < count; i++) {
    auto device = std::make_unique<Device>();
    device->ordinal = (int)i;
    device->total = number_of_environment("EMULATED_CUDA_MEMORY", (size_t)4 << 30);
    device->legacy = std::make_shared<Stream>();
    device->legacy->device = device.get();
    w.devices.push_back(std::move(device));
  }
  // Modules are linked with nothing: the functions of libm have to be found in the process.
  if (!dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL)) return CUDA_ERROR_UNKNOWN;
  w.initialised = true;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDriverGetVersion(int *version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = (int)number_of_environment("EMULATED_CUDA_VERSION", 13000);
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceGetCount(int *count) {
  if (CUresult error = enter_driver()) return error;
  *count = (int)world().devices.size();
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceGet(CUdevice *device, int ordinal) {
  DEVICE(found, ordinal);
  *device = found->ordinal;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceGetName(char *name, int length, CUdevice ordinal) {
  DEVICE(device, ordinal);
  (void)device;
  snprintf(name, length, "Emulated CUDA device");
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceGetUuid_v2(char *uuid, CUdevice ordinal) {
  DEVICE(device, ordinal);
  memcpy(uuid, "emulated CUDA   ", 16);
  uuid[15] = (char)device->ordinal;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceGetUuid(char *uuid, CUdevice ordinal) { return cuDeviceGetUuid_v2(uuid, ordinal); }

CUDA_CALL cuDeviceGetPCIBusId(char *id, int length, CUdevice ordinal) {
  DEVICE(device, ordinal);
  snprintf(id, length, "0000:%02X:00.0", device->ordinal + 1);
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal) {
  DEVICE(device, ordinal);
  *bytes = device->total;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceGetAttribute(int *value, int attribute, CUdevice ordinal) {
  DEVICE(device, ordinal);
  if (attribute <= 0) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == 33 ? device->ordinal + 1 : 0; // 33: the PCI bus
  for (auto &known : attributes)
    if (known.attribute == attribute) *value = known.value;
  if (attribute == 75) *value = compute_capability() / 10;
  if (attribute == 76) *value = compute_capability() % 10;
  if (attribute == 97) *value = shared_opt_in();
  return CUDA_SUCCESS;
}

CUDA_CALL cuDeviceCanAccessPeer(int *can, CUdevice ordinal, CUdevice peer) {
  DEVICE(device, ordinal);
  if (!device_of(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device->ordinal != peer;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal) {
  DEVICE(device, ordinal);
  std::lock_guard<std::mutex> guard(world().lock);
  device->retained++;
  *context = device;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  DEVICE(device, ordinal);
  {
    std::lock_guard<std::mutex> guard(world().lock);
    if (!device->retained) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->retained) return CUDA_SUCCESS;
  }
  reset(device);
  return CUDA_SUCCESS;
}

CUDA_CALL cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  DEVICE(device, ordinal);
  reset(device);
  return CUDA_SUCCESS;
}

CUDA_CALL cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  DEVICE(device, ordinal);
  device->flags = flags;
  return CUDA_SUCCESS;
}

CUDA_CALL cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active) {
  DEVICE(device, ordinal);
  std::lock_guard<std::mutex> guard(world().lock);
  *flags = device->flags;
  *active = device->retained > 0;
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxPushCurrent_v2(CUcontext context) {
  if (CUresult error = enter_driver()) return error;
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!((Device *)context)->retained) return CUDA_ERROR_INVALID_CONTEXT;
  contexts.push_back((Device *)context);
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxPopCurrent_v2(CUcontext *context) {
  if (CUresult error = enter_driver()) return error;
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxGetCurrent(CUcontext *context) {
  if (CUresult error = enter_driver()) return error;
  *context = current_device();
  return CUDA_SUCCESS;
}

CUDA_CALL cuThreadExchangeStreamCaptureMode(int *mode) {
  if (CUresult error = enter_driver()) return error;
  if (*mode < 0 || *mode > 2) return CUDA_ERROR_INVALID_VALUE;
  *mode = exchange_capture_mode(*mode);
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxSetCurrent(CUcontext context) {
  if (CUresult error = enter_driver()) return error;
  if (context && (!is_context(context) || !((Device *)context)->retained)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!contexts.empty()) contexts.pop_back();
  if (context) contexts.push_back((Device *)context);
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxGetDevice(CUdevice *ordinal) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  *ordinal = device->ordinal;
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

CUDA_CALL cuCtxSynchronize(void) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  wait_for_device(device);
  return enter(&device);
}

CUDA_CALL cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  static auto &enabled = *new std::map<std::pair<Device *, void *>, bool>;
  if (flags || !is_context(peer)) return CUDA_ERROR_INVALID_VALUE;
  if (peer == device) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard<std::mutex> guard(world().lock);
  bool &already = enabled[{device, peer}];
  if (already) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  already = true;
  return CUDA_SUCCESS;
}

CUDA_CALL cuProfilerStart(void) { return enter_driver(); }
CUDA_CALL cuProfilerStop(void) { return enter_driver(); }

// Names without a version mean the newest one, as on CUDA.
CUDA_CALL cuGetProcAddress_v2(const char *symbol, void **function, int, uint64_t, int *status) {
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  Dl_info here;
  dladdr((void *)&cuInit, &here);
  void *self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = self ? dlsym(self, (std::string(symbol) + "_v2").c_str()) : nullptr;
  if (self && !*function) *function = dlsym(self, symbol);
  if (status) *status = *function ? 0 : 1;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUDA_CALL cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
