/* What the files of the OpenCL backend share. */
#ifndef ULTRAMARINE_OPENCL_H
#define ULTRAMARINE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <pthread.h>
#include <stdbool.h>

#include <ultramarine/backend.h>


/* ---- errors (errors.c) -------------------------------------------------------------------------------------- */

/* Keeps the host's table, by whose functions errors are made. */
void errors_init(const um_host_table *host);
/* Sets the error object, if the caller wants one, and returns `code`. */
um_status fail(um_error **error, um_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Likewise for an OpenCL call that failed: out of memory is told apart. */
um_status fail_cl(um_error **error, const char *what, cl_int code);
/* Says that the error, if any, is of command `index` of the list that was submitted, and returns `code`. */
um_status fail_command(um_error **error, uint32_t index, um_status code);
/* Whether this process is a forked child of the one that initialised the backend. OpenCL does not survive that. */
bool forked(void);
um_status fail_forked(um_error **error);
/* Tensors with more axes than a kernel walks. */
um_status fail_axes(um_error **error);

/* ---- dtypes (layout.c) -------------------------------------------------------------------------------------- */

/* UM_DTYPE_... of a DLPack type, or UM_DTYPE_COUNT. */
uint32_t dtype_of(DLDataType type);
/* Bytes of an element. */
size_t dtype_size(uint32_t dtype);

static inline bool is_integer(uint32_t dtype) { return dtype >= UM_DTYPE_UINT8 && dtype <= UM_DTYPE_INT64; }
static inline bool is_half(uint32_t dtype) { return dtype == UM_DTYPE_FLOAT16 || dtype == UM_DTYPE_BFLOAT16; }
static inline bool is_real(uint32_t dtype) {
  return is_half(dtype) || dtype == UM_DTYPE_FLOAT32 || dtype == UM_DTYPE_FLOAT64;
}

/* ---- devices (discover.c, device.c) -------------------------------------------------------------------------- */

#define MAX_DEVICES 64

/* A device as the ICD loader lists it; nothing is opened for that. */
struct found {
  cl_platform_id platform;
  cl_device_id id;
  cl_device_type type;
};

struct program;

struct device {
  struct found found;
  uint32_t index;
  bool fp64;
  bool exact_division; /* float32 quotients and roots are correctly rounded on request */
  cl_uint compute_units;
  cl_context context;
  cl_command_queue copies; /* for copies without a stream */
  pthread_mutex_t lock;    /* of the programs */
  struct program *programs;
};

/* Work-items that it takes to keep a device busy. */
static inline uint64_t parallelism(const struct device *device) {
  return (uint64_t)device->compute_units * (device->found.type == CL_DEVICE_TYPE_CPU ? 8 : 1024);
}

/* Lists usable devices, GPUs first; at most MAX_DEVICES. Where there is none, `reason` says why. */
uint32_t discover(struct found *list, char *reason, size_t reason_size);
/* Whether there are platforms, and whether one of them may have more than the host's processor. */
bool has_platforms(bool *beyond_host, char *reason, size_t reason_size);
void identify(const struct found *found, um_device_identity *identity);
bool has_extension(cl_device_id id, const char *name);
/* Whether the device computes in the host's own memory. */
bool shares_host_memory(cl_device_id id);
um_status device_info(void *backend, uint32_t index, um_device_info *info, um_error **error);

um_status device_open(void *backend, uint32_t index, void **device, um_error **error);
void device_close(void *device);
um_status buffer_alloc(void *device, uint64_t bytes, void **buffer, um_error **error);
void buffer_free(void *device, void *buffer);
void *buffer_host_pointer(void *device, void *buffer);
um_status copy_to_device(void *device, void *stream, void *buffer, uint64_t offset, const void *source,
                         uint64_t bytes, um_error **error);
um_status copy_to_host(void *device, void *stream, void *buffer, uint64_t offset, void *target, uint64_t bytes,
                       um_error **error);
um_status stream_create(void *device, void **stream, um_error **error);
void stream_destroy(void *device, void *stream);
um_status stream_synchronize(void *device, void *stream, um_error **error);

/* The devices found at init; the backend handle of the table. */
struct backend {
  struct found found[MAX_DEVICES];
  uint32_t count;
};

/* ---- events (event.c) ---------------------------------------------------------------------------------------- */

um_status event_create(void *device, void **event, um_error **error);
um_status event_record(void *device, void *stream, void *event, uint64_t value, um_error **error);
um_status event_wait_stream(void *device, void *stream, void *event, uint64_t value, um_error **error);
um_status event_wait_host(void *device, void *event, uint64_t value, um_error **error);
uint64_t event_query(void *device, void *event);
void event_destroy(void *device, void *event);

/* ---- programs and kernels (program.c) ------------------------------------------------------------------------ */

/* A kernel with the lock that setting its arguments needs. */
struct kernel {
  cl_kernel handle;
  pthread_mutex_t lock;
  const char *name;
  struct kernel *next;
};

/* The source files by which programs are named. */
enum source {
  SOURCE_ELEMENTWISE,
  SOURCE_COMPLEX,
  SOURCE_CAST,
  SOURCE_MOVE,
  SOURCE_REDUCE,
  SOURCE_MATMUL,
  SOURCE_INDEX,
  SOURCE_SCATTER,
  SOURCE_SCAN,
  SOURCE_SORT,
  SOURCE_RANDOM,
  SOURCE_COUNT
};

/* The kernel `name` of a source compiled for a dtype and a variant; built at the first use, then kept with the
 * device. A build that fails comes back with its log. */
um_status kernel_get(struct device *device, enum source source, uint32_t dtype, uint32_t variant, const char *name,
                     struct kernel **kernel, um_error **error);
/* The kernel `name` of a program of `n` texts, known by the last of them. */
um_status kernel_of_text(struct device *device, const char *const *texts, uint32_t n, const char *name,
                         struct kernel **kernel, um_error **error);
/* Puts the texts of the functions of one dtype at the end of `texts`, with the names that they define bound to that
 * dtype by `prelude`; returns how many there are then. */
uint32_t texts_of_dtype(const char **texts, uint32_t n, const char *prelude, uint32_t dtype);
/* Likewise what every program begins with. */
uint32_t texts_of_all(const char **texts, uint32_t n);
void programs_release(struct device *device);

struct argument {
  size_t size;
  const void *value;
};
#define ARG(x) ((struct argument){sizeof(x), &(x)})

/* Work-items of a group in all one-dimensional kernels: GROUP of kernels/common.cl. */
#define GROUP 64

/* Enqueues a kernel over at least `global` work-items, in groups of `local`. */
um_status launch(cl_command_queue queue, struct kernel *kernel, cl_uint dimensions, const size_t *global,
                 const size_t *local, const struct argument *arguments, cl_uint n, um_error **error);
/* Likewise in one dimension, in groups of GROUP. */
um_status launch_1d(cl_command_queue queue, struct kernel *kernel, uint64_t items,
                    const struct argument *arguments, cl_uint n, um_error **error);

/* ---- tensors (layout.c) --------------------------------------------------------------------------------------- */

/* Dimensions that a kernel walks at most, after those that lie together were joined. */
#define MAX_AXES 16
/* Most inputs and outputs of a fused program, and the axes that it walks. */
#define FUSED_TENSORS 8
#define FUSED_AXES 8
#define FUSED_CONSTANTS 16
#define FUSED_INSTRUCTIONS 64
/* Tensors that are walked together at most. */
#define MAX_WALKED 4

/* How tensors are walked together: `Layout` of kernels/common.cl. Offsets and strides count elements. */
struct layout {
  cl_ulong n;
  cl_uint axes;
  cl_uint op;
  cl_long offset[MAX_WALKED];
  cl_ulong size[MAX_AXES];
  cl_long stride[MAX_WALKED][MAX_AXES];
};

/* A tensor of a command. The offset counts elements. */
struct view {
  cl_mem memory;
  int64_t offset;
  uint32_t dtype;
  int ndim;
  const int64_t *shape;
  const int64_t *strides;
};

/* What axes to walk: an extent and a step for each tensor. */
struct axis {
  uint64_t size;
  int64_t step[MAX_WALKED];
};

/* Joins axes that lie together for all of `tensors` tensors, drops those of size 1; returns how many are left. */
int axes_join(struct axis *axes, int count, int tensors);
/* Makes a layout of axes; false if there are too many. Offsets and op are left to the caller. */
bool layout_of(struct layout *layout, struct axis *axes, int count, int tensors);
/* The layout of tensors of one shape. */
bool layout_of_views(struct layout *layout, const struct view *const *views, int tensors);
uint64_t view_size(const struct view *view);
bool view_contiguous(const struct view *view);

/* ---- plans (plan.c and a file per group of ops) ----------------------------------------------------------------- */

/* What `prepare` knows of a tensor. */
struct desc {
  uint32_t dtype;
  int ndim;
  bool contiguous;
};

#define MAX_TENSORS 40
#define MAX_KERNELS 6

struct request {
  struct device *device;
  uint32_t op;
  const void *attributes;
  const struct desc *inputs;
  uint32_t n_inputs;
  const struct desc *outputs;
  uint32_t n_outputs;
};

struct job;

struct plan {
  um_status (*run)(struct job *job);
  uint64_t (*workspace)(const struct plan *plan, const struct view *inputs, const struct view *outputs);
  struct device *device;
  uint32_t op;
  uint32_t code; /* op within the family */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t dtypes[MAX_TENSORS]; /* of inputs, then outputs */
  union {
    um_reduce_attrs reduce;
    um_arg_reduce_attrs arg_reduce;
    um_scan_attrs scan;
    um_gather_attrs gather;
    um_scatter_attrs scatter;
    um_axis_attrs axis;
    um_scatter_axis_attrs scatter_axis;
    um_dynamic_slice_attrs dynamic_slice;
  } attributes;
  struct kernel *kernels[MAX_KERNELS];
  struct plan *fold; /* of a fused program with an epilogue */
};

/* A command under way. */
struct job {
  struct device *device;
  cl_command_queue queue;
  const struct plan *plan;
  const struct view *inputs;
  const struct view *outputs;
  const uint64_t (*scalars)[2];
  uint32_t n_scalars;
  cl_mem workspace;
  um_error **error;
};

/* Each makes a plan of its group of ops: UM_OK, UM_UNSUPPORTED, UM_NEEDS_CONTIGUOUS or an error. */
um_status prepare_elementwise(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_copy(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_reduce(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_scan(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_matmul(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_gather(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_scatter(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_dynamic_slice(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_sort(const struct request *request, struct plan *plan, um_error **error);
um_status prepare_random(const struct request *request, struct plan *plan, um_error **error);

/* What an elementwise op gives: its operand's dtype, bool, the float32 of complex64, or nothing that is known. */
enum rule { RULE_VALUE, RULE_TEST, RULE_PART, RULE_NONE };
enum rule elementwise_rule(bool binary, uint32_t dtype, uint32_t op);

/* The kernel that copies elements of a dtype, and the copy. */
um_status copy_kernel(struct device *device, uint32_t dtype, struct kernel **kernel, um_error **error);
um_status copy_view(struct job *job, struct kernel *kernel, const struct view *in, const struct view *out);

/* Copies an op's attributes into `to`: UM_UNSUPPORTED if they are longer and not zero there. */
um_status attributes_read(const struct request *request, void *to, size_t size, um_error **error);
/* The plan cannot walk that many axes unless they are joined: UM_NEEDS_CONTIGUOUS where inputs are not contiguous. */
um_status check_axes(const struct request *request);

/* The interface ultramarine.fused/1. Whether the host is told of it: compiling each program anew does not pay on CPUs,
 * unless ULTRAMARINE_OPENCL_FUSE is set. */
extern const um_fused_interface fused_interface;
/* The interface ultramarine.kernel/1. */
extern const um_kernel_interface kernel_interface;
/* The interface ultramarine.timing/1. */
extern const um_timing_interface timing_interface;
/* The interface ultramarine.memory/1. */
const um_memory_interface *memory_interface(const struct backend *backend);
bool fuses(const struct found *found);

um_status prepare(void *device, uint32_t op, uint32_t revision, const void *attributes, const um_tensor_desc *inputs,
                  uint32_t n_inputs, const um_tensor_desc *outputs, uint32_t n_outputs, void **plan,
                  um_error **error);
void plan_release(void *device, void *plan);
uint64_t plan_workspace(void *device, void *plan, const um_command *command);
um_status submit(void *device, void *stream, const um_command *commands, uint32_t n_commands, um_error **error);

#endif
