// What is read out of a program's text, and what is changed in it before g++ sees it.
#pragma once

#include <string>
#include <vector>

namespace emulated {

// The text with comments and literals blanked, of the same length: what a scan may look into.
std::string blanked(const std::string &text);

// The names of the kernels with C linkage: `extern "C" __global__ void NAME(`.
std::vector<std::string> kernels_of(const std::string &text, const std::string &blank);

// The text in the dialect of device.h: `extern __shared__ T name[];` becomes a pointer to the dynamic shared memory.
std::string rewritten(const std::string &text, const std::string &blank);

} // namespace emulated
