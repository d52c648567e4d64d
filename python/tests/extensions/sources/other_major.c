/* Not Ultramarine: a capsule such as a host of another version of the extension contract would offer. */
#include <ultramarine/extension_python.h>

static um_extension_host host = {.version = "9.9.9"};
static um_python_api api = {.host = &host};

/* capsule(major, minor, bytes that the tables lack): for `ultramarine._C_API`. */
static PyObject *capsule(PyObject *self, PyObject *arguments) {
  (void)self;
  int major, minor, less;
  if (!PyArg_ParseTuple(arguments, "iii", &major, &minor, &less)) return NULL;
  api.major = host.major = (uint16_t)major;
  api.minor = host.minor = (uint16_t)minor;
  api.size = (uint32_t)sizeof api;
  host.size = (uint32_t)sizeof host - (uint32_t)less;
  return PyCapsule_New(&api, UM_PYTHON_CAPSULE, NULL);
}

static PyMethodDef methods[] = {{"capsule", capsule, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "other_major", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_other_major(void) { return PyModule_Create(&definition); }
