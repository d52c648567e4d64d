/* Index arrays turned into places, for the gathers and the scatters. */
#ifndef ULTRAMARINE_OPENCL_INDEX_H
#define ULTRAMARINE_OPENCL_INDEX_H

#include "ocl.h"

/* Checks index arrays against the attributes and the rank of the tensor that they address. */
um_status places_check(const struct desc *arrays, uint32_t n, const uint8_t *axes, uint32_t index_ndim, int rank,
                       um_error **error);
/* Writes, for every position, where its slice begins relative to `whole`, into the first bytes of `work`. `slices`
 * has the shape of the index arrays followed by that of a slice. Outside indices are clamped or marked. */
um_status places_run(struct job *job, struct kernel *kernel, const struct view *arrays, uint32_t n,
                     const uint8_t *axes, uint32_t index_ndim, const struct view *whole, const struct view *slices,
                     bool skip, cl_mem work);
/* Number of positions: the size of an index array. */
uint64_t positions_of(const struct view *slices, uint32_t index_ndim);
/* Walks a slice of `whole`. */
bool layout_of_slice(struct layout *layout, const struct view *whole, const struct view *slices,
                     uint32_t index_ndim);

#endif
