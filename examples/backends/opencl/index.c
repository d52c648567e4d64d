/* GATHER, GATHER_AXIS and the dynamic slices, and the places that index arrays point to. */

#include "index.h"

um_status places_check(const struct desc *arrays, uint32_t n, const uint8_t *axes, uint32_t index_ndim, int rank,
                       um_error **error) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (arrays[i].ndim != (int)index_ndim) return fail(error, UM_INVALID, "an index array has another rank");
    if (!is_integer(arrays[i].dtype)) return fail(error, UM_UNSUPPORTED, "indices are integers");
    if (axes[i] >= rank || seen >> axes[i] & 1) {
      return fail(error, UM_INVALID, "an indexed axis does not exist or is there twice");
    }
    seen |= 1u << axes[i];
  }
  return UM_OK;
}

uint64_t positions_of(const struct view *slices, uint32_t index_ndim) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < index_ndim; i++) n *= (uint64_t)slices->shape[i];
  return n;
}

bool layout_of_slice(struct layout *layout, const struct view *whole, const struct view *slices,
                     uint32_t index_ndim) {
  struct axis axes[UM_MAX_NDIM];
  for (int i = 0; i < whole->ndim; i++) {
    axes[i] = (struct axis){(uint64_t)slices->shape[index_ndim + (uint32_t)i], {whole->strides[i]}};
  }
  layout->offset[0] = whole->offset;
  return layout_of(layout, axes, whole->ndim, 1);
}

um_status places_run(struct job *job, struct kernel *kernel, const struct view *arrays, uint32_t n,
                     const uint8_t *axes, uint32_t index_ndim, const struct view *whole, const struct view *slices,
                     bool skip, cl_mem work) {
  if (n == 0) {
    cl_long zero = 0;
    cl_int code = clEnqueueFillBuffer(job->queue, work, &zero, 8, 0, 8 * positions_of(slices, index_ndim), 0, NULL,
                                      NULL);
    return code == CL_SUCCESS ? UM_OK : fail_cl(job->error, "clEnqueueFillBuffer", code);
  }
  um_status status = UM_OK;
  for (uint32_t k = 0; k < n && status == UM_OK; k++) {
    const struct view *array = &arrays[k];
    struct axis walked[UM_MAX_NDIM];
    struct layout layout;
    for (uint32_t i = 0; i < index_ndim; i++) {
      walked[i] = (struct axis){(uint64_t)slices->shape[i], {array->shape[i] == 1 ? 0 : array->strides[i]}};
    }
    if (!layout_of(&layout, walked, (int)index_ndim, 1)) return fail_axes(job->error);
    layout.offset[0] = array->offset;
    cl_uint dtype = array->dtype, first = k == 0, skips = skip;
    cl_long size = whole->shape[axes[k]], step = whole->strides[axes[k]];
    cl_long limit = size - slices->shape[index_ndim + axes[k]] + 1;
    struct argument arguments[] = {ARG(array->memory), ARG(work), ARG(dtype), ARG(first), ARG(skips),
                                   ARG(size),          ARG(limit), ARG(step), ARG(layout)};
    status = launch_1d(job->queue, kernel, layout.n, arguments, 9, job->error);
  }
  return status;
}

static uint64_t workspace(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  (void)inputs;
  return 8 * positions_of(outputs, plan->attributes.gather.index_ndim);
}

static um_status run_gather(struct job *job) {
  const um_gather_attrs *attributes = &job->plan->attributes.gather;
  const struct view *source = job->inputs, *out = job->outputs;
  struct layout slice;
  um_status status = places_run(job, job->plan->kernels[1], job->inputs + 1, attributes->n_indices, attributes->axes,
                                attributes->index_ndim, source, out, false, job->workspace);
  if (status != UM_OK) return status;
  if (!layout_of_slice(&slice, source, out, attributes->index_ndim)) return fail_axes(job->error);
  cl_long to = out->offset;
  cl_ulong n = view_size(out);
  struct argument arguments[] = {ARG(source->memory), ARG(job->workspace), ARG(out->memory),
                                 ARG(to),             ARG(n),              ARG(slice)};
  return launch_1d(job->queue, job->plan->kernels[0], n, arguments, 6, job->error);
}

static um_status run_gather_axis(struct job *job) {
  const struct view *source = &job->inputs[0], *indices = &job->inputs[1], *out = &job->outputs[0];
  struct axis axes[UM_MAX_NDIM];
  struct layout layout;
  int axis = (int)job->plan->attributes.axis.axis;
  for (int i = 0; i < out->ndim; i++) {
    axes[i] = (struct axis){(uint64_t)out->shape[i],
                            {i == axis || source->shape[i] == 1 ? 0 : source->strides[i],
                             indices->shape[i] == 1 ? 0 : indices->strides[i]}};
  }
  if (!layout_of(&layout, axes, out->ndim, 2)) return fail_axes(job->error);
  layout.offset[0] = source->offset;
  layout.offset[1] = indices->offset;
  cl_long to = out->offset, size = source->shape[axis], step = source->strides[axis];
  cl_uint dtype = indices->dtype;
  struct argument arguments[] = {ARG(source->memory), ARG(indices->memory), ARG(out->memory), ARG(to),
                                 ARG(dtype),          ARG(size),            ARG(step),        ARG(layout)};
  return launch_1d(job->queue, job->plan->kernels[0], layout.n, arguments, 8, job->error);
}

um_status prepare_gather(const struct request *request, struct plan *plan, um_error **error) {
  const struct desc *source = &request->inputs[0], *out = &request->outputs[0];
  bool axis = request->op == UM_OP_GATHER_AXIS;
  uint32_t width = (uint32_t)dtype_size(out->dtype);
  um_status status = axis ? attributes_read(request, &plan->attributes.axis, sizeof(um_axis_attrs), error)
                          : attributes_read(request, &plan->attributes.gather, sizeof(um_gather_attrs), error);
  if (status != UM_OK) return status;
  if (request->n_inputs == 0 || source->dtype != out->dtype) return fail(error, UM_INVALID, "dtypes differ");
  if (!out->contiguous) return fail(error, UM_UNSUPPORTED, "the output is not contiguous");
  if (axis) {
    if (request->n_inputs != 2 || source->ndim != out->ndim || request->inputs[1].ndim != out->ndim ||
        plan->attributes.axis.axis >= (uint32_t)out->ndim) {
      return fail(error, UM_INVALID, "ranks or axis do not fit");
    }
    if (!is_integer(request->inputs[1].dtype)) return fail(error, UM_UNSUPPORTED, "indices are integers");
    plan->run = run_gather_axis;
  } else {
    const um_gather_attrs *attributes = &plan->attributes.gather;
    if (attributes->n_indices > 32 || attributes->n_indices + 1 != request->n_inputs ||
        (uint64_t)out->ndim != (uint64_t)attributes->index_ndim + (uint64_t)source->ndim) {
      return fail(error, UM_INVALID, "the number of index arrays or the rank of the output does not fit");
    }
    status = places_check(request->inputs + 1, attributes->n_indices, attributes->axes, attributes->index_ndim,
                          source->ndim, error);
    if (status == UM_OK) {
      status = kernel_get(request->device, SOURCE_INDEX, UM_DTYPE_UINT8, width, "places", &plan->kernels[1], error);
    }
    if (status != UM_OK) return status;
    plan->run = run_gather;
    plan->workspace = workspace;
  }
  status = check_axes(request);
  if (status != UM_OK) return status;
  return kernel_get(request->device, SOURCE_INDEX, UM_DTYPE_UINT8, width, axis ? "gather_axis" : "gather",
                    &plan->kernels[0], error);
}

/* ---- windows that begin at starts in memory --------------------------------------------------------------------- */

/* As in kernels/index.cl; more starts are the host's. */
#define MAX_STARTS 8

enum { WINDOW, COPY };

struct starts {
  cl_uint n;
  cl_uint dtype;
  cl_long offset;
  cl_long apart;
  cl_long limit[MAX_STARTS];
  cl_long step[MAX_STARTS];
};

static um_status run_dynamic_slice(struct job *job) {
  const um_dynamic_slice_attrs *attributes = &job->plan->attributes.dynamic_slice;
  const struct view *starts = &job->inputs[1], *out = &job->outputs[0];
  bool updates = job->plan->op == UM_OP_DYNAMIC_SLICE_UPDATE;
  const struct view *from = &job->inputs[updates ? 2 : 0], *whole = updates ? out : from;
  const int64_t *shape = updates ? from->shape : out->shape;
  um_status status = updates ? copy_view(job, job->plan->kernels[COPY], &job->inputs[0], out) : UM_OK;
  if (status != UM_OK) return status;
  struct starts given = {attributes->n_starts, starts->dtype, starts->offset, starts->strides[0], {0}, {0}};
  for (uint32_t k = 0; k < given.n; k++) {
    uint32_t axis = attributes->axes[k];
    given.limit[k] = whole->shape[axis] - shape[axis] + 1;
    given.step[k] = whole->strides[axis];
  }
  struct axis axes[UM_MAX_NDIM];
  struct layout layout;
  for (int i = 0; i < out->ndim; i++) {
    axes[i] = (struct axis){(uint64_t)shape[i], {from->strides[i], out->strides[i]}};
  }
  if (!layout_of(&layout, axes, out->ndim, 2)) return fail_axes(job->error);
  layout.offset[0] = from->offset;
  layout.offset[1] = out->offset;
  cl_uint into = updates;
  struct argument arguments[] = {ARG(from->memory), ARG(starts->memory), ARG(out->memory),
                                 ARG(into),         ARG(given),          ARG(layout)};
  return launch_1d(job->queue, job->plan->kernels[WINDOW], layout.n, arguments, 6, job->error);
}

um_status prepare_dynamic_slice(const struct request *request, struct plan *plan, um_error **error) {
  um_dynamic_slice_attrs *attributes = &plan->attributes.dynamic_slice;
  const struct desc *inputs = request->inputs, *out = &request->outputs[0];
  uint32_t n = request->op == UM_OP_DYNAMIC_SLICE_UPDATE ? 3 : 2;
  um_status status = attributes_read(request, attributes, sizeof *attributes, error);
  if (status != UM_OK) return status;
  if (request->n_inputs != n || inputs[0].dtype != out->dtype || inputs[0].ndim != out->ndim || inputs[1].ndim != 1 ||
      (n == 3 && (inputs[2].dtype != out->dtype || inputs[2].ndim != out->ndim))) {
    return fail(error, UM_INVALID, "dtypes or ranks of source, starts, update and output do not fit");
  }
  if (attributes->n_starts > MAX_STARTS || out->ndim > MAX_AXES) {
    return fail(error, UM_UNSUPPORTED, "more than %d starts or %d axes", MAX_STARTS, MAX_AXES);
  }
  if (!is_integer(inputs[1].dtype)) return fail(error, UM_UNSUPPORTED, "starts are integers");
  for (uint32_t k = 0, seen = 0; k < attributes->n_starts; k++) {
    uint32_t axis = attributes->axes[k];
    if (axis >= (uint32_t)out->ndim || seen >> axis & 1) {
      return fail(error, UM_INVALID, "an axis of the starts does not exist or is there twice");
    }
    seen |= 1u << axis;
  }
  plan->run = run_dynamic_slice;
  status = kernel_get(request->device, SOURCE_INDEX, UM_DTYPE_UINT8, (uint32_t)dtype_size(out->dtype), "window",
                      &plan->kernels[WINDOW], error);
  return status == UM_OK ? copy_kernel(request->device, out->dtype, &plan->kernels[COPY], error) : status;
}
