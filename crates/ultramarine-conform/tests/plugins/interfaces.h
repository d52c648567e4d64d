/* Optional interfaces for the minimal backend: statistics, memory, peer copies, profiler ranges and replay, with what the
 * faults of tests/faults.rs make of them. Buffers are known by a list, since a buffer is its address. */
typedef struct known known;
struct known {
  known *next;
  void *device, *data;
  uint64_t bytes;
  um_foreign_memory foreign; /* of an import */
  void *copy;                /* FAULT_IMPORT_COPIES */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static known *list;
static uint64_t active[DEVICES], peak[DEVICES];

static unsigned place_of(const void *device) { return (unsigned)((const char *)device - (const char *)devices) / (unsigned)sizeof devices[0]; }

static um_status remember(void *device, void *data, uint64_t bytes, const um_foreign_memory *foreign, um_error **error) {
  known *k = (known *)calloc(1, sizeof *k);
  const unsigned d = place_of(device);
  if (k == NULL) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a buffer");
  k->device = device, k->data = data, k->bytes = bytes;
  if (foreign) um_read_sized(&k->foreign, sizeof k->foreign, foreign);
  pthread_mutex_lock(&list_lock);
  k->next = list, list = k;
  if (!foreign) active[d] += bytes;
  if (active[d] > peak[d]) peak[d] = active[d];
  pthread_mutex_unlock(&list_lock);
  return UM_OK;
}

static um_status known_alloc(void *device, uint64_t bytes, void **buffer, um_error **error) {
  const um_status status = buffer_alloc(device, bytes, buffer, error);
  return status == UM_OK ? remember(device, *buffer, bytes, NULL, error) : status;
}

static void known_free(void *device, void *buffer) {
  known **at, *k;
  pthread_mutex_lock(&list_lock);
  for (at = &list; *at && (*at)->data != buffer;) at = &(*at)->next;
  k = *at;
  if (k) *at = k->next;
#ifndef FAULT_STATISTICS
  if (k && !k->foreign.size) active[place_of(device)] -= k->bytes;
#endif
  pthread_mutex_unlock(&list_lock);
  if (k && k->foreign.size) {
#ifdef FAULT_WRITES_READ_ONLY
    if (k->foreign.flags & UM_MEMORY_READ_ONLY) memset(k->data, 0xff, 8);
#endif
#if !defined FAULT_NEVER_RELEASES && !defined FAULT_RELEASES_EARLY
    if (k->foreign.release) k->foreign.release(k->foreign.context);
#endif
#ifdef FAULT_RELEASES_TWICE
    if (k->foreign.release) k->foreign.release(k->foreign.context);
#endif
    free(k->copy);
  } else {
    buffer_free(device, buffer);
  }
  free(k);
}

static um_status statistics_read(void *device, um_memory_statistics *to, um_error **error) {
  um_memory_statistics filled = {0};
  (void)error;
  pthread_mutex_lock(&list_lock);
  filled.size = sizeof filled, filled.active = active[place_of(device)], filled.peak = peak[place_of(device)];
  pthread_mutex_unlock(&list_lock);
  um_write_sized(to, &filled, sizeof filled);
  return UM_OK;
}

static void statistics_reset(void *device) { peak[place_of(device)] = active[place_of(device)]; }

static um_status memory_import(void *device, const um_foreign_memory *memory, void **buffer, um_error **error) {
  um_foreign_memory block;
  if (!um_read_sized(&block, sizeof block, memory)) return um_fail(host, error, UM_INVALID, "no memory");
  if (block.kind != UM_MEMORY_HOST) {
#ifdef FAULT_RELEASES_ON_FAILURE
    if (block.release) block.release(block.context);
#endif
    return um_fail(host, error, UM_UNSUPPORTED, "host memory only");
  }
#ifndef FAULT_IMPORTS_NOTHING
  if (!block.handle || !block.bytes) return um_fail(host, error, UM_INVALID, "no memory");
#endif
#ifdef FAULT_IGNORES_OFFSET
  block.offset = 0;
#endif
  *buffer = (void *)(uintptr_t)(block.handle + block.offset);
#ifdef FAULT_IMPORT_COPIES
  *buffer = memcpy(malloc((size_t)block.bytes), *buffer, (size_t)block.bytes);
#endif
  const um_status status = remember(device, *buffer, block.bytes, memory, error);
#ifdef FAULT_IMPORT_COPIES
  list->copy = *buffer;
#endif
#ifdef FAULT_RELEASES_EARLY
  if (block.release) block.release(block.context);
#endif
  return status;
}

static um_status memory_export(void *device, void *buffer, uint32_t kind, um_foreign_memory *memory, um_error **error) {
  um_foreign_memory filled = {0};
  (void)device;
#ifndef FAULT_EXPORTS_ANY
  if (kind != UM_MEMORY_HOST) return um_fail(host, error, UM_UNSUPPORTED, "host memory only");
#endif
  filled.size = sizeof filled, filled.kind = kind, filled.handle = (uintptr_t)buffer, filled.bytes = UINT64_MAX;
  pthread_mutex_lock(&list_lock);
  for (const known *k = list; k; k = k->next) {
    if (k->data == buffer) filled.bytes = k->bytes;
  }
  pthread_mutex_unlock(&list_lock);
#ifdef FAULT_EXPORTS_ELSEWHERE
  filled.handle = (uintptr_t)memcpy(malloc((size_t)filled.bytes), buffer, (size_t)filled.bytes);
#endif
#ifdef FAULT_EXPORTS_LESS
  filled.bytes /= 2;
#endif
  um_write_sized(memory, &filled, sizeof filled);
  return UM_OK;
}

static um_status peer_copy(void *target_device, void *stream, void *target, uint64_t target_offset, void *source_device,
                           void *source, uint64_t source_offset, uint64_t bytes, um_error **error) {
  (void)target_device, (void)stream, (void)source_device, (void)error;
#ifdef FAULT_PEER_OFFSET
  source_offset = 0;
#endif
  memcpy((char *)target + target_offset, (const char *)source + source_offset, (size_t)bytes);
  return UM_OK;
}

static void push(void *device, void *stream, const char *name) { (void)device, (void)stream, (void)name; }
static void pop(void *device, void *stream) { (void)device, (void)stream; }

/* A recording of one command of few tensors. */
typedef struct recording {
  um_command command;
  um_tensor tensors[4];
  int64_t shapes[4][8], strides[4][8];
  uint64_t scalars[2][2];
} recording;

static um_status capture(void *device, const um_command *commands, uint32_t n, void **made, um_error **error) {
  recording *r = (recording *)calloc(1, sizeof *r);
  const uint32_t inputs = n ? commands->n_inputs : 0;
  (void)device;
  if (r == NULL) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a recording");
  if (n != 1 || inputs > 3 || commands->n_scalars > 2) {
    free(r);
    return um_fail(host, error, UM_UNSUPPORTED, "one small command only");
  }
  r->command = *commands;
  for (uint32_t i = 0; i <= inputs; i++) {
    const um_tensor *t = i < inputs ? um_input(commands, i) : um_output(commands, 0);
    r->tensors[i] = *t;
    for (int32_t d = 0; d < t->dl.ndim && d < 8; d++) r->shapes[i][d] = t->dl.shape[d], r->strides[i][d] = t->dl.strides[d];
    r->tensors[i].dl.shape = r->shapes[i], r->tensors[i].dl.strides = r->strides[i];
  }
  for (uint32_t i = 0; i < commands->n_scalars; i++) memcpy(r->scalars[i], um_scalar(commands, i), sizeof r->scalars[i]);
  r->command.inputs = r->tensors, r->command.outputs = &r->tensors[inputs];
  r->command.scalars = (const uint64_t (*)[2])r->scalars, r->command.tensor_stride = sizeof(um_tensor);
  *made = r;
#ifdef FAULT_REPLAYS_AT_ONCE
  r->command.n_outputs = 0;
  return submit(device, NULL, commands, 1, error);
#else
  return UM_OK;
#endif
}

static um_status replay(void *device, void *stream, void *made, um_error **error) {
  const recording *r = (const recording *)made;
  if (r->command.n_outputs == 0) return UM_OK;
  return submit(device, stream, &r->command, 1, error);
}

static void forget(void *device, void *made) {
  (void)device;
  free(made);
}

static const void *find(void *backend, const char *id) {
  static const um_statistics_interface statistics = {
      .size = sizeof statistics, .read = statistics_read, .reset_peak = statistics_reset};
  static const um_memory_interface memory = {.size = sizeof memory,
                                             .imports = 1u << UM_MEMORY_HOST,
                                             .exports = 1u << UM_MEMORY_HOST,
                                             .import_ = memory_import,
                                             .export_ = memory_export};
  static const um_peer_interface peer = {.size = sizeof peer, .copy = peer_copy};
  static const um_profile_interface profile = {.size = sizeof profile, .range_push = push, .range_pop = pop};
  static const um_replay_interface replays = {
      .size = sizeof replays, .capture = capture, .replay = replay, .release = forget};
  (void)backend;
  if (!strcmp(id, UM_STATISTICS_INTERFACE)) return &statistics;
  if (!strcmp(id, UM_MEMORY_INTERFACE)) return &memory;
  if (!strcmp(id, UM_PEER_INTERFACE)) return &peer;
  if (!strcmp(id, UM_PROFILE_INTERFACE)) return &profile;
  if (!strcmp(id, UM_REPLAY_INTERFACE)) return &replays;
#ifdef FAULT_ANY_INTERFACE
  return &peer;
#else
  return NULL;
#endif
}
