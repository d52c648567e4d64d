/* A backend that behaves, with places where it can be told not to. The tests compile it many times over:
 *
 *   -DNAME='"text"' -DVARIANT='"text"'   what it calls itself
 *   -DINFO='.abi_major = 99,'            fields of the ABI info (and of the note) that differ from the truth
 *   -DNO_NOTE -DNO_INFO -DNO_SCORE -DNO_INIT   parts that are missing
 *   -DON_SCORE='statements'              what an entry does before (ON_TABLE, ON_DEVICE: after) the right thing
 *
 * Its two ops are the sum and the product of contiguous float32 arrays; everything else is unsupported. */
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <ultramarine/backend.h>

#ifndef NAME
#define NAME "good"
#endif
#ifndef VARIANT
#define VARIANT ""
#endif
#ifndef INFO
#define INFO
#endif
#ifndef SCORE
#define SCORE 10
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef DEVICE_TYPE
#define DEVICE_TYPE 2 /* kDLCUDA: some accelerator */
#endif
#ifndef ON_LOAD
#define ON_LOAD
#endif
#ifndef ON_INFO
#define ON_INFO
#endif
#ifndef ON_SCORE
#define ON_SCORE
#endif
#ifndef ON_INIT
#define ON_INIT
#endif
#ifndef ON_TABLE
#define ON_TABLE
#endif
#ifndef ON_COUNT
#define ON_COUNT
#endif
#ifndef ON_DEVICE
#define ON_DEVICE
#endif
#ifndef ON_OPEN
#define ON_OPEN
#endif
#ifndef ON_ALLOC
#define ON_ALLOC
#endif
#ifndef ON_FREE
#define ON_FREE
#endif
#ifndef ON_PREPARE
#define ON_PREPARE
#endif
#ifndef ON_SUBMIT
#define ON_SUBMIT
#endif
#ifndef ON_RESULT
#define ON_RESULT
#endif

#if defined(__x86_64__)
#define TARGET "x86_64-unknown-linux-gnu"
#elif defined(__aarch64__)
#define TARGET "aarch64-unknown-linux-gnu"
#else
#define TARGET "unknown"
#endif

#define FACTS                                                                                                  \
  {.size = sizeof(um_backend_abi_info), .abi_major = UM_ABI_MAJOR, .abi_minor = UM_ABI_MINOR,                  \
   .dlpack_major = UM_DLPACK_MAJOR, .dlpack_minor = UM_DLPACK_MINOR, .table_size = sizeof(um_backend_table),   \
   .pointer_bits = 8 * sizeof(void *), .endianness = UM_LITTLE_ENDIAN, .device_type = DEVICE_TYPE,             \
   .name = NAME, .variant = VARIANT, .version = "1.2.3", .target = TARGET, .compiler = "cc", INFO}

static const um_backend_abi_info facts = FACTS;

#ifndef NO_NOTE
__attribute__((used, aligned(4), section(".note.ultramarine"))) static const um_elf_note note = {
    sizeof UM_NOTE_OWNER, sizeof(um_backend_abi_info), UM_NOTE_TYPE, UM_NOTE_OWNER, FACTS};
#endif

static const um_host_table *host;

/* An error as a plugin should report it. */
static inline um_status complain(um_error **error, um_status code, const char *text) {
  if (error) *error = host->error_new(host->host, code, text, strlen(text));
  return code;
}

__attribute__((constructor)) static void on_load(void) { ON_LOAD; }

/* ---- devices, memory, streams: all of it in host memory, at once --------------------------------------------- */

static uint32_t device_count(void *backend) {
  (void)backend;
  ON_COUNT;
  return DEVICES;
}

static um_status device_info(void *backend, uint32_t index, um_device_info *info, um_error **error) {
  (void)backend, (void)error;
  um_device_info mine = {.synchronous = 1, .host_memory = 1, .dtypes_storage = (1u << UM_DTYPE_COUNT) - 1,
                         .dtypes_arithmetic = 1u << UM_DTYPE_FLOAT32, .name = NAME " device",
                         .flags = UM_DEVICE_DETERMINISTIC, .alignment = 64};
  uint32_t room = info->size;
  if (index >= DEVICES) return UM_INVALID;
  mine.size = room < sizeof mine ? room : (uint32_t)sizeof mine;
  memcpy(info, &mine, mine.size);
  ON_DEVICE;
  return UM_OK;
}

static um_status device_open(void *backend, uint32_t index, void **device, um_error **error) {
  (void)backend, (void)index, (void)error;
  ON_OPEN;
  *device = &host;
  return UM_OK;
}

static void device_close(void *device) { (void)device; }

static um_status buffer_alloc(void *device, uint64_t bytes, void **buffer, um_error **error) {
  (void)device, (void)error;
  ON_ALLOC;
  *buffer = aligned_alloc(64, (bytes + 63) / 64 * 64);
  return *buffer ? UM_OK : UM_OUT_OF_MEMORY;
}

static void buffer_free(void *device, void *buffer) {
  (void)device;
  ON_FREE;
  free(buffer);
}

static void *buffer_host_pointer(void *device, void *buffer) {
  (void)device;
  return buffer;
}

static um_status copy_to_device(void *device, void *stream, void *buffer, uint64_t offset, const void *source,
                                uint64_t bytes, um_error **error) {
  (void)device, (void)stream, (void)error;
  memcpy((char *)buffer + offset, source, bytes);
  return UM_OK;
}

static um_status copy_to_host(void *device, void *stream, void *buffer, uint64_t offset, void *target, uint64_t bytes,
                              um_error **error) {
  (void)device, (void)stream, (void)error;
  memcpy(target, (char *)buffer + offset, bytes);
  return UM_OK;
}

static um_status stream_create(void *device, void **stream, um_error **error) {
  (void)device, (void)error;
  *stream = &host;
  return UM_OK;
}

static void stream_destroy(void *device, void *stream) { (void)device, (void)stream; }

static um_status stream_synchronize(void *device, void *stream, um_error **error) {
  (void)device, (void)stream, (void)error;
  return UM_OK;
}

static um_status event_create(void *device, void **event, um_error **error) {
  (void)device, (void)error;
  *event = calloc(1, sizeof(uint64_t));
  return *event ? UM_OK : UM_OUT_OF_MEMORY;
}

static um_status event_record(void *device, void *stream, void *event, uint64_t value, um_error **error) {
  (void)device, (void)stream, (void)error;
  __atomic_store_n((uint64_t *)event, value, __ATOMIC_RELEASE);
  return UM_OK;
}

static uint64_t event_query(void *device, void *event) {
  (void)device;
  return __atomic_load_n((uint64_t *)event, __ATOMIC_ACQUIRE);
}

static um_status event_wait_host(void *device, void *event, uint64_t value, um_error **error) {
  (void)error;
  while (event_query(device, event) < value) sched_yield();
  return UM_OK;
}

static um_status event_wait_stream(void *device, void *stream, void *event, uint64_t value, um_error **error) {
  (void)stream;
  return event_wait_host(device, event, value, error);
}

static void event_destroy(void *device, void *event) {
  (void)device;
  free(event);
}

/* ---- the ops ------------------------------------------------------------------------------------------------- */

static int is_float32(const um_tensor_desc *t) {
  return t->dtype.code == kDLFloat && t->dtype.bits == 32 && t->dtype.lanes == 1;
}

static um_status prepare(void *device, uint32_t op, uint32_t revision, const void *attributes,
                         const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                         uint32_t n_outputs, void **plan, um_error **error) {
  (void)device, (void)error;
  ON_PREPARE;
  const um_binary_attrs *binary = attributes;
  if (op != UM_OP_BINARY || revision != 1 || n_inputs != 2 || n_outputs != 1) return UM_UNSUPPORTED;
  if (!is_float32(inputs) || !is_float32(outputs)) return UM_UNSUPPORTED;
  if (binary->op != UM_BINARY_ADD && binary->op != UM_BINARY_MULTIPLY) return UM_UNSUPPORTED;
  if (inputs[0].layout != UM_LAYOUT_CONTIGUOUS || inputs[1].layout != UM_LAYOUT_CONTIGUOUS) return UM_NEEDS_CONTIGUOUS;
  *plan = (void *)(uintptr_t)(binary->op + 1);
  return UM_OK;
}

static void plan_release(void *device, void *plan) { (void)device, (void)plan; }

static float *floats(const um_tensor *t) { return (float *)((char *)t->dl.data + t->dl.byte_offset); }

static um_status submit(void *device, void *stream, const um_command *commands, uint32_t n_commands,
                        um_error **error) {
  (void)device, (void)stream, (void)error;
  ON_SUBMIT;
  for (uint32_t c = 0; c < n_commands; c++) {
    const um_command *command = (const um_command *)((const char *)commands + c * (uint64_t)commands->size);
    const float *x = floats(command->inputs);
    const float *y = floats((const um_tensor *)((const char *)command->inputs + command->tensor_stride));
    float *out = floats(command->outputs);
    uint64_t n = 1;
    for (int32_t d = 0; d < command->outputs->dl.ndim; d++) n *= (uint64_t)command->outputs->dl.shape[d];
    for (uint64_t i = 0; i < n; i++)
      out[i] = (uintptr_t)command->plan == UM_BINARY_ADD + 1 ? x[i] + y[i] : x[i] * y[i];
    ON_RESULT;
  }
  return UM_OK;
}

/* ---- entry points -------------------------------------------------------------------------------------------- */

#ifndef NO_INFO
um_status ultramarine_backend_abi_info(um_backend_abi_info *info) {
  um_backend_abi_info mine = facts;
  uint32_t room = info->size;
  ON_INFO;
  memcpy(info, &mine, room < sizeof mine ? room : sizeof mine);
  return UM_OK;
}
#endif

#ifndef NO_SCORE
um_status ultramarine_backend_score(um_backend_score *score) {
  score->score = SCORE;
  score->device_count = DEVICES;
  ON_SCORE;
  return UM_OK;
}
#endif

#ifndef NO_INIT
um_status ultramarine_backend_init(const um_host_table *given, um_backend_table *table, um_error **error) {
  um_backend_table mine = {
      sizeof mine, UM_ABI_MAJOR, UM_ABI_MINOR, NULL, NAME, DEVICE_TYPE, 0,
      device_count, device_info, device_open, device_close,
      buffer_alloc, buffer_free, buffer_host_pointer, copy_to_device, copy_to_host,
      stream_create, stream_destroy, stream_synchronize,
      event_create, event_record, event_wait_stream, event_wait_host, event_query, event_destroy,
      prepare, plan_release, NULL, submit, NULL};
  uint32_t room = table->size;
  host = given;
  (void)error;
  ON_INIT;
  if (room < sizeof mine) mine.size = room;
  ON_TABLE;
  memcpy(table, &mine, room < sizeof mine ? room : sizeof mine);
  return UM_OK;
}
#endif
