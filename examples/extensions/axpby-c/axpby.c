/* axpby(x, y, alpha, beta) = alpha x + beta y, as an operation of Ultramarine's that is built outside of it: rules of a
 * primitive, the CPU's loops, kernels for devices, how it is made again from a file, and a function for Python. See
 * README.md. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ultramarine/extension_python.h>

#include "halves.h"
#include "kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_STREAMING 1
#else
#define HAS_STREAMING 0
#endif

#define NAME "axpby_c"
#define VERSION 1 /* another one when the attributes mean something else */

static const um_python_api *api;
static const um_extension_host *host;

/* ---- dtypes and errors -------------------------------------------------------------------------------------- */

typedef enum { F16, BF16, F32, F64, C64, OTHER } kind;

static kind kind_of(DLDataType dtype) {
  if (dtype.code == kDLFloat && dtype.bits == 16) return F16;
  if (dtype.code == kDLBfloat && dtype.bits == 16) return BF16;
  if (dtype.code == kDLFloat && dtype.bits == 32) return F32;
  if (dtype.code == kDLFloat && dtype.bits == 64) return F64;
  if (dtype.code == kDLComplex && dtype.bits == 64) return C64;
  return OTHER;
}

static const DLDataType float32 = {kDLFloat, 32, 1};

static um_status fail(um_error **error, um_status status, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if ((size_t)length >= sizeof text) length = sizeof text - 1;
  *error = host->error_new(host->host, status, text, (uint64_t)length);
  return status;
}

static um_status refuse(DLDataType dtype, um_error **error) {
  return fail(error, UM_INVALID,
              "[axpby] takes float16, bfloat16, float32, float64, complex64, and integers and bool as float32; not what DLPack "
              "calls type %d of %d bits.",
              (int)dtype.code, (int)dtype.bits);
}

/* ---- the CPU ------------------------------------------------------------------------------------------------ */

typedef struct {
  double alpha, beta;
} numbers;

static float as_is_f32(float value) { return value; }
static double as_is_f64(double value) { return value; }

/* `n` elements whose strides are in elements; with strides of 1 the compiler makes vector code. */
#define ROW(name, type, real, read, write)                                                                    \
  static void name(void *to, int64_t st, const void *x_, int64_t sx, const void *y_, int64_t sy, int64_t n,   \
                   const numbers *by) {                                                                       \
    type *out = (type *)to;                                                                                   \
    const type *x = (const type *)x_, *y = (const type *)y_;                                                  \
    const real alpha = (real)by->alpha, beta = (real)by->beta;                                                \
    if (st == 1 && sx == 1 && sy == 1) {                                                                      \
      for (int64_t i = 0; i < n; i++) out[i] = write(alpha * read(x[i]) + beta * read(y[i]));                 \
    } else {                                                                                                  \
      for (int64_t i = 0; i < n; i++) out[i * st] = write(alpha * read(x[i * sx]) + beta * read(y[i * sy]));  \
    }                                                                                                         \
  }
ROW(row_f16, uint16_t, float, read_f16, write_f16)
ROW(row_bf16, uint16_t, float, read_bf16, write_bf16)
ROW(row_f32, float, float, as_is_f32, as_is_f32)
ROW(row_f64, double, double, as_is_f64, as_is_f64)

typedef struct {
  float re, im;
} complex64;

static void row_c64(void *to, int64_t st, const void *x_, int64_t sx, const void *y_, int64_t sy, int64_t n,
                    const numbers *by) {
  if (st == 1 && sx == 1 && sy == 1) {
    row_f32(to, 1, x_, 1, y_, 1, 2 * n, by); /* the factors are real */
    return;
  }
  complex64 *out = (complex64 *)to;
  const complex64 *x = (const complex64 *)x_, *y = (const complex64 *)y_;
  const float alpha = (float)by->alpha, beta = (float)by->beta;
  for (int64_t i = 0; i < n; i++) {
    out[i * st].re = alpha * x[i * sx].re + beta * y[i * sy].re;
    out[i * st].im = alpha * x[i * sx].im + beta * y[i * sy].im;
  }
}

typedef void (*row)(void *, int64_t, const void *, int64_t, const void *, int64_t, int64_t, const numbers *);
static const row ROWS[] = {row_f16, row_bf16, row_f32, row_f64, row_c64};
static const int64_t BYTES[] = {2, 2, 4, 8, 8};

#define PIECE 65536             /* elements that a thread does at a time */
#define STREAMED (16 << 20)     /* bytes of outputs that will not be found in the cache anyway */

/* All that the loops need; axes are merged where no operand has a gap between them. */
typedef struct {
  row each;
  numbers by;
  int64_t bytes, elements;
  int32_t ndim;
  int64_t shape[UM_MAX_NDIM], strides[3][UM_MAX_NDIM]; /* of the output, x, y */
  char *data[3];
  int streamed;
} work;

#if HAS_STREAMING
/* Rows of unit strides, written past the caches: memory is not read before it is overwritten, and no other data leaves the
 * cache for it. float32, and complex64 as pairs of these, go straight there, others by way of a tile in the first cache. */
__attribute__((target("avx"))) static void stream_f32(float *to, const float *x, const float *y, int64_t n, const numbers *by) {
  const __m256 alpha = _mm256_set1_ps((float)by->alpha), beta = _mm256_set1_ps((float)by->beta);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) /* a line of the cache */
    for (int64_t j = i; j < i + 16; j += 8)
      _mm256_stream_ps(to + j, _mm256_add_ps(_mm256_mul_ps(alpha, _mm256_loadu_ps(x + j)),
                                             _mm256_mul_ps(beta, _mm256_loadu_ps(y + j))));
  row_f32(to + i, 1, x + i, 1, y + i, 1, n - i, by);
}

__attribute__((target("avx"))) static void stream_tile(char *to, const char *tile, size_t bytes) {
  size_t at = 0;
  for (; at + 32 <= bytes; at += 32)
    _mm256_stream_si256((__m256i *)(void *)(to + at), *(const __m256i *)(const void *)(tile + at));
  memcpy(to + at, tile + at, bytes - at);
}

static void row_streamed(const work *w, char *to, const char *x, const char *y, int64_t n) {
  if (w->each == row_f32 || w->each == row_c64) {
    stream_f32((float *)(void *)to, (const float *)(const void *)x, (const float *)(const void *)y, n * w->bytes / 4, &w->by);
    return;
  }
  _Alignas(32) char tile[4096];
  const int64_t most = (int64_t)sizeof tile / w->bytes;
  for (int64_t i = 0; i < n; i += most) {
    int64_t some = n - i < most ? n - i : most, at = i * w->bytes;
    w->each(tile, 1, x + at, 1, y + at, 1, some, &w->by);
    stream_tile(to + at, tile, (size_t)(some * w->bytes));
  }
}
#endif

/* The elements from `index` * PIECE on. */
static void piece(void *context, uint64_t index) {
  const work *w = (const work *)context;
  int64_t at = (int64_t)index * PIECE, last = w->ndim - 1, coordinates[UM_MAX_NDIM], rest = at;
  int64_t left = w->elements - at < PIECE ? w->elements - at : PIECE;
  char *data[3] = {w->data[0], w->data[1], w->data[2]};
  for (int64_t axis = last; axis >= 0; axis--) {
    coordinates[axis] = rest % w->shape[axis];
    rest /= w->shape[axis];
    for (int t = 0; t < 3; t++) data[t] += coordinates[axis] * w->strides[t][axis] * w->bytes;
  }
  while (left > 0) {
    int64_t to_end = w->shape[last] - coordinates[last], n = to_end < left ? to_end : left;
    const int64_t s[3] = {w->strides[0][last], w->strides[1][last], w->strides[2][last]};
#if HAS_STREAMING
    if (w->streamed && s[0] == 1 && s[1] == 1 && s[2] == 1 && (uintptr_t)data[0] % 32 == 0)
      row_streamed(w, data[0], data[1], data[2], n);
    else
#endif
      w->each(data[0], s[0], data[1], s[1], data[2], s[2], n, &w->by);
    left -= n;
    if (left == 0) break;
    /* To the next row: the last axis is done, those before it count on. */
    for (int t = 0; t < 3; t++) data[t] -= coordinates[last] * s[t] * w->bytes;
    coordinates[last] = 0;
    for (int64_t axis = last - 1; axis >= 0; axis--) {
      for (int t = 0; t < 3; t++) data[t] += w->strides[t][axis] * w->bytes;
      if (++coordinates[axis] < w->shape[axis]) break;
      for (int t = 0; t < 3; t++) data[t] -= w->shape[axis] * w->strides[t][axis] * w->bytes;
      coordinates[axis] = 0;
    }
  }
#if HAS_STREAMING
  if (w->streamed) _mm_sfence();
#endif
}

/* Copies shape and strides, without axes of one element, and with neighbours merged. */
static void lay_out(work *w, const um_view *const views[3]) {
  for (int32_t axis = 0; axis < views[0]->ndim; axis++) {
    int64_t size = views[0]->shape[axis];
    if (size == 1) continue;
    int merged = w->ndim > 0;
    for (int t = 0; t < 3 && merged; t++)
      merged = w->strides[t][w->ndim - 1] == views[t]->strides[axis] * size;
    if (!merged) w->shape[w->ndim++] = 1;
    w->shape[w->ndim - 1] *= size;
    for (int t = 0; t < 3; t++) w->strides[t][w->ndim - 1] = views[t]->strides[axis];
  }
  if (w->ndim == 0) {
    w->shape[w->ndim++] = 1;
    for (int t = 0; t < 3; t++) w->strides[t][0] = 1;
  }
}

static const um_view *input(const um_call *call, uint32_t i) {
  return (const um_view *)(const void *)((const char *)call->inputs + (size_t)i * call->view_stride);
}

/* Memory for the output: an operand's, if nobody else needs it and it has no gaps, else new memory. */
static um_status output(const um_call *call, um_view *view, int *taken, um_error **error) {
  view->size = sizeof *view;
  *taken = 0;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t both = UM_VIEW_MAY_TAKE | UM_VIEW_ROW_CONTIGUOUS;
    if ((input(call, i)->flags & both) != both) continue;
    um_status status = host->take(call->host_call, 0, i, view, error);
    *taken = status == UM_OK;
    if (status != UM_UNSUPPORTED || *error != NULL) return status;
  }
  return host->allocate(call->host_call, 0, NULL, view, error);
}

static um_status eval_cpu(void *context, const um_call *call, um_error **error) {
  um_view out;
  int taken;
  um_status status = output(call, &out, &taken, error);
  if (status != UM_OK || out.elements == 0) return status;
  const um_view *views[3] = {&out, input(call, 0), input(call, 1)};
  kind type = kind_of(out.dtype);
  work w = {.each = ROWS[type], .by = *(const numbers *)context, .bytes = BYTES[type], .elements = out.elements};
  lay_out(&w, views);
  for (int t = 0; t < 3; t++) w.data[t] = (char *)views[t]->data;
#if HAS_STREAMING
  w.streamed = !taken && w.elements * w.bytes >= STREAMED && __builtin_cpu_supports("avx");
#endif
  host->parallel_for(host->host, (uint64_t)((w.elements + PIECE - 1) / PIECE), piece, &w);
  return UM_OK;
}

/* ---- devices ------------------------------------------------------------------------------------------------ */

static int has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)) != NULL; at += length) {
    int begins = at == words || at[-1] == ' ', ends = at[length] == ' ' || at[length] == '\0';
    if (begins && ends) return 1;
  }
  return 0;
}

static um_status eval_gpu(void *context, const um_call *call, um_error **error) {
  const numbers *by = (const numbers *)context;
  um_view out;
  int taken;
  kind type = kind_of(call->outputs->dtype);
  uint64_t n = (uint64_t)call->outputs->elements;
  if (type == C64) type = F32, n *= 2; /* the factors are real */
  const kernel_source *source = NULL;
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS && source == NULL; i++)
    if (KERNELS[i].texts[type] != NULL && n <= KERNELS[i].most && has_word(call->languages, KERNELS[i].language))
      source = &KERNELS[i];
  if (source == NULL) return UM_UNSUPPORTED; /* another way is found */

  n = (n + source->packed[type] - 1) / source->packed[type];
  um_kernel_text text = {.size = sizeof text, .language = source->language, .source = source->texts[type], .entry = "axpby"};
  um_kernel *kernel;
  um_kernel_properties properties = {.size = sizeof properties};
  um_status status = host->kernel(call->host_call, &text, &kernel, error);
  if (status == UM_OK) status = host->kernel_properties(call->host_call, kernel, &properties, error);
  for (uint32_t i = 0; i < 2 && status == UM_OK; i++)
    if (!(input(call, i)->flags & UM_VIEW_ROW_CONTIGUOUS)) status = host->contiguous(call->host_call, i, NULL, error);
  if (status == UM_OK) status = output(call, &out, &taken, error);
  if (status != UM_OK || n == 0) return status;

  int wide = type == F64;
  um_binding bindings[6];
  memset(bindings, 0, sizeof bindings);
  for (int i = 0; i < 6; i++) bindings[i].size = sizeof *bindings;
  bindings[0].kind = UM_BIND_INPUT;
  bindings[1].kind = UM_BIND_INPUT, bindings[1].index = 1;
  bindings[2].kind = UM_BIND_OUTPUT;
  for (int i = 3; i < 6; i++) bindings[i].kind = UM_BIND_SCALAR;
  for (int i = 0; i < 2; i++) {
    double number = i == 0 ? by->alpha : by->beta;
    bindings[3 + i].dtype = wide ? (DLDataType){kDLFloat, 64, 1} : float32;
    if (wide) memcpy(bindings[3 + i].scalar, &number, sizeof number);
    else bindings[3 + i].scalar[0] = bits_of((float)number);
  }
  bindings[5].dtype = source->count;
  bindings[5].scalar[0] = n;
  uint32_t group = properties.max_group != 0 && properties.max_group < 256 ? properties.max_group : 256; /* WGSL's is in its text */
  uint64_t groups = (n + group - 1) / group; /* the kernel's threads go on if these are too few */
  um_dispatch dispatch = {.size = sizeof dispatch, .n_bindings = 6, .bindings = bindings, .binding_stride = sizeof *bindings,
                          .grid = {groups < 65535 ? (uint32_t)groups : 65535, 1, 1}, .group = {group, 1, 1}};
  return host->launch(call->host_call, kernel, &dispatch, error);
}

/* ---- the other rules ---------------------------------------------------------------------------------------- */

static um_status infer(void *context, const um_tensor_type *inputs, uint32_t n_inputs, um_tensor_type *outputs,
                       um_error **error) {
  (void)context;
  if (n_inputs != 2) return fail(error, UM_INVALID, "[axpby] takes 2 arrays, not %u.", (unsigned)n_inputs);
  const um_tensor_type *x = inputs, *y = (const um_tensor_type *)(const void *)((const char *)inputs + inputs->size);
  if (kind_of(x->dtype) == OTHER) return refuse(x->dtype, error);
  if (memcmp(&x->dtype, &y->dtype, sizeof x->dtype) != 0)
    return fail(error, UM_INVALID, "[axpby] x and y have different dtypes.");
  if (x->ndim != y->ndim || memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) != 0)
    return fail(error, UM_INVALID, "[axpby] x and y have different shapes.");
  outputs->ndim = x->ndim;
  outputs->dtype = x->dtype;
  memcpy(outputs->shape, x->shape, sizeof x->shape);
  return UM_OK;
}

/* Operations of Ultramarine's; all give one array. */
static um_status call_n(const char *name, um_array *const *inputs, uint32_t n, const um_attribute *attributes,
                        uint32_t n_attributes, um_array **result, um_error **error) {
  return host->operation(host->host, name, inputs, n, attributes, n_attributes, NULL, result, 1, error);
}

static um_status astype(um_array *array, DLDataType dtype, const um_place *place, um_array **result, um_error **error) {
  um_attribute to = {.size = sizeof to, .kind = UM_ATTRIBUTE_DTYPE, .name = "dtype", .dtype = dtype};
  return host->operation(host->host, "astype", &array, 1, &to, 1, place, result, 1, error);
}

/* factor * array, in the array's dtype. */
static um_status scaled(double factor, um_array *array, um_array **result, um_error **error) {
  um_tensor_type type = {.size = sizeof type};
  um_status status = host->array_type(host->host, array, &type);
  if (status != UM_OK) return status;
  uint64_t bits[2] = {0, 0};
  switch (kind_of(type.dtype)) {
    case F16: bits[0] = write_f16((float)factor); break;
    case BF16: bits[0] = write_bf16((float)factor); break;
    case F64: memcpy(bits, &factor, sizeof factor); break;
    default: bits[0] = bits_of((float)factor); /* of a complex number, the real part */
  }
  type.ndim = 0;
  um_array *both[2] = {NULL, array};
  status = host->array_full(host->host, &type, bits, &both[0], error);
  if (status == UM_OK) status = call_n("multiply", both, 2, NULL, 0, result, error);
  host->array_release(host->host, both[0]);
  return status;
}

/* alpha x + beta y by other operations, with one rounding, as the loops have it. */
static um_status compose(void *context, um_array *const *inputs, uint32_t n_inputs, um_array **outputs, um_error **error) {
  const numbers *by = (const numbers *)context;
  um_tensor_type type = {.size = sizeof type};
  um_array *wide[2] = {NULL, NULL}, *terms[2] = {NULL, NULL}, *sum = NULL;
  um_status status = host->array_type(host->host, inputs[0], &type);
  kind of = kind_of(type.dtype);
  for (uint32_t i = 0; i < n_inputs && status == UM_OK; i++) {
    if (of == F16 || of == BF16) status = astype(inputs[i], float32, NULL, &wide[i], error);
    else wide[i] = host->array_retain(host->host, inputs[i]);
    if (status == UM_OK) status = scaled(i == 0 ? by->alpha : by->beta, wide[i], &terms[i], error);
  }
  if (status == UM_OK) status = call_n("add", terms, 2, NULL, 0, &sum, error);
  if (status == UM_OK) status = astype(sum, type.dtype, NULL, outputs, error);
  for (int i = 0; i < 2; i++) {
    host->array_release(host->host, wide[i]);
    host->array_release(host->host, terms[i]);
  }
  host->array_release(host->host, sum);
  return status;
}

/* The cotangent of x is alpha times that of the result, of y beta times. */
static um_status vjp(void *context, um_array *const *inputs, uint32_t n_inputs, um_array *const *outputs,
                     um_array *const *cotangents, const uint8_t *wanted, um_array **results, um_error **error) {
  (void)inputs, (void)outputs;
  const numbers *by = (const numbers *)context;
  if (cotangents[0] == NULL) return UM_OK;
  um_array *made[2] = {NULL, NULL};
  um_status status = UM_OK;
  for (uint32_t i = 0; i < n_inputs && status == UM_OK; i++)
    if (wanted[i]) status = scaled(i == 0 ? by->alpha : by->beta, cotangents[0], &made[i], error);
  for (int i = 0; i < 2; i++) {
    if (status == UM_OK) results[i] = made[i];
    else host->array_release(host->host, made[i]);
  }
  return status;
}

static um_status apply(const numbers *by, um_array *const *inputs, const um_place *place, um_array **result, um_error **error);

static um_status jvp(void *context, um_array *const *inputs, uint32_t n_inputs, um_array *const *tangents,
                     um_array **results, um_error **error) {
  (void)inputs, (void)n_inputs;
  const numbers *by = (const numbers *)context;
  if (tangents[0] != NULL && tangents[1] != NULL) return apply(by, tangents, NULL, results, error);
  if (tangents[0] != NULL) return scaled(by->alpha, tangents[0], results, error);
  if (tangents[1] != NULL) return scaled(by->beta, tangents[1], results, error);
  return UM_OK;
}

/* Where both have the batch's axis at the same place it stays there, else it goes to the front. */
static um_status vmap(void *context, um_array *const *inputs, uint32_t n_inputs, const int32_t *axes, int64_t batch,
                      um_array **outputs, int32_t *output_axes, um_error **error) {
  (void)batch;
  const numbers *by = (const numbers *)context;
  if (axes[0] == axes[1]) {
    output_axes[0] = axes[0];
    return apply(by, inputs, NULL, outputs, error);
  }
  um_array *moved[2] = {NULL, NULL}, *same[2] = {NULL, NULL};
  um_status status = UM_OK;
  for (uint32_t i = 0; i < n_inputs && status == UM_OK; i++) {
    um_attribute how[2] = {{.size = sizeof *how, .kind = UM_ATTRIBUTE_INT, .name = "source", .integer = axes[i]},
                           {.size = sizeof *how, .kind = UM_ATTRIBUTE_INT, .name = "destination", .integer = 0}};
    um_attribute front = {.size = sizeof front, .kind = UM_ATTRIBUTE_INT, .name = "axis", .integer = 0};
    status = axes[i] < 0 ? call_n("expand_dims", &inputs[i], 1, &front, 1, &moved[i], error)
                         : call_n("moveaxis", &inputs[i], 1, how, 2, &moved[i], error);
  }
  if (status == UM_OK) status = host->broadcast_arrays(host->host, moved, 2, same, error);
  if (status == UM_OK) status = apply(by, same, NULL, outputs, error);
  output_axes[0] = 0;
  for (int i = 0; i < 2; i++) {
    host->array_release(host->host, moved[i]);
    host->array_release(host->host, same[i]);
  }
  return status;
}

static uint64_t print(void *context, char *text, uint64_t room) {
  const numbers *by = (const numbers *)context;
  char all[96];
  int length = snprintf(all, sizeof all, "axpby(alpha=%g, beta=%g)", by->alpha, by->beta);
  if (length > 0) memcpy(text, all, (uint64_t)length < room ? (size_t)length : (size_t)room);
  return length > 0 ? (uint64_t)length : 0;
}

/* Its context, by which the primitive is ended, is a copy of the numbers; what it points to lives as long as that. */
static um_status make(const numbers *by, um_primitive *primitive) {
  numbers *copy = (numbers *)malloc(sizeof *copy);
  if (copy == NULL) return UM_OUT_OF_MEMORY;
  *copy = *by;
  *primitive = (um_primitive){
      .size = sizeof *primitive, .flags = UM_PRIMITIVE_ALLOCATES, .name = NAME, .version = VERSION, .n_outputs = 1,
      .attributes = copy, .attribute_bytes = sizeof *copy, .context = copy, .infer = infer, .eval_cpu = eval_cpu,
      .eval_gpu = eval_gpu, .compose = compose, .vjp = vjp, .jvp = jvp, .vmap = vmap, .print = print, .release = free,
  };
  return UM_OK;
}

static um_status apply(const numbers *by, um_array *const *inputs, const um_place *place, um_array **result, um_error **error) {
  um_primitive primitive;
  um_status status = make(by, &primitive);
  if (status != UM_OK) return status;
  return host->apply(host->host, &primitive, inputs, 2, place, result, error); /* takes the context over */
}

/* ---- files -------------------------------------------------------------------------------------------------- */

/* From a file, which may say anything. */
static um_status restore(void *context, uint32_t version, const void *attributes, uint64_t attribute_bytes,
                         um_receive receive, void *receiver, um_error **error) {
  (void)context;
  numbers by;
  if (version != VERSION)
    return fail(error, UM_INVALID, "version %u of it is not known, but %d is", (unsigned)version, VERSION);
  if (attribute_bytes != sizeof by)
    return fail(error, UM_INVALID, "it has %llu bytes of attributes instead of %zu", (unsigned long long)attribute_bytes,
                sizeof by);
  memcpy(&by, attributes, sizeof by);
  um_primitive primitive;
  um_status status = make(&by, &primitive);
  if (status == UM_OK) receive(receiver, &primitive); /* takes the context over */
  return status;
}

/* ---- Python ------------------------------------------------------------------------------------------------- */

static int is_whole(DLDataType dtype) {
  return dtype.code == kDLBool || host->issubdtype(host->host, dtype, "integer") == 1;
}

/* The dtype to compute in: that of both, or float32 where that is an integer's or bool. */
static um_status common(um_array *const *arrays, DLDataType *dtype, um_error **error) {
  um_tensor_type types[2] = {{.size = sizeof *types}, {.size = sizeof *types}};
  for (int i = 0; i < 2; i++) {
    um_status status = host->array_type(host->host, arrays[i], &types[i]);
    if (status != UM_OK) return status;
    if (kind_of(types[i].dtype) == OTHER && !is_whole(types[i].dtype)) return refuse(types[i].dtype, error);
  }
  um_status status = host->promote_types(host->host, types[0].dtype, types[1].dtype, dtype, error);
  if (status == UM_OK && is_whole(*dtype)) *dtype = float32;
  return status;
}

static PyObject *axpby(PyObject *module, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"x", "y", "alpha", "beta", "stream", NULL};
  (void)module;
  PyObject *objects[2], *stream = Py_None;
  numbers by;
  um_place place = {.size = sizeof place};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOdd|$O:axpby", names, &objects[0], &objects[1], &by.alpha,
                                   &by.beta, &stream))
    return NULL;
  if (api->place_from_object(stream, &place) != 0) return NULL;

  um_array *given[2] = {NULL, NULL}, *cast[2] = {NULL, NULL}, *same[2] = {NULL, NULL}, *result = NULL;
  um_error *error = NULL;
  um_status status = UM_OK;
  DLDataType dtype;
  PyObject *object = NULL;
  for (int i = 0; i < 2; i++)
    if ((given[i] = api->array_from_object(objects[i])) == NULL) goto end;
  status = common(given, &dtype, &error);
  for (int i = 0; i < 2 && status == UM_OK; i++) status = astype(given[i], dtype, &place, &cast[i], &error);
  if (status == UM_OK) status = host->broadcast_arrays(host->host, cast, 2, same, &error);
  if (status == UM_OK) status = apply(&by, same, &place, &result, &error);
  if (status != UM_OK) {
    if (error == NULL) fail(&error, status, "[axpby] failed (status %d).", (int)status);
    api->raise(error);
    goto end;
  }
  object = (PyObject *)api->array_to_object(result); /* takes `result` over */
end:
  for (int i = 0; i < 2; i++) {
    host->array_release(host->host, given[i]);
    host->array_release(host->host, cast[i]);
    host->array_release(host->host, same[i]);
  }
  return object;
}

PyDoc_STRVAR(axpby_doc,
             "axpby(x, y, alpha, beta, *, stream=None)\n--\n\n"
             "alpha * x + beta * y, in one pass.\n\n"
             "Args:\n"
             "    x (array): An array, or what `asarray` takes.\n"
             "    y (array): As `x`; both are broadcast to one shape.\n"
             "    alpha (float): Factor of `x`.\n"
             "    beta (float): Factor of `y`.\n"
             "    stream (Stream or Device, optional): Where to compute.\n\n"
             "Returns:\n"
             "    array: Of the promoted dtype; integers and bool become float32.\n\n"
             "Raises:\n"
             "    ValueError: If the shapes do not broadcast, or for dtypes that only store.\n");

static int start(PyObject *module) {
  (void)module;
  um_error *error = NULL;
  if ((api = um_import()) == NULL) return -1;
  host = api->host;
  um_status status = host->provide(host->host, NAME, "ultramarine_axpby_c", restore, NULL, &error);
  if (status == UM_OK) return 0;
  if (error == NULL) fail(&error, status, "[axpby] failed to be provided (status %d).", (int)status);
  api->raise(error);
  return -1;
}

static PyMethodDef methods[] = {
    {"axpby", (PyCFunction)(void (*)(void))axpby, METH_VARARGS | METH_KEYWORDS, axpby_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)start}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "axpby, in C.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
