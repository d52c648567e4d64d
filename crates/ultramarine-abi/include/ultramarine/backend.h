/* The contract between Ultramarine and its backends, in C11 (and C++, CUDA).
 *
 * A backend is a shared library `libultramarine-{name}[-{variant}].so` that exports three functions
 * (two of them required) and carries a note with its ABI info. It fills an `um_backend_table`; the host lends
 * it an `um_host_table`. Tensors at the boundary are DLPack's `DLTensor`.
 *
 * The rules that keep the boundary stable:
 *  - Every struct starts with its own size. Fields are only appended. A reader copies min(size) bytes into a
 *    zeroed struct; a writer writes no more than the size that it was given. Arrays of structs carry their
 *    element stride.
 *  - Fixed-width integers only.
 *  - A NULL function, or one beyond the table's size, means "unsupported".
 *  - A call that fails returns a status and, through `error` (may be NULL), an object made by the host's
 *    `error_new`. UM_ERROR and UM_INVALID should always come with one: without it the user reads only that the
 *    call failed. Nothing unwinds across the boundary: no exception, no longjmp.
 *  - A backend calls the host through the host table only.
 *  - Functions marked (any) may be called from any thread at once; (stream): one call at a time per stream,
 *    from changing threads.
 *
 * `schema.h` lists the operations with their attributes; `helper.h` helps to write a backend in C,
 * `helper.hpp` in C++. The guide is docs/write-a-backend.md. */
#ifndef ULTRAMARINE_BACKEND_H
#define ULTRAMARINE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the contract. While the major is 0 nothing is frozen: both numbers must be equal on both sides. */
#define UM_ABI_MAJOR 0
#define UM_ABI_MINOR 2
/* DLPack's version whose structs are used. */
#define UM_DLPACK_MAJOR 1
#define UM_DLPACK_MINOR 3

/* ---- status ------------------------------------------------------------------------------------------------- */

typedef int32_t um_status;
#define UM_OK 0
#define UM_ERROR 1            /* failed; the error object says why */
#define UM_UNSUPPORTED 2      /* this op, dtype or attribute is unknown here: the host tries another way */
#define UM_NEEDS_CONTIGUOUS 3 /* could, were the inputs row-major contiguous: the host copies */
#define UM_OUT_OF_MEMORY 4    /* no memory for the outputs or the workspace */
#define UM_FORKED 5           /* called in a forked child of the process that opened the device */
#define UM_INVALID 6          /* an argument is wrong */
#define UM_NOT_YET 7          /* being compiled; go another way, ask again next time (fused/1's prepare, replay/2) */

typedef struct um_error um_error; /* opaque; made by error_new, freed by the host */

/* ---- before anything is initialised: ABI info and score ----------------------------------------------------- */

#define UM_SANITIZER_ADDRESS 1u
#define UM_SANITIZER_THREAD 2u
#define UM_SANITIZER_MEMORY 4u
#define UM_SANITIZER_OTHER 8u

#define UM_LITTLE_ENDIAN 1
#define UM_BIG_ENDIAN 2

/* Properties of a binary. Text is inline, NUL-padded UTF-8; a text that fills its field has no NUL. */
typedef struct um_backend_abi_info {
  uint32_t size;
  uint16_t abi_major;
  uint16_t abi_minor;
  uint16_t dlpack_major;
  uint16_t dlpack_minor;
  uint32_t table_size;  /* sizeof(um_backend_table) */
  uint8_t pointer_bits;
  uint8_t endianness;   /* UM_LITTLE_ENDIAN or UM_BIG_ENDIAN */
  uint16_t reserved;    /* 0 */
  int32_t device_type;  /* DLPack's; a backend of kDLCPU overlays kernels on cpu:0 */
  uint32_t sanitizers;  /* UM_SANITIZER_... */
  uint32_t flags;       /* 0 */
  char name[32];        /* as in the file's name: lower-case letters, digits, _ */
  char variant[32];     /* likewise, or empty: letters, digits, _ . - */
  char version[32];
  char target[64];      /* target triple */
  char compiler[64];
  char cpu_features[256]; /* separated by spaces: "avx2 fma", "avx512f", "x86-64-v3" ... */
} um_backend_abi_info;

#define UM_IDENTITY_UUID 1u
#define UM_IDENTITY_PCI 2u

/* Identity of a physical device. */
typedef struct um_device_identity {
  uint32_t size;
  uint32_t known; /* UM_IDENTITY_...: which of the following are filled in */
  uint8_t uuid[16];
  uint32_t pci_domain;
  uint32_t pci_bus;
  uint32_t pci_device;
  uint32_t pci_function;
  uint64_t memory; /* bytes; 0: unknown */
  char name[128];
} um_device_identity;

#define UM_DEFAULT_SCORE 1
#define UM_MAX_SCORE 10000

/* The host sets size, device_capacity, device_stride and devices (each with its size); the rest is 0. */
typedef struct um_backend_score {
  uint32_t size;
  uint32_t score;           /* 0: cannot run here; up to UM_MAX_SCORE, the best of a name is used */
  uint32_t device_count;    /* may exceed device_capacity; 0 beside a score: not counted */
  uint32_t device_capacity;
  uint32_t device_stride;
  uint32_t reserved;
  um_device_identity *devices;
  char reason[256];         /* why the score is 0 */
} um_backend_score;

/* ---- what the host lends ------------------------------------------------------------------------------------ */

#define UM_LOG_ERROR 0u
#define UM_LOG_WARNING 1u
#define UM_LOG_INFO 2u
#define UM_LOG_DEBUG 3u

typedef void (*um_parallel_body)(void *context, uint64_t index);

/* Callable from any thread, for as long as the process lives. */
typedef struct um_host_table {
  uint32_t size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void *host; /* first argument of the functions */
  void (*log)(void *host, uint32_t level, const char *text, uint64_t length);
  um_error *(*error_new)(void *host, um_status code, const char *text, uint64_t length);
  void *(*alloc)(void *host, uint64_t bytes); /* 256-byte aligned host memory, uninitialised; NULL: none left */
  void (*free)(void *host, void *data);
  /* body(context, i) for every i < count, on the host's threads and the caller's; returns when all are done. */
  void (*parallel_for)(void *host, uint64_t count, um_parallel_body body, void *context);
  uint32_t (*thread_count)(void *host); /* threads of parallel_for at most, the caller included */
  /* Says that the error of a submit is that of command `index` of its list. The error is still the backend's to return. */
  void (*error_command)(void *host, um_error *error, uint32_t index);
} um_host_table;

/* ---- tensors ------------------------------------------------------------------------------------------------ */

#define UM_MAX_NDIM 32
#define UM_LAYOUT_CONTIGUOUS 0u /* row-major without gaps */
#define UM_LAYOUT_STRIDED 1u    /* any strides: negative, zero (broadcast), permuted */

/* How far factors of float32 may be rounded: values of the attribute `precision` of products and convolutions. */
#define UM_PRECISION_HIGHEST 0u /* not at all */
#define UM_PRECISION_HIGH 1u    /* to TensorFloat-32, of 11 significant bits */
#define UM_PRECISION_MEDIUM 2u  /* to bfloat16, of 8 significant bits */

/* A tensor as `prepare` sees it: without sizes. */
typedef struct um_tensor_desc {
  uint32_t size;
  int32_t ndim;
  DLDataType dtype;
  uint32_t layout; /* UM_LAYOUT_... */
} um_tensor_desc;

/* A tensor of a command. On devices with host memory the first element is at dl.data + dl.byte_offset; elsewhere
 * it is dl.byte_offset bytes into `buffer`. Strides may lead below it. dl.shape and dl.strides are never NULL
 * unless ndim is 0; strides count elements. All of it is valid only during the call. */
typedef struct um_tensor {
  uint32_t size;
  uint32_t flags; /* 0 */
  DLTensor dl;
  void *buffer;         /* the backend's own handle; NULL for memory of the host */
  uint64_t buffer_size; /* bytes in the whole buffer */
  void *wait;           /* event to wait for, see UM_DEVICE_WAITS_IN_COMMANDS; NULL: none */
  uint64_t wait_value;
} um_tensor;

/* ---- devices ------------------------------------------------------------------------------------------------ */

#define UM_DEVICE_DETERMINISTIC 1u      /* equal commands give equal bits */
#define UM_DEVICE_FLUSHES_SUBNORMALS 2u /* subnormal numbers may become zero */
#define UM_DEVICE_REDUCED_PRECISION 4u  /* float32 products may use a shorter mantissa */
#define UM_DEVICE_WAITS_IN_COMMANDS 8u  /* the backend itself waits for um_tensor.wait */
#define UM_DEVICE_UPLOADS_IN_ORDER 16u  /* copy_to_device with a stream is enqueued there */

/* The host sets size; the backend leaves 0 what it does not know. Masks: bit i is dtype i of UM_DTYPES. */
typedef struct um_device_info {
  uint32_t size;
  uint32_t synchronous;       /* 1: submit returns only after the commands are done */
  uint32_t host_memory;       /* 1: buffers are ordinary host memory */
  uint32_t dtypes_storage;    /* may be stored and copied */
  uint32_t dtypes_arithmetic; /* may be computed with */
  uint32_t fused_max_instructions;
  uint32_t fused_max_inputs;
  uint32_t reserved; /* 0 */
  uint64_t memory;            /* bytes; 0: unknown */
  char name[128];             /* NUL-terminated */
  uint32_t flags;             /* UM_DEVICE_... */
  uint32_t dtypes_accumulate; /* sums and products accumulate in something wider */
  uint32_t max_inputs;        /* of one command; 0: no limit */
  uint32_t alignment;         /* of buffers, in bytes; 0: unknown */
  uint64_t max_buffer;        /* bytes; 0: no limit but memory */
  char kernel_languages[64];  /* of ultramarine.kernel/1, separated by spaces */
  um_device_identity identity;
} um_device_info;

/* ---- commands ----------------------------------------------------------------------------------------------- */

/* One command: a plan with its tensors and scalars. */
typedef struct um_command {
  uint32_t size;
  uint32_t flags; /* 0 */
  void *plan;
  const um_tensor *inputs;
  const um_tensor *outputs;      /* allocated by the host */
  const uint64_t (*scalars)[2];  /* each the little-endian bits of its dtype */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_scalars;
  uint32_t tensor_stride;        /* bytes between the elements of inputs and of outputs */
  void *workspace;               /* what plan_workspace asked for, or NULL: its address where buffers have
                                  * one for the host, else the handle of a buffer; aligned as buffers are */
} um_command;

/* ---- what a backend offers ---------------------------------------------------------------------------------- */

typedef struct um_backend_table {
  uint32_t size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void *backend;      /* first argument of the functions that take no device */
  const char *name;   /* static, NUL-terminated; as in the ABI info */
  int32_t device_type;
  uint32_t reserved;  /* 0 */

  uint32_t (*device_count)(void *backend); /* (any) */
  um_status (*device_info)(void *backend, uint32_t index, um_device_info *info, um_error **error); /* (any) */
  um_status (*device_open)(void *backend, uint32_t index, void **device, um_error **error); /* (any) */
  void (*device_close)(void *device); /* (any) its buffers and streams are gone */

  um_status (*buffer_alloc)(void *device, uint64_t bytes, void **buffer, um_error **error); /* (any) */
  void (*buffer_free)(void *device, void *buffer); /* (any) no stream uses it any more */
  void *(*buffer_host_pointer)(void *device, void *buffer); /* (any) its address for the host, or NULL */
  /* (stream) Copies that are done on return; the stream may be NULL. With a stream and UM_DEVICE_UPLOADS_IN_ORDER only
   * the source has been read on return, and the bytes are there for the stream's later work. */
  um_status (*copy_to_device)(void *device, void *stream, void *buffer, uint64_t offset, const void *source,
                              uint64_t bytes, um_error **error);
  um_status (*copy_to_host)(void *device, void *stream, void *buffer, uint64_t offset, void *target,
                            uint64_t bytes, um_error **error);

  um_status (*stream_create)(void *device, void **stream, um_error **error); /* (any) */
  void (*stream_destroy)(void *device, void *stream); /* (any) it has drained */
  um_status (*stream_synchronize)(void *device, void *stream, um_error **error); /* (any) */

  /* Timeline events: a value that only grows, 0 at first. */
  um_status (*event_create)(void *device, void **event, um_error **error); /* (any) */
  /* (stream) The event takes `value` once the stream's earlier work is done. */
  um_status (*event_record)(void *device, void *stream, void *event, uint64_t value, um_error **error);
  /* (stream) Later work of the stream waits until the event has reached `value`. */
  um_status (*event_wait_stream)(void *device, void *stream, void *event, uint64_t value, um_error **error);
  /* (any) Blocks the caller until the event has reached `value`. Fails when work that was submitted before the
   * value was recorded has failed on the device: the host learns of it here (or from stream_synchronize). */
  um_status (*event_wait_host)(void *device, void *event, uint64_t value, um_error **error);
  uint64_t (*event_query)(void *device, void *event); /* (any) its present value */
  void (*event_destroy)(void *device, void *event);   /* (any) nobody waits for it */

  /* (any) Makes a plan for one op; `attributes` is the op's struct of schema.h, whose unknown tail, if not zero,
   * means UM_UNSUPPORTED. Descriptions lie `inputs->size` and `outputs->size` bytes apart. A plan depends on dtypes, ranks and layouts only, and may be used by many threads. */
  um_status (*prepare)(void *device, uint32_t op, uint32_t revision, const void *attributes,
                       const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                       uint32_t n_outputs, void **plan, um_error **error);
  void (*plan_release)(void *device, void *plan); /* (any) */
  uint64_t (*plan_workspace)(void *device, void *plan, const um_command *command); /* (any) bytes; NULL: none */
  /* (stream) Runs commands in order; they lie `commands->size` bytes apart. No tensor has size 0. A backend that
   * made a plan may refuse sizes only with UM_OUT_OF_MEMORY.
   * A list ends at the first command that fails: those before it are enqueued (or done), it may have begun, and of those
   * behind it nothing has. The error says which one it is by the host's `error_command`; a list of several commands
   * whose error does not say so is lost as a whole. */
  um_status (*submit)(void *device, void *stream, const um_command *commands, uint32_t n_commands,
                      um_error **error);
  /* (any) An optional interface by its id, a static table; NULL: there is none. */
  const void *(*interface_)(void *backend, const char *id);
} um_backend_table;

/* ---- entry points ------------------------------------------------------------------------------------------- */

#if defined(_WIN32)
#define UM_EXPORT __declspec(dllexport)
#else
#define UM_EXPORT __attribute__((visibility("default")))
#endif

/* Required. Fills the struct, of which the host has set `size`. */
UM_EXPORT um_status ultramarine_backend_abi_info(um_backend_abi_info *info);
/* Optional. Whether and how well it can run here; cheap: no context, no threads. */
UM_EXPORT um_status ultramarine_backend_score(um_backend_score *score);
/* Required. Fills the table, of which the host has set `size`. The host table lives as long as the process. */
UM_EXPORT um_status ultramarine_backend_init(const um_host_table *host, um_backend_table *table, um_error **error);

/* ---- the note ----------------------------------------------------------------------------------------------- */

/* The ABI info as it lies in an ELF file, in section .note.ultramarine: it can be read without running any code. */
typedef struct um_elf_note {
  uint32_t name_size;        /* 12 */
  uint32_t description_size; /* sizeof(um_backend_abi_info) */
  uint32_t kind;             /* UM_NOTE_TYPE */
  char owner[12];            /* "Ultramarine" */
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
