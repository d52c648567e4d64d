/* A backend in C++ that throws where it is told to (-DIN='"place"', -DNAME='"name"'), made with the C++ helper: what
 * the helper promises is that no exception leaves it. Its one op is the sum of contiguous float32 arrays. */
#include <ultramarine/helper.hpp>

#include <memory>
#include <vector>

#ifndef NAME
#define NAME "throwing"
#endif
#ifndef IN
#define IN "nowhere"
#endif

UM_DEFINE_BACKEND(NAME, "", "0.1.0", kDLExtDev);

static std::unique_ptr<um::Host> host;

static const um_host_table *lent() { return host ? host->table() : nullptr; }

static void perhaps(const std::string &place) {
  if (place == IN) throw std::runtime_error("on purpose, in " + place);
}

typedef std::vector<char> Buffer;

static uint32_t device_count(void *) {
  return um::guard_value<uint32_t>(lent(), 0, [] { return perhaps("count"), 1u; });
}

static um_status device_info(void *, uint32_t, um_device_info *info, um_error **error) {
  return um::guard(lent(), error, [&] {
    perhaps("info");
    um_device_info mine = um_device_info();
    mine.synchronous = 1;
    mine.dtypes_storage = mine.dtypes_arithmetic = (1u << UM_DTYPE_COUNT) - 1;
    um_write_sized(info, &mine, sizeof mine);
  });
}

static um_status device_open(void *, uint32_t, void **device, um_error **error) {
  return um::guard(lent(), error, [&] {
    perhaps("open");
    *device = &host;
  });
}

static um_status buffer_alloc(void *, uint64_t bytes, void **buffer, um_error **error) {
  return um::guard(lent(), error, [&] {
    perhaps("alloc");
    *buffer = new Buffer(bytes);
  });
}

static void buffer_free(void *, void *buffer) {
  um::guard_value<int>(lent(), 0, [&] {
    delete static_cast<Buffer *>(buffer);
    return perhaps("free"), 0;
  });
}

static void *buffer_host_pointer(void *, void *buffer) {
  return um::guard_value<void *>(lent(), nullptr, [&]() -> void * {
    perhaps("pointer");
    (void)buffer;
    return nullptr;
  });
}

static um_status copy_to_device(void *, void *, void *buffer, uint64_t offset, const void *source, uint64_t bytes,
                                um_error **error) {
  return um::guard(lent(), error, [&] {
    perhaps("upload");
    std::memcpy(static_cast<Buffer *>(buffer)->data() + offset, source, bytes);
  });
}

static um_status copy_to_host(void *, void *, void *buffer, uint64_t offset, void *target, uint64_t bytes,
                              um_error **error) {
  return um::guard(lent(), error, [&] {
    perhaps("download");
    std::memcpy(target, static_cast<Buffer *>(buffer)->data() + offset, bytes);
  });
}

static um_status prepare(void *, uint32_t op, uint32_t, const void *attributes, const um_tensor_desc *inputs,
                         uint32_t n_inputs, const um_tensor_desc *, uint32_t, void **plan, um_error **error) {
  return um::guard(lent(), error, [&]() -> um_status {
    perhaps("prepare");
    um_binary_attrs attrs;
    if (op != UM_OP_BINARY || n_inputs != 2) return UM_UNSUPPORTED;
    um_status status = um_read_attributes(&attrs, sizeof attrs, attributes);
    if (status != UM_OK) return status;
    if (attrs.op != UM_BINARY_ADD || inputs->dtype.code != kDLFloat || inputs->dtype.bits != 32) return UM_UNSUPPORTED;
    if (inputs[0].layout || inputs[1].layout) return UM_NEEDS_CONTIGUOUS;
    *plan = &host;
    return UM_OK;
  });
}

static void plan_release(void *, void *) {
  um::guard_value<int>(lent(), 0, [] { return perhaps("release"), 0; });
}

static uint64_t plan_workspace(void *, void *, const um_command *) {
  return um::guard_value<uint64_t>(lent(), 0, [] { return perhaps("workspace"), uint64_t(0); });
}

static float *floats(const um_tensor *t) {
  return reinterpret_cast<float *>(static_cast<Buffer *>(t->buffer)->data() + t->dl.byte_offset);
}

static um_status submit(void *, void *, const um_command *commands, uint32_t n_commands, um_error **error) {
  return um::guard(lent(), error, [&] {
    perhaps("run");
    for (uint32_t c = 0; c < n_commands; c++) {
      const um_command *command = um_command_at(commands, c);
      const um_tensor *out = um_output(command, 0);
      uint64_t n = 1;
      for (int32_t d = 0; d < out->dl.ndim; d++) n *= static_cast<uint64_t>(out->dl.shape[d]);
      const float *x = floats(um_input(command, 0)), *y = floats(um_input(command, 1));
      for (uint64_t i = 0; i < n; i++) floats(out)[i] = x[i] + y[i];
    }
  });
}

static const void *optional(void *, const char *) {
  return um::guard_value<const void *>(lent(), nullptr, []() -> const void * { return perhaps("interface"), nullptr; });
}

um_status ultramarine_backend_score(um_backend_score *score) {
  return um::guard(nullptr, nullptr, [&] {
    perhaps("score");
    score->score = 3;
    score->device_count = 1;
  });
}

um_status ultramarine_backend_init(const um_host_table *given, um_backend_table *table, um_error **error) {
  return um::guard(given, error, [&] {
    perhaps("init");
    host.reset(new um::Host(given));
    um_backend_table mine = um_backend_table();
    mine.size = sizeof mine;
    mine.abi_major = UM_ABI_MAJOR;
    mine.abi_minor = UM_ABI_MINOR;
    mine.name = NAME;
    mine.device_type = kDLExtDev;
    mine.device_count = device_count;
    mine.device_info = device_info;
    mine.device_open = device_open;
    mine.device_close = [](void *) {};
    mine.buffer_alloc = buffer_alloc;
    mine.buffer_free = buffer_free;
    mine.buffer_host_pointer = buffer_host_pointer;
    mine.copy_to_device = copy_to_device;
    mine.copy_to_host = copy_to_host;
    mine.prepare = prepare;
    mine.plan_release = plan_release;
    mine.plan_workspace = plan_workspace;
    mine.submit = submit;
    mine.interface_ = optional;
    um_sync_functions(&mine);
    um_write_sized(table, &mine, sizeof mine);
  });
}
