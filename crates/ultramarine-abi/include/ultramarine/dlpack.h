/* The part of DLPack 1.3 that the backend contract uses, for builds without DLPack's own
 * header; that one is taken where it is found, so both can be included together.
 * https://dmlc.github.io/dlpack/latest/ */
#ifndef ULTRAMARINE_DLPACK_H
#define ULTRAMARINE_DLPACK_H

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define ULTRAMARINE_HAS_DLPACK 1
#endif
#endif

#ifndef ULTRAMARINE_HAS_DLPACK
#include <stdint.h>

/* DLDeviceType */
enum {
  kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8,
  kDLVPI = 9, kDLROCM = 10, kDLROCMHost = 11, kDLExtDev = 12, kDLCUDAManaged = 13,
  kDLOneAPI = 14, kDLWebGPU = 15, kDLHexagon = 16, kDLMAIA = 17, kDLTrn = 18
};

/* DLDataTypeCode */
enum {
  kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4,
  kDLComplex = 5, kDLBool = 6
};

typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements */
  uint64_t byte_offset;
} DLTensor;
#endif

#endif
