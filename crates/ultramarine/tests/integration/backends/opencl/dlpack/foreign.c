/* Another library that uses OpenCL: raw calls on cl_mem objects, from ours or for ours. It links to nothing of
 * Ultramarine. Each function returns OpenCL's error code, or the object and NULL. */

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

void *foreign_context(cl_mem memory) {
  cl_context context = NULL;
  clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  return context;
}

void *foreign_queue_context(cl_command_queue queue) {
  cl_context context = NULL;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  return context;
}

/* The memory of the host that an object was made over. */
void *foreign_host_pointer(cl_mem memory) {
  void *pointer = NULL;
  clGetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof pointer, &pointer, NULL);
  return pointer;
}

/* A context of the same device that has nothing to do with the first. */
void *foreign_other_context(cl_context first) {
  cl_device_id device = NULL;
  cl_int code = clGetContextInfo(first, CL_CONTEXT_DEVICES, sizeof device, &device, NULL);
  return code == CL_SUCCESS ? clCreateContext(NULL, 1, &device, NULL, NULL, &code) : NULL;
}

void *foreign_queue(cl_context context) {
  cl_device_id device = NULL;
  cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL);
  return code == CL_SUCCESS ? clCreateCommandQueue(context, device, 0, &code) : NULL;
}

void *foreign_memory(cl_context context, size_t bytes) {
  cl_int code = CL_SUCCESS;
  return clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &code);
}

void foreign_release(cl_mem memory) { clReleaseMemObject(memory); }

int foreign_write(cl_command_queue queue, cl_mem memory, size_t offset, size_t bytes, const void *from) {
  return clEnqueueWriteBuffer(queue, memory, CL_TRUE, offset, bytes, from, 0, NULL, NULL);
}

int foreign_read(cl_command_queue queue, cl_mem memory, size_t offset, size_t bytes, void *to) {
  return clEnqueueReadBuffer(queue, memory, CL_TRUE, offset, bytes, to, 0, NULL, NULL);
}

/* The same without waiting: `to` is filled once foreign_finish returned. */
int foreign_read_later(cl_command_queue queue, cl_mem memory, size_t bytes, void *to) {
  const int code = clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, bytes, to, 0, NULL, NULL);
  return code == CL_SUCCESS ? clFlush(queue) : code;
}

void foreign_release_queue(cl_command_queue queue) { clReleaseCommandQueue(queue); }

int foreign_finish(cl_command_queue queue) { return clFinish(queue); }

/* Work of a queue that does not begin before foreign_open. */
void *foreign_gate(cl_context context, cl_command_queue queue) {
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(context, &code);
  if (!gate || clEnqueueBarrierWithWaitList(queue, 1, &gate, NULL) != CL_SUCCESS) return NULL;
  return clFlush(queue) == CL_SUCCESS ? gate : NULL;
}

void foreign_open(cl_event gate) {
  clSetUserEventStatus(gate, CL_COMPLETE);
  clReleaseEvent(gate);
}

int foreign_fill_later(cl_command_queue queue, cl_mem memory, size_t bytes, float value) {
  const int code = clEnqueueFillBuffer(queue, memory, &value, sizeof value, 0, bytes, 0, NULL, NULL);
  return code == CL_SUCCESS ? clFlush(queue) : code;
}
