/* Primitives in C++ that throw in one of their rules; those that do not give twice their operand. */
#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include <ultramarine/extension.hpp>
#include <ultramarine/extension_python.h>

namespace ext = um::extension;

static const um_python_api *api;
static std::atomic<long> alive(0); /* primitives */

/* Throws in the rule `where`, what `what` says. */
class Throws : public ext::Primitive {
 public:
  Throws(const std::string &where, const std::string &what) : where_(where), what_(what) { alive++; }
  ~Throws() override { alive--; }

  std::string name() const override { return "throws"; }
  std::string attributes() const override { return where_ + "/" + what_; }

  ext::Types infer(const ext::Types &inputs) const override {
    at("infer");
    return {inputs.at(0)};
  }
  void eval_cpu(ext::Call &call) const override {
    at("eval_cpu");
    auto x = call.input<float>(0);
    auto y = call.output<float>(0);
    ext::parallel(y.size(), 1, [&](uint64_t from, uint64_t to) {
      at("a task");
      for (uint64_t i = from; i < to; i++) y[i] = 2 * x[i];
    });
  }
  ext::Arrays vjp(const ext::Arrays &, const ext::Arrays &, const ext::Arrays &cotangents,
                  const std::vector<bool> &) const override {
    at("vjp");
    return {twice(cotangents.at(0))};
  }
  ext::Arrays jvp(const ext::Arrays &, const ext::Arrays &tangents) const override {
    at("jvp");
    return {twice(tangents.at(0))};
  }
  ext::Arrays vmap(const ext::Arrays &inputs, const std::vector<int32_t> &axes, int64_t,
                   std::vector<int32_t> &output_axes) const override {
    at("vmap");
    output_axes = axes;
    return {twice(inputs.at(0))};
  }

 private:
  static ext::Array twice(const ext::Array &x) { return ext::operation("add", {x, x}).at(0); }
  void at(const char *rule) const {
    if (where_ != rule) return;
    std::string text = std::string("thrown in ") + rule;
    if (what_ == "runtime_error") throw std::runtime_error(text);
    if (what_ == "invalid_argument") throw std::invalid_argument(text);
    if (what_ == "bad_alloc") throw std::bad_alloc();
    if (what_ == "error") throw ext::Error(UM_INVALID, text);
    if (what_ == "host") ext::operation("reshape", {}); /* an error of the host's, which is thrown */
    if (what_ == "int") throw 42;
  }
  std::string where_, what_;
};

/* apply(rule, what, array) */
static PyObject *apply(PyObject *, PyObject *arguments) {
  const char *where, *what;
  PyObject *object;
  if (!PyArg_ParseTuple(arguments, "ssO", &where, &what, &object)) return nullptr;
  um_array *borrowed = api->array_borrow(object);
  if (borrowed == nullptr) return nullptr;
  um_error *error = nullptr;
  ext::Array result;
  ext::guard(&error, [&] {
    std::unique_ptr<ext::Primitive> primitive(new Throws(where, what));
    result = ext::apply(std::move(primitive), {ext::Array::retain(borrowed)}).at(0);
  });
  if (error != nullptr) return static_cast<PyObject *>(api->raise(error));
  return static_cast<PyObject *>(api->array_to_object(result.give()));
}

static PyObject *contexts(PyObject *, PyObject *) { return PyLong_FromLong(alive); }

static PyMethodDef methods[] = {
    {"apply", apply, METH_VARARGS, nullptr},
    {"contexts", contexts, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "throwing", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_throwing(void) {
  if ((api = um_import()) == nullptr) return nullptr;
  um_error *error = nullptr;
  if (ext::guard(&error, [] { ext::connect(api->host); }) != UM_OK) {
    PyErr_SetString(PyExc_ImportError, "this Ultramarine cannot be connected to");
    return nullptr;
  }
  return PyModule_Create(&definition);
}
