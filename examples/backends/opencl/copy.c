/* COPY, FILL, ARANGE and SELECT. */

#include <string.h>

#include "ocl.h"

/* Copies by the layout, which may have more axes than a kernel walks: those outside are walked here. */
static um_status copy_axes(struct job *job, struct kernel *kernel, struct axis *axes, int count,
                           const struct view *in, const struct view *out) {
  if (count > MAX_AXES) {
    um_status status = UM_OK;
    struct view from = *in, to = *out;
    for (uint64_t i = 0; i < axes[0].size && status == UM_OK; i++) {
      status = copy_axes(job, kernel, axes + 1, count - 1, &from, &to);
      from.offset += axes[0].step[0];
      to.offset += axes[0].step[1];
    }
    return status;
  }
  struct layout layout;
  layout_of(&layout, axes, count, 2);
  layout.op = out->dtype;
  layout.offset[0] = in->offset;
  layout.offset[1] = out->offset;
  struct argument arguments[] = {ARG(in->memory), ARG(out->memory), ARG(layout)};
  return launch_1d(job->queue, kernel, layout.n, arguments, 3, job->error);
}

um_status copy_kernel(struct device *device, uint32_t dtype, struct kernel **kernel, um_error **error) {
  return kernel_get(device, SOURCE_MOVE, UM_DTYPE_UINT8, (uint32_t)dtype_size(dtype), "move", kernel, error);
}

um_status copy_view(struct job *job, struct kernel *kernel, const struct view *in, const struct view *out) {
  if (in->dtype == out->dtype && view_contiguous(in) && view_contiguous(out)) {
    size_t size = dtype_size(in->dtype);
    if (in->memory == out->memory && in->offset == out->offset) return UM_OK;
    if (in->memory != out->memory) {
      cl_int code = clEnqueueCopyBuffer(job->queue, in->memory, out->memory, (size_t)in->offset * size,
                                        (size_t)out->offset * size, view_size(in) * size, 0, NULL, NULL);
      return code == CL_SUCCESS ? UM_OK : fail_cl(job->error, "clEnqueueCopyBuffer", code);
    }
  }
  struct axis axes[UM_MAX_NDIM];
  for (int i = 0; i < in->ndim; i++) {
    axes[i] = (struct axis){(uint64_t)in->shape[i], {in->strides[i], out->strides[i]}};
  }
  return copy_axes(job, kernel, axes, axes_join(axes, in->ndim, 2), in, out);
}

static um_status run_copy(struct job *job) {
  return copy_view(job, job->plan->kernels[0], job->inputs, job->outputs);
}

static um_status run_fill(struct job *job) {
  const struct view *out = &job->outputs[0];
  struct layout layout;
  if (job->n_scalars != 1) return fail(job->error, UM_INVALID, "fill takes one scalar");
  cl_ulong value = job->scalars[0][0];
  size_t size = dtype_size(out->dtype);
  if (view_contiguous(out)) {
    /* Scalars and devices are little-endian: the value's first bytes are the pattern. */
    cl_int code = clEnqueueFillBuffer(job->queue, out->memory, &value, size, (size_t)out->offset * size,
                                      view_size(out) * size, 0, NULL, NULL);
    return code == CL_SUCCESS ? UM_OK : fail_cl(job->error, "clEnqueueFillBuffer", code);
  }
  if (!layout_of_views(&layout, &out, 1)) return fail_axes(job->error);
  struct argument arguments[] = {ARG(out->memory), ARG(value), ARG(layout)};
  return launch_1d(job->queue, job->plan->kernels[0], layout.n, arguments, 3, job->error);
}

static um_status run_arange(struct job *job) {
  const struct view *out = &job->outputs[0];
  struct layout layout;
  if (job->n_scalars != 2) return fail(job->error, UM_INVALID, "arange takes two scalars");
  layout_of_views(&layout, &out, 1);
  layout.op = out->dtype;
  cl_ulong start = job->scalars[0][0], step = job->scalars[1][0];
  struct argument arguments[] = {ARG(out->memory), ARG(start), ARG(step), ARG(layout)};
  bool whole = is_integer(out->dtype) || out->dtype == UM_DTYPE_BOOL;
  float narrow[2];
  if (!whole && !job->device->fp64) {
    double wide[2];
    memcpy(wide, &start, 8);
    memcpy(wide + 1, &step, 8);
    for (int i = 0; i < 2; i++) {
      narrow[i] = (float)wide[i];
      arguments[1 + i] = ARG(narrow[i]);
    }
  }
  return launch_1d(job->queue, job->plan->kernels[0], layout.n, arguments, 4, job->error);
}

static um_status run_select(struct job *job) {
  const struct view *in = job->inputs, *out = &job->outputs[0];
  const struct view *views[] = {&in[0], &in[1], &in[2], out};
  struct layout layout;
  if (!layout_of_views(&layout, views, 4)) return fail_axes(job->error);
  struct argument arguments[] = {ARG(in[0].memory), ARG(in[1].memory), ARG(in[2].memory), ARG(out->memory),
                                 ARG(layout)};
  return launch_1d(job->queue, job->plan->kernels[0], layout.n, arguments, 5, job->error);
}

/* Whether the device has arithmetic of a dtype. */
static bool has(const struct request *request, uint32_t dtype) {
  return dtype != UM_DTYPE_FLOAT64 || request->device->fp64;
}

um_status prepare_copy(const struct request *request, struct plan *plan, um_error **error) {
  static const uint32_t inputs[] = {[UM_OP_COPY] = 1, [UM_OP_FILL] = 0, [UM_OP_ARANGE] = 0, [UM_OP_SELECT] = 3};
  uint32_t op = request->op, n = inputs[op], to = request->outputs[0].dtype;
  um_no_attrs none;
  um_status read = attributes_read(request, &none, sizeof none, error);
  if (read != UM_OK) return read;
  if (request->n_inputs != n) return fail(error, UM_INVALID, "%u inputs, expected %u", request->n_inputs, n);
  for (uint32_t i = 0; i < n; i++) {
    if (request->inputs[i].ndim != request->outputs[0].ndim) return fail(error, UM_INVALID, "ranks differ");
  }
  enum source source = SOURCE_MOVE;
  uint32_t from = UM_DTYPE_UINT8, variant = (uint32_t)dtype_size(to);
  const char *name = "fill";
  plan->run = run_fill;
  if (op == UM_OP_ARANGE) {
    if (request->outputs[0].ndim != 1) return fail(error, UM_INVALID, "arange makes one dimension");
    bool whole = is_integer(to) || to == UM_DTYPE_BOOL;
    from = whole ? UM_DTYPE_INT64 : request->device->fp64 ? UM_DTYPE_FLOAT64 : UM_DTYPE_FLOAT32;
    source = SOURCE_CAST, variant = 0, name = "arange";
    plan->run = run_arange;
  } else if (op == UM_OP_SELECT) {
    if (request->inputs[0].dtype != UM_DTYPE_BOOL || request->inputs[1].dtype != to ||
        request->inputs[2].dtype != to) {
      return fail(error, UM_INVALID, "select takes a bool and two values of the output's dtype");
    }
    um_status status = check_axes(request);
    if (status != UM_OK) return status;
    name = "choose";
    plan->run = run_select;
  } else if (op == UM_OP_COPY) {
    plan->run = run_copy;
    name = "move";
    if (request->inputs[0].dtype != to) {
      from = request->inputs[0].dtype;
      source = SOURCE_CAST, variant = 0, name = "cast";
    }
  }
  if (source == SOURCE_CAST && !(has(request, from) && has(request, to))) {
    return fail(error, UM_UNSUPPORTED, "the device has no float64");
  }
  return kernel_get(request->device, source, from, variant, name, &plan->kernels[0], error);
}
