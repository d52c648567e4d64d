// Modules (shared objects that the emulated NVRTC made), kernels and their launches.
#include "fiber.h"
#include "state.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

namespace emulated {

// `__shared__` variables, to be poisoned for every block. They are local variables that are static, without an initial
// value, and aligned as device.h does it: enough to tell them from others.
typedef std::vector<std::pair<void *, size_t>> SharedVariables;

struct Function {
  Device *device;
  std::string name; // in messages: the kernel's and the program's
  std::shared_ptr<SharedVariables> shared;
  const um_emulated_entry *entry;
  int dynamic_limit = shared_default;
};

struct Module {
  Device *device;
  void *library;
  std::shared_ptr<SharedVariables> shared;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// Never destroyed, as World.
static auto &modules = *new std::unordered_map<void *, std::unique_ptr<Module>>;
static auto &functions = *new std::unordered_map<void *, Function *>;

// The length of an ELF file that starts at `image`: its section headers are last. 0 if it is none.
static size_t elf_size(const void *image) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64) return 0;
  // A real compiler's code is for a GPU.
  if (header->e_type != ET_DYN) return 0;
  size_t size = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)((const char *)image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++)
    if (sections[i].sh_type != SHT_NOBITS) size = std::max<size_t>(size, sections[i].sh_offset + sections[i].sh_size);
  return size;
}

static std::shared_ptr<SharedVariables> shared_variables(const char *image, void *library) {
  auto found = std::make_shared<SharedVariables>();
  struct link_map *map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map)) return found;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(image + sections[i].sh_offset);
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); k++) {
      const Elf64_Sym &symbol = symbols[k];
      bool local = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && !strncmp(names + symbol.st_name, "_ZZ", 3);
      if (!local || symbol.st_value % 256 || !symbol.st_shndx || symbol.st_shndx >= header->e_shnum) continue;
      if (sections[symbol.st_shndx].sh_type == SHT_NOBITS)
        found->emplace_back((void *)(map->l_addr + symbol.st_value), symbol.st_size);
    }
  }
  return found;
}

static CUresult load(Device *device, const void *image, CUmodule *handle) {
  if (!image || !handle) return CUDA_ERROR_INVALID_VALUE;
  size_t size = elf_size(image);
  if (!size) return CUDA_ERROR_INVALID_IMAGE;
  // The loader knows libraries by name and by inode: every module gets a file of its own, gone once it is mapped.
  static std::atomic<unsigned> loaded{0};
  const char *folder = getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/emulated-cuda-module-" +
                     std::to_string(getpid()) + "-" + std::to_string(loaded++) + ".so";
  unlink(path.c_str());
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return CUDA_ERROR_UNKNOWN;
  ssize_t n = 1;
  for (size_t done = 0; done < size && n > 0; done += n) n = write(file, (const char *)image + done, size - done);
  close(file);
  void *library = n > 0 ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) fprintf(stderr, "emulated CUDA: %s\n", n > 0 ? dlerror() : "cannot write a module");
  unlink(path.c_str());
  if (!library) return CUDA_ERROR_INVALID_IMAGE;
  auto module = std::make_unique<Module>();
  module->device = device;
  module->library = library;
  module->shared = shared_variables((const char *)image, library);
  *handle = module.get();
  std::lock_guard<std::mutex> guard(world().lock);
  modules[*handle] = std::move(module);
  return CUDA_SUCCESS;
}

// The lock must be held.
static void unload(Module &module) {
  for (auto &function : module.functions) functions.erase(function.second.get());
  auto &memory = world().memory;
  for (auto it = memory.begin(); it != memory.end();) {
    Dl_info of;
    void *map = nullptr, *own = nullptr;
    bool here = it->second.kind == Kind::global && dladdr1((void *)it->first, &of, &map, RTLD_DL_LINKMAP) &&
                !dlinfo(module.library, RTLD_DI_LINKMAP, &own) && map == own;
    it = here ? memory.erase(it) : std::next(it);
  }
  dlclose(module.library);
}

void free_modules_of(Device *device) {
  std::lock_guard<std::mutex> guard(world().lock);
  for (auto it = modules.begin(); it != modules.end();) {
    if (it->second->device == device) {
      unload(*it->second);
      it = modules.erase(it);
    } else {
      ++it;
    }
  }
}

static Module *module_of(CUmodule handle) {
  auto found = modules.find(handle);
  return found == modules.end() ? nullptr : found->second.get();
}

static Function *function_of(CUfunction handle) {
  std::lock_guard<std::mutex> guard(world().lock);
  auto found = functions.find(handle);
  return found == functions.end() ? nullptr : found->second;
}

// The parameters of a launch, copied when it is asked for.
struct Parameters {
  std::vector<std::unique_ptr<char[]>> bytes;
  std::vector<void *> at;
};

static bool copy_parameters(const um_emulated_entry &entry, void **parameters, void **extra, Parameters *to) {
  const char *buffer = nullptr;
  size_t offset = 0;
  for (; !parameters && extra && *extra; extra += 2)
    if (*extra == (void *)1) buffer = (const char *)extra[1]; // CU_LAUNCH_PARAM_BUFFER_POINTER
  if (entry.count && !parameters && !buffer) return false;
  for (unsigned i = 0; i < entry.count; i++) {
    size_t size = entry.sizes[i], alignment = entry.alignments[i];
    offset = (offset + alignment - 1) / alignment * alignment;
    to->bytes.emplace_back(new char[size + alignment]);
    uintptr_t at = ((uintptr_t)to->bytes.back().get() + alignment - 1) / alignment * alignment;
    memcpy((void *)at, parameters ? parameters[i] : buffer + offset, size);
    to->at.push_back((void *)at);
    offset += size;
  }
  return true;
}

} // namespace emulated

using namespace emulated;

CUDA_CALL cuModuleLoadData(CUmodule *module, const void *image) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  {
    std::lock_guard<std::mutex> guard(world().lock);
    if (device->total - device->used < number_of_environment("EMULATED_CUDA_MODULE", 0))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return load(device, image, module);
}

CUDA_CALL cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, int *, void **) {
  return cuModuleLoadData(module, image);
}

CUDA_CALL cuModuleUnload(CUmodule handle) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  wait_for_device(device);
  std::lock_guard<std::mutex> guard(world().lock);
  Module *module = module_of(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  unload(*module);
  modules.erase(handle);
  return CUDA_SUCCESS;
}

CUDA_CALL cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Module *module = module_of(module_handle);
  if (!module || !name) return CUDA_ERROR_INVALID_HANDLE;
  auto &function = module->functions[name];
  if (!function) {
    auto *entry = (const um_emulated_entry *)dlsym(module->library, ("um_emulated_entry_" + std::string(name)).c_str());
    if (!entry || !entry->call) {
      module->functions.erase(name);
      return CUDA_ERROR_NOT_FOUND;
    }
    auto *program = (const char *)dlsym(module->library, "um_emulated_program");
    std::string full = std::string(name) + (program ? " of " + std::string(program) : "");
    function.reset(new Function{module->device, full, module->shared, entry});
    functions[function.get()] = function.get();
  }
  *handle = function.get();
  return CUDA_SUCCESS;
}

CUDA_CALL cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  std::lock_guard<std::mutex> guard(world().lock);
  Module *module = module_of(handle);
  if (!module || !name) return CUDA_ERROR_INVALID_HANDLE;
  uintptr_t at = 0;
  size_t length = 0;
  if (auto *entry = (const um_emulated_entry *)dlsym(module->library, ("um_emulated_entry_" + std::string(name)).c_str())) {
    at = (uintptr_t)entry->object;
    length = entry->object_size;
  } else if (void *symbol = dlsym(module->library, name)) {
    Dl_info info;
    const ElfW(Sym) *of = nullptr;
    if (!dladdr1(symbol, &info, (void **)&of, RTLD_DL_SYMENT) || !of) return CUDA_ERROR_NOT_FOUND;
    at = (uintptr_t)symbol;
    length = of->st_size;
  }
  if (!at) return CUDA_ERROR_NOT_FOUND;
  world().memory[at] = {at, length, Kind::global, module->device};
  if (address) *address = at;
  if (size) *size = length;
  return CUDA_SUCCESS;
}

CUDA_CALL cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  Function *function = function_of(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
  case 0: *value = max_threads; break;
  case 4: *value = 32; break;
  case 5: case 6: *value = 90; break;
  case 8: *value = function->dynamic_limit; break;
  default: *value = 0;
  }
  return CUDA_SUCCESS;
}

CUDA_CALL cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  Function *function = function_of(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const um_emulated_entry &entry = *function->entry;
  if (!offset || index >= entry.count) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (size_t i = 0; i <= index; i++) {
    *offset = (*offset + entry.alignments[i] - 1) / entry.alignments[i] * entry.alignments[i];
    if (i < index) *offset += entry.sizes[i];
  }
  if (size) *size = entry.sizes[index];
  return CUDA_SUCCESS;
}

CUDA_CALL cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  Function *function = function_of(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == 8) { // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if (value < 0 || value > shared_opt_in()) return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_limit = value;
  }
  return CUDA_SUCCESS;
}

CUDA_CALL cuFuncSetCacheConfig(CUfunction handle, int) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  return function_of(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int block_size, size_t) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (!function_of(handle)) return CUDA_ERROR_INVALID_HANDLE;
  if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = block_size > max_threads ? 0 : std::min(32, 2048 / block_size);
  return CUDA_SUCCESS;
}

CUDA_CALL cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle, size_t (*)(int), size_t, int limit) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  if (!function_of(handle)) return CUDA_ERROR_INVALID_HANDLE;
  *block = limit > 0 && limit < max_threads ? limit : max_threads;
  *grid = multiprocessors * (2048 / *block);
  return CUDA_SUCCESS;
}

CUresult emulated::kernel_work(Device *device, CUfunction handle, const unsigned grid[3], const unsigned block[3],
                               unsigned shared, void **kernel_parameters, void **extra, std::function<void()> *run) {
  Function *function = function_of(handle);
  if (!function || function->device != device) return CUDA_ERROR_INVALID_HANDLE;
  const dim3 g(grid[0], grid[1], grid[2]), b(block[0], block[1], block[2]);
  bool fits = g.x && g.y && g.z && b.x && b.y && b.z && g.x <= 2147483647u && g.y <= 65535 && g.z <= 65535 && b.z <= 64 &&
              b.x <= max_threads && b.y <= max_threads && b.x * b.y * b.z <= max_threads;
  if (!fits || (int64_t)shared > std::max(function->dynamic_limit, 0)) return CUDA_ERROR_INVALID_VALUE;
  auto parameters = std::make_shared<Parameters>();
  if (!copy_parameters(*function->entry, kernel_parameters, extra, parameters.get())) return CUDA_ERROR_INVALID_VALUE;
  *run = [=, name = function->name, entry = function->entry, variables = function->shared] {
    Launch launch = {entry, name.c_str(), g, b, shared, parameters->at.data(), *variables};
    std::string message;
    if (CUresult error = run_grid(launch, &message)) break_device(device, error, message);
  };
  return CUDA_SUCCESS;
}

CUDA_CALL cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, CUstream stream_handle, void **kernel_parameters, void **extra) {
  Device *device;
  if (CUresult error = enter(&device)) return error;
  auto stream = stream_of(device, stream_handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  std::function<void()> run;
  if (CUresult error = kernel_work(device, handle, grid, block, shared, kernel_parameters, extra, &run)) return error;
  enqueue_work(stream, NodeKind::kernel, 0, run);
  return CUDA_SUCCESS;
}
