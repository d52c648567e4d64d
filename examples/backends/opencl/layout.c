/* Dtypes, and how tensors are walked together. */

#include <ultramarine/helper.h>

#include "ocl.h"

uint32_t dtype_of(DLDataType type) {
  int32_t index = um_dtype_index(type);
  return index < 0 ? UM_DTYPE_COUNT : (uint32_t)index;
}

size_t dtype_size(uint32_t dtype) { return um_dtype_size(um_dtype(dtype)); }

int axes_join(struct axis *axes, int count, int tensors) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (axes[i].size == 1) continue;
    bool joins = kept > 0;
    for (int k = 0; k < tensors && joins; k++) {
      joins = axes[kept - 1].step[k] == axes[i].step[k] * (int64_t)axes[i].size;
    }
    if (joins) {
      axes[kept - 1].size *= axes[i].size;
      for (int k = 0; k < tensors; k++) axes[kept - 1].step[k] = axes[i].step[k];
    } else {
      axes[kept++] = axes[i];
    }
  }
  return kept;
}

bool layout_of(struct layout *layout, struct axis *axes, int count, int tensors) {
  count = axes_join(axes, count, tensors);
  if (count > MAX_AXES) return false;
  layout->n = 1;
  layout->axes = (cl_uint)count;
  for (int i = 0; i < count; i++) {
    layout->n *= axes[i].size;
    layout->size[i] = axes[i].size;
    for (int k = 0; k < tensors; k++) layout->stride[k][i] = axes[i].step[k];
  }
  return true;
}

bool layout_of_views(struct layout *layout, const struct view *const *views, int tensors) {
  struct axis axes[UM_MAX_NDIM];
  int ndim = views[0]->ndim;
  for (int i = 0; i < ndim; i++) {
    axes[i].size = (uint64_t)views[0]->shape[i];
    for (int k = 0; k < tensors; k++) axes[i].step[k] = views[k]->strides[i];
  }
  for (int k = 0; k < tensors; k++) layout->offset[k] = views[k]->offset;
  return layout_of(layout, axes, ndim, tensors);
}

uint64_t view_size(const struct view *view) {
  uint64_t n = 1;
  for (int i = 0; i < view->ndim; i++) n *= (uint64_t)view->shape[i];
  return n;
}

bool view_contiguous(const struct view *view) {
  int64_t step = 1;
  for (int i = view->ndim - 1; i >= 0; i--) {
    if (view->shape[i] != 1 && view->strides[i] != step) return false;
    step *= view->shape[i];
  }
  return true;
}
