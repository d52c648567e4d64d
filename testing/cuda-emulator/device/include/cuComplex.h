#pragma once
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;
#define UM_EMULATED_COMPLEX(C, T, f, hypotenuse)                                                                       \
  inline T cuCreal##f(C z) { return z.x; }                                                                             \
  inline T cuCimag##f(C z) { return z.y; }                                                                             \
  inline C cuConj##f(C z) { return {z.x, -z.y}; }                                                                      \
  inline C cuCadd##f(C a, C b) { return {a.x + b.x, a.y + b.y}; }                                                      \
  inline C cuCsub##f(C a, C b) { return {a.x - b.x, a.y - b.y}; }                                                      \
  inline C cuCmul##f(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }                              \
  inline C cuCdiv##f(C a, C b) {                                                                                       \
    T n = b.x * b.x + b.y * b.y;                                                                                       \
    return {(a.x * b.x + a.y * b.y) / n, (a.y * b.x - a.x * b.y) / n};                                                 \
  }                                                                                                                    \
  inline T cuCabs##f(C z) { return hypotenuse(z.x, z.y); }
UM_EMULATED_COMPLEX(cuFloatComplex, float, f, hypotf)
UM_EMULATED_COMPLEX(cuDoubleComplex, double, , hypot)
inline cuFloatComplex make_cuFloatComplex(float x, float y) { return {x, y}; }
inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return {x, y}; }
inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
