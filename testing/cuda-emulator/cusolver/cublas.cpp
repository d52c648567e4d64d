// cuBLAS's triangular systems and small LU factors, which the backend calls beside cuSOLVER.
#include "matrix.h"

enum { SUCCESS = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };

static int enqueue(Handle *handle, std::function<void()> work) {
  return launch(handle, work) ? EXECUTION_FAILED : SUCCESS;
}

// X A = B for a triangle of A, over B.
template <class T> static void solve(bool upper, int m, int n, const T *a, int lda, T *b, int ldb) {
  Matrix triangle(a, n, n, lda), x(b, m, n, ldb);
  for (int step = 0; step < n; step++) {
    int j = upper ? step : n - 1 - step;
    for (int i = 0; i < m; i++) {
      Wide sum = x.at(i, j);
      for (int k = upper ? 0 : j + 1; k < (upper ? j : n); k++) sum -= x.at(i, k) * triangle.at(k, j);
      x.at(i, j) = sum / triangle.at(j, j);
    }
  }
  x.store(b, ldb);
}

template <class T>
static int trsm(Handle *h, int side, int uplo, int trans, int diag, int m, int n, const T *alpha, const T *a, int lda, T *b,
                int ldb) {
  if (side != 1 || trans || diag || *alpha != T(1)) return complain("only X A = B is emulated", NOT_SUPPORTED);
  if (!matrix_lies_inside(a, n, n, lda) || !matrix_lies_inside(b, m, n, ldb))
    return complain("trsm outside of memory", INVALID_VALUE);
  return enqueue(h, [=] { solve(uplo == 1, m, n, a, lda, b, ldb); });
}

template <class T>
static int trsm_batched(Handle *h, int side, int uplo, int trans, int diag, int m, int n, const T *alpha, T **a, int lda,
                        T **b, int ldb, int count) {
  if (side != 1 || trans || diag || *alpha != T(1)) return complain("only X A = B is emulated", NOT_SUPPORTED);
  if (!lies_inside(a, count) || !lies_inside(b, count)) return complain("trsmBatched outside of memory", INVALID_VALUE);
  return enqueue(h, [=] {
    for (int i = 0; i < count; i++) solve(uplo == 1, m, n, a[i], lda, b[i], ldb);
  });
}

template <class T> static int getrf_batched(Handle *h, int n, T **all, int ld, int *pivots, int *info, int count) {
  if (!lies_inside(all, count) || !lies_inside(pivots, (uint64_t)n * count) || !lies_inside(info, count))
    return complain("getrfBatched outside of memory", INVALID_VALUE);
  return enqueue(h, [=] {
    for (int i = 0; i < count; i++) {
      Matrix whole(all[i], n, n, ld);
      info[i] = factor(whole, pivots + (size_t)i * n);
      whole.store(all[i], ld);
    }
  });
}

#define ROUTINES(X, T)                                                                                                  \
  CALL cublas##X##trsm_v2(Handle *h, int side, int uplo, int trans, int diag, int m, int n, const T *alpha, const T *a, \
                          int lda, T *b, int ldb) {                                                                     \
    return trsm(h, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);                                               \
  }                                                                                                                     \
  CALL cublas##X##trsmBatched(Handle *h, int side, int uplo, int trans, int diag, int m, int n, const T *alpha, T **a,  \
                              int lda, T **b, int ldb, int count) {                                                     \
    return trsm_batched(h, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, count);                                \
  }                                                                                                                     \
  CALL cublas##X##getrfBatched(Handle *h, int n, T **all, int ld, int *pivots, int *info, int count) {                  \
    return getrf_batched(h, n, all, ld, pivots, info, count);                                                           \
  }

ROUTINES(S, float)
ROUTINES(D, double)
ROUTINES(C, Complex)

CALL cublasCreate_v2(Handle **to) { return *to = new Handle(), SUCCESS; }
CALL cublasDestroy_v2(Handle *handle) { return delete handle, SUCCESS; }
CALL cublasSetStream_v2(Handle *handle, void *stream) { return handle->stream = stream, SUCCESS; }
