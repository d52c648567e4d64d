/* MATMUL. */

#include "ocl.h"

/* TILE and SIDE of kernels/matmul.cl. */
#define TILE 32
#define SIDE 8
/* Products per launch: the third dimension of a grid may be small. */
#define BATCH 32768

static um_status run(struct job *job) {
  const struct view *a = &job->inputs[0], *b = &job->inputs[1], *out = &job->outputs[0];
  int rank = out->ndim;
  struct axis axes[UM_MAX_NDIM];
  struct layout layout;
  for (int i = 0; i < rank - 2; i++) {
    axes[i] = (struct axis){(uint64_t)out->shape[i], {a->strides[i], b->strides[i], out->strides[i]}};
  }
  if (!layout_of(&layout, axes, rank - 2, 3)) {
    return fail_axes(job->error);
  }
  layout.offset[0] = a->offset;
  layout.offset[1] = b->offset;
  layout.offset[2] = out->offset;
  cl_ulong m = (cl_ulong)out->shape[rank - 2], n = (cl_ulong)out->shape[rank - 1], k = (cl_ulong)a->shape[rank - 1];
  cl_long a_row = a->strides[rank - 2], a_col = a->strides[rank - 1];
  cl_long b_row = b->strides[rank - 2], b_col = b->strides[rank - 1];
  cl_long out_row = out->strides[rank - 2], out_col = out->strides[rank - 1];
  um_status status = UM_OK;
  for (cl_ulong first = 0; first < layout.n && status == UM_OK; first += BATCH) {
    size_t batch = layout.n - first < BATCH ? layout.n - first : BATCH;
    size_t global[] = {(n + TILE - 1) / TILE * SIDE, (m + TILE - 1) / TILE * SIDE, batch};
    size_t local[] = {SIDE, SIDE, 1};
    struct argument arguments[] = {ARG(a->memory), ARG(b->memory), ARG(out->memory), ARG(m),       ARG(n),
                                   ARG(k),         ARG(a_row),     ARG(a_col),       ARG(b_row),   ARG(b_col),
                                   ARG(out_row),   ARG(out_col),   ARG(first),       ARG(layout)};
    status = launch(job->queue, job->plan->kernels[0], 3, global, local, arguments, 14, job->error);
  }
  return status;
}

um_status prepare_matmul(const struct request *request, struct plan *plan, um_error **error) {
  const struct desc *a = &request->inputs[0], *b = &request->inputs[1], *out = &request->outputs[0];
  if (request->op != UM_OP_MATMUL) return fail(error, UM_UNSUPPORTED, "gathered and segmented products are composed");
  um_precision_attrs precision; /* products are exact, which every precision allows */
  um_status status = attributes_read(request, &precision, sizeof precision, error);
  if (status != UM_OK) return status;
  if (request->n_inputs != 2 || a->dtype != b->dtype || a->dtype != out->dtype) {
    return fail(error, UM_INVALID, "matmul has two inputs and one output of one dtype");
  }
  if (a->dtype == UM_DTYPE_BOOL) return fail(error, UM_UNSUPPORTED, "bool has no products of matrices");
  if (a->ndim < 2 || a->ndim != b->ndim || a->ndim != out->ndim) {
    return fail(error, UM_INVALID, "matmul needs equal ranks of at least 2");
  }
  status = check_axes(request);
  if (status != UM_OK) return status;
  plan->run = run;
  return kernel_get(request->device, SOURCE_MATMUL, a->dtype, 0, "matmul", &plan->kernels[0], error);
}
