/* Primitives that break the contract, each in one way; test_misbehaving.py says what must come of it. Those that
 * behave give twice their operand, of float32, or twice and thrice it. */
#include <stdlib.h>
#include <string.h>

#include <ultramarine/extension_python.h>

static const um_python_api *api;
static const um_extension_host *host;
static long alive; /* contexts */

typedef enum {
  RIGHT,
  FAILS,       /* with words */
  SILENT,      /* without */
  NO_MEMORY,   /* says so, without words */
  STRANGE,     /* a status that there is not */
  UNSUPPORTED, /* without an error */
  NOTHING,     /* says it is well, and gives NULL or writes nothing */
  SHAPE,       /* another shape than infer's, or the operand's */
  DTYPE,       /* another dtype */
  NEGATIVE,    /* a negative size */
  RANK,        /* too many axes */
  HUGE_SIZE,   /* more bytes than there are addresses */
  AXIS,        /* an axis that there is not */
  INDEX,       /* an operand that there is not */
  TWICE,       /* memory for the same output twice */
  WINDOW,      /* a view beyond the operand's elements */
  MISSING,     /* no such rule */
  LEAVES,      /* gives a result and then fails */
} manner;

typedef struct {
  const char *name;
  manner infer, eval, compose, vjp, jvp, vmap;
  uint32_t n_outputs; /* 0 stands for 1 */
  uint32_t flags;
  const char *wrong; /* what is wrong with the struct itself */
} row;

static const row ROWS[] = {
    {"right", .compose = MISSING},
    {"composed", .eval = MISSING, .vjp = MISSING, .jvp = MISSING, .vmap = MISSING},
    {"two", .compose = MISSING, .n_outputs = 2},
    {"infer_fails", .infer = FAILS},
    {"infer_silent", .infer = SILENT},
    {"infer_strange", .infer = STRANGE},
    {"infer_unsupported", .infer = UNSUPPORTED},
    {"infer_negative", .infer = NEGATIVE},
    {"infer_rank", .infer = RANK},
    {"infer_dtype", .infer = DTYPE},
    {"infer_huge", .infer = HUGE_SIZE},
    {"infer_missing", .infer = MISSING},
    {"eval_fails", .eval = FAILS, .compose = MISSING},
    {"eval_silent", .eval = SILENT, .compose = MISSING},
    {"eval_strange", .eval = STRANGE, .compose = MISSING},
    {"eval_no_memory", .eval = NO_MEMORY, .compose = MISSING},
    {"eval_unsupported", .eval = UNSUPPORTED, .compose = MISSING},
    {"eval_unwritten", .eval = NOTHING, .compose = MISSING},
    {"eval_unallocated", .eval = NOTHING, .compose = MISSING, .flags = UM_PRIMITIVE_ALLOCATES},
    {"eval_allocates_index", .eval = INDEX, .compose = MISSING, .flags = UM_PRIMITIVE_ALLOCATES},
    {"eval_allocates_twice", .eval = TWICE, .compose = MISSING, .flags = UM_PRIMITIVE_ALLOCATES},
    {"eval_shares_window", .eval = WINDOW, .compose = MISSING, .flags = UM_PRIMITIVE_ALLOCATES},
    {"eval_falls_back", .eval = UNSUPPORTED},
    {"nothing_at_all", .eval = MISSING, .compose = MISSING},
    {"compose_fails", .eval = MISSING, .compose = FAILS},
    {"compose_silent", .eval = MISSING, .compose = SILENT},
    {"compose_nothing", .eval = MISSING, .compose = NOTHING},
    {"compose_shape", .eval = MISSING, .compose = SHAPE},
    {"compose_dtype", .eval = MISSING, .compose = DTYPE},
    {"compose_leaves", .eval = MISSING, .compose = LEAVES},
    {"compose_half", .eval = MISSING, .compose = LEAVES, .n_outputs = 2},
    {"vjp_fails", .vjp = FAILS},
    {"vjp_silent", .vjp = SILENT},
    {"vjp_shape", .vjp = SHAPE},
    {"vjp_missing", .vjp = MISSING, .compose = MISSING},
    {"vjp_unsupported", .vjp = UNSUPPORTED, .compose = MISSING},
    {"vjp_zero", .vjp = NOTHING},
    {"jvp_fails", .jvp = FAILS},
    {"jvp_shape", .jvp = SHAPE},
    {"jvp_missing", .jvp = MISSING, .compose = MISSING},
    {"vmap_fails", .vmap = FAILS},
    {"vmap_shape", .vmap = SHAPE},
    {"vmap_axis", .vmap = AXIS},
    {"vmap_nothing", .vmap = NOTHING},
    {"vmap_missing", .vmap = MISSING, .compose = MISSING},
    {"no_outputs", .wrong = "no outputs"},
    {"absurd_outputs", .wrong = "absurd outputs"},
    {"no_name", .wrong = "no name"},
    {"no_utf8", .wrong = "no utf8"},
    {"no_attributes", .wrong = "no attributes"},
    {"short_struct", .wrong = "short struct"},
    {"no_size", .wrong = "no size"},
};

/* What a rule answers that does not do its work; UM_OK if it does. */
static um_status answer(manner how, const char *rule, um_error **error) {
  switch (how) {
    case FAILS:
    case LEAVES:
      *error = host->error_new(host->host, UM_INVALID, rule, strlen(rule));
      return UM_INVALID;
    case SILENT: return UM_ERROR;
    case STRANGE: return 77;
    case NO_MEMORY: return UM_OUT_OF_MEMORY;
    case UNSUPPORTED: return UM_UNSUPPORTED;
    default: return UM_OK;
  }
}

typedef struct {
  const row *of;
} context;

static const row *row_of(void *own) { return ((context *)own)->of; }

static um_status infer(void *own, const um_tensor_type *inputs, uint32_t n_inputs, um_tensor_type *outputs, um_error **error) {
  (void)n_inputs;
  manner how = row_of(own)->infer;
  um_status status = answer(how, "infer found nothing", error);
  if (status != UM_OK) return status;
  uint32_t n = row_of(own)->n_outputs == 0 ? 1 : row_of(own)->n_outputs, size = outputs->size;
  for (uint32_t i = 0; i < n; i++) {
    um_tensor_type *type = (um_tensor_type *)(void *)((char *)outputs + (size_t)i * size);
    *type = *inputs;
    type->size = size;
    if (how == NEGATIVE) type->shape[0] = -3;
    if (how == RANK) type->ndim = 1000000;
    if (how == DTYPE) type->dtype = (DLDataType){99, 7, 3};
    if (how == HUGE_SIZE) type->shape[0] = INT64_MAX / 2;
  }
  return UM_OK;
}

static const um_view *view(const um_view *views, uint32_t stride, uint32_t i) {
  return (const um_view *)(const void *)((const char *)views + (size_t)i * stride);
}

static um_status eval(void *own, const um_call *call, um_error **error) {
  const row *of = row_of(own);
  um_status status = answer(of->eval, "eval found nothing", error);
  if (status != UM_OK || of->eval == NOTHING) return status;
  um_view out = {.size = sizeof out};
  const int64_t strides[UM_MAX_NDIM] = {1};
  if (of->eval == INDEX) return host->take(call->host_call, 0, 55, &out, error);
  if (of->eval == WINDOW) return host->share(call->host_call, 0, 0, 1000000, strides, error);
  for (int i = 0; i < (of->eval == TWICE ? 2 : 0) && status == UM_OK; i++)
    status = host->allocate(call->host_call, 0, NULL, &out, error);
  if (of->eval == TWICE) return status;
  for (uint32_t t = 0; t < call->n_outputs; t++) {
    const um_view *in = view(call->inputs, call->view_stride, 0), *to = view(call->outputs, call->view_stride, t);
    for (int64_t i = 0; i < in->elements; i++) ((float *)to->data)[i] = (float)(t + 2) * ((const float *)in->data)[in->ndim == 1 ? i * in->strides[0] : i];
  }
  return UM_OK;
}

/* An operand, times as much as it takes for output `i`, in the manner. */
static um_status times(manner how, um_array *operand, uint32_t i, um_array **result, um_error **error) {
  if (how == NOTHING) return UM_OK;
  um_tensor_type type = {.size = sizeof type};
  um_status status = host->array_type(host->host, operand, &type);
  float factor = (float)(i + 2);
  uint64_t bits[2] = {0, 0};
  memcpy(bits, &factor, sizeof factor);
  um_array *both[2] = {NULL, operand}, *product = NULL;
  if (how == SHAPE) type.ndim = 2, type.shape[0] = 2, type.shape[1] = 7;
  else type.ndim = 0;
  if (status == UM_OK) status = host->array_full(host->host, &type, bits, &both[0], error);
  if (status == UM_OK && how == SHAPE) {
    *result = both[0];
    return UM_OK;
  }
  if (status == UM_OK) status = host->operation(host->host, "multiply", both, 2, NULL, 0, NULL, &product, 1, error);
  host->array_release(host->host, both[0]);
  if (status == UM_OK && how == DTYPE) {
    um_attribute to = {.size = sizeof to, .kind = UM_ATTRIBUTE_DTYPE, .name = "dtype", .dtype = {kDLInt, 32, 1}};
    status = host->operation(host->host, "astype", &product, 1, &to, 1, NULL, result, 1, error);
    host->array_release(host->host, product);
    return status;
  }
  if (status == UM_OK) *result = product;
  return status;
}

static um_status compose(void *own, um_array *const *inputs, uint32_t n_inputs, um_array **outputs, um_error **error) {
  (void)n_inputs;
  const row *of = row_of(own);
  if (of->compose == LEAVES) {
    um_status status = times(RIGHT, inputs[0], 0, &outputs[0], error);
    if (status != UM_OK || of->n_outputs == 2) return status; /* the second is left out */
  }
  um_status status = answer(of->compose, "compose found nothing", error);
  for (uint32_t i = 0; i < (of->n_outputs == 0 ? 1 : of->n_outputs) && status == UM_OK; i++)
    status = times(of->compose, inputs[0], i, &outputs[i], error);
  return status;
}

static um_status vjp(void *own, um_array *const *inputs, uint32_t n_inputs, um_array *const *outputs,
                     um_array *const *cotangents, const uint8_t *wanted, um_array **results, um_error **error) {
  (void)inputs, (void)n_inputs, (void)outputs, (void)wanted;
  um_status status = answer(row_of(own)->vjp, "vjp found nothing", error);
  if (status == UM_OK && cotangents[0] != NULL) status = times(row_of(own)->vjp, cotangents[0], 0, &results[0], error);
  return status;
}

static um_status jvp(void *own, um_array *const *inputs, uint32_t n_inputs, um_array *const *tangents, um_array **results,
                     um_error **error) {
  (void)inputs, (void)n_inputs;
  um_status status = answer(row_of(own)->jvp, "jvp found nothing", error);
  if (status == UM_OK && tangents[0] != NULL) status = times(row_of(own)->jvp, tangents[0], 0, &results[0], error);
  return status;
}

static um_status vmap(void *own, um_array *const *inputs, uint32_t n_inputs, const int32_t *axes, int64_t batch,
                      um_array **outputs, int32_t *output_axes, um_error **error) {
  (void)n_inputs, (void)batch;
  um_status status = answer(row_of(own)->vmap, "vmap found nothing", error);
  output_axes[0] = row_of(own)->vmap == AXIS ? 99 : axes[0];
  if (status == UM_OK) status = times(row_of(own)->vmap, inputs[0], 0, &outputs[0], error);
  return status;
}

static void release(void *own) {
  __atomic_fetch_sub(&alive, 1, __ATOMIC_SEQ_CST);
  free(own);
}

/* apply(name, array): a tuple of the results of the primitive of that name. */
static PyObject *apply(PyObject *self, PyObject *arguments) {
  (void)self;
  const char *name;
  PyObject *object;
  if (!PyArg_ParseTuple(arguments, "sO", &name, &object)) return NULL;
  const row *of = NULL;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
    if (strcmp(ROWS[i].name, name) == 0) of = &ROWS[i];
  if (of == NULL) return PyErr_Format(PyExc_KeyError, "%s", name);
  um_array *input = api->array_borrow(object);
  if (input == NULL) return NULL;

  context *own = (context *)malloc(sizeof *own);
  own->of = of;
  __atomic_fetch_add(&alive, 1, __ATOMIC_SEQ_CST);
  const char *wrong = of->wrong == NULL ? "" : of->wrong;
  um_primitive primitive = {
      .size = sizeof primitive, .flags = of->flags, .name = of->name, .version = 1,
      .n_outputs = of->n_outputs == 0 ? 1 : of->n_outputs, .attributes = &of, .attribute_bytes = sizeof of, .context = own,
      .infer = of->infer == MISSING ? NULL : infer, .eval_cpu = of->eval == MISSING ? NULL : eval,
      .compose = of->compose == MISSING ? NULL : compose, .vjp = of->vjp == MISSING ? NULL : vjp,
      .jvp = of->jvp == MISSING ? NULL : jvp, .vmap = of->vmap == MISSING ? NULL : vmap, .release = release,
  };
  if (strcmp(wrong, "no outputs") == 0) primitive.n_outputs = 0;
  if (strcmp(wrong, "absurd outputs") == 0) primitive.n_outputs = UINT32_MAX;
  if (strcmp(wrong, "no name") == 0) primitive.name = NULL;
  if (strcmp(wrong, "no utf8") == 0) primitive.name = "\xff\xfe";
  if (strcmp(wrong, "no attributes") == 0) primitive.attributes = NULL;
  if (strcmp(wrong, "short struct") == 0) primitive.size = 64;
  if (strcmp(wrong, "no size") == 0) primitive.size = 0;
  um_array *outputs[2] = {NULL, NULL};
  um_error *error = NULL;
  um_status status = host->apply(host->host, &primitive, &input, 1, NULL, outputs, &error);
  if (status != UM_OK) return api->raise(error);
  PyObject *results = PyTuple_New(primitive.n_outputs);
  for (uint32_t i = 0; i < primitive.n_outputs; i++) {
    PyObject *result = (PyObject *)api->array_to_object(outputs[i]);
    if (results == NULL || result == NULL || PyTuple_SetItem(results, i, result) != 0) return NULL;
  }
  return results;
}

static PyObject *contexts(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  return PyLong_FromLong(__atomic_load_n(&alive, __ATOMIC_SEQ_CST));
}

static PyObject *names(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  PyObject *all = PyList_New(0);
  for (size_t i = 0; all != NULL && i < sizeof ROWS / sizeof *ROWS; i++) {
    PyObject *name = PyUnicode_FromString(ROWS[i].name);
    if (name == NULL || PyList_Append(all, name) != 0) Py_CLEAR(all);
    Py_XDECREF(name);
  }
  return all;
}

static PyMethodDef methods[] = {
    {"apply", apply, METH_VARARGS, NULL},
    {"contexts", contexts, METH_NOARGS, NULL},
    {"names", names, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "misbehaving", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_misbehaving(void) {
  if ((api = um_import()) == NULL) return NULL;
  host = api->host;
  return PyModule_Create(&definition);
}
