/* ultramarine.memory/1: cl_mem objects of the device's own context, and host memory where the device computes in it. */

#include <stdlib.h>
#include <string.h>

#include <ultramarine/helper.h>

#include "ocl.h"

/* The owner's word, kept until the buffer is gone. */
struct owner {
  void (*release)(void *context);
  void *context;
};

static void CL_CALLBACK gone(cl_mem memory, void *data) {
  struct owner *owner = data;
  (void)memory;
  if (owner->release) owner->release(owner->context);
  free(owner);
}

/* Whether an object is of the device's context: nothing else can be used together with its own. */
static bool is_ours(const struct device *device, cl_int code, cl_context context) {
  return code == CL_SUCCESS && context == device->context;
}

static cl_context context_of(cl_mem memory, cl_int *code) {
  cl_context context = NULL;
  *code = clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  return context;
}

/* Another buffer over a part of `whole`, which may be a part itself: OpenCL has no parts of parts. Where a part
 * begins is up to the device's alignment; the host lets it begin where `whole` does. */
static cl_mem part_of(cl_mem whole, const um_foreign_memory *block, cl_int *code) {
  cl_mem parent = NULL;
  size_t before = 0;
  *code = clGetMemObjectInfo(whole, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
  if (*code == CL_SUCCESS && parent) *code = clGetMemObjectInfo(whole, CL_MEM_OFFSET, sizeof before, &before, NULL);
  if (*code != CL_SUCCESS) return NULL;
  cl_buffer_region region = {before + (size_t)block->offset, (size_t)block->bytes};
  /* 0: as the parent is. */
  cl_mem_flags flags = block->flags & UM_MEMORY_READ_ONLY ? CL_MEM_READ_ONLY : 0;
  return clCreateSubBuffer(parent ? parent : whole, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, code);
}

static cl_mem over_host(const struct device *device, const um_foreign_memory *block, cl_int *code) {
  cl_mem_flags flags = block->flags & UM_MEMORY_READ_ONLY ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
  char *place = (char *)(uintptr_t)block->handle + block->offset;
  return clCreateBuffer(device->context, flags | CL_MEM_USE_HOST_PTR, block->bytes, place, code);
}

static um_status import(void *handle, const um_foreign_memory *given, void **buffer, um_error **error) {
  struct device *device = handle;
  um_foreign_memory block;
  cl_int code = CL_SUCCESS;
  cl_mem memory = NULL;
  if (forked()) return fail_forked(error);
  if (!um_read_sized(&block, sizeof block, given) || !block.handle || !block.bytes) {
    return fail(error, UM_INVALID, "there is no memory to import");
  }
  if (block.ready) return fail(error, UM_UNSUPPORTED, "events of other libraries are unknown here");
  if (block.kind == UM_MEMORY_HOST && shares_host_memory(device->found.id)) {
    memory = over_host(device, &block, &code);
  } else if (block.kind == UM_MEMORY_CL_MEM) {
    cl_mem whole = (cl_mem)(uintptr_t)block.handle;
    cl_context context = context_of(whole, &code);
    if (!is_ours(device, code, context)) {
      return fail(error, UM_INVALID, "the cl_mem is not of the device's OpenCL context, which cl_mem objects that are "
                                     "exported here tell (CL_MEM_CONTEXT)");
    }
    memory = part_of(whole, &block, &code);
  } else {
    return fail(error, UM_UNSUPPORTED, "memory of kind %u cannot be imported", block.kind);
  }
  if (code != CL_SUCCESS) return fail_cl(error, "importing memory", code);
  struct owner *owner = malloc(sizeof *owner);
  if (owner) *owner = (struct owner){block.release, block.context};
  if (!owner || clSetMemObjectDestructorCallback(memory, gone, owner) != CL_SUCCESS) {
    free(owner);
    clReleaseMemObject(memory);
    return fail(error, UM_OUT_OF_MEMORY, "no memory for an import");
  }
  *buffer = memory;
  return UM_OK;
}

static um_status export(void *handle, void *buffer, uint32_t kind, um_foreign_memory *memory, um_error **error) {
  um_foreign_memory block;
  size_t bytes = 0;
  (void)handle;
  if (forked()) return fail_forked(error);
  if (kind != UM_MEMORY_CL_MEM) return fail(error, UM_UNSUPPORTED, "buffers cannot be exported as kind %u", kind);
  cl_int code = clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
  if (code != CL_SUCCESS) return fail_cl(error, "clGetMemObjectInfo", code);
  memset(&block, 0, sizeof block);
  block.size = sizeof block;
  block.kind = kind;
  block.handle = (uint64_t)(uintptr_t)buffer;
  block.bytes = bytes;
  um_write_sized(memory, &block, sizeof block);
  return UM_OK;
}

/* The command queue. */
static uint64_t native_stream(void *handle, void *stream) {
  struct device *device = handle;
  return (uint64_t)(uintptr_t)(stream ? stream : device->copies);
}

/* A command queue of somebody else, of the same context; NULL, and an error, if it is not. */
static cl_command_queue foreign_queue(const struct device *device, uint64_t foreign, um_error **error) {
  cl_command_queue queue = (cl_command_queue)(uintptr_t)foreign;
  cl_context context = NULL;
  cl_int code = CL_INVALID_COMMAND_QUEUE;
  if (queue) code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  if (is_ours(device, code, context)) return queue;
  fail(error, UM_INVALID, "the stream is no command queue of the device's OpenCL context");
  return NULL;
}

static um_status wait_foreign(void *handle, void *stream, uint64_t foreign, um_error **error) {
  struct device *device = handle;
  cl_event mark = NULL;
  if (forked()) return fail_forked(error);
  cl_command_queue queue = foreign_queue(device, foreign, error);
  if (!queue) return UM_INVALID;
  cl_int code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &mark);
  if (code != CL_SUCCESS) return fail_cl(error, "clEnqueueMarkerWithWaitList", code);
  code = clFlush(queue);
  if (code == CL_SUCCESS) code = clEnqueueBarrierWithWaitList(stream ? stream : device->copies, 1, &mark, NULL);
  clReleaseEvent(mark);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clEnqueueBarrierWithWaitList", code);
}

static um_status signal_foreign(void *handle, uint64_t foreign, void *event, uint64_t value, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  cl_command_queue queue = foreign_queue(device, foreign, error);
  return queue ? event_wait_stream(handle, queue, event, value, error) : UM_INVALID;
}

/* Queues are counted: one that is retained outlives its owner's release. */
static um_status retain_foreign(void *handle, uint64_t foreign, um_error **error) {
  if (forked()) return fail_forked(error);
  cl_command_queue queue = foreign_queue(handle, foreign, error);
  if (!queue) return UM_INVALID;
  cl_int code = clRetainCommandQueue(queue);
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clRetainCommandQueue", code);
}

static void release_foreign(void *handle, uint64_t foreign) {
  (void)handle;
  if (!forked()) clReleaseCommandQueue((cl_command_queue)(uintptr_t)foreign);
}

static um_memory_interface offered = {
    .size = sizeof(um_memory_interface),
    .imports = 1u << UM_MEMORY_CL_MEM,
    .exports = 1u << UM_MEMORY_CL_MEM,
    .import_ = import,
    .export_ = export,
    .wait_foreign = wait_foreign,
    .native_stream = native_stream,
    .signal_foreign = signal_foreign,
    .retain_foreign = retain_foreign,
    .release_foreign = release_foreign,
};

const um_memory_interface *memory_interface(const struct backend *backend) {
  /* One table for all devices: it promises what each of them can. */
  bool all = true;
  for (uint32_t i = 0; i < backend->count; i++) all &= shares_host_memory(backend->found[i].id);
  if (all) offered.imports |= 1u << UM_MEMORY_HOST;
  return &offered;
}
