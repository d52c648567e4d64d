// cuSOLVER's decompositions that the backend calls, on the emulated driver, in stream order. Matrices, workspaces and words
// on the result have to lie inside of allocations. EMULATED_CUSOLVER=0: cusolverDnCreate fails.
#include "algorithms.h"
#include "general.h"

enum { SUCCESS = 0, INVALID_VALUE = 3, EXECUTION_FAILED = 6 };
// Elements of every workspace.
static const int OWN = 32;

static int wrong(const char *what) { return complain(what, INVALID_VALUE); }

static int enqueue(Handle *handle, std::function<void()> work) {
  return launch(handle, work) ? EXECUTION_FAILED : SUCCESS;
}

template <class T> static bool own(T *work, int size) {
  if (size < OWN || !lies_inside(work, OWN)) return false;
  return true;
}

static int size(int *to) {
  *to = OWN;
  return SUCCESS;
}

template <class T> static void cholesky_of(T *a, int n, int ld, bool upper, int *info) {
  Matrix whole(a, n, n, ld);
  if (upper) whole = whole.adjoint();
  Matrix former = whole;
  *info = cholesky(whole);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < j; i++) whole.at(i, j) = former.at(i, j);
  if (upper) whole = whole.adjoint();
  whole.store(a, ld);
}

template <class T> static int potrf(Handle *h, int uplo, int n, T *a, int ld, T *work, int room, int *info) {
  if (!matrix_lies_inside(a, n, n, ld) || !own(work, room) || !lies_inside(info, 1)) return wrong("potrf outside of memory");
  return enqueue(h, [=] {
    memset((void *)work, 0x5a, OWN * sizeof(T));
    cholesky_of(a, n, ld, uplo == 1, info);
  });
}

template <class T> static int potrf_batched(Handle *h, int uplo, int n, T **all, int ld, int *info, int count) {
  if (!lies_inside(all, count) || !lies_inside(info, count)) return wrong("potrfBatched outside of memory");
  // The addresses are known when it runs, where the driver may not be asked.
  return enqueue(h, [=] {
    for (int b = 0; b < count; b++) cholesky_of(all[b], n, ld, uplo == 1, info + b);
  });
}

template <class T> static int getrf(Handle *h, int m, int n, T *a, int ld, T *work, int *pivots, int *info) {
  if (!matrix_lies_inside(a, m, n, ld) || !own(work, OWN) || !lies_inside(pivots, std::min(m, n)) || !lies_inside(info, 1))
    return wrong("getrf outside of memory");
  return enqueue(h, [=] {
    memset((void *)work, 0x5a, OWN * sizeof(T));
    Matrix whole(a, m, n, ld);
    *info = factor(whole, pivots);
    whole.store(a, ld);
  });
}

template <class T> static int geqrf(Handle *h, int m, int n, T *a, int ld, T *tau, T *work, int room, int *info) {
  if (!matrix_lies_inside(a, m, n, ld) || !own(work, room) || !lies_inside(tau, std::min(m, n)) || !lies_inside(info, 1))
    return wrong("geqrf outside of memory");
  return enqueue(h, [=] {
    memset((void *)work, 0x5a, OWN * sizeof(T));
    Matrix whole(a, m, n, ld);
    std::vector<Wide> found = reflections(whole);
    whole.store(a, ld);
    for (size_t i = 0; i < found.size(); i++) put(tau[i], found[i]);
    *info = 0;
  });
}

template <class T>
static int orgqr(Handle *h, int m, int n, int k, T *a, int ld, const T *tau, T *work, int room, int *info) {
  if (!matrix_lies_inside(a, m, n, ld) || !own(work, room) || !lies_inside(tau, k) || !lies_inside(info, 1))
    return wrong("orgqr outside of memory");
  return enqueue(h, [=] {
    memset((void *)work, 0x5a, OWN * sizeof(T));
    Matrix whole(a, m, n, ld);
    orthonormal(whole, n, k, std::vector<Wide>(tau, tau + k)).store(a, ld);
    *info = 0;
  });
}

template <class T, class R>
static int eigen_of(Handle *h, int with, int uplo, int n, T *a, int ld, R *values, T *work, int room, int *info, int count) {
  if (!matrix_lies_inside(a, n, n * count, ld) || !own(work, room) || !lies_inside(values, (uint64_t)n * count) ||
      !lies_inside(info, count))
    return wrong("syevd outside of memory");
  return enqueue(h, [=] {
    memset((void *)work, 0x5a, OWN * sizeof(T));
    for (int b = 0; b < count; b++) {
      T *matrix = a + (size_t)b * ld * n;
      Matrix whole(matrix, n, n, ld);
      if (uplo == 1) whole = whole.adjoint();
      std::vector<double> found = eigen(whole);
      for (int i = 0; i < n; i++) values[b * n + i] = (R)found[i];
      if (with) whole.store(matrix, ld);
      info[b] = 0;
    }
  });
}

template <class T, class R>
static int singular_of(Handle *h, int with, int econ, int m, int n, T *a, int lda, R *values, T *u, int ldu, T *v, int ldv,
                       T *work, int room, int *info, int count) {
  const int k = std::min(m, n), left = econ ? k : m, right = econ ? k : n;
  if (!matrix_lies_inside(a, m, n * count, lda) || !own(work, room) || !lies_inside(values, (uint64_t)k * count) ||
      !lies_inside(info, count) || ldu < m || ldv < n ||
      (with && (!matrix_lies_inside(u, m, left * count, ldu) || !matrix_lies_inside(v, n, right * count, ldv))))
    return wrong("gesvdj outside of memory");
  return enqueue(h, [=] {
    memset((void *)work, 0x5a, OWN * sizeof(T));
    for (int b = 0; b < count; b++) {
      T *matrix = a + (size_t)b * lda * n;
      Matrix to_u(m, left), to_v(n, right);
      std::vector<double> found = singular(Matrix(matrix, m, n, lda), to_u, to_v);
      for (int i = 0; i < k; i++) values[b * k + i] = (R)found[i];
      if (with) {
        to_u.store(u + (size_t)b * ldu * left, ldu);
        to_v.store(v + (size_t)b * ldv * right, ldv);
      }
      // It is destroyed.
      for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) put(matrix[i + (size_t)j * lda], NAN);
      info[b] = 0;
    }
  });
}

static int small(int m, int n) { return m > 32 || n > 32 ? wrong("gesvdjBatched of matrices above 32 x 32") : SUCCESS; }

#define ROUTINES(X, Q, E, T, R)                                                                                          \
  CALL cusolverDn##X##potrf_bufferSize(Handle *, int, int, T *, int, int *to) { return size(to); }                       \
  CALL cusolverDn##X##potrf(Handle *h, int uplo, int n, T *a, int ld, T *work, int room, int *info) {                    \
    return potrf(h, uplo, n, a, ld, work, room, info);                                                                   \
  }                                                                                                                      \
  CALL cusolverDn##X##potrfBatched(Handle *h, int uplo, int n, T **all, int ld, int *info, int count) {                  \
    return potrf_batched(h, uplo, n, all, ld, info, count);                                                              \
  }                                                                                                                      \
  CALL cusolverDn##X##getrf_bufferSize(Handle *, int, int, T *, int, int *to) { return size(to); }                       \
  CALL cusolverDn##X##getrf(Handle *h, int m, int n, T *a, int ld, T *work, int *pivots, int *info) {                    \
    return getrf(h, m, n, a, ld, work, pivots, info);                                                                    \
  }                                                                                                                      \
  CALL cusolverDn##X##geqrf_bufferSize(Handle *, int, int, T *, int, int *to) { return size(to); }                       \
  CALL cusolverDn##X##geqrf(Handle *h, int m, int n, T *a, int ld, T *tau, T *work, int room, int *info) {               \
    return geqrf(h, m, n, a, ld, tau, work, room, info);                                                                 \
  }                                                                                                                      \
  CALL cusolverDn##X##Q##gqr_bufferSize(Handle *, int, int, int, T *, int, T *, int *to) { return size(to); }            \
  CALL cusolverDn##X##Q##gqr(Handle *h, int m, int n, int k, T *a, int ld, T *tau, T *work, int room, int *info) {       \
    return orgqr(h, m, n, k, a, ld, tau, work, room, info);                                                              \
  }                                                                                                                      \
  CALL cusolverDn##X##E##evd_bufferSize(Handle *, int, int, int, T *, int, R *, int *to) { return size(to); }            \
  CALL cusolverDn##X##E##evd(Handle *h, int with, int uplo, int n, T *a, int ld, R *w, T *work, int room, int *info) {   \
    return eigen_of(h, with, uplo, n, a, ld, w, work, room, info, 1);                                                    \
  }                                                                                                                      \
  CALL cusolverDn##X##E##evjBatched_bufferSize(Handle *, int, int, int, T *, int, R *, int *to, void *, int) {           \
    return size(to);                                                                                                     \
  }                                                                                                                      \
  CALL cusolverDn##X##E##evjBatched(Handle *h, int with, int uplo, int n, T *a, int ld, R *w, T *work, int room,         \
                                    int *info, void *options, int count) {                                               \
    return options ? eigen_of(h, with, uplo, n, a, ld, w, work, room, info, count) : INVALID_VALUE;                      \
  }                                                                                                                      \
  CALL cusolverDn##X##gesvdj_bufferSize(Handle *, int, int, int, int, T *, int, R *, T *, int, T *, int, int *to,        \
                                        void *) {                                                                        \
    return size(to);                                                                                                     \
  }                                                                                                                      \
  CALL cusolverDn##X##gesvdj(Handle *h, int with, int econ, int m, int n, T *a, int lda, R *s, T *u, int ldu, T *v,      \
                             int ldv, T *work, int room, int *info, void *options) {                                     \
    return options ? singular_of(h, with, econ, m, n, a, lda, s, u, ldu, v, ldv, work, room, info, 1) : INVALID_VALUE;   \
  }                                                                                                                      \
  CALL cusolverDn##X##gesvdjBatched_bufferSize(Handle *, int, int m, int n, T *, int, R *, T *, int, T *, int, int *to,  \
                                               void *, int) {                                                            \
    return size(to), small(m, n);                                                                                        \
  }                                                                                                                      \
  CALL cusolverDn##X##gesvdjBatched(Handle *h, int with, int m, int n, T *a, int lda, R *s, T *u, int ldu, T *v,         \
                                    int ldv, T *work, int room, int *info, void *options, int count) {                   \
    if (!options || small(m, n)) return INVALID_VALUE;                                                                   \
    return singular_of(h, with, 0, m, n, a, lda, s, u, ldu, v, ldv, work, room, info, count);                            \
  }

ROUTINES(S, or, sy, float, float)
ROUTINES(D, or, sy, double, double)
ROUTINES(C, un, he, Complex, float)

template <class T> static int made(T **to) { return *to = new T(), SUCCESS; }

CALL cusolverDnCreate(Handle **to) {
  const char *wanted = getenv("EMULATED_CUSOLVER");
  return wanted && !strcmp(wanted, "0") ? 1 : made(to);
}
CALL cusolverDnDestroy(Handle *handle) { return delete handle, SUCCESS; }
CALL cusolverDnSetStream(Handle *handle, void *stream) { return handle->stream = stream, SUCCESS; }
CALL cusolverDnCreateGesvdjInfo(int **to) { return made(to); }
CALL cusolverDnDestroyGesvdjInfo(int *options) { return delete options, SUCCESS; }
CALL cusolverDnCreateSyevjInfo(int **to) { return made(to); }
CALL cusolverDnDestroySyevjInfo(int *options) { return delete options, SUCCESS; }

// Data types, as CUDA numbers them: real or complex, of float32 or float64.
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };
static const size_t HOST_OWN = 48;

template <class T, class W>
static int geev(Handle *h, int with, int n, T *a, int lda, W *w, T *v, int ldv, void *work, size_t room, void *host,
                size_t host_room, int *info) {
  if (!matrix_lies_inside(a, n, n, lda) || !lies_inside(w, n) || !lies_inside(info, 1) ||
      (with && !matrix_lies_inside(v, n, n, ldv)) || room < OWN || !lies_inside((char *)work, OWN) || !host ||
      host_room < HOST_OWN)
    return wrong("geev outside of memory");
  return enqueue(h, [=] {
    memset(work, 0x5a, OWN);
    // It is there until the stream has got here.
    memset(host, 0x5a, HOST_OWN);
    std::vector<Wide> values;
    Matrix vectors(n, n);
    *info = general_eigen(Matrix(a, n, n, lda), values, vectors) ? 0 : 1;
    if (*info) return;
    if (sizeof(T) == sizeof(W) / 2) pack_pairs(values, vectors);
    for (int i = 0; i < n; i++) w[i] = W(values[i]);
    if (with) vectors.store(v, ldv);
  });
}

CALL cusolverDnCreateParams(int **to) { return made(to); }
CALL cusolverDnDestroyParams(int *options) { return delete options, SUCCESS; }
CALL cusolverDnXgeev_bufferSize(Handle *, int *params, int left, int, int64_t n, int of_a, void *, int64_t, int of_w, void *,
                                int, void *, int64_t, int of_v, void *, int64_t, int compute, size_t *device, size_t *host) {
  *device = OWN;
  *host = HOST_OWN;
  const bool types = of_v == of_a && compute == of_a && of_w == (of_a | C_32F);
  return params && left == 0 && n > 0 && types ? SUCCESS : wrong("Xgeev_bufferSize of other types");
}
CALL cusolverDnXgeev(Handle *h, int *params, int left, int with, int64_t n, int of_a, void *a, int64_t lda, int, void *w, int,
                     void *, int64_t, int, void *v, int64_t ldv, int, void *work, size_t room, void *host, size_t host_room,
                     int *info) {
  if (!params || left != 0) return wrong("Xgeev with left vectors");
  switch (of_a) {
  case R_32F:
    return geev(h, with, n, (float *)a, lda, (Complex *)w, (float *)v, ldv, work, room, host, host_room, info);
  case R_64F:
    return geev(h, with, n, (double *)a, lda, (Wide *)w, (double *)v, ldv, work, room, host, host_room, info);
  case C_32F:
    return geev(h, with, n, (Complex *)a, lda, (Complex *)w, (Complex *)v, ldv, work, room, host, host_room, info);
  default: return wrong("Xgeev of an unknown type");
  }
}
