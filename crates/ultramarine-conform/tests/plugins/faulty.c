/* The minimal backend with one fault, which the compiler's command line names: -DFAULT_... What the kit must say of
 * each is in tests/faults.rs. Without a name it is the minimal backend; -DWITH_INTERFACES gives it interfaces.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <ultramarine/helper.h>

#ifdef FAULT_NO_NOTE
#undef UM_DEFINE_BACKEND
#define UM_DEFINE_BACKEND(...) extern int nothing_here
#endif
#ifdef FAULT_NOTE_DISAGREES
#define ultramarine_backend_abi_info minimal_abi_info
#endif
#define ultramarine_backend_init minimal_init
#ifdef FAULT_SCORE_STARTS_THREAD
#define ultramarine_backend_score minimal_score
#endif
#include "../../../../examples/backends/minimal/minimal.c"
#undef ultramarine_backend_init
#undef ultramarine_backend_score
#undef ultramarine_backend_abi_info

#ifdef FAULT_NO_NOTE
um_status ultramarine_backend_abi_info(um_backend_abi_info *info) {
  um_backend_abi_info filled = {0};
  filled.size = sizeof filled;
  filled.abi_major = UM_ABI_MAJOR, filled.abi_minor = UM_ABI_MINOR;
  filled.dlpack_major = UM_DLPACK_MAJOR, filled.dlpack_minor = UM_DLPACK_MINOR;
  filled.table_size = sizeof(um_backend_table);
  filled.pointer_bits = 64, filled.endianness = UM_LITTLE_ENDIAN, filled.device_type = kDLExtDev;
  memcpy(filled.name, "minimal", 7);
  um_write_sized(info, &filled, sizeof filled);
  return UM_OK;
}
#endif

#ifdef FAULT_NOTE_DISAGREES
um_status ultramarine_backend_abi_info(um_backend_abi_info *info) {
  um_status status = minimal_abi_info(info);
  if (info->size >= sizeof *info) memcpy(info->version, "9.9.9", 6);
  return status;
}
#endif

#ifdef FAULT_SCORE_STARTS_THREAD
static void *idle(void *argument) {
  for (;;) pause();
  return argument;
}

um_status ultramarine_backend_score(um_backend_score *score) {
  pthread_t thread;
  pthread_create(&thread, NULL, idle, NULL);
  return minimal_score(score);
}
#endif

#ifdef FAULT_EXTRA_SYMBOL
UM_EXPORT int fast_path(void) { return 1; }
#endif

/* ---- ops ---------------------------------------------------------------------------------------------------- */

#ifdef FAULT_PLAIN_SUM
/* float32 added up one by one. */
static void plain_sum(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  const DLTensor *in = &t[0]->dl, *out = &t[1]->dl;
  int64_t reduced[UM_MAX_NDIM];
  um_rows kept, inner;
  for (int32_t i = 0; i < in->ndim; i++) reduced[i] = p->axes >> i & 1 ? in->shape[i] : 1;
  um_rows_start(&kept, out->ndim, out->shape);
  um_rows_add_strided(&kept, um_data(t[0]), in->ndim, out->shape, in->strides, 4);
  um_rows_add(&kept, t[1]);
  while (um_rows_next(&kept))
    for (int64_t i = 0; i < kept.length; i++) {
      float sum = 0;
      um_rows_start(&inner, in->ndim, reduced);
      um_rows_add_strided(&inner, kept.data[0] + i * kept.step[0], in->ndim, reduced, in->strides, 4);
      while (um_rows_next(&inner))
        for (int64_t k = 0; k < inner.length; k++) sum += load(inner.data[0] + k * inner.step[0], 4).f;
      memcpy(kept.data[1] + i * kept.step[1], &sum, sizeof sum);
    }
  (void)scalars;
}
#endif

static um_status faulty_prepare(void *device, uint32_t op, uint32_t revision, const void *attributes,
                                const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                                uint32_t n_outputs, void **result, um_error **error) {
  um_unary_attrs attrs = {0};
  if (op == UM_OP_UNARY || op == UM_OP_BINARY) um_read_sized(&attrs, sizeof attrs, attributes);
#ifdef FAULT_WRONG_RESULT
  if (op == UM_OP_BINARY && attrs.op == UM_BINARY_SUBTRACT) attrs.op = UM_BINARY_ADD, attributes = &attrs;
#endif
#ifdef FAULT_ANY_RANK
  um_tensor_desc first = {0};
  if (op == UM_OP_UNARY && n_inputs == 1) first = *inputs, first.ndim = 1, inputs = &first, outputs = &first;
#endif
#ifdef FAULT_ANY_REVISION
  revision = 1;
#endif
#ifdef FAULT_IGNORES_TAIL
  if (op == UM_OP_UNARY) attrs.size = sizeof attrs, attributes = &attrs;
#endif
#ifdef FAULT_CRASH
  if (op == UM_OP_UNARY && attrs.op == UM_UNARY_SIN) raise(SIGSEGV);
#endif
#ifdef FAULT_NO_MATMUL
  if (op == UM_OP_MATMUL) return UM_UNSUPPORTED;
#endif
#ifdef FAULT_COY
  if (op == UM_OP_FILL) return UM_NEEDS_CONTIGUOUS;
#endif
#ifdef FAULT_ERROR_FOR_UNSUPPORTED
  if (op > UM_OP_RANDOM_BITS) return um_fail(host, error, UM_ERROR, "what is this?");
#endif
#ifdef FAULT_LEAKED_PLANS
  if (!host->alloc(host->host, 64)) return UM_OUT_OF_MEMORY;
#endif
  um_status made = prepare(device, op, revision, attributes, inputs, n_inputs, outputs, n_outputs, result, error);
#ifdef FAULT_PLAIN_SUM
  if (made == UM_OK && op == UM_OP_REDUCE && ((plan *)*result)->code == UM_REDUCE_SUM) ((plan *)*result)->run = plain_sum;
#endif
  return made;
}

static um_status faulty_submit(void *device, void *stream, const um_command *commands, uint32_t n, um_error **error) {
#ifdef FAULT_REFUSES_SIZE
  if (n && um_output(commands, 0)->dl.ndim && um_output(commands, 0)->dl.shape[0] == 1000)
    return um_fail(host, error, UM_UNSUPPORTED, "1000 is too many");
#endif
#ifdef FAULT_FIRST_OF_LIST
  if (n > 2) n = 1; /* the rest is forgotten */
#endif
#ifdef FAULT_LIST_BACKWARDS
  for (uint32_t i = n; i-- > 1;) submit(device, stream, um_command_at(commands, i), 1, NULL);
  if (n > 1) n = 1;
#endif
#ifdef FAULT_MUTE_LIST
  um_host_table mute = *host;
  const um_host_table *lent = host;
  mute.error_command = NULL, host = &mute;
#endif
  um_status status = submit(device, stream, commands, n, error);
#ifdef FAULT_MUTE_LIST
  host = lent;
#endif
#ifdef FAULT_WRONG_COMMAND
  if (status != UM_OK) um_fail_command(host, error, 7, status);
#endif
#ifdef FAULT_GOES_ON
  for (uint32_t i = 0; i < n && status != UM_OK; i++) submit(device, stream, um_command_at(commands, i), 1, NULL);
#endif
  for (uint32_t i = 0; i < n; i++) {
    const um_command *c = um_command_at(commands, i);
    const um_tensor *out = um_output(c, 0);
    (void)out;
#ifdef FAULT_SPILLS
    if (out->buffer_size > out->dl.byte_offset) ((char *)out->dl.data)[out->buffer_size - 1] = 0;
#endif
#ifdef FAULT_NOT_DETERMINISTIC
    static uint32_t calls; /* every second result is a last place off */
    if (c->n_inputs == 1) *(uint32_t *)um_data(out) ^= calls++ & 1;
#endif
#ifdef FAULT_WRITES_INPUT
    if (c->n_inputs == 2 && um_input(c, 0)->dl.data != out->dl.data) *(char *)um_data(um_input(c, 0)) ^= 1;
#endif
  }
  return status;
}

/* ---- memory, errors, events --------------------------------------------------------------------------------- */

static void faulty_free(void *device, void *buffer) {
#ifdef FAULT_LEAK
  (void)device, (void)buffer;
#else
  um_host_buffer_free(device, buffer);
#endif
#ifdef FAULT_DOUBLE_FREE
  {
    void *volatile again = buffer; /* or the compiler sees it coming */
    free(again);
  }
#endif
}

static um_status faulty_alloc(void *device, uint64_t bytes, void **buffer, um_error **error) {
#ifdef FAULT_EXHAUSTION
  if (bytes > (uint64_t)1 << 40) return um_fail(host, error, UM_ERROR, "too much");
#endif
  return um_host_buffer_alloc(device, bytes, buffer, error);
}

static um_status faulty_info(void *backend, uint32_t index, um_device_info *info, um_error **error) {
#ifdef FAULT_SILENT_ERROR
  if (index >= DEVICES) return UM_INVALID;
#endif
#ifdef FAULT_FOREIGN_ERROR
  if (index >= DEVICES) {
    if (error) *error = (um_error *)malloc(64);
    return UM_INVALID;
  }
#endif
#ifdef FAULT_WRITES_WHOLE_STRUCT
  if (index < DEVICES) {
    um_device_info filled;
    filled.size = sizeof filled;
    device_info(backend, index, &filled, error);
    memcpy(info, &filled, sizeof filled);
    return UM_OK;
  }
#endif
#ifdef FAULT_CLAIMS_FLOAT64
  {
    um_device_info claimed = {.size = sizeof claimed};
    um_status status = device_info(backend, index, &claimed, error);
    claimed.dtypes_arithmetic |= UM_DTYPE_BIT(UM_DTYPE_FLOAT64);
    if (status == UM_OK) um_write_sized(info, &claimed, sizeof claimed);
    return status;
  }
#endif
  return device_info(backend, index, info, error);
}

#ifdef FAULT_IGNORES_WAITS
static um_status no_wait(void *device, void *stream, void *event, uint64_t value, um_error **error) {
  (void)device, (void)stream, (void)event, (void)value, (void)error;
  return UM_OK;
}
#endif
#ifdef FAULT_NULL_STREAM
static um_status no_stream(void *device, void **stream, um_error **error) {
  (void)device, (void)error;
  *stream = NULL;
  return UM_OK;
}
#endif

#ifdef FAULT_SPINS
static um_status spin(void *device, void *event, uint64_t value, um_error **error) {
  (void)device, (void)event, (void)value, (void)error;
  for (volatile int i = 1; i;) continue;
  return UM_OK;
}
#endif

#ifdef FAULT_HANG
static um_status endless(void *device, void *event, uint64_t value, um_error **error) {
  (void)device, (void)event, (void)value, (void)error;
  for (;;) pause();
}
#endif

#ifdef WITH_INTERFACES
#include "interfaces.h"
#endif

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *table, um_error **error) {
  um_backend_table t = {0};
  t.size = sizeof t;
  const um_status status = minimal_init(lent, &t, error);
  t.prepare = faulty_prepare;
  t.submit = faulty_submit;
  t.buffer_alloc = faulty_alloc;
  t.buffer_free = faulty_free;
  t.device_info = faulty_info;
#ifdef WITH_INTERFACES
  t.buffer_alloc = known_alloc;
  t.buffer_free = known_free;
  t.interface_ = find;
#endif
#ifdef FAULT_IGNORES_WAITS
  t.event_wait_stream = no_wait;
#endif
#ifdef FAULT_NULL_STREAM
  t.stream_create = no_stream;
#endif
#ifdef FAULT_SPINS
  t.event_wait_host = spin;
#endif
#ifdef FAULT_HANG
  t.event_wait_host = endless;
#endif
#ifdef FAULT_LACKS_EVENTS
  t.event_query = NULL;
#endif
#ifdef FAULT_LONG_TABLE
  memcpy(table, &t, sizeof t);
#else
  um_write_sized(table, &t, sizeof t);
#endif
  return status;
}
