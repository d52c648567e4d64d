/* SCATTER and SCATTER_AXIS. Updates of one element are combined in their order, without atomic operations: by
 * work-items that go through all positions, or, where there would be too few of those, by sorting the places. */

#include "index.h"
#include "sort.h"

enum { SLICES, LANES, SORTED, COPY, PLACES, SPREAD };

/* How a scatter is done. */
struct scatter {
  bool sorted;
  uint64_t positions; /* or lanes */
  uint64_t updates;   /* single elements */
  bool packs;         /* the updates are copied to lie one behind the other */
  /* Bytes of the workspace, after the places of the slices. */
  uint64_t places; /* where the places of single elements begin, */
  uint64_t order;  /* the sort, */
  uint64_t packed; /* the copied updates, */
  uint64_t end;
};

static void divide(struct scatter *scatter, const struct view *updates, uint64_t places) {
  uint64_t sort = sort_workspace(UM_DTYPE_INT64, 1, scatter->updates);
  scatter->places = places;
  scatter->order = places + (scatter->sorted ? 8 * scatter->updates : 0);
  scatter->packed = scatter->order + (scatter->sorted ? (sort + 7) / 8 * 8 : 0);
  scatter->end = scatter->packed + (scatter->packs ? scatter->updates * dtype_size(updates->dtype) : 0);
}

/* Fewer work-items than this, with long work each, are too few for a GPU. */
static bool too_few(const struct plan *plan, uint64_t items, uint64_t work) {
  return plan->device->found.type != CL_DEVICE_TYPE_CPU && items < 1024 && work > 256;
}

static void scatter_of(struct scatter *scatter, const struct plan *plan, const struct view *updates) {
  const um_scatter_attrs *attributes = &plan->attributes.scatter;
  bool overlap = false; /* whether different elements of slices may meet */
  for (uint32_t i = 0; i < attributes->n_indices; i++) {
    overlap |= updates->shape[attributes->index_ndim + attributes->axes[i]] != 1;
  }
  scatter->positions = positions_of(updates, attributes->index_ndim);
  scatter->updates = view_size(updates);
  uint64_t slice = scatter->updates / scatter->positions;
  scatter->sorted = scatter->positions > 1 && (overlap || too_few(plan, slice, scatter->positions));
  /* Sorted updates are taken from where they lie. */
  scatter->packs = !scatter->sorted && !view_contiguous(updates);
  divide(scatter, updates, 8 * scatter->positions);
}

static uint64_t workspace(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  struct scatter scatter;
  (void)outputs;
  scatter_of(&scatter, plan, &inputs[plan->n_inputs - 1]);
  return scatter.end;
}

/* Sorts the places of single updates and combines them. `walk` walks the updates. */
static um_status run_sorted(struct job *job, const struct scatter *scatter, const struct view *updates,
                            const struct view *out, const struct layout *walk) {
  struct kernel *kernels[2], *combine = job->plan->kernels[SORTED];
  uint32_t width = sort_index_width(scatter->updates);
  um_status status = sort_kernels(job->device, UM_DTYPE_INT64, width, kernels, job->error);
  if (status == UM_OK && width == 8) {
    status = kernel_get(job->device, SOURCE_SCATTER, out->dtype, 8, "scatter_sorted", &combine, job->error);
  }
  struct sort sort = {.lanes = 1, .length = scatter->updates, .in_step = 1};
  struct layout lane = {.n = 1, .offset = {(cl_long)(scatter->places / 8)}};
  if (status == UM_OK) {
    status = sort_run(job, kernels, job->workspace, UM_DTYPE_INT64, &lane, &sort, job->workspace, scatter->order);
  }
  if (status != UM_OK) return status;
  cl_ulong places = scatter->places, order = sort.indices_from;
  struct argument arguments[] = {ARG(updates->memory), ARG(out->memory), ARG(job->workspace),
                                 ARG(places),          ARG(order),       ARG(*walk)};
  return launch_1d(job->queue, combine, scatter->updates, arguments, 6, job->error);
}

static um_status run_scatter(struct job *job) {
  const um_scatter_attrs *attributes = &job->plan->attributes.scatter;
  const struct view *updates = &job->inputs[job->plan->n_inputs - 1], *out = &job->outputs[0];
  struct kernel *const *kernels = job->plan->kernels;
  struct scatter scatter;
  struct layout slice, walk;
  scatter_of(&scatter, job->plan, updates);
  um_status status = copy_view(job, kernels[COPY], &job->inputs[0], out);
  if (status == UM_OK) {
    status = places_run(job, kernels[PLACES], job->inputs + 1, attributes->n_indices, attributes->axes,
                        attributes->index_ndim, out, updates, true, job->workspace);
  }
  if (status != UM_OK) return status;
  if (!layout_of_slice(&slice, out, updates, attributes->index_ndim)) return fail_axes(job->error);
  slice.op = attributes->op;
  cl_long from = updates->offset;
  cl_mem given = updates->memory;
  if (scatter.packs) {
    int64_t strides[UM_MAX_NDIM], step = 1;
    for (int i = updates->ndim - 1; i >= 0; i--) {
      strides[i] = step;
      step *= updates->shape[i];
    }
    struct view packed = *updates;
    from = packed.offset = (int64_t)(scatter.packed / dtype_size(updates->dtype));
    given = packed.memory = job->workspace;
    packed.strides = strides;
    status = copy_view(job, kernels[COPY], updates, &packed);
    if (status != UM_OK) return status;
  }
  cl_ulong positions = scatter.positions, each = scatter.places / 8, n = scatter.updates;
  if (!scatter.sorted) {
    struct argument arguments[] = {ARG(given), ARG(out->memory), ARG(job->workspace),
                                   ARG(from),  ARG(positions),   ARG(slice)};
    return launch_1d(job->queue, kernels[SLICES], slice.n, arguments, 6, job->error);
  }
  struct argument arguments[] = {ARG(job->workspace), ARG(each), ARG(n), ARG(slice)};
  status = launch_1d(job->queue, kernels[SPREAD], n, arguments, 4, job->error);
  if (status != UM_OK) return status;
  if (!layout_of_views(&walk, &updates, 1)) return fail_axes(job->error);
  walk.op = attributes->op;
  return run_sorted(job, &scatter, updates, out, &walk);
}

/* ---- along an axis ------------------------------------------------------------------------------------------- */

/* Strides as if the tensor were broadcast to the updates' common shape. */
static int64_t step_of(const struct view *view, int axis) { return view->shape[axis] == 1 ? 0 : view->strides[axis]; }

static void axis_of(struct scatter *scatter, const struct plan *plan, const struct view *inputs,
                    const struct view *out) {
  const struct view *indices = &inputs[1], *updates = &inputs[2];
  int axis = (int)plan->attributes.scatter_axis.axis;
  int64_t length = indices->shape[axis] > updates->shape[axis] ? indices->shape[axis] : updates->shape[axis];
  scatter->positions = view_size(out) / (uint64_t)out->shape[axis];
  scatter->updates = scatter->positions * (uint64_t)length;
  scatter->sorted = too_few(plan, scatter->positions, (uint64_t)length);
  scatter->packs = false;
  divide(scatter, updates, 0);
}

static uint64_t workspace_axis(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  struct scatter scatter;
  axis_of(&scatter, plan, inputs, outputs);
  return scatter.end;
}

static um_status run_scatter_axis(struct job *job) {
  const struct view *indices = &job->inputs[1], *updates = &job->inputs[2], *out = &job->outputs[0];
  struct kernel *const *kernels = job->plan->kernels;
  int axis = (int)job->plan->attributes.scatter_axis.axis, n = 0;
  struct scatter scatter;
  struct axis lanes[UM_MAX_NDIM], all[UM_MAX_NDIM], given[UM_MAX_NDIM];
  struct layout layout;
  axis_of(&scatter, job->plan, job->inputs, out);
  um_status status = copy_view(job, kernels[COPY], &job->inputs[0], out);
  if (status != UM_OK) return status;
  cl_ulong length = scatter.updates / scatter.positions;
  for (int i = 0; i < out->ndim; i++) {
    uint64_t size = i == axis ? length : (uint64_t)out->shape[i];
    int64_t to = i == axis ? 0 : out->strides[i], by = step_of(indices, i), from = step_of(updates, i);
    all[i] = (struct axis){size, {to, by}};
    given[i] = (struct axis){size, {from}};
    if (i != axis) lanes[n++] = (struct axis){size, {to, by, from}};
  }
  cl_uint dtype = indices->dtype;
  cl_long size = out->shape[axis], out_step = out->strides[axis], index_step = step_of(indices, axis);
  cl_long update_step = step_of(updates, axis);
  if (!scatter.sorted) {
    if (!layout_of(&layout, lanes, n, 3)) return fail_axes(job->error);
    layout.op = job->plan->code;
    layout.offset[0] = out->offset, layout.offset[1] = indices->offset, layout.offset[2] = updates->offset;
    struct argument arguments[] = {ARG(updates->memory), ARG(out->memory), ARG(indices->memory), ARG(dtype),
                                   ARG(length),          ARG(size),        ARG(out_step),        ARG(index_step),
                                   ARG(update_step),     ARG(layout)};
    return launch_1d(job->queue, kernels[LANES], layout.n, arguments, 10, job->error);
  }
  if (!layout_of(&layout, all, out->ndim, 2)) return fail_axes(job->error);
  layout.offset[0] = out->offset, layout.offset[1] = indices->offset;
  struct argument arguments[] = {ARG(indices->memory), ARG(job->workspace), ARG(dtype),
                                 ARG(size),            ARG(out_step),       ARG(layout)};
  status = launch_1d(job->queue, kernels[SPREAD], layout.n, arguments, 6, job->error);
  if (status != UM_OK) return status;
  if (!layout_of(&layout, given, out->ndim, 1)) return fail_axes(job->error);
  layout.op = job->plan->code;
  layout.offset[0] = updates->offset;
  return run_sorted(job, &scatter, updates, out, &layout);
}

/* ---- plans --------------------------------------------------------------------------------------------------- */

static um_status check(const struct request *request, struct plan *plan, um_error **error) {
  const struct desc *source = &request->inputs[0], *out = &request->outputs[0];
  const struct desc *updates = &request->inputs[request->n_inputs - 1];
  if (request->n_inputs < 2 || source->dtype != out->dtype || updates->dtype != out->dtype ||
      source->ndim != out->ndim) {
    return fail(error, UM_INVALID, "source, updates and output do not fit");
  }
  if (request->op == UM_OP_SCATTER_AXIS) {
    const um_scatter_axis_attrs *attributes = &plan->attributes.scatter_axis;
    plan->code = attributes->op;
    if (request->n_inputs != 3 || request->inputs[1].ndim != out->ndim || updates->ndim != out->ndim ||
        attributes->axis >= (uint32_t)out->ndim) {
      return fail(error, UM_INVALID, "ranks or axis do not fit");
    }
    if (!is_integer(request->inputs[1].dtype)) return fail(error, UM_UNSUPPORTED, "indices are integers");
  } else {
    const um_scatter_attrs *attributes = &plan->attributes.scatter;
    plan->code = attributes->op;
    if (attributes->n_indices > 32 || attributes->n_indices + 2 != request->n_inputs ||
        (uint64_t)updates->ndim != (uint64_t)attributes->index_ndim + (uint64_t)out->ndim) {
      return fail(error, UM_INVALID, "the number of index arrays or the rank of the updates does not fit");
    }
    um_status status = places_check(request->inputs + 1, attributes->n_indices, attributes->axes,
                                    attributes->index_ndim, out->ndim, error);
    if (status != UM_OK) return status;
  }
  if (plan->code >= UM_SCATTER_COUNT) return fail(error, UM_UNSUPPORTED, "scatter %u is unknown", plan->code);
  return check_axes(request);
}

um_status prepare_scatter(const struct request *request, struct plan *plan, um_error **error) {
  bool axis = request->op == UM_OP_SCATTER_AXIS;
  struct device *device = request->device;
  uint32_t dtype = request->outputs[0].dtype;
  um_status status =
      axis ? attributes_read(request, &plan->attributes.scatter_axis, sizeof(um_scatter_axis_attrs), error)
           : attributes_read(request, &plan->attributes.scatter, sizeof(um_scatter_attrs), error);
  if (status == UM_OK) status = check(request, plan, error);
  if (status != UM_OK) return status;
  const struct {
    enum source source;
    uint32_t dtype, variant;
    const char *name;
    int at;
  } wanted[] = {
      {SOURCE_SCATTER, dtype, 4, axis ? "scatter_lanes" : "scatter_slices", axis ? LANES : SLICES},
      {SOURCE_SCATTER, dtype, 4, "scatter_sorted", SORTED},
      {SOURCE_INDEX, UM_DTYPE_UINT8, 1, "places", PLACES},
      {SOURCE_INDEX, UM_DTYPE_UINT8, 1, axis ? "axis_places" : "spread", SPREAD},
  };
  status = copy_kernel(device, dtype, &plan->kernels[COPY], error);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == UM_OK; i++) {
    status = kernel_get(device, wanted[i].source, wanted[i].dtype, wanted[i].variant, wanted[i].name,
                        &plan->kernels[wanted[i].at], error);
  }
  plan->run = axis ? run_scatter_axis : run_scatter;
  plan->workspace = axis ? workspace_axis : workspace;
  return status;
}
