/* The other side in C: tensors of doubles that it makes and frees, and reads of others. */
#include <stdlib.h>
#include <string.h>
#include <ultramarine/dlpack.h>

#define EXPORT __attribute__((visibility("default")))

static int deletions;

/* Everything of one tensor. */
typedef struct {
  union { DLManagedTensorVersioned versioned; DLManagedTensor legacy; } managed;
  int64_t shape[2], strides[2];
  double numbers[];
} whole;

static void deleter(DLManagedTensorVersioned *self) {
  deletions++;
  free(self->manager_ctx);
}

static void deleter_legacy(DLManagedTensor *self) {
  deletions++;
  free(self->manager_ctx);
}

/* The numbers 0, 1, 2 ... by rows, laid out by columns. */
static whole *reserve(DLTensor *tensor, int64_t rows, int64_t columns) {
  whole *mine = malloc(sizeof *mine + (size_t)(rows * columns) * sizeof(double));
  if (mine == NULL) abort();
  mine->shape[0] = rows, mine->shape[1] = columns;
  mine->strides[0] = 1, mine->strides[1] = rows;
  for (int64_t i = 0; i < rows * columns; i++) mine->numbers[i / columns + i % columns * rows] = (double)i;
  memset(tensor, 0, sizeof *tensor);
  tensor->data = mine->numbers;
  tensor->device.device_type = kDLCPU;
  tensor->ndim = 2;
  tensor->dtype.code = kDLFloat, tensor->dtype.bits = 64, tensor->dtype.lanes = 1;
  tensor->shape = mine->shape, tensor->strides = mine->strides;
  return mine;
}

EXPORT DLManagedTensorVersioned *make(int64_t rows, int64_t columns) {
  DLTensor tensor;
  whole *mine = reserve(&tensor, rows, columns);
  DLManagedTensorVersioned *managed = &mine->managed.versioned;
  managed->version.major = DLPACK_MAJOR_VERSION, managed->version.minor = DLPACK_MINOR_VERSION;
  managed->manager_ctx = mine, managed->deleter = deleter;
  managed->flags = DLPACK_FLAG_BITMASK_IS_COPIED, managed->dl_tensor = tensor;
  return managed;
}

EXPORT DLManagedTensor *make_legacy(int64_t rows, int64_t columns) {
  DLTensor tensor;
  whole *mine = reserve(&tensor, rows, columns);
  DLManagedTensor *managed = &mine->managed.legacy;
  managed->manager_ctx = mine, managed->deleter = deleter_legacy, managed->dl_tensor = tensor;
  return managed;
}

EXPORT int deleted(void) { return deletions; }

/* The sum of a matrix of doubles; -1 if it is none, or none that may be written. Sets it to zero. */
static double spend(const DLTensor *tensor, uint64_t flags) {
  double sum = 0;
  if (tensor->ndim != 2 || tensor->dtype.code != kDLFloat || tensor->dtype.bits != 64 || tensor->strides == NULL ||
      (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
    return -1;
  }
  for (int64_t i = 0; i < tensor->shape[0]; i++) {
    for (int64_t j = 0; j < tensor->shape[1]; j++) {
      double *first = (double *)(void *)((char *)tensor->data + tensor->byte_offset);
      double *at = first + i * tensor->strides[0] + j * tensor->strides[1];
      sum += *at;
      *at = 0;
    }
  }
  return sum;
}

/* As a consumer does: reads, and deletes. */
EXPORT double consume(DLManagedTensorVersioned *managed) {
  double sum = managed->version.major == DLPACK_MAJOR_VERSION ? spend(&managed->dl_tensor, managed->flags) : -1;
  if (managed->deleter != NULL) managed->deleter(managed);
  return sum;
}

EXPORT double consume_legacy(DLManagedTensor *managed) {
  double sum = spend(&managed->dl_tensor, 0);
  if (managed->deleter != NULL) managed->deleter(managed);
  return sum;
}

/* A table of the exchange API, without objects: nothing here knows Python. */
static int allocator(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                     void (*SetError)(void *error_ctx, const char *kind, const char *message)) {
  if (prototype->ndim != 2 || prototype->device.device_type != kDLCPU) {
    SetError(error_ctx, "BufferError", "matrices on the CPU only");
    return -1;
  }
  *out = make(prototype->shape[0], prototype->shape[1]);
  return 0;
}

static int from_object(void *py_object, DLManagedTensorVersioned **out) {
  (void)py_object, (void)out;
  return -1;
}

static int to_object(DLManagedTensorVersioned *tensor, void **out_py_object) {
  (void)tensor, (void)out_py_object;
  return -1;
}

static int stream(DLDeviceType device_type, int32_t device_id, void **out_current_stream) {
  if (device_type != kDLCPU || device_id != 0) return -1;
  *out_current_stream = NULL;
  return 0;
}

static DLPackExchangeAPI api = {
    {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL}, allocator, from_object, to_object, NULL, stream};

EXPORT const DLPackExchangeAPI *table(void) { return &api; }
