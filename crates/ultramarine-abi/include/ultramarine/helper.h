/* Helper functions for backends in C11 or C++11. They are compiled into the backend; the host never sees them.
 *
 *   UM_DEFINE_BACKEND("mine", "", "1.0", kDLExtDev);   the ABI info, its note and the entry point that returns it
 *   um_fail, um_log                                     errors and log messages, with the arguments of printf
 *   um_fail_command                                     marks the command of a list that failed
 *   um_read_sized, um_write_sized, um_read_attributes   structs of another version of the contract
 *   um_command_at, um_input, um_output, um_scalar       parts of a command
 *   um_dtype_index, um_dtype, um_dtype_size             dtypes, and their bits in the device masks
 *   um_check_arity                                      checks the tensors of a request
 *   um_rows                                             loops over strided and broadcast tensors
 *   um_table, um_host_memory_functions                  a table to begin with; buffers in host memory
 *   um_sync_functions                                   streams and events of a synchronous backend
 *
 * Link with -pthread where the C library needs it. C++ code that throws exceptions includes helper.hpp instead.
 * docs/write-a-backend.md builds a backend with these functions, step by step. */
#ifndef ULTRAMARINE_HELPER_H
#define ULTRAMARINE_HELPER_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "helper_build.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#endif

/* ---- structs of another version ----------------------------------------------------------------------------- */

/* Reads a struct of the contract, which begins with its size, into `target` of `size` bytes. The writer may be of another
 * version: bytes that it lacks become zero, bytes that this build does not know are left out. Returns 1, or 0 with a
 * `target` of zeros if `source` is NULL.
 *
 *   um_host_table host;
 *   if (!um_read_sized(&host, sizeof host, given)) return UM_INVALID; */
static inline int um_read_sized(void *target, size_t size, const void *source) {
  uint32_t said = 0;
  memset(target, 0, size);
  if (source == NULL) return 0;
  memcpy(&said, source, sizeof said);
  memcpy(target, source, said < size ? said : size);
  return 1;
}

/* Writes `source` of `size` bytes into a struct of the caller's, whose first field is its size. Writes no more bytes than
 * that, and sets the field to the number written. Returns 1, or 0 if `target` is NULL. */
static inline int um_write_sized(void *target, const void *source, size_t size) {
  uint32_t room = 0;
  uint32_t bytes;
  if (target == NULL) return 0;
  memcpy(&room, target, sizeof room);
  bytes = room < size ? room : (uint32_t)size;
  memcpy(target, source, bytes);
  if (bytes >= sizeof bytes) memcpy(target, &bytes, sizeof bytes);
  return 1;
}

/* Reads an operation's attributes into `target` of `size` bytes. Returns UM_OK, or UM_UNSUPPORTED for a struct of a later
 * revision whose additional bytes are not zero, and for NULL. `prepare` may return the result as it is:
 *
 *   um_unary_attrs attrs;
 *   um_status status = um_read_attributes(&attrs, sizeof attrs, attributes);
 *   if (status != UM_OK) return status; */
static inline um_status um_read_attributes(void *target, size_t size, const void *source) {
  const unsigned char *bytes = (const unsigned char *)source;
  uint32_t said;
  size_t i;
  if (!um_read_sized(target, size, source)) return UM_UNSUPPORTED;
  memcpy(&said, source, sizeof said);
  for (i = size; i < said; i++) {
    if (bytes[i] != 0) return UM_UNSUPPORTED;
  }
  return UM_OK;
}

/* Copies a text into a char array of a struct, such as um_device_info.name. The rest is filled with NULs; a text that is
 * too long is cut, and then has no NUL behind it. */
#define UM_SET_TEXT(field, text) um_set_text((field), sizeof(field), (text))
static inline void um_set_text(char *field, size_t size, const char *text) {
  size_t length = strlen(text);
  memset(field, 0, size);
  memcpy(field, text, length < size ? length : size);
}

/* ---- errors, messages and threads of the host ---------------------------------------------------------------- */

static inline uint64_t um_format_length(int written, size_t room) {
  if (written < 0) return 0;
  return (size_t)written < room ? (uint64_t)written : (uint64_t)(room - 1);
}

/* Makes an error object with a text, if `error` is not NULL, and returns `code`. The host owns the object. The text says
 * what failed, the values that were given, and a remedy; it is cut at 1023 bytes.
 *
 *   return um_fail(host, error, UM_INVALID, "device %u does not exist. Pass 0.", index); */
UM_PRINTF_LIKE(4, 5)
static inline um_status um_fail(const um_host_table *host, um_error **error, um_status code, const char *format, ...) {
  char text[1024];
  va_list arguments;
  uint64_t length;
  if (error == NULL || host == NULL || host->error_new == NULL) return code;
  va_start(arguments, format);
  length = um_format_length(vsnprintf(text, sizeof text, format, arguments), sizeof text);
  va_end(arguments);
  *error = host->error_new(host->host, code, text, length);
  return code;
}

/* Marks the error of a submit as that of command `index` of its list, and returns `code`. Does nothing for UM_OK, so it
 * can wrap each command: `status = um_fail_command(host, error, i, run(command, error))`. */
static inline um_status um_fail_command(const um_host_table *host, um_error **error, uint32_t index, um_status code) {
  if (code == UM_OK || host == NULL || host->size < offsetof(um_host_table, error_command) + sizeof host->error_command) return code;
  if (host->error_command == NULL || error == NULL) return code;
  /* A failure without words, such as a lack of memory, needs an object to carry the index. */
  if (*error == NULL) um_fail(host, error, code, "command %u of the list failed (status %d)", (unsigned)index, (int)code);
  if (*error != NULL) host->error_command(host->host, *error, index);
  return code;
}

/* Logs a message by the host. `level` is one of UM_LOG_...; the environment variable ULTRAMARINE_LOG chooses what is shown. */
UM_PRINTF_LIKE(3, 4)
static inline void um_log(const um_host_table *host, uint32_t level, const char *format, ...) {
  char text[1024];
  va_list arguments;
  uint64_t length;
  if (host == NULL || host->log == NULL) return;
  va_start(arguments, format);
  length = um_format_length(vsnprintf(text, sizeof text, format, arguments), sizeof text);
  va_end(arguments);
  host->log(host->host, level, text, length);
}

/* Calls body(context, i) for every i < count, on the host's threads and the calling one, and returns when all calls have.
 * The body must not unwind. Without a host the calls run on the calling thread. */
static inline void um_parallel_for(const um_host_table *host, uint64_t count, um_parallel_body body, void *context) {
  uint64_t i;
  if (count > 1 && host != NULL && host->parallel_for != NULL) {
    host->parallel_for(host->host, count, body, context);
    return;
  }
  for (i = 0; i < count; i++) body(context, i);
}

/* ---- parts of a command ------------------------------------------------------------------------------------- */

/* Structs of a later version are longer than those of this header. So never index `commands`, `inputs` and `outputs` as C
 * arrays: these functions step by the size that the host gives. `index` is below the count; the results live as long as the
 * command. */
static inline const um_command *um_command_at(const um_command *commands, uint32_t index) {
  return (const um_command *)(const void *)((const char *)commands + (size_t)index * commands->size);
}
static inline const um_tensor *um_input(const um_command *command, uint32_t index) {
  const char *first = (const char *)command->inputs;
  return (const um_tensor *)(const void *)(first + (size_t)index * command->tensor_stride);
}
static inline const um_tensor *um_output(const um_command *command, uint32_t index) {
  const char *first = (const char *)command->outputs;
  return (const um_tensor *)(const void *)(first + (size_t)index * command->tensor_stride);
}
/* The same for the tensors of a request for a plan. */
static inline const um_tensor_desc *um_desc_at(const um_tensor_desc *descs, uint32_t index) {
  return (const um_tensor_desc *)(const void *)((const char *)descs + (size_t)index * descs->size);
}
/* Returns the address of scalar `index`, whose value is in the low bytes; 16 bytes are readable. The functions below
 * return its value if the operation's scalar is an int64 or a float64 (docs/operations.md has the dtype of each). */
static inline const void *um_scalar(const um_command *command, uint32_t index) {
  return (const void *)command->scalars[index];
}
static inline int64_t um_scalar_int64(const um_command *command, uint32_t index) {
  int64_t value;
  memcpy(&value, command->scalars[index], sizeof value);
  return value;
}
static inline double um_scalar_float64(const um_command *command, uint32_t index) {
  double value;
  memcpy(&value, command->scalars[index], sizeof value);
  return value;
}

/* Returns the address of a tensor's first element. Only for devices with host memory (um_device_info.host_memory is 1). */
static inline void *um_data(const um_tensor *tensor) { return (char *)tensor->dl.data + tensor->dl.byte_offset; }

/* Returns the number of a tensor's elements, which is never 0 in a command. */
static inline uint64_t um_count(const um_tensor *tensor) {
  uint64_t count = 1;
  int32_t i;
  for (i = 0; i < tensor->dl.ndim; i++) count *= (uint64_t)tensor->dl.shape[i];
  return count;
}

/* ---- dtypes ------------------------------------------------------------------------------------------------- */

/* The bit of a dtype in the masks of um_device_info: UM_DTYPE_BIT(UM_DTYPE_FLOAT32). */
#define UM_DTYPE_BIT(index) (UINT32_C(1) << (index))

/* Returns the DLPack type of a dtype's index, UM_DTYPE_...; its lanes are 0 if there is no such dtype. */
static inline DLDataType um_dtype(uint32_t index) {
  static const uint8_t table[UM_DTYPE_COUNT][2] = {
      {kDLBool, 8},   {kDLUInt, 8},   {kDLUInt, 16},  {kDLUInt, 32},  {kDLUInt, 64},   {kDLInt, 8},     {kDLInt, 16},
      {kDLInt, 32},   {kDLInt, 64},   {kDLFloat, 16}, {kDLFloat, 32}, {kDLFloat, 64},  {kDLBfloat, 16}, {kDLComplex, 64}};
  DLDataType dtype = {0, 0, 0};
  if (index < UM_DTYPE_COUNT) {
    dtype.code = table[index][0];
    dtype.bits = table[index][1];
    dtype.lanes = 1;
  }
  return dtype;
}

/* Returns the index of a DLPack type, UM_DTYPE_..., or -1 if the contract does not have it. */
static inline int32_t um_dtype_index(DLDataType dtype) {
  uint32_t i;
  if (dtype.lanes != 1) return -1;
  for (i = 0; i < UM_DTYPE_COUNT; i++) {
    DLDataType known = um_dtype(i);
    if (known.code == dtype.code && known.bits == dtype.bits) return (int32_t)i;
  }
  return -1;
}

/* Returns the size of an element in bytes. */
static inline uint32_t um_dtype_size(DLDataType dtype) { return ((uint32_t)dtype.bits * dtype.lanes + 7) / 8; }

/* Checks the tensors of a request for a plan: their numbers, that the dtypes are known and the ranks possible. Returns UM_OK
 * or UM_UNSUPPORTED, which `prepare` returns as it is: a later host may ask for operations that this build does not know.
 * The operation's own rules, such as which dtypes go together, are the backend's to check. */
static inline um_status um_check_arity(const um_tensor_desc *inputs, uint32_t n_inputs, uint32_t expected_inputs,
                                       const um_tensor_desc *outputs, uint32_t n_outputs, uint32_t expected_outputs) {
  uint32_t i;
  if (n_inputs != expected_inputs || n_outputs != expected_outputs) return UM_UNSUPPORTED;
  for (i = 0; i < n_inputs + n_outputs; i++) {
    const um_tensor_desc *desc = i < n_inputs ? um_desc_at(inputs, i) : um_desc_at(outputs, i - n_inputs);
    if (desc->ndim < 0 || desc->ndim > UM_MAX_NDIM || um_dtype_index(desc->dtype) < 0) return UM_UNSUPPORTED;
  }
  return UM_OK;
}

/* ---- loops over tensors ------------------------------------------------------------------------------------- */

/* Walks several tensors together, row by row, in an iteration shape that all of them broadcast to:
 *
 *   um_rows rows;
 *   um_rows_start(&rows, out->dl.ndim, out->dl.shape);
 *   um_rows_add(&rows, out); um_rows_add(&rows, a); um_rows_add(&rows, b);
 *   while (um_rows_next(&rows))
 *     for (int64_t i = 0; i < rows.length; i++)
 *       *(float *)(rows.data[0] + i * rows.step[0]) = ...rows.data[1] + i * rows.step[1]...
 *
 * A tensor whose size along an axis is 1 is repeated along it, whatever its stride. Adjacent axes that are contiguous in
 * every tensor are joined, so contiguous tensors are one long row. At most UM_ROWS_MAX tensors. */
#define UM_ROWS_MAX 8
typedef struct um_rows {
  int64_t length;            /* of the present row */
  char *data[UM_ROWS_MAX];   /* its first element, per tensor */
  int64_t step[UM_ROWS_MAX]; /* bytes from element to element, per tensor */
  /* The rest is the walk's own. */
  int32_t ndim; /* outer axes after start, -1 before the first row */
  int32_t n;
  int32_t begun;
  int32_t done;
  int64_t shape[UM_MAX_NDIM + 1];
  int64_t index[UM_MAX_NDIM + 1];
  int64_t strides[UM_ROWS_MAX][UM_MAX_NDIM + 1];
} um_rows;

/* Begins a walk over `shape`, of `ndim` sizes. A shape without elements, or of an impossible rank, has no rows. */
static inline void um_rows_start(um_rows *rows, int32_t ndim, const int64_t *shape) {
  int32_t i;
  memset(rows, 0, sizeof *rows);
  if (ndim < 0 || ndim > UM_MAX_NDIM) {
    rows->done = 1;
    return;
  }
  rows->ndim = ndim;
  for (i = 0; i < ndim; i++) {
    rows->shape[i] = shape[i];
    if (shape[i] <= 0) rows->done = 1;
  }
}

/* Adds memory at `data`. Its strides are `strides` times `unit` bytes; `own_shape` may be NULL for the iteration shape.
 * Returns the tensor's index in `data` and `step`, or -1 if there is no room left, its rank is not that of the shape, or
 * the walk has begun; then the walk has no rows. */
static inline int32_t um_rows_add_strided(um_rows *rows, void *data, int32_t ndim, const int64_t *own_shape,
                                          const int64_t *strides, int64_t unit) {
  int32_t at = rows->n;
  int32_t i;
  if (at >= UM_ROWS_MAX || ndim != rows->ndim || rows->begun) {
    rows->done = 1;
    return -1;
  }
  rows->data[at] = (char *)data;
  for (i = 0; i < ndim; i++) {
    int stays = own_shape != NULL && own_shape[i] == 1;
    rows->strides[at][i] = stays ? 0 : strides[i] * unit;
  }
  rows->n = at + 1;
  return at;
}

/* Adds a tensor in host memory, as um_rows_add_strided does. */
static inline int32_t um_rows_add(um_rows *rows, const um_tensor *tensor) {
  return um_rows_add_strided(rows, um_data(tensor), tensor->dl.ndim, tensor->dl.shape, tensor->dl.strides,
                             (int64_t)um_dtype_size(tensor->dl.dtype));
}

/* Joins adjacent axes and takes the innermost as the row. um_rows_next calls it. */
static inline void um_rows_begin(um_rows *rows) {
  int32_t from, to = -1, t;
  for (from = 0; from < rows->ndim; from++) {
    int joins = to >= 0;
    if (rows->shape[from] == 1) continue;
    for (t = 0; joins && t < rows->n; t++) {
      joins = rows->strides[t][to] == rows->strides[t][from] * rows->shape[from];
    }
    if (!joins) to++;
    rows->shape[to] = joins ? rows->shape[to] * rows->shape[from] : rows->shape[from];
    for (t = 0; t < rows->n; t++) rows->strides[t][to] = rows->strides[t][from];
  }
  rows->length = to >= 0 ? rows->shape[to] : 1;
  for (t = 0; t < rows->n; t++) rows->step[t] = to >= 0 ? rows->strides[t][to] : 0;
  rows->ndim = to >= 0 ? to : 0;
  rows->begun = 1;
}

/* Goes to the next row, the first one at the first call. Returns 1, or 0 after the last row. */
static inline int um_rows_next(um_rows *rows) {
  int32_t axis, t;
  if (rows->done) return 0;
  if (!rows->begun) {
    um_rows_begin(rows);
    return 1;
  }
  for (axis = rows->ndim - 1; axis >= 0; axis--) {
    int wraps = ++rows->index[axis] == rows->shape[axis];
    int64_t steps = wraps ? 1 - rows->shape[axis] : 1;
    for (t = 0; t < rows->n; t++) rows->data[t] += steps * rows->strides[t][axis];
    if (!wraps) return 1;
    rows->index[axis] = 0;
  }
  rows->done = 1;
  return 0;
}

/* ---- tables, and buffers in host memory ----------------------------------------------------------------------- */

/* Returns a table of this version without functions. `name` is that of UM_DEFINE_BACKEND, a string literal. Fill in the
 * functions, then write the table to the host's place by um_write_sized. */
static inline um_backend_table um_table(const char *name, int32_t device_type) {
  um_backend_table table;
  memset(&table, 0, sizeof table);
  table.size = sizeof table;
  table.abi_major = UM_ABI_MAJOR;
  table.abi_minor = UM_ABI_MINOR;
  table.name = name;
  table.device_type = device_type;
  return table;
}

/* The functions of buffers for devices that compute in host memory (um_device_info.host_memory is 1). A buffer's handle is
 * its address. `um_host_memory_functions(&table)` puts all five into a table. */
#define UM_HOST_MEMORY_ALIGNMENT 256

static inline um_status um_host_buffer_alloc(void *device, uint64_t bytes, void **buffer, um_error **error) {
  const uint64_t rounded = bytes / UM_HOST_MEMORY_ALIGNMENT * UM_HOST_MEMORY_ALIGNMENT + UM_HOST_MEMORY_ALIGNMENT;
  (void)device, (void)error;
  *buffer = NULL;
  if (rounded < bytes || rounded > SIZE_MAX) return UM_OUT_OF_MEMORY;
#if defined(_WIN32)
  *buffer = _aligned_malloc((size_t)rounded, UM_HOST_MEMORY_ALIGNMENT);
#elif defined(__cplusplus) /* whose library may lack aligned_alloc before C++17, as C11's lacks posix_memalign */
  if (posix_memalign(buffer, UM_HOST_MEMORY_ALIGNMENT, (size_t)rounded) != 0) *buffer = NULL;
#else
  *buffer = aligned_alloc(UM_HOST_MEMORY_ALIGNMENT, (size_t)rounded);
#endif
  return *buffer == NULL ? UM_OUT_OF_MEMORY : UM_OK;
}
static inline void um_host_buffer_free(void *device, void *buffer) {
  (void)device;
#if defined(_WIN32)
  _aligned_free(buffer);
#else
  free(buffer);
#endif
}
static inline void *um_host_buffer_pointer(void *device, void *buffer) {
  (void)device;
  return buffer;
}
static inline um_status um_host_copy_to_device(void *device, void *stream, void *buffer, uint64_t offset,
                                               const void *source, uint64_t bytes, um_error **error) {
  (void)device, (void)stream, (void)error;
  memcpy((char *)buffer + offset, source, (size_t)bytes);
  return UM_OK;
}
static inline um_status um_host_copy_to_host(void *device, void *stream, void *buffer, uint64_t offset, void *target,
                                             uint64_t bytes, um_error **error) {
  (void)device, (void)stream, (void)error;
  memcpy(target, (const char *)buffer + offset, (size_t)bytes);
  return UM_OK;
}

static inline void um_host_memory_functions(um_backend_table *table) {
  table->buffer_alloc = um_host_buffer_alloc;
  table->buffer_free = um_host_buffer_free;
  table->buffer_host_pointer = um_host_buffer_pointer;
  table->copy_to_device = um_host_copy_to_device;
  table->copy_to_host = um_host_copy_to_host;
}

/* ---- streams and events of a synchronous backend ------------------------------------------------------------- */

/* The functions of streams and events for backends whose submit and copies are done on return (um_device_info.synchronous
 * is 1). A stream has no state; an event is a number that threads can wait for. A stream that has to wait for an event
 * makes the calling thread wait. `um_sync_functions(&table)` puts all nine into a table. */
typedef struct um_sync_event {
#if defined(_WIN32)
  SRWLOCK lock;
  CONDITION_VARIABLE changed;
#else
  pthread_mutex_t lock;
  pthread_cond_t changed;
#endif
  uint64_t value;
} um_sync_event;

#if defined(_WIN32)
#define UM_SYNC_LOCK(event) AcquireSRWLockExclusive(&(event)->lock)
#define UM_SYNC_UNLOCK(event) ReleaseSRWLockExclusive(&(event)->lock)
#define UM_SYNC_WAIT(event) SleepConditionVariableSRW(&(event)->changed, &(event)->lock, INFINITE, 0)
#define UM_SYNC_WAKE(event) WakeAllConditionVariable(&(event)->changed)
#else
#define UM_SYNC_LOCK(event) pthread_mutex_lock(&(event)->lock)
#define UM_SYNC_UNLOCK(event) pthread_mutex_unlock(&(event)->lock)
#define UM_SYNC_WAIT(event) pthread_cond_wait(&(event)->changed, &(event)->lock)
#define UM_SYNC_WAKE(event) pthread_cond_broadcast(&(event)->changed)
#endif

static inline um_status um_sync_stream_create(void *device, void **stream, um_error **error) {
  (void)device, (void)error;
  *stream = malloc(1); /* a handle of its own, so that streams can be distinguished */
  return *stream == NULL ? UM_OUT_OF_MEMORY : UM_OK;
}
static inline void um_sync_stream_destroy(void *device, void *stream) {
  (void)device;
  free(stream);
}
static inline um_status um_sync_stream_synchronize(void *device, void *stream, um_error **error) {
  (void)device, (void)stream, (void)error;
  return UM_OK;
}
static inline um_status um_sync_event_create(void *device, void **event, um_error **error) {
  um_sync_event *made = (um_sync_event *)calloc(1, sizeof(um_sync_event));
  (void)device, (void)error;
  *event = NULL;
  if (made == NULL) return UM_OUT_OF_MEMORY;
#if defined(_WIN32)
  InitializeSRWLock(&made->lock);
  InitializeConditionVariable(&made->changed);
#else
  if (pthread_mutex_init(&made->lock, NULL) != 0) {
    free(made);
    return UM_OUT_OF_MEMORY;
  }
  if (pthread_cond_init(&made->changed, NULL) != 0) {
    pthread_mutex_destroy(&made->lock);
    free(made);
    return UM_OUT_OF_MEMORY;
  }
#endif
  *event = made;
  return UM_OK;
}
static inline um_status um_sync_event_record(void *device, void *stream, void *event, uint64_t value,
                                             um_error **error) {
  um_sync_event *e = (um_sync_event *)event;
  (void)device, (void)stream, (void)error;
  UM_SYNC_LOCK(e);
  if (value > e->value) {
    e->value = value;
    UM_SYNC_WAKE(e);
  }
  UM_SYNC_UNLOCK(e);
  return UM_OK;
}
static inline um_status um_sync_event_wait_host(void *device, void *event, uint64_t value, um_error **error) {
  um_sync_event *e = (um_sync_event *)event;
  (void)device, (void)error;
  UM_SYNC_LOCK(e);
  while (e->value < value) UM_SYNC_WAIT(e);
  UM_SYNC_UNLOCK(e);
  return UM_OK;
}
static inline um_status um_sync_event_wait_stream(void *device, void *stream, void *event, uint64_t value,
                                                  um_error **error) {
  (void)stream;
  return um_sync_event_wait_host(device, event, value, error);
}
static inline uint64_t um_sync_event_query(void *device, void *event) {
  um_sync_event *e = (um_sync_event *)event;
  uint64_t value;
  (void)device;
  UM_SYNC_LOCK(e);
  value = e->value;
  UM_SYNC_UNLOCK(e);
  return value;
}
static inline void um_sync_event_destroy(void *device, void *event) {
  um_sync_event *e = (um_sync_event *)event;
  (void)device;
  if (e == NULL) return;
#if !defined(_WIN32)
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->lock);
#endif
  free(e);
}

static inline void um_sync_functions(um_backend_table *table) {
  table->stream_create = um_sync_stream_create;
  table->stream_destroy = um_sync_stream_destroy;
  table->stream_synchronize = um_sync_stream_synchronize;
  table->event_create = um_sync_event_create;
  table->event_record = um_sync_event_record;
  table->event_wait_stream = um_sync_event_wait_stream;
  table->event_wait_host = um_sync_event_wait_host;
  table->event_query = um_sync_event_query;
  table->event_destroy = um_sync_event_destroy;
}

#endif
