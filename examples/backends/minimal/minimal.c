/* A backend in one file: what docs/write-a-backend.md walks through.
 *
 * Two devices whose memory is the program's own and whose work is done when a call returns. It computes with
 * float32, int32 and bool, moves elements of every dtype, and refuses the rest: the host does that another way.
 *
 *   cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -I ../../../crates/ultramarine-abi/include
 *      minimal.c -lm -o libultramarine-minimal.so */
#include <math.h>

#include <ultramarine/helper.h>

UM_DEFINE_BACKEND("minimal", "", "0.1.0", kDLExtDev);

#define DEVICES 2
#define ALIGNMENT 256

static const um_host_table *host; /* set by init */

/* ---- elements ----------------------------------------------------------------------------------------------- */

/* One element of any dtype; the computing below uses the three named ones. */
typedef union value {
  uint64_t bits;
  float f;
  int32_t i;
  uint8_t b; /* 0 or 1 */
} value;

static value load(const char *from, size_t bytes) {
  value v = {0};
  memcpy(&v, from, bytes); /* the number's bits come first: little-endian machines only */
  return v;
}

static int same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

/* The member of `value` that a dtype is computed in; x: it is only moved. */
static char kind_of(DLDataType t) {
  if (t.code == kDLBool && t.bits == 8) return 'b';
  if (t.code == kDLInt && t.bits == 32) return 'i';
  return t.code == kDLFloat && t.bits == 32 ? 'f' : 'x';
}

/* ---- numbers: as schema.h says them -------------------------------------------------------------------------- */

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
static float erf_inverse(float x) {
  if (!(fabsf(x) < 1)) return fabsf(x) == 1 ? copysignf(INFINITY, x) : NAN;
  double l = log1p(-(double)x * x), h = 4.3307467508 + l / 2; /* Winitzki's guess, then Halley's steps */
  double y = copysign(sqrt(sqrt(h * h - l / 0.147) - h), x);
  for (int step = 0; step < 3; step++) {
    double u = (erf(y) - x) * 0.886226925452758 * exp(y * y);
    y -= u / (1 + y * u);
  }
  return (float)y;
}
static int32_t truncated(float x) { /* what does not fit is the smallest integer */
  return x > -2147483904.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}

/* A function of one dtype takes its operands from v[0] and v[1], leaves its result in v[0] and returns the member
 * of `value` that it filled, or 0 when it has no such code. */
typedef char (*function)(uint32_t code, value *v);

#define CASE(code, member, expression) case code: v->member = (expression); return #member[0];
#define U(code, member, expression) CASE(UM_UNARY_##code, member, expression)
#define B(code, member, expression) CASE(UM_BINARY_##code, member, expression)
#define WRAP(expression) (int32_t)(expression) /* of unsigned operands, whose overflow is defined */
#define COMPARISONS \
  B(EQUAL, b, x == y) B(NOT_EQUAL, b, x != y) B(LESS, b, x < y) B(LESS_EQUAL, b, x <= y) B(GREATER, b, x > y) \
  B(GREATER_EQUAL, b, x >= y) B(EQUAL_NAN, b, x == y || (x != x && y != y)) \
  B(LOGICAL_AND, b, x != 0 && y != 0) B(LOGICAL_OR, b, x != 0 || y != 0)

static char unary_float32(uint32_t code, value *v) {
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
    U(ARCTANH, f, (float)atanh(d)) U(ERF, f, (float)erf(d)) U(ERFINV, f, erf_inverse(x))
    U(SIGMOID, f, (float)(1 / (1 + exp(-d)))) U(FLOOR, f, floorf(x)) U(CEIL, f, ceilf(x)) U(ROUND, f, rintf(x))
    U(TRUNC, f, truncf(x)) U(CONJUGATE, f, x) U(REAL, f, x) U(IMAG, f, 0) U(LOGICAL_NOT, b, x == 0)
    U(ISNAN, b, x != x) U(ISINF, b, fabsf(x) == INFINITY) U(ISFINITE, b, fabsf(x) < INFINITY)
    default: return 0;
  }
}

static char unary_int32(uint32_t code, value *v) {
  const int32_t x = v[0].i;
  const uint32_t u = (uint32_t)x;
  switch (code) {
    U(ABS, i, WRAP(x < 0 ? 0 - u : u)) U(NEGATIVE, i, WRAP(0 - u)) U(SIGN, i, (x > 0) - (x < 0))
    U(SQUARE, i, WRAP(u * u)) U(FLOOR, i, x) U(CEIL, i, x) U(ROUND, i, x) U(TRUNC, i, x)
    U(BITWISE_INVERT, i, ~x) U(LOGICAL_NOT, b, x == 0)
    default: return 0;
  }
}

static char unary_bool(uint32_t code, value *v) {
  switch (code) {
    U(LOGICAL_NOT, b, !v->b) U(BITWISE_INVERT, b, !v->b)
    default: return 0;
  }
}

static char binary_float32(uint32_t code, value *v) {
  const float x = v[0].f, y = v[1].f;
  switch (code) {
    COMPARISONS
    B(ADD, f, x + y) B(SUBTRACT, f, x - y) B(MULTIPLY, f, x * y) B(DIVIDE, f, x / y)
    B(FLOOR_DIVIDE, f, floorf(x / y)) B(REMAINDER, f, remainder_of(x, y))
    B(POWER, f, (float)pow((double)x, (double)y)) B(ARCTAN2, f, (float)atan2((double)x, (double)y))
    B(MAXIMUM, f, x > y || x != x ? x : y) B(MINIMUM, f, x < y || x != x ? x : y) B(LOGADDEXP, f, log_add(x, y))
    default: return 0;
  }
}

static char binary_int32(uint32_t code, value *v) {
  const int32_t x = v[0].i, y = v[1].i;
  const uint32_t a = (uint32_t)x, b = (uint32_t)y;
  switch (code) {
    COMPARISONS
    B(ADD, i, WRAP(a + b)) B(SUBTRACT, i, WRAP(a - b)) B(MULTIPLY, i, WRAP(a * b))
    B(MAXIMUM, i, x > y ? x : y) B(MINIMUM, i, x < y ? x : y) B(BITWISE_AND, i, x & y)
    B(BITWISE_OR, i, x | y) B(BITWISE_XOR, i, x ^ y)
    default: return 0;
  }
}

static char binary_bool(uint32_t code, value *v) {
  const uint8_t x = v[0].b, y = v[1].b;
  switch (code) {
    COMPARISONS
    B(ADD, b, x | y) B(MULTIPLY, b, x & y) B(MAXIMUM, b, x | y) B(MINIMUM, b, x & y)
    B(BITWISE_AND, b, x & y) B(BITWISE_OR, b, x | y) B(BITWISE_XOR, b, x ^ y)
    default: return 0;
  }
}

/* From one of the three dtypes to another, or anything to itself. */
static value convert(value v, char from, char to) {
  value out = {0};
  if (from == to) return v;
  if (to == 'b') out.b = from == 'f' ? v.f != 0 : v.i != 0;
  if (to == 'i') out.i = from == 'f' ? truncated(v.f) : v.b;
  if (to == 'f') out.f = from == 'i' ? (float)v.i : (float)v.b;
  return out;
}

/* ---- running ------------------------------------------------------------------------------------------------ */

/* What `prepare` decides once, for `submit` to run with tensors of any size. */
typedef struct plan plan;
struct plan {
  void (*run)(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]); /* t: inputs, then the output */
  uint32_t n_inputs, n_scalars;
  uint32_t code;     /* the attribute of the op */
  uint64_t axes;     /* of a reduction */
  function compute;  /* NULL: elements are moved or converted */
  char kind[4];      /* of the inputs and the output: f, i, b, or x of what is only moved */
  uint32_t bytes[4]; /* of an element of each */
};

static void run_arange(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  double start, step;
  memcpy(&start, scalars[0], sizeof start);
  memcpy(&step, scalars[1], sizeof step);
  for (int64_t i = 0; i < t[0]->dl.shape[0]; i++) {
    value v = {0};
    if (p->kind[0] == 'f') v.f = (float)(start + (double)i * step);
    else v.bits = scalars[0][0] + (uint64_t)i * scalars[1][0];
    memcpy((char *)um_data(t[0]) + i * t[0]->dl.strides[0] * 4, &v, 4);
  }
}

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
      else v[0] = convert(v[0], p->kind[0], p->kind[1]);
      memcpy(r.data[out] + i * r.step[out], v, p->bytes[out]);
    }
}

/* Folds the elements along the reduced axes, in order; float32 sums and products in double. */
static value fold(const plan *p, um_rows *r) {
  const int all = p->code == UM_REDUCE_ALL, any = p->code == UM_REDUCE_ANY, product = p->code == UM_REDUCE_PROD;
  value v[2] = {load(r->data[0], p->bytes[0])};
  double wide = product;
  uint32_t whole = (uint32_t)product;
  int truth = all;
  while (um_rows_next(r))
    for (int64_t i = 0; i < r->length; i++) {
      v[1] = load(r->data[0] + i * r->step[0], p->bytes[0]);
      if (p->compute) p->compute(p->code == UM_REDUCE_MIN ? UM_BINARY_MINIMUM : UM_BINARY_MAXIMUM, v);
      else if (all) truth &= convert(v[1], p->kind[0], 'b').b;
      else if (any) truth |= convert(v[1], p->kind[0], 'b').b;
      else if (p->kind[0] == 'f') wide = product ? wide * (double)v[1].f : wide + (double)v[1].f;
      else whole = product ? whole * (uint32_t)v[1].i : whole + (uint32_t)v[1].i;
    }
  if (all || any) v[0].b = (uint8_t)truth;
  else if (!p->compute && p->kind[0] == 'f') v[0].f = (float)wide;
  else if (!p->compute) v[0].i = (int32_t)whole;
  return v[0];
}

static void run_reduce(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  const DLTensor *in = &t[0]->dl, *out = &t[1]->dl;
  int64_t reduced[UM_MAX_NDIM];
  um_rows kept, inner;
  (void)scalars;
  for (int32_t i = 0; i < in->ndim; i++) reduced[i] = p->axes >> i & 1 ? in->shape[i] : 1;
  um_rows_start(&kept, out->ndim, out->shape); /* reduced axes have size 1 there */
  um_rows_add_strided(&kept, um_data(t[0]), in->ndim, out->shape, in->strides, p->bytes[0]);
  um_rows_add(&kept, t[1]);
  while (um_rows_next(&kept))
    for (int64_t i = 0; i < kept.length; i++) {
      um_rows_start(&inner, in->ndim, reduced);
      um_rows_add_strided(&inner, kept.data[0] + i * kept.step[0], in->ndim, reduced, in->strides, p->bytes[0]);
      const value v = fold(p, &inner);
      memcpy(kept.data[1] + i * kept.step[1], &v, p->bytes[1]);
    }
}

/* (..., m, k) by (..., k, n), all row-major, as `prepare` has insisted. */
static void run_matmul(const plan *p, const um_tensor *const *t, const uint64_t (*scalars)[2]) {
  const int32_t d = t[0]->dl.ndim;
  const int64_t *shape = t[0]->dl.shape, n = t[1]->dl.shape[d - 1], m = shape[d - 2], k = shape[d - 1];
  const float *a = um_data(t[0]), *b = um_data(t[1]);
  float *c = um_data(t[2]);
  int64_t batch = 1;
  (void)p, (void)scalars;
  for (int32_t i = 0; i < d - 2; i++) batch *= shape[i];
  memset(c, 0, (size_t)(batch * m * n) * sizeof *c);
  for (; batch > 0; batch--, b += k * n)
    for (int64_t row = 0; row < m; row++, a += k, c += n)
      for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) c[j] += a[i] * b[i * n + j];
}

/* ---- plans and commands ------------------------------------------------------------------------------------- */

/* Fills the plan in, or says why there is none. Nothing here depends on sizes: there are none. */
static um_status decide(plan *p, uint32_t op, const void *attributes, const um_tensor_desc *in, uint32_t n,
                        const um_tensor_desc *out) {
  um_reduce_attrs attrs = {0}; /* those of UNARY and BINARY are its beginning */
  const uint32_t expected[] = {1, 0, 0, 1, 2, 3, 1, 0, 0, 2}; /* inputs of the ops up to MATMUL */
  const char kind = p->kind[0], to = p->kind[n]; /* of the first input, if any; of the output */
  value probe[3] = {{0}};
  um_status status;
  if (op > UM_OP_MATMUL || n != expected[op]) return UM_UNSUPPORTED;
  switch (op) {
    case UM_OP_FILL:
      p->run = run_elements, p->n_scalars = 1;
      return UM_OK;
    case UM_OP_ARANGE:
      p->run = run_arange, p->n_scalars = 2;
      return out->ndim == 1 && (to == 'f' || to == 'i') ? UM_OK : UM_UNSUPPORTED;
    case UM_OP_COPY:
      p->run = run_elements; /* any dtype to itself; the three to each other */
      return same(in->dtype, out->dtype) || (kind != 'x' && to != 'x') ? UM_OK : UM_UNSUPPORTED;
    case UM_OP_SELECT:
      p->run = run_elements;
      if (kind != 'b' || !same(um_desc_at(in, 1)->dtype, out->dtype)) return UM_UNSUPPORTED;
      return same(um_desc_at(in, 2)->dtype, out->dtype) ? UM_OK : UM_UNSUPPORTED;
    case UM_OP_UNARY:
    case UM_OP_BINARY:
      status = um_read_attributes(&attrs, op == UM_OP_UNARY ? sizeof(um_unary_attrs) : sizeof(um_binary_attrs),
                                  attributes);
      p->run = run_elements, p->code = attrs.op;
      if (op == UM_OP_UNARY) p->compute = kind == 'f' ? unary_float32 : kind == 'i' ? unary_int32 : unary_bool;
      else p->compute = kind == 'f' ? binary_float32 : kind == 'i' ? binary_int32 : binary_bool;
      if (status != UM_OK || kind == 'x' || (n == 2 && kind != p->kind[1])) return UM_UNSUPPORTED;
      return p->compute(p->code, probe) == to ? UM_OK : UM_UNSUPPORTED; /* it has the code, and makes that dtype */
    case UM_OP_REDUCE:
      status = um_read_attributes(&attrs, sizeof attrs, attributes);
      p->run = run_reduce, p->code = attrs.op, p->axes = attrs.axes;
      if (status != UM_OK || kind == 'x') return UM_UNSUPPORTED;
      if (p->code == UM_REDUCE_ALL || p->code == UM_REDUCE_ANY) return to == 'b' ? UM_OK : UM_UNSUPPORTED;
      if (p->code == UM_REDUCE_MIN || p->code == UM_REDUCE_MAX)
        p->compute = kind == 'f' ? binary_float32 : kind == 'i' ? binary_int32 : binary_bool;
      else if (p->code > UM_REDUCE_PROD || kind == 'b') return UM_UNSUPPORTED;
      return kind == to ? UM_OK : UM_UNSUPPORTED;
    case UM_OP_MATMUL:
      p->run = run_matmul;
      if (kind != 'f' || p->kind[1] != 'f' || to != 'f' || out->layout != UM_LAYOUT_CONTIGUOUS) return UM_UNSUPPORTED;
      if (um_desc_at(in, 1)->layout != UM_LAYOUT_CONTIGUOUS) return UM_NEEDS_CONTIGUOUS;
      return in->layout == UM_LAYOUT_CONTIGUOUS ? UM_OK : UM_NEEDS_CONTIGUOUS;
    default: return UM_UNSUPPORTED;
  }
}

static um_status prepare(void *device, uint32_t op, uint32_t revision, const void *attributes,
                         const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                         uint32_t n_outputs, void **result, um_error **error) {
  plan p = {0};
  (void)device;
  if (revision != 1 || n_inputs > 3 || n_outputs != 1) return UM_UNSUPPORTED;
  p.n_inputs = n_inputs;
  for (uint32_t i = 0; i <= n_inputs; i++) {
    const um_tensor_desc *desc = i < n_inputs ? um_desc_at(inputs, i) : outputs;
    const DLDataType t = desc->dtype;
    p.kind[i] = kind_of(t), p.bytes[i] = um_dtype_size(t);
    if (um_dtype_index(t) < 0 || desc->ndim < 0 || desc->ndim > UM_MAX_NDIM) return UM_UNSUPPORTED;
  }
  const um_status status = decide(&p, op, attributes, inputs, n_inputs, outputs);
  if (status != UM_OK) return status; /* a refusal needs no words */
  if (!(*result = malloc(sizeof p))) return um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a plan");
  memcpy(*result, &p, sizeof p);
  return UM_OK;
}

static void plan_release(void *device, void *plan) {
  (void)device;
  free(plan);
}

static um_status submit(void *device, void *stream, const um_command *commands, uint32_t n, um_error **error) {
  (void)device, (void)stream;
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

/* ---- devices and memory ------------------------------------------------------------------------------------- */

/* A device is its number; its memory is the program's. */
static int devices[DEVICES] = {0, 1};

static um_device_identity identity(uint32_t index) {
  um_device_identity id = {0};
  id.size = sizeof id;
  id.known = UM_IDENTITY_UUID; /* made up here; a driver knows the real one */
  memcpy(id.uuid, "minimal device ", 15);
  id.uuid[15] = (uint8_t)index;
  snprintf(id.name, sizeof id.name, "Minimal %u", (unsigned)index);
  return id;
}

static uint32_t device_count(void *backend) {
  (void)backend;
  return DEVICES;
}

static um_status device_info(void *backend, uint32_t index, um_device_info *info, um_error **error) {
  um_device_info filled = {0};
  (void)backend;
  if (index >= DEVICES) return um_fail(host, error, UM_INVALID, "there are two devices");
  filled.size = sizeof filled;
  filled.synchronous = 1;
  filled.host_memory = 1;
  filled.dtypes_storage = UM_DTYPE_BIT(UM_DTYPE_COUNT) - 1;
  filled.dtypes_arithmetic = UM_DTYPE_BIT(UM_DTYPE_BOOL) | UM_DTYPE_BIT(UM_DTYPE_INT32) | UM_DTYPE_BIT(UM_DTYPE_FLOAT32);
  filled.dtypes_accumulate = UM_DTYPE_BIT(UM_DTYPE_FLOAT32);
  filled.flags = UM_DEVICE_DETERMINISTIC;
  filled.alignment = ALIGNMENT;
  filled.identity = identity(index);
  memcpy(filled.name, filled.identity.name, sizeof filled.name);
  um_write_sized(info, &filled, sizeof filled);
  return UM_OK;
}

static um_status device_open(void *backend, uint32_t index, void **device, um_error **error) {
  (void)backend;
  if (index >= DEVICES) return um_fail(host, error, UM_INVALID, "there are two devices");
  *device = &devices[index];
  return UM_OK;
}

static void device_close(void *device) { (void)device; }

/* A buffer's handle is its address: nothing else has to be known of it. */
static um_status buffer_alloc(void *device, uint64_t bytes, void **buffer, um_error **error) {
  const uint64_t rounded = bytes / ALIGNMENT * ALIGNMENT + ALIGNMENT;
  (void)device;
  *buffer = rounded > bytes && rounded <= SIZE_MAX ? aligned_alloc(ALIGNMENT, (size_t)rounded) : NULL;
  return *buffer ? UM_OK : um_fail(host, error, UM_OUT_OF_MEMORY, "no memory for a buffer");
}

static void buffer_free(void *device, void *buffer) {
  (void)device;
  free(buffer);
}

static void *buffer_host_pointer(void *device, void *buffer) {
  (void)device;
  return buffer;
}

static um_status copy_to_device(void *device, void *stream, void *buffer, uint64_t offset, const void *source,
                                uint64_t bytes, um_error **error) {
  (void)device, (void)stream, (void)error;
  memcpy((char *)buffer + offset, source, (size_t)bytes);
  return UM_OK;
}

static um_status copy_to_host(void *device, void *stream, void *buffer, uint64_t offset, void *target,
                              uint64_t bytes, um_error **error) {
  (void)device, (void)stream, (void)error;
  memcpy(target, (const char *)buffer + offset, (size_t)bytes);
  return UM_OK;
}

/* ---- entry points ------------------------------------------------------------------------------------------- */

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
  um_backend_table t = {0};
  (void)error;
  host = lent;
  t.size = sizeof t;
  t.abi_major = UM_ABI_MAJOR;
  t.abi_minor = UM_ABI_MINOR;
  t.name = "minimal";
  t.device_type = kDLExtDev;
  t.device_count = device_count;
  t.device_info = device_info;
  t.device_open = device_open;
  t.device_close = device_close;
  t.buffer_alloc = buffer_alloc;
  t.buffer_free = buffer_free;
  t.buffer_host_pointer = buffer_host_pointer;
  t.copy_to_device = copy_to_device;
  t.copy_to_host = copy_to_host;
  t.prepare = prepare;
  t.plan_release = plan_release;
  t.submit = submit;
  um_sync_functions(&t); /* streams and events */
  um_write_sized(table, &t, sizeof t);
  return UM_OK;
}
