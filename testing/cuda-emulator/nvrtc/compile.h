// Runs g++ on a program.
#pragma once

#include <string>
#include <vector>

namespace emulated {

struct Header {
  std::string name, text;
};

struct Compilation {
  std::string name;                 // of the program, in messages
  std::string text;                 // in the dialect of device.h
  std::string entries;              // what is appended to it
  std::vector<Header> headers;      // found by #include
  std::vector<std::string> options; // -I and -D
};

// Whether it compiled; `image` is then the shared object. The log has g++'s words in nvcc's form.
bool compile(const Compilation &what, std::string *image, std::string *log);

} // namespace emulated
