/* Devices, buffers, streams and copies. A buffer's handle is its cl_mem, a stream's its command queue. */

#include <stdlib.h>

#include "ocl.h"

um_status device_open(void *handle, uint32_t index, void **out, um_error **error) {
  struct backend *backend = handle;
  if (forked()) return fail_forked(error);
  if (index >= backend->count) return fail(error, UM_INVALID, "there is no OpenCL device %u", index);
  struct device *device = calloc(1, sizeof *device);
  if (!device) return fail(error, UM_OUT_OF_MEMORY, "no memory for a device");
  cl_int code = CL_SUCCESS;
  cl_device_fp_config config = 0;
  device->found = backend->found[index];
  device->index = index;
  device->fp64 = has_extension(device->found.id, "cl_khr_fp64");
  clGetDeviceInfo(device->found.id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
  device->exact_division = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  clGetDeviceInfo(device->found.id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof device->compute_units,
                  &device->compute_units, NULL);
  cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->found.platform, 0};
  device->context = clCreateContext(properties, 1, &device->found.id, NULL, NULL, &code);
  if (code != CL_SUCCESS) {
    free(device);
    return fail_cl(error, "clCreateContext", code);
  }
  device->copies = clCreateCommandQueue(device->context, device->found.id, 0, &code);
  if (code != CL_SUCCESS) {
    clReleaseContext(device->context);
    free(device);
    return fail_cl(error, "clCreateCommandQueue", code);
  }
  pthread_mutex_init(&device->lock, NULL);
  *out = device;
  return UM_OK;
}

void device_close(void *handle) {
  struct device *device = handle;
  if (!device || forked()) return; /* In a forked child everything leaks: the driver is the parent's. */
  programs_release(device);
  clReleaseCommandQueue(device->copies);
  clReleaseContext(device->context);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

um_status buffer_alloc(void *handle, uint64_t bytes, void **buffer, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  cl_int code = CL_SUCCESS;
  /* OpenCL knows no empty buffers. */
  cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
  if (code != CL_SUCCESS) {
    um_status status = fail_cl(NULL, "clCreateBuffer", code);
    return fail(error, status, "clCreateBuffer of %llu bytes failed (OpenCL error %d)", (unsigned long long)bytes,
                code);
  }
  *buffer = memory;
  return UM_OK;
}

void buffer_free(void *device, void *buffer) {
  (void)device;
  if (buffer && !forked()) clReleaseMemObject(buffer);
}

/* There is none: the host copies. */
void *buffer_host_pointer(void *device, void *buffer) {
  (void)device, (void)buffer;
  return NULL;
}

um_status stream_create(void *handle, void **stream, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  cl_int code = CL_SUCCESS;
  /* A queue notes times from its creation on or never; every device supports it. */
  const cl_command_queue_properties timed = CL_QUEUE_PROFILING_ENABLE;
  cl_command_queue queue = clCreateCommandQueue(device->context, device->found.id, timed, &code);
  if (code != CL_SUCCESS) return fail_cl(error, "clCreateCommandQueue", code);
  *stream = queue;
  return UM_OK;
}

void stream_destroy(void *device, void *stream) {
  (void)device;
  if (stream && !forked()) clReleaseCommandQueue(stream);
}

um_status stream_synchronize(void *handle, void *stream, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  cl_int code = clFinish(stream ? stream : device->copies);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clFinish", code);
}

um_status copy_to_device(void *handle, void *stream, void *buffer, uint64_t offset, const void *source,
                         uint64_t bytes, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  if (bytes == 0) return UM_OK;
  cl_command_queue queue = stream ? stream : device->copies;
  cl_int code = clEnqueueWriteBuffer(queue, buffer, CL_TRUE, offset, bytes, source, 0, NULL, NULL);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clEnqueueWriteBuffer", code);
}

um_status copy_to_host(void *handle, void *stream, void *buffer, uint64_t offset, void *target, uint64_t bytes,
                       um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  if (bytes == 0) return UM_OK;
  cl_command_queue queue = stream ? stream : device->copies;
  cl_int code = clEnqueueReadBuffer(queue, buffer, CL_TRUE, offset, bytes, target, 0, NULL, NULL);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clEnqueueReadBuffer", code);
}
