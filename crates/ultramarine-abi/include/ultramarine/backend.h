/* The contract between Ultramarine (the host) and its backends, in C11, C++ and CUDA.
 *
 * A backend is a shared library `libultramarine-{name}[-{variant}].so`. It exports three functions, two of them required,
 * and carries a note with its ABI info. It fills a `um_backend_table`; the host lends it a `um_host_table`. Tensors at the
 * boundary are DLPack's `DLTensor`.
 *
 * Rules of the whole contract:
 *  - Sizes. Every struct begins with `size`, its size in bytes as its writer knows it. Fields are only appended. A reader
 *    copies min(size) bytes into a zeroed struct. A writer of a struct that the other side owns writes at most the size
 *    that it finds there, and leaves the number of written bytes in `size`. Arrays of structs carry their element stride.
 *  - Types. Integers have fixed widths. Offsets, sizes and alignments are in bytes, strides in elements.
 *  - Missing functions. A function that is NULL, or lies beyond the table's size, is unsupported.
 *  - Errors. A failing call returns a status other than UM_OK. If `error` is not NULL, it also sets `*error` to an object
 *    of the host's `error_new`, which the host frees. UM_ERROR and UM_INVALID come with such an object; without one the
 *    user reads only that the call failed. Output arguments count only after UM_OK. No exception, longjmp or panic leaves a
 *    function.
 *  - Handles. `void *` handles belong to the backend; the host only passes them back. Live handles of one kind differ from
 *    each other. Handles of buffers, streams, events and plans are not NULL: NULL means "none".
 *  - Threads. (any): callable from any thread at any time, also at once. (stream): one call at a time for each stream, from
 *    changing threads; calls for different streams come at once.
 *  - Lifetimes. Pointers in arguments are valid during the call only, unless a comment says otherwise.
 *  - Calls back. A backend calls the host through the host table only.
 *
 * `schema.h` lists the operations, docs/operations.md specifies them. `interfaces.h` has the optional interfaces.
 * `helper.h` helps to write a backend in C, `helper.hpp` in C++. docs/write-a-backend.md is the guide. */
#ifndef ULTRAMARINE_BACKEND_H
#define ULTRAMARINE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the contract. While the major version is 0 nothing is frozen, and both numbers must be equal on both sides.
 * From 1 on the major versions must be equal; the minor version counts additions. */
#define UM_ABI_MAJOR 0
#define UM_ABI_MINOR 2
/* Version of DLPack whose structs are used. The major versions must be equal on both sides. */
#define UM_DLPACK_MAJOR 1
#define UM_DLPACK_MINOR 3

/* ---- status ------------------------------------------------------------------------------------------------- */

/* Result of a call. */
typedef int32_t um_status;
#define UM_OK 0
/* Failed for another reason; the error object has the text. */
#define UM_ERROR 1
/* The operation, dtype, attribute or feature is unknown here. No failure: the host takes another way, and needs no text. */
#define UM_UNSUPPORTED 2
/* Of `prepare`: the backend could, if the inputs were row-major without gaps. The host copies them and asks again. */
#define UM_NEEDS_CONTIGUOUS 3
/* No memory for a buffer, the outputs or the workspace. The host frees its caches and asks once more. */
#define UM_OUT_OF_MEMORY 4
/* Called in a forked child of the process that opened the device. */
#define UM_FORKED 5
/* An argument is wrong: an index, a size, a handle. */
#define UM_INVALID 6
/* Being compiled. The host takes another way this time and asks again later. Of `prepare` of fused/1 and fused/2, of
 * replay/2, and of `status` of collective/1. */
#define UM_NOT_YET 7

/* An error: a status with a text. Opaque; made by `error_new`, freed by the host. */
typedef struct um_error um_error;

/* ---- before anything is initialised: ABI info and score ----------------------------------------------------- */

/* Sanitizers that a binary is built with. A sanitizer must be in the whole process or nowhere in it. */
#define UM_SANITIZER_ADDRESS 1u
#define UM_SANITIZER_THREAD 2u
#define UM_SANITIZER_MEMORY 4u
#define UM_SANITIZER_OTHER 8u /* another instrumentation that must be the same in the whole process */

#define UM_LITTLE_ENDIAN 1
#define UM_BIG_ENDIAN 2

/* Properties of a backend's binary, known before any of its code runs. Texts are inline, UTF-8, padded with NULs; a text
 * that fills its field has no NUL. `UM_DEFINE_BACKEND` of helper_build.h fills all of it. */
typedef struct um_backend_abi_info {
  uint32_t size;
  uint16_t abi_major;    /* UM_ABI_MAJOR, and the next three likewise, of the headers it was built with */
  uint16_t abi_minor;
  uint16_t dlpack_major;
  uint16_t dlpack_minor;
  uint32_t table_size;   /* sizeof(um_backend_table) */
  uint8_t pointer_bits;  /* width of a pointer in bits */
  uint8_t endianness;    /* UM_LITTLE_ENDIAN or UM_BIG_ENDIAN */
  uint16_t reserved;     /* 0 */
  int32_t device_type;   /* DLPack's type of all its devices; a backend of kDLCPU overlays kernels on cpu:0 */
  uint32_t sanitizers;   /* bits UM_SANITIZER_... */
  uint32_t flags;        /* 0 */
  char name[32];         /* the name in the file's name: lower-case letters, digits and _ */
  char variant[32];      /* the variant in the file's name, or empty: letters, digits, _ . - */
  char version[32];      /* the backend's own version */
  char target[64];       /* target triple */
  char compiler[64];     /* compiler and its version */
  char cpu_features[256]; /* CPU features the code needs, separated by spaces: "avx2 fma", "avx512f", "x86-64-v3" ... */
} um_backend_abi_info;

/* Bits of um_device_identity.known. */
#define UM_IDENTITY_UUID 1u
#define UM_IDENTITY_PCI 2u

/* Identity of a physical device. Devices of two backends with the same UUID or PCI address are one device, and count once,
 * for the backend with the higher score. */
typedef struct um_device_identity {
  uint32_t size;
  uint32_t known; /* bits UM_IDENTITY_...: `uuid` and `pci_...` are filled in */
  uint8_t uuid[16]; /* as the driver gives it */
  uint32_t pci_domain;
  uint32_t pci_bus;
  uint32_t pci_device;
  uint32_t pci_function;
  uint64_t memory; /* of the device, in bytes; 0: unknown */
  char name[128];  /* for people; NUL-padded UTF-8 */
} um_device_identity;

/* Score of a backend without a score function, and the largest valid score. */
#define UM_DEFAULT_SCORE 1
#define UM_MAX_SCORE 10000

/* Answer to "can this backend run here, and how well". The host sets size, device_capacity, device_stride and devices
 * (each element with its size); the rest is 0. */
typedef struct um_backend_score {
  uint32_t size;
  uint32_t score;           /* 0: cannot run here. 1 to UM_MAX_SCORE: the best variant of a name is used, and devices
                             * are numbered by score, from high to low */
  uint32_t device_count;    /* number of devices; may exceed device_capacity. 0 with a score above 0: not counted */
  uint32_t device_capacity; /* room in `devices`, in elements */
  uint32_t device_stride;   /* bytes from one element of `devices` to the next */
  uint32_t reserved;        /* 0 */
  um_device_identity *devices; /* the host's; the backend fills the first min(device_count, device_capacity) */
  char reason[256];         /* reason for a score of 0, in words for the user: NUL-padded UTF-8 */
} um_backend_score;

/* ---- what the host lends ------------------------------------------------------------------------------------ */

/* Levels of messages. */
#define UM_LOG_ERROR 0u
#define UM_LOG_WARNING 1u
#define UM_LOG_INFO 2u
#define UM_LOG_DEBUG 3u

/* Body of a parallel loop. It must not throw. */
typedef void (*um_parallel_body)(void *context, uint64_t index);

/* Functions of the host. They are callable from any thread, for as long as the process lives. */
typedef struct um_host_table {
  uint32_t size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void *host; /* first argument of the functions */
  /* Logs `length` bytes of UTF-8 at a level UM_LOG_... */
  void (*log)(void *host, uint32_t level, const char *text, uint64_t length);
  /* Makes an error of a status and `length` bytes of UTF-8. The text reaches the user unchanged: it says what failed, the
   * values that were given, and a remedy. */
  um_error *(*error_new)(void *host, um_status code, const char *text, uint64_t length);
  /* Allocates host memory, 256-byte aligned and uninitialised. NULL: there is none left. */
  void *(*alloc)(void *host, uint64_t bytes);
  /* Frees memory of `alloc`. */
  void (*free)(void *host, void *data);
  /* Calls body(context, i) for every i < count, on the host's threads and on the calling one. Returns when all calls have
   * returned. A nested call, and one while another thread's loop runs, runs on the calling thread alone. */
  void (*parallel_for)(void *host, uint64_t count, um_parallel_body body, void *context);
  /* Returns the most threads that parallel_for uses, the calling one included. */
  uint32_t (*thread_count)(void *host);
  /* Marks the error of a `submit` as that of command `index` of its list. The backend still returns the error. */
  void (*error_command)(void *host, um_error *error, uint32_t index);
} um_host_table;

/* ---- tensors ------------------------------------------------------------------------------------------------ */

/* Most dimensions of a tensor. */
#define UM_MAX_NDIM 32
/* Layouts of a tensor that a plan may depend on. */
#define UM_LAYOUT_CONTIGUOUS 0u /* row-major without gaps */
#define UM_LAYOUT_STRIDED 1u    /* any strides: negative, zero (broadcast), permuted */

/* Precision of the factors of float32 products: values of the attribute `precision` of MATMUL and convolutions. */
#define UM_PRECISION_HIGHEST 0u /* the factors as they are */
#define UM_PRECISION_HIGH 1u    /* factors may be rounded to TensorFloat-32: 11 significant bits */
#define UM_PRECISION_MEDIUM 2u  /* factors may be rounded to bfloat16: 8 significant bits */

/* A tensor in a request for a plan: without sizes. */
typedef struct um_tensor_desc {
  uint32_t size;
  int32_t ndim;     /* number of dimensions, 0 to UM_MAX_NDIM */
  DLDataType dtype;
  uint32_t layout;  /* UM_LAYOUT_... */
} um_tensor_desc;

/* A tensor of a command. No size in dl.shape is 0.
 *
 * On a device with host memory the first element is at dl.data + dl.byte_offset. On any other device dl.data is NULL, and
 * the first element is dl.byte_offset bytes behind the beginning of `buffer`. With negative strides other elements lie
 * before it, but none outside of the buffer.
 *
 * dl.shape and dl.strides are not NULL unless dl.ndim is 0; strides count elements. dl.device is the backend's own device,
 * its index as in `device_open`. The struct and all it points to are valid during the call only. */
typedef struct um_tensor {
  uint32_t size;
  uint32_t flags;       /* 0 */
  DLTensor dl;
  void *buffer;         /* handle of the buffer; NULL for memory of the host */
  uint64_t buffer_size; /* size of the whole buffer in bytes */
  void *wait;           /* event that must reach `wait_value` before the memory is used, or NULL; set only for devices
                         * with UM_DEVICE_WAITS_IN_COMMANDS */
  uint64_t wait_value;
} um_tensor;

/* ---- devices ------------------------------------------------------------------------------------------------ */

/* Bits of um_device_info.flags. */
/* Equal commands give bitwise identical results, in one process and in the next: docs/operations.md, "Determinism". */
#define UM_DEVICE_DETERMINISTIC 1u
/* Subnormal numbers may become zero, as operands and as results. */
#define UM_DEVICE_FLUSHES_SUBNORMALS 2u
/* Products of float32 may use fewer mantissa bits, whatever precision is asked for. */
#define UM_DEVICE_REDUCED_PRECISION 4u
/* The backend waits for um_tensor.wait itself. Else the host calls event_wait_stream before the command. */
#define UM_DEVICE_WAITS_IN_COMMANDS 8u
/* copy_to_device with a stream is enqueued there: see its comment. */
#define UM_DEVICE_UPLOADS_IN_ORDER 16u

/* Properties of a device. The host sets size; fields that the backend does not know stay 0. Masks have a bit for each dtype:
 * bit UM_DTYPE_FLOAT32, of value 1 << UM_DTYPE_FLOAT32, stands for float32. */
typedef struct um_device_info {
  uint32_t size;
  uint32_t synchronous;       /* 1: commands and copies are done when the call returns */
  uint32_t host_memory;       /* 1: buffers are memory that the host reads and writes by address */
  uint32_t dtypes_storage;    /* mask of dtypes that buffers may hold and COPY takes; 0: all */
  uint32_t dtypes_arithmetic; /* mask of dtypes that operations compute with, a part of dtypes_storage */
  uint32_t fused_max_instructions; /* most instructions of a fused program; 0: no such interface */
  uint32_t fused_max_inputs;       /* most inputs of a fused program */
  uint32_t reserved;          /* 0 */
  uint64_t memory;            /* of the device, in bytes; 0: unknown */
  char name[128];             /* for people; NUL-terminated UTF-8 */
  uint32_t flags;             /* bits UM_DEVICE_... */
  uint32_t dtypes_accumulate; /* mask of dtypes whose sums and products accumulate in a wider type */
  uint32_t max_inputs;        /* most inputs of a command; 0: no limit */
  uint32_t alignment;         /* of buffers, in bytes, a power of two; 0: unknown */
  uint64_t max_buffer;        /* largest buffer in bytes; 0: no limit but memory */
  char kernel_languages[64];  /* languages of ultramarine.kernel/1, separated by spaces */
  um_device_identity identity;
} um_device_info;

/* ---- commands ----------------------------------------------------------------------------------------------- */

/* One command: a plan with its tensors and scalars. Valid during the call only. */
typedef struct um_command {
  uint32_t size;
  uint32_t flags;                /* 0 */
  void *plan;                    /* made by `prepare` or by a fused interface */
  const um_tensor *inputs;       /* as many, of the dtypes, ranks and layouts that the plan was made for */
  const um_tensor *outputs;      /* likewise; the host has allocated their memory */
  const uint64_t (*scalars)[2];  /* 16 bytes each: the little-endian bits of a value of its dtype, the rest unspecified */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_scalars;
  uint32_t tensor_stride;        /* bytes from one element of inputs, and of outputs, to the next */
  void *workspace;               /* scratch memory of the size that plan_workspace returned, aligned as buffers are, or
                                  * NULL. Its address on devices whose buffers have one for the host, else a buffer's
                                  * handle. Commands of one list may share it. */
} um_command;

/* ---- what a backend offers ---------------------------------------------------------------------------------- */

/* The functions of a backend. Required are device_count, device_info, device_open, prepare, plan_release and submit. The
 * functions of buffers (without buffer_host_pointer), copies, streams and events are required unless device_type is kDLCPU:
 * such a backend leaves memory and streams to the host. device_close, plan_workspace and interface_ are optional.
 *
 * `device` is a handle of device_open; `error` may be NULL. */
typedef struct um_backend_table {
  uint32_t size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void *backend;      /* first argument of the functions that take no device */
  const char *name;   /* as in the ABI info; NUL-terminated, lives as long as the process */
  int32_t device_type; /* as in the ABI info */
  uint32_t reserved;  /* 0 */

  /* (any) Returns the number of devices, which have the indices from 0 on. It stays the same. */
  uint32_t (*device_count)(void *backend);
  /* (any) Fills `info` for device `index`. UM_INVALID: there is no such device. */
  um_status (*device_info)(void *backend, uint32_t index, um_device_info *info, um_error **error);
  /* (any) Opens device `index` and sets `*device` to its handle. */
  um_status (*device_open)(void *backend, uint32_t index, void **device, um_error **error);
  /* (any) Closes a device. Its buffers, streams, events and plans are gone. */
  void (*device_close)(void *device);

  /* (any) Allocates a buffer of at least `bytes` bytes, which are not 0, uninitialised. */
  um_status (*buffer_alloc)(void *device, uint64_t bytes, void **buffer, um_error **error);
  /* (any) Frees a buffer. No stream uses it any more. */
  void (*buffer_free)(void *device, void *buffer);
  /* (any) Returns the buffer's address for the host, the same for all its life, or NULL if it has none. A function that is
   * missing means NULL. */
  void *(*buffer_host_pointer)(void *device, void *buffer);
  /* (stream) Copies `bytes` bytes of host memory to a buffer, `offset` bytes behind its beginning. The copy is done on
   * return. `stream` may be NULL. With UM_DEVICE_UPLOADS_IN_ORDER and a stream, only the source has been read on return:
   * the copy is work of the stream, and its later work sees the bytes. */
  um_status (*copy_to_device)(void *device, void *stream, void *buffer, uint64_t offset, const void *source,
                              uint64_t bytes, um_error **error);
  /* (stream) Copies `bytes` bytes of a buffer to host memory, behind the stream's earlier work. The copy is done on return.
   * `stream` may be NULL. */
  um_status (*copy_to_host)(void *device, void *stream, void *buffer, uint64_t offset, void *target,
                            uint64_t bytes, um_error **error);

  /* (any) Creates a stream: work that is enqueued to it takes effect in order. */
  um_status (*stream_create)(void *device, void **stream, um_error **error);
  /* (any) Destroys a stream that has no work left. */
  void (*stream_destroy)(void *device, void *stream);
  /* (any) Blocks the calling thread until all work of the stream is done. Fails if work of the stream has failed. */
  um_status (*stream_synchronize)(void *device, void *stream, um_error **error);

  /* (any) Creates a timeline event: a number that is 0 at first and only grows. */
  um_status (*event_create)(void *device, void **event, um_error **error);
  /* (stream) Enqueues a record: the event takes `value` when the stream's earlier work is done. Values of one event grow. */
  um_status (*event_record)(void *device, void *stream, void *event, uint64_t value, um_error **error);
  /* (stream) Enqueues a wait: later work of the stream begins when the event has reached `value`. The calling thread does
   * not wait. `value` may not have been recorded yet. */
  um_status (*event_wait_stream)(void *device, void *stream, void *event, uint64_t value, um_error **error);
  /* (any) Blocks the calling thread until the event has reached `value`. Fails if work that was submitted before the record
   * of that value has failed: the host learns of such failures here, or from stream_synchronize. */
  um_status (*event_wait_host)(void *device, void *event, uint64_t value, um_error **error);
  /* (any) Returns the event's present value, without waiting. */
  uint64_t (*event_query)(void *device, void *event);
  /* (any) Destroys an event. Nothing waits for it. */
  void (*event_destroy)(void *device, void *event);

  /* (any) Makes a plan for an operation UM_OP_... `revision` is the revision of its attributes. `attributes` points to the
   * operation's struct of schema.h (um_no_attrs where it has none); a non-zero tail that this build does not know means
   * UM_UNSUPPORTED, and NULL, which the host never passes, UM_INVALID. Descriptions lie inputs->size and outputs->size
   * bytes apart. A plan depends on dtypes, ranks and layouts, not on sizes, and may be used by several threads at once.
   * UM_UNSUPPORTED and UM_NEEDS_CONTIGUOUS need no error object. */
  um_status (*prepare)(void *device, uint32_t op, uint32_t revision, const void *attributes,
                       const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                       uint32_t n_outputs, void **plan, um_error **error);
  /* (any) Frees a plan. All its commands are done. */
  void (*plan_release)(void *device, void *plan);
  /* (any) Returns the workspace in bytes that a command of the plan needs; 0: none. `command` has the sizes of its tensors,
   * but memory need not be allocated yet: only shapes and strides count. A function that is missing means 0. */
  uint64_t (*plan_workspace)(void *device, void *plan, const um_command *command);
  /* (stream) Runs commands in order, or enqueues them. They lie commands->size bytes apart; each may read what one before it
   * writes. A command whose plan was made fails only for lack of memory (UM_OUT_OF_MEMORY), or if the device fails.
   *
   * A list ends at the first command that fails. Commands before it stay enqueued or done; it may have begun; none behind it
   * has begun. The backend names it by the host's `error_command`. Without that the host counts the whole list as lost. */
  um_status (*submit)(void *device, void *stream, const um_command *commands, uint32_t n_commands,
                      um_error **error);
  /* (any) Returns the table of an optional interface by its id (interfaces.h), or NULL. The table lives as long as the
   * process. */
  const void *(*interface_)(void *backend, const char *id);
} um_backend_table;

/* ---- entry points ------------------------------------------------------------------------------------------- */

#if defined(_WIN32)
#define UM_EXPORT __declspec(dllexport)
#else
#define UM_EXPORT __attribute__((visibility("default")))
#endif

/* Required. Fills `info`, of which the host has set `size`. Runs no other code. */
UM_EXPORT um_status ultramarine_backend_abi_info(um_backend_abi_info *info);
/* Optional. Fills `score`: can the backend run here, and how well. It must be cheap: no context of a driver, no threads. A
 * status other than UM_OK counts as score 0. */
UM_EXPORT um_status ultramarine_backend_score(um_backend_score *score);
/* Required. Fills `table`, of which the host has set `size`. `host` lives as long as the process. After a failure the host
 * tries the next variant; the library stays mapped in either case. */
UM_EXPORT um_status ultramarine_backend_init(const um_host_table *host, um_backend_table *table, um_error **error);

/* ---- the note ----------------------------------------------------------------------------------------------- */

/* The ABI info as it lies in an ELF file, in section .note.ultramarine: the host reads it without running any code of the
 * backend. `UM_DEFINE_BACKEND` makes it. */
typedef struct um_elf_note {
  uint32_t name_size;        /* 12 */
  uint32_t description_size; /* sizeof(um_backend_abi_info) */
  uint32_t kind;             /* UM_NOTE_TYPE */
  char owner[12];            /* UM_NOTE_OWNER */
  um_backend_abi_info info;
} um_elf_note;
#define UM_NOTE_TYPE 1
#define UM_NOTE_OWNER "Ultramarine"

#ifdef __cplusplus
}
#endif

#include "interfaces.h"
#include "schema.h"

#endif
