/* DLPack 1.3 for builds without DLPack's own header: the same names, values and layouts, in our
 * words. That header is taken where it is found; who includes it under another name does so before
 * this one. (One of before 1.3 gives what it has.)
 * https://dmlc.github.io/dlpack/latest/ */
#ifndef ULTRAMARINE_DLPACK_H
#define ULTRAMARINE_DLPACK_H

#if defined(DLPACK_DLPACK_H_)
#define ULTRAMARINE_HAS_DLPACK 1
#elif defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define ULTRAMARINE_HAS_DLPACK 1
#endif
#endif

#ifndef ULTRAMARINE_HAS_DLPACK
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

/* What a tensor was made with. Another major version has another layout: then nothing but the
 * deleter may be touched. A higher minor version knows more devices, types and flags. */
typedef struct { uint32_t major; uint32_t minor; } DLPackVersion;

/* Where memory is. Host memory that a device can see, too: CUDAHost, ROCMHost, CUDAManaged. */
enum {
  kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8,
  kDLVPI = 9, kDLROCM = 10, kDLROCMHost = 11, kDLExtDev = 12, kDLCUDAManaged = 13,
  kDLOneAPI = 14, kDLWebGPU = 15, kDLHexagon = 16, kDLMAIA = 17, kDLTrn = 18
};
/* A number of its own, so that one that is not in the list is no undefined behaviour. */
typedef int32_t DLDeviceType;

/* What a number is. Bits count both parts of a complex one; a bool has a byte. fp6 and fp4 lie
 * side by side, the first in the lowest bits, unless the flag says that each has a byte. */
typedef enum {
  kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e3m4 = 7, kDLFloat8_e4m3 = 8, kDLFloat8_e4m3b11fnuz = 9, kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11, kDLFloat8_e5m2 = 12, kDLFloat8_e5m2fnuz = 13, kDLFloat8_e8m0fnu = 14,
  kDLFloat6_e2m3fn = 15, kDLFloat6_e3m2fn = 16,
  kDLFloat4_e2m1fn = 17
} DLDataTypeCode;

/* device_id: the ordinal among those of its type; 0 for the host's own memory. */
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
/* code: a DLDataTypeCode. lanes: numbers in an element, 1 but for vectors. */
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;

/* A tensor that somebody else keeps alive. */
typedef struct {
  void *data;           /* or a device's handle; NULL if there are no elements */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;       /* ndim sizes; may be NULL if ndim is 0 */
  int64_t *strides;     /* as many, in elements; NULL for row-major was allowed before 1.2 */
  uint64_t byte_offset; /* from data to the first element */
} DLTensor;

/* A tensor and who keeps it, as before 1.0: without version and flags. Who takes it calls the
 * deleter once, on whatever thread, unless that is NULL. The deleter frees this struct, too. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

/* Nobody may write. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
/* Made for who takes it, who has it alone. */
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
/* fp6 and fp4 have a byte each. */
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/* A tensor and who keeps it, since 1.0. All up to the flags stays where it is in every version. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* The C exchange API: what a Python type of tensors has as __dlpack_c_exchange_api__, a capsule
 * named "dlpack_exchange_api" with a table that lives as long as the process. Its functions return
 * 0, or -1 with a Python exception set; they throw nothing, and none of them waits for a stream. */

/* A new tensor like the prototype (its dtype, ndim, shape, device). Called without the
 * interpreter's lock; calls SetError(error_ctx, name of an exception, message) if it fails. */
typedef int (*DLPackManagedTensorAllocator)(DLTensor *prototype, DLManagedTensorVersioned **out,
                                            void *error_ctx,
                                            void (*SetError)(void *error_ctx, const char *kind,
                                                             const char *message));
/* An object's tensor, which the caller owns from then on. */
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object,
                                                     DLManagedTensorVersioned **out);
/* A new object of a tensor, which it takes over. */
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned *tensor,
                                                   void **out_py_object);
/* An object's tensor on loan: it is there until the caller returns to the interpreter. */
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);
/* The stream that the library's work on a device goes to; NULL for the CPU. */
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id,
                                       void **out_current_stream);

/* What tables of all versions begin with. prev_api: a table of an older major version, or NULL. */
typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

/* The table. Only dltensor_from_py_object_no_sync may be NULL. */
typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  DLPackManagedTensorAllocator managed_tensor_allocator;
  DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
  DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
  DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync;
  DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

#endif
