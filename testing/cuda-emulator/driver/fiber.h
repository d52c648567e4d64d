// Runs the grid of a kernel on the calling thread.
#pragma once

#include "../device/abi.h"
#include <string>
#include <utility>
#include <vector>

namespace emulated {

struct Launch {
  const um_emulated_entry *entry;
  const char *name;
  dim3 grid, block;
  unsigned dynamic_shared;
  void **parameters;
  // The `__shared__` variables of the module, which every block finds poisoned.
  const std::vector<std::pair<void *, size_t>> &shared;
};

// 0, or the error that the kernel ended with.
int run_grid(const Launch &launch, std::string *message);

} // namespace emulated
