/* A backend that is another one, but for calls that fail when it is told so: allocations, uploads, submissions.
 *
 *   -DNAME='"cuda"' -DDEVICE_TYPE=kDLCUDA -DINNER='"/path/of/the/library.so"'
 *
 * The errors are those that drivers give: the call has done nothing, and the next one may succeed. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <ultramarine/helper.h>
#include <ultramarine/interfaces.h>

UM_DEFINE_BACKEND(NAME, "faulty", "0.1.0", DEVICE_TYPE);

enum kind { ALLOCATION, UPLOAD, KERNEL, KINDS };
static const char *const names[KINDS] = {"allocation", "upload", "kernel"};

static const um_host_table *host;
static um_backend_table inner;
static um_stream_memory_interface stream_memory;
static um_upload_interface upload;
static um_replay_interface replay;
/* One call in this many fails; 0: none. */
static atomic_uint rates[KINDS];
static atomic_uint calls[KINDS], failures[KINDS];

UM_EXPORT void faulty_set(uint32_t kind, uint32_t rate) { atomic_store(&rates[kind], rate); }
UM_EXPORT uint32_t faulty_failures(uint32_t kind) { return atomic_load(&failures[kind]); }

/* The numbers of calls, scattered: neighbours are not alike. */
static int fails(enum kind kind) {
  uint32_t rate = atomic_load(&rates[kind]);
  uint32_t number = atomic_fetch_add(&calls[kind], 1) * 2654435761u;
  if (rate == 0 || (number >> 8) % rate != 0) return 0;
  atomic_fetch_add(&failures[kind], 1);
  return 1;
}

static um_status injected(enum kind kind, um_error **error) {
  return um_fail(host, error, kind == ALLOCATION ? UM_OUT_OF_MEMORY : UM_ERROR, "injected failure: %s", names[kind]);
}

static um_status buffer_alloc(void *device, uint64_t bytes, void **buffer, um_error **error) {
  return fails(ALLOCATION) ? injected(ALLOCATION, error) : inner.buffer_alloc(device, bytes, buffer, error);
}

static um_status copy_to_device(void *device, void *stream, void *buffer, uint64_t offset, const void *source,
                                uint64_t bytes, um_error **error) {
  if (fails(UPLOAD)) return injected(UPLOAD, error);
  return inner.copy_to_device(device, stream, buffer, offset, source, bytes, error);
}

/* The commands before the one that fails have been submitted. */
static um_status submit(void *device, void *stream, const um_command *commands, uint32_t count, um_error **error) {
  uint32_t before = 0;
  um_status status;
  while (before < count && !fails(KERNEL)) before++;
  if (before == count) return inner.submit(device, stream, commands, count, error);
  if (before > 0 && (status = inner.submit(device, stream, commands, before, error)) != UM_OK) return status;
  return um_fail_command(host, error, before, injected(KERNEL, error));
}

static um_status stream_alloc(void *device, void *stream, uint64_t bytes, void **buffer, um_error **error) {
  return fails(ALLOCATION) ? injected(ALLOCATION, error) : stream_memory.alloc(device, stream, bytes, buffer, error);
}

static um_status upload_copy(void *device, void *stream, void *piece, void *buffer, uint64_t offset, uint64_t bytes,
                             um_error **error) {
  if (!fails(UPLOAD)) return upload.copy(device, stream, piece, buffer, offset, bytes, error);
  upload.give_back(device, piece);
  return injected(UPLOAD, error);
}

static um_status run_recording(void *device, void *stream, void *recording, const um_replay_bindings *bindings,
                               um_error **error) {
  return fails(KERNEL) ? injected(KERNEL, error) : replay.replay(device, stream, recording, bindings, error);
}

/* The inner backend's table of an interface, kept, with one function of it replaced. */
static const void *interface(void *backend, const char *id) {
  static um_stream_memory_interface own_stream_memory;
  static um_upload_interface own_upload;
  static um_replay_interface own_replay;
  const void *found = inner.interface_ ? inner.interface_(backend, id) : NULL;
  if (found == NULL) return NULL;
  if (strcmp(id, UM_STREAM_MEMORY_INTERFACE) == 0) {
    um_read_sized(&stream_memory, sizeof stream_memory, found);
    own_stream_memory = stream_memory;
    own_stream_memory.alloc = stream_alloc;
    return &own_stream_memory;
  }
  if (strcmp(id, UM_UPLOAD_INTERFACE) == 0) {
    um_read_sized(&upload, sizeof upload, found);
    own_upload = upload;
    own_upload.copy = upload_copy;
    return &own_upload;
  }
  if (strcmp(id, UM_REPLAY_INTERFACE) == 0) {
    um_read_sized(&replay, sizeof replay, found);
    own_replay = replay;
    own_replay.replay = run_recording;
    return &own_replay;
  }
  return found;
}

static void *library(void) { return dlopen(INNER, RTLD_NOW | RTLD_LOCAL); }

um_status ultramarine_backend_score(um_backend_score *out) {
  um_status (*score)(um_backend_score *) = NULL;
  void *opened = library();
  if (opened) *(void **)&score = dlsym(opened, "ultramarine_backend_score");
  return score ? score(out) : UM_ERROR;
}

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *out, um_error **error) {
  um_status (*init)(const um_host_table *, um_backend_table *, um_error **) = NULL;
  um_backend_table table;
  um_status status;
  void *opened = library();
  if (opened) *(void **)&init = dlsym(opened, "ultramarine_backend_init");
  if (!init) return um_fail(lent, error, UM_ERROR, "cannot open %s", INNER);
  host = lent;
  memset(&inner, 0, sizeof inner);
  inner.size = sizeof inner;
  if ((status = init(lent, &inner, error)) != UM_OK) return status;
  table = inner;
  table.buffer_alloc = buffer_alloc;
  table.copy_to_device = copy_to_device;
  table.submit = submit;
  table.interface_ = interface;
  um_write_sized(out, &table, sizeof table);
  return UM_OK;
}
