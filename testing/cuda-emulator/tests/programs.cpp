// The emulated NVRTC: logs, headers, options, name expressions.
#include "harness.h"

static void test_messages() {
  Compiled bad = compile("extern \"C\" __global__ void f(int *p) {\n  *p = missing;\n}\n");
  EXPECT(bad.result, 6);
  EXPECT(bad.log.find("test.cu(2): error: ") != std::string::npos, true);
  EXPECT(bad.log.find("1 error detected") != std::string::npos, true);
  EXPECT(compile("#include <cuda_fp16.h>\n__half x;").result, 0);
  EXPECT(compile("__half x;").result, 6);
  EXPECT(compile("#include <vector>").result, 6);
}

static void test_headers_and_options() {
  Handle program;
  const char *headers[] = {"#define TWO 2\n"}, *names[] = {"mine/two.h"};
  const char *source = "#include \"mine/two.h\"\nextern \"C\" {\n__global__ void f(int *p) { *p = TWO + THREE; }\n}";
  EXPECT(call("nvrtcCreateProgram", &program, source, "h.cu", 1, headers, names), 0);
  const char *options[] = {"-D", "THREE=3", "--std=c++17", "--fmad=false", "-arch=compute_90"};
  EXPECT(call("nvrtcCompileProgram", program, 5, options), 0);
  size_t size = 1;
  EXPECT(call("nvrtcGetCUBINSize", program, &size), 0);
  EXPECT(size, 0); // only PTX of a virtual architecture
  EXPECT(call("nvrtcGetPTXSize", program, &size), 0);
  std::string image(size, 0);
  EXPECT(call("nvrtcGetPTX", program, &image[0]), 0);
  Handle module = nullptr;
  EXPECT(call("cuModuleLoadData", &module, (const void *)image.data()), 0);
  Address out = upload(std::vector<int>{0});
  EXPECT(launch(function_of(module, "f"), 1, 1, 0, nullptr, {&out}), 0);
  EXPECT(download<int>(out, 1)[0], 5);
  EXPECT(call("nvrtcDestroyProgram", &program), 0);
}

static void test_expressions() {
  Compiled compiled = compile(R"(
struct Pair { char c; double d; };
template <typename T, int n> __global__ void scale(T *x, Pair p, T by) { x[threadIdx.x] *= by * n + (T)p.d; }
__constant__ int offset;)",
                              {"scale<float, 3>", "&scale<double,4>", "&offset"});
  EXPECT(compiled.result, 0);
  if (compiled.result) return (void)printf("%s\n", compiled.log.c_str());
  Handle module = nullptr;
  EXPECT(call("cuModuleLoadData", &module, (const void *)compiled.image.data()), 0);
  struct { char c; double d; } pair = {1, 0.5};
  Address f = upload(std::vector<float>{1, 2}), d = upload(std::vector<double>{1, 2}), global = 0;
  float by = 2;
  double twice = 2;
  EXPECT(launch(function_of(module, compiled.names[0].c_str()), 1, 2, 0, nullptr, {&f, &pair, &by}), 0);
  EXPECT(download<float>(f, 2)[1], 13);
  EXPECT(launch(function_of(module, compiled.names[1].c_str()), 1, 2, 0, nullptr, {&d, &pair, &twice}), 0);
  EXPECT(download<double>(d, 2)[1], 17);
  size_t size = 0;
  EXPECT(call("cuModuleGetGlobal_v2", &global, &size, module, compiled.names[2].c_str()), 0);
  EXPECT(size, 4);
}

// Many threads compile at once.
static void test_threads() {
  std::vector<std::thread> threads;
  int results[4];
  for (int i = 0; i < 4; i++)
    threads.emplace_back([i, &results] {
      results[i] = compile("extern \"C\" __global__ void f(int *p) { *p = " + std::to_string(i) + "; }").result;
    });
  for (auto &thread : threads) thread.join();
  for (int result : results) EXPECT(result, 0);
}

void test_programs() {
  test_messages();
  test_headers_and_options();
  test_expressions();
  test_threads();
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; i++) compile("extern \"C\" __global__ void f(float *p) { *p = expf(*p) + " + std::to_string(i) + "; }");
  auto time = std::chrono::steady_clock::now() - start;
  printf("a small kernel compiles in %d ms\n", (int)std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 10);
}
