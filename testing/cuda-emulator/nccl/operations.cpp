// Use of the ranks' shared memory: each shows a chunk, all wait, each reads what it needs, all wait.
#include "shared.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace emulated_nccl {

enum { SUM = 0, MAX = 2, MIN = 3 };

size_t size_of(int dtype) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return dtype >= 0 && dtype < 10 ? sizes[dtype] : 0;
}

static float from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float value = exponent == 0 ? ldexpf(mantissa, -24) : ldexpf(mantissa | 1024, exponent - 25);
  if (exponent == 31) value = mantissa ? NAN : INFINITY;
  return bits >> 15 ? -value : value;
}

static uint16_t to_half(float value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  float size = fabsf(value);
  if (size == 0) return sign;
  if (size >= 65520.0f) return sign | 0x7c00;
  int exponent;
  frexpf(size, &exponent);
  // Units of the last place, to which rint rounds to even.
  int last = std::max(exponent - 11, -24);
  long units = lrintf(ldexpf(size, -last));
  if (last == -24) return sign | (uint16_t)units;
  return sign | (uint16_t)(((last + 25) << 10) + (units - 1024));
}

static float from_brain(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

static uint16_t to_brain(float value) {
  if (std::isnan(value)) return 0x7fc0;
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// NaN is passed over, as NCCL does.
template <class T> static T larger(T a, T b) { return a < b || a != a ? b : a; }
template <class T> static T smaller(T a, T b) { return b < a || a != a ? b : a; }

template <class T, class W> static T combine(T a, T b, int op) {
  if (op == SUM) return (T)((W)a + (W)b);
  return op == MAX ? larger(a, b) : smaller(a, b);
}

template <class T, class W> static void fold(unsigned char *to, const unsigned char *from, size_t n, int op) {
  for (size_t i = 0; i < n; i++) {
    T a, b;
    memcpy(&a, to + i * sizeof(T), sizeof(T));
    memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = combine<T, W>(a, b, op);
    memcpy(to + i * sizeof(T), &a, sizeof(T));
  }
}

template <float (*up)(uint16_t), uint16_t (*down)(float)>
static void fold_halves(unsigned char *to, const unsigned char *from, size_t n, int op) {
  for (size_t i = 0; i < n; i++) {
    uint16_t a, b;
    memcpy(&a, to + 2 * i, 2);
    memcpy(&b, from + 2 * i, 2);
    a = down(combine<float, float>(up(a), up(b), op));
    memcpy(to + 2 * i, &a, 2);
  }
}

static void fold(int dtype, unsigned char *to, const unsigned char *from, size_t n, int op) {
  switch (dtype) {
  case 0: return fold<int8_t, uint32_t>(to, from, n, op);
  case 1: return fold<uint8_t, uint32_t>(to, from, n, op);
  case 2: return fold<int32_t, uint32_t>(to, from, n, op);
  case 3: return fold<uint32_t, uint32_t>(to, from, n, op);
  case 4: return fold<int64_t, uint64_t>(to, from, n, op);
  case 5: return fold<uint64_t, uint64_t>(to, from, n, op);
  case 6: return fold_halves<from_half, to_half>(to, from, n, op);
  case 7: return fold<float, float>(to, from, n, op);
  case 8: return fold<double, double>(to, from, n, op);
  default: return fold_halves<from_brain, to_brain>(to, from, n, op);
  }
}

// Shows bytes, and waits for all. The second wait, before the next bytes, is the caller's.
static bool show(Comm &comm, const unsigned char *from, size_t bytes) {
  memcpy(comm.shared->shown[comm.rank], from, bytes);
  return barrier(comm);
}

static bool reduce(Comm &comm, const Call &call) {
  size_t each = size_of(call.dtype), parts = call.kind == Call::reduce_scatter ? comm.size : 1;
  for (size_t part = 0; part < parts; part++)
    for (size_t at = 0; at < call.count; at += CHUNK / each) {
      size_t n = std::min(CHUNK / each, call.count - at);
      if (!show(comm, call.from + (part * call.count + at) * each, n * each)) return false;
      if (parts == 1 || (int)part == comm.rank) {
        std::vector<unsigned char> sum(comm.shared->shown[0], comm.shared->shown[0] + n * each);
        for (int rank = 1; rank < comm.size; rank++) fold(call.dtype, sum.data(), comm.shared->shown[rank], n, call.op);
        memcpy(call.to + at * each, sum.data(), n * each);
      }
      if (!barrier(comm)) return false;
    }
  return true;
}

static bool gather(Comm &comm, const Call &call) {
  size_t bytes = call.count * size_of(call.dtype);
  for (size_t at = 0; at < bytes; at += CHUNK) {
    size_t n = std::min(CHUNK, bytes - at);
    if (!show(comm, call.from + at, n)) return false;
    for (int rank = 0; rank < comm.size; rank++) memcpy(call.to + rank * bytes + at, comm.shared->shown[rank], n);
    if (!barrier(comm)) return false;
  }
  return true;
}

// Goes on with a message as far as the other side lets it; true when it is over.
static bool go_on(Comm &comm, const Call &call, size_t &done) {
  bool sends = call.kind == Call::send;
  Message &m = sends ? comm.shared->messages[comm.rank][call.peer] : comm.shared->messages[call.peer][comm.rank];
  size_t bytes = call.count * size_of(call.dtype), n = std::min(CHUNK, bytes - done);
  bool full = m.written.load() != m.read.load();
  if (full == sends) return false;
  if (sends) {
    m.bytes = bytes;
    memcpy(m.chunk, call.from + done, n);
    m.written++;
  } else {
    if (m.bytes != bytes) {
      fprintf(stderr, "emulated NCCL: rank %d sends %zu bytes, and rank %d receives %zu\n", call.peer, (size_t)m.bytes, comm.rank,
              bytes);
      abort();
    }
    memcpy(call.to + done, m.chunk, n);
    m.read++;
  }
  done += n;
  return done == bytes;
}

// All ranks have to make the same calls: what differs would be a hang or garbage with NCCL, and ends the process here.
static bool agree(Comm &comm, const Call &call) {
  auto &own = comm.shared->what[comm.rank];
  own.count = call.count, own.call = call.kind, own.dtype = call.dtype, own.op = call.op;
  if (!barrier(comm)) return false;
  if (getenv("EMULATED_NCCL_CHECK"))
    for (int rank = 0; rank < comm.size; rank++)
      if (memcmp(&comm.shared->what[rank], &own, sizeof own)) {
        fprintf(stderr, "emulated NCCL: rank %d and rank %d call different collectives\n", rank, comm.rank);
        abort();
      }
  return barrier(comm);
}

void run(Comm &comm, const Call *calls, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const Call &call = calls[i];
    if (call.kind == Call::send || call.kind == Call::receive) continue;
    if (!agree(comm, call) || !(call.kind == Call::all_gather ? gather(comm, call) : reduce(comm, call))) return;
  }
  std::vector<size_t> done(count, 0);
  std::vector<bool> over(count, false);
  for (size_t left = count; left > 0 && !comm.aborted;) {
    left = 0;
    for (size_t i = 0; i < count; i++) {
      if (calls[i].kind != Call::send && calls[i].kind != Call::receive) continue;
      // Messages of a pair come in their order.
      bool first = true;
      for (size_t j = 0; j < i; j++)
        first &= over[j] || calls[j].kind != calls[i].kind || calls[j].peer != calls[i].peer;
      if (!over[i] && first) over[i] = go_on(comm, calls[i], done[i]);
      left += !over[i];
    }
    if (left) usleep(50);
  }
}

} // namespace emulated_nccl
