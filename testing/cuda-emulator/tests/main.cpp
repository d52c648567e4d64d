// emulator_test FOLDER: checks the emulated libraries in that folder.
#include "harness.h"

void *cuda, *nvrtc;
int failures;

Compiled compile(const std::string &source, std::vector<const char *> expressions, std::vector<const char *> options) {
  Compiled out;
  Handle program;
  EXPECT(call("nvrtcCreateProgram", &program, source.c_str(), "test.cu", 0, nullptr, nullptr), 0);
  for (auto expression : expressions) EXPECT(call("nvrtcAddNameExpression", program, expression), 0);
  options.push_back("--gpu-architecture=sm_90");
  out.result = call("nvrtcCompileProgram", program, (int)options.size(), options.data());
  size_t size = 0;
  call("nvrtcGetProgramLogSize", program, &size);
  out.log.resize(size);
  call("nvrtcGetProgramLog", program, &out.log[0]);
  if (!out.result) {
    EXPECT(call("nvrtcGetCUBINSize", program, &size), 0);
    out.image.resize(size);
    EXPECT(call("nvrtcGetCUBIN", program, &out.image[0]), 0);
    for (auto expression : expressions) {
      const char *name = nullptr;
      EXPECT(call("nvrtcGetLoweredName", program, expression, &name), 0);
      out.names.push_back(name);
    }
  }
  EXPECT(call("nvrtcDestroyProgram", &program), 0);
  return out;
}

Handle module_of(const std::string &source) {
  Compiled compiled = compile(source);
  EXPECT(compiled.result, 0);
  if (compiled.result) printf("%s\n", compiled.log.c_str());
  Handle module = nullptr;
  EXPECT(call("cuModuleLoadData", &module, (const void *)compiled.image.data()), 0);
  return module;
}

Handle function_of(Handle module, const char *name) {
  Handle function = nullptr;
  EXPECT(call("cuModuleGetFunction", &function, module, name), 0);
  return function;
}

int launch(Handle function, unsigned grid, unsigned block, unsigned shared, Handle stream, std::vector<void *> arguments) {
  return call("cuLaunchKernel", function, grid, 1u, 1u, block, 1u, 1u, shared, stream, arguments.data(), (void **)nullptr);
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  setenv("EMULATED_CUDA_DEVICES", "2", 1);
  setenv("EMULATED_CUDA_MEMORY", "268435456", 1);
  setenv("EMULATED_CUDA_GUARD", "page", 1);
  std::string folder = std::string(arguments[1]) + "/";
  cuda = dlopen((folder + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  nvrtc = dlopen((folder + "libnvrtc.so.13").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!cuda || !nvrtc) {
    printf("%s\n", dlerror());
    return 1;
  }
  test_driver();
  test_kernels();
  test_programs();
  test_graphs();
  test_errors();
  // The process ends while a kernel runs; nothing of it may crash or wait.
  Handle busy = module_of("extern \"C\" __global__ void busy() { for (volatile int i = 0; i < 1000; i++) {} }");
  EXPECT(launch(function_of(busy, "busy"), 1000000, 256, 0, nullptr, {}), 0);
  printf("%s: %d failures\n", failures ? "FAILED" : "ok", failures);
  return failures != 0;
}
