/* Errors, and the check for a forked child. */

#include <stdarg.h>
#include <stdio.h>
#include <ultramarine/helper.h>

#include "ocl.h"

static um_host_table host_table;
static bool is_child;

static void after_fork(void) { is_child = true; }

void errors_init(const um_host_table *host) {
  static bool registered;
  um_read_sized(&host_table, sizeof host_table, host);
  if (!registered) registered = pthread_atfork(NULL, NULL, after_fork) == 0;
}

bool forked(void) { return is_child; }

um_status fail(um_error **error, um_status code, const char *format, ...) {
  /* Build logs may be long; what does not fit is cut. */
  char text[8192];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if ((size_t)length >= sizeof text) length = sizeof text - 1;
  if (error && host_table.error_new) *error = host_table.error_new(host_table.host, code, text, (uint64_t)length);
  return code;
}

um_status fail_command(um_error **error, uint32_t index, um_status code) {
  return um_fail_command(&host_table, error, index, code);
}

um_status fail_forked(um_error **error) {
  return fail(error, UM_FORKED, "OpenCL cannot be used in a forked child of the process that opened it");
}

um_status fail_cl(um_error **error, const char *what, cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return fail(error, UM_OUT_OF_MEMORY, "%s: no memory left on the device (OpenCL error %d)", what, code);
    default:
      return fail(error, UM_ERROR, "%s failed (OpenCL error %d)", what, code);
  }
}

um_status fail_axes(um_error **error) {
  return fail(error, UM_INVALID, "more than %d axes that cannot be joined", MAX_AXES);
}
