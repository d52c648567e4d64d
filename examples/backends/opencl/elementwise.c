/* UNARY and BINARY. */

#include "ocl.h"

#define U(op) (UINT64_C(1) << UM_UNARY_##op)
#define B(op) (UINT64_C(1) << UM_BINARY_##op)

/* What each kind of dtype has: bool, integers, floats, complex. */
#define UNARY_TESTS (U(LOGICAL_NOT) | U(ISNAN) | U(ISINF) | U(ISFINITE))
#define UNARY_BOOL \
  (UNARY_TESTS | U(BITWISE_INVERT) | U(ABS) | U(SIGN) | U(SQUARE) | U(FLOOR) | U(CEIL) | U(ROUND) | U(TRUNC) | \
   U(CONJUGATE) | U(REAL) | U(IMAG))
#define UNARY_COMPLEX                                                                                        \
  (UNARY_TESTS | U(ABS) | U(NEGATIVE) | U(SIGN) | U(SQUARE) | U(SQRT) | U(RSQRT) | U(RECIPROCAL) | U(EXP) |   \
   U(LOG) | U(LOG2) | U(LOG10) | U(LOG1P) | U(SIN) | U(COS) | U(TAN) | U(ARCSIN) | U(ARCCOS) | U(ARCTAN) |    \
   U(SINH) | U(COSH) | U(TANH) | U(ARCSINH) | U(ARCCOSH) | U(ARCTANH) | U(ROUND) | U(CONJUGATE) | U(REAL) |   \
   U(IMAG))
#define BINARY_TESTS                                                                                         \
  (B(EQUAL) | B(NOT_EQUAL) | B(LESS) | B(LESS_EQUAL) | B(GREATER) | B(GREATER_EQUAL) | B(LOGICAL_AND) |       \
   B(LOGICAL_OR) | B(EQUAL_NAN))
#define BINARY_ALL \
  (BINARY_TESTS | B(ADD) | B(SUBTRACT) | B(MULTIPLY) | B(FLOOR_DIVIDE) | B(POWER) | B(MAXIMUM) | B(MINIMUM))
#define BINARY_BITS (B(BITWISE_AND) | B(BITWISE_OR) | B(BITWISE_XOR))

static const struct {
  uint64_t unary, binary;
} known[] = {
    {UNARY_BOOL, BINARY_ALL | BINARY_BITS | B(REMAINDER)},
    {UNARY_BOOL | U(NEGATIVE), BINARY_ALL | BINARY_BITS | B(REMAINDER) | B(LEFT_SHIFT) | B(RIGHT_SHIFT)},
    {((UINT64_C(1) << UM_UNARY_COUNT) - 1) & ~U(BITWISE_INVERT),
     BINARY_ALL | B(DIVIDE) | B(REMAINDER) | B(LOGADDEXP) | B(ARCTAN2)},
    {UNARY_COMPLEX, BINARY_ALL | B(DIVIDE) | B(LOGADDEXP)},
};

static int kind_of(uint32_t dtype) {
  if (dtype == UM_DTYPE_BOOL) return 0;
  if (is_integer(dtype)) return 1;
  return dtype == UM_DTYPE_COMPLEX64 ? 3 : 2;
}

enum rule elementwise_rule(bool binary, uint32_t dtype, uint32_t op) {
  uint64_t mask = binary ? known[kind_of(dtype)].binary : known[kind_of(dtype)].unary;
  if (op >= 64 || !(mask >> op & 1)) return RULE_NONE;
  uint64_t code = UINT64_C(1) << op;
  if (code & (binary ? BINARY_TESTS : UNARY_TESTS)) return RULE_TEST;
  bool part = !binary && dtype == UM_DTYPE_COMPLEX64 && code & (U(ABS) | U(REAL) | U(IMAG));
  return part ? RULE_PART : RULE_VALUE;
}

static bool all_contiguous(const struct job *job) {
  for (uint32_t i = 0; i < job->plan->n_inputs; i++) {
    if (!view_contiguous(&job->inputs[i])) return false;
  }
  return view_contiguous(&job->outputs[0]);
}

static um_status run(struct job *job) {
  const struct view *a = &job->inputs[0], *b = &job->inputs[1], *out = &job->outputs[0];
  bool binary = job->plan->op == UM_OP_BINARY;
  const struct view *views[] = {a, binary ? b : out, out};
  struct layout layout;
  if (!layout_of_views(&layout, views, binary ? 3 : 2)) {
    return fail_axes(job->error);
  }
  layout.op = job->plan->code;
  /* The second kernel walks contiguous tensors. */
  struct kernel *kernel = job->plan->kernels[all_contiguous(job) ? 1 : 0];
  if (binary) {
    struct argument arguments[] = {ARG(a->memory), ARG(b->memory), ARG(out->memory), ARG(layout)};
    return launch_1d(job->queue, kernel, layout.n, arguments, 4, job->error);
  }
  struct argument arguments[] = {ARG(a->memory), ARG(out->memory), ARG(layout)};
  return launch_1d(job->queue, kernel, layout.n, arguments, 3, job->error);
}

um_status prepare_elementwise(const struct request *request, struct plan *plan, um_error **error) {
  um_unary_attrs attributes; /* those of BINARY are alike */
  bool binary = request->op == UM_OP_BINARY;
  um_status status = attributes_read(request, &attributes, sizeof attributes, error);
  if (status != UM_OK) return status;
  const struct desc *a = &request->inputs[0], *out = &request->outputs[0];
  if (request->n_inputs != (binary ? 2u : 1u) || a->ndim != out->ndim) {
    return fail(error, UM_INVALID, "the number or the rank of the tensors does not fit");
  }
  if (binary && (request->inputs[1].dtype != a->dtype || request->inputs[1].ndim != a->ndim)) {
    return fail(error, UM_INVALID, "binary ops take two inputs of one dtype and rank");
  }
  enum rule rule = elementwise_rule(binary, a->dtype, attributes.op);
  if (rule == RULE_NONE) return fail(error, UM_UNSUPPORTED, "op %u is unknown for this dtype", attributes.op);
  uint32_t to = rule == RULE_TEST ? UM_DTYPE_BOOL : rule == RULE_PART ? UM_DTYPE_FLOAT32 : a->dtype;
  if (out->dtype != to) return fail(error, UM_UNSUPPORTED, "the output's dtype does not fit");
  status = check_axes(request);
  if (status != UM_OK) return status;

  static const char *const names[2][RULE_NONE][2] = {
      {[RULE_VALUE] = {"unary", "unary_flat"},
       [RULE_TEST] = {"unary_test_each", "unary_test_each_flat"},
       [RULE_PART] = {"unary_part", "unary_part_flat"}},
      {[RULE_VALUE] = {"binary", "binary_flat"}, [RULE_TEST] = {"binary_test_each", "binary_test_each_flat"}}};
  const char *const *name = names[binary][rule];
  enum source source = a->dtype == UM_DTYPE_COMPLEX64 ? SOURCE_COMPLEX : SOURCE_ELEMENTWISE;
  for (int i = 0; i < 2 && status == UM_OK; i++) {
    status = kernel_get(request->device, source, a->dtype, binary, name[i], &plan->kernels[i], error);
  }
  plan->code = attributes.op;
  plan->run = run;
  return status;
}
