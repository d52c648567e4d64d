/* A primitive written with extension.hpp, called by a fake host: what its rules throw comes back as errors, and everything
 * that was made is released once. Exits by 0 if all of it holds. */
#include <ultramarine/extension.hpp>
/* Both helpers may be used in one program. */
#include <ultramarine/helper.hpp>

#include <cstdio>
#include <cstdlib>

using um::extension::Array;
using um::extension::Arrays;
using um::extension::TensorType;
using um::extension::Types;

#define CHECK(what)                                                   \
  do {                                                                \
    if (!(what)) {                                                    \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

/* ---- the fake host ---- */

struct um_error {
  um_status code;
  std::string text;
};
struct um_array {
  int number;
};

static int arrays = 0, errors = 0, contexts = 0;

static um_error *error_new(void *, um_status code, const char *text, uint64_t length) {
  errors++;
  return new um_error{code, std::string(text, static_cast<size_t>(length))};
}
static um_status error_code(void *, const um_error *error) { return error->code; }
static const char *error_text(void *, const um_error *error, uint64_t *length) {
  *length = error->text.size();
  return error->text.data();
}
static void error_free(void *, um_error *error) {
  errors--;
  delete error;
}
static um_array *made(int number) {
  arrays++;
  return new um_array{number};
}
static um_array *array_retain(void *, const um_array *array) { return made(array->number); }
static void array_release(void *, um_array *array) {
  arrays--;
  delete array;
}
static um_status array_type(void *, const um_array *array, um_tensor_type *type) {
  *type = TensorType(std::vector<int64_t>{array->number}).raw();
  return UM_OK;
}
static um_status operation(void *, const char *name, um_array *const *inputs, uint32_t, const um_attribute *attributes,
                           uint32_t n_attributes, const um_place *, um_array **results, uint32_t n, um_error **error) {
  if (std::string(name) == "refuse") {
    std::string text = "refused " + std::to_string(n_attributes) + " " + attributes[0].name;
    *error = error_new(nullptr, UM_INVALID, text.data(), text.size());
    return UM_INVALID;
  }
  for (uint32_t i = 0; i < n; i++) results[i] = made(inputs[0]->number);
  return UM_OK;
}
static um_primitive applied;
static um_status apply(void *, const um_primitive *primitive, um_array *const *inputs, uint32_t, const um_place *,
                       um_array **outputs, um_error **) {
  CHECK(std::string(primitive->name) == "stub" && primitive->attribute_bytes == 3);
  applied = *primitive;
  for (uint32_t i = 0; i < primitive->n_outputs; i++) outputs[i] = made(inputs[0]->number);
  return UM_OK;
}
static void parallel_for(void *, uint64_t count, void (*body)(void *, uint64_t), void *context) {
  for (uint64_t i = 0; i < count; i++) body(context, i);
}
static uint32_t thread_count(void *) { return 2; }

/* ---- the primitive ---- */

enum What { WORK, FAIL, THROW_OTHER, NO_MEMORY, MISSING, TOO_FEW };

struct Stub : um::extension::Primitive {
  What what;
  explicit Stub(What w) : what(w) { contexts++; }
  ~Stub() override { contexts--; }
  std::string name() const override { return "stub"; }
  std::string attributes() const override { return "abc"; }

  void act() const {
    if (what == FAIL) throw um::extension::Error(UM_INVALID, "fails on purpose");
    if (what == THROW_OTHER) throw 7;
    if (what == NO_MEMORY) throw std::bad_alloc();
    if (what == MISSING) throw um::extension::Missing();
  }
  Arrays one(const Array &array) const {
    act();
    return what == TOO_FEW ? Arrays() : Arrays{array};
  }
  Types infer(const Types &inputs) const override {
    act();
    return what == TOO_FEW ? Types() : Types{inputs.at(0)};
  }
  void eval_cpu(um::extension::Call &call) const override {
    act();
    auto x = call.input<float>(0);
    auto y = call.output<float>(0);
    um::extension::parallel(y.size(), 2, [&](uint64_t from, uint64_t to) {
      for (uint64_t i = from; i < to; i++) y[i] = 2 * x[i];
    });
  }
  Arrays compose(const Arrays &inputs) const override { return one(inputs.at(0)); }
  Arrays vjp(const Arrays &, const Arrays &, const Arrays &cotangents, const std::vector<bool> &wanted) const override {
    CHECK(wanted == std::vector<bool>{true});
    return one(cotangents.at(0));
  }
  Arrays jvp(const Arrays &, const Arrays &tangents) const override { return one(tangents.at(0)); }
  Arrays vmap(const Arrays &inputs, const std::vector<int32_t> &axes, int64_t, std::vector<int32_t> &to) const override {
    to = axes;
    return one(inputs.at(0));
  }
};

/* What a rule says, and how many arrays it handed out. */
struct Said {
  um_status code;
  std::string text;
  bool error, handed;
};

template <typename Rule>
static Said say(Rule rule) {
  um_error *error = nullptr;
  um_array *result = nullptr;
  Said said = {rule(&result, &error), "", false, result != nullptr};
  if (result != nullptr) array_release(nullptr, result);
  if (error != nullptr) {
    said.text = error->text, said.error = true;
    error_free(nullptr, error);
  }
  return said;
}

static std::vector<Said> all_rules(const um_primitive &p, um_array *x) {
  std::vector<Said> all;
  void *c = p.context;
  um_array *const in[] = {x};
  um_tensor_type type = TensorType(std::vector<int64_t>{4}).raw(), to = TensorType().raw();
  all.push_back(say([&](um_array **, um_error **e) { return p.infer(c, &type, 1, &to, e); }));
  float from[4] = {1, 2, 3, 4}, into[4] = {0, 0, 0, 0};
  int64_t shape[1] = {4}, strides[1] = {1};
  um_view views[2];
  for (int i = 0; i < 2; i++) {
    views[i] = um_view{sizeof(um_view), UM_VIEW_ROW_CONTIGUOUS, i ? into : from, shape, strides, 4, 1, {kDLFloat, 32, 1}};
  }
  um_call call = {sizeof(um_call), 1, 1, sizeof(um_view), views, views + 1, "", nullptr};
  all.push_back(say([&](um_array **, um_error **e) { return p.eval_cpu(c, &call, e); }));
  if (all.back().code == UM_OK) CHECK(into[3] == 8);
  all.push_back(say([&](um_array **r, um_error **e) { return p.compose(c, in, 1, r, e); }));
  uint8_t wanted = 1;
  all.push_back(say([&](um_array **r, um_error **e) { return p.vjp(c, in, 1, in, in, &wanted, r, e); }));
  all.push_back(say([&](um_array **r, um_error **e) { return p.jvp(c, in, 1, in, r, e); }));
  int32_t axes[1] = {0}, out[1] = {-7};
  all.push_back(say([&](um_array **r, um_error **e) { return p.vmap(c, in, 1, axes, 2, r, out, e); }));
  return all;
}

int main() {
  um_extension_host table = um_extension_host();
  table.size = sizeof table;
  table.major = UM_EXTENSION_MAJOR + 1;
  try {
    um::extension::connect(&table);
    CHECK(!"another major is refused");
  } catch (const um::extension::Error &error) {
    CHECK(std::string(error.what()).find("version 1") != std::string::npos);
  }
  table.major = UM_EXTENSION_MAJOR;
  table.error_new = error_new, table.error_code = error_code, table.error_text = error_text;
  table.error_free = error_free, table.array_retain = array_retain, table.array_release = array_release;
  table.array_type = array_type, table.operation = operation, table.apply = apply;
  table.parallel_for = parallel_for, table.thread_count = thread_count;
  um::extension::connect(&table);

  {
    Array x = Array::take(made(4));
    const struct {
      What what;
      um_status code;
      const char *text;
    } cases[] = {{WORK, UM_OK, nullptr},
                 {FAIL, UM_INVALID, "fails on purpose"},
                 {THROW_OTHER, UM_ERROR, "an exception of unknown type"},
                 {NO_MEMORY, UM_OUT_OF_MEMORY, "out of memory"},
                 {MISSING, UM_UNSUPPORTED, nullptr}};
    for (const auto &one : cases) {
      Arrays y = um::extension::apply(std::unique_ptr<um::extension::Primitive>(new Stub(one.what)), {x});
      CHECK(y.size() == 1 && contexts == 1);
      int rule = 0;
      for (const Said &said : all_rules(applied, x.raw())) {
        CHECK(said.code == one.code);
        CHECK(said.error == (one.text != nullptr) && (one.text == nullptr || said.text == one.text));
        CHECK(said.handed == (one.what == WORK && rule >= 2));
        rule++;
      }
      char text[8] = {0};
      CHECK(applied.print(applied.context, text, 3) == 4 && std::string(text) == "stu");
      applied.release(applied.context);
      CHECK(contexts == 0);
    }
    um::extension::apply(std::unique_ptr<um::extension::Primitive>(new Stub(TOO_FEW)), {x});
    for (const Said &said : all_rules(applied, x.raw())) CHECK(said.code == UM_ERROR || said.text.empty());
    applied.release(applied.context);

    /* Operations, their errors, copies and moves of arrays. */
    Arrays two = um::extension::operation("split", {x}, {um::extension::attribute("axis", int64_t{0})}, 2);
    CHECK(two.size() == 2 && two[1].shape() == std::vector<int64_t>{4});
    try {
      um::extension::operation("refuse", {x}, {um::extension::attribute("shape", std::vector<int64_t>{1})});
      CHECK(!"refused");
    } catch (const um::extension::Error &error) {
      CHECK(error.code() == UM_INVALID && std::string(error.what()) == "refused 1 shape");
    }
    Array copy = two[0], moved = std::move(two[1]);
    CHECK(!two[1] && copy && moved);
    copy = moved;
    try {
      um::extension::parallel(100, 1, [](uint64_t from, uint64_t) {
        if (from == 0) throw um::extension::Error("in a loop");
      });
      CHECK(!"thrown again");
    } catch (const um::extension::Error &error) {
      CHECK(std::string(error.what()) == "in a loop");
    }
    try {
      x.eval();
      CHECK(!"a missing function");
    } catch (const um::extension::Error &error) {
      CHECK(error.code() == UM_UNSUPPORTED);
    }
  }
  CHECK(arrays == 0 && errors == 0 && contexts == 0);
  return 0;
}
