// cuFFT's one-dimensional transforms on the emulated driver, in double, in stream order. It is strict where NVIDIA's
// library would read or write astray: lines and the workspace lie inside of allocations, addresses are aligned, and
// transforms back to real numbers destroy their input. EMULATED_CUFFT=0: cufftGetVersion fails.
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#define FFT_CALL extern "C" __attribute__((visibility("default"))) int

typedef unsigned long long CUdeviceptr;
extern "C" int emulatedLaunchOwned(void *stream, void (*function)(void *), void *data, void (*release)(void *));
extern "C" int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address);
extern "C" int cuCtxGetCurrent(void **context);

enum { SUCCESS = 0, INVALID_PLAN = 1, INVALID_VALUE = 4, EXEC_FAILED = 6, SETUP_FAILED = 7, INVALID_SIZE = 8 };
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29 };

typedef std::complex<float> Complex;
typedef std::complex<double> Wide;

struct Side {
  long long step, distance;
};
struct Plan {
  bool allocates = true, made = false;
  int type = 0;
  long long n = 0, count = 0;
  Side in{}, out{};
  size_t workspace = 0;
  void *stream = nullptr;
  unsigned char *area = nullptr;
};

static std::mutex lock;
static std::map<int, Plan> plans;
static int last = 0;

static int complain(const char *what) {
  fprintf(stderr, "emulated cuFFT: %s\n", what);
  return INVALID_VALUE;
}

static Plan *find(int handle) {
  std::lock_guard<std::mutex> held(lock);
  auto found = plans.find(handle);
  return found == plans.end() ? nullptr : &found->second;
}

// ---- transforms -------------------------------------------------------------------------------------------------

static void transform(std::vector<Wide> &x, int sign) {
  size_t n = x.size(), p = 2;
  if (n == 1) return;
  while (n % p) p++;
  size_t rest = n / p;
  std::vector<std::vector<Wide>> parts(p, std::vector<Wide>(rest));
  for (size_t i = 0; i < n; i++) parts[i % p][i / p] = x[i];
  for (auto &part : parts) transform(part, sign);
  std::vector<Wide> waves(n);
  for (size_t i = 0; i < n; i++) waves[i] = std::polar(1.0, sign * 2 * M_PI * (double)i / (double)n);
  for (size_t k = 0; k < n; k++) {
    Wide sum = 0;
    for (size_t j = 0; j < p; j++) sum += waves[j * k % n] * parts[j][k % rest];
    x[k] = sum;
  }
}

struct Job {
  Plan plan;
  void *from, *to;
  int sign;
};

static void run(void *data) {
  Job &job = *(Job *)data;
  Plan &p = job.plan;
  if (p.workspace) memset(p.area, 0x5a, p.workspace);
  const float *real_in = (const float *)job.from;
  Complex *in = (Complex *)job.from, *out = (Complex *)job.to;
  float *real_out = (float *)job.to;
  long long half = p.n / 2 + 1;
  std::vector<std::vector<Wide>> lines(p.count, std::vector<Wide>(p.n));
  for (long long b = 0; b < p.count; b++)
    for (long long i = 0; i < p.n; i++) {
      long long mirrored = p.type == C2R && i >= half ? p.n - i : i;
      long long at = b * p.in.distance + mirrored * p.in.step;
      Wide x = p.type == R2C ? Wide(real_in[at]) : Wide(in[at]);
      lines[b][i] = mirrored == i ? x : std::conj(x);
    }
  for (long long b = 0; b < p.count; b++) {
    transform(lines[b], job.sign);
    for (long long i = 0; p.type == C2R && i < half; i++) in[b * p.in.distance + i * p.in.step] = Complex(NAN, NAN);
  }
  for (long long b = 0; b < p.count; b++)
    for (long long i = 0; i < (p.type == R2C ? half : p.n); i++) {
      long long at = b * p.out.distance + i * p.out.step;
      // As NVIDIA's: what is ignored in the mathematics is not ignored here.
      if (p.type == C2R) real_out[at] = (float)(lines[b][i].real() + lines[b][i].imag());
      else out[at] = Complex(lines[b][i]);
    }
}

static void release(void *data) { delete (Job *)data; }

static bool lies_inside(const void *first, uint64_t bytes) {
  CUdeviceptr base = 0, at = (CUdeviceptr)first;
  size_t size = 0;
  return !cuMemGetAddressRange_v2(&base, &size, at) && at + bytes <= base + size;
}

static uint64_t bytes_of(const Plan &p, bool input) {
  bool real = p.type == (input ? R2C : C2R), half = p.type == (input ? C2R : R2C);
  const Side &side = input ? p.in : p.out;
  long long n = half ? p.n / 2 + 1 : p.n;
  return ((p.count - 1) * side.distance + (n - 1) * side.step + 1) * (real ? 4 : 8);
}

static int execute(int handle, int type, void *from, void *to, int sign) {
  Plan *plan = find(handle);
  if (!plan || !plan->made) return complain("a plan that is none"), INVALID_PLAN;
  if (plan->type != type || (sign != 1 && sign != -1)) return complain("a plan of another type");
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) || !context) return complain("no context is current");
  if ((uintptr_t)from % 8 || (uintptr_t)to % 8) return complain("an address that is not aligned to a complex number");
  if (from == to && (type != C2C || plan->in.step != plan->out.step || plan->in.distance != plan->out.distance))
    return complain("only complex numbers are transformed in place here");
  if (!lies_inside(from, bytes_of(*plan, true)) || !lies_inside(to, bytes_of(*plan, false)))
    return complain("lines outside of memory");
  if (plan->workspace && (!plan->area || (uintptr_t)plan->area % 256 || !lies_inside(plan->area, plan->workspace)))
    return complain("a workspace outside of memory, or badly aligned");
  return emulatedLaunchOwned(plan->stream, run, new Job{*plan, from, to, sign}, release) ? EXEC_FAILED : SUCCESS;
}

FFT_CALL cufftExecC2C(int plan, void *from, void *to, int sign) { return execute(plan, C2C, from, to, sign); }
FFT_CALL cufftExecR2C(int plan, void *from, void *to) { return execute(plan, R2C, from, to, -1); }
FFT_CALL cufftExecC2R(int plan, void *from, void *to) { return execute(plan, C2R, from, to, 1); }

// ---- plans ------------------------------------------------------------------------------------------------------

FFT_CALL cufftGetVersion(int *version) {
  const char *wanted = getenv("EMULATED_CUFFT");
  *version = 12000;
  return wanted && !strcmp(wanted, "0") ? SETUP_FAILED : SUCCESS;
}

FFT_CALL cufftCreate(int *handle) {
  std::lock_guard<std::mutex> held(lock);
  plans[*handle = ++last];
  return SUCCESS;
}

FFT_CALL cufftDestroy(int handle) {
  std::lock_guard<std::mutex> held(lock);
  return plans.erase(handle) ? SUCCESS : INVALID_PLAN;
}

FFT_CALL cufftSetAutoAllocation(int handle, int allocates) {
  Plan *plan = find(handle);
  if (!plan || plan->made) return INVALID_PLAN;
  plan->allocates = allocates;
  return SUCCESS;
}

FFT_CALL cufftMakePlanMany64(int handle, int rank, long long *n, long long *rows_in, long long step_in,
                             long long distance_in, long long *rows_out, long long step_out, long long distance_out,
                             int type, long long count, size_t *workspace) {
  Plan *plan = find(handle);
  if (!plan || plan->made) return INVALID_PLAN;
  if (rank != 1 || !rows_in || !rows_out) return complain("only one axis with strides is emulated");
  if (plan->allocates) return complain("workspaces of its own are not emulated");
  if (*n < 1 || count < 1 || step_in < 1 || step_out < 1 || distance_in < 1 || distance_out < 1) return INVALID_SIZE;
  plan->type = type;
  plan->n = *n;
  plan->count = count;
  plan->in = {step_in, distance_in};
  plan->out = {step_out, distance_out};
  // Long transforms "go by way of" a workspace.
  plan->workspace = *workspace = *n > 64 ? 8 * *n : 0;
  plan->made = true;
  return SUCCESS;
}

FFT_CALL cufftSetStream(int handle, void *stream) {
  Plan *plan = find(handle);
  if (!plan) return INVALID_PLAN;
  plan->stream = stream;
  return SUCCESS;
}

FFT_CALL cufftSetWorkArea(int handle, void *area) {
  Plan *plan = find(handle);
  if (!plan || plan->allocates) return INVALID_PLAN;
  plan->area = (unsigned char *)area;
  return SUCCESS;
}
