// Compiled programs on disk: tests compile the same kernels over and over.
#pragma once

#include <string>

namespace emulated {

// The file for what was compiled from `key`; empty if nothing is kept. EMULATED_CUDA_CACHE names the folder (otherwise it
// is `cache` beside the library), or is 0.
std::string cache_file(const std::string &library_folder, const std::string &key);

// Whether it was there.
bool cache_read(const std::string &file, std::string *image);
void cache_write(const std::string &file, const std::string &image);

} // namespace emulated
