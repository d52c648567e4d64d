/* The three entry points, and the table. */

#include <string.h>

#include <ultramarine/helper.h>

#include "ocl.h"

UM_DEFINE_BACKEND("opencl", "", "0.1.0", kDLOpenCL);

/* Of GPUs; CPU devices are slower than the built-in kernels and only worth having where nothing else is. */
#define SCORE_GPU 50
#define SCORE_CPU 5

static struct backend backend;

static uint32_t device_count(void *handle) { return ((struct backend *)handle)->count; }

static const um_memory_interface *memory;

static const void *interface(void *handle, const char *id) {
  (void)handle;
  if (id && strcmp(id, UM_FUSED_INTERFACE) == 0) return &fused_interface;
  if (id && strcmp(id, UM_KERNEL_INTERFACE) == 0) return &kernel_interface;
  if (id && strcmp(id, UM_MEMORY_INTERFACE) == 0) return memory;
  if (id && strcmp(id, UM_TIMING_INTERFACE) == 0) return &timing_interface;
  return NULL;
}

static const um_backend_table table = {
    .size = sizeof(um_backend_table),
    .abi_major = UM_ABI_MAJOR,
    .abi_minor = UM_ABI_MINOR,
    .backend = &backend,
    .name = "opencl",
    .device_type = kDLOpenCL,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .buffer_host_pointer = buffer_host_pointer,
    .copy_to_device = copy_to_device,
    .copy_to_host = copy_to_host,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .event_create = event_create,
    .event_record = event_record,
    .event_wait_stream = event_wait_stream,
    .event_wait_host = event_wait_host,
    .event_query = event_query,
    .event_destroy = event_destroy,
    .prepare = prepare,
    .plan_release = plan_release,
    .plan_workspace = plan_workspace,
    .submit = submit,
    .interface_ = interface,
};

/* Drivers start threads when they are asked for devices, which a score may not: so it counts none, and init does. */
um_status ultramarine_backend_score(um_backend_score *out) {
  um_backend_score score;
  bool beyond_host;
  if (!um_read_sized(&score, sizeof score, out)) return UM_INVALID;
  score.score = 0;
  score.device_count = 0;
  if (has_platforms(&beyond_host, score.reason, sizeof score.reason)) {
    score.score = beyond_host ? SCORE_GPU : SCORE_CPU;
  }
  um_write_sized(out, &score, sizeof score);
  return UM_OK;
}

um_status ultramarine_backend_init(const um_host_table *host, um_backend_table *out, um_error **error) {
  char reason[256];
  errors_init(host);
  if (forked()) return fail_forked(error);
  if (backend.count == 0) backend.count = discover(backend.found, reason, sizeof reason);
  if (backend.count == 0) return fail(error, UM_ERROR, "%s", reason);
  memory = memory_interface(&backend);
  um_write_sized(out, &table, sizeof table);
  return UM_OK;
}
