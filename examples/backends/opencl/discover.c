/* Which devices there are, and what they say of themselves. Nothing is opened here. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <ultramarine/helper.h>

#include "ocl.h"

/* Of extensions that the headers may not know. */
#define DEVICE_UUID 0x106A
#define DEVICE_PCI_BUS_INFO 0x410F
#define DEVICE_PCI_BUS_NV 0x4008
#define DEVICE_PCI_SLOT_NV 0x4009
#define DEVICE_PCI_DOMAIN_NV 0x400A

static cl_uint ask_uint(cl_device_id id, cl_device_info what) {
  cl_uint value = 0;
  if (clGetDeviceInfo(id, what, sizeof value, &value, NULL) != CL_SUCCESS) value = 0;
  return value;
}

static cl_ulong ask_ulong(cl_device_id id, cl_device_info what) {
  cl_ulong value = 0;
  if (clGetDeviceInfo(id, what, sizeof value, &value, NULL) != CL_SUCCESS) value = 0;
  return value;
}

bool has_extension(cl_device_id id, const char *name) {
  char list[8192];
  size_t length = strlen(name);
  memset(list, 0, sizeof list);
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof list - 1, list, NULL) != CL_SUCCESS) return false;
  for (const char *at = strstr(list, name); at; at = strstr(at + 1, name)) {
    bool starts = at == list || at[-1] == ' ';
    if (starts && (at[length] == ' ' || at[length] == 0)) return true;
  }
  return false;
}

bool shares_host_memory(cl_device_id id) { return ask_uint(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0; }

/* Usable: there, with a compiler, and of the byte order that the contract's scalars have. */
static bool usable(cl_device_id id) {
  return ask_uint(id, CL_DEVICE_AVAILABLE) && ask_uint(id, CL_DEVICE_COMPILER_AVAILABLE) &&
         ask_uint(id, CL_DEVICE_ENDIAN_LITTLE) && ask_uint(id, CL_DEVICE_ADDRESS_BITS) == 64;
}

/* Some devices are of several types: they count once, as the first. */
static bool listed(const struct found *list, uint32_t count, cl_device_id id) {
  for (uint32_t i = 0; i < count; i++) {
    if (list[i].id == id) return true;
  }
  return false;
}

static cl_uint find_platforms(cl_platform_id platforms[16], char *reason, size_t reason_size) {
  cl_uint count = 0;
  cl_int code = clGetPlatformIDs(16, platforms, &count);
  if (code != CL_SUCCESS || count == 0) {
    snprintf(reason, reason_size, "no OpenCL platform is installed (clGetPlatformIDs: %d); "
             "install the driver of your GPU or pocl-opencl-icd", code);
    return 0;
  }
  return count > 16 ? 16 : count;
}

static uint32_t find(struct found *list, char *reason, size_t reason_size) {
  static const cl_device_type kinds[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU};
  cl_platform_id platforms[16];
  cl_uint n_platforms = find_platforms(platforms, reason, reason_size);
  uint32_t count = 0;
  if (n_platforms == 0) return 0;
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    for (cl_uint p = 0; p < n_platforms; p++) {
      cl_device_id ids[MAX_DEVICES];
      cl_uint n = 0;
      if (clGetDeviceIDs(platforms[p], kinds[kind], MAX_DEVICES, ids, &n) != CL_SUCCESS) continue;
      for (cl_uint i = 0; i < n && i < MAX_DEVICES && count < MAX_DEVICES; i++) {
        if (!usable(ids[i]) || listed(list, count, ids[i])) continue;
        list[count++] = (struct found){platforms[p], ids[i], kinds[kind]};
      }
    }
  }
  if (count == 0) {
    snprintf(reason, reason_size, "none of the %u OpenCL platforms has a 64-bit little-endian device with a compiler",
             n_platforms);
  }
  return count;
}

/* Drivers start at the first question, and not all of them bear two at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool has_platforms(bool *beyond_host, char *reason, size_t reason_size) {
  cl_platform_id platforms[16];
  *beyond_host = false;
  pthread_mutex_lock(&lock);
  cl_uint count = find_platforms(platforms, reason, reason_size);
  for (cl_uint p = 0; p < count; p++) {
    char name[256] = "";
    if (clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name - 1, name, NULL) != CL_SUCCESS) continue;
    /* PoCL, and the CPU runtimes of Intel and others. */
    *beyond_host |= !strstr(name, "Portable Computing Language") && !strstr(name, "CPU");
  }
  pthread_mutex_unlock(&lock);
  return count > 0;
}

uint32_t discover(struct found *list, char *reason, size_t reason_size) {
  pthread_mutex_lock(&lock);
  uint32_t count = find(list, reason, reason_size);
  pthread_mutex_unlock(&lock);
  return count;
}

void identify(const struct found *found, um_device_identity *identity) {
  cl_device_id id = found->id;
  struct { cl_uint domain, bus, device, function; } pci;
  memset(identity, 0, sizeof *identity);
  identity->size = sizeof *identity;
  identity->memory = ask_ulong(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  if (clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof identity->name - 1, identity->name, NULL) != CL_SUCCESS) {
    snprintf(identity->name, sizeof identity->name, "OpenCL device");
  }
  if (has_extension(id, "cl_khr_device_uuid") &&
      clGetDeviceInfo(id, DEVICE_UUID, 16, identity->uuid, NULL) == CL_SUCCESS) {
    identity->known |= UM_IDENTITY_UUID;
  }
  if (has_extension(id, "cl_khr_pci_bus_info") &&
      clGetDeviceInfo(id, DEVICE_PCI_BUS_INFO, sizeof pci, &pci, NULL) == CL_SUCCESS) {
    identity->pci_domain = pci.domain;
    identity->pci_bus = pci.bus;
    identity->pci_device = pci.device;
    identity->pci_function = pci.function;
    identity->known |= UM_IDENTITY_PCI;
  } else if (has_extension(id, "cl_nv_device_attribute_query")) {
    cl_uint slot = ask_uint(id, DEVICE_PCI_SLOT_NV);
    identity->pci_domain = ask_uint(id, DEVICE_PCI_DOMAIN_NV);
    identity->pci_bus = ask_uint(id, DEVICE_PCI_BUS_NV);
    identity->pci_device = slot >> 3;
    identity->pci_function = slot & 7;
    identity->known |= UM_IDENTITY_PCI;
  }
}

um_status device_info(void *handle, uint32_t index, um_device_info *info, um_error **error) {
  struct backend *backend = handle;
  if (index >= backend->count || !info) return fail(error, UM_INVALID, "there is no OpenCL device %u", index);
  const struct found *found = &backend->found[index];
  cl_device_id id = found->id;
  um_device_info filled;
  memset(&filled, 0, sizeof filled);
  uint32_t all = (1u << UM_DTYPE_COUNT) - 1;
  if (!has_extension(id, "cl_khr_fp64")) all &= ~(1u << UM_DTYPE_FLOAT64);
  cl_device_fp_config config = ask_ulong(id, CL_DEVICE_SINGLE_FP_CONFIG);
  identify(found, &filled.identity);
  filled.size = sizeof filled;
  /* Every dtype can be stored and moved: that takes no arithmetic. */
  filled.dtypes_storage = (1u << UM_DTYPE_COUNT) - 1;
  filled.dtypes_arithmetic = all;
  filled.dtypes_accumulate = 1u << UM_DTYPE_FLOAT16 | 1u << UM_DTYPE_BFLOAT16;
  filled.memory = filled.identity.memory;
  memcpy(filled.name, filled.identity.name, sizeof filled.name);
  filled.flags = UM_DEVICE_DETERMINISTIC | (config & CL_FP_DENORM ? 0 : UM_DEVICE_FLUSHES_SUBNORMALS);
  if (fuses(found)) {
    filled.fused_max_instructions = FUSED_INSTRUCTIONS;
    filled.fused_max_inputs = FUSED_TENSORS - 2;
  }
  filled.max_inputs = MAX_TENSORS - 1;
  filled.alignment = ask_uint(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  filled.max_buffer = ask_ulong(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  UM_SET_TEXT(filled.kernel_languages, "opencl-c");
  um_write_sized(info, &filled, sizeof filled);
  return UM_OK;
}
