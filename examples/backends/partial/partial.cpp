// A partial backend in C++17: copies, fills, a few functions and sums of float32. All other requests are refused, and the
// host serves them by other operations or on the CPU. It keeps the contract as it is: `ultramarine-conform` says so.
//
// Plans are objects with a virtual function. `um::guard` turns exceptions into errors, as none may leave a backend.
#include <cmath>
#include <memory>
#include <vector>

#include <ultramarine/helper.hpp>

UM_DEFINE_BACKEND("partial", "", "0.1.0", kDLExtDev);

namespace {

const um_host_table *host = nullptr; // set by init

// ---- plans -----------------------------------------------------------------------------------------------------------

// A plan: `prepare` makes it once, and it runs commands of any sizes, from any thread.
struct Plan {
  virtual ~Plan() = default;
  virtual void run(const um_command &command) const = 0;
  uint32_t inputs = 0; // that its commands have
};

// Rows of the inputs and the output, which have one shape.
um_rows rows_of(const um_command &command) {
  const um_tensor *out = um_output(&command, 0);
  um_rows rows;
  um_rows_start(&rows, out->dl.ndim, out->dl.shape);
  for (uint32_t i = 0; i < command.n_inputs; i++) um_rows_add(&rows, um_input(&command, i));
  um_rows_add(&rows, out);
  return rows;
}

// FILL and COPY: elements of `bytes` bytes, whatever they mean.
struct Move final : Plan {
  explicit Move(uint32_t size) : bytes(size) {}
  void run(const um_command &command) const override {
    um_rows rows = rows_of(command);
    const uint32_t out = command.n_inputs;
    while (um_rows_next(&rows))
      for (int64_t i = 0; i < rows.length; i++) {
        const void *from = out == 0 ? um_scalar(&command, 0) : rows.data[0] + i * rows.step[0];
        std::memcpy(rows.data[out] + i * rows.step[out], from, bytes);
      }
  }
  uint32_t bytes;
};

float &number(const um_rows &rows, uint32_t tensor, int64_t i) {
  return *reinterpret_cast<float *>(rows.data[tensor] + i * rows.step[tensor]);
}

// UNARY and BINARY: a function of one or two floats.
template <typename Function>
struct Map final : Plan {
  explicit Map(Function f) : function(f) {}
  void run(const um_command &command) const override {
    um_rows rows = rows_of(command);
    while (um_rows_next(&rows))
      for (int64_t i = 0; i < rows.length; i++) {
        if constexpr (std::is_invocable_v<Function, float, float>)
          number(rows, 2, i) = function(number(rows, 0, i), number(rows, 1, i));
        else
          number(rows, 1, i) = function(number(rows, 0, i));
      }
  }
  Function function;
};

template <typename Function>
std::unique_ptr<Plan> map(Function function) {
  return std::unique_ptr<Plan>(new Map<Function>(function));
}

// REDUCE by addition. A float32 that adds a long row up one by one loses digits; sums of blocks, added up in pairs, lose
// far fewer, and need no wider type.
struct Sum final : Plan {
  explicit Sum(uint64_t bits) : axes(bits) {}

  static float blocks(const std::vector<float> &values, size_t from, size_t n) {
    if (n > 64) return blocks(values, from, n / 2) + blocks(values, from + n / 2, n - n / 2);
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[from + i];
    return sum;
  }

  void run(const um_command &command) const override {
    const DLTensor &in = um_input(&command, 0)->dl, &out = um_output(&command, 0)->dl;
    int64_t reduced[UM_MAX_NDIM];
    for (int32_t i = 0; i < in.ndim; i++) reduced[i] = axes >> i & 1 ? in.shape[i] : 1;
    um_rows kept;
    um_rows_start(&kept, out.ndim, out.shape); // reduced axes have size 1 there
    um_rows_add_strided(&kept, um_data(um_input(&command, 0)), in.ndim, out.shape, in.strides, sizeof(float));
    um_rows_add(&kept, um_output(&command, 0));
    std::vector<float> values;
    while (um_rows_next(&kept))
      for (int64_t i = 0; i < kept.length; i++) {
        um_rows inner;
        um_rows_start(&inner, in.ndim, reduced);
        um_rows_add_strided(&inner, kept.data[0] + i * kept.step[0], in.ndim, reduced, in.strides, sizeof(float));
        values.clear();
        while (um_rows_next(&inner))
          for (int64_t k = 0; k < inner.length; k++) values.push_back(number(inner, 0, k));
        number(kept, 1, i) = blocks(values, 0, values.size());
      }
  }
  uint64_t axes;
};

// The plan of a request, or null: that is refused.
std::unique_ptr<Plan> planned(uint32_t op, const void *attributes, const um_tensor_desc *in, const um_tensor_desc *out) {
  const bool floats = um_dtype_index(out->dtype) == UM_DTYPE_FLOAT32 &&
                      (op == UM_OP_FILL || um_dtype_index(in->dtype) == UM_DTYPE_FLOAT32);
  um_reduce_attrs attrs = {}; // those of UNARY and BINARY are its beginning
  const size_t size = op == UM_OP_COPY || op == UM_OP_FILL ? sizeof(um_no_attrs)
                      : op == UM_OP_REDUCE                 ? sizeof(um_reduce_attrs)
                                                           : sizeof(um_unary_attrs);
  if (um_read_attributes(&attrs, size, attributes) != UM_OK) return nullptr;
  if (op == UM_OP_FILL || (op == UM_OP_COPY && um_dtype_index(in->dtype) == um_dtype_index(out->dtype)))
    return std::unique_ptr<Plan>(new Move(um_dtype_size(out->dtype)));
  if (!floats) return nullptr;
  if (op == UM_OP_UNARY) switch (attrs.op) {
    case UM_UNARY_ABS: return map([](float x) { return std::fabs(x); });
    case UM_UNARY_NEGATIVE: return map([](float x) { return -x; });
    case UM_UNARY_SQRT: return map([](float x) { return std::sqrt(x); });
    case UM_UNARY_EXP: return map([](float x) { return float(std::exp(double(x))); });
  }
  if (op == UM_OP_BINARY && um_dtype_index(um_desc_at(in, 1)->dtype) == UM_DTYPE_FLOAT32) switch (attrs.op) {
    case UM_BINARY_ADD: return map([](float x, float y) { return x + y; });
    case UM_BINARY_SUBTRACT: return map([](float x, float y) { return x - y; });
    case UM_BINARY_MULTIPLY: return map([](float x, float y) { return x * y; });
    case UM_BINARY_DIVIDE: return map([](float x, float y) { return x / y; });
  }
  if (op == UM_OP_REDUCE && attrs.op == UM_REDUCE_SUM && in->ndim == out->ndim)
    return std::unique_ptr<Plan>(new Sum(attrs.axes));
  return nullptr;
}

um_status prepare(void *, uint32_t op, uint32_t revision, const void *attributes, const um_tensor_desc *inputs,
                  uint32_t n_inputs, const um_tensor_desc *outputs, uint32_t n_outputs, void **plan, um_error **error) {
  return um::guard(host, error, [&]() -> um_status {
    const uint32_t expected = op == UM_OP_FILL ? 0 : op == UM_OP_BINARY ? 2 : 1;
    if (revision != 1 || um_check_arity(inputs, n_inputs, expected, outputs, n_outputs, 1) != UM_OK) return UM_UNSUPPORTED;
    std::unique_ptr<Plan> made = planned(op, attributes, inputs, outputs);
    if (!made) return UM_UNSUPPORTED;
    made->inputs = n_inputs;
    *plan = made.release();
    return UM_OK;
  });
}

void plan_release(void *, void *plan) { delete static_cast<Plan *>(plan); }

um_status submit(void *, void *, const um_command *commands, uint32_t n, um_error **error) {
  for (uint32_t i = 0; i < n; i++) {
    const um_command *command = um_command_at(commands, i);
    const um_status status = um::guard(host, error, [&] {
      const Plan *plan = static_cast<const Plan *>(command->plan);
      const bool fits = command->n_inputs == plan->inputs && command->n_outputs == 1;
      if (!fits || (plan->inputs == 0 && command->n_scalars == 0))
        throw um::Failure(UM_INVALID, "a command that does not fit its plan");
      plan->run(*command);
    });
    if (status != UM_OK) return um_fail_command(host, error, i, status);
  }
  return UM_OK;
}

// ---- one device in host memory ---------------------------------------------------------------------------------------

uint32_t device_count(void *) { return 1; }

um_status device_info(void *, uint32_t index, um_device_info *info, um_error **error) {
  if (index != 0) return um_fail(host, error, UM_INVALID, "there is one device, and no device %u", unsigned(index));
  um_device_info filled = {};
  filled.size = sizeof filled;
  filled.synchronous = filled.host_memory = 1;
  filled.dtypes_storage = UM_DTYPE_BIT(UM_DTYPE_COUNT) - 1;
  filled.dtypes_arithmetic = UM_DTYPE_BIT(UM_DTYPE_FLOAT32);
  filled.flags = UM_DEVICE_DETERMINISTIC;
  filled.alignment = UM_HOST_MEMORY_ALIGNMENT;
  UM_SET_TEXT(filled.name, "Partial");
  um_write_sized(info, &filled, sizeof filled);
  return UM_OK;
}

um_status device_open(void *, uint32_t index, void **device, um_error **error) {
  static char only;
  if (index != 0) return um_fail(host, error, UM_INVALID, "there is one device, and no device %u", unsigned(index));
  *device = &only;
  return UM_OK;
}

void device_close(void *) {}

}  // namespace

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *table, um_error **) {
  um_backend_table t = um_table("partial", kDLExtDev);
  host = lent;
  t.device_count = device_count;
  t.device_info = device_info;
  t.device_open = device_open;
  t.device_close = device_close;
  t.prepare = prepare;
  t.plan_release = plan_release;
  t.submit = submit;
  um_host_memory_functions(&t);
  um_sync_functions(&t);
  um_write_sized(table, &t, sizeof t);
  return UM_OK;
}
