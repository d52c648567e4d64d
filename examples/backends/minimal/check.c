/* Calls every function of the minimal backend the way a host does, without Ultramarine: for the sanitizers, and for a
 * first look at a backend of one's own. Prints nothing and returns 0 when all is well. */
#include <math.h>
#include <ultramarine/helper.h>

static int errors_made = 0;

struct um_error {
  um_status code;
};

static um_error *error_new(void *host, um_status code, const char *text, uint64_t length) {
  um_error *error = (um_error *)malloc(sizeof *error);
  (void)host, (void)text;
  if (error == NULL || length == 0) abort();
  error->code = code;
  errors_made++;
  return error;
}

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      exit(1); \
    } \
  } while (0)

static um_backend_table table;
static void *device, *stream;

typedef struct array {
  um_tensor tensor;
  int64_t shape[4], strides[4];
} array;

/* A row-major array in a buffer of the device. */
static array make(uint32_t dtype, int32_t ndim, const int64_t *shape) {
  array a;
  int64_t count = 1;
  void *buffer = NULL;
  memset(&a, 0, sizeof a);
  for (int32_t i = ndim - 1; i >= 0; i--) a.shape[i] = shape[i], a.strides[i] = count, count *= shape[i];
  a.tensor.size = sizeof a.tensor;
  a.tensor.dl.dtype = um_dtype(dtype);
  a.tensor.dl.ndim = ndim;
  a.tensor.buffer_size = (uint64_t)count * um_dtype_size(a.tensor.dl.dtype);
  CHECK(table.buffer_alloc(device, a.tensor.buffer_size, &buffer, NULL) == UM_OK);
  a.tensor.buffer = buffer;
  a.tensor.dl.data = table.buffer_host_pointer(device, buffer);
  CHECK(a.tensor.dl.data != NULL && (uintptr_t)a.tensor.dl.data % 256 == 0);
  return a;
}

/* Prepares and runs one op; the last array is the output. */
static um_status run(uint32_t op, const void *attributes, array *arrays, uint32_t n, const uint64_t (*scalars)[2]) {
  um_tensor_desc descs[4];
  um_tensor tensors[4];
  um_command command;
  um_status status;
  void *plan = NULL;
  memset(&command, 0, sizeof command);
  for (uint32_t i = 0; i < n; i++) {
    array *a = &arrays[i];
    int64_t expected = 1;
    a->tensor.dl.shape = a->shape, a->tensor.dl.strides = a->strides;
    tensors[i] = a->tensor;
    descs[i].size = sizeof descs[i], descs[i].ndim = a->tensor.dl.ndim, descs[i].dtype = a->tensor.dl.dtype;
    descs[i].layout = UM_LAYOUT_CONTIGUOUS;
    for (int32_t d = a->tensor.dl.ndim - 1; d >= 0; expected *= a->shape[d--])
      if (a->shape[d] != 1 && a->strides[d] != expected) descs[i].layout = UM_LAYOUT_STRIDED;
  }
  status = table.prepare(device, op, 1, attributes, descs, n - 1, &descs[n - 1], 1, &plan, NULL);
  if (status != UM_OK) return status;
  command.size = sizeof command;
  command.plan = plan;
  command.inputs = tensors, command.n_inputs = n - 1;
  command.outputs = &tensors[n - 1], command.n_outputs = 1;
  command.tensor_stride = sizeof *tensors;
  command.scalars = scalars, command.n_scalars = scalars == NULL ? 0 : 2;
  status = table.submit(device, stream, &command, 1, NULL);
  if (status == UM_OK) { /* a command that does not fit its plan is refused with words */
    um_error *error = NULL;
    command.n_outputs = 0;
    CHECK(table.submit(device, stream, &command, 1, &error) == UM_INVALID && error != NULL);
    CHECK(error->code == UM_INVALID);
    free(error);
  }
  table.plan_release(device, plan);
  return status;
}

static void release(array *arrays, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) table.buffer_free(device, arrays[i].tensor.buffer);
}

/* Every code of a family over awkward numbers: nothing may trap or be undefined. */
static void every_code(uint32_t op, uint32_t codes, uint32_t n_inputs) {
  static const float awkward[8] = {0, -0.0f, 1.5f, -3e38f, INFINITY, -INFINITY, NAN, 1e-40f};
  static const uint8_t bools[8] = {0, 1, 1, 0, 1, 0, 0, 1};
  const uint32_t dtypes[2] = {UM_DTYPE_FLOAT32, UM_DTYPE_BOOL};
  const void *data[2] = {awkward, bools};
  const int64_t shape[2] = {8, 8};
  int ran = 0;
  for (uint32_t d = 0; d < 2; d++)
    for (uint32_t to = 0; to < 2; to++)
      for (uint32_t code = 0; code < codes; code++) {
        um_binary_attrs attrs = {sizeof attrs, code};
        array a[3];
        const uint32_t n = n_inputs + 1;
        for (uint32_t i = 0; i < n_inputs; i++) { /* rows by columns, broadcast */
          a[i] = make(dtypes[d], 2, shape);
          CHECK(table.copy_to_device(device, stream, a[i].tensor.buffer, 0, data[d], 8 * (d == 1 ? 1 : 4), NULL) == UM_OK);
          a[i].strides[0] = i == 0, a[i].strides[1] = i == 1;
        }
        a[n_inputs] = make(dtypes[to], 2, shape);
        ran += run(op, &attrs, a, n, NULL) == UM_OK;
        release(a, n);
      }
  CHECK(ran > 3);
}

static void numbers(void) {
  const int64_t shape[2] = {2, 3}, square[2] = {2, 2}, row[2] = {2, 1};
  const um_no_attrs none = {sizeof none};
  um_reduce_attrs sum = {sizeof sum, UM_REDUCE_SUM, 2};
  struct {
    um_unary_attrs known;
    uint32_t tail;
  } longer = {{sizeof longer, UM_UNARY_EXP}, 0};
  static const float odd[6] = {1, 3, 5, 7, 9, 11};
  float got[6], product[4];
  uint8_t truths[6];
  array a[3];

  a[0] = make(UM_DTYPE_FLOAT32, 2, shape);
  CHECK(table.copy_to_device(device, stream, a[0].tensor.buffer, 0, odd, sizeof odd, NULL) == UM_OK);
  a[1] = make(UM_DTYPE_FLOAT32, 2, row);
  CHECK(run(UM_OP_REDUCE, &sum, a, 2, NULL) == UM_OK);
  memcpy(got, a[1].tensor.dl.data, 8);
  CHECK(got[0] == 9 && got[1] == 27);
  release(&a[1], 1);

  a[1] = make(UM_DTYPE_BOOL, 2, shape);
  CHECK(run(UM_OP_COPY, &none, a, 2, NULL) == UM_OK);
  CHECK(table.copy_to_host(device, stream, a[1].tensor.buffer, 0, truths, sizeof truths, NULL) == UM_OK);
  CHECK(truths[0] == 1 && truths[5] == 1);
  release(&a[1], 1);

  a[1] = make(UM_DTYPE_FLOAT32, 2, shape); /* the same once more */
  CHECK(run(UM_OP_COPY, &none, a, 2, NULL) == UM_OK);
  release(a, 1);
  a[0] = a[1];
  a[1].shape[0] = 3, a[1].shape[1] = 2, a[1].strides[0] = 1, a[1].strides[1] = 3; /* transposed */
  a[2] = make(UM_DTYPE_FLOAT32, 2, square);
  CHECK(run(UM_OP_MATMUL, &none, a, 3, NULL) == UM_NEEDS_CONTIGUOUS);
  a[1].strides[0] = 2, a[1].strides[1] = 1;
  CHECK(run(UM_OP_MATMUL, &none, a, 3, NULL) == UM_OK);
  memcpy(product, a[2].tensor.dl.data, sizeof product); /* (1 3 5; 7 9 11) by (1 3; 5 7; 9 11) */
  CHECK(product[0] == 61 && product[1] == 79 && product[2] == 151 && product[3] == 205);

  /* Attributes of a later version: a tail of zeros is the same op, another one is unknown. */
  CHECK(run(UM_OP_UNARY, &longer, (array[]){a[2], a[2]}, 2, NULL) == UM_OK);
  longer.tail = 1;
  CHECK(run(UM_OP_UNARY, &longer, (array[]){a[2], a[2]}, 2, NULL) == UM_UNSUPPORTED);
  CHECK(run(UM_OP_SORT, &sum, (array[]){a[2], a[2]}, 2, NULL) == UM_UNSUPPORTED);
  release(a, 1);
  release(&a[2], 1);
}

static void sizes_and_errors(void) {
  um_error *error = NULL;
  void *opened = NULL;
  unsigned char room[sizeof(um_device_info)];
  uint32_t size = 24, after;
  memset(room, 7, sizeof room);
  memcpy(room, &size, sizeof size);
  CHECK(table.device_info(table.backend, 1, (um_device_info *)(void *)room, NULL) == UM_OK);
  memcpy(&after, room, sizeof after);
  CHECK(after == 24 && room[24] == 7); /* no more than the size that was given */
  CHECK(table.device_info(table.backend, 9, (um_device_info *)(void *)room, &error) == UM_INVALID && error != NULL);
  free(error), error = NULL;
  CHECK(table.device_open(table.backend, 9, &opened, &error) == UM_INVALID && error != NULL);
  free(error), error = NULL;
  CHECK(table.buffer_alloc(device, UINT64_MAX, &opened, NULL) == UM_OUT_OF_MEMORY && opened == NULL);
}

int main(void) {
  um_host_table host;
  memset(&host, 0, sizeof host);
  host.size = sizeof host;
  host.abi_major = UM_ABI_MAJOR, host.abi_minor = UM_ABI_MINOR;
  host.error_new = error_new;
  table.size = sizeof table;
  CHECK(ultramarine_backend_init(&host, &table, NULL) == UM_OK);
  CHECK(table.device_count(table.backend) == 2);
  for (uint32_t i = 0; i < 2; i++) {
    void *event = NULL;
    CHECK(table.device_open(table.backend, i, &device, NULL) == UM_OK);
    CHECK(table.stream_create(device, &stream, NULL) == UM_OK);
    CHECK(table.event_create(device, &event, NULL) == UM_OK && table.event_query(device, event) == 0);
    numbers();
    every_code(UM_OP_UNARY, UM_UNARY_COUNT + 1, 1);
    every_code(UM_OP_BINARY, UM_BINARY_COUNT + 1, 2);
    sizes_and_errors();
    CHECK(table.event_record(device, stream, event, 3, NULL) == UM_OK);
    CHECK(table.event_wait_host(device, event, 3, NULL) == UM_OK && table.event_query(device, event) == 3);
    CHECK(table.stream_synchronize(device, stream, NULL) == UM_OK);
    table.event_destroy(device, event);
    table.stream_destroy(device, stream);
    table.device_close(device);
  }
  CHECK(errors_made > 0);
  return 0;
}
