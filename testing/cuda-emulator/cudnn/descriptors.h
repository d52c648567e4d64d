// Descriptors of the emulated cuDNN: their attributes, and what is asked of them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

// cudnnStatus_t, and the enums of cudnn_graph.h that the backend uses.
enum Status {
  SUCCESS = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, BAD_NULL = 2002, BAD_ALIGNMENT = 2003, NOT_FINALIZED = 2004,
  BAD_SHAPE = 2008, BAD_TYPE = 2010, BAD_KIND = 2012, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000
};
enum Data { FLOAT = 0, HALF = 2, INT32 = 4, BFLOAT16 = 9, BOOLEAN = 11 };
enum Kind {
  POINTWISE = 0, CONVOLUTION = 1, ENGINE = 2, CONFIG = 3, HEURISTICS = 4, PLAN = 5, CONVOLVE = 10, CONVOLVE_WEIGHT = 11,
  CONVOLVE_INPUT = 12, OP_POINTWISE = 13, GRAPH = 15, PACK = 16, TENSOR = 17, MATMUL = 18, OP_MATMUL = 19, REDUCTION = 21,
  OP_REDUCTION = 22, OP_RESHAPE = 31
};
enum Type {
  T_HANDLE = 0, T_DATA = 1, T_BOOL = 2, T_INT64 = 3, T_FLOAT = 4, T_POINTER = 6, T_CONVOLUTION = 7, T_HEURISTICS = 8,
  T_NOTE = 11, T_POINTWISE = 14, T_DESCRIPTOR = 15, T_REDUCTION = 18
};
enum Mode { ADD = 0, MULTIPLY = 1, MAXIMUM = 3, DIVIDE = 6, SUBTRACT = 9, EXP = 13, LOG = 15, IDENTITY = 21, GREATER_EQUAL = 303, INDEX = 501, SELECT = 601 };
enum Note { TENSOR_CORE = 0, NONDETERMINISTIC = 4 };

struct Descriptor;
typedef std::shared_ptr<Descriptor> Link;

struct Descriptor {
  int kind;
  bool finalized = false;
  std::map<int, std::vector<unsigned char>> bytes;
  std::map<int, std::vector<Link>> links;
  // Of an engine and its configuration: the graph, and the place among the heuristics' results.
  Link graph;
  int place = 0;

  template <class T> std::vector<T> list(int name) const {
    auto found = bytes.find(name);
    if (found == bytes.end()) return {};
    const T *first = (const T *)found->second.data();
    return std::vector<T>(first, first + found->second.size() / sizeof(T));
  }
  template <class T> T one(int name, T otherwise = T()) const {
    std::vector<T> values = list<T>(name);
    return values.empty() ? otherwise : values[0];
  }
  Descriptor *link(int name) const {
    auto found = links.find(name);
    return found == links.end() || found->second.empty() ? nullptr : found->second[0].get();
  }
  std::vector<int64_t> sizes() const { return list<int64_t>(902); }
  std::vector<int64_t> strides() const { return list<int64_t>(903); }
  int64_t id() const { return one<int64_t>(906); }
  int data() const { return one<int>(901); }
  bool is_virtual() const { return one<bool>(907); }
  bool is_by_value() const { return one<bool>(908); }
};

inline int data_bytes(int data) { return data == HALF || data == BFLOAT16 ? 2 : data == BOOLEAN ? 1 : 4; }

// Notes why a call failed, for cudnnGetLastErrorString.
int complain(int status, const std::string &what);

// Names of an operation's tensors that are read, and of the one that is written.
struct Operands {
  std::vector<int> reads;
  int writes;
};
Operands operands_of(int kind);

int set_attribute(Descriptor &, int name, int type, int64_t count, const void *values, Link (*find)(const void *));
// Finalizes a descriptor whose attributes are all set, or says why that cannot be.
int finalize(Descriptor &);

// Computes a graph: addresses of tensors in memory, and numbers, by their identities.
void compute(const Descriptor &graph, const std::map<int64_t, void *> &memory, const std::map<int64_t, uint32_t> &numbers);
