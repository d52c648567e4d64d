/* Helper functions for operations in C11 that a Python module provides. They are compiled into the module.
 *
 *   UM_MODULE, UM_FUNCTION          the definition of a module, and a row of its table of functions
 *   um_start                        gets the tables of Ultramarine; UM_MODULE calls it
 *   um_refuse                       makes an error, with the arguments of printf
 *   um_type_at, um_input, um_output elements of arrays of structs, whose size another version may have changed
 *   um_like                         gives an output an input's shape and dtype
 *   um_elementwise                  a loop over strided and broadcast views, on the host's threads
 *   um_ops, um_ops_...              ordinary operations in sequence, with one check at the end
 *   um_primitive_of                 a primitive whose attributes are a struct
 *   um_apply_objects                applies a primitive to Python objects
 *
 * `examples/extensions/huber-c` is an operation of 60 lines, and docs/write-an-operation.md explains it. The tables are static
 * variables, one pair for each C file that includes this header: keep the rules in the file that has UM_MODULE. extension.h
 * specifies the contract. */
#ifndef ULTRAMARINE_EXTENSION_HELPER_H
#define ULTRAMARINE_EXTENSION_HELPER_H

#include "extension_python.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tables: Python's functions, and those of the host. They are NULL until `um_start` has returned 0. */
static const um_python_api *um_api;
static const um_extension_host *um_host;

/* Imports `ultramarine` and gets the tables. Needs the interpreter lock. Returns 0, or -1 with an ImportError set. */
static inline int um_start(void) {
  um_api = um_import();
  if (um_api == NULL) return -1;
  um_host = um_api->host;
  return 0;
}

/* ---- errors ------------------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
#define UM_REFUSE_FORMAT __attribute__((format(printf, 3, 4)))
#else
#define UM_REFUSE_FORMAT
#endif

/* Makes the error object of a rule and returns `status`. `error` is the rule's argument, never NULL; the host frees the object.
 * UM_INVALID becomes Python's ValueError. The text is cut at 511 bytes.
 *
 *   return um_refuse(error, UM_INVALID, "[scale] takes 1 array, got %u. Pass x.", n_inputs); */
UM_REFUSE_FORMAT
static inline um_status um_refuse(um_error **error, um_status status, const char *format, ...) {
  char text[512];
  va_list arguments;
  int length;
  va_start(arguments, format);
  length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if ((size_t)length >= sizeof text) length = (int)sizeof text - 1;
  *error = um_host->error_new(um_host->host, status, text, (uint64_t)length);
  return status;
}

/* ---- types and views ---------------------------------------------------------------------------------------- */

/* Return type, input or output `index`, which is below the count. Never index these as C arrays: structs of a later version are
 * longer, and these functions step by the size that the host gives. The results live as long as the call of the rule. */
static inline const um_tensor_type *um_type_at(const um_tensor_type *types, uint32_t index) {
  return (const um_tensor_type *)(const void *)((const char *)types + (size_t)index * types->size);
}
static inline const um_view *um_input(const um_call *call, uint32_t index) {
  return (const um_view *)(const void *)((const char *)call->inputs + (size_t)index * call->view_stride);
}
static inline const um_view *um_output(const um_call *call, uint32_t index) {
  return (const um_view *)(const void *)((const char *)call->outputs + (size_t)index * call->view_stride);
}

/* Returns 1 for the IEEE floating dtype of `bits` bits, such as um_is_float(dtype, 32), else 0. bfloat16 is not one. */
static inline int um_is_float(DLDataType dtype, int bits) {
  return dtype.code == kDLFloat && dtype.bits == bits && dtype.lanes == 1;
}

/* Returns 1 if two types have the same shape and dtype, else 0. */
static inline int um_same_type(const um_tensor_type *a, const um_tensor_type *b) {
  return a->ndim == b->ndim && a->dtype.code == b->dtype.code && a->dtype.bits == b->dtype.bits &&
         memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* Gives an output of `infer` the shape and dtype of an input. Its `size`, which the host has set, stays. */
static inline void um_like(um_tensor_type *output, const um_tensor_type *input) {
  output->ndim = input->ndim;
  output->dtype = input->dtype;
  memcpy(output->shape, input->shape, sizeof output->shape);
}

/* ---- loops -------------------------------------------------------------------------------------------------- */

#define UM_ROW_VIEWS 8
/* Elements that a thread takes at a time. */
#define UM_ROW_PIECE 65536

/* A row of several views: the inputs in their order, then output 0. A body reads and writes it by UM_AT:
 *
 *   static void twice(const um_row *row) {
 *     for (int64_t i = 0; i < row->length; i++) UM_AT(float, row, 1, i) = 2 * UM_AT(float, row, 0, i);
 *   } */
typedef struct um_row {
  int64_t length;
  char *data[UM_ROW_VIEWS];   /* its first element, per view */
  int64_t step[UM_ROW_VIEWS]; /* bytes from element to element, per view */
  DLDataType dtype;           /* of the output */
  void *context;              /* what `um_elementwise` got */
} um_row;

/* Element `i` of view `view` of a row, as an lvalue. */
#define UM_AT(type, row, view, i) (*(type *)(void *)((row)->data[view] + (i) * (row)->step[view]))

typedef void (*um_row_body)(const um_row *row);

typedef struct um_row_walk {
  um_row_body body;
  um_row first;
  uint32_t n;
  int32_t ndim;
  int64_t elements;
  int64_t shape[UM_MAX_NDIM];
  int64_t strides[UM_ROW_VIEWS][UM_MAX_NDIM]; /* in bytes */
} um_row_walk;

/* The elements from `index` * UM_ROW_PIECE on, a row or a part of one at a time. */
static inline void um_row_piece(void *context, uint64_t index) {
  const um_row_walk *walk = (const um_row_walk *)context;
  int64_t at = (int64_t)index * UM_ROW_PIECE, end = at + UM_ROW_PIECE;
  const int32_t last = walk->ndim - 1;
  if (end > walk->elements) end = walk->elements;
  while (at < end) {
    um_row row = walk->first;
    int64_t rest = at, room = 0;
    int32_t axis;
    uint32_t k;
    for (axis = last; axis >= 0; axis--) {
      const int64_t coordinate = rest % walk->shape[axis];
      rest /= walk->shape[axis];
      if (axis == last) room = walk->shape[axis] - coordinate;
      for (k = 0; k < walk->n; k++) row.data[k] += coordinate * walk->strides[k][axis];
    }
    row.length = room < end - at ? room : end - at;
    walk->body(&row);
    at += row.length;
  }
}

/* Calls `body` for all rows of the inputs and output 0, on the host's threads, and returns when all calls have. All views have
 * the shape of output 0, with any strides; adjacent axes that are contiguous in every view are joined. `context` reaches the body
 * as row->context. Returns UM_OK, or UM_ERROR with an error object for more than UM_ROW_VIEWS - 1 inputs or another rank. An
 * output without elements has no rows. */
static inline um_status um_elementwise(const um_call *call, um_row_body body, void *context, um_error **error) {
  const um_view *out = um_output(call, 0);
  um_row_walk walk;
  int32_t axis;
  uint32_t k;
  memset(&walk, 0, sizeof walk);
  walk.body = body;
  walk.n = call->n_inputs + 1;
  walk.elements = out->elements;
  walk.first.dtype = out->dtype;
  walk.first.context = context;
  if (walk.n > UM_ROW_VIEWS) return um_refuse(error, UM_ERROR, "um_elementwise takes %d inputs at most", UM_ROW_VIEWS - 1);
  for (k = 0; k < walk.n; k++) {
    const um_view *view = k < call->n_inputs ? um_input(call, k) : out;
    if (view->ndim != out->ndim) return um_refuse(error, UM_ERROR, "um_elementwise: input %u has another rank", (unsigned)k);
    walk.first.data[k] = (char *)view->data;
  }
  for (axis = 0; axis < out->ndim; axis++) {
    int joins = walk.ndim > 0;
    if (out->shape[axis] == 1) continue;
    for (k = 0; k < walk.n; k++) {
      const um_view *view = k < call->n_inputs ? um_input(call, k) : out;
      const int64_t stride = view->strides[axis] * (view->dtype.bits * view->dtype.lanes / 8);
      walk.strides[k][walk.ndim] = stride;
      joins = joins && walk.strides[k][walk.ndim - 1] == stride * out->shape[axis];
    }
    walk.shape[walk.ndim] = out->shape[axis];
    if (joins) {
      walk.shape[walk.ndim - 1] *= out->shape[axis];
      for (k = 0; k < walk.n; k++) walk.strides[k][walk.ndim - 1] = walk.strides[k][walk.ndim];
    } else {
      walk.ndim++;
    }
  }
  if (walk.ndim == 0) walk.shape[walk.ndim++] = 1;
  for (k = 0; k < walk.n; k++) walk.first.step[k] = walk.strides[k][walk.ndim - 1];
  if (walk.elements > 0) {
    const uint64_t pieces = (uint64_t)((walk.elements + UM_ROW_PIECE - 1) / UM_ROW_PIECE);
    um_host->parallel_for(um_host->host, pieces, um_row_piece, &walk);
  }
  return UM_OK;
}

/* ---- ordinary operations ------------------------------------------------------------------------------------ */

#define UM_OPS_KEPT 64

/* Ordinary operations in sequence, for `compose` and the rules of derivatives. The um_ops owns every array that it makes. After a
 * failure all functions return NULL; um_ops_end reports the failure and releases the arrays:
 *
 *   um_ops ops = {0};
 *   um_array *a = um_ops_unary(&ops, "abs", inputs[0]);
 *   um_array *m = um_ops_binary(&ops, "minimum", a, um_ops_number(&ops, a, 1.0));
 *   return um_ops_end(&ops, m, &outputs[0], error); */
typedef struct um_ops {
  um_status status;
  uint32_t n;
  um_error *error;
  um_array *kept[UM_OPS_KEPT];
} um_ops;

/* Keeps an array that the host has made until um_ops_end. Returns it, or NULL if `status` is a failure. */
static inline um_array *um_ops_keep(um_ops *ops, um_status status, um_array *made) {
  if (status != UM_OK) {
    ops->status = status;
    return NULL;
  }
  if (ops->n == UM_OPS_KEPT) {
    um_host->array_release(um_host->host, made);
    ops->status = um_refuse(&ops->error, UM_ERROR, "more than %d operations in one um_ops", UM_OPS_KEPT);
    return NULL;
  }
  ops->kept[ops->n++] = made;
  return made;
}

/* Runs an operation with one result by its name in mlx.core; docs/extension-operations.md lists them with their attributes.
 * Returns the lazy result, which `ops` owns, or NULL after a failure. The functions below are shorter forms. */
static inline um_array *um_ops_call(um_ops *ops, const char *name, um_array *const *inputs, uint32_t n,
                                    const um_attribute *attributes, uint32_t n_attributes) {
  um_array *result = NULL;
  um_status status;
  if (ops->status != UM_OK) return NULL;
  status = um_host->operation(um_host->host, name, inputs, n, attributes, n_attributes, NULL, &result, 1, &ops->error);
  return um_ops_keep(ops, status, result);
}
static inline um_array *um_ops_unary(um_ops *ops, const char *name, um_array *x) {
  return um_ops_call(ops, name, &x, 1, NULL, 0);
}
static inline um_array *um_ops_binary(um_ops *ops, const char *name, um_array *x, um_array *y) {
  um_array *both[2];
  both[0] = x, both[1] = y;
  return um_ops_call(ops, name, both, 2, NULL, 0);
}
static inline um_array *um_ops_astype(um_ops *ops, um_array *x, DLDataType dtype) {
  um_attribute to;
  memset(&to, 0, sizeof to);
  to.size = sizeof to, to.kind = UM_ATTRIBUTE_DTYPE, to.name = "dtype", to.dtype = dtype;
  return um_ops_call(ops, "astype", &x, 1, &to, 1);
}

/* Returns a number as an array without axes, in the dtype of `like`, so that it broadcasts with that. */
static inline um_array *um_ops_number(um_ops *ops, um_array *like, double number) {
  um_tensor_type of, type;
  um_array *made = NULL;
  uint64_t bits[2] = {0, 0};
  um_status status;
  if (ops->status != UM_OK) return NULL;
  memset(&of, 0, sizeof of), memset(&type, 0, sizeof type);
  of.size = type.size = sizeof of;
  ops->status = um_host->array_type(um_host->host, like, &of);
  if (ops->status != UM_OK) return NULL;
  memcpy(bits, &number, sizeof number);
  type.dtype.code = kDLFloat, type.dtype.bits = 64, type.dtype.lanes = 1;
  status = um_host->array_full(um_host->host, &type, bits, &made, &ops->error);
  return um_ops_astype(ops, um_ops_keep(ops, status, made), of.dtype);
}

/* Ends the sequence: `output` becomes a new handle of `result`, which the rule's caller owns, and all arrays of `ops` are
 * released. Returns UM_OK; or the status of the first failure, whose error object goes to `error`. */
static inline um_status um_ops_end(um_ops *ops, um_array *result, um_array **output, um_error **error) {
  uint32_t i;
  if (ops->status == UM_OK) *output = um_host->array_retain(um_host->host, result);
  else *error = ops->error;
  for (i = 0; i < ops->n; i++) um_host->array_release(um_host->host, ops->kept[i]);
  return ops->status;
}

/* ---- primitives and Python ---------------------------------------------------------------------------------- */

/* Returns a primitive with one output and without rules; fill in the rules. `attributes` is a struct of `bytes` bytes without
 * pointers, whose padding is zero. A copy of it is the context of the rules, which the primitive owns until it is applied.
 * If there is no memory the context is NULL, which um_apply_objects reports as a MemoryError.
 *
 *   um_primitive huber = um_primitive_of("huber", 1, &delta, sizeof delta);
 *   huber.infer = infer, huber.eval_cpu = eval_cpu, huber.compose = compose;
 *   return um_apply_objects(&huber, &x, 1, stream); */
static inline um_primitive um_primitive_of(const char *name, uint32_t version, const void *attributes, size_t bytes) {
  um_primitive primitive;
  memset(&primitive, 0, sizeof primitive);
  primitive.size = sizeof primitive;
  primitive.name = name;
  primitive.version = version;
  primitive.n_outputs = 1;
  primitive.context = malloc(bytes == 0 ? 1 : bytes);
  if (primitive.context != NULL && bytes > 0) memcpy(primitive.context, attributes, bytes);
  primitive.attributes = primitive.context;
  primitive.attribute_bytes = bytes;
  primitive.release = free;
  return primitive;
}

#define UM_OPERANDS 8

/* Writes the promoted dtype of all arrays to `dtype`; integers and bool become float32. Returns UM_OK or a failure. */
static inline um_status um_common_dtype(um_array *const *arrays, uint32_t n, DLDataType *dtype, um_error **error) {
  um_tensor_type type;
  um_status status = UM_OK;
  uint32_t i;
  memset(&type, 0, sizeof type);
  type.size = sizeof type;
  for (i = 0; i < n && status == UM_OK; i++) {
    status = um_host->array_type(um_host->host, arrays[i], &type);
    if (status != UM_OK) break;
    if (i == 0) *dtype = type.dtype;
    else status = um_host->promote_types(um_host->host, *dtype, type.dtype, dtype, error);
  }
  if (status == UM_OK && (dtype->code == kDLBool || um_host->issubdtype(um_host->host, *dtype, "integer") == 1)) {
    dtype->code = kDLFloat, dtype->bits = 32, dtype->lanes = 1;
  }
  return status;
}

/* Applies a primitive with one output to `n` Python objects: arrays, or whatever `ultramarine.asarray` takes. They are converted
 * to one floating dtype and broadcast to one shape. `stream` is the Python function's argument of that name, or Py_None. The
 * primitive's context is taken over, also after a failure. Needs the interpreter lock. Returns a new reference to an array, or NULL
 * with an exception set. */
static inline PyObject *um_apply_objects(const um_primitive *primitive, PyObject *const *objects, uint32_t n, PyObject *stream) {
  um_array *given[UM_OPERANDS] = {NULL}, *cast[UM_OPERANDS] = {NULL}, *same[UM_OPERANDS] = {NULL}, *result = NULL;
  um_error *error = NULL;
  um_status status = primitive->context == NULL ? UM_OUT_OF_MEMORY : UM_OK;
  um_attribute to;
  um_place place;
  uint32_t i;
  int handed = 0, raised = 0;
  memset(&to, 0, sizeof to), memset(&place, 0, sizeof place);
  to.size = sizeof to, to.kind = UM_ATTRIBUTE_DTYPE, to.name = "dtype";
  place.size = sizeof place;
  if (n == 0 || n > UM_OPERANDS) status = um_refuse(&error, UM_ERROR, "[%s] takes 1 to %d arrays", primitive->name, UM_OPERANDS);
  if (status == UM_OK && um_api->place_from_object(stream, &place) != 0) raised = 1;
  for (i = 0; i < n && status == UM_OK && !raised; i++) {
    given[i] = um_api->array_from_object(objects[i]);
    raised = given[i] == NULL;
  }
  if (!raised) {
    if (status == UM_OK) status = um_common_dtype(given, n, &to.dtype, &error);
    for (i = 0; i < n && status == UM_OK; i++)
      status = um_host->operation(um_host->host, "astype", &given[i], 1, &to, 1, &place, &cast[i], 1, &error);
    if (status == UM_OK) status = um_host->broadcast_arrays(um_host->host, cast, n, same, &error);
    if (status == UM_OK) {
      handed = 1;
      status = um_host->apply(um_host->host, primitive, same, n, &place, &result, &error);
    }
    if (status != UM_OK) {
      if (error == NULL) um_refuse(&error, status, "[%s] failed (status %d)", primitive->name, (int)status);
      um_api->raise(error);
    }
  }
  for (i = 0; i < n && i < UM_OPERANDS; i++) {
    um_host->array_release(um_host->host, given[i]);
    um_host->array_release(um_host->host, cast[i]);
    um_host->array_release(um_host->host, same[i]);
  }
  if (!handed && primitive->release != NULL && primitive->context != NULL) primitive->release(primitive->context);
  return result == NULL ? NULL : (PyObject *)um_api->array_to_object(result);
}

/* A row of a module's table of functions, for a C function with positional and keyword arguments:
 * UM_FUNCTION("huber", huber, "huber(x, delta)\n--\n\n..."). The table ends with a row of zeros. */
#define UM_FUNCTION(name, function, doc) \
  {name, (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS, doc}

/* Defines a Python module with its initialisation: UM_MODULE(_native, "Its docstring.", methods), where `methods` is the table of
 * UM_FUNCTION rows. `_native` is the module's name. */
#define UM_MODULE(name, doc, methods) \
  static int um_module_exec(PyObject *module) { return (void)module, um_start(); } \
  static PyModuleDef_Slot um_module_slots[] = {{Py_mod_exec, (void *)um_module_exec}, {0, NULL}}; \
  static struct PyModuleDef um_module = {PyModuleDef_HEAD_INIT, #name, doc, 0, methods, um_module_slots, NULL, NULL, NULL}; \
  PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&um_module); }

#endif
