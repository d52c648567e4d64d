/* The contract between Ultramarine and operations that are built outside of it, in C11 (and C++, CUDA).
 *
 * An extension gives the host primitives (`um_primitive`: a table of rules) and gets arrays back. It calls the host
 * through an `um_extension_host`, which a Python module gets from the capsule `ultramarine._C_API` and a program in
 * Rust from the crate. It links nothing of Ultramarine, so one binary works with every build of the same contract major.
 *
 * Boundary. The rules of backend.h hold: structs begin with their size and only grow, integers have fixed widths, a NULL
 * function means "unsupported", and nothing unwinds across the boundary.
 *
 * Ownership.
 *  - Arrays are handles. A handle that is passed in is borrowed: it is valid until the call returns, and `array_retain`
 *    makes one that you own. A handle that is passed out belongs to the receiver, who ends it by `array_release`.
 *  - A rule may return one of its inputs as a result, by `array_retain`. A rule that fails releases what it has made.
 *  - A function that takes something over says so, and takes it over also if it fails. A function that fails writes no output.
 *
 * Calls.
 *  - Rules are called without a lock of the host's, from any thread, at the same time for different arrays. They may call the host.
 *  - A missing rule is a NULL function, or returns UM_UNSUPPORTED without an error object. An evaluation may return UM_UNSUPPORTED
 *    with an error object, which is reported if there is no `compose` either.
 *  - The caller sets the `size` of a struct that is to be filled. A rule's results are NULL before the call.
 *  - `error` may be NULL in functions of the host, and is never NULL in rules.
 *  - Dtypes have one lane; bool is kDLBool of 8 bits.
 *  - In an array of structs without a stride of its own, elements are as far apart as the first one's `size` says.
 *
 * extension_helper.h has functions for C, extension.hpp classes for C++, whose exceptions must not cross the boundary. The guide
 * is docs/write-an-operation.md. */
#ifndef ULTRAMARINE_EXTENSION_H
#define ULTRAMARINE_EXTENSION_H

#include <stddef.h>
#include <stdint.h>

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this contract, which is not that of backends. A host takes extensions of its own major. A later minor
 * appends fields to structs. */
#define UM_EXTENSION_MAJOR 1
#define UM_EXTENSION_MINOR 2

/* A handle of an array: opaque, usable from any thread. */
typedef struct um_array um_array;

/* The place where an operation runs. */
#define UM_PLACE_DEFAULT 0u /* where its operands are at home, else the default device */
#define UM_PLACE_DEVICE 1u  /* the default stream of a device */
#define UM_PLACE_STREAM 2u  /* a stream, by its number */

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

/* Shape and dtype of an array. The first `ndim` sizes count. */
typedef struct um_tensor_type {
  uint32_t size;
  int32_t ndim;
  DLDataType dtype;
  uint32_t reserved; /* 0 */
  int64_t shape[UM_MAX_NDIM];
} um_tensor_type;

#define UM_VIEW_ROW_CONTIGUOUS 1u /* row-major without gaps */
#define UM_VIEW_MAY_TAKE 2u       /* of an input: `take` would succeed for an output of its size */

/* A tensor of an evaluation: its elements in memory. It is valid during the call. */
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

/* Arguments of an evaluation, on the CPU or on a device. Inputs and outputs are `view_stride` bytes apart: never index them as
 * C arrays. */
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

/* A kernel in source form. The host puts the language's prelude before it (docs/kernels.md), whose names begin with `um_`;
 * compile errors count lines from the first one of `source`. A kernel is compiled once for each device and content. The
 * languages `ptx` and `cubin` are compiled code, which is loaded as it is. */
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

/* A compiled kernel: opaque, valid until the call of the evaluation returns. */
typedef struct um_kernel um_kernel;

/* Properties of a compiled kernel on its device. */
typedef struct um_kernel_properties {
  uint32_t size;
  uint32_t max_group;       /* most threads of a group for this kernel */
  uint32_t group_multiple;  /* group sizes that are multiples of this are the fastest */
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

/* A launch of a kernel: `grid` groups of `group` threads, along x, y and z. */
typedef struct um_dispatch {
  uint32_t size;
  uint32_t n_bindings;
  const um_binding *bindings; /* in the order of the kernel's parameters */
  uint32_t binding_stride;
  uint32_t shared_bytes;
  uint32_t grid[3];
  uint32_t group[3];
} um_dispatch;

/* Work for a stream, for `enqueue`. If it fails, the evaluation that enqueued it fails with the same error. */
typedef um_status (*um_task)(void *context, um_error **error);
/* Ends the context of a um_task. */
typedef void (*um_task_drop)(void *context);

/* ---- primitives --------------------------------------------------------------------------------------------- */

/* Flag: the primitive gives its outputs memory itself, by `allocate`, `take` or `share`, before it writes them. */
#define UM_PRIMITIVE_ALLOCATES 1u

/* An operation with its attributes: the table of its rules. The host copies the struct, the name and the attributes; `apply`
 * takes the context over.
 *
 * Required are `infer`, and `compose` or an evaluation. `compose` writes the operation with others: derivatives, batching and
 * evaluations that have no rule of their own are computed from it. */
typedef struct um_primitive {
  uint32_t size;
  uint32_t flags;           /* UM_PRIMITIVE_... */
  const char *name;         /* NUL-terminated UTF-8, for errors and printing */
  uint32_t version;         /* equal name, version and attributes: the same operation, which may be computed once */
  uint32_t n_outputs;       /* at least 1 */
  const void *attributes;   /* attribute_bytes bytes */
  uint64_t attribute_bytes;
  void *context;            /* first argument of the rules */

  /* Writes shapes and dtypes of the outputs, whose `size` the host has set, and refuses operands that do not fit. It is called
   * again for other shapes, and gives the same answer for the same inputs. */
  um_status (*infer)(void *context, const um_tensor_type *inputs, uint32_t n_inputs, um_tensor_type *outputs,
                     um_error **error);
  /* Computes the outputs on the CPU, in the stream's order. They count as written once it has returned and its tasks are done. */
  um_status (*eval_cpu)(void *context, const um_call *call, um_error **error);
  /* Computes the outputs on a device that takes kernels, by launches on its stream. If it returns UM_UNSUPPORTED with an error
   * object, the host uses `compose`; without a `compose` that error is reported. */
  um_status (*eval_gpu)(void *context, const um_call *call, um_error **error);
  /* Makes the outputs, of the types that `infer` gave, by other operations. The caller owns them. */
  um_status (*compose)(void *context, um_array *const *inputs, uint32_t n_inputs, um_array **outputs, um_error **error);
  /* Makes the cotangents of the inputs, of their shapes, from those of the outputs. `results` and `wanted` have an entry for each
   * input, `cotangents` one for each output; a NULL cotangent is zero. Results that are not `wanted` may stay NULL. */
  um_status (*vjp)(void *context, um_array *const *inputs, uint32_t n_inputs, um_array *const *outputs,
                   um_array *const *cotangents, const uint8_t *wanted, um_array **results, um_error **error);
  /* Makes the tangents of the outputs, one entry of `results` for each, from those of the inputs. A NULL tangent is zero. */
  um_status (*jvp)(void *context, um_array *const *inputs, uint32_t n_inputs, um_array *const *tangents,
                   um_array **results, um_error **error);
  /* Makes the outputs for a batch. Input i has the batch along its axis `axes[i]`, whose size is `batch`; -1: it is the same for
   * all. The rule writes the outputs, and to `output_axes` the axis of the batch in each, or -1. */
  um_status (*vmap)(void *context, um_array *const *inputs, uint32_t n_inputs, const int32_t *axes, int64_t batch,
                    um_array **outputs, int32_t *output_axes, um_error **error);
  /* Returns 0 if two primitives are different operations although their name, version, attributes and this function are equal.
   * May be NULL. */
  int32_t (*equivalent)(void *context, void *other_context);
  /* Writes the text that errors and graphs show, at most `room` bytes without NUL, and returns its full length. May be NULL. */
  uint64_t (*print)(void *context, char *text, uint64_t room);
  /* Ends `context`. It is called once, on any thread, when nothing needs the primitive. May be NULL. */
  void (*release)(void *context);
} um_primitive;

/* Receives a primitive and takes over its context. */
typedef void (*um_receive)(void *receiver, const um_primitive *primitive);

/* Makes a primitive again from its version and attributes, and calls `receive` with it, once. Both come from a file and may hold
 * any bytes: an unknown version and malformed attributes are errors. */
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

/* The functions that the host lends. The struct lives as long as the process. Functions with the argument `host` may be called from
 * any thread. Functions with `host_call` (um_call.host_call) may be called during the evaluation, by its thread; tasks and bodies
 * of parallel loops call none of these, they only write to memory. */
typedef struct um_extension_host {
  uint32_t size;
  uint16_t major;      /* UM_EXTENSION_MAJOR of the host */
  uint16_t minor;
  void *host;          /* first argument of the functions */
  const char *version; /* of Ultramarine, NUL-terminated */

  /* Errors: a status and a UTF-8 text. UM_INVALID is Python's ValueError, UM_OUT_OF_MEMORY its MemoryError, any other its
   * RuntimeError. The caller owns a new error until it frees it, or returns it through `error`. The text of an error is
   * valid until the error is freed. */
  um_error *(*error_new)(void *host, um_status code, const char *text, uint64_t length);
  um_status (*error_code)(void *host, const um_error *error);
  const char *(*error_text)(void *host, const um_error *error, uint64_t *length);
  void (*error_free)(void *host, um_error *error);

  /* Handles: `array_retain` returns a new one of the same array, which the caller owns. `array_type` and `array_place` write to a
   * struct whose `size` the caller has set. */
  um_array *(*array_retain)(void *host, const um_array *array);
  void (*array_release)(void *host, um_array *array); /* NULL is ignored */
  um_status (*array_type)(void *host, const um_array *array, um_tensor_type *type);
  um_status (*array_place)(void *host, const um_array *array, um_place *place);
  /* Computes arrays and waits for them. Must not be called inside of eval_cpu and eval_gpu. */
  um_status (*array_eval)(void *host, um_array *const *arrays, uint32_t n, um_error **error);
  /* Gives a view of an array's elements in host memory, which are computed first. Valid as long as the handle; read-only. */
  um_status (*array_view)(void *host, const um_array *array, um_view *view, um_error **error);
  /* Makes an array of `bytes` bytes in row-major order, which are copied. */
  um_status (*array_from_bytes)(void *host, const um_tensor_type *type, const void *data, uint64_t bytes, um_array **array,
                                um_error **error);
  /* Makes an array of one value, from its little-endian bits in the type's dtype: two words, of which short dtypes use the low
   * bytes of the first. An array without axes is computed where its other operands are. */
  um_status (*array_full)(void *host, const um_tensor_type *type, const uint64_t *bits, um_array **array,
                          um_error **error);

  /* Writes the dtype that operands of two dtypes are converted to. */
  um_status (*promote_types)(void *host, DLDataType a, DLDataType b, DLDataType *promoted, um_error **error);
  /* Returns 1 if the dtype is of a category: "generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact",
   * "floating", "complexfloating", or a dtype's name; 0 if it is not; -1 if there is no such category. */
  int32_t (*issubdtype)(void *host, DLDataType dtype, const char *category);
  /* Writes the shape that all types broadcast to, and the dtype that they promote to. */
  um_status (*broadcast_types)(void *host, const um_tensor_type *types, uint32_t n, um_tensor_type *type,
                               um_error **error);
  /* Broadcasts arrays against each other. `results` has room for `n`; the caller owns them. Dtypes stay. */
  um_status (*broadcast_arrays)(void *host, um_array *const *arrays, uint32_t n, um_array **results, um_error **error);

  /* Runs an operation of Ultramarine by its name: "add", "sum", "astype", "reshape" and so on (docs/extension-operations.md).
   * Attributes have the names of mlx.core's keyword arguments, such as "axis" and "keepdims". `results` has room for
   * `n_results`, the operation's number of results; the caller owns them. `place` is NULL in rules: their operations run where
   * the operands are. */
  um_status (*operation)(void *host, const char *name, um_array *const *inputs, uint32_t n_inputs,
                         const um_attribute *attributes, uint32_t n_attributes, const um_place *place,
                         um_array **results, uint32_t n_results, um_error **error);
  /* Applies a primitive, whose context it takes over. `outputs` has room for the primitive's n_outputs; they are lazy, and the
   * caller owns them. `place` may be NULL for the place of the operands. */
  um_status (*apply)(void *host, const um_primitive *primitive, um_array *const *inputs, uint32_t n_inputs,
                     const um_place *place, um_array **outputs, um_error **error);

  /* Calls `body(context, i)` for every i < count, on the host's threads and the calling one; returns when all calls have.
   * `thread_count` returns the most threads that it uses. */
  void (*parallel_for)(void *host, uint64_t count, void (*body)(void *context, uint64_t index), void *context);
  uint32_t (*thread_count)(void *host);

  /* Memory of outputs, for primitives with UM_PRIMITIVE_ALLOCATES. `view` gets the output's new view, and may be NULL.
   *  - `allocate` gives new memory. `strides` are in elements and dense in some order of the axes; NULL: row-major.
   *  - `take` gives an input's memory, if nothing else needs it. Else it returns UM_UNSUPPORTED without an error object.
   *  - `share` makes the output a view of an input's elements, from `offset` elements on. It must not be written. */
  um_status (*allocate)(void *host_call, uint32_t output, const int64_t *strides, um_view *view, um_error **error);
  um_status (*take)(void *host_call, uint32_t output, uint32_t input, um_view *view, um_error **error);
  um_status (*share)(void *host_call, uint32_t output, uint32_t input, int64_t offset, const int64_t *strides,
                     um_error **error);

  /* On the CPU: enqueues a task, which runs on the stream after the evaluation and before anything that needs the outputs. The
   * memory of inputs and outputs stays valid until then; views do not. `drop` may be NULL; it ends the context, once, also if the
   * task never runs and if this call fails. */
  um_status (*enqueue)(void *host_call, um_task task, um_task_drop drop, void *context, um_error **error);

  /* On devices: compiles a kernel, or finds the one that was compiled before. If the compiler fails, the error has its log with
   * lines of the source. */
  um_status (*kernel)(void *host_call, const um_kernel_text *text, um_kernel **kernel, um_error **error);
  um_status (*kernel_properties)(void *host_call, um_kernel *kernel, um_kernel_properties *properties, um_error **error);
  /* Allocates memory of the device, which is released once the launches are done. `temporary` gets its number, for
   * UM_BIND_TEMPORARY. */
  um_status (*temporary)(void *host_call, uint64_t bytes, uint32_t *temporary, um_error **error);
  /* Makes input `input` row-major for the launches that follow, by a copy unless it is already. `view` gets its new view. */
  um_status (*contiguous)(void *host_call, uint32_t input, um_view *view, um_error **error);
  /* Enqueues a launch on the evaluation's stream. */
  um_status (*launch)(void *host_call, um_kernel *kernel, const um_dispatch *dispatch, um_error **error);
  /* Returns the text that the host puts before kernels of a language, or NULL. It lives as long as the process. */
  const char *(*prelude)(void *host, const char *language);
  /* Registers the function that makes primitives of a name again, for functions in files. Since 1.2. `package` names the package
   * to install, for the error of programs that do not know the name. The context lives as long as the process. A later call for
   * the same name replaces the function. */
  um_status (*provide)(void *host, const char *name, const char *package, um_restore restore, void *context,
                       um_error **error);
} um_extension_host;

/* ---- Python ------------------------------------------------------------------------------------------------- */

/* The target of the capsule `ultramarine._C_API`. Get it when the module starts, by `PyCapsule_Import(UM_PYTHON_CAPSULE, 0)`, which
 * imports the package. Compare `major` with UM_EXTENSION_MAJOR before anything else, and raise an ImportError with both if they
 * differ. All functions need the interpreter lock. Objects are CPython's `PyObject *`. */
#define UM_PYTHON_CAPSULE "ultramarine._C_API"

typedef struct um_python_api {
  uint32_t size;
  uint16_t major; /* as in the host table */
  uint16_t minor;
  const um_extension_host *host;
  /* Returns 1 if the object is an `ultramarine.array`, else 0. */
  int32_t (*is_array)(void *object);
  /* Returns the handle of an `ultramarine.array`. It is borrowed: valid while the object lives and no Python code runs, which may
   * rebind it in place. NULL and a TypeError for any other object. */
  um_array *(*array_borrow)(void *object);
  /* Returns an array, which the caller owns, of anything that `ultramarine.asarray` takes: numbers, sequences, arrays of other
   * libraries. NULL with an exception set if it fails. */
  um_array *(*array_from_object)(void *object);
  /* Returns a new reference to an `ultramarine.array`. Takes the handle over, also if it fails (NULL with an exception set). A NULL
   * handle is a SystemError. */
  void *(*array_to_object)(um_array *array);
  /* Converts an argument `stream=` (None, a device, a stream) to a place. Returns 0, or -1 with a TypeError set. */
  int32_t (*place_from_object)(void *object, um_place *place);
  /* Sets the exception of an error, which it takes over, and returns NULL. A NULL error is a SystemError. */
  void *(*raise)(um_error *error);
} um_python_api;

#ifdef __cplusplus
}
#endif

#endif
