/* The contract between Ultramarine and operations that are built outside of it, in C11 (and C++, CUDA).
 *
 * An extension hands the host primitives (`um_primitive`: a table of rules) and gets arrays back. It reaches the host
 * through an `um_extension_host`, which a Python module gets from the capsule `ultramarine._C_API` and a program in
 * Rust from the crate. It links nothing of Ultramarine, so one binary serves every build of the same contract major.
 *
 * The rules that keep the boundary stable are those of backend.h: sized structs that only grow, fixed-width integers,
 * a NULL function means "unsupported", nothing unwinds across the boundary. Besides:
 *  - Arrays are handles. One that is passed in is borrowed: it is good until the call returns; `array_retain` makes
 *    one of your own. One that is passed out is the receiver's, who ends it by `array_release`.
 *  - A function that fails writes no output, and takes back nothing that it did not give. What it was to take over
 *    (it says so) it takes over also when it fails.
 *  - Rules are called without a lock of the host's, from any thread, at once for different arrays. They may call the host.
 *  - A rule that is not there is a NULL function, or returns UM_UNSUPPORTED without an error object. An evaluation may return it with
 *    words, which are reported where there is no `compose` either.
 *  - A struct that is to be filled comes with its `size` set by whoever asks. A rule's results are NULL before the call.
 *  - A rule may hand out one of its inputs as a result, by `array_retain`. If it fails it releases what it made itself.
 *  - `error` may be NULL where you call and is never NULL where you are called. Dtypes have one lane; bool is kDLBool of 8 bits.
 *  - In arrays of structs without a stride of their own, elements lie `size` bytes apart, the first one's.
 *
 * `extension.hpp` helps in C++, where exceptions must not cross. The guide is docs/write-an-operation.md. */
#ifndef ULTRAMARINE_EXTENSION_H
#define ULTRAMARINE_EXTENSION_H

#include <stddef.h>
#include <stdint.h>

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this contract, apart from that of backends. A host takes extensions of its own major; what a later minor
 * adds stands behind the sizes of structs. */
#define UM_EXTENSION_MAJOR 1
#define UM_EXTENSION_MINOR 2

typedef struct um_array um_array; /* opaque */

/* Where an operation runs. */
#define UM_PLACE_DEFAULT 0u /* where its operands are at home, else the default device */
#define UM_PLACE_DEVICE 1u  /* the default stream of a device */
#define UM_PLACE_STREAM 2u

#define UM_DEVICE_CPU 0u
#define UM_DEVICE_GPU 1u

typedef struct um_place {
  uint32_t size;
  uint32_t kind;         /* UM_PLACE_... */
  uint32_t device_type;  /* UM_DEVICE_... */
  uint32_t device_index;
  uint32_t stream_index;
  uint32_t reserved;     /* 0 */
} um_place;

/* Shape and dtype. */
typedef struct um_tensor_type {
  uint32_t size;
  int32_t ndim;
  DLDataType dtype;
  uint32_t reserved; /* 0 */
  int64_t shape[UM_MAX_NDIM];
} um_tensor_type;

#define UM_VIEW_ROW_CONTIGUOUS 1u /* row-major without gaps */
#define UM_VIEW_MAY_TAKE 2u       /* of an input: `take` would succeed for an output of its size */

/* A tensor of an evaluation. Valid during the call. */
typedef struct um_view {
  uint32_t size;
  uint32_t flags;         /* UM_VIEW_... */
  void *data;             /* the element with index 0; NULL on devices, and for outputs without memory yet */
  const int64_t *shape;   /* ndim sizes */
  const int64_t *strides; /* ndim strides, in elements; any sign, 0 where broadcast */
  int64_t elements;
  int32_t ndim;
  DLDataType dtype;
} um_view;

/* ---- evaluation --------------------------------------------------------------------------------------------- */

/* Arguments of an evaluation, on the CPU or on a device. Inputs and outputs lie `view_stride` bytes apart. */
typedef struct um_call {
  uint32_t size;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t view_stride;
  const um_view *inputs;
  const um_view *outputs; /* with memory, unless the primitive is UM_PRIMITIVE_ALLOCATES */
  const char *languages;  /* of kernels that the device takes, separated by spaces; "" on the CPU */
  void *host_call;        /* for the functions of the host table */
} um_call;

/* A kernel in source form. Its text is preceded by the language's prelude (docs/kernels.md), whose names begin with
 * `um_`; compile errors count lines from the first one of `source`. Compiled once for each device, by content.
 * The languages `ptx` and `cubin` are compiled code, which is loaded as it is. */
typedef struct um_kernel_text {
  uint32_t size;
  uint32_t n_template_arguments;
  const char *language; /* cuda-c, opencl-c, wgsl, msl, ptx, cubin ...; NUL-terminated, as all of these */
  const char *source;
  const char *entry;    /* name of the function */
  const char *const *template_arguments; /* as text, or NULL */
  const char *options;  /* for the compiler, or NULL */
  uint64_t source_bytes; /* of `source`; 0: it is NUL-terminated. Since 1.1 */
} um_kernel_text;

typedef struct um_kernel um_kernel; /* opaque; good until the call of the evaluation returns */

typedef struct um_kernel_properties {
  uint32_t size;
  uint32_t max_group;       /* most threads of a group for this kernel */
  uint32_t group_multiple;  /* sizes that suit the device are multiples of this */
  uint32_t max_shared;      /* bytes of shared memory of a group */
} um_kernel_properties;

#define UM_BIND_INPUT 0u     /* input `index` */
#define UM_BIND_OUTPUT 1u    /* output `index`, which is written */
#define UM_BIND_TEMPORARY 2u /* temporary `index`, which is written */
#define UM_BIND_SCALAR 3u    /* `scalar` of `dtype`, by value */
#define UM_BIND_CONSTANTS 4u /* a read-only array of `bytes` bytes at `constants`: shapes, strides, tables */

/* An argument of a launch. */
typedef struct um_binding {
  uint32_t size;
  uint32_t kind;        /* UM_BIND_... */
  uint32_t index;
  DLDataType dtype;     /* of the scalar */
  uint64_t scalar[2];   /* little-endian bits */
  const void *constants;
  uint64_t bytes;
} um_binding;

/* A launch: `grid` groups of `group` threads. */
typedef struct um_dispatch {
  uint32_t size;
  uint32_t n_bindings;
  const um_binding *bindings; /* in the order of the kernel's parameters */
  uint32_t binding_stride;
  uint32_t shared_bytes;
  uint32_t grid[3];
  uint32_t group[3];
} um_dispatch;

/* Work for a stream. Its failure is that of the evaluation that enqueued it. */
typedef um_status (*um_task)(void *context, um_error **error);
typedef void (*um_task_drop)(void *context);

/* ---- primitives --------------------------------------------------------------------------------------------- */

/* The primitive gives its outputs memory itself, by `allocate`, `take` or `share`, before it writes them. */
#define UM_PRIMITIVE_ALLOCATES 1u

/* An operation with its attributes. The host copies the struct, the name and the attributes.
 * Only `infer` and one evaluation or `compose` are required. `compose` is the operation written with others: where a
 * derivative, batching or an evaluation has no rule of its own, it follows from it. */
typedef struct um_primitive {
  uint32_t size;
  uint32_t flags;           /* UM_PRIMITIVE_... */
  const char *name;         /* NUL-terminated UTF-8, for errors and printing */
  uint32_t version;         /* name, version and attributes say whether two primitives are the same operation */
  uint32_t n_outputs;       /* at least 1 */
  const void *attributes;   /* attribute_bytes bytes */
  uint64_t attribute_bytes;
  void *context;            /* first argument of the rules */

  /* Shapes and dtypes of the outputs (whose `size` the host has set); the place for errors about operands. It is called
   * again for other shapes, and must give the same answer to the same question. */
  um_status (*infer)(void *context, const um_tensor_type *inputs, uint32_t n_inputs, um_tensor_type *outputs,
                     um_error **error);
  /* On the CPU, in the stream's order. Outputs count as written when it has returned and enqueued tasks are done. */
  um_status (*eval_cpu)(void *context, const um_call *call, um_error **error);
  /* On a device that takes kernels: gives launches to its stream. UM_UNSUPPORTED with an error object says why it cannot
   * serve this device: compose follows, or that is the error. */
  um_status (*eval_gpu)(void *context, const um_call *call, um_error **error);
  /* The outputs, of the types that infer gave, by other operations. */
  um_status (*compose)(void *context, um_array *const *inputs, uint32_t n_inputs, um_array **outputs, um_error **error);
  /* Cotangents of the inputs, of their shapes: `results` and `wanted` have an entry for each, NULL means zero, and those that are
   * not `wanted` need not be made. `cotangents` has an entry for each output, NULL means zero. */
  um_status (*vjp)(void *context, um_array *const *inputs, uint32_t n_inputs, um_array *const *outputs,
                   um_array *const *cotangents, const uint8_t *wanted, um_array **results, um_error **error);
  /* Tangents of the outputs: `results` has an entry for each, NULL means zero, as in `tangents`, with one for each input. */
  um_status (*jvp)(void *context, um_array *const *inputs, uint32_t n_inputs, um_array *const *tangents,
                   um_array **results, um_error **error);
  /* For a batch of `size`: inputs with one axis more, `axes[i]`, unless that is -1 (the same for all). The outputs and
   * where each has the axis (-1: it is the same for all). */
  um_status (*vmap)(void *context, um_array *const *inputs, uint32_t n_inputs, const int32_t *axes, int64_t batch,
                    um_array **outputs, int32_t *output_axes, um_error **error);
  /* Asked when name, version, attributes and this function are equal: 0 if they are different operations nevertheless.
   * May be NULL. */
  int32_t (*equivalent)(void *context, void *other_context);
  /* Writes what errors and graphs show, at most `room` bytes without NUL, and returns the full length. May be NULL. */
  uint64_t (*print)(void *context, char *text, uint64_t room);
  /* Ends `context`, once, on any thread. May be NULL. */
  void (*release)(void *context);
} um_primitive;

/* Takes a primitive, whose context is the receiver's then. */
typedef void (*um_receive)(void *receiver, const um_primitive *primitive);

/* Makes a primitive again from its version and attributes, and calls `receive` with it, once. Both come from a file, and may be
 * anything: what is not known fails. */
typedef um_status (*um_restore)(void *context, uint32_t version, const void *attributes, uint64_t attribute_bytes,
                                um_receive receive, void *receiver, um_error **error);

/* ---- ordinary operations ------------------------------------------------------------------------------------ */

#define UM_ATTRIBUTE_INT 0u    /* `integer`; also of flags */
#define UM_ATTRIBUTE_FLOAT 1u  /* `real` */
#define UM_ATTRIBUTE_INTS 2u   /* `count` integers at `integers` */
#define UM_ATTRIBUTE_DTYPE 3u  /* `dtype` */
#define UM_ATTRIBUTE_TEXT 4u   /* `text`, NUL-terminated */

/* A named argument of an operation, other than an array. */
typedef struct um_attribute {
  uint32_t size;
  uint32_t kind; /* UM_ATTRIBUTE_... */
  const char *name;
  int64_t integer;
  double real;
  const int64_t *integers;
  uint64_t count;
  const char *text;
  DLDataType dtype;
  uint32_t reserved; /* 0 */
} um_attribute;

/* ---- what the host lends ------------------------------------------------------------------------------------ */

/* Functions may be called from any thread; those with a `host_call`, while the evaluation's call lasts, by its thread
 * (tasks, and bodies of parallel loops, write to memory only). */
typedef struct um_extension_host {
  uint32_t size;
  uint16_t major;      /* UM_EXTENSION_MAJOR of the host */
  uint16_t minor;
  void *host;          /* first argument of the functions */
  const char *version; /* of Ultramarine, NUL-terminated */

  /* Errors: a status and UTF-8 text. UM_INVALID is Python's ValueError, UM_OUT_OF_MEMORY its MemoryError, others its
   * RuntimeError. The text of an error is good until it is freed; returning it through `error` hands it over. */
  um_error *(*error_new)(void *host, um_status code, const char *text, uint64_t length);
  um_status (*error_code)(void *host, const um_error *error);
  const char *(*error_text)(void *host, const um_error *error, uint64_t *length);
  void (*error_free)(void *host, um_error *error);

  /* Handles. */
  um_array *(*array_retain)(void *host, const um_array *array);
  void (*array_release)(void *host, um_array *array); /* NULL is ignored */
  um_status (*array_type)(void *host, const um_array *array, um_tensor_type *type);
  um_status (*array_place)(void *host, const um_array *array, um_place *place);
  /* Computes arrays and waits. Not inside of eval_cpu, eval_gpu. */
  um_status (*array_eval)(void *host, um_array *const *arrays, uint32_t n, um_error **error);
  /* The elements in host memory; computes them if need be. Good as long as the handle. Read-only. */
  um_status (*array_view)(void *host, const um_array *array, um_view *view, um_error **error);
  /* A copy of `bytes` bytes, row-major. */
  um_status (*array_from_bytes)(void *host, const um_tensor_type *type, const void *data, uint64_t bytes, um_array **array,
                                um_error **error);
  /* A constant of a shape, from the little-endian bits of a value of its dtype: two words, of which short dtypes use the low bytes of
   * the first. Scalars (ndim 0) have no home: they follow what they meet. */
  um_status (*array_full)(void *host, const um_tensor_type *type, const uint64_t *bits, um_array **array,
                          um_error **error);

  /* Dtypes and shapes. */
  um_status (*promote_types)(void *host, DLDataType a, DLDataType b, DLDataType *promoted, um_error **error);
  /* 1 if the dtype is of the category: "generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact",
   * "floating", "complexfloating", or a dtype's name. 0 if not, -1 for a category that is none. */
  int32_t (*issubdtype)(void *host, DLDataType dtype, const char *category);
  /* The shape that all broadcast to goes into `shape`; its dtype is the promoted one. */
  um_status (*broadcast_types)(void *host, const um_tensor_type *types, uint32_t n, um_tensor_type *type,
                               um_error **error);
  um_status (*broadcast_arrays)(void *host, um_array *const *arrays, uint32_t n, um_array **results, um_error **error);

  /* An operation of Ultramarine by its name: "add", "sum", "astype", "reshape" ... (docs/write-an-operation.md has the
   * table). Attributes have the names of mlx.core's keyword arguments: "axis", "keepdims", "shape", "dtype" ...
   * `results` has room for `n_results`; an operation of another number of results is an error. `place` may be NULL, as
   * everywhere: rules leave it so, and their operations run where the operands are. */
  um_status (*operation)(void *host, const char *name, um_array *const *inputs, uint32_t n_inputs,
                         const um_attribute *attributes, uint32_t n_attributes, const um_place *place,
                         um_array **results, uint32_t n_results, um_error **error);
  /* A primitive. Takes over its context. `outputs` has room for n_outputs; `place` may be NULL. */
  um_status (*apply)(void *host, const um_primitive *primitive, um_array *const *inputs, uint32_t n_inputs,
                     const um_place *place, um_array **outputs, um_error **error);

  /* Threads. `body(context, i)` for every i < count on the host's thread pool; returns when all are done. */
  void (*parallel_for)(void *host, uint64_t count, void (*body)(void *context, uint64_t index), void *context);
  uint32_t (*thread_count)(void *host);

  /* Memory of outputs, for primitives that are UM_PRIMITIVE_ALLOCATES. `view` (may be NULL) gets the output's new view.
   * `allocate`: new memory; `strides` in elements, dense in some order of the axes, or NULL for row-major.
   * `take`: an input's memory, which nobody else needs; UM_UNSUPPORTED (without an error) if it is not to be had.
   * `share`: a view of an input's elements, from `offset` elements on; the output may not be written. */
  um_status (*allocate)(void *host_call, uint32_t output, const int64_t *strides, um_view *view, um_error **error);
  um_status (*take)(void *host_call, uint32_t output, uint32_t input, um_view *view, um_error **error);
  um_status (*share)(void *host_call, uint32_t output, uint32_t input, int64_t offset, const int64_t *strides,
                     um_error **error);

  /* On the CPU: a task that runs on the stream behind the evaluation and before whatever needs the outputs, in order.
   * Memory of inputs and outputs stays valid until then; views do not. `drop` (may be NULL) ends the context, once, also
   * when the task never runs, and when enqueueing fails. */
  um_status (*enqueue)(void *host_call, um_task task, um_task_drop drop, void *context, um_error **error);

  /* On devices. A failed compilation's error holds the compiler's log and the source's lines. */
  um_status (*kernel)(void *host_call, const um_kernel_text *text, um_kernel **kernel, um_error **error);
  um_status (*kernel_properties)(void *host_call, um_kernel *kernel, um_kernel_properties *properties, um_error **error);
  /* Memory of the device until the launches are done. */
  um_status (*temporary)(void *host_call, uint64_t bytes, uint32_t *temporary, um_error **error);
  /* Makes input `input` row-major for the launches that follow, if it is not; its view changes accordingly. */
  um_status (*contiguous)(void *host_call, uint32_t input, um_view *view, um_error **error);
  um_status (*launch)(void *host_call, um_kernel *kernel, const um_dispatch *dispatch, um_error **error);
  /* The text that precedes kernels of a language, or NULL. */
  const char *(*prelude)(void *host, const char *language);
  /* Says how primitives of a name are made again, for functions in files; since 1.2. `package` is the package to install or import,
   * for errors where the name is unknown. The context is good as long as the process lives; a later call for a name takes an
   * earlier one's place. */
  um_status (*provide)(void *host, const char *name, const char *package, um_restore restore, void *context,
                       um_error **error);
} um_extension_host;

/* ---- Python ------------------------------------------------------------------------------------------------- */

/* Target of the capsule `ultramarine._C_API`: `PyCapsule_Import(UM_PYTHON_CAPSULE, 0)`, when the module starts, imports the package
 * and gives it. Look at `major` before anything else: with another one than UM_EXTENSION_MAJOR raise an ImportError that says
 * both. All functions want the interpreter lock. Objects are CPython's `PyObject *`. */
#define UM_PYTHON_CAPSULE "ultramarine._C_API"

typedef struct um_python_api {
  uint32_t size;
  uint16_t major; /* as in the host table */
  uint16_t minor;
  const um_extension_host *host;
  /* 1 if the object is an array. */
  int32_t (*is_array)(void *object);
  /* The array of an `ultramarine.array`: borrowed, good while the object lives and no Python code runs (which might rebind
   * it in place). NULL and a TypeError for anything else. */
  um_array *(*array_borrow)(void *object);
  /* An array of your own of whatever `ultramarine.asarray` takes: numbers, sequences, arrays of others. NULL and an exception. */
  um_array *(*array_from_object)(void *object);
  /* A new `ultramarine.array`. Takes the handle over, also when it fails (NULL and an exception). A NULL handle is a
   * SystemError. */
  void *(*array_to_object)(um_array *array);
  /* Converts an argument of `stream=` (None, a device, a stream). Returns 0, or -1 and sets a TypeError. */
  int32_t (*place_from_object)(void *object, um_place *place);
  /* Sets the exception of an error, which it takes over, and returns NULL. A NULL error is a SystemError. */
  void *(*raise)(um_error *error);
} um_python_api;

#ifdef __cplusplus
}
#endif

#endif
