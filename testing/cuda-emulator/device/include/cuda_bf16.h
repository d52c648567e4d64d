// The types are in device/half.h; this makes their names known.
#pragma once
#define __CUDA_BF16_TYPES_EXIST__
using namespace um_emulated_bf16;
