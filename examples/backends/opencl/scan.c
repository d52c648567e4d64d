/* SCAN. */

#include "ocl.h"

/* Mirrors `Scan` of kernels/scan.cl. */
struct scan {
  cl_ulong length, chunk, chunks;
  cl_long in_step, out_step;
  cl_ulong inclusive;
};

/* Elements of a chunk at least. */
#define CHUNK 1024
/* Bytes of a running value at most. */
#define RUNNING 8

enum { LANES, TOTALS, CARRY };

static bool scan_of(struct scan *scan, struct layout *lanes, const struct plan *plan, const struct view *in,
                    const struct view *out) {
  struct axis axes[UM_MAX_NDIM];
  const um_scan_attrs *attributes = &plan->attributes.scan;
  int axis = (int)attributes->axis, n = 0;
  for (int i = 0; i < in->ndim; i++) {
    if (i != axis) axes[n++] = (struct axis){(uint64_t)in->shape[i], {in->strides[i], out->strides[i]}};
  }
  if (!layout_of(lanes, axes, n, 2)) return false;
  lanes->op = plan->code;
  lanes->offset[0] = in->offset;
  lanes->offset[1] = out->offset;
  *scan = (struct scan){.length = (cl_ulong)in->shape[axis],
                        .in_step = in->strides[axis],
                        .out_step = out->strides[axis],
                        .inclusive = attributes->inclusive != 0};
  if (attributes->reverse) {
    lanes->offset[0] += (in->shape[axis] - 1) * scan->in_step;
    lanes->offset[1] += (out->shape[axis] - 1) * scan->out_step;
    scan->in_step = -scan->in_step;
    scan->out_step = -scan->out_step;
  }
  uint64_t wanted = parallelism(plan->device);
  uint64_t chunks = lanes->n < wanted ? (wanted + lanes->n - 1) / lanes->n : 1;
  uint64_t most = (scan->length + CHUNK - 1) / CHUNK;
  if (chunks > most) chunks = most;
  scan->chunk = (scan->length + chunks - 1) / chunks;
  scan->chunks = (scan->length + scan->chunk - 1) / scan->chunk;
  return true;
}

static uint64_t workspace(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  struct scan scan;
  struct layout lanes;
  if (!scan_of(&scan, &lanes, plan, inputs, outputs) || scan.chunks == 1) return 0;
  return lanes.n * scan.chunks * RUNNING;
}

static um_status run(struct job *job) {
  const struct view *in = job->inputs, *out = job->outputs;
  struct kernel *const *kernels = job->plan->kernels;
  struct scan scan;
  struct layout lanes;
  if (!scan_of(&scan, &lanes, job->plan, in, out)) return fail_axes(job->error);
  cl_mem totals = scan.chunks > 1 ? job->workspace : out->memory; /* not touched by a single chunk */
  um_status status = UM_OK;
  if (scan.chunks > 1) {
    struct argument sums[] = {ARG(in->memory), ARG(totals), ARG(scan), ARG(lanes)};
    status = launch_1d(job->queue, kernels[TOTALS], lanes.n * scan.chunks, sums, 4, job->error);
    struct argument carry[] = {ARG(totals), ARG(scan), ARG(lanes)};
    if (status == UM_OK) status = launch_1d(job->queue, kernels[CARRY], lanes.n, carry, 3, job->error);
  }
  struct argument arguments[] = {ARG(in->memory), ARG(out->memory), ARG(totals), ARG(scan), ARG(lanes)};
  if (status != UM_OK) return status;
  return launch_1d(job->queue, kernels[LANES], lanes.n * scan.chunks, arguments, 5, job->error);
}

um_status prepare_scan(const struct request *request, struct plan *plan, um_error **error) {
  static const char *const names[] = {[LANES] = "scan_lanes", [TOTALS] = "scan_totals", [CARRY] = "scan_carry"};
  um_scan_attrs *attributes = &plan->attributes.scan;
  um_status status = attributes_read(request, attributes, sizeof *attributes, error);
  if (status != UM_OK) return status;
  const struct desc *in = &request->inputs[0], *out = &request->outputs[0];
  if (request->n_inputs != 1 || in->ndim != out->ndim || in->dtype != out->dtype ||
      attributes->axis >= (uint32_t)in->ndim) {
    return fail(error, UM_INVALID, "rank, dtype or axis does not fit");
  }
  bool exponents = attributes->op == UM_REDUCE_LOGADDEXP && in->dtype >= UM_DTYPE_FLOAT16;
  if (attributes->op > UM_REDUCE_MAX && !exponents) return fail(error, UM_UNSUPPORTED, "no such scan of this dtype");
  status = check_axes(request);
  for (int i = 0; i < 3 && status == UM_OK; i++) {
    status = kernel_get(request->device, SOURCE_SCAN, in->dtype, 0, names[i], &plan->kernels[i], error);
  }
  plan->code = attributes->op;
  plan->run = run;
  plan->workspace = workspace;
  return status;
}
