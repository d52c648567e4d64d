/* What a backend may offer besides: interfaces looked up by id. An id ends in the interface's revision; within a
 * revision structs only grow, by their sizes. Included by backend.h. */
#ifndef ULTRAMARINE_INTERFACES_H
#define ULTRAMARINE_INTERFACES_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ultramarine.fused/1: elementwise programs with an optional closing reduction --------------------------- */

/* A program is in static single assignment form. Operand indices count first the inputs, then the constants, then
 * the instructions' results. Every value has the iteration shape, to which inputs are broadcast by zero strides.
 * Every instruction rounds to its dtype, without contraction. With a closing reduction, output 0 is the named value
 * reduced over `axes` (kept as size 1); further outputs have the iteration shape. */
#define UM_FUSED_INTERFACE "ultramarine.fused/1"

#define UM_FAMILY_UNARY 0u
#define UM_FAMILY_BINARY 1u
#define UM_FAMILY_SELECT 2u /* a ? b : c */
#define UM_FAMILY_CAST 3u

typedef struct um_instruction {
  uint8_t family;
  uint8_t op; /* code within the family; 0 for select and cast */
  uint16_t a;
  uint16_t b;
  uint16_t c;
  DLDataType dtype; /* of the result */
} um_instruction;

#define UM_NO_REDUCTION 0xffffffffu

typedef struct um_program {
  uint32_t size;
  uint32_t reduce; /* UM_REDUCE_... for output 0, or UM_NO_REDUCTION */
  uint64_t axes;   /* bit i: axis i of the iteration shape is reduced */
  const um_instruction *instructions;
  const DLDataType *constants; /* their dtypes; the values are the command's scalars */
  const uint16_t *outputs;     /* operand index of each output */
  uint32_t n_instructions;
  uint32_t n_constants;
  uint32_t n_outputs;
  uint32_t n_inputs;
} um_program;

typedef struct um_fused_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Like `prepare` of the table; the plan is submitted and released like any other. */
  um_status (*prepare)(void *device, const um_program *program, const um_tensor_desc *inputs,
                       const um_tensor_desc *outputs, void **plan, um_error **error);
} um_fused_interface;

#ifdef __cplusplus
}
#endif

#endif
