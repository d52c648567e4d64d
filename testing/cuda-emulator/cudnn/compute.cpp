// Operations of a graph one after another, in double; what is between them is rounded to its dtype.
#include "descriptors.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace {
typedef std::vector<int64_t> Sizes;

struct Values {
  Sizes sizes;
  std::vector<double> at;
};

int64_t count(const Sizes &sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

double load(const unsigned char *p, int data) {
  switch (data) {
    case FLOAT: { float x; memcpy(&x, p, 4); return x; }
    case HALF: { _Float16 x; memcpy(&x, p, 2); return (double)(float)x; }
    case BFLOAT16: { uint16_t bits; memcpy(&bits, p, 2); uint32_t wide = (uint32_t)bits << 16; float x; memcpy(&x, &wide, 4); return x; }
    case INT32: { int32_t x; memcpy(&x, p, 4); return x; }
    default: return *p;
  }
}

uint16_t bfloat(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void store(unsigned char *p, int data, double value) {
  float single = (float)value;
  switch (data) {
    case FLOAT: memcpy(p, &single, 4); break;
    case HALF: { _Float16 x = (_Float16)single; memcpy(p, &x, 2); break; }
    case BFLOAT16: { uint16_t x = bfloat(single); memcpy(p, &x, 2); break; }
    case INT32: { int32_t x = (int32_t)value; memcpy(p, &x, 4); break; }
    default: *p = value != 0;
  }
}

double rounded(double value, int data) {
  unsigned char bytes[4];
  store(bytes, data, value);
  return load(bytes, data);
}

// The place of a row-major index of `sizes` in other sizes, each of which divides its own or is a multiple of it.
int64_t place(int64_t index, const Sizes &sizes, const Sizes &other) {
  int64_t at = 0, step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    int64_t i = index % sizes[d];
    index /= sizes[d];
    at += i * other[d] / sizes[d] * step;
    step *= other[d];
  }
  return at;
}

Values pointwise(const Descriptor &op, const Sizes &to, const Values &x, const Values *b, const Values *t) {
  int mode = op.link(750)->one<int>(0);
  int64_t axis = op.link(750)->one<int64_t>(9);
  Values y{to, std::vector<double>(count(to))};
  int64_t below = 1;
  for (size_t d = axis + 1; mode == INDEX && d < to.size(); d++) below *= to[d];
  for (int64_t i = 0; i < (int64_t)y.at.size(); i++) {
    double p = x.at[place(i, to, x.sizes)], q = b ? b->at[place(i, to, b->sizes)] : 0;
    bool chosen = t && t->at[place(i, to, t->sizes)] != 0;
    switch (mode) {
      case ADD: y.at[i] = p + q; break;
      case MULTIPLY: y.at[i] = p * q; break;
      case MAXIMUM: y.at[i] = std::fmax(p, q); break;
      case DIVIDE: y.at[i] = p / q; break;
      case SUBTRACT: y.at[i] = p - q; break;
      case EXP: y.at[i] = std::exp(p); break;
      case LOG: y.at[i] = std::log(p); break;
      case IDENTITY: y.at[i] = p; break;
      case GREATER_EQUAL: y.at[i] = p >= q; break;
      case INDEX: y.at[i] = (double)(i / below % to[axis]); break;
      case SELECT: y.at[i] = chosen ? p : q; break;
      default: y.at[i] = NAN;
    }
  }
  return y;
}

Values reduce(const Descriptor &op, const Sizes &to, const Values &x) {
  bool sums = op.link(1612)->one<int>(1600) == 0;
  Values y{to, std::vector<double>(count(to), sums ? 0 : -INFINITY)};
  for (int64_t i = 0; i < (int64_t)x.at.size(); i++) {
    double &total = y.at[place(i, x.sizes, to)];
    total = sums ? total + x.at[i] : std::fmax(total, x.at[i]);
  }
  return y;
}

Values matmul(const Sizes &to, const Values &a, const Values &b) {
  size_t rank = to.size();
  int64_t m = to[rank - 2], n = to[rank - 1], k = a.sizes[rank - 1];
  Values c{to, std::vector<double>(count(to))};
  auto outer = [&](const Sizes &sizes) { return Sizes(sizes.begin(), sizes.end() - 2); };
  Sizes batch = outer(to), of_a = outer(a.sizes), of_b = outer(b.sizes);
  for (int64_t i = 0; i < count(batch); i++) {
    const double *p = &a.at[place(i, batch, of_a) * m * k], *q = &b.at[place(i, batch, of_b) * k * n];
    double *r = &c.at[i * m * n];
    for (int64_t row = 0; row < m; row++)
      for (int64_t j = 0; j < k; j++)
        for (int64_t column = 0; column < n; column++) r[row * n + column] += p[row * k + j] * q[j * n + column];
  }
  return c;
}

// The last two axes swapped.
Values transposed(const Sizes &to, const Values &x) {
  size_t rank = to.size();
  int64_t m = to[rank - 2], n = to[rank - 1];
  Values y{to, std::vector<double>(count(to))};
  for (int64_t i = 0; i < count(to); i++) {
    int64_t matrix = i / (m * n), row = i / n % m, column = i % n;
    y.at[i] = x.at[(matrix * n + column) * m + row];
  }
  return y;
}

// Calls `meet` with the places in input, weight and output of each product that a convolution has.
template <class Meet> void convolve(const Descriptor &c, const Sizes &xs, const Sizes &ws, const Sizes &ys, Meet meet) {
  size_t rank = xs.size() - 2;
  auto spread = c.list<int64_t>(102), stride = c.list<int64_t>(103), low = c.list<int64_t>(105);
  int64_t each = ys[1] / (xs[1] / ws[1]), taps = 1;
  for (size_t d = 0; d < rank; d++) taps *= ws[2 + d];
  for (int64_t i = 0; i < count(ys); i++) {
    int64_t rest = i;
    Sizes o(rank);
    for (size_t d = rank; d-- > 0; rest /= ys[2 + d]) o[d] = rest % ys[2 + d];
    int64_t out = rest % ys[1], n = rest / ys[1];
    for (int64_t channel = 0; channel < ws[1]; channel++)
      for (int64_t tap = 0; tap < taps; tap++) {
        int64_t left = tap, at = 0, step = 1;
        bool inside = true;
        for (size_t d = rank; d-- > 0; left /= ws[2 + d]) {
          int64_t p = o[d] * stride[d] - low[d] + left % ws[2 + d] * spread[d];
          inside = inside && p >= 0 && p < xs[2 + d];
          at += p * step;
          step *= xs[2 + d];
        }
        if (inside) meet((n * xs[1] + out / each * ws[1] + channel) * step + at, (out * ws[1] + channel) * taps + tap, i);
      }
  }
}

Values convolved(const Descriptor &op, const Sizes &to, const Values &first, const Values &second) {
  Values r{to, std::vector<double>(count(to))};
  if (op.kind == CONVOLVE)
    convolve(*op.link(702), second.sizes, first.sizes, to, [&](int64_t x, int64_t w, int64_t y) { r.at[y] += second.at[x] * first.at[w]; });
  else if (op.kind == CONVOLVE_INPUT)
    convolve(*op.link(708), to, first.sizes, second.sizes, [&](int64_t x, int64_t w, int64_t y) { r.at[x] += first.at[w] * second.at[y]; });
  else
    convolve(*op.link(714), first.sizes, to, second.sizes, [&](int64_t x, int64_t w, int64_t y) { r.at[w] += first.at[x] * second.at[y]; });
  return r;
}

unsigned char *element(const Descriptor &t, void *first, int64_t index) {
  auto sizes = t.sizes(), strides = t.strides();
  int64_t at = 0;
  for (size_t d = sizes.size(); d-- > 0; index /= sizes[d]) at += index % sizes[d] * strides[d];
  return (unsigned char *)first + at * data_bytes(t.data());
}
}  // namespace

void compute(const Descriptor &graph, const std::map<int64_t, void *> &memory, const std::map<int64_t, uint32_t> &numbers) {
  std::map<int64_t, Values> known;
  for (const Link &op : graph.links.at(801)) {
    Operands operands = operands_of(op->kind);
    std::vector<const Values *> given;
    for (int name : operands.reads) {
      const Descriptor *t = op->link(name);
      if (t && !known.count(t->id())) {
        Values values{t->sizes(), std::vector<double>(count(t->sizes()))};
        for (int64_t i = 0; i < (int64_t)values.at.size(); i++) {
          if (t->is_by_value()) values.at[i] = load((const unsigned char *)&numbers.at(t->id()), t->data());
          else values.at[i] = load(element(*t, memory.at(t->id()), i), t->data());
        }
        known[t->id()] = values;
      }
      given.push_back(t ? &known[t->id()] : nullptr);
    }
    const Descriptor &t = *op->link(operands.writes);
    Sizes to = t.sizes();
    Values made;
    switch (op->kind) {
      case OP_POINTWISE: made = pointwise(*op, to, *given[0], given[1], given[2]); break;
      case OP_REDUCTION: made = reduce(*op, to, *given[0]); break;
      case OP_MATMUL: made = matmul(to, *given[0], *given[1]); break;
      case OP_RESHAPE: made = transposed(to, *given[0]); break;
      default: made = convolved(*op, to, *given[0], *given[1]);
    }
    for (int64_t i = 0; i < (int64_t)made.at.size(); i++) {
      made.at[i] = rounded(made.at[i], t.data());
      if (!t.is_virtual()) store(element(t, memory.at(t.id()), i), t.data(), made.at[i]);
    }
    known[t.id()] = made;
  }
}
