/* RANDOM_BITS. */

#include "ocl.h"

static um_status run(struct job *job) {
  const struct view *keys = job->inputs, *out = job->outputs;
  struct axis axes[UM_MAX_NDIM];
  struct layout layout;
  int outer = keys->ndim - 1;
  cl_ulong each = 1;
  for (int i = 0; i < outer; i++) axes[i] = (struct axis){(uint64_t)keys->shape[i], {keys->strides[i]}};
  for (int i = outer; i < out->ndim; i++) each *= (cl_ulong)out->shape[i];
  if (!layout_of(&layout, axes, outer, 1)) return fail_axes(job->error);
  layout.offset[0] = keys->offset;
  cl_long step = keys->strides[outer], to = out->offset;
  struct argument arguments[] = {ARG(keys->memory), ARG(out->memory), ARG(each), ARG(step), ARG(to), ARG(layout)};
  return launch_1d(job->queue, job->plan->kernels[0], layout.n * each, arguments, 6, job->error);
}

um_status prepare_random(const struct request *request, struct plan *plan, um_error **error) {
  const struct desc *keys = &request->inputs[0], *out = &request->outputs[0];
  um_no_attrs none;
  um_status status = attributes_read(request, &none, sizeof none, error);
  if (status != UM_OK) return status;
  if (request->n_inputs != 1 || keys->dtype != UM_DTYPE_UINT32 || keys->ndim == 0 || out->ndim + 1 < keys->ndim) {
    return fail(error, UM_INVALID, "keys or output do not fit");
  }
  if (out->dtype != UM_DTYPE_UINT8 && out->dtype != UM_DTYPE_UINT16 && out->dtype != UM_DTYPE_UINT32) {
    return fail(error, UM_UNSUPPORTED, "bits are uint8, uint16 or uint32");
  }
  if (!out->contiguous) return fail(error, UM_UNSUPPORTED, "the output is not contiguous");
  status = check_axes(request);
  if (status != UM_OK) return status;
  plan->run = run;
  uint32_t width = (uint32_t)dtype_size(out->dtype);
  return kernel_get(request->device, SOURCE_RANDOM, UM_DTYPE_UINT32, width, "random_bits", &plan->kernels[0], error);
}
