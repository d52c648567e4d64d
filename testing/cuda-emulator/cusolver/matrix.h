// Matrices of the emulated cuSOLVER and cuBLAS: everything is computed in complex double, by textbook algorithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#define CALL extern "C" __attribute__((visibility("default"))) int

typedef unsigned long long CUdeviceptr;
extern "C" int emulatedLaunchOwned(void *stream, void (*function)(void *), void *data, void (*release)(void *));
extern "C" int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address);

typedef std::complex<double> Wide;
typedef std::complex<float> Complex;

static inline void put(float &to, Wide x) { to = (float)x.real(); }
static inline void put(double &to, Wide x) { to = x.real(); }
static inline void put(Complex &to, Wide x) { to = Complex(x); }

// The dtype of singular values and eigenvalues.
template <class T> struct RealOf { typedef T R; };
template <> struct RealOf<Complex> { typedef float R; };

// Column by column.
struct Matrix {
  int rows, cols;
  std::vector<Wide> data;
  Matrix(int rows, int cols) : rows(rows), cols(cols), data((size_t)rows * cols) {}
  template <class T> Matrix(const T *from, int rows, int cols, int ld) : Matrix(rows, cols) {
    for (int j = 0; j < cols; j++)
      for (int i = 0; i < rows; i++) at(i, j) = Wide(from[i + (size_t)j * ld]);
  }
  Wide &at(int i, int j) { return data[i + (size_t)j * rows]; }
  Wide at(int i, int j) const { return data[i + (size_t)j * rows]; }
  template <class T> void store(T *to, int ld) const {
    for (int j = 0; j < cols; j++)
      for (int i = 0; i < rows; i++) put(to[i + (size_t)j * ld], at(i, j));
  }
  static Matrix identity(int n) {
    Matrix made(n, n);
    for (int i = 0; i < n; i++) made.at(i, i) = 1;
    return made;
  }
  Matrix adjoint() const {
    Matrix made(cols, rows);
    for (int j = 0; j < cols; j++)
      for (int i = 0; i < rows; i++) made.at(j, i) = std::conj(at(i, j));
    return made;
  }
};

static int complain(const char *what, int code) {
  fprintf(stderr, "emulated cuSOLVER or cuBLAS: %s\n", what);
  return code;
}

template <class T> static bool lies_inside(const T *first, uint64_t count) {
  CUdeviceptr base = 0, at = (CUdeviceptr)first;
  size_t size = 0;
  return at % sizeof(T) == 0 && !cuMemGetAddressRange_v2(&base, &size, at) && at + count * sizeof(T) <= base + size;
}

template <class T> static bool matrix_lies_inside(const T *first, int rows, int cols, int ld) {
  return ld >= rows && rows > 0 && cols > 0 && lies_inside(first, (uint64_t)ld * (cols - 1) + rows);
}

// Handles of both libraries.
struct Handle {
  void *stream = nullptr;
};

static int launch(Handle *handle, std::function<void()> work) {
  auto run = [](void *data) { (*(std::function<void()> *)data)(); };
  auto release = [](void *data) { delete (std::function<void()> *)data; };
  return emulatedLaunchOwned(handle->stream, run, new std::function<void()>(work), release);
}

// LU factors in place, with the pivots from 1 on. Returns 0, or the place of a zero on the diagonal.
static inline int factor(Matrix &a, int *pivots) {
  int info = 0, k = std::min(a.rows, a.cols);
  for (int j = 0; j < k; j++) {
    int largest = j;
    for (int i = j; i < a.rows; i++)
      if (std::abs(a.at(i, j)) > std::abs(a.at(largest, j))) largest = i;
    pivots[j] = largest + 1;
    for (int c = 0; c < a.cols; c++) std::swap(a.at(j, c), a.at(largest, c));
    if (a.at(j, j) == 0.0) {
      if (!info) info = j + 1;
      continue;
    }
    for (int i = j + 1; i < a.rows; i++) {
      a.at(i, j) /= a.at(j, j);
      for (int c = j + 1; c < a.cols; c++) a.at(i, c) -= a.at(i, j) * a.at(j, c);
    }
  }
  return info;
}
