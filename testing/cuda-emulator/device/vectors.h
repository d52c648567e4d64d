// Vector types of CUDA with its alignments.
#pragma once

#define UM_EMULATED_VECTORS(name, T, align2, align4)                                                                   \
  struct name##1 {                                                                                                     \
    T x;                                                                                                               \
  };                                                                                                                   \
  struct __attribute__((aligned(align2))) name##2 {                                                                    \
    T x, y;                                                                                                            \
  };                                                                                                                   \
  UM_EMULATED_VECTOR3(name, T)                                                                                         \
  struct __attribute__((aligned(align4))) name##4 {                                                                    \
    T x, y, z, w;                                                                                                      \
  };                                                                                                                   \
  inline name##1 make_##name##1(T x) { return {x}; }                                                                   \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                                           \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                                   \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define UM_EMULATED_VECTOR3(name, T)                                                                                   \
  struct name##3 {                                                                                                     \
    T x, y, z;                                                                                                         \
  };
UM_EMULATED_VECTORS(char, signed char, 2, 4)
UM_EMULATED_VECTORS(uchar, unsigned char, 2, 4)
UM_EMULATED_VECTORS(short, short, 4, 8)
UM_EMULATED_VECTORS(ushort, unsigned short, 4, 8)
UM_EMULATED_VECTORS(int, int, 8, 16)
#undef UM_EMULATED_VECTOR3
#define UM_EMULATED_VECTOR3(name, T) // uint3 is in abi.h
UM_EMULATED_VECTORS(uint, unsigned, 8, 16)
#undef UM_EMULATED_VECTOR3
#define UM_EMULATED_VECTOR3(name, T)                                                                                   \
  struct name##3 {                                                                                                     \
    T x, y, z;                                                                                                         \
  };
UM_EMULATED_VECTORS(long, long, 16, 16)
UM_EMULATED_VECTORS(ulong, unsigned long, 16, 16)
UM_EMULATED_VECTORS(longlong, long long, 16, 16)
UM_EMULATED_VECTORS(ulonglong, unsigned long long, 16, 16)
UM_EMULATED_VECTORS(float, float, 8, 16)
UM_EMULATED_VECTORS(double, double, 16, 16)
#undef UM_EMULATED_VECTORS
#undef UM_EMULATED_VECTOR3
