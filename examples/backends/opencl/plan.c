/* Plans and commands: requests decoded, commands turned into launches. */

#include <stdlib.h>
#include <string.h>

#include <ultramarine/helper.h>

#include "ocl.h"

typedef um_status (*prepare_function)(const struct request *request, struct plan *plan, um_error **error);

static um_status prepare_index(const struct request *request, struct plan *plan, um_error **error) {
  switch (request->op) {
    case UM_OP_SCATTER:
    case UM_OP_SCATTER_AXIS: return prepare_scatter(request, plan, error);
    case UM_OP_DYNAMIC_SLICE:
    case UM_OP_DYNAMIC_SLICE_UPDATE: return prepare_dynamic_slice(request, plan, error);
    default: return prepare_gather(request, plan, error);
  }
}

/* Families of which another's function makes the plans, and those that have no kernels here. */
#define prepare_create prepare_copy
#define prepare_select prepare_copy
#define prepare_arg_reduce prepare_reduce
#define prepare_conv NULL
#define prepare_fft NULL
#define prepare_linalg NULL
#define prepare_nn NULL
#define prepare_quantized NULL
#define ROW(NAME, FAMILY) [UM_OP_##NAME] = prepare_##FAMILY,

static const prepare_function families[UM_OP_COUNT] = {UM_EACH_OP(ROW)};

um_status attributes_read(const struct request *request, void *to, size_t size, um_error **error) {
  uint32_t given = 0;
  if (request->attributes) memcpy(&given, request->attributes, sizeof given);
  if (given < size) return fail(error, UM_INVALID, "attributes of %u bytes, expected %zu", given, size);
  um_status status = um_read_attributes(to, size, request->attributes);
  return status == UM_OK ? UM_OK : fail(error, status, "attributes of a later revision");
}

um_status check_axes(const struct request *request) {
  for (uint32_t i = 0; i < request->n_inputs; i++) {
    if (request->inputs[i].ndim > MAX_AXES && !request->inputs[i].contiguous) return UM_NEEDS_CONTIGUOUS;
  }
  return UM_OK;
}

static bool decode(const um_tensor_desc *list, uint32_t n, struct desc *out) {
  for (uint32_t i = 0; i < n; i++) {
    const um_tensor_desc *one = um_desc_at(list, i);
    out[i] = (struct desc){dtype_of(one->dtype), one->ndim, one->layout == UM_LAYOUT_CONTIGUOUS};
    if (out[i].dtype == UM_DTYPE_COUNT || one->ndim < 0 || one->ndim > UM_MAX_NDIM) return false;
  }
  return true;
}

um_status prepare(void *handle, uint32_t op, uint32_t revision, const void *attributes, const um_tensor_desc *inputs,
                  uint32_t n_inputs, const um_tensor_desc *outputs, uint32_t n_outputs, void **out,
                  um_error **error) {
  struct desc descs[MAX_TENSORS];
  if (forked()) return fail_forked(error);
  if (op >= UM_OP_COUNT || !families[op]) return fail(error, UM_UNSUPPORTED, "op %u is unknown", op);
  if (revision != 1) return fail(error, UM_UNSUPPORTED, "revision %u of op %u is unknown", revision, op);
  if ((uint64_t)n_inputs + n_outputs > MAX_TENSORS) return fail(error, UM_UNSUPPORTED, "too many tensors");
  if (!decode(inputs, n_inputs, descs) || !decode(outputs, n_outputs, descs + n_inputs)) {
    return fail(error, UM_UNSUPPORTED, "a dtype or rank is unknown");
  }
  struct plan *plan = calloc(1, sizeof *plan);
  if (!plan) return fail(error, UM_OUT_OF_MEMORY, "no memory for a plan");
  struct request request = {handle, op, attributes, descs, n_inputs, descs + n_inputs, n_outputs};
  plan->device = handle;
  plan->op = op;
  plan->n_inputs = n_inputs;
  plan->n_outputs = n_outputs;
  for (uint32_t i = 0; i < n_inputs + n_outputs; i++) plan->dtypes[i] = descs[i].dtype;
  um_status status = n_outputs == 1 ? families[op](&request, plan, error)
                                    : fail(error, UM_INVALID, "op %u has one output, not %u", op, n_outputs);
  if (status != UM_OK) {
    free(plan);
    return status;
  }
  *out = plan;
  return UM_OK;
}

void plan_release(void *device, void *handle) {
  struct plan *plan = handle;
  (void)device;
  if (plan) free(plan->fold);
  free(plan);
}

/* The views of a command's tensors, inputs first; false if their number is not the plan's. */
static bool views_of(const struct plan *plan, const um_command *command, struct view *views) {
  if (command->n_inputs != plan->n_inputs || command->n_outputs != plan->n_outputs) return false;
  for (uint32_t i = 0; i < plan->n_inputs + plan->n_outputs; i++) {
    const um_tensor *tensor = i < plan->n_inputs ? um_input(command, i) : um_output(command, i - plan->n_inputs);
    uint32_t dtype = plan->dtypes[i];
    views[i] = (struct view){tensor->buffer,   (int64_t)(tensor->dl.byte_offset / dtype_size(dtype)), dtype,
                             tensor->dl.ndim, tensor->dl.shape, tensor->dl.strides};
  }
  return true;
}

uint64_t plan_workspace(void *device, void *handle, const um_command *command) {
  struct plan *plan = handle;
  struct view views[MAX_TENSORS];
  (void)device;
  if (!plan->workspace || !views_of(plan, command, views)) return 0;
  return plan->workspace(plan, views, views + plan->n_inputs);
}

/* Whether an element does not lie on a multiple of its size, as in a view of bytes by another dtype. */
static bool misaligned(const um_tensor *tensor, uint32_t dtype) {
  return tensor->dl.byte_offset % dtype_size(dtype) != 0;
}

/* A copy of such an input's whole extent at an aligned place. */
static um_status realign(struct job *job, const um_tensor *tensor, struct view *view) {
  int64_t low = 0, high = 0;
  int64_t size = (int64_t)dtype_size(view->dtype);
  cl_int code = CL_SUCCESS;
  for (int i = 0; i < view->ndim; i++) {
    int64_t reach = (view->shape[i] - 1) * view->strides[i];
    if (reach < 0) low += reach; else high += reach;
  }
  size_t bytes = (size_t)((high - low + 1) * size);
  size_t start = (size_t)((int64_t)tensor->dl.byte_offset + low * size);
  cl_mem copy = clCreateBuffer(job->device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  if (code != CL_SUCCESS) return fail_cl(job->error, "clCreateBuffer", code);
  code = clEnqueueCopyBuffer(job->queue, view->memory, copy, start, 0, bytes, 0, NULL, NULL);
  view->memory = copy;
  view->offset = -low;
  return code == CL_SUCCESS ? UM_OK : fail_cl(job->error, "clEnqueueCopyBuffer", code);
}

static um_status run(struct job *job, const um_command *command) {
  const struct plan *plan = job->plan;
  struct view views[MAX_TENSORS];
  cl_mem temporary[MAX_TENSORS];
  uint32_t n_temporary = 0;
  um_status status = UM_OK;
  if (!views_of(plan, command, views)) {
    return fail(job->error, UM_INVALID, "%u inputs and %u outputs for a plan with %u and %u", command->n_inputs,
                command->n_outputs, plan->n_inputs, plan->n_outputs);
  }
  for (uint32_t i = 0; i < plan->n_inputs && status == UM_OK; i++) {
    const um_tensor *tensor = um_input(command, i);
    if (!misaligned(tensor, plan->dtypes[i])) continue;
    cl_mem before = views[i].memory;
    status = realign(job, tensor, &views[i]);
    if (views[i].memory != before) temporary[n_temporary++] = views[i].memory;
  }
  uint64_t scratch = plan->workspace ? plan->workspace(plan, views, views + plan->n_inputs) : 0;
  job->inputs = views;
  job->outputs = views + plan->n_inputs;
  job->scalars = command->scalars;
  job->n_scalars = command->n_scalars;
  job->workspace = command->workspace;
  if (status == UM_OK && scratch > 0 && !job->workspace) {
    status = fail(job->error, UM_INVALID, "a command without the workspace that its plan asked for");
  }
  if (status == UM_OK) status = plan->run(job);
  /* What was enqueued keeps them until it has run. */
  for (uint32_t i = 0; i < n_temporary; i++) clReleaseMemObject(temporary[i]);
  return status;
}

um_status submit(void *handle, void *stream, const um_command *commands, uint32_t n_commands, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  struct job job = {.device = device, .queue = stream ? stream : device->copies, .error = error};
  um_status status = UM_OK;
  for (uint32_t i = 0; i < n_commands && status == UM_OK; i++) {
    const um_command *command = um_command_at(commands, i);
    job.plan = command->plan;
    status = fail_command(error, i, run(&job, command));
  }
  if (n_commands > 0) clFlush(job.queue);
  return status;
}
