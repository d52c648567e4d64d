// The other side in C++: the same as in C, with what C++ owns things by.
#include <atomic>
#include <memory>
#include <ultramarine/dlpack.h>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<int> deletions{0};

// A tensor of doubles: Managed is either struct.
template <class Managed> class Whole {
 public:
  Whole(int64_t rows, int64_t columns)
      : shape_{rows, columns}, strides_{1, rows}, numbers_(static_cast<size_t>(rows * columns)), managed_() {
    for (int64_t i = 0; i < rows * columns; i++) {
      numbers_[static_cast<size_t>(i / columns + i % columns * rows)] = static_cast<double>(i);
    }
    DLTensor &tensor = managed_.dl_tensor;
    tensor.data = numbers_.data();
    tensor.device.device_type = kDLCPU;
    tensor.ndim = 2;
    tensor.dtype = DLDataType{kDLFloat, 64, 1};
    tensor.shape = shape_;
    tensor.strides = strides_;
    managed_.manager_ctx = this;
    managed_.deleter = [](Managed *self) { delete static_cast<Whole *>(self->manager_ctx); };
  }
  ~Whole() { deletions++; }

  Managed *managed() { return &managed_; }

 private:
  int64_t shape_[2], strides_[2];
  std::vector<double> numbers_;
  Managed managed_;
};

// Owned until the end of its scope, as a consumer owns what it took.
template <class Managed> struct Delete {
  void operator()(Managed *managed) const {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};
template <class Managed> using Owned = std::unique_ptr<Managed, Delete<Managed>>;

double spend(const DLTensor &tensor, uint64_t flags) {
  if (tensor.ndim != 2 || tensor.dtype.code != kDLFloat || tensor.dtype.bits != 64 || tensor.strides == nullptr ||
      (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
    return -1;
  }
  auto first = reinterpret_cast<double *>(static_cast<char *>(tensor.data) + tensor.byte_offset);
  double sum = 0;
  for (int64_t i = 0; i < tensor.shape[0]; i++) {
    for (int64_t j = 0; j < tensor.shape[1]; j++) {
      double &number = first[i * tensor.strides[0] + j * tensor.strides[1]];
      sum += number;
      number = 0;
    }
  }
  return sum;
}

}  // namespace

EXPORT DLManagedTensorVersioned *make(int64_t rows, int64_t columns) {
  DLManagedTensorVersioned *managed = (new Whole<DLManagedTensorVersioned>(rows, columns))->managed();
  managed->version = DLPackVersion{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  return managed;
}

EXPORT DLManagedTensor *make_legacy(int64_t rows, int64_t columns) {
  return (new Whole<DLManagedTensor>(rows, columns))->managed();
}

EXPORT int deleted() { return deletions; }

EXPORT double consume(DLManagedTensorVersioned *managed) {
  Owned<DLManagedTensorVersioned> owned(managed);
  if (owned->version.major != DLPACK_MAJOR_VERSION) return -1;
  return spend(owned->dl_tensor, owned->flags);
}

EXPORT double consume_legacy(DLManagedTensor *managed) {
  Owned<DLManagedTensor> owned(managed);
  return spend(owned->dl_tensor, 0);
}

namespace {

struct Table : DLPackExchangeAPI {
  Table() : DLPackExchangeAPI() {
    header.version = DLPackVersion{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed_tensor_allocator = [](DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                                  void (*SetError)(void *, const char *, const char *)) {
      if (prototype->ndim != 2 || prototype->device.device_type != kDLCPU) {
        SetError(context, "BufferError", "matrices on the CPU only");
        return -1;
      }
      *out = make(prototype->shape[0], prototype->shape[1]);
      return 0;
    };
    managed_tensor_from_py_object_no_sync = [](void *, DLManagedTensorVersioned **) { return -1; };
    managed_tensor_to_py_object_no_sync = [](DLManagedTensorVersioned *, void **) { return -1; };
    current_work_stream = [](DLDeviceType type, int32_t id, void **out) {
      if (type != kDLCPU || id != 0) return -1;
      *out = nullptr;
      return 0;
    };
  }
};

}  // namespace

EXPORT const DLPackExchangeAPI *table() {
  static Table api;
  return &api;
}
