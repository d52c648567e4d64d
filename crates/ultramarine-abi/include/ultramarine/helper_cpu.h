/* UM_CPU_FEATURES: the CPU features beyond the target's baseline that the compiler may use in this file, separated by
 * spaces, as rustc spells them. A plugin built with -mavx512f says so by itself; its files should all be built with
 * the same flags, or the one with UM_DEFINE_BACKEND with the most. Included by helper_build.h. */
#ifndef ULTRAMARINE_HELPER_CPU_H
#define ULTRAMARINE_HELPER_CPU_H

#if defined(__SSE3__)
#define UM_CPU_SSE3 "sse3 "
#else
#define UM_CPU_SSE3 ""
#endif
#if defined(__SSSE3__)
#define UM_CPU_SSSE3 "ssse3 "
#else
#define UM_CPU_SSSE3 ""
#endif
#if defined(__SSE4_1__)
#define UM_CPU_SSE4_1 "sse4.1 "
#else
#define UM_CPU_SSE4_1 ""
#endif
#if defined(__SSE4_2__)
#define UM_CPU_SSE4_2 "sse4.2 "
#else
#define UM_CPU_SSE4_2 ""
#endif
#if defined(__POPCNT__)
#define UM_CPU_POPCNT "popcnt "
#else
#define UM_CPU_POPCNT ""
#endif
#if defined(__AVX__)
#define UM_CPU_AVX "avx "
#else
#define UM_CPU_AVX ""
#endif
#if defined(__AVX2__)
#define UM_CPU_AVX2 "avx2 "
#else
#define UM_CPU_AVX2 ""
#endif
#if defined(__FMA__)
#define UM_CPU_FMA "fma "
#else
#define UM_CPU_FMA ""
#endif
#if defined(__F16C__)
#define UM_CPU_F16C "f16c "
#else
#define UM_CPU_F16C ""
#endif
#if defined(__BMI__)
#define UM_CPU_BMI1 "bmi1 "
#else
#define UM_CPU_BMI1 ""
#endif
#if defined(__BMI2__)
#define UM_CPU_BMI2 "bmi2 "
#else
#define UM_CPU_BMI2 ""
#endif
#if defined(__LZCNT__)
#define UM_CPU_LZCNT "lzcnt "
#else
#define UM_CPU_LZCNT ""
#endif
#if defined(__MOVBE__)
#define UM_CPU_MOVBE "movbe "
#else
#define UM_CPU_MOVBE ""
#endif
#if defined(__AES__)
#define UM_CPU_AES "aes "
#else
#define UM_CPU_AES ""
#endif
#if defined(__PCLMUL__)
#define UM_CPU_PCLMULQDQ "pclmulqdq "
#else
#define UM_CPU_PCLMULQDQ ""
#endif
#if defined(__AVX512F__)
#define UM_CPU_AVX512F "avx512f "
#else
#define UM_CPU_AVX512F ""
#endif
#if defined(__AVX512CD__)
#define UM_CPU_AVX512CD "avx512cd "
#else
#define UM_CPU_AVX512CD ""
#endif
#if defined(__AVX512BW__)
#define UM_CPU_AVX512BW "avx512bw "
#else
#define UM_CPU_AVX512BW ""
#endif
#if defined(__AVX512DQ__)
#define UM_CPU_AVX512DQ "avx512dq "
#else
#define UM_CPU_AVX512DQ ""
#endif
#if defined(__AVX512VL__)
#define UM_CPU_AVX512VL "avx512vl "
#else
#define UM_CPU_AVX512VL ""
#endif
#if defined(__AVX512VBMI__)
#define UM_CPU_AVX512VBMI "avx512vbmi "
#else
#define UM_CPU_AVX512VBMI ""
#endif
#if defined(__AVX512VBMI2__)
#define UM_CPU_AVX512VBMI2 "avx512vbmi2 "
#else
#define UM_CPU_AVX512VBMI2 ""
#endif
#if defined(__AVX512IFMA__)
#define UM_CPU_AVX512IFMA "avx512ifma "
#else
#define UM_CPU_AVX512IFMA ""
#endif
#if defined(__AVX512VNNI__)
#define UM_CPU_AVX512VNNI "avx512vnni "
#else
#define UM_CPU_AVX512VNNI ""
#endif
#if defined(__AVX512BITALG__)
#define UM_CPU_AVX512BITALG "avx512bitalg "
#else
#define UM_CPU_AVX512BITALG ""
#endif
#if defined(__AVX512VPOPCNTDQ__)
#define UM_CPU_AVX512VPOPCNTDQ "avx512vpopcntdq "
#else
#define UM_CPU_AVX512VPOPCNTDQ ""
#endif
#if defined(__AVX512BF16__)
#define UM_CPU_AVX512BF16 "avx512bf16 "
#else
#define UM_CPU_AVX512BF16 ""
#endif
#if defined(__AVX512FP16__)
#define UM_CPU_AVX512FP16 "avx512fp16 "
#else
#define UM_CPU_AVX512FP16 ""
#endif
#if defined(__AVXVNNI__)
#define UM_CPU_AVXVNNI "avxvnni "
#else
#define UM_CPU_AVXVNNI ""
#endif
#if defined(__AMX_TILE__)
#define UM_CPU_AMX_TILE "amx-tile "
#else
#define UM_CPU_AMX_TILE ""
#endif
#if defined(__AMX_INT8__)
#define UM_CPU_AMX_INT8 "amx-int8 "
#else
#define UM_CPU_AMX_INT8 ""
#endif
#if defined(__AMX_BF16__)
#define UM_CPU_AMX_BF16 "amx-bf16 "
#else
#define UM_CPU_AMX_BF16 ""
#endif
#if defined(__ARM_FEATURE_DOTPROD)
#define UM_CPU_DOTPROD "dotprod "
#else
#define UM_CPU_DOTPROD ""
#endif
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define UM_CPU_FP16 "fp16 "
#else
#define UM_CPU_FP16 ""
#endif
#if defined(__ARM_FEATURE_BF16)
#define UM_CPU_BF16 "bf16 "
#else
#define UM_CPU_BF16 ""
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define UM_CPU_I8MM "i8mm "
#else
#define UM_CPU_I8MM ""
#endif
#if defined(__ARM_FEATURE_SVE)
#define UM_CPU_SVE "sve "
#else
#define UM_CPU_SVE ""
#endif
#if defined(__ARM_FEATURE_SVE2)
#define UM_CPU_SVE2 "sve2 "
#else
#define UM_CPU_SVE2 ""
#endif
#if defined(__ARM_FEATURE_ATOMICS)
#define UM_CPU_LSE "lse "
#else
#define UM_CPU_LSE ""
#endif

#ifndef UM_CPU_FEATURES
#define UM_CPU_FEATURES \
  UM_CPU_SSE3 UM_CPU_SSSE3 UM_CPU_SSE4_1 UM_CPU_SSE4_2 \
  UM_CPU_POPCNT UM_CPU_AVX UM_CPU_AVX2 UM_CPU_FMA \
  UM_CPU_F16C UM_CPU_BMI1 UM_CPU_BMI2 UM_CPU_LZCNT \
  UM_CPU_MOVBE UM_CPU_AES UM_CPU_PCLMULQDQ UM_CPU_AVX512F \
  UM_CPU_AVX512CD UM_CPU_AVX512BW UM_CPU_AVX512DQ UM_CPU_AVX512VL \
  UM_CPU_AVX512VBMI UM_CPU_AVX512VBMI2 UM_CPU_AVX512IFMA UM_CPU_AVX512VNNI \
  UM_CPU_AVX512BITALG UM_CPU_AVX512VPOPCNTDQ UM_CPU_AVX512BF16 UM_CPU_AVX512FP16 \
  UM_CPU_AVXVNNI UM_CPU_AMX_TILE UM_CPU_AMX_INT8 UM_CPU_AMX_BF16 \
  UM_CPU_DOTPROD UM_CPU_FP16 UM_CPU_BF16 UM_CPU_I8MM \
  UM_CPU_SVE UM_CPU_SVE2 UM_CPU_LSE
#endif

#endif
