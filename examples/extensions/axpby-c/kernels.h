/* The kernels, one for each language. Names that begin with um_ are of the prelude that precedes them (docs/kernels.md): elements
 * of each dtype, and what they are computed with, float for the halves. */
#include <stdint.h>

#include <ultramarine/extension.h>

typedef struct {
  const char *language;
  DLDataType count;     /* dtype of the number of elements, or of words, `packed` elements each */
  uint64_t most;        /* most elements that it can count */
  const char *texts[4]; /* for float16, bfloat16, float32, float64, or NULL */
  uint32_t packed[4];
} kernel_source;

#define FOR_EACH_C(T, SOURCE) "#define T " #T "\n" SOURCE

#define OPENCL                                                                                     \
  "__kernel void axpby(__global const T *x, __global const T *y, __global T *out,\n"               \
  "                    um_compute(T) alpha, um_compute(T) beta, ulong n) {\n"                      \
  "  for (ulong i = get_global_id(0); i < n; i += get_global_size(0))\n"                           \
  "    um_store(T, out, i, alpha * um_load(T, x, i) + beta * um_load(T, y, i));\n"                 \
  "}\n"

#define CUDA                                                                                       \
  "typedef um_compute(T) R;\n"                                                                     \
  "extern \"C\" __global__ void axpby(const T *x, const T *y, T *out, R alpha, R beta,\n"          \
  "                                 um_uint64 n) {\n"                                              \
  "  um_uint64 threads = (um_uint64)gridDim.x * blockDim.x;\n"                                     \
  "  for (um_uint64 i = (um_uint64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)\n"  \
  "    um_store(T, out, i, alpha * um_load(T, x, i) + beta * um_load(T, y, i));\n"                 \
  "}\n"

#define METAL                                                                                      \
  "kernel void axpby(device const T *x [[buffer(0)]], device const T *y [[buffer(1)]],\n"          \
  "                  device T *out [[buffer(2)]], constant float &alpha [[buffer(3)]],\n"          \
  "                  constant float &beta [[buffer(4)]], constant ulong &n [[buffer(5)]],\n"       \
  "                  uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {\n" \
  "  for (ulong i = first; i < n; i += threads)\n"                                                 \
  "    um_store(T, out, i, alpha * um_load(T, x, i) + beta * um_load(T, y, i));\n"                 \
  "}\n"

/* WGSL stores words of 32 bits: two halves each. */
#define WGSL(WORD, AXPBY)                                                                          \
  "@group(0) @binding(0) var<storage, read> x: array<" WORD ">;\n"                                 \
  "@group(0) @binding(1) var<storage, read> y: array<" WORD ">;\n"                                 \
  "@group(0) @binding(2) var<storage, read_write> out: array<" WORD ">;\n"                         \
  "@group(0) @binding(3) var<uniform> alpha: f32;\n"                                               \
  "@group(0) @binding(4) var<uniform> beta: f32;\n"                                                \
  "@group(0) @binding(5) var<uniform> n: u32;\n"                                                   \
  "@compute @workgroup_size(256)\n"                                                                \
  "fn axpby(@builtin(global_invocation_id) id: vec3<u32>,\n"                                       \
  "         @builtin(num_workgroups) groups: vec3<u32>) {\n"                                       \
  "  for (var i = id.x; i < n; i += groups.x * 256u) {\n"                                          \
  "    " AXPBY "\n"                                                                                \
  "  }\n"                                                                                          \
  "}\n"
#define WGSL_PAIR(NAME)                                                                            \
  WGSL("u32", "out[i] = " NAME "_pair(alpha * " NAME "_of(x[i], 0u) + beta * " NAME "_of(y[i], 0u),\n" \
              "                         alpha * " NAME "_of(x[i], 1u) + beta * " NAME "_of(y[i], 1u));")

static const kernel_source KERNELS[] = {
    {"cuda-c",
     {kDLUInt, 64, 1},
     UINT64_MAX,
     {FOR_EACH_C(um_float16, CUDA), FOR_EACH_C(um_bfloat16, CUDA), FOR_EACH_C(um_float32, CUDA),
      FOR_EACH_C(um_float64, CUDA)},
     {1, 1, 1, 1}},
    {"msl",
     {kDLUInt, 64, 1},
     UINT64_MAX,
     {FOR_EACH_C(um_float16, METAL), FOR_EACH_C(um_bfloat16, METAL), FOR_EACH_C(um_float32, METAL), NULL},
     {1, 1, 1, 1}},
    {"wgsl",
     {kDLUInt, 32, 1},
     UINT32_MAX / 2,
     {WGSL_PAIR("um_float16"), WGSL_PAIR("um_bfloat16"), WGSL("f32", "out[i] = alpha * x[i] + beta * y[i];"), NULL},
     {2, 2, 1, 1}},
    {"opencl-c",
     {kDLUInt, 64, 1},
     UINT64_MAX,
     {FOR_EACH_C(um_float16, OPENCL), FOR_EACH_C(um_bfloat16, OPENCL), FOR_EACH_C(um_float32, OPENCL),
      FOR_EACH_C(um_float64, OPENCL)},
     {1, 1, 1, 1}},
};
