/* ultramarine.kernel/1: kernels in OpenCL C that users give. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ultramarine/helper.h>

#include "ocl.h"

#define MAX_ARGUMENTS 128

/* A user's kernel. Arguments are set and the launch is enqueued under the lock. */
struct user_kernel {
  cl_program program;
  cl_kernel handle;
  cl_uint parameters;
  pthread_mutex_t lock;
};

static void kernel_release(void *device, void *handle) {
  struct user_kernel *kernel = handle;
  (void)device;
  if (!kernel || forked()) return;
  if (kernel->handle) clReleaseKernel(kernel->handle);
  if (kernel->program) clReleaseProgram(kernel->program);
  pthread_mutex_destroy(&kernel->lock);
  free(kernel);
}

/* The compiler's words; what does not fit into an error is cut. */
static um_status fail_build(struct device *device, cl_program program, cl_int code, um_error **error) {
  size_t length = 0;
  um_status status = fail_cl(NULL, "clBuildProgram", code);
  if (status == UM_OUT_OF_MEMORY) return fail(error, status, "no memory to build a kernel (OpenCL error %d)", code);
  clGetProgramBuildInfo(program, device->found.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &length);
  char *log = calloc(1, length + 1);
  if (log) clGetProgramBuildInfo(program, device->found.id, CL_PROGRAM_BUILD_LOG, length, log, NULL);
  const char *said = log && *log ? log : "the compiler says nothing";
  status = fail(error, UM_ERROR, "%s (OpenCL error %d)", said, code);
  free(log);
  return status;
}

static um_status kernel_compile(void *handle, const um_kernel_source *given, void **out, um_error **error) {
  struct device *device = handle;
  um_kernel_source source;
  cl_int code = CL_SUCCESS;
  if (forked()) return fail_forked(error);
  if (!um_read_sized(&source, sizeof source, given) || !source.language || !source.source || !source.entry || !out) {
    return fail(error, UM_INVALID, "a kernel without language, source or name");
  }
  if (strcmp(source.language, "opencl-c") != 0) {
    return fail(error, UM_UNSUPPORTED, "kernels are in opencl-c here, not in %s", source.language);
  }
  if (source.n_template_arguments > 0) return fail(error, UM_INVALID, "OpenCL C has no templates");
  struct user_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return fail(error, UM_OUT_OF_MEMORY, "no memory for a kernel");
  pthread_mutex_init(&kernel->lock, NULL);
  size_t length = (size_t)source.source_bytes;
  kernel->program = clCreateProgramWithSource(device->context, 1, &source.source, &length, &code);
  if (code != CL_SUCCESS) {
    kernel->program = NULL;
    kernel_release(device, kernel);
    return fail_cl(error, "clCreateProgramWithSource", code);
  }
  const char *options = source.options ? source.options : "-cl-std=CL1.2";
  code = clBuildProgram(kernel->program, 1, &device->found.id, options, NULL, NULL);
  if (code != CL_SUCCESS) {
    um_status status = fail_build(device, kernel->program, code, error);
    kernel_release(device, kernel);
    return status;
  }
  kernel->handle = clCreateKernel(kernel->program, source.entry, &code);
  if (code == CL_SUCCESS) {
    code = clGetKernelInfo(kernel->handle, CL_KERNEL_NUM_ARGS, sizeof kernel->parameters, &kernel->parameters, NULL);
  } else {
    kernel->handle = NULL;
  }
  if (code != CL_SUCCESS) {
    kernel_release(device, kernel);
    return fail(error, UM_ERROR, "the source has no kernel %s (OpenCL error %d)", source.entry, code);
  }
  *out = kernel;
  return UM_OK;
}

static um_status kernel_info(void *handle, void *of, um_kernel_info *out, um_error **error) {
  struct device *device = handle;
  struct user_kernel *kernel = of;
  um_kernel_info info = {.size = sizeof info};
  size_t most = 0, multiple = 0;
  cl_ulong local = 0;
  if (forked()) return fail_forked(error);
  cl_int code = clGetKernelWorkGroupInfo(kernel->handle, device->found.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                         NULL);
  if (code != CL_SUCCESS) return fail_cl(error, "clGetKernelWorkGroupInfo", code);
  clGetKernelWorkGroupInfo(kernel->handle, device->found.id, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                           sizeof multiple, &multiple, NULL);
  clGetDeviceInfo(device->found.id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
  info.max_threads = most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
  info.thread_multiple = multiple > UINT32_MAX ? 0 : (uint32_t)multiple;
  info.max_shared = local > UINT32_MAX ? UINT32_MAX : (uint32_t)local;
  um_write_sized(out, &info, sizeof info);
  return UM_OK;
}

/* A tensor's first element as a buffer of its own: parameters of OpenCL C have no offsets. */
struct bound {
  cl_mem memory;
  bool owned;
  bool copied; /* of a tensor that is not where a part may begin */
  cl_mem whole;
  size_t offset;
  size_t bytes;
};

/* Bytes from the first element to the end of the last; false if some lie before the first. */
static bool reach_of(const um_tensor *tensor, size_t *bytes) {
  int64_t last = 0;
  for (int i = 0; i < tensor->dl.ndim; i++) {
    int64_t size = tensor->dl.shape[i];
    if (size == 0) {
      *bytes = 0;
      return true;
    }
    if (size > 1 && tensor->dl.strides[i] < 0) return false;
    last += (size - 1) * tensor->dl.strides[i];
  }
  *bytes = (size_t)(last + 1) * um_dtype_size(tensor->dl.dtype);
  return true;
}

static um_status bind(const struct device *device, cl_command_queue queue, const um_tensor *tensor, bool written,
                      struct bound *bound, um_error **error) {
  cl_mem whole = tensor->buffer, parent = NULL;
  size_t before = 0, bytes = 0;
  cl_uint bits = 0;
  cl_int code = CL_SUCCESS;
  *bound = (struct bound){.memory = whole};
  if (!reach_of(tensor, &bytes)) {
    return fail(error, UM_INVALID, "elements before the first one cannot be reached in OpenCL C");
  }
  if (tensor->dl.byte_offset == 0 || bytes == 0) return UM_OK;
  size_t offset = (size_t)tensor->dl.byte_offset;
  bound->owned = true;
  clGetDeviceInfo(device->found.id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
  /* OpenCL has no parts of parts. */
  code = clGetMemObjectInfo(whole, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
  if (code == CL_SUCCESS && parent) code = clGetMemObjectInfo(whole, CL_MEM_OFFSET, sizeof before, &before, NULL);
  if (code != CL_SUCCESS) return fail_cl(error, "clGetMemObjectInfo", code);
  if (bits >= 8 && (offset + before) % (bits / 8) == 0) {
    cl_buffer_region region = {offset + before, bytes};
    bound->memory =
        clCreateSubBuffer(parent ? parent : whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (code == CL_SUCCESS) return UM_OK;
    bound->owned = false;
    return fail_cl(error, "clCreateSubBuffer", code);
  }
  bound->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  if (code != CL_SUCCESS) {
    bound->owned = false;
    return fail_cl(error, "clCreateBuffer", code);
  }
  bound->copied = written;
  bound->whole = whole;
  bound->offset = offset;
  bound->bytes = bytes;
  code = clEnqueueCopyBuffer(queue, whole, bound->memory, offset, 0, bytes, 0, NULL, NULL);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clEnqueueCopyBuffer", code);
}

/* Sets the arguments and enqueues the launch; what was copied goes back behind it. */
static um_status run(struct user_kernel *kernel, cl_command_queue queue, const um_kernel_launch *launch,
                     const um_kernel_argument *arguments, struct bound *bound, um_error **error) {
  cl_int code = CL_SUCCESS;
  cl_uint i = 0;
  pthread_mutex_lock(&kernel->lock);
  for (; i < launch->n_arguments && code == CL_SUCCESS; i++) {
    if (arguments[i].kind == UM_ARGUMENT_TENSOR) {
      code = clSetKernelArg(kernel->handle, i, sizeof(cl_mem), &bound[i].memory);
    } else {
      code = clSetKernelArg(kernel->handle, i, um_dtype_size(arguments[i].dtype), arguments[i].scalar);
    }
  }
  if (code != CL_SUCCESS) {
    pthread_mutex_unlock(&kernel->lock);
    return fail(error, UM_INVALID, "argument %u is not what the kernel's parameter is (OpenCL error %d)", i - 1, code);
  }
  if (launch->shared_bytes > 0) code = clSetKernelArg(kernel->handle, i, launch->shared_bytes, NULL);
  size_t global[3], local[3];
  for (int d = 0; d < 3; d++) {
    local[d] = launch->block[d];
    global[d] = (size_t)launch->grid[d] * launch->block[d];
  }
  if (code == CL_SUCCESS) code = clEnqueueNDRangeKernel(queue, kernel->handle, 3, NULL, global, local, 0, NULL, NULL);
  pthread_mutex_unlock(&kernel->lock);
  if (code != CL_SUCCESS) return fail_cl(error, "clEnqueueNDRangeKernel", code);
  for (i = 0; i < launch->n_arguments && code == CL_SUCCESS; i++) {
    if (!bound[i].copied) continue;
    code = clEnqueueCopyBuffer(queue, bound[i].memory, bound[i].whole, 0, bound[i].offset, bound[i].bytes, 0, NULL, NULL);
  }
  clFlush(queue);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clEnqueueCopyBuffer", code);
}

static um_status kernel_launch(void *handle, void *stream, void *of, const um_kernel_launch *given, um_error **error) {
  struct device *device = handle;
  struct user_kernel *kernel = of;
  um_kernel_launch launch;
  um_kernel_argument arguments[MAX_ARGUMENTS];
  struct bound bound[MAX_ARGUMENTS];
  if (forked()) return fail_forked(error);
  if (!um_read_sized(&launch, sizeof launch, given)) return fail(error, UM_INVALID, "there is no launch");
  uint32_t shared = launch.shared_bytes > 0;
  if (launch.n_arguments > MAX_ARGUMENTS || launch.n_arguments + shared != kernel->parameters) {
    return fail(error, UM_INVALID, "the kernel has %u parameters, the launch %u arguments%s", kernel->parameters,
                launch.n_arguments, shared ? " and shared memory, which is the last parameter" : "");
  }
  cl_command_queue queue = stream ? stream : device->copies;
  um_status status = UM_OK;
  uint32_t n = 0;
  for (; n < launch.n_arguments && status == UM_OK; n++) {
    const char *at = (const char *)launch.arguments + (size_t)n * launch.argument_stride;
    um_read_sized(&arguments[n], sizeof arguments[n], at);
    bound[n] = (struct bound){.memory = NULL};
    if (arguments[n].kind == UM_ARGUMENT_SCALAR) continue;
    if (arguments[n].kind != UM_ARGUMENT_TENSOR || !arguments[n].tensor) {
      status = fail(error, UM_UNSUPPORTED, "argument %u is of an unknown kind", n);
    } else {
      status = bind(device, queue, arguments[n].tensor, arguments[n].written, &bound[n], error);
    }
  }
  if (status == UM_OK) status = run(kernel, queue, &launch, arguments, bound, error);
  /* What was enqueued keeps them until it has run. */
  for (uint32_t i = 0; i < n; i++) {
    if (bound[i].owned && bound[i].memory) clReleaseMemObject(bound[i].memory);
  }
  return status;
}

const um_kernel_interface kernel_interface = {
    .size = sizeof(um_kernel_interface),
    .compile = kernel_compile,
    .launch = kernel_launch,
    .release = kernel_release,
    .info = kernel_info,
};
