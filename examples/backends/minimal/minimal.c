/* A backend in one file: docs/write-a-backend.md walks through it.
 *
 * Two devices in host memory, whose work is done when a call returns. They compute with float32, make bools and choose
 * by them, move elements of every dtype, and refuse the rest: the host does that another way. */
#include <math.h>

#include <ultramarine/helper.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* of functions whose parameters the contract gives */

UM_DEFINE_BACKEND("minimal", "", "0.1.0", kDLExtDev);

#define DEVICES 2
static const um_host_table *host; /* set by init */

/* ---- elements and functions --------------------------------------------------------------------------------- */

/* One element of any dtype, of which two are computed with. */
typedef union value {
  uint64_t bits;
  float f;
  uint8_t b; /* 0 or 1 */
} value;

static value load(const char *from, size_t bytes) {
  value v = {0};
  memcpy(&v, from, bytes); /* the number's bits come first: little-endian machines only */
  return v;
}

static int same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits; }
/* The member of `value` that a dtype is computed in; x: it is only moved. */
static char kind_of(DLDataType t) {
  if (t.code == kDLBool && t.bits == 8) return 'b';
  return t.code == kDLFloat && t.bits == 32 ? 'f' : 'x';
}

static float remainder_of(float x, float y) { /* has the sign of y, a zero too */
  float r = fmodf(x, y);
  if (r == 0) return copysignf(r, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
static float log_add(float x, float y) {
  if (isnan(x) || isnan(y)) return NAN;
  float high = x > y ? x : y, low = x > y ? y : x;
  return low == -INFINITY || high == INFINITY ? high : (float)(high + log1p(exp((double)low - high)));
}

/* A function takes its operands from v[0] and v[1], leaves its result in v[0] and returns the member of `value` that it
 * filled, or 0 when it has no such code. */
typedef char (*function)(uint32_t code, value *v);

#define CASE(code, member, expression) case code: v->member = (expression); return #member[0];
#define U(code, member, expression) CASE(UM_UNARY_##code, member, expression)
#define B(code, member, expression) CASE(UM_BINARY_##code, member, expression)

static char unary(uint32_t code, value *v) {
  const float x = v[0].f;
  const double d = x; /* what is computed in double and rounded once is right to the last bit, nearly always */
  switch (code) {
    U(ABS, f, fabsf(x)) U(NEGATIVE, f, -x) U(SIGN, f, (float)((x > 0) - (x < 0))) U(SQUARE, f, x * x)
    U(SQRT, f, sqrtf(x)) U(RSQRT, f, 1 / sqrtf(x)) U(RECIPROCAL, f, 1 / x)
    U(EXP, f, (float)exp(d)) U(EXPM1, f, (float)expm1(d)) U(LOG, f, (float)log(d)) U(LOG2, f, (float)log2(d))
    U(LOG10, f, (float)log10(d)) U(LOG1P, f, (float)log1p(d)) U(SIN, f, (float)sin(d)) U(COS, f, (float)cos(d))
    U(TAN, f, (float)tan(d)) U(ARCSIN, f, (float)asin(d)) U(ARCCOS, f, (float)acos(d))
    U(ARCTAN, f, (float)atan(d)) U(SINH, f, (float)sinh(d)) U(COSH, f, (float)cosh(d))
    U(TANH, f, (float)tanh(d)) U(ARCSINH, f, (float)asinh(d)) U(ARCCOSH, f, (float)acosh(d))
    U(ARCTANH, f, (float)atanh(d)) U(ERF, f, (float)erf(d)) U(SIGMOID, f, (float)(1 / (1 + exp(-d))))
    U(FLOOR, f, floorf(x)) U(CEIL, f, ceilf(x)) U(ROUND, f, rintf(x)) U(TRUNC, f, truncf(x))
    U(LOGICAL_NOT, b, x == 0) U(ISNAN, b, x != x) U(ISINF, b, fabsf(x) == INFINITY) U(ISFINITE, b, fabsf(x) < INFINITY)
    default: return 0;
  }
}

static char binary(uint32_t code, value *v) {
  const float x = v[0].f, y = v[1].f;
  switch (code) {
    B(ADD, f, x + y) B(SUBTRACT, f, x - y) B(MULTIPLY, f, x * y) B(DIVIDE, f, x / y)
    B(FLOOR_DIVIDE, f, floorf(x / y)) B(REMAINDER, f, remainder_of(x, y))
    B(POWER, f, (float)pow((double)x, (double)y)) B(ARCTAN2, f, (float)atan2((double)x, (double)y))
    B(MAXIMUM, f, x > y || x != x ? x : y) B(MINIMUM, f, x < y || x != x ? x : y) B(LOGADDEXP, f, log_add(x, y))
    B(EQUAL, b, x == y) B(NOT_EQUAL, b, x != y) B(LESS, b, x < y) B(LESS_EQUAL, b, x <= y) B(GREATER, b, x > y)
    B(GREATER_EQUAL, b, x >= y) B(EQUAL_NAN, b, x == y || (x != x && y != y))
    B(LOGICAL_AND, b, x != 0 && y != 0) B(LOGICAL_OR, b, x != 0 || y != 0)
    default: return 0;
  }
}

/* ---- running ------------------------------------------------------------------------------------------------ */

/* What `prepare` decides once, for `submit` to run with tensors of any size. */
typedef struct plan {
  void (*run)(const struct plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]); /* t: inputs, then the output */
  uint32_t n_inputs, n_scalars;
  uint32_t code;     /* the attribute of the op */
  uint64_t axes;     /* of a reduction */
  function compute;  /* NULL: elements are moved or converted */
  char kind[4];      /* of the inputs and the output: f, b, or x of what is only moved */
  uint32_t bytes[4]; /* of an element of each */
} plan;

/* FILL, COPY, UNARY, BINARY and SELECT: tensors of one shape and any strides, element by element. */
static void run_elements(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  const uint32_t out = p->n_inputs;
  um_rows r;
  um_rows_start(&r, t[out]->dl.ndim, t[out]->dl.shape);
  for (uint32_t k = 0; k <= out; k++) um_rows_add(&r, t[k]);
  while (um_rows_next(&r))
    for (int64_t i = 0; i < r.length; i++) {
      value v[3];
      for (uint32_t k = 0; k < out; k++) v[k] = load(r.data[k] + i * r.step[k], p->bytes[k]);
      if (out == 0) v[0].bits = scalars[0][0];
      else if (out == 3) v[0] = v[0].b ? v[1] : v[2];
      else if (p->compute) p->compute(p->code, v);
      else if (p->kind[0] == 'f' && p->kind[1] == 'b') v[0] = (value){.b = v[0].f != 0};
      else if (p->kind[0] == 'b' && p->kind[1] == 'f') v[0] = (value){.f = v[0].b};
      memcpy(r.data[out] + i * r.step[out], v, p->bytes[out]);
    }
}

/* Folds float32 along the reduced axes. Rows may be long: sums and products are made in double, and rounded once. */
static float fold(uint32_t code, um_rows *r) {
  value v[2] = {load(r->data[0], 4)};
  double sum = 0, product = 1;
  while (um_rows_next(r))
    for (int64_t i = 0; i < r->length; i++) {
      v[1] = load(r->data[0] + i * r->step[0], 4);
      if (code == UM_REDUCE_SUM) sum += (double)v[1].f;
      else if (code == UM_REDUCE_PROD) product *= (double)v[1].f;
      else binary(code == UM_REDUCE_MAX ? UM_BINARY_MAXIMUM : UM_BINARY_MINIMUM, v);
    }
  return code == UM_REDUCE_SUM ? (float)sum : code == UM_REDUCE_PROD ? (float)product : v[0].f;
}

static void run_reduce(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  const DLTensor *in = &t[0]->dl, *out = &t[1]->dl;
  int64_t reduced[UM_MAX_NDIM];
  um_rows kept, inner;
  for (int32_t i = 0; i < in->ndim; i++) reduced[i] = p->axes >> i & 1 ? in->shape[i] : 1;
  um_rows_start(&kept, out->ndim, out->shape); /* reduced axes have size 1 there */
  um_rows_add_strided(&kept, um_data(t[0]), in->ndim, out->shape, in->strides, 4);
  um_rows_add(&kept, t[1]);
  while (um_rows_next(&kept))
    for (int64_t i = 0; i < kept.length; i++) {
      um_rows_start(&inner, in->ndim, reduced);
      um_rows_add_strided(&inner, kept.data[0] + i * kept.step[0], in->ndim, reduced, in->strides, 4);
      *(float *)(void *)(kept.data[1] + i * kept.step[1]) = fold(p->code, &inner);
    }
}

/* (..., m, k) by (..., k, n), all row-major, as `prepare` has insisted. */
static void run_matmul(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  const int32_t d = t[0]->dl.ndim;
  const int64_t *shape = t[0]->dl.shape, n = t[1]->dl.shape[d - 1], m = shape[d - 2], k = shape[d - 1];
  const float *a = um_data(t[0]), *b = um_data(t[1]);
  float *c = um_data(t[2]);
  int64_t batch = 1;
  for (int32_t i = 0; i < d - 2; i++) batch *= shape[i];
  memset(c, 0, (size_t)(batch * m * n) * sizeof *c);
  for (; batch > 0; batch--, b += k * n)
    for (int64_t row = 0; row < m; row++, a += k, c += n)
      for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) c[j] += a[i] * b[i * n + j];
}

/* ---- plans and commands ------------------------------------------------------------------------------------- */

/* Fills the plan in, or says why there is none. Nothing here depends on sizes: there are none. */
static um_status decide(plan *p, uint32_t op, const um_reduce_attrs *attrs, const um_tensor_desc *in, uint32_t n,
                        const um_tensor_desc *out) {
  const char kind = p->kind[0], to = p->kind[n]; /* of the first input, if any; of the output */
  value probe[2] = {{0}};
  switch (op) {
    case UM_OP_FILL:
      p->run = run_elements, p->n_scalars = 1;
      return UM_OK;
    case UM_OP_COPY:
      p->run = run_elements; /* any dtype to itself; float32 and bool to each other */
      return same(in->dtype, out->dtype) || (kind != 'x' && to != 'x') ? UM_OK : UM_UNSUPPORTED;
    case UM_OP_SELECT:
      p->run = run_elements;
      if (kind != 'b' || !same(um_desc_at(in, 2)->dtype, out->dtype)) return UM_UNSUPPORTED;
      return same(um_desc_at(in, 1)->dtype, out->dtype) ? UM_OK : UM_UNSUPPORTED;
    case UM_OP_UNARY:
    case UM_OP_BINARY:
      p->run = run_elements, p->code = attrs->op, p->compute = op == UM_OP_UNARY ? unary : binary;
      if (kind != 'f' || (n == 2 && p->kind[1] != 'f')) return UM_UNSUPPORTED;
      return p->compute(p->code, probe) == to ? UM_OK : UM_UNSUPPORTED; /* it has the code, and makes that dtype */
    case UM_OP_REDUCE:
      p->run = run_reduce, p->code = attrs->op, p->axes = attrs->axes;
      if (kind != 'f' || to != 'f' || in->ndim != out->ndim) return UM_UNSUPPORTED;
      return attrs->op <= UM_REDUCE_MAX ? UM_OK : UM_UNSUPPORTED; /* sum, prod, min, max */
    case UM_OP_MATMUL:
      p->run = run_matmul; /* exact, which every precision allows */
      if (kind != 'f' || p->kind[1] != 'f' || to != 'f' || out->layout != UM_LAYOUT_CONTIGUOUS) return UM_UNSUPPORTED;
      if (um_desc_at(in, 1)->layout != UM_LAYOUT_CONTIGUOUS) return UM_NEEDS_CONTIGUOUS;
      return in->layout == UM_LAYOUT_CONTIGUOUS ? UM_OK : UM_NEEDS_CONTIGUOUS;
    default: return UM_UNSUPPORTED;
  }
}

/* The inputs of each op, and the bytes of its attributes; 0: an op that this backend lacks. */
static const struct { uint32_t inputs; size_t attributes; } ops[] = {
    [UM_OP_COPY] = {1, sizeof(um_no_attrs)},     [UM_OP_FILL] = {0, sizeof(um_no_attrs)},
    [UM_OP_UNARY] = {1, sizeof(um_unary_attrs)}, [UM_OP_BINARY] = {2, sizeof(um_binary_attrs)},
    [UM_OP_SELECT] = {3, sizeof(um_no_attrs)},   [UM_OP_REDUCE] = {1, sizeof(um_reduce_attrs)},
    [UM_OP_MATMUL] = {2, sizeof(um_precision_attrs)}};

static um_status prepare(void *device, uint32_t op, uint32_t revision, const void *attributes,
                         const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                         uint32_t n_outputs, void **result, um_error **error) {
  plan p = {0};
  um_reduce_attrs attrs = {0}; /* those of the other ops are its beginning: a code or nothing */
  if (revision != 1 || op > UM_OP_MATMUL || ops[op].attributes == 0) return UM_UNSUPPORTED;
  um_status status = um_check_arity(inputs, n_inputs, ops[op].inputs, outputs, n_outputs, 1);
  if (status == UM_OK) status = um_read_attributes(&attrs, ops[op].attributes, attributes);
  if (status != UM_OK) return status; /* a refusal needs no words */
  p.n_inputs = n_inputs;
  for (uint32_t i = 0; i <= n_inputs; i++) {
    const DLDataType t = (i < n_inputs ? um_desc_at(inputs, i) : outputs)->dtype;
    p.kind[i] = kind_of(t), p.bytes[i] = um_dtype_size(t);
  }
  status = decide(&p, op, &attrs, inputs, n_inputs, outputs);
  if (status != UM_OK) return status;
  if (!(*result = malloc(sizeof p))) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a plan");
  memcpy(*result, &p, sizeof p);
  return UM_OK;
}

static void plan_release(void *device, void *plan) { free(plan); }

static um_status submit(void *device, void *stream, const um_command *commands, uint32_t n, um_error **error) {
  for (uint32_t i = 0; i < n; i++) {
    const um_command *c = um_command_at(commands, i);
    const plan *p = c->plan;
    const um_tensor *t[4];
    if (c->n_inputs != p->n_inputs || c->n_outputs != 1 || c->n_scalars < p->n_scalars)
      return um_fail_command(host, error, i, um_fail(host, error, UM_INVALID, "a command that does not fit its plan"));
    for (uint32_t k = 0; k < c->n_inputs; k++) t[k] = um_input(c, k);
    t[c->n_inputs] = um_output(c, 0);
    p->run(p, t, c->scalars);
  }
  return UM_OK; /* all is done: the device says that it is synchronous */
}

/* ---- devices and entry points ------------------------------------------------------------------------------- */

static um_device_identity identity(uint32_t index) {
  um_device_identity id = {.size = sizeof id, .known = UM_IDENTITY_UUID, .uuid = "minimal device"};
  id.uuid[15] = (uint8_t)index; /* made up here; a driver knows the real one */
  snprintf(id.name, sizeof id.name, "Minimal %u", (unsigned)index);
  return id;
}

static uint32_t device_count(void *backend) { return DEVICES; }
static um_status device_info(void *backend, uint32_t index, um_device_info *info, um_error **error) {
  if (index >= DEVICES) return um_fail(host, error, UM_INVALID, "there are two devices");
  um_device_info filled = {.size = sizeof filled, .synchronous = 1, .host_memory = 1, .identity = identity(index)};
  filled.dtypes_storage = UM_DTYPE_BIT(UM_DTYPE_COUNT) - 1;
  filled.dtypes_arithmetic = UM_DTYPE_BIT(UM_DTYPE_FLOAT32);
  filled.dtypes_accumulate = UM_DTYPE_BIT(UM_DTYPE_FLOAT32);
  filled.flags = UM_DEVICE_DETERMINISTIC;
  filled.alignment = UM_HOST_MEMORY_ALIGNMENT;
  memcpy(filled.name, filled.identity.name, sizeof filled.name);
  um_write_sized(info, &filled, sizeof filled);
  return UM_OK;
}

static um_status device_open(void *backend, uint32_t index, void **device, um_error **error) {
  if (index >= DEVICES) return um_fail(host, error, UM_INVALID, "there are two devices");
  *device = (void *)(uintptr_t)(index + 1); /* a device is its number, and not NULL */
  return UM_OK;
}
static void device_close(void *device) {}

um_status ultramarine_backend_score(um_backend_score *score) {
  score->score = 1; /* whatever else serves such devices is better */
  score->device_count = DEVICES;
  for (uint32_t i = 0; i < DEVICES && i < score->device_capacity; i++) {
    const um_device_identity filled = identity(i);
    um_write_sized((char *)score->devices + (size_t)i * score->device_stride, &filled, sizeof filled);
  }
  return UM_OK;
}

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *table, um_error **error) {
  um_backend_table t = um_table("minimal", kDLExtDev);
  host = lent;
  t.device_count = device_count;
  t.device_info = device_info;
  t.device_open = device_open;
  t.device_close = device_close;
  t.prepare = prepare;
  t.plan_release = plan_release;
  t.submit = submit;
  um_host_memory_functions(&t); /* buffers and copies */
  um_sync_functions(&t);        /* streams and events */
  um_write_sized(table, &t, sizeof t);
  return UM_OK;
}
