/* The stable sort, for SORT, ARG_SORT and the scatters. */
#ifndef ULTRAMARINE_OPENCL_SORT_H
#define ULTRAMARINE_OPENCL_SORT_H

#include "ocl.h"

/* Mirrors `Sort` of kernels/sort.cl. */
struct sort {
  cl_ulong lanes, length;
  cl_long in_step, out_step;
  cl_ulong width, keys_from, keys_to, indices_from, indices_to;
};

/* Bytes of an index into lanes of that length. */
uint32_t sort_index_width(uint64_t length);
uint64_t sort_workspace(uint32_t dtype, uint64_t lanes, uint64_t length);
/* The two kernels that sort. */
um_status sort_kernels(struct device *device, uint32_t dtype, uint32_t width, struct kernel **kernels,
                       um_error **error);
/* Sorts lanes; afterwards the sorted keys and their indices lie at keys_from and indices_from of the workspace, of
 * which what follows `place` (a multiple of 8) is used. */
um_status sort_run(struct job *job, struct kernel *const *kernels, cl_mem from, uint32_t dtype,
                   const struct layout *lanes, struct sort *sort, cl_mem work, uint64_t place);

#endif
