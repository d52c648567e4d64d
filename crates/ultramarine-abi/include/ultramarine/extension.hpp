/* Help for operations written in C++11: exceptions end at the boundary, handles are released.
 *
 *   struct Twice : um::extension::Primitive {
 *     std::string name() const override { return "twice"; }
 *     Types infer(const Types &inputs) const override { return {inputs.at(0)}; }
 *     void eval_cpu(um::extension::Call &call) const override {
 *       auto x = call.input<float>(0);
 *       auto y = call.output<float>(0);
 *       um::extension::parallel(y.size(), 65536, [&](uint64_t from, uint64_t to) {
 *         for (uint64_t i = from; i < to; i++) y[i] = 2 * x[i];
 *       });
 *     }
 *   };
 *   Array y = um::extension::apply(std::unique_ptr<Primitive>(new Twice), {x}).at(0);
 *
 * `um::extension::connect` comes first. A rule that is not overridden is missing: what follows from `compose` is used
 * instead. Whatever a rule throws becomes the error of the operation. The contract is extension.h's. */
#ifndef ULTRAMARINE_EXTENSION_HPP
#define ULTRAMARINE_EXTENSION_HPP

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "extension.h"
#include "helper_loop.hpp"

namespace um {
namespace extension {

/* An error with a status: UM_INVALID is Python's ValueError, UM_OUT_OF_MEMORY its MemoryError, others its RuntimeError. */
class Error : public std::runtime_error {
 public:
  Error(um_status code, const std::string &text) : std::runtime_error(text), code_(code == UM_OK ? UM_ERROR : code) {}
  explicit Error(const std::string &text) : Error(UM_ERROR, text) {}
  um_status code() const noexcept { return code_; }

 private:
  um_status code_;
};

/* A rule that is not there. Not an exception of the standard library, so that nobody takes it for an error. */
struct Missing {};

namespace detail {

/* A struct of another version: as much as both sides know, the rest zero. */
template <typename T>
T read(const T *source) {
  T target;
  std::memset(static_cast<void *>(&target), 0, sizeof target);
  uint32_t size = 0;
  if (source == nullptr) return target;
  std::memcpy(&size, source, sizeof size);
  std::memcpy(static_cast<void *>(&target), source, size < sizeof target ? size : sizeof target);
  return target;
}

/* Element `index` of structs that lie `stride` bytes apart (0: the first one's size). */
template <typename T>
const T *at(const T *first, uint32_t index, uint32_t stride) {
  if (first == nullptr) throw Error("an array of structs is NULL");
  if (stride == 0) std::memcpy(&stride, first, sizeof stride);
  return reinterpret_cast<const T *>(reinterpret_cast<const char *>(first) + static_cast<size_t>(stride) * index);
}

struct Connection {
  um_extension_host table;
  std::atomic<bool> is;
};

inline Connection &connection() {
  static Connection one{};
  return one;
}

}  // namespace detail

/* Functions that the host lends. Throws before `connect`. */
inline const um_extension_host &host() {
  if (!detail::connection().is) throw Error("this library is not connected to Ultramarine yet");
  return detail::connection().table;
}

/* Says whom the primitives of this library belong to; the first call counts. Throws if the major is another. */
inline void connect(const um_extension_host *table) {
  if (table == nullptr) throw Error("Ultramarine has no table for extensions");
  if (table->major != UM_EXTENSION_MAJOR) {
    throw Error("the extension was built for version " + std::to_string(UM_EXTENSION_MAJOR) +
                " of Ultramarine's contract for extensions, this Ultramarine has " + std::to_string(table->major) + "." +
                std::to_string(table->minor) + ": build the extension again, for this one");
  }
  um_extension_host read = detail::read(table);
  if (!read.error_new || !read.error_text || !read.error_free || !read.array_retain || !read.array_release ||
      !read.array_type) {
    throw Error("the table of Ultramarine lacks functions for errors and handles");
  }
  static std::mutex lock;
  std::lock_guard<std::mutex> locked(lock);
  if (detail::connection().is) return;
  detail::connection().table = read;
  detail::connection().is = true;
}

namespace detail {

/* A function of the table; throws an error that names it if it is missing. */
template <typename Function>
Function lent(Function function, const char *name) {
  if (function == nullptr) throw Error(UM_UNSUPPORTED, std::string(name) + ": this Ultramarine does not offer it");
  return function;
}

/* Throws what a function of the host says. Takes over the error. */
inline void check(const char *name, um_status code, um_error *error) {
  if (code == UM_OK) return;
  if (error == nullptr) throw Error(code, std::string(name) + ": status " + std::to_string(code) + " without an error");
  uint64_t length = 0;
  const char *bytes = host().error_text(host().host, error, &length);
  std::string text(bytes == nullptr ? "" : bytes, bytes == nullptr ? 0 : static_cast<size_t>(length));
  if (host().error_code != nullptr) code = host().error_code(host().host, error);
  host().error_free(host().host, error);
  throw Error(code, text);
}

/* Hands an error to the host. Called while an exception is handled, so it throws none. */
inline um_status tell(um_error **error, um_status code, const char *text) noexcept {
  const Connection &to = connection();
  if (error != nullptr && to.is) *error = to.table.error_new(to.table.host, code, text, std::strlen(text));
  return code;
}

}  // namespace detail

/* Runs the body of a rule. What it throws becomes a status and an error. */
template <typename Body>
um_status guard(um_error **error, Body body) noexcept {
  try {
    body();
    return UM_OK;
  } catch (const Missing &) {
    return UM_UNSUPPORTED;
  } catch (const Error &failure) {
    return detail::tell(error, failure.code(), failure.what());
  } catch (const std::bad_alloc &) {
    return detail::tell(error, UM_OUT_OF_MEMORY, "out of memory");
  } catch (const std::invalid_argument &exception) {
    return detail::tell(error, UM_INVALID, exception.what());
  } catch (const std::exception &exception) {
    return detail::tell(error, UM_ERROR, exception.what());
  } catch (...) {
    return detail::tell(error, UM_ERROR, "an exception of unknown type");
  }
}

/* body(from, to) for ranges that are together 0..n, of about `grain` elements, on the host's threads. What a call throws
 * ends that call only; the first exception is thrown again behind the loop. */
template <typename Body>
void parallel(uint64_t n, uint64_t grain, Body body) {
  if (n == 0) return;
  uint64_t most = host().thread_count == nullptr ? 1 : 8 * static_cast<uint64_t>(host().thread_count(host().host));
  uint64_t count = n / (grain == 0 ? 1 : grain);
  count = count > most ? most : count == 0 ? 1 : count;
  uint64_t each = (n + count - 1) / count;
  count = (n + each - 1) / each;
  auto range = [&](uint64_t i) { body(i * each, (i + 1) * each < n ? (i + 1) * each : n); };
  um::detail::Loop<decltype(range)> loop(range);
  if (host().parallel_for != nullptr && count > 1) {
    host().parallel_for(host().host, count, &decltype(loop)::call, &loop);
  } else {
    for (uint64_t i = 0; i < count; i++) decltype(loop)::call(&loop, i);
  }
  if (loop.first) std::rethrow_exception(loop.first);
}

/* ---- types and arrays --------------------------------------------------------------------------------------- */

inline bool operator==(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }
inline bool operator!=(DLDataType a, DLDataType b) { return !(a == b); }

/* The dtype of a C++ type. float16 and bfloat16 have none in the language: their elements are seen as uint16_t. */
template <typename T>
struct Dtype;
#define UM_EXTENSION_DTYPE(type, code, bits) \
  template <>                                \
  struct Dtype<type> {                       \
    static DLDataType value() { return DLDataType{code, bits, 1}; } \
  };
UM_EXTENSION_DTYPE(uint8_t, kDLUInt, 8)
UM_EXTENSION_DTYPE(uint16_t, kDLUInt, 16)
UM_EXTENSION_DTYPE(uint32_t, kDLUInt, 32)
UM_EXTENSION_DTYPE(uint64_t, kDLUInt, 64)
UM_EXTENSION_DTYPE(int8_t, kDLInt, 8)
UM_EXTENSION_DTYPE(int16_t, kDLInt, 16)
UM_EXTENSION_DTYPE(int32_t, kDLInt, 32)
UM_EXTENSION_DTYPE(int64_t, kDLInt, 64)
UM_EXTENSION_DTYPE(float, kDLFloat, 32)
UM_EXTENSION_DTYPE(double, kDLFloat, 64)
#undef UM_EXTENSION_DTYPE

/* Shape and dtype. */
struct TensorType {
  std::vector<int64_t> shape;
  DLDataType dtype;

  explicit TensorType(std::vector<int64_t> s = {}, DLDataType d = DLDataType{kDLFloat, 32, 1})
      : shape(std::move(s)), dtype(d) {}
  static TensorType of(const um_tensor_type &raw) {
    return TensorType(std::vector<int64_t>(raw.shape, raw.shape + raw.ndim), raw.dtype);
  }

  um_tensor_type raw() const {
    if (shape.size() > UM_MAX_NDIM) throw Error(UM_INVALID, "too many dimensions");
    um_tensor_type of = um_tensor_type();
    of.size = sizeof of;
    of.ndim = static_cast<int32_t>(shape.size());
    of.dtype = dtype;
    for (size_t i = 0; i < shape.size(); i++) of.shape[i] = shape[i];
    return of;
  }
};
using Types = std::vector<TensorType>;

/* An array: a handle of one's own. A copy is another handle of the same array. An empty one is zero, where derivatives
 * speak of them. */
class Array {
 public:
  Array() noexcept : handle_(nullptr) {}
  /* Takes over a handle. */
  static Array take(um_array *handle) noexcept {
    Array array;
    array.handle_ = handle;
    return array;
  }
  /* A handle of one's own of a borrowed one, or empty. */
  static Array retain(const um_array *handle) {
    return take(handle == nullptr ? nullptr : host().array_retain(host().host, handle));
  }
  Array(const Array &other) : Array(retain(other.handle_)) {}
  Array(Array &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Array &operator=(Array other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Array() {
    const detail::Connection &to = detail::connection();
    if (handle_ != nullptr && to.is) to.table.array_release(to.table.host, handle_);
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  um_array *raw() const noexcept { return handle_; }
  /* The handle, which is the caller's from now on. */
  um_array *give() noexcept {
    um_array *handle = handle_;
    handle_ = nullptr;
    return handle;
  }

  TensorType type() const {
    if (handle_ == nullptr) throw Error("an array is empty");
    um_tensor_type of = um_tensor_type();
    of.size = sizeof of;
    detail::check("array_type", host().array_type(host().host, handle_, &of), nullptr);
    return TensorType::of(of);
  }
  std::vector<int64_t> shape() const { return type().shape; }
  DLDataType dtype() const { return type().dtype; }

  void eval() const {
    um_error *error = nullptr;
    um_status code = detail::lent(host().array_eval, "array_eval")(host().host, &handle_, 1, &error);
    detail::check("array_eval", code, error);
  }

 private:
  um_array *handle_;
};
using Arrays = std::vector<Array>;

namespace detail {

inline std::vector<um_array *> handles(const Arrays &arrays) {
  std::vector<um_array *> all;
  for (const Array &array : arrays) all.push_back(array.raw());
  return all;
}

inline Arrays retained(um_array *const *handles, uint32_t n) {
  Arrays all;
  for (uint32_t i = 0; i < n; i++) all.push_back(Array::retain(handles[i]));
  return all;
}

/* Hands out results, all or none. */
inline void give(const char *rule, Arrays results, uint32_t n, um_array **places, bool zeros) {
  if (results.size() != n) {
    throw Error(std::string(rule) + " gave " + std::to_string(results.size()) + " arrays where there must be " +
                std::to_string(n));
  }
  for (const Array &result : results) {
    if (!result && !zeros) throw Error(std::string(rule) + " gave an empty array");
  }
  for (uint32_t i = 0; i < n; i++) places[i] = results[i].give();
}

}  // namespace detail

namespace detail {
inline um_attribute attribute(const char *name, uint32_t kind) {
  um_attribute one = um_attribute();
  one.size = sizeof one, one.kind = kind, one.name = name;
  return one;
}
}  // namespace detail

/* A named argument of an operation, by the names of mlx.core. What it points at must stay until the call. */
inline um_attribute attribute(const char *name, int64_t value) {
  um_attribute one = detail::attribute(name, UM_ATTRIBUTE_INT);
  return one.integer = value, one;
}
inline um_attribute attribute(const char *name, double value) {
  um_attribute one = detail::attribute(name, UM_ATTRIBUTE_FLOAT);
  return one.real = value, one;
}
inline um_attribute attribute(const char *name, const std::vector<int64_t> &values) {
  um_attribute one = detail::attribute(name, UM_ATTRIBUTE_INTS);
  return one.integers = values.data(), one.count = values.size(), one;
}
inline um_attribute attribute(const char *name, DLDataType value) {
  um_attribute one = detail::attribute(name, UM_ATTRIBUTE_DTYPE);
  return one.dtype = value, one;
}
inline um_attribute attribute(const char *name, const char *value) {
  um_attribute one = detail::attribute(name, UM_ATTRIBUTE_TEXT);
  return one.text = value, one;
}

/* An operation of Ultramarine by its name, with `n` results. */
inline Arrays operation(const char *name, const Arrays &inputs, const std::vector<um_attribute> &attributes = {},
                        uint32_t n = 1, const um_place *place = nullptr) {
  std::vector<um_array *> handles = detail::handles(inputs), results(n, nullptr);
  um_error *error = nullptr;
  um_status code = detail::lent(host().operation, "operation")(
      host().host, name, handles.data(), static_cast<uint32_t>(handles.size()), attributes.data(),
      static_cast<uint32_t>(attributes.size()), place, results.data(), n, &error);
  detail::check(name, code, error);
  Arrays all;
  for (um_array *result : results) all.push_back(Array::take(result));
  return all;
}

/* ---- evaluation --------------------------------------------------------------------------------------------- */

/* A tensor of an evaluation: elements by index in row-major order where it has no gaps, by strides else. */
template <typename T>
class View {
 public:
  explicit View(const um_view &view) : view_(view) {}
  const um_view &raw() const { return view_; }
  T *data() const { return static_cast<T *>(view_.data); }
  uint64_t size() const { return static_cast<uint64_t>(view_.elements); }
  int32_t ndim() const { return view_.ndim; }
  int64_t shape(int32_t axis) const { return view_.shape[axis]; }
  int64_t stride(int32_t axis) const { return view_.strides[axis]; }
  bool row_contiguous() const { return (view_.flags & UM_VIEW_ROW_CONTIGUOUS) != 0; }
  /* Element `index` in row-major order. */
  T &operator[](uint64_t index) const { return data()[row_contiguous() ? static_cast<int64_t>(index) : offset(index)]; }
  /* Where it lies, in elements. */
  int64_t offset(uint64_t index) const {
    int64_t at = 0;
    for (int32_t axis = view_.ndim - 1; axis >= 0; axis--) {
      uint64_t n = static_cast<uint64_t>(view_.shape[axis]);
      at += static_cast<int64_t>(index % n) * view_.strides[axis];
      index /= n;
    }
    return at;
  }

 private:
  um_view view_;
};

/* Arguments of an evaluation. */
class Call {
 public:
  explicit Call(const um_call *call) : call_(detail::read(call)) {
    for (uint32_t i = 0; i < call_.n_outputs; i++) {
      outputs_.push_back(detail::read(detail::at(call_.outputs, i, call_.view_stride)));
    }
  }
  const um_call &raw() const { return call_; }
  uint32_t n_inputs() const { return call_.n_inputs; }
  uint32_t n_outputs() const { return call_.n_outputs; }
  DLDataType dtype(uint32_t input) const { return input_view(input).dtype; }

  template <typename T>
  View<const T> input(uint32_t i) const {
    um_view view = input_view(i);
    same<T>(view.dtype);
    return View<const T>(view);
  }
  /* New memory is made for it if it has none. */
  template <typename T>
  View<T> output(uint32_t i) {
    um_view &view = outputs_.at(i);
    same<T>(view.dtype);
    if (view.data == nullptr && view.elements > 0) {
      um_error *error = nullptr;
      um_status code = detail::lent(host().allocate, "allocate")(call_.host_call, i, nullptr, &view, &error);
      detail::check("allocate", code, error);
    }
    return View<T>(view);
  }

 private:
  um_view input_view(uint32_t i) const {
    if (i >= call_.n_inputs) throw Error("there is no such input");
    return detail::read(detail::at(call_.inputs, i, call_.view_stride));
  }
  /* 16-bit floats are seen as uint16_t, bool as uint8_t. */
  template <typename T>
  static void same(DLDataType got) {
    DLDataType want = Dtype<T>::value();
    bool bits = want.code == kDLUInt && want.bits == got.bits && want.bits <= 16 &&
                (got.code == kDLFloat || got.code == kDLBfloat || got.code == kDLBool);
    if (got != want && !bits) throw Error("a view of another dtype than the tensor's");
  }
  um_call call_;
  std::vector<um_view> outputs_;
};

/* ---- primitives --------------------------------------------------------------------------------------------- */

/* An operation with its attributes. `infer` and one evaluation or `compose` are required. */
class Primitive {
 public:
  virtual ~Primitive() {}
  virtual std::string name() const = 0;
  virtual uint32_t version() const { return 1; }
  virtual uint32_t outputs() const { return 1; }
  /* Bytes that tell operations of one name apart. */
  virtual std::string attributes() const { return std::string(); }
  virtual bool allocates() const { return false; }
  virtual Types infer(const Types &inputs) const = 0;
  virtual void eval_cpu(Call &) const { throw Missing(); }
  virtual void eval_gpu(Call &) const { throw Missing(); }
  virtual Arrays compose(const Arrays &) const { throw Missing(); }
  /* Cotangents of the inputs; those that are not wanted may be empty. Empty ones are zero. */
  virtual Arrays vjp(const Arrays & /* inputs */, const Arrays & /* outputs */, const Arrays & /* cotangents */,
                     const std::vector<bool> & /* wanted */) const {
    throw Missing();
  }
  /* Tangents of the outputs. Empty ones are zero. */
  virtual Arrays jvp(const Arrays & /* inputs */, const Arrays & /* tangents */) const { throw Missing(); }
  /* The outputs for a batch, and the axis of each. An axis of -1: the same for all. */
  virtual Arrays vmap(const Arrays & /* inputs */, const std::vector<int32_t> & /* axes */, int64_t /* batch */,
                      std::vector<int32_t> & /* output_axes */) const {
    throw Missing();
  }
  virtual std::string print() const { return name(); }
};

namespace detail {

inline const Primitive &primitive(void *context) { return *static_cast<const Primitive *>(context); }

struct Rules {
  static um_status infer(void *context, const um_tensor_type *inputs, uint32_t n, um_tensor_type *outputs,
                         um_error **error) noexcept {
    return guard(error, [&] {
      Types types;
      for (uint32_t i = 0; i < n; i++) types.push_back(TensorType::of(read(at(inputs, i, 0))));
      Types made = primitive(context).infer(types);
      if (made.size() != primitive(context).outputs()) throw Error("infer gave another number of types");
      uint32_t stride = outputs->size;
      for (uint32_t i = 0; i < made.size(); i++) {
        um_tensor_type of = made[i].raw();
        um_tensor_type *to = const_cast<um_tensor_type *>(at(outputs, i, stride));
        of.size = to->size;
        std::memcpy(to, &of, to->size < sizeof of ? to->size : sizeof of);
      }
    });
  }
  static um_status eval_cpu(void *context, const um_call *call, um_error **error) noexcept {
    return guard(error, [&] {
      Call read(call);
      primitive(context).eval_cpu(read);
    });
  }
  static um_status eval_gpu(void *context, const um_call *call, um_error **error) noexcept {
    return guard(error, [&] {
      Call read(call);
      primitive(context).eval_gpu(read);
    });
  }
  static um_status compose(void *context, um_array *const *inputs, uint32_t n, um_array **outputs,
                           um_error **error) noexcept {
    return guard(error, [&] {
      const Primitive &p = primitive(context);
      give("compose", p.compose(retained(inputs, n)), p.outputs(), outputs, false);
    });
  }
  static um_status vjp(void *context, um_array *const *inputs, uint32_t n, um_array *const *outputs,
                       um_array *const *cotangents, const uint8_t *wanted, um_array **results,
                       um_error **error) noexcept {
    return guard(error, [&] {
      const Primitive &p = primitive(context);
      std::vector<bool> want;
      for (uint32_t i = 0; i < n; i++) want.push_back(wanted == nullptr || wanted[i] != 0);
      Arrays made = p.vjp(retained(inputs, n), retained(outputs, p.outputs()), retained(cotangents, p.outputs()), want);
      give("vjp", std::move(made), n, results, true);
    });
  }
  static um_status jvp(void *context, um_array *const *inputs, uint32_t n, um_array *const *tangents,
                       um_array **results, um_error **error) noexcept {
    return guard(error, [&] {
      const Primitive &p = primitive(context);
      give("jvp", p.jvp(retained(inputs, n), retained(tangents, n)), p.outputs(), results, true);
    });
  }
  static um_status vmap(void *context, um_array *const *inputs, uint32_t n, const int32_t *axes, int64_t batch,
                        um_array **outputs, int32_t *output_axes, um_error **error) noexcept {
    return guard(error, [&] {
      const Primitive &p = primitive(context);
      std::vector<int32_t> to;
      Arrays made = p.vmap(retained(inputs, n), std::vector<int32_t>(axes, axes + n), batch, to);
      if (to.size() != p.outputs()) throw Error("vmap gave another number of axes");
      give("vmap", std::move(made), p.outputs(), outputs, false);
      for (size_t i = 0; i < to.size(); i++) output_axes[i] = to[i];
    });
  }
  static uint64_t print(void *context, char *text, uint64_t room) noexcept {
    try {
      std::string all = primitive(context).print();
      if (text != nullptr) std::memcpy(text, all.data(), all.size() < room ? all.size() : static_cast<size_t>(room));
      return all.size();
    } catch (...) {
      return 0;
    }
  }
  static void release(void *context) noexcept { delete static_cast<Primitive *>(context); }
};

}  // namespace detail

/* The arrays that a primitive makes of these, evaluated when somebody needs them. `place` may be NULL. */
inline Arrays apply(std::unique_ptr<Primitive> primitive, const Arrays &inputs, const um_place *place = nullptr) {
  auto run = detail::lent(host().apply, "apply");
  std::string name = primitive->name(), attributes = primitive->attributes();
  um_primitive table = um_primitive();
  table.size = sizeof table;
  table.flags = primitive->allocates() ? UM_PRIMITIVE_ALLOCATES : 0;
  table.name = name.c_str();
  table.version = primitive->version();
  table.n_outputs = primitive->outputs();
  table.attributes = attributes.data();
  table.attribute_bytes = attributes.size();
  table.infer = detail::Rules::infer;
  table.eval_cpu = detail::Rules::eval_cpu;
  table.eval_gpu = detail::Rules::eval_gpu;
  table.compose = detail::Rules::compose;
  table.vjp = detail::Rules::vjp;
  table.jvp = detail::Rules::jvp;
  table.vmap = detail::Rules::vmap;
  table.print = detail::Rules::print;
  table.release = detail::Rules::release;
  std::vector<um_array *> handles = detail::handles(inputs), outputs(table.n_outputs, nullptr);
  /* From here on it is the host's. */
  table.context = primitive.release();
  um_error *error = nullptr;
  um_status code =
      run(host().host, &table, handles.data(), static_cast<uint32_t>(handles.size()), place, outputs.data(), &error);
  detail::check("apply", code, error);
  Arrays all;
  for (um_array *output : outputs) all.push_back(Array::take(output));
  return all;
}

}  // namespace extension
}  // namespace um

#endif
