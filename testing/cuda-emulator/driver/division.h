#pragma once

namespace emulated {

// In a handler of SIGFPE: gives the division that was refused the result that CUDA's has (all bits and the dividend for
// one by zero) and goes on behind it. False if it was no integer division.
bool divide_as_gpu(void *context);

} // namespace emulated
