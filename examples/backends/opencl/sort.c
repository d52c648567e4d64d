/* SORT, ARG_SORT and SEARCHSORTED; the scatters sort the places that they write to. */

#include "sort.h"

/* SMALL of kernels/sort.cl. */
#define SMALL 32

enum { BLOCKS, RUNS, VALUES };

uint32_t sort_index_width(uint64_t length) { return length > UINT32_MAX ? 8 : 4; }

uint64_t sort_workspace(uint32_t dtype, uint64_t lanes, uint64_t length) {
  uint64_t n = lanes * length;
  return 2 * (n * dtype_size(dtype) + n * sort_index_width(length) + 16);
}

um_status sort_kernels(struct device *device, uint32_t dtype, uint32_t width, struct kernel **kernels,
                       um_error **error) {
  um_status status = kernel_get(device, SOURCE_SORT, dtype, width, "sort_blocks", &kernels[0], error);
  return status == UM_OK ? kernel_get(device, SOURCE_SORT, dtype, width, "sort_merge", &kernels[1], error) : status;
}

um_status sort_run(struct job *job, struct kernel *const *kernels, cl_mem from, uint32_t dtype,
                   const struct layout *lanes, struct sort *sort, cl_mem work, uint64_t place) {
  uint64_t n = sort->lanes * sort->length, keys = (n * dtype_size(dtype) + 7) / 8 * 8;
  uint64_t indices = (n * sort_index_width(sort->length) + 7) / 8 * 8;
  cl_ulong *spots[] = {&sort->keys_from, &sort->keys_to, &sort->indices_from, &sort->indices_to};
  uint64_t at = place;
  for (int i = 0; i < 4; i++) {
    *spots[i] = at;
    at += i < 2 ? keys : indices;
  }
  struct argument first[] = {ARG(from), ARG(work), ARG(*sort), ARG(*lanes)};
  um_status status = launch_1d(job->queue, kernels[0], n, first, 4, job->error);
  sort->width = SMALL;
  while (status == UM_OK) {
    cl_ulong swap = sort->keys_from;
    sort->keys_from = sort->keys_to, sort->keys_to = swap;
    swap = sort->indices_from;
    sort->indices_from = sort->indices_to, sort->indices_to = swap;
    if (sort->width >= sort->length) break;
    struct argument merge[] = {ARG(work), ARG(*sort)};
    status = launch_1d(job->queue, kernels[1], n, merge, 2, job->error);
    sort->width *= 2;
  }
  return status;
}

static bool sort_of(struct sort *sort, struct layout *lanes, const struct plan *plan, const struct view *in,
                    const struct view *out) {
  struct axis axes[UM_MAX_NDIM];
  int axis = (int)plan->attributes.axis.axis, n = 0;
  for (int i = 0; i < in->ndim; i++) {
    if (i != axis) axes[n++] = (struct axis){(uint64_t)in->shape[i], {in->strides[i], out->strides[i]}};
  }
  if (!layout_of(lanes, axes, n, 2)) return false;
  lanes->op = 0;
  lanes->offset[0] = in->offset;
  lanes->offset[1] = out->offset;
  *sort = (struct sort){.lanes = lanes->n,
                        .length = (cl_ulong)in->shape[axis],
                        .in_step = in->strides[axis],
                        .out_step = out->strides[axis]};
  return true;
}

static uint64_t workspace(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  struct sort sort;
  struct layout lanes;
  if (!sort_of(&sort, &lanes, plan, inputs, outputs)) return 0;
  return sort_workspace(plan->dtypes[0], sort.lanes, sort.length);
}

static um_status run(struct job *job) {
  const struct view *in = job->inputs, *out = job->outputs;
  struct kernel *const *kernels = job->plan->kernels;
  struct sort sort;
  struct layout lanes;
  if (!sort_of(&sort, &lanes, job->plan, in, out)) return fail_axes(job->error);
  bool values = job->plan->op == UM_OP_SORT, far = sort_index_width(sort.length) == 8;
  if (!values && far) return fail(job->error, UM_INVALID, "indices of the axis do not fit in uint32");
  struct kernel *wide[3];
  if (far) {
    um_status status = sort_kernels(job->device, in->dtype, 8, wide, job->error);
    if (status == UM_OK) {
      status = kernel_get(job->device, SOURCE_SORT, in->dtype, 8, "sort_values", &wide[VALUES], job->error);
    }
    if (status != UM_OK) return status;
    kernels = wide;
  }
  um_status status = sort_run(job, kernels, in->memory, in->dtype, &lanes, &sort, job->workspace, 0);
  if (status != UM_OK) return status;
  struct argument arguments[] = {ARG(in->memory), ARG(out->memory), ARG(job->workspace), ARG(sort), ARG(lanes)};
  uint32_t skip = values ? 0 : 1;
  return launch_1d(job->queue, kernels[VALUES], sort.lanes * sort.length, arguments + skip, 5 - skip, job->error);
}

static um_status run_search(struct job *job) {
  const struct view *rows = &job->inputs[0], *values = &job->inputs[1], *out = job->outputs;
  struct axis axes[UM_MAX_NDIM];
  struct layout layout;
  int batch = rows->ndim - 1;
  bool fits = true;
  for (int i = 0; i < values->ndim; i++) {
    fits &= values->shape[i] == out->shape[i] && (i >= batch || values->shape[i] == rows->shape[i]);
    axes[i] = (struct axis){(uint64_t)values->shape[i],
                            {i < batch ? rows->strides[i] : 0, values->strides[i], out->strides[i]}};
  }
  if (!fits) return fail(job->error, UM_INVALID, "the shapes of searchsorted do not fit");
  if (!layout_of(&layout, axes, values->ndim, 3)) return fail_axes(job->error);
  layout.op = job->plan->code;
  layout.offset[0] = rows->offset;
  layout.offset[1] = values->offset;
  layout.offset[2] = out->offset;
  cl_ulong length = (cl_ulong)rows->shape[batch];
  cl_long along = rows->strides[batch];
  struct argument arguments[] = {ARG(rows->memory), ARG(values->memory), ARG(out->memory),
                                 ARG(length),       ARG(along),          ARG(layout)};
  return launch_1d(job->queue, job->plan->kernels[0], layout.n, arguments, 6, job->error);
}

static um_status prepare_search(const struct request *request, struct plan *plan, um_error **error) {
  um_search_attrs attributes;
  um_status status = attributes_read(request, &attributes, sizeof attributes, error);
  if (status != UM_OK) return status;
  const struct desc *rows = &request->inputs[0], *values = &request->inputs[1], *out = &request->outputs[0];
  if (request->n_inputs != 2 || rows->dtype != values->dtype || out->dtype != UM_DTYPE_UINT32 ||
      out->ndim != values->ndim || rows->ndim < 1 || rows->ndim > values->ndim + 1) {
    return fail(error, UM_INVALID, "the ranks or dtypes of searchsorted do not fit");
  }
  if (rows->dtype == UM_DTYPE_COMPLEX64) return fail(error, UM_UNSUPPORTED, "searchsorted of complex numbers");
  status = check_axes(request);
  if (status == UM_OK) {
    status = kernel_get(request->device, SOURCE_SORT, rows->dtype, 4, "searchsorted", &plan->kernels[0], error);
  }
  plan->code = attributes.right != 0;
  plan->run = run_search;
  return status;
}

um_status prepare_sort(const struct request *request, struct plan *plan, um_error **error) {
  if (request->op == UM_OP_SEARCHSORTED) return prepare_search(request, plan, error);
  if (request->op != UM_OP_SORT && request->op != UM_OP_ARG_SORT) {
    return fail(error, UM_UNSUPPORTED, "op %u is unknown", request->op);
  }
  um_axis_attrs *attributes = &plan->attributes.axis;
  um_status status = attributes_read(request, attributes, sizeof *attributes, error);
  if (status != UM_OK) return status;
  const struct desc *in = &request->inputs[0], *out = &request->outputs[0];
  bool values = request->op == UM_OP_SORT;
  if (request->n_inputs != 1 || in->ndim != out->ndim || attributes->axis >= (uint32_t)in->ndim ||
      out->dtype != (values ? in->dtype : UM_DTYPE_UINT32)) {
    return fail(error, UM_INVALID, "rank, dtype or axis does not fit");
  }
  status = check_axes(request);
  if (status == UM_OK) status = sort_kernels(request->device, in->dtype, 4, plan->kernels, error);
  if (status == UM_OK) {
    const char *name = values ? "sort_values" : "sort_indices";
    status = kernel_get(request->device, SOURCE_SORT, in->dtype, 4, name, &plan->kernels[VALUES], error);
  }
  plan->run = run;
  plan->workspace = workspace;
  return status;
}
