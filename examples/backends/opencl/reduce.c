/* REDUCE and ARG_REDUCE. */

#include <string.h>

#include "ocl.h"

/* Mirrors `Fold` of kernels/reduce.cl. */
struct fold {
  cl_ulong outputs, count, length, segments;
  cl_uint out_axes, axes, op, reserved;
  cl_long offset[2];
  cl_ulong out_size[MAX_AXES];
  cl_long in_stride[MAX_AXES];
  cl_long out_stride[MAX_AXES];
  cl_ulong size[MAX_AXES];
  cl_long stride[MAX_AXES];
};

/* Elements of a segment at least. */
#define SEGMENT 2048
/* Elements of a reduction whose neighbours are read side by side by a group at least. */
#define GROUP_LEAST 512
/* Bytes of a wide accumulator at most. */
#define WIDE 16

enum { EACH, BY_GROUP, MERGE };

static bool is_cpu(const struct device *device) { return device->found.type == CL_DEVICE_TYPE_CPU; }

/* Which axes are kept, which are reduced, and how it is all cut; false if there are too many axes. */
static bool fold_of(struct fold *fold, const struct plan *plan, const struct view *in, const struct view *out) {
  struct axis kept[UM_MAX_NDIM], reduced[UM_MAX_NDIM];
  int n_kept = 0, n_reduced = 0;
  bool arg = plan->op == UM_OP_ARG_REDUCE;
  uint64_t mask = arg ? UINT64_C(1) << plan->attributes.arg_reduce.axis : plan->attributes.reduce.axes;
  for (int i = 0; i < in->ndim; i++) {
    uint64_t size = (uint64_t)in->shape[i];
    if (mask >> i & 1) reduced[n_reduced++] = (struct axis){size, {in->strides[i]}};
    else kept[n_kept++] = (struct axis){size, {in->strides[i], out->strides[i]}};
  }
  n_kept = axes_join(kept, n_kept, 2);
  n_reduced = axes_join(reduced, n_reduced, 1);
  if (n_kept > MAX_AXES || n_reduced > MAX_AXES) return false;
  memset(fold, 0, sizeof *fold);
  fold->outputs = fold->count = 1;
  fold->offset[0] = in->offset;
  fold->offset[1] = out->offset;
  fold->out_axes = (cl_uint)n_kept;
  fold->axes = (cl_uint)n_reduced;
  fold->op = plan->code;
  for (int i = 0; i < n_kept; i++) {
    fold->outputs *= kept[i].size;
    fold->out_size[i] = kept[i].size;
    fold->in_stride[i] = kept[i].step[0];
    fold->out_stride[i] = kept[i].step[1];
  }
  for (int i = 0; i < n_reduced; i++) {
    fold->count *= reduced[i].size;
    fold->size[i] = reduced[i].size;
    fold->stride[i] = reduced[i].step[0];
  }
  /* Segments until every unit has enough to do; imaginary NaNs have no order, so complex extremes have none. */
  uint64_t wanted = parallelism(plan->device);
  uint64_t segments = fold->outputs < wanted ? (wanted + fold->outputs - 1) / fold->outputs : 1;
  uint64_t most = (fold->count + SEGMENT - 1) / SEGMENT;
  if (segments > most) segments = most;
  if (arg && plan->dtypes[0] == UM_DTYPE_COMPLEX64) segments = 1;
  fold->length = (fold->count + segments - 1) / segments;
  fold->segments = (fold->count + fold->length - 1) / fold->length;
  return true;
}

static uint64_t workspace(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  struct fold fold;
  if (!fold_of(&fold, plan, inputs, outputs) || fold.segments == 1) return 0;
  return fold.outputs * fold.segments * WIDE;
}

static um_status run(struct job *job) {
  const struct plan *plan = job->plan;
  const struct view *in = job->inputs, *out = job->outputs;
  struct fold fold;
  if (!fold_of(&fold, plan, in, out)) {
    return fail_axes(job->error);
  }
  if (plan->op == UM_OP_ARG_REDUCE && fold.count > UINT32_MAX) {
    return fail(job->error, UM_INVALID, "indices of the axis do not fit in uint32");
  }
  bool by_group = plan->op == UM_OP_REDUCE && !is_cpu(job->device) && fold.length >= GROUP_LEAST &&
                  fold.axes > 0 && (fold.stride[fold.axes - 1] == 1 || fold.stride[fold.axes - 1] == -1);
  cl_mem partial = job->workspace ? job->workspace : out->memory; /* not touched where there are no segments */
  struct argument arguments[] = {ARG(in->memory), ARG(out->memory), ARG(partial), ARG(fold)};
  uint64_t items = fold.outputs * fold.segments * (by_group ? GROUP : 1);
  um_status status =
      launch_1d(job->queue, plan->kernels[by_group ? BY_GROUP : EACH], items, arguments, 4, job->error);
  if (status != UM_OK || fold.segments == 1) return status;
  /* The second stage of ARG_REDUCE looks at the elements again. */
  uint32_t skip = plan->op == UM_OP_REDUCE ? 1 : 0;
  return launch_1d(job->queue, plan->kernels[MERGE], fold.outputs, arguments + skip, 4 - skip, job->error);
}

um_status prepare_reduce(const struct request *request, struct plan *plan, um_error **error) {
  const struct desc *in = &request->inputs[0], *out = &request->outputs[0];
  bool arg = request->op == UM_OP_ARG_REDUCE;
  um_status status = arg ? attributes_read(request, &plan->attributes.arg_reduce, sizeof(um_arg_reduce_attrs), error)
                         : attributes_read(request, &plan->attributes.reduce, sizeof(um_reduce_attrs), error);
  if (status != UM_OK) return status;
  if (request->n_inputs != 1 || in->ndim != out->ndim) return fail(error, UM_INVALID, "the ranks do not fit");
  if (arg) {
    if (plan->attributes.arg_reduce.axis >= (uint32_t)in->ndim) return fail(error, UM_INVALID, "there is no such axis");
    if (out->dtype != UM_DTYPE_UINT32) return fail(error, UM_INVALID, "indices are uint32");
  }
  uint32_t code = plan->code = arg ? plan->attributes.arg_reduce.op : plan->attributes.reduce.op;
  bool logic = !arg && (code == UM_REDUCE_ALL || code == UM_REDUCE_ANY);
  bool order = code == UM_REDUCE_MIN || code == UM_REDUCE_MAX;
  if (code >= (arg ? UM_ARG_REDUCE_COUNT : UM_REDUCE_LOGADDEXP)) {
    return fail(error, UM_UNSUPPORTED, "reduction %u is unknown", code);
  }
  if (!arg && (out->dtype != (logic ? UM_DTYPE_BOOL : in->dtype) ||
               (in->dtype == UM_DTYPE_BOOL && !logic && !order))) {
    return fail(error, UM_UNSUPPORTED, "the output's dtype does not fit");
  }
  if (in->ndim > MAX_AXES && !in->contiguous) return UM_NEEDS_CONTIGUOUS;
  static const char *const names[2][3] = {{"fold_each", "fold_group", "fold_merge"}, {"arg_each", NULL, "arg_merge"}};
  for (int i = 0; i < 3 && status == UM_OK; i++) {
    if (!names[arg][i]) continue;
    status = kernel_get(request->device, SOURCE_REDUCE, in->dtype, logic, names[arg][i], &plan->kernels[i], error);
  }
  plan->run = run;
  plan->workspace = workspace;
  return status;
}
