#pragma once

#include <string>

namespace emulated {

bool write_file(const std::string &path, const std::string &text);
bool read_file(const std::string &path, std::string *text);

} // namespace emulated
