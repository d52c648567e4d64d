/* ultramarine.fused/1: elementwise programs as one kernel each, whose source is written here. An instruction is a call
 * of the very function that the op's own kernel calls, rounded to its dtype, so results are bitwise identical. An
 * epilogue is a launch of its own, on the value in the workspace. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ultramarine/helper.h>

#include "ocl.h"

#define MAX_VALUES (FUSED_TENSORS + FUSED_CONSTANTS + FUSED_INSTRUCTIONS)

/* Mirrors `Walk` below: inputs, then outputs. */
struct walk {
  cl_ulong n;
  cl_ulong axes;
  cl_long offset[FUSED_TENSORS];
  cl_ulong size[FUSED_AXES];
  cl_long stride[FUSED_TENSORS][FUSED_AXES];
  cl_ulong constants[FUSED_CONSTANTS];
};

static const char walk_text[] =
    "typedef struct {\n"
    "  ulong n, axes;\n"
    "  long offset[FUSED_TENSORS];\n"
    "  ulong size[FUSED_AXES];\n"
    "  long stride[FUSED_TENSORS][FUSED_AXES];\n"
    "  ulong constants[FUSED_CONSTANTS];\n"
    "} Walk;\n"
    "static inline void walk_to(const Walk *w, ulong i, int tensors, long *at) {\n"
    "  for (int k = 0; k < tensors; k++) at[k] = w->offset[k];\n"
    "  for (int d = (int)w->axes - 1; d >= 0; d--) {\n"
    "    ulong next = d > 0 ? i / w->size[d] : 0;\n"
    "    long index = (long)(i - next * w->size[d]);\n"
    "    i = next;\n"
    "    for (int k = 0; k < tensors; k++) at[k] += index * w->stride[k][d];\n"
    "  }\n"
    "}\n";

/* ---- the source ---------------------------------------------------------------------------------------------- */

/* Names that the texts of a dtype define, and that get its number behind them. */
static const char *const bound[] = {
    "T", "A", "U", "up", "down", "unary_value", "unary_test", "unary_part_value", "binary_value", "binary_test",
    "inverse_erf", "floor_divide", "floor_remainder", "integer_power", "to_i32", "to_i64", "to_u32", "to_u64",
    "stored_bool", "stored_uint8", "stored_uint16", "stored_uint32", "stored_uint64", "stored_int8", "stored_int16",
    "stored_int32", "stored_int64", "stored_float16", "stored_float32", "stored_float64", "stored_bfloat16",
    "stored_complex64"};
/* What the texts define and must not find defined. */
static const char *const unbound[] = {
    "DTYPE", "IS_BOOL", "IS_INT", "IS_FLOAT", "IS_HALF", "IS_DOUBLE", "IS_COMPLEX", "IS_SIGNED", "BITS", "LOWEST",
    "HIGHEST", "REAL", "real_of", "nonzero", "to_i8", "to_i16", "to_u8", "to_u16", "HUGE_PART"};
static const char *const stored[] = {"bool",  "uint8", "uint16",  "uint32",  "uint64",  "int8",     "int16",
                                     "int32", "int64", "float16", "float32", "float64", "bfloat16", "complex64"};
/* OpenCL's types of the stored bits, and how 64 bits become them. */
static const char *const types[] = {"uchar", "uchar", "ushort", "uint",  "ulong",  "char",   "short",
                                    "int",   "long",  "ushort", "float", "double", "ushort", "float2"};

/* Text that grows; what does not fit is noticed at the end. */
struct text {
  char *data;
  size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...) {
  va_list arguments;
  size_t room = text->used < text->size ? text->size - text->used : 0;
  va_start(arguments, format);
  int n = vsnprintf(room ? text->data + text->used : NULL, room, format, arguments);
  va_end(arguments);
  if (n > 0) text->used += (size_t)n;
}

static void put_prelude(struct text *text, uint32_t dtype) {
  for (size_t i = 0; i < sizeof unbound / sizeof *unbound; i++) put(text, "#undef %s\n", unbound[i]);
  put(text, "#define DTYPE %u\n", dtype);
  for (size_t i = 0; i < sizeof bound / sizeof *bound; i++) {
    put(text, "#undef %s\n", bound[i]);
    /* Of the integers these are macros of cast.cl. */
    bool macro = strncmp(bound[i], "to_", 3) == 0 && !is_real(dtype) && dtype != UM_DTYPE_COMPLEX64;
    if (!macro) put(text, "#define %s %s_%u\n", bound[i], bound[i], dtype);
  }
}

/* A program as it is checked: the dtype of every value. */
struct checked {
  const um_program *program;
  uint32_t dtypes[MAX_VALUES];
  uint32_t constants; /* the number of the first constant; instructions follow */
  uint32_t first;
  uint32_t values;
};

/* A constant's bits in the walk, as the stored type. */
static void put_constant(struct text *text, uint32_t dtype, uint32_t i) {
  switch (dtype) {
    case UM_DTYPE_FLOAT32: put(text, "as_float((uint)w.constants[%u])", i); break;
    case UM_DTYPE_FLOAT64: put(text, "as_double(w.constants[%u])", i); break;
    case UM_DTYPE_COMPLEX64: put(text, "as_float2(w.constants[%u])", i); break;
    default: put(text, "(%s)w.constants[%u]", types[dtype], i);
  }
}

static void put_instruction(struct text *text, const struct checked *checked, uint32_t i) {
  const um_instruction *step = &checked->program->instructions[i];
  uint32_t from = checked->dtypes[step->a], to = checked->dtypes[checked->first + i];
  put(text, "  A_%u v%u = ", to, checked->first + i);
  switch (step->family) {
    case UM_FAMILY_SELECT:
      put(text, "v%u ? v%u : v%u;\n", step->a, step->b, step->c);
      return;
    case UM_FAMILY_CAST:
      if (from == to) put(text, "v%u;\n", step->a);
      else put(text, "up_%u(stored_%s_%u(v%u));\n", to, stored[to], from, step->a);
      return;
    default:
      break;
  }
  bool binary = step->family == UM_FAMILY_BINARY;
  enum rule rule = elementwise_rule(binary, from, step->op);
  static const char *const names[] = {
      [RULE_VALUE] = "value", [RULE_TEST] = "test", [RULE_PART] = "part_value", [RULE_NONE] = ""};
  put(text, "up_%u(down_%u(%s_%s_%u(%uu, v%u", to, to, binary ? "binary" : "unary", names[rule], from, step->op,
      step->a);
  if (binary) put(text, ", v%u", step->b);
  put(text, ")));\n");
}

/* The kernel: inputs and constants read, instructions, outputs written. */
static void put_kernel(struct text *text, const struct checked *checked) {
  const um_program *p = checked->program;
  uint32_t tensors = p->n_inputs + p->n_outputs;
  put(text, "#define FUSED_TENSORS %d\n#define FUSED_AXES %d\n#define FUSED_CONSTANTS %d\n%s", FUSED_TENSORS,
      FUSED_AXES, FUSED_CONSTANTS, walk_text);
  put(text, "KERNEL void fused(");
  for (uint32_t k = 0; k < tensors; k++) {
    bool in = k < p->n_inputs;
    uint32_t dtype = checked->dtypes[in ? k : p->outputs[k - p->n_inputs]];
    put(text, "__global %s%s *p%u, ", in ? "const " : "", types[dtype], k);
  }
  put(text, "const Walk w) {\n  ulong i = get_global_id(0);\n  if (i >= w.n) return;\n  long at[%u];\n", tensors);
  put(text, "  walk_to(&w, i, %u, at);\n", tensors);
  for (uint32_t k = 0; k < p->n_inputs; k++) {
    put(text, "  A_%u v%u = up_%u(p%u[at[%u]]);\n", checked->dtypes[k], k, checked->dtypes[k], k, k);
  }
  for (uint32_t k = 0; k < p->n_constants; k++) {
    uint32_t value = checked->constants + k, dtype = checked->dtypes[value];
    put(text, "  A_%u v%u = up_%u(", dtype, value, dtype);
    put_constant(text, dtype, k);
    put(text, ");\n");
  }
  for (uint32_t i = 0; i < p->n_instructions; i++) put_instruction(text, checked, i);
  for (uint32_t k = 0; k < p->n_outputs; k++) {
    uint32_t value = p->outputs[k];
    put(text, "  p%u[at[%u]] = down_%u(v%u);\n", p->n_inputs + k, p->n_inputs + k, checked->dtypes[value], value);
  }
  put(text, "}\n");
}

static um_status compile(struct device *device, const struct checked *checked, struct kernel **kernel,
                         um_error **error) {
  enum { ROOM = 1 << 16, TEXTS = 4 + 5 * UM_DTYPE_COUNT };
  const char *texts[TEXTS];
  uint32_t seen = 0, n = texts_of_all(texts, 0);
  struct text text = {malloc(ROOM), ROOM, 0};
  if (!text.data) return fail(error, UM_OUT_OF_MEMORY, "no memory for a program's source");
  for (uint32_t v = 0; v < checked->values; v++) {
    uint32_t dtype = checked->dtypes[v];
    if (seen >> dtype & 1) continue;
    seen |= 1u << dtype;
    size_t start = text.used;
    put_prelude(&text, dtype);
    text.used++; /* the NUL ends this piece */
    if (text.used < ROOM) n = texts_of_dtype(texts, n, text.data + start, dtype);
  }
  size_t start = text.used;
  for (size_t i = 0; i < sizeof bound / sizeof *bound; i++) put(&text, "#undef %s\n", bound[i]);
  put_kernel(&text, checked);
  um_status status = UM_UNSUPPORTED;
  if (text.used < ROOM) {
    texts[n++] = text.data + start;
    status = kernel_of_text(device, texts, n, "fused", kernel, error);
  }
  free(text.data);
  return status;
}

/* ---- plans ----------------------------------------------------------------------------------------------------- */

/* Checks a program and finds the dtype of every value; false if this backend does not take it. */
static bool check(const um_program *p, const struct desc *inputs, struct checked *checked) {
  uint32_t n = 0;
  if (p->n_inputs == 0 || p->n_outputs == 0 || (uint64_t)p->n_inputs + p->n_outputs > FUSED_TENSORS ||
      p->n_constants > FUSED_CONSTANTS || p->n_instructions > FUSED_INSTRUCTIONS) {
    return false;
  }
  checked->program = p;
  for (uint32_t i = 0; i < p->n_inputs; i++) checked->dtypes[n++] = inputs[i].dtype;
  checked->constants = n;
  for (uint32_t i = 0; i < p->n_constants; i++) {
    uint32_t dtype = dtype_of(p->constants[i]);
    if (dtype == UM_DTYPE_COUNT) return false;
    checked->dtypes[n++] = dtype;
  }
  checked->first = n;
  for (uint32_t i = 0; i < p->n_instructions; i++) {
    const um_instruction *step = &p->instructions[i];
    uint32_t to = dtype_of(step->dtype);
    bool binary = step->family == UM_FAMILY_BINARY, select = step->family == UM_FAMILY_SELECT;
    if (to == UM_DTYPE_COUNT || step->a >= n || ((binary || select) && step->b >= n) || (select && step->c >= n)) {
      return false;
    }
    uint32_t a = checked->dtypes[step->a];
    if (select) {
      if (a != UM_DTYPE_BOOL || checked->dtypes[step->b] != to || checked->dtypes[step->c] != to) return false;
    } else if (step->family == UM_FAMILY_UNARY || binary) {
      enum rule rule = elementwise_rule(binary, a, step->op);
      uint32_t given = rule == RULE_TEST ? UM_DTYPE_BOOL : rule == RULE_PART ? UM_DTYPE_FLOAT32 : a;
      if (rule == RULE_NONE || to != given || (binary && checked->dtypes[step->b] != a)) return false;
    } else if (step->family != UM_FAMILY_CAST) {
      return false;
    }
    checked->dtypes[n++] = to;
  }
  checked->values = n;
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    if (p->outputs[i] >= n) return false;
  }
  return true;
}

/* Workspace of the epilogue in bytes, up to its operand. */
static uint64_t reduction_bytes(const struct plan *plan, const struct view *value, const struct view *out) {
  uint64_t bytes = plan->fold->workspace(plan->fold, value, out);
  return (bytes + 63) / 64 * 64;
}

/* Output 0 before it is reduced: row-major, in the workspace. */
static struct view operand(const struct plan *plan, const struct view *inputs, const struct view *out, cl_mem memory,
                           int64_t *strides) {
  struct view value = {.memory = memory,
                       .dtype = plan->fold->dtypes[0],
                       .ndim = inputs[0].ndim,
                       .shape = inputs[0].shape,
                       .strides = strides};
  int64_t step = 1;
  for (int i = value.ndim - 1; i >= 0; i--) {
    strides[i] = step;
    step *= value.shape[i];
  }
  value.offset = (int64_t)(reduction_bytes(plan, &value, out) / dtype_size(value.dtype));
  return value;
}

static uint64_t workspace(const struct plan *plan, const struct view *inputs, const struct view *outputs) {
  int64_t strides[UM_MAX_NDIM];
  if (!plan->fold) return 0;
  struct view value = operand(plan, inputs, outputs, NULL, strides);
  return ((uint64_t)value.offset + view_size(&value)) * dtype_size(value.dtype);
}

static um_status run(struct job *job) {
  const struct plan *plan = job->plan;
  const struct view *shaped = &job->inputs[0];
  uint32_t tensors = plan->n_inputs + plan->n_outputs;
  struct view views[FUSED_TENSORS];
  struct argument arguments[FUSED_TENSORS + 1];
  int64_t strides[UM_MAX_NDIM];
  struct walk walk;
  memset(&walk, 0, sizeof walk);
  memcpy(views, job->inputs, plan->n_inputs * sizeof *views);
  memcpy(views + plan->n_inputs, job->outputs, plan->n_outputs * sizeof *views);
  if (job->n_scalars != plan->code) return fail(job->error, UM_INVALID, "a program of %u constants", plan->code);
  for (uint32_t i = 0; i < plan->code; i++) walk.constants[i] = job->scalars[i][0];
  if (plan->fold) views[plan->n_inputs] = operand(plan, job->inputs, job->outputs, job->workspace, strides);
  /* Axes that lie together for all tensors are joined. */
  walk.n = 1;
  for (int d = 0; d < shaped->ndim; d++) {
    uint64_t size = (uint64_t)shaped->shape[d];
    if (size == 1) continue;
    bool joins = walk.axes > 0;
    for (uint32_t k = 0; k < tensors && joins; k++) {
      joins = walk.stride[k][walk.axes - 1] == views[k].strides[d] * (int64_t)size;
    }
    if (!joins && walk.axes == FUSED_AXES) return fail_axes(job->error);
    cl_ulong to = joins ? walk.axes - 1 : walk.axes++;
    walk.size[to] = joins ? walk.size[to] * size : size;
    for (uint32_t k = 0; k < tensors; k++) walk.stride[k][to] = views[k].strides[d];
    walk.n *= size;
  }
  for (uint32_t k = 0; k < tensors; k++) {
    walk.offset[k] = views[k].offset;
    arguments[k] = ARG(views[k].memory);
  }
  arguments[tensors] = ARG(walk);
  um_status status = launch_1d(job->queue, plan->kernels[0], walk.n, arguments, tensors + 1, job->error);
  if (status != UM_OK || !plan->fold) return status;
  struct job fold = *job;
  fold.plan = plan->fold;
  fold.inputs = &views[plan->n_inputs];
  return plan->fold->run(&fold);
}

/* The plan of the epilogue. */
static um_status prepare_fold(struct device *device, const um_program *program, uint32_t dtype,
                              const struct desc *out, struct plan **plan, um_error **error) {
  um_reduce_attrs attributes = {sizeof attributes, program->reduce, program->axes};
  struct desc value = {dtype, out->ndim, true};
  struct request request = {device, UM_OP_REDUCE, &attributes, &value, 1, out, 1};
  *plan = calloc(1, sizeof **plan);
  if (!*plan) return fail(error, UM_OUT_OF_MEMORY, "no memory for a plan");
  (*plan)->device = device;
  (*plan)->op = UM_OP_REDUCE;
  (*plan)->n_inputs = (*plan)->n_outputs = 1;
  (*plan)->dtypes[0] = dtype;
  (*plan)->dtypes[1] = out->dtype;
  return prepare_reduce(&request, *plan, error);
}

static um_status prepare_fused(void *handle, const um_program *given, const um_tensor_desc *inputs,
                               const um_tensor_desc *outputs, void **out, um_error **error) {
  struct device *device = handle;
  struct desc descs[FUSED_TENSORS];
  struct checked checked;
  um_program program;
  if (forked()) return fail_forked(error);
  if (!um_read_sized(&program, sizeof program, given)) return fail(error, UM_INVALID, "there is no program");
  uint32_t n_in = program.n_inputs, n = n_in + program.n_outputs;
  if (n_in > FUSED_TENSORS || n > FUSED_TENSORS) return fail(error, UM_UNSUPPORTED, "too many tensors");
  for (uint32_t i = 0; i < n; i++) {
    const um_tensor_desc *one = i < n_in ? um_desc_at(inputs, i) : um_desc_at(outputs, i - n_in);
    descs[i] = (struct desc){dtype_of(one->dtype), one->ndim, one->layout == UM_LAYOUT_CONTIGUOUS};
    bool axes = one->ndim >= 0 && one->ndim <= (descs[i].contiguous ? UM_MAX_NDIM : FUSED_AXES);
    if (descs[i].dtype == UM_DTYPE_COUNT || !axes || (i > 0 && one->ndim != descs[0].ndim)) {
      return fail(error, UM_UNSUPPORTED, "a dtype or rank is not for programs");
    }
    if (descs[i].dtype == UM_DTYPE_FLOAT64 && !device->fp64) return fail(error, UM_UNSUPPORTED, "no float64");
  }
  if (!check(&program, descs, &checked)) return fail(error, UM_UNSUPPORTED, "the program is not for this backend");
  struct plan *plan = calloc(1, sizeof *plan);
  if (!plan) return fail(error, UM_OUT_OF_MEMORY, "no memory for a plan");
  plan->device = device;
  plan->op = UM_OP_COUNT;
  plan->code = program.n_constants;
  plan->n_inputs = n_in;
  plan->n_outputs = program.n_outputs;
  plan->run = run;
  plan->workspace = workspace;
  um_status status = UM_OK;
  for (uint32_t i = 0; i < n; i++) {
    plan->dtypes[i] = descs[i].dtype;
    bool reduced = i == n_in && program.reduce != UM_NO_REDUCTION;
    uint32_t value = i < n_in ? descs[i].dtype : checked.dtypes[program.outputs[i - n_in]];
    if (reduced) status = prepare_fold(device, &program, value, &descs[i], &plan->fold, error);
    else if (value != descs[i].dtype) status = fail(error, UM_UNSUPPORTED, "an output's dtype does not fit");
    if (status != UM_OK) break;
  }
  if (status == UM_OK) status = compile(device, &checked, &plan->kernels[0], error);
  if (status != UM_OK) {
    plan_release(device, plan);
    return status;
  }
  *out = plan;
  return UM_OK;
}

bool fuses(const struct found *found) {
  return found->type != CL_DEVICE_TYPE_CPU || getenv("ULTRAMARINE_OPENCL_FUSE") != NULL;
}

const um_fused_interface fused_interface = {.size = sizeof(um_fused_interface), .prepare = prepare_fused};
