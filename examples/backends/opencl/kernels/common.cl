/* What all kernels share: how they walk tensors. Mirrors `struct layout` of ocl.h. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define MAX_WALKED 4
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))

typedef struct {
  ulong n;
  uint axes;
  uint op;
  long offset[MAX_WALKED];
  ulong size[MAX_AXES];
  long stride[MAX_WALKED][MAX_AXES];
} Layout;

/* Adds to at[0..tensors) the offsets of element `i` in row-major order. Divisions of 32 bits where these do. */
static inline void walk(const Layout *l, ulong i, int tensors, long *at) {
  int d = (int)l->axes - 1;
  if (l->n <= UINT_MAX) {
    uint rest = (uint)i;
    for (; d > 0; d--) {
      uint size = (uint)l->size[d];
      uint next = rest / size;
      long index = (long)(rest - next * size);
      rest = next;
      for (int k = 0; k < tensors; k++) at[k] += index * l->stride[k][d];
    }
    i = rest;
  } else {
    for (; d > 0; d--) {
      ulong next = i / l->size[d];
      long index = (long)(i - next * l->size[d]);
      i = next;
      for (int k = 0; k < tensors; k++) at[k] += index * l->stride[k][d];
    }
  }
  if (d == 0) {
    for (int k = 0; k < tensors; k++) at[k] += (long)i * l->stride[k][0];
  }
}

/* The places of element `i` in each tensor. */
static inline void locate(const Layout *l, ulong i, int tensors, long *at) {
  for (int k = 0; k < tensors; k++) at[k] = l->offset[k];
  walk(l, i, tensors, at);
}
