/* Programs: OpenCL C compiled per source file, dtype and variant. The op within a family is an argument of the
 * kernels, not a constant, so that a few dozen programs serve thousands of cases. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ocl.h"

/* Made by the Makefile from kernels/ and from the contract's schema.h. */
extern const char source_codes[], source_common[], source_number[], source_float[], source_integer[],
    source_complex[], source_elementwise[], source_cast[], source_move[], source_reduce[], source_matmul[],
    source_indices[], source_index[], source_scatter[], source_scan[], source_sort[], source_random[];

#define MAX_PARTS 8

static const char *const parts[SOURCE_COUNT][MAX_PARTS] = {
    [SOURCE_ELEMENTWISE] = {source_codes, source_common, source_number, source_float, source_integer,
                            source_elementwise},
    [SOURCE_COMPLEX] = {source_codes, source_common, source_number, source_complex, source_elementwise},
    [SOURCE_CAST] = {source_codes, source_common, source_number, source_cast},
    [SOURCE_MOVE] = {source_common, source_move},
    [SOURCE_REDUCE] = {source_codes, source_common, source_number, source_reduce},
    [SOURCE_MATMUL] = {source_codes, source_common, source_number, source_matmul},
    [SOURCE_INDEX] = {source_codes, source_common, source_indices, source_index},
    [SOURCE_SCATTER] = {source_codes, source_common, source_number, source_indices, source_scatter},
    [SOURCE_SCAN] = {source_codes, source_common, source_number, source_scan},
    [SOURCE_SORT] = {source_codes, source_common, source_number, source_sort},
    [SOURCE_RANDOM] = {source_common, source_random},
};

struct program {
  char *text; /* of a program by its text, else NULL */
  enum source source;
  uint32_t dtype;
  uint32_t variant;
  cl_program handle;
  struct kernel *kernels;
  struct program *next;
};

static um_status build(struct device *device, struct program *program, const char *const *texts, uint32_t n,
                       um_error **error) {
  cl_int code = CL_SUCCESS;
  program->handle = clCreateProgramWithSource(device->context, n, (const char **)texts, NULL, &code);
  if (code != CL_SUCCESS) return fail_cl(error, "clCreateProgramWithSource", code);
  char options[256];
  snprintf(options, sizeof options, "-cl-std=CL1.2 -DDTYPE=%u -DVARIANT=%u -DGROUP=%d -DMAX_AXES=%d%s%s",
           program->dtype, program->variant, GROUP, MAX_AXES, device->fp64 ? " -DFP64=1" : "",
           device->exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
  code = clBuildProgram(program->handle, 1, &device->found.id, options, NULL, NULL);
  if (code == CL_SUCCESS) return UM_OK;
  char log[6000];
  memset(log, 0, sizeof log);
  size_t length = 0;
  clGetProgramBuildInfo(program->handle, device->found.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &length);
  char *whole = length ? malloc(length + 1) : NULL;
  if (whole && clGetProgramBuildInfo(program->handle, device->found.id, CL_PROGRAM_BUILD_LOG, length, whole, NULL) ==
                   CL_SUCCESS) {
    whole[length] = 0;
    snprintf(log, sizeof log, "%s", whole);
  }
  free(whole);
  clReleaseProgram(program->handle);
  program->handle = NULL;
  return fail(error, UM_ERROR, "building OpenCL program %d (%s) failed with error %d:\n%s", program->source, options, code,
              log);
}

/* Two programs are the same if they have the same text, or no text and the same source, dtype and variant. */
static bool same(const struct program *a, const struct program *b) {
  if (a->text || b->text) return a->text && b->text && strcmp(a->text, b->text) == 0;
  return a->source == b->source && a->dtype == b->dtype && a->variant == b->variant;
}

/* The program that `wanted` describes, built from the texts if it is not there. The lock of the device is held. */
static um_status program_get(struct device *device, const struct program *wanted, const char *const *texts,
                             uint32_t n, struct program **out, um_error **error) {
  struct program *program = device->programs;
  while (program && !same(program, wanted)) program = program->next;
  if (!program) {
    program = calloc(1, sizeof *program);
    if (program) *program = *wanted;
    if (program && wanted->text) program->text = strdup(wanted->text);
    if (!program || (wanted->text && !program->text)) {
      free(program);
      return fail(error, UM_OUT_OF_MEMORY, "no memory for a program");
    }
    um_status status = build(device, program, texts, n, error);
    if (status != UM_OK) {
      free(program->text);
      free(program);
      return status;
    }
    program->next = device->programs;
    device->programs = program;
  }
  *out = program;
  return UM_OK;
}

static um_status kernel_in(struct device *device, const struct program *wanted, const char *const *texts, uint32_t n,
                           const char *name, struct kernel **out, um_error **error) {
  struct program *program = NULL;
  struct kernel *kernel = NULL;
  pthread_mutex_lock(&device->lock);
  um_status status = program_get(device, wanted, texts, n, &program, error);
  if (status == UM_OK) {
    kernel = program->kernels;
    while (kernel && strcmp(kernel->name, name) != 0) kernel = kernel->next;
    if (!kernel) {
      cl_int code = CL_SUCCESS;
      cl_kernel handle = clCreateKernel(program->handle, name, &code);
      kernel = code == CL_SUCCESS ? calloc(1, sizeof *kernel) : NULL;
      if (kernel) {
        kernel->handle = handle;
        kernel->name = name;
        pthread_mutex_init(&kernel->lock, NULL);
        kernel->next = program->kernels;
        program->kernels = kernel;
      } else {
        status = fail_cl(error, name, code == CL_SUCCESS ? CL_OUT_OF_HOST_MEMORY : code);
      }
    }
  }
  pthread_mutex_unlock(&device->lock);
  *out = kernel;
  return status;
}

um_status kernel_get(struct device *device, enum source source, uint32_t dtype, uint32_t variant, const char *name,
                     struct kernel **kernel, um_error **error) {
  struct program wanted = {.source = source, .dtype = dtype, .variant = variant};
  uint32_t n = 0;
  while (n < MAX_PARTS && parts[source][n]) n++;
  return kernel_in(device, &wanted, parts[source], n, name, kernel, error);
}

um_status kernel_of_text(struct device *device, const char *const *texts, uint32_t n, const char *name,
                         struct kernel **kernel, um_error **error) {
  /* The texts before the last follow from it. */
  struct program wanted = {.text = (char *)texts[n - 1], .dtype = UM_DTYPE_COUNT};
  return kernel_in(device, &wanted, texts, n, name, kernel, error);
}

uint32_t texts_of_all(const char **texts, uint32_t n) {
  texts[n++] = source_codes;
  texts[n++] = "#define PROGRAM 1\n";
  texts[n++] = source_common;
  return n;
}

uint32_t texts_of_dtype(const char **texts, uint32_t n, const char *prelude, uint32_t dtype) {
  texts[n++] = prelude;
  texts[n++] = source_number;
  if (dtype == UM_DTYPE_COMPLEX64) {
    texts[n++] = source_complex;
  } else {
    texts[n++] = source_float;
    texts[n++] = source_integer;
  }
  texts[n++] = source_cast;
  return n;
}

void programs_release(struct device *device) {
  for (struct program *program = device->programs; program;) {
    struct program *next = program->next;
    for (struct kernel *kernel = program->kernels; kernel;) {
      struct kernel *after = kernel->next;
      clReleaseKernel(kernel->handle);
      pthread_mutex_destroy(&kernel->lock);
      free(kernel);
      kernel = after;
    }
    clReleaseProgram(program->handle);
    free(program->text);
    free(program);
    program = next;
  }
  device->programs = NULL;
}

um_status launch(cl_command_queue queue, struct kernel *kernel, cl_uint dimensions, const size_t *global,
                 const size_t *local, const struct argument *arguments, cl_uint n, um_error **error) {
  size_t whole[3];
  cl_int code = CL_SUCCESS;
  for (cl_uint i = 0; i < dimensions; i++) whole[i] = (global[i] + local[i] - 1) / local[i] * local[i];
  pthread_mutex_lock(&kernel->lock);
  for (cl_uint i = 0; i < n && code == CL_SUCCESS; i++) {
    code = clSetKernelArg(kernel->handle, i, arguments[i].size, arguments[i].value);
  }
  if (code == CL_SUCCESS) {
    code = clEnqueueNDRangeKernel(queue, kernel->handle, dimensions, NULL, whole, local, 0, NULL, NULL);
  }
  pthread_mutex_unlock(&kernel->lock);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, kernel->name, code);
}

um_status launch_1d(cl_command_queue queue, struct kernel *kernel, uint64_t items,
                    const struct argument *arguments, cl_uint n, um_error **error) {
  size_t global = items, local = GROUP;
  return launch(queue, kernel, 1, &global, &local, arguments, n, error);
}
