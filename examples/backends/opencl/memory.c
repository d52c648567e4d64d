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

/* Another buffer over a part of `whole`. Where a part begins is up to the device's alignment. */
static cl_mem part_of(cl_mem whole, const um_foreign_memory *block, cl_mem_flags flags, cl_int *code) {
  cl_buffer_region region = {(size_t)block->offset, (size_t)block->bytes};
  return clCreateSubBuffer(whole, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, code);
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
  cl_mem_flags flags = block.flags & UM_MEMORY_READ_ONLY ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
  if (block.kind == UM_MEMORY_HOST && shares_host_memory(device->found.id)) {
    char *place = (char *)(uintptr_t)block.handle + block.offset;
    memory = clCreateBuffer(device->context, flags | CL_MEM_USE_HOST_PTR, block.bytes, place, &code);
  } else if (block.kind == UM_MEMORY_CL_MEM) {
    memory = part_of((cl_mem)(uintptr_t)block.handle, &block, flags, &code);
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

static um_status export(void *handle, void *buffer, uint32_t kind, um_foreign_memory *told, um_error **error) {
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
  um_write_sized(told, &block, sizeof block);
  return UM_OK;
}

/* The command queue. */
static uint64_t native_stream(void *handle, void *stream) {
  struct device *device = handle;
  return (uint64_t)(uintptr_t)(stream ? stream : device->copies);
}

static um_memory_interface offered = {
    .size = sizeof(um_memory_interface),
    .imports = 1u << UM_MEMORY_CL_MEM,
    .exports = 1u << UM_MEMORY_CL_MEM,
    .import_ = import,
    .export_ = export,
    .native_stream = native_stream,
};

const um_memory_interface *memory_interface(const struct backend *backend) {
  /* One table for all devices: it promises what each of them can. */
  bool all = true;
  for (uint32_t i = 0; i < backend->count; i++) all &= shares_host_memory(backend->found[i].id);
  if (all) offered.imports |= 1u << UM_MEMORY_HOST;
  return &offered;
}
