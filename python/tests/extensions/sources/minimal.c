/* A Python module in C that takes and returns Ultramarine's arrays: compiled by the C compiler alone, against the headers alone.
 * Each function shows one way of ownership; test_native_arrays.py counts references. */
#include <string.h>

#include <ultramarine/extension_python.h>

static const um_python_api *api;
static const um_extension_host *host;

/* A borrowed handle becomes one of our own by `array_retain`, which a new Python object takes over. */
static PyObject *same(PyObject *self, PyObject *object) {
  (void)self;
  um_array *borrowed = api->array_borrow(object);
  if (borrowed == NULL) return NULL;
  return api->array_to_object(host->array_retain(host->host, borrowed));
}

/* What we made of any object is ours. */
static PyObject *made(PyObject *self, PyObject *object) {
  (void)self;
  um_array *own = api->array_from_object(object);
  if (own == NULL) return NULL;
  return api->array_to_object(own);
}

static PyObject *is_array(PyObject *self, PyObject *object) {
  (void)self;
  return PyBool_FromLong(api->is_array(object));
}

/* x + y: both borrowed, the result taken over by the object; after a failure there is nothing of ours to end. */
static PyObject *add(PyObject *self, PyObject *arguments) {
  (void)self;
  PyObject *x, *y;
  if (!PyArg_ParseTuple(arguments, "OO", &x, &y)) return NULL;
  um_array *operands[2] = {api->array_borrow(x), NULL};
  if (operands[0] == NULL || (operands[1] = api->array_borrow(y)) == NULL) return NULL;
  um_array *result = NULL;
  um_error *error = NULL;
  um_status status = host->operation(host->host, "add", operands, 2, NULL, 0, NULL, &result, 1, &error);
  if (status != UM_OK) return api->raise(error);
  return api->array_to_object(result);
}

/* x + y of whatever `asarray` takes: our own handles are ended on every way out. */
static PyObject *add_any(PyObject *self, PyObject *arguments) {
  (void)self;
  PyObject *x, *y, *object = NULL;
  if (!PyArg_ParseTuple(arguments, "OO", &x, &y)) return NULL;
  um_array *operands[2] = {api->array_from_object(x), NULL}, *result = NULL;
  um_error *error = NULL;
  if (operands[0] != NULL && (operands[1] = api->array_from_object(y)) != NULL) {
    if (host->operation(host->host, "add", operands, 2, NULL, 0, NULL, &result, 1, &error) == UM_OK)
      object = api->array_to_object(result);
    else
      api->raise(error);
  }
  for (int i = 0; i < 2; i++) host->array_release(host->host, operands[i]);
  return object;
}

/* Shape, DLPack's code and bits. */
static PyObject *type_of(PyObject *self, PyObject *object) {
  (void)self;
  um_tensor_type type = {.size = sizeof type};
  um_array *borrowed = api->array_borrow(object);
  if (borrowed == NULL) return NULL;
  if (host->array_type(host->host, borrowed, &type) != UM_OK) {
    PyErr_SetString(PyExc_RuntimeError, "array_type");
    return NULL;
  }
  PyObject *shape = PyTuple_New(type.ndim);
  for (int i = 0; shape != NULL && i < type.ndim; i++) {
    PyObject *n = PyLong_FromLongLong(type.shape[i]);
    if (n == NULL || PyTuple_SetItem(shape, i, n) != 0) Py_CLEAR(shape);
  }
  return shape == NULL ? NULL : Py_BuildValue("(Nii)", shape, type.dtype.code, type.dtype.bits);
}

/* The sum of a float32 array's elements, read where they are. Others may run Python meanwhile. */
static PyObject *sum(PyObject *self, PyObject *object) {
  (void)self;
  um_view view = {.size = sizeof view};
  um_error *error = NULL;
  um_array *own = api->array_from_object(object);
  if (own == NULL) return NULL;
  um_status status;
  Py_BEGIN_ALLOW_THREADS
  status = host->array_view(host->host, own, &view, &error);
  Py_END_ALLOW_THREADS
  double total = 0;
  if (status == UM_OK && view.ndim == 1 && view.dtype.code == kDLFloat && view.dtype.bits == 32)
    for (int64_t i = 0; i < view.elements; i++) total += ((const float *)view.data)[i * view.strides[0]];
  host->array_release(host->host, own); /* the view ends with it */
  return status == UM_OK ? PyFloat_FromDouble(total) : api->raise(error);
}

/* uint8 from bytes. */
static PyObject *from_bytes(PyObject *self, PyObject *bytes) {
  (void)self;
  char *data;
  Py_ssize_t length;
  if (PyBytes_AsStringAndSize(bytes, &data, &length) != 0) return NULL;
  um_tensor_type type = {.size = sizeof type, .ndim = 1, .dtype = {kDLUInt, 8, 1}};
  type.shape[0] = length;
  um_array *array = NULL;
  um_error *error = NULL;
  if (host->array_from_bytes(host->host, &type, data, (uint64_t)length, &array, &error) != UM_OK) return api->raise(error);
  return api->array_to_object(array);
}

static void let_go(PyObject *capsule) { host->array_release(host->host, PyCapsule_GetPointer(capsule, "held")); }

/* A handle that lives on in a capsule when the Python object is gone. */
static PyObject *hold(PyObject *self, PyObject *object) {
  (void)self;
  um_array *borrowed = api->array_borrow(object);
  if (borrowed == NULL) return NULL;
  um_array *own = host->array_retain(host->host, borrowed);
  PyObject *capsule = PyCapsule_New(own, "held", let_go);
  if (capsule == NULL) host->array_release(host->host, own);
  return capsule;
}

/* A Python object for what a capsule holds. */
static PyObject *held(PyObject *self, PyObject *capsule) {
  (void)self;
  um_array *array = PyCapsule_GetPointer(capsule, "held");
  return array == NULL ? NULL : api->array_to_object(host->array_retain(host->host, array));
}

static PyObject *place_of(PyObject *self, PyObject *object) {
  (void)self;
  um_place place = {.size = sizeof place};
  if (api->place_from_object(object, &place) != 0) return NULL;
  return Py_BuildValue("(IIII)", place.kind, place.device_type, place.device_index, place.stream_index);
}

/* The exception of a status. */
static PyObject *raise_status(PyObject *self, PyObject *arguments) {
  (void)self;
  int status;
  const char *text;
  if (!PyArg_ParseTuple(arguments, "is", &status, &text)) return NULL;
  return api->raise(host->error_new(host->host, status, text, strlen(text)));
}

/* What callers do wrong: `how` says what. */
static PyObject *wrong(PyObject *self, PyObject *name) {
  (void)self;
  um_place place = {.size = 4};
  const char *how = PyUnicode_AsUTF8AndSize(name, NULL);
  if (how == NULL) return NULL;
  if (strcmp(how, "no object") == 0) return (PyObject *)api->array_borrow(NULL);
  if (strcmp(how, "no object to make of") == 0) return (PyObject *)api->array_from_object(NULL);
  if (strcmp(how, "no array") == 0) return api->array_to_object(NULL);
  if (strcmp(how, "no error") == 0) return api->raise(NULL);
  if (strcmp(how, "no place") == 0) return api->place_from_object(Py_None, NULL) == 0 ? Py_NewRef(Py_None) : NULL;
  if (strcmp(how, "short place") == 0) return api->place_from_object(Py_None, &place) == 0 ? Py_NewRef(Py_None) : NULL;
  PyErr_SetString(PyExc_KeyError, how);
  return NULL;
}

/* array_to_object where there is no memory for an object; `fail` makes the next allocation fail, and `stop` no more. */
static PyObject *without_memory(PyObject *self, PyObject *arguments) {
  (void)self;
  PyObject *array, *fail, *stop;
  if (!PyArg_ParseTuple(arguments, "OOO", &array, &fail, &stop)) return NULL;
  um_array *borrowed = api->array_borrow(array);
  if (borrowed == NULL) return NULL;
  um_array *own = host->array_retain(host->host, borrowed);
  PyObject *from = Py_BuildValue("(ii)", 0, 1), *result = PyObject_CallObject(fail, from);
  PyObject *object = api->array_to_object(own); /* takes it over */
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  PyObject *stopped = PyObject_CallObject(stop, NULL);
  PyErr_Restore(kind, value, traceback);
  Py_XDECREF(from);
  Py_XDECREF(result);
  Py_XDECREF(stopped);
  return object;
}

static PyObject *versions(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  return Py_BuildValue("(iiIIs)", api->major, api->minor, api->size, host->size, host->version);
}

static PyMethodDef methods[] = {
    {"same", same, METH_O, NULL},
    {"made", made, METH_O, NULL},
    {"is_array", is_array, METH_O, NULL},
    {"add", add, METH_VARARGS, NULL},
    {"add_any", add_any, METH_VARARGS, NULL},
    {"type_of", type_of, METH_O, NULL},
    {"sum", sum, METH_O, NULL},
    {"from_bytes", from_bytes, METH_O, NULL},
    {"hold", hold, METH_O, NULL},
    {"held", held, METH_O, NULL},
    {"place_of", place_of, METH_O, NULL},
    {"raise_status", raise_status, METH_VARARGS, NULL},
    {"wrong", wrong, METH_O, NULL},
    {"without_memory", without_memory, METH_VARARGS, NULL},
    {"versions", versions, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "minimal", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_minimal(void) {
  if ((api = um_import()) == NULL) return NULL;
  host = api->host;
  return PyModule_Create(&definition);
}
