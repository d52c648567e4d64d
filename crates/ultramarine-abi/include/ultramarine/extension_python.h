/* For Python modules in C or C++ that take and return arrays: includes <Python.h> and gets the table of extension.h.
 *
 *   static const um_python_api *api;
 *   ... in the module's exec slot:  if ((api = um_import()) == NULL) return -1; */
#ifndef ULTRAMARINE_EXTENSION_PYTHON_H
#define ULTRAMARINE_EXTENSION_PYTHON_H

#include <Python.h>

#include "extension.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of the capsule, which lives as long as the process; imports `ultramarine` if need be. NULL and an ImportError
 * that says both versions if Ultramarine's contract has another major than the one that this is compiled with, or is
 * older than the parts that it is compiled with. */
static inline const um_python_api *um_import(void) {
  const um_python_api *api = (const um_python_api *)PyCapsule_Import(UM_PYTHON_CAPSULE, 0);
  if (api == NULL) return NULL;
  /* The first three members, here and in the host table, are the same in every version. */
  if (api->major != UM_EXTENSION_MAJOR) {
    PyErr_Format(PyExc_ImportError,
                 "this extension was built for version %d.%d of Ultramarine's extension contract, and the installed "
                 "ultramarine has version %d.%d: rebuild the extension, or install the ultramarine that it is for",
                 UM_EXTENSION_MAJOR, UM_EXTENSION_MINOR, (int)api->major, (int)api->minor);
    return NULL;
  }
  if (api->size < sizeof(um_python_api) || api->host->size < sizeof(um_extension_host)) {
    PyErr_Format(PyExc_ImportError,
                 "this extension was built for version %d.%d of Ultramarine's extension contract, and the installed "
                 "ultramarine (%s) has version %d.%d, which lacks a part: install a newer ultramarine",
                 UM_EXTENSION_MAJOR, UM_EXTENSION_MINOR, api->host->version, (int)api->major, (int)api->minor);
    return NULL;
  }
  return api;
}

#ifdef __cplusplus
}
#endif

#endif
