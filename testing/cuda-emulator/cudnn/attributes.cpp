// Attributes of descriptors, their types, how many values they take; all that a descriptor needs before it is finalized.
#include "descriptors.h"
#include <cstring>
#include <set>

namespace {
struct Row {
  int kind, name, type;
  int64_t least, most;
  bool required;
  int links_to;
};

const int NONE = -1, OPERATION = -2;

const Row ROWS[] = {
    {POINTWISE, 0, T_POINTWISE, 1, 1, true, NONE},
    {POINTWISE, 1, T_DATA, 1, 1, true, NONE},
    {POINTWISE, 9, T_INT64, 1, 1, false, NONE},
    {CONVOLUTION, 100, T_DATA, 1, 1, true, NONE},
    {CONVOLUTION, 101, T_CONVOLUTION, 1, 1, true, NONE},
    {CONVOLUTION, 102, T_INT64, 1, 3, true, NONE},
    {CONVOLUTION, 103, T_INT64, 1, 3, true, NONE},
    {CONVOLUTION, 104, T_INT64, 1, 3, true, NONE},
    {CONVOLUTION, 105, T_INT64, 1, 3, true, NONE},
    {CONVOLUTION, 106, T_INT64, 1, 1, true, NONE},
    {HEURISTICS, 200, T_HEURISTICS, 1, 1, true, NONE},
    {HEURISTICS, 201, T_DESCRIPTOR, 1, 1, true, GRAPH},
    {PLAN, 400, T_HANDLE, 1, 1, true, NONE},
    {PLAN, 401, T_DESCRIPTOR, 1, 1, true, CONFIG},
    {CONVOLVE, 700, T_FLOAT, 1, 1, true, NONE},
    {CONVOLVE, 701, T_FLOAT, 1, 1, true, NONE},
    {CONVOLVE, 702, T_DESCRIPTOR, 1, 1, true, CONVOLUTION},
    {CONVOLVE, 703, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE, 704, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE, 705, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE_INPUT, 706, T_FLOAT, 1, 1, true, NONE},
    {CONVOLVE_INPUT, 707, T_FLOAT, 1, 1, true, NONE},
    {CONVOLVE_INPUT, 708, T_DESCRIPTOR, 1, 1, true, CONVOLUTION},
    {CONVOLVE_INPUT, 709, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE_INPUT, 710, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE_INPUT, 711, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE_WEIGHT, 712, T_FLOAT, 1, 1, true, NONE},
    {CONVOLVE_WEIGHT, 713, T_FLOAT, 1, 1, true, NONE},
    {CONVOLVE_WEIGHT, 714, T_DESCRIPTOR, 1, 1, true, CONVOLUTION},
    {CONVOLVE_WEIGHT, 715, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE_WEIGHT, 716, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {CONVOLVE_WEIGHT, 717, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_POINTWISE, 750, T_DESCRIPTOR, 1, 1, true, POINTWISE},
    {OP_POINTWISE, 751, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_POINTWISE, 752, T_DESCRIPTOR, 1, 1, false, TENSOR},
    {OP_POINTWISE, 753, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_POINTWISE, 758, T_DESCRIPTOR, 1, 1, false, TENSOR},
    {GRAPH, 800, T_HANDLE, 1, 1, true, NONE},
    {GRAPH, 801, T_DESCRIPTOR, 1, 50, true, OPERATION},
    {TENSOR, 900, T_INT64, 1, 1, true, NONE},
    {TENSOR, 901, T_DATA, 1, 1, true, NONE},
    {TENSOR, 902, T_INT64, 1, 8, true, NONE},
    {TENSOR, 903, T_INT64, 1, 8, true, NONE},
    {TENSOR, 906, T_INT64, 1, 1, true, NONE},
    {TENSOR, 907, T_BOOL, 1, 1, false, NONE},
    {TENSOR, 908, T_BOOL, 1, 1, false, NONE},
    {PACK, 1000, T_INT64, 1, 64, true, NONE},
    {PACK, 1001, T_POINTER, 1, 64, true, NONE},
    {PACK, 1003, T_POINTER, 1, 1, false, NONE},
    {MATMUL, 1500, T_DATA, 1, 1, true, NONE},
    {OP_MATMUL, 1520, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_MATMUL, 1521, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_MATMUL, 1522, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_MATMUL, 1523, T_DESCRIPTOR, 1, 1, true, MATMUL},
    {REDUCTION, 1600, T_REDUCTION, 1, 1, true, NONE},
    {REDUCTION, 1601, T_DATA, 1, 1, true, NONE},
    {OP_REDUCTION, 1610, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_REDUCTION, 1611, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_REDUCTION, 1612, T_DESCRIPTOR, 1, 1, true, REDUCTION},
    {OP_RESHAPE, 2200, T_DESCRIPTOR, 1, 1, true, TENSOR},
    {OP_RESHAPE, 2201, T_DESCRIPTOR, 1, 1, true, TENSOR},
};

int bytes_of(int type) {
  switch (type) {
    case T_BOOL: return 1;
    case T_INT64: case T_HANDLE: case T_POINTER: case T_DESCRIPTOR: return 8;
    default: return 4;
  }
}

bool is_operation(int kind) {
  return kind == CONVOLVE || kind == CONVOLVE_WEIGHT || kind == CONVOLVE_INPUT || kind == OP_POINTWISE || kind == OP_MATMUL ||
         kind == OP_REDUCTION || kind == OP_RESHAPE;
}

int tensor(const Descriptor &d) {
  auto sizes = d.sizes(), strides = d.strides();
  if (sizes.size() != strides.size() || sizes.size() < 3 || sizes.size() > 5) return complain(BAD_SHAPE, "sizes and strides of a tensor");
  for (int64_t n : sizes)
    if (n < 1) return complain(BAD_SHAPE, "a tensor without elements");
  int64_t alignment = d.one<int64_t>(900);
  if (alignment < data_bytes(d.data()) || (alignment & (alignment - 1))) return complain(BAD_ALIGNMENT, "the alignment of a tensor");
  if (d.is_virtual() && d.is_by_value()) return complain(BAD_PARAM, "a tensor that is virtual and by value");
  return SUCCESS;
}

int convolution(const Descriptor &d) {
  size_t rank = d.one<int64_t>(106);
  for (int name : {102, 103, 104, 105}) {
    auto list = d.list<int64_t>(name);
    if (list.size() != rank) return complain(BAD_SHAPE, "a window with another number of axes");
    for (int64_t n : list)
      if (n < (name < 104)) return complain(BAD_PARAM, "a step below 1, or zeros below 0");
  }
  return SUCCESS;
}

int convolve(const Descriptor &d) {
  int first = d.kind == CONVOLVE ? 700 : d.kind == CONVOLVE_INPUT ? 706 : 712;
  const Descriptor *c = d.link(first + 2);
  const Descriptor *x = d.link(d.kind == CONVOLVE ? 704 : d.kind == CONVOLVE_INPUT ? 710 : 716);
  const Descriptor *w = d.link(d.kind == CONVOLVE ? 703 : d.kind == CONVOLVE_INPUT ? 709 : 715), *y = d.link(first + 5);
  size_t rank = c->one<int64_t>(106);
  auto xs = x->sizes(), ws = w->sizes(), ys = y->sizes();
  if (xs.size() != rank + 2 || ws.size() != rank + 2 || ys.size() != rank + 2) return complain(BAD_SHAPE, "the axes of a convolution");
  if (xs[0] != ys[0] || ws[0] != ys[1] || xs[1] % ws[1]) return complain(BAD_SHAPE, "the channels of a convolution");
  for (size_t i = 0; i < rank; i++) {
    int64_t room = xs[2 + i] + c->list<int64_t>(105)[i] + c->list<int64_t>(104)[i] - c->list<int64_t>(102)[i] * (ws[2 + i] - 1) - 1;
    if (room < 0 || room / c->list<int64_t>(103)[i] + 1 != ys[2 + i]) return complain(BAD_SHAPE, "the output's size of a convolution");
  }
  if (x->data() != w->data() || x->data() != y->data()) return complain(BAD_TYPE, "the dtypes of a convolution");
  if (d.one<float>(first) != 1 || d.one<float>(first + 1) != 0) return complain(NOT_SUPPORTED, "other factors than 1 and 0");
  return SUCCESS;
}

int matmul(const Descriptor &d) {
  auto a = d.link(1520)->sizes(), b = d.link(1521)->sizes(), c = d.link(1522)->sizes();
  size_t n = c.size();
  if (a.size() != n || b.size() != n || a[n - 2] != c[n - 2] || b[n - 1] != c[n - 1] || a[n - 1] != b[n - 2])
    return complain(BAD_SHAPE, "the sizes of a product");
  return SUCCESS;
}

int pointwise(const Descriptor &d) {
  int mode = d.link(750)->one<int>(0);
  size_t wanted = mode == EXP || mode == LOG || mode == IDENTITY || mode == INDEX ? 1 : mode == SELECT ? 3 : 2;
  size_t given = 1 + (d.link(752) != nullptr) + (d.link(758) != nullptr);
  if (given != wanted) return complain(BAD_PARAM, "the number of a function's operands");
  if (mode == INDEX && !d.link(750)->bytes.count(9)) return complain(BAD_PARAM, "indices without an axis");
  if (mode == SELECT && d.link(758)->data() != BOOLEAN) return complain(BAD_TYPE, "a choice by something else than bools");
  auto to = d.link(753)->sizes();
  for (int name : {751, 752, 758})
    if (const Descriptor *x = d.link(name)) {
      auto from = x->sizes();
      for (size_t i = 0; i < to.size(); i++)
        if (from.size() != to.size() || (from[i] != to[i] && from[i] != 1)) return complain(BAD_SHAPE, "operands that do not broadcast");
    }
  return SUCCESS;
}

int graph(const Descriptor &d) {
  std::map<int64_t, Descriptor *> known;
  std::set<int64_t> made;
  for (const Link &op : d.links.at(801)) {
    Operands operands = operands_of(op->kind);
    auto all = operands.reads;
    all.push_back(operands.writes);
    for (int name : all)
      if (Descriptor *t = op->link(name)) {
        auto at = known.emplace(t->id(), t).first;
        if (at->second != t) return complain(BAD_PARAM, "two tensors of one identity");
        bool writes = name == operands.writes;
        if (!writes && t->is_virtual() && !made.count(t->id())) return complain(BAD_PARAM, "a virtual tensor that nothing made");
        if (writes && !made.insert(t->id()).second) return complain(BAD_PARAM, "a tensor that is made twice");
        if (writes && t->is_by_value()) return complain(BAD_PARAM, "a result by value");
      }
  }
  return SUCCESS;
}

int pack(const Descriptor &d) {
  auto ids = d.list<int64_t>(1000);
  if (ids.size() != d.list<void *>(1001).size()) return complain(BAD_PARAM, "another number of pointers than of identities");
  if (std::set<int64_t>(ids.begin(), ids.end()).size() != ids.size()) return complain(BAD_PARAM, "an identity twice");
  return SUCCESS;
}
}  // namespace

Operands operands_of(int kind) {
  switch (kind) {
    case CONVOLVE: return {{703, 704}, 705};
    case CONVOLVE_INPUT: return {{709, 711}, 710};
    case CONVOLVE_WEIGHT: return {{716, 717}, 715};
    case OP_POINTWISE: return {{751, 752, 758}, 753};
    case OP_MATMUL: return {{1520, 1521}, 1522};
    case OP_REDUCTION: return {{1610}, 1611};
    default: return {{2200}, 2201};
  }
}

int set_attribute(Descriptor &d, int name, int type, int64_t count, const void *values, Link (*find)(const void *)) {
  if (d.finalized) return complain(BAD_PARAM, "an attribute of a descriptor that is finalized");
  for (const Row &row : ROWS) {
    if (row.kind != d.kind || row.name != name) continue;
    if (row.type != type) return complain(BAD_TYPE, "attribute " + std::to_string(name) + " of another type");
    if (count < row.least || count > row.most || !values) return complain(BAD_PARAM, "the count of attribute " + std::to_string(name));
    if (type != T_DESCRIPTOR) {
      d.bytes[name].assign((const unsigned char *)values, (const unsigned char *)values + count * bytes_of(type));
      return SUCCESS;
    }
    std::vector<Link> links;
    for (int64_t i = 0; i < count; i++) {
      Link link = find(((const void *const *)values)[i]);
      if (!link) return complain(BAD_NULL, "attribute " + std::to_string(name) + ": no descriptor");
      if (!link->finalized) return complain(NOT_FINALIZED, "attribute " + std::to_string(name) + ": a descriptor that is not finalized");
      bool fits = row.links_to == OPERATION ? is_operation(link->kind) : link->kind == row.links_to;
      if (!fits) return complain(BAD_KIND, "attribute " + std::to_string(name) + ": a descriptor of another kind");
      links.push_back(link);
    }
    d.links[name] = links;
    return SUCCESS;
  }
  return complain(BAD_PARAM, "a descriptor of kind " + std::to_string(d.kind) + " has no attribute " + std::to_string(name));
}

int finalize(Descriptor &d) {
  if (d.finalized) return complain(BAD_PARAM, "a descriptor that is finalized twice");
  for (const Row &row : ROWS)
    if (row.kind == d.kind && row.required && !d.bytes.count(row.name) && !d.links.count(row.name))
      return complain(BAD_PARAM, "attribute " + std::to_string(row.name) + " is missing");
  int status = SUCCESS;
  switch (d.kind) {
    case TENSOR: status = tensor(d); break;
    case CONVOLUTION: status = convolution(d); break;
    case CONVOLVE: case CONVOLVE_INPUT: case CONVOLVE_WEIGHT: status = convolve(d); break;
    case OP_MATMUL: status = matmul(d); break;
    case OP_POINTWISE: status = pointwise(d); break;
    case GRAPH: status = graph(d); break;
    case PACK: status = pack(d); break;
    default: break;
  }
  d.finalized = status == SUCCESS;
  return status;
}
