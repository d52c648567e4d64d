// What a compiled module and the emulated driver share. Included by both, so nothing of a standard library is used here.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// Operations in which the lanes of a warp take part together.
enum um_emulated_warp_op {
  UM_EMULATED_SYNC,
  UM_EMULATED_SHUFFLE, // the result is the value of lane `source`
  UM_EMULATED_BALLOT,
  UM_EMULATED_MATCH,
  UM_EMULATED_ADD,
  UM_EMULATED_MIN,
  UM_EMULATED_MAX,
  UM_EMULATED_UMIN,
  UM_EMULATED_UMAX,
  UM_EMULATED_AND,
  UM_EMULATED_OR,
  UM_EMULATED_XOR,
};

// One per module: where its code finds the thread it is, and how it reaches the driver.
struct um_emulated_state {
  uint3 thread, block;
  dim3 block_dim, grid_dim;
  unsigned lane;
  unsigned dynamic_shared;
  char *shared;
  // Waits for the threads of the block; returns (count of true predicates) | (all true) << 32.
  unsigned long long (*barrier)(int predicate);
  unsigned long long (*warp)(int op, unsigned mask, unsigned long long value, unsigned source);
  unsigned (*active)();
  void (*yield)();
  void (*fail)(int error, const char *message);
};

// One per kernel (or per variable that a name expression names).
struct um_emulated_entry {
  void (*call)(void **parameters);
  unsigned count;
  const unsigned *sizes, *alignments;
  um_emulated_state *state;
  void *object;
  unsigned object_size;
};
