// cuBLASLt's products on the emulated driver: naive sums in stream order. It is strict where NVIDIA's library would read
// or write astray: attributes have their sizes, matrices and the workspace lie inside of allocations, addresses are
// aligned as the preference promised. EMULATED_CUBLASLT=0: cublasLtCreate fails, as on a device that is too old.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define LT_CALL extern "C" __attribute__((visibility("default")))

typedef unsigned long long CUdeviceptr;
extern "C" int emulatedLaunchOwned(void *stream, void (*function)(void *), void *data, void (*release)(void *));
extern "C" int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address);
extern "C" int cuCtxGetCurrent(void **context);

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_16BF = 75, COMPUTE_32F_FAST_TF32 = 77 };

struct Operation {
  int compute, scale;
  int32_t transpose[2];
};
struct Layout {
  int type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch;
  int64_t step;
};
struct Preference {
  uint64_t workspace;
  uint32_t reductions;
  uint32_t alignment[4];
};
struct Algorithm {
  uint64_t made;
  uint64_t workspace;
  uint64_t alignment[4];
  uint64_t unused[2];
};
struct Found {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 64 && sizeof(Found) == 96, "as cublasLt.h has them");

static const uint64_t MADE = 0x6c7461656d756c65;

static int complain(const char *what) {
  fprintf(stderr, "emulated cuBLASLt: %s\n", what);
  return INVALID_VALUE;
}

template <class T> static int set(T *to, const void *value, size_t size) {
  if (!value || size != sizeof(T)) return complain("an attribute of another size");
  memcpy(to, value, size);
  return SUCCESS;
}

// ---- numbers ----------------------------------------------------------------------------------------------------

struct Brain {
  uint16_t bits;
  operator float() const {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, 4);
    return x;
  }
  Brain &operator=(float x) {
    uint32_t wide;
    memcpy(&wide, &x, 4);
    bits = (uint16_t)(x != x ? wide >> 16 | 0x40 : (wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    return *this;
  }
};

static int bytes_of(int type) {
  switch (type) {
    case R_16F: case R_16BF: return 2;
    case R_32F: return 4;
    case R_64F: case C_32F: return 8;
    default: return 0;
  }
}

static bool numbers_are_known(int type, const Operation *o) {
  bool single = o->compute == COMPUTE_32F || o->compute == COMPUTE_32F_FAST_TF32 || o->compute == COMPUTE_32F_FAST_16BF;
  switch (type) {
    case R_32F: return single && o->scale == R_32F;
    case R_16F: case R_16BF: return o->compute == COMPUTE_32F && o->scale == R_32F;
    case R_64F: return o->compute == COMPUTE_64F && o->scale == R_64F;
    case C_32F: return single && o->scale == C_32F;
    default: return false;
  }
}

// ---- products ---------------------------------------------------------------------------------------------------

struct Job {
  Operation operation;
  Layout a, b, d;
  const void *left, *right;
  void *out;
  uint64_t m, n, k;
  unsigned char *workspace;
  size_t workspace_bytes;
};

// A factor as tensor cores take it.
template <class T> static T factor(T x, int) { return x; }
static float factor(float x, int compute) {
  if (compute == COMPUTE_32F_FAST_16BF) {
    Brain rounded;
    return rounded = x;
  }
  if (compute != COMPUTE_32F_FAST_TF32 || !std::isfinite(x)) return x;
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = (bits + 0x1000) & 0xffffe000;
  memcpy(&x, &bits, 4);
  return x;
}

template <class T, class Sum> static void multiply(const Job &job) {
  const int compute = job.operation.compute;
  for (int64_t i = 0; i < job.d.batch; i++) {
    const T *a = (const T *)job.left + i * job.a.step, *b = (const T *)job.right + i * job.b.step;
    T *d = (T *)job.out + i * job.d.step;
    uint64_t a_row = 1, a_col = job.a.ld, b_row = 1, b_col = job.b.ld;
    if (job.operation.transpose[0]) std::swap(a_row, a_col);
    if (job.operation.transpose[1]) std::swap(b_row, b_col);
    for (uint64_t col = 0; col < job.n; col++)
      for (uint64_t row = 0; row < job.m; row++) {
        Sum sum = Sum(0);
        for (uint64_t j = 0; j < job.k; j++) 
          sum += (Sum)factor(a[row * a_row + j * a_col], compute) * (Sum)factor(b[j * b_row + col * b_col], compute);
        d[row + col * job.d.ld] = sum;
      }
  }
}

static void run(void *data) {
  Job *job = (Job *)data;
  // What is given is used, so that a workspace that overlaps something shows.
  if (job->workspace_bytes) memset(job->workspace, 0x5a, job->workspace_bytes);
  switch (job->d.type) {
    case R_32F: multiply<float, float>(*job); break;
    case R_64F: multiply<double, double>(*job); break;
    case R_16F: multiply<_Float16, float>(*job); break;
    case R_16BF: multiply<Brain, float>(*job); break;
    case C_32F: multiply<std::complex<float>, std::complex<float>>(*job); break;
  }
}

static void release(void *data) { delete (Job *)data; }

static bool lies_inside(const void *first, const Layout *l) {
  CUdeviceptr base = 0, at = (CUdeviceptr)first;
  size_t size = 0;
  if (cuMemGetAddressRange_v2(&base, &size, at)) return false;
  uint64_t last = (l->batch - 1) * l->step + (l->cols - 1) * l->ld + l->rows;
  return at + last * bytes_of(l->type) <= base + size;
}

static int shapes(const Operation *o, const Layout *a, const Layout *b, const Layout *d, uint64_t *m, uint64_t *n,
                  uint64_t *k) {
  *m = o->transpose[0] ? a->cols : a->rows;
  *k = o->transpose[0] ? a->rows : a->cols;
  *n = o->transpose[1] ? b->rows : b->cols;
  if ((o->transpose[1] ? b->cols : b->rows) != *k || d->rows != *m || d->cols != *n)
    return complain("matrices whose sizes do not fit");
  if (a->batch != d->batch || b->batch != d->batch) return complain("batches of several sizes");
  if (a->type != d->type || b->type != d->type || !numbers_are_known(d->type, o)) return NOT_SUPPORTED;
  for (const Layout *l : {a, b, d}) {
    if (l->ld < (int64_t)l->rows || !l->rows || !l->cols) return complain("a leading dimension below the rows");
    if (l->step < 0 || l->batch < 1) return complain("a negative step of a batch");
  }
  return d->batch > 1 && d->step == 0 ? complain("results of a batch in one place") : SUCCESS;
}

LT_CALL int cublasLtMatmulAlgoGetHeuristic(void *handle, Operation *o, Layout *a, Layout *b, Layout *c, Layout *d,
                                           Preference *p, int wanted, Found *found, int *count) {
  if (!handle || !o || !a || !b || !c || !d || !p || wanted < 1 || !found || !count) return INVALID_VALUE;
  *count = 0;
  uint64_t m, n, k;
  if (int code = shapes(o, a, b, d, &m, &n, &k)) return code;
  memset(found, 0, sizeof *found);
  Algorithm *made = &found->algorithm;
  made->made = MADE;
  // Long sums "are split", which wants a workspace.
  made->workspace = found->workspace = k > 64 ? std::min<uint64_t>(p->workspace, m * n * 4) : 0;
  for (int i = 0; i < 4; i++) made->alignment[i] = p->alignment[i];
  found->waves = 1;
  *count = 1;
  return SUCCESS;
}

LT_CALL int cublasLtMatmul(void *handle, Operation *o, const void *alpha, const void *left, Layout *a,
                           const void *right, Layout *b, const void *beta, const void *c, Layout *c_layout, void *out,
                           Layout *d, const Algorithm *algorithm, void *workspace, size_t bytes, void *stream) {
  if (!handle || !o || !alpha || !beta || !a || !b || !d || !c_layout) return complain("something is NULL");
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) || !context) return complain("no context is current"), NOT_INITIALIZED;
  uint64_t m, n, k;
  if (int code = shapes(o, a, b, d, &m, &n, &k)) return code;
  // alpha and beta are host memory of the scale's type.
  const double one64 = 1;
  const float one32[2] = {1, 0};
  const size_t width = o->scale == R_32F ? 4 : 8;
  const char zero[8] = {};
  const bool is_one = !memcmp(alpha, o->scale == R_64F ? (const void *)&one64 : one32, width);
  if (!is_one || memcmp(beta, zero, width) || c != out) return complain("only 1 A B + 0 D is emulated");
  if (!algorithm || algorithm->made != MADE) return complain("an algorithm that no heuristic gave");
  const void *addresses[4] = {left, right, c, out};
  for (int i = 0; i < 4; i++)
    if ((uintptr_t)addresses[i] % algorithm->alignment[i]) return complain("an address below the promised alignment");
  if (bytes < algorithm->workspace) return complain("too little workspace");
  if (!lies_inside(left, a) || !lies_inside(right, b) || !lies_inside(out, d))
    return complain("a matrix outside of memory");
  if (algorithm->workspace) {
    CUdeviceptr base = 0, at = (CUdeviceptr)workspace;
    size_t size = 0;
    if (at % 256 || cuMemGetAddressRange_v2(&base, &size, at) || at + bytes > base + size)
      return complain("a workspace outside of memory, or badly aligned");
  }
  Job *job = new Job{*o, *a, *b, *d, left, right, out, m, n, k, (unsigned char *)workspace, algorithm->workspace};
  return emulatedLaunchOwned(stream, run, job, release) ? EXECUTION_FAILED : SUCCESS;
}

// ---- handles and descriptors ------------------------------------------------------------------------------------

LT_CALL size_t cublasLtGetVersion() { return 130000; }
LT_CALL const char *cublasLtGetStatusString(int code) { return code ? "an emulated failure" : "success"; }

LT_CALL int cublasLtCreate(void **handle) {
  const char *wanted = getenv("EMULATED_CUBLASLT");
  if (wanted && !strcmp(wanted, "0")) return NOT_INITIALIZED;
  *handle = new int(0);
  return SUCCESS;
}
LT_CALL int cublasLtDestroy(void *handle) { return delete (int *)handle, SUCCESS; }

LT_CALL int cublasLtMatmulDescCreate(Operation **made, int compute, int scale) {
  *made = new Operation{compute, scale, {0, 0}};
  return SUCCESS;
}
LT_CALL int cublasLtMatmulDescDestroy(Operation *o) { return delete o, SUCCESS; }
LT_CALL int cublasLtMatmulDescSetAttribute(Operation *o, int which, const void *value, size_t size) {
  return which == 3 || which == 4 ? set(&o->transpose[which - 3], value, size) : complain("an unknown attribute");
}

LT_CALL int cublasLtMatrixLayoutCreate(Layout **made, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *made = new Layout{type, rows, cols, ld, 1, 0};
  return SUCCESS;
}
LT_CALL int cublasLtMatrixLayoutDestroy(Layout *l) { return delete l, SUCCESS; }
LT_CALL int cublasLtMatrixLayoutSetAttribute(Layout *l, int which, const void *value, size_t size) {
  if (which == 5) return set(&l->batch, value, size);
  return which == 6 ? set(&l->step, value, size) : complain("an unknown attribute");
}

LT_CALL int cublasLtMatmulPreferenceCreate(Preference **made) {
  *made = new Preference{0, 7, {256, 256, 256, 256}};
  return SUCCESS;
}
LT_CALL int cublasLtMatmulPreferenceDestroy(Preference *p) { return delete p, SUCCESS; }
LT_CALL int cublasLtMatmulPreferenceSetAttribute(Preference *p, int which, const void *value, size_t size) {
  if (which == 1) return set(&p->workspace, value, size);
  if (which == 3) return set(&p->reductions, value, size);
  return which >= 5 && which <= 8 ? set(&p->alignment[which - 5], value, size) : complain("an unknown attribute");
}
