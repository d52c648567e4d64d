/* Optional interfaces for the minimal backend: statistics, memory, peer copies, timestamps and recordings, with what the
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

static unsigned place_of(const void *device) { return (unsigned)(uintptr_t)device - 1; }

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
  const um_status status = um_host_buffer_alloc(device, bytes, buffer, error);
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
    um_host_buffer_free(device, buffer);
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

/* Memory that is lent, of which there is not much. */
#define PIECES 4
typedef struct piece {
  char *memory;
  int out;
} piece;
static piece pieces[PIECES];

static um_status lend(void *device, void *stream, uint64_t bytes, um_upload_piece *to, um_error **error) {
  um_upload_piece filled = {0};
  (void)device, (void)stream;
  for (unsigned i = 0; i < PIECES; i++) {
    piece *p = &pieces[i];
#ifndef FAULT_LENDS_TWICE
    if (p->out) continue;
#endif
    if (!p->memory) p->memory = (char *)malloc(4u << 20);
    if (!p->memory) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory to lend");
    p->out = 1;
    filled.size = sizeof filled, filled.handle = p, filled.memory = p->memory, filled.bytes = bytes;
#ifdef FAULT_LENDS_LESS
    filled.bytes = bytes / 2;
#endif
    um_write_sized(to, &filled, sizeof filled);
    return UM_OK;
  }
  return um_fail(host, error, UM_UNSUPPORTED, "all memory is lent");
}

static um_status copy_lent(void *device, void *stream, void *lent, void *buffer, uint64_t offset, uint64_t bytes,
                           um_error **error) {
  piece *p = (piece *)lent;
  (void)device, (void)stream, (void)error;
#ifdef FAULT_COPIES_TO_THE_START
  offset = 0;
#endif
#ifdef FAULT_COPIES_MORE
  bytes++;
#endif
#ifdef FAULT_LENDS_EARLY
  /* The memory is lent again before it is read. */
  static struct { piece *from; char *to; uint64_t bytes; } last;
  if (last.from) memcpy(last.to, last.from->memory, (size_t)last.bytes);
  last.from = p, last.to = (char *)buffer + offset, last.bytes = bytes;
#else
  memcpy((char *)buffer + offset, p->memory, (size_t)bytes);
#endif
  p->out = 0;
  return UM_OK;
}

static void take_back(void *device, void *lent) {
  (void)device;
#ifdef FAULT_LOSES_PIECES
  (void)lent;
#else
  ((piece *)lent)->out = 0;
#endif
}

/* A timestamp; `asked`: how often FAULT_CLOCK_CHANGES was asked for it. */
typedef struct slot {
  uint64_t time, asked;
} slot;

static um_status mark(void *device, void *stream, void **made, um_error **error) {
  struct timespec now;
  slot *s = (slot *)calloc(1, sizeof *s);
  (void)device, (void)stream;
  if (s == NULL) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a slot");
  clock_gettime(CLOCK_MONOTONIC, &now);
  s->time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#ifdef FAULT_CLOCK_GOES_BACK
  s->time = UINT64_MAX / 2 - s->time;
#endif
#ifdef FAULT_CLOCK_IN_TICKS
  s->time *= 1000;
#endif
#ifdef FAULT_CLOCK_PER_STREAM
  static uint64_t count;
  s->time -= ++count * 1000000000u;
#endif
  *made = s;
  return UM_OK;
}

static um_status resolve(void *device, void *made, uint64_t *nanoseconds, uint32_t *ready, um_error **error) {
  slot *s = (slot *)made;
  (void)device, (void)error;
#ifdef FAULT_CLOCK_CHANGES
  s->time += s->asked++;
#endif
#ifdef FAULT_NEVER_READY
  *ready = 0;
  return UM_OK;
#endif
  *nanoseconds = s->time, *ready = 1;
  return UM_OK;
}

static void release_slot(void *device, void *made) {
  (void)device;
  free(made);
}

static void push(void *device, void *stream, const char *name) { (void)device, (void)stream, (void)name; }
#ifndef FAULT_PUSH_ALONE
static void pop(void *device, void *stream) { (void)device, (void)stream; }
#endif

/* A command of a recording, with all that it points at. */
typedef struct recorded {
  um_command command;
  um_tensor tensors[4];
  um_memory_source sources[4];
  uint64_t offsets[4]; /* from the slot's or the arena's beginning */
  int64_t shapes[4][8], strides[4][8];
  uint64_t scalars[2][2];
  uint32_t scalar_slots[2];
} recorded;

typedef struct recording {
  uint32_t n_commands, n_slots, n_scalars, replays;
  recorded commands[];
} recording;

static um_status keep(recorded *to, const recording *of, const um_recorded_command *from, um_error **error) {
  um_command c;
  uint32_t tensors;
  um_read_sized(&c, sizeof c, from->command);
  tensors = c.n_inputs + c.n_outputs;
  if (tensors > 4 || c.n_scalars > 2 || from->workspace.kind != UM_SOURCE_FIXED)
    return um_fail(host, error, UM_UNSUPPORTED, "small commands only");
  if (to->command.plan && (to->command.plan != c.plan || to->command.n_inputs != c.n_inputs))
    return um_fail(host, error, UM_INVALID, "an update with another plan");
  for (uint32_t i = 0; i < tensors; i++) {
    const um_memory_source source = from->sources ? from->sources[i] : (um_memory_source){0, 0};
    if (source.kind == UM_SOURCE_BOUND && source.slot >= of->n_slots) return um_fail(host, error, UM_INVALID, "no such slot");
  }
  to->command = c;
  for (uint32_t i = 0; i < tensors; i++) {
    const um_tensor *t = i < c.n_inputs ? um_input(&c, i) : um_output(&c, i - c.n_inputs);
    to->tensors[i] = *t;
    to->sources[i] = from->sources ? from->sources[i] : (um_memory_source){0, 0};
    to->offsets[i] = t->dl.byte_offset;
    for (int32_t d = 0; d < t->dl.ndim && d < 8; d++) to->shapes[i][d] = t->dl.shape[d], to->strides[i][d] = t->dl.strides[d];
    to->tensors[i].dl.shape = to->shapes[i], to->tensors[i].dl.strides = to->strides[i];
  }
  for (uint32_t i = 0; i < c.n_scalars; i++) {
    memcpy(to->scalars[i], um_scalar(&c, i), sizeof to->scalars[i]);
    to->scalar_slots[i] = from->scalar_slots ? from->scalar_slots[i] : UM_FIXED_SCALAR;
  }
  to->command.inputs = to->tensors, to->command.outputs = &to->tensors[c.n_inputs];
  to->command.scalars = (const uint64_t (*)[2])to->scalars, to->command.tensor_stride = sizeof(um_tensor);
  return UM_OK;
}

static void forget(void *device, void *made) {
  (void)device;
#ifndef FAULT_LEAKS_RECORDINGS
  free(made);
#endif
}

static um_status record(void *device, const um_recording_request *given, void **made, uint64_t *arena_bytes,
                        um_error **error) {
  um_recording_request request;
  recording *r;
  um_read_sized(&request, sizeof request, given);
  r = (recording *)calloc(1, sizeof *r + request.n_commands * sizeof r->commands[0]);
  if (r == NULL) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a recording");
  r->n_commands = request.n_commands, r->n_slots = request.n_slots, r->n_scalars = request.n_scalars;
  for (uint32_t i = 0; i < request.n_commands; i++) {
    const um_recorded_command *c = (const um_recorded_command *)((const char *)request.commands + i * (size_t)request.commands->size);
    const um_status status = keep(&r->commands[i], r, c, error);
    if (status != UM_OK) return free(r), status;
#ifdef FAULT_RECORDS_AND_RUNS
    if (!c->sources || c->sources[c->command->n_inputs].kind == UM_SOURCE_FIXED) submit(device, NULL, c->command, 1, error);
#endif
  }
  (void)device;
  *made = r, *arena_bytes = request.arena_bytes;
  return UM_OK;
}

static um_status replay(void *device, void *stream, void *made, const um_replay_bindings *given, um_error **error) {
  recording *r = (recording *)made;
  um_replay_bindings b;
  um_read_sized(&b, sizeof b, given);
#ifdef FAULT_TAKES_FEW_SLOTS
  if (b.n_slots != r->n_slots) return UM_OK;
#endif
  if (b.n_slots != r->n_slots || b.n_scalars != r->n_scalars) return um_fail(host, error, UM_INVALID, "other slots");
  for (uint32_t i = 0; i < r->n_commands; i++) {
    recorded *c = &r->commands[i];
    um_status status;
    for (uint32_t t = 0; t < c->command.n_inputs + c->command.n_outputs; t++) {
      const um_memory_source s = c->sources[t];
      const um_slot_memory *m = s.kind == UM_SOURCE_ARENA ? &b.arena : &b.slots[s.slot];
      if (s.kind == UM_SOURCE_FIXED) continue;
#ifdef FAULT_BINDS_ONCE
      if (r->replays && s.kind == UM_SOURCE_BOUND) continue;
#endif
      c->tensors[t].buffer = m->buffer, c->tensors[t].buffer_size = m->bytes, c->tensors[t].dl.data = m->data;
      c->tensors[t].dl.byte_offset = c->offsets[t];
#ifndef FAULT_IGNORES_SLOT_OFFSETS
      c->tensors[t].dl.byte_offset += m->offset;
#endif
    }
    for (uint32_t k = 0; k < c->command.n_scalars; k++) {
      if (c->scalar_slots[k] == UM_FIXED_SCALAR) continue;
#ifdef FAULT_BINDS_SCALARS_ONCE
      if (r->replays) continue;
#endif
      memcpy(c->scalars[k], b.scalars[c->scalar_slots[k]], sizeof c->scalars[k]);
    }
    status = submit(device, stream, &c->command, 1, error);
    if (status != UM_OK) return status;
  }
  r->replays++;
  return UM_OK;
}

static um_status update(void *device, void *made, uint32_t index, const um_recorded_command *given, um_error **error) {
  recording *r = (recording *)made;
  um_recorded_command c;
  (void)device;
  um_read_sized(&c, sizeof c, given);
  if (index >= r->n_commands) return um_fail(host, error, UM_INVALID, "there is no such command");
#ifdef FAULT_IGNORES_UPDATES
  {
    recorded unused = r->commands[index];
    return keep(&unused, r, &c, error);
  }
#else
  return keep(&r->commands[index], r, &c, error);
#endif
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
  static const um_timing_interface timing = {.size = sizeof timing,
                                             .mark = mark,
                                             .resolve = resolve,
                                             .release = release_slot,
#ifndef FAULT_PUSH_ALONE
                                             .range_pop = pop,
#endif
                                             .range_push = push};
  static const um_upload_interface uploads = {
      .size = sizeof uploads, .lend = lend, .copy = copy_lent, .give_back = take_back};
  static const um_replay_interface replays = {
      .size = sizeof replays, .record = record, .replay = replay, .update = update, .release = forget};
  (void)backend;
  if (!strcmp(id, UM_STATISTICS_INTERFACE)) return &statistics;
  if (!strcmp(id, UM_MEMORY_INTERFACE)) return &memory;
  if (!strcmp(id, UM_PEER_INTERFACE)) return &peer;
  if (!strcmp(id, UM_TIMING_INTERFACE)) return &timing;
  if (!strcmp(id, UM_UPLOAD_INTERFACE)) return &uploads;
  if (!strcmp(id, UM_REPLAY_INTERFACE)) return &replays;
#ifdef FAULT_ANY_INTERFACE
  return &peer;
#else
  return NULL;
#endif
}
