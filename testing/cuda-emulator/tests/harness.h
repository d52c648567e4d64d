// The emulated libraries as a program would load them, and what the tests are written with.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

typedef unsigned long long Address;
typedef void *Handle;

extern void *cuda, *nvrtc;

// Calls a function of the driver (cu...) or of NVRTC by its name.
template <typename... A> int call(const char *name, A... arguments) {
  void *function = dlsym(strncmp(name, "cu", 2) ? nvrtc : cuda, name);
  if (!function) {
    printf("no function %s\n", name);
    exit(1);
  }
  return ((int (*)(A...))function)(arguments...);
}

extern int failures;
#define EXPECT(got, wanted)                                                                                            \
  do {                                                                                                                 \
    auto g = (got);                                                                                                    \
    decltype(g) w = (wanted);                                                                                          \
    if (!(g == w)) {                                                                                                   \
      failures++;                                                                                                      \
      printf("%s:%d: %s is %g, not %g\n", __FILE__, __LINE__, #got, (double)g, (double)w);                             \
    }                                                                                                                  \
  } while (0)

struct Compiled {
  int result;
  std::string log, image;
  std::vector<std::string> names;
};
Compiled compile(const std::string &source, std::vector<const char *> expressions = {},
                 std::vector<const char *> options = {});
// A module of the source, which has to compile.
Handle module_of(const std::string &source);
Handle function_of(Handle module, const char *name);
int launch(Handle function, unsigned grid, unsigned block, unsigned shared, Handle stream, std::vector<void *> arguments);

template <typename T> Address upload(const std::vector<T> &values) {
  Address at = 0;
  EXPECT(call("cuMemAlloc_v2", &at, values.size() * sizeof(T)), 0);
  EXPECT(call("cuMemcpyHtoD_v2", at, (const void *)values.data(), values.size() * sizeof(T)), 0);
  return at;
}
template <typename T> std::vector<T> download(Address at, size_t count) {
  std::vector<T> values(count);
  EXPECT(call("cuMemcpyDtoH_v2", (void *)values.data(), at, count * sizeof(T)), 0);
  return values;
}

// The parts, each in a file of its own.
void test_driver();
void test_kernels();
void test_programs();
void test_graphs();
void test_errors();
