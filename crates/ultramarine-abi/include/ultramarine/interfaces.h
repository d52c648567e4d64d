/* Optional interfaces of a backend. The host looks each up by its id, with `interface_` of um_backend_table; the answer is a
 * static table, or NULL. An id ends in the interface's revision; within a revision structs only grow, by their sizes.
 *
 * The rules of backend.h hold: statuses and errors, handles, (any) and (stream), missing functions. Pointers in arguments are
 * valid during the call only. Included by backend.h. */
#ifndef ULTRAMARINE_INTERFACES_H
#define ULTRAMARINE_INTERFACES_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ultramarine.fused/1: elementwise programs with an optional reduction as epilogue ---------------------- */

/* A program computes several elementwise operations in one kernel. It is in static single assignment form: operand indices
 * count first the inputs, then the constants, then the results of the instructions. Every value has the iteration shape, to
 * which inputs are broadcast by zero strides. Every instruction rounds to its dtype, without contraction, so results are
 * bitwise identical to those of the operations one by one.
 *
 * With an epilogue, output 0 is the named value, reduced over `axes` (which stay, with size 1); further outputs have the
 * iteration shape. A sum or product is bitwise identical to REDUCE of that value. So the order of adding depends on dtype,
 * shape and axes, and not on an operand's strides.
 *
 * The output of the last instruction may be the memory of an input, element for element. No other output overlaps an
 * input. */
#define UM_FUSED_INTERFACE "ultramarine.fused/1"

/* Families of instructions. */
#define UM_FAMILY_UNARY 0u  /* op: UM_UNARY_... of a */
#define UM_FAMILY_BINARY 1u /* op: UM_BINARY_... of a and b, which have one dtype */
#define UM_FAMILY_SELECT 2u /* a ? b : c; a is bool */
#define UM_FAMILY_CAST 3u   /* a, converted to the instruction's dtype as COPY does */

typedef struct um_instruction {
  uint8_t family; /* UM_FAMILY_... */
  uint8_t op; /* code within the family; 0 for select and cast */
  uint16_t a; /* operand indices; 0 where the family has fewer */
  uint16_t b;
  uint16_t c;
  DLDataType dtype; /* of the result */
} um_instruction;

#define UM_NO_REDUCTION 0xffffffffu

/* A program. */
typedef struct um_program {
  uint32_t size;
  uint32_t reduce; /* epilogue: UM_REDUCE_... for output 0, or UM_NO_REDUCTION */
  uint64_t axes;   /* bit i (of value 2^i): axis i of the iteration shape is reduced */
  const um_instruction *instructions;
  const DLDataType *constants; /* their dtypes; the values are the command's scalars */
  const uint16_t *outputs;     /* operand index of each output */
  uint32_t n_instructions;
  uint32_t n_constants;
  uint32_t n_outputs;
  uint32_t n_inputs;
} um_program;

typedef struct um_fused_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Makes a plan for a program, as `prepare` of the table does for an operation. There are n_inputs and n_outputs
   * descriptions. The plan is submitted and released as any other; a command's scalars are the values of the constants.
   * UM_UNSUPPORTED, UM_NOT_YET: the host runs the operations one by one. */
  um_status (*prepare)(void *device, const um_program *program, const um_tensor_desc *inputs,
                       const um_tensor_desc *outputs, void **plan, um_error **error);
} um_fused_interface;

/* ---- ultramarine.fused/2: programs with an anchor, besides fused/1 ------------------------------------------ */

#define UM_ANCHORED_INTERFACE "ultramarine.fused/2"

#define UM_POSITION_LAST 0u /* operand 0 of the operation is the value that the program's output 0 names */

/* An anchor: an operation with one output that reads a value of a program. The program has no epilogue.
 *
 * Inputs of a command are the program's inputs, then the operation's operands without the one that is the value. Scalars are
 * the program's constants, then the operation's scalars. With UM_POSITION_LAST, output 0 is the operation's. The further
 * outputs are the program's, of the iteration shape; the value itself may be among them. The last of them may be the memory
 * of an input of the program, as in fused/1, but of none that the operation reads.
 *
 * The value is rounded to its dtype before the operation reads it. So results are bitwise identical to those of the program,
 * followed by the operation on its row-major result. */
typedef struct um_anchor {
  uint32_t size;
  uint32_t op;       /* UM_OP_... */
  uint32_t revision; /* of its attributes */
  uint32_t position; /* UM_POSITION_...; others are unsupported */
  const void *attributes; /* the operation's struct of schema.h */
  uint32_t n_inputs; /* operands besides the one that is a value of the program */
  uint32_t n_scalars;
} um_anchor;

typedef struct um_anchored_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Makes a plan, as `prepare` of fused/1 does. `inputs` has the program's n_inputs descriptions, then the anchor's
   * n_inputs. UM_UNSUPPORTED, UM_NOT_YET: the host runs the program and the operation one after the other. */
  um_status (*prepare)(void *device, const um_program *program, const um_anchor *anchor, const um_tensor_desc *inputs,
                       const um_tensor_desc *outputs, void **plan, um_error **error);
} um_anchored_interface;

/* ---- ultramarine.kernel/1: kernels given by users, in source form or compiled -------------------------------- */

/* um_device_info.kernel_languages lists the languages of a device: sources cuda-c, wgsl, msl, opencl-c ...; compiled code ptx,
 * cubin. */
#define UM_KERNEL_INTERFACE "ultramarine.kernel/1"

/* A kernel to compile. */
typedef struct um_kernel_source {
  uint32_t size;
  uint32_t n_template_arguments;
  const char *language; /* one of um_device_info.kernel_languages, NUL-terminated */
  const char *source;   /* source_bytes bytes of UTF-8; of cubin any bytes */
  uint64_t source_bytes;
  const char *entry;                      /* name of the function, NUL-terminated */
  const char *const *template_arguments;  /* as text, each NUL-terminated */
  const char *options;                    /* for the compiler, NUL-terminated, or NULL */
} um_kernel_source;

/* Kinds of arguments. UM_ARGUMENT_TENSOR passes a pointer to the first element of `tensor`, or a binding of memory that
 * begins there. Unlike tensors of commands it may be empty; its buffer may then be NULL. */
#define UM_ARGUMENT_TENSOR 0u
#define UM_ARGUMENT_SCALAR 1u /* `scalar` of `dtype`, by value; bool is a byte */

typedef struct um_kernel_argument {
  uint32_t size;
  uint32_t kind;           /* UM_ARGUMENT_... */
  const um_tensor *tensor; /* or NULL */
  uint64_t scalar[2];      /* little-endian bits */
  DLDataType dtype;        /* of the scalar */
  uint32_t written;        /* 1: the kernel writes to the tensor */
} um_kernel_argument;

/* One launch. */
typedef struct um_kernel_launch {
  uint32_t size;
  uint32_t n_arguments;
  const um_kernel_argument *arguments; /* in the order of the kernel's parameters */
  uint32_t argument_stride;            /* bytes between the elements of arguments */
  uint32_t shared_bytes;               /* dynamic shared memory; where that is a parameter (opencl-c), the last one */
  uint32_t grid[3];                    /* blocks (work groups) in x, y, z */
  uint32_t block[3];                   /* threads (work items) of a block in x, y, z */
} um_kernel_launch;

/* Properties of a compiled kernel on a device. The host sets size; unknown ones stay 0. */
typedef struct um_kernel_info {
  uint32_t size;
  uint32_t max_threads;     /* most threads of a block of this kernel */
  uint32_t thread_multiple; /* efficient numbers of threads are multiples of this (the size of a warp or wave) */
  uint32_t max_shared;      /* bytes of shared memory of a block, dynamic and static */
} um_kernel_info;

typedef struct um_kernel_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Compiles a kernel. The error of a failure has the compiler's log. */
  um_status (*compile)(void *device, const um_kernel_source *source, void **kernel, um_error **error);
  /* (stream) Enqueues a launch behind the stream's earlier work. */
  um_status (*launch)(void *device, void *stream, void *kernel, const um_kernel_launch *launch, um_error **error);
  /* (any) Frees a kernel. No stream runs it any more. */
  void (*release)(void *device, void *kernel);
  /* (any) Reads the properties of a kernel. */
  um_status (*info)(void *device, void *kernel, um_kernel_info *info, um_error **error);
} um_kernel_interface;

/* ---- ultramarine.memory/1: memory of other libraries as buffers and the reverse, without a copy -------------- */

/* Kinds follow DLPack's device types: UM_MEMORY_HOST for the CPU and pinned memory; UM_MEMORY_DEVICE_POINTER for CUDA, its
 * managed memory, ROCm, oneAPI and extension devices; UM_MEMORY_MTL_BUFFER for Metal; UM_MEMORY_CL_MEM for OpenCL. A block by
 * an address begins at the lowest element, a block by a handle at the beginning of the object.
 *
 * Streams of the two libraries are ordered on the device if native_stream, wait_foreign and signal_foreign are all there;
 * else the host waits. */

#define UM_MEMORY_INTERFACE "ultramarine.memory/1"

#define UM_MEMORY_HOST 0u           /* `handle` is an address in host memory */
#define UM_MEMORY_DEVICE_POINTER 1u /* an address in the device's memory */
#define UM_MEMORY_OPAQUE_FD 2u      /* an opaque file descriptor */
#define UM_MEMORY_MTL_BUFFER 3u     /* an MTLBuffer */
#define UM_MEMORY_CL_MEM 4u         /* a cl_mem */

/* Bits of um_foreign_memory.flags. */
#define UM_MEMORY_READ_ONLY 1u /* the memory must not be written */

/* A block of memory that belongs to another library. */
typedef struct um_foreign_memory {
  uint32_t size;
  uint32_t kind;     /* UM_MEMORY_HOST, ... */
  uint32_t flags;    /* bits: UM_MEMORY_READ_ONLY */
  uint32_t reserved; /* 0 */
  uint64_t handle;   /* as kind says */
  uint64_t offset;   /* bytes from the start of the memory to the block */
  uint64_t bytes;    /* size of the block */
  /* Called once, on any thread, when the block is no longer used; may be NULL. The owner sets it for an import, the backend
   * for an export. */
  void (*release)(void *context);
  void *context;
  /* Native event or stream of the other library: the content is there after its present work. 0: it is there already. */
  uint64_t ready;
} um_foreign_memory;

typedef struct um_memory_interface {
  uint32_t size;
  uint32_t imports; /* bit i: memory of kind i can be imported */
  uint32_t exports; /* bit i: buffers can be exported as kind i */
  uint32_t flags;   /* 0 */
  /* (any) Makes a buffer of a block of another library. After UM_OK the backend calls `release` when the buffer is freed;
   * after a failure it never does, and the owner keeps the block. */
  um_status (*import_)(void *device, const um_foreign_memory *memory, void **buffer, um_error **error);
  /* (any) Describes a buffer as memory of `kind`, for another library. The host keeps the buffer alive as long as that library
   * uses it, and calls `release` afterwards. */
  um_status (*export_)(void *device, void *buffer, uint32_t kind, um_foreign_memory *memory, um_error **error);
  /* (stream) Makes a stream of the backend wait for the present work of a foreign native stream, given as in
   * signal_foreign. */
  um_status (*wait_foreign)(void *device, void *stream, uint64_t foreign, um_error **error);
  /* (any) Returns the native stream behind a stream of the backend, as an integer. */
  uint64_t (*native_stream)(void *device, void *stream);
  /* (any) Makes later work of a foreign native stream wait until an event of the backend has reached `value`, which has been
   * recorded. `foreign` is a number as native_stream returns it, or one that DLPack gives a meaning for the device's type
   * (CUDA: 1 and 2; ROCm: 0). The backend refuses other numbers where it can tell. */
  um_status (*signal_foreign)(void *device, uint64_t foreign, void *event, uint64_t value, um_error **error);
  /* (any) Keeps a living foreign native stream alive until release_foreign, also if its owner drops it. For APIs that count
   * references, such as OpenCL's queues; NULL elsewhere. */
  um_status (*retain_foreign)(void *device, uint64_t foreign, um_error **error);
  /* (any) Ends a retain_foreign that succeeded. Both are there, or neither. */
  void (*release_foreign)(void *device, uint64_t foreign);
} um_memory_interface;

/* ---- ultramarine.peer/1: copies between buffers of one backend, without the host ----------------------------- */

#define UM_PEER_INTERFACE "ultramarine.peer/1"

typedef struct um_peer_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (stream) Copies `bytes` bytes between buffers of two devices, or of one. Offsets are in bytes. The copy is work of
   * `stream`, a stream of the target's device, which the host has made wait for the source. */
  um_status (*copy)(void *target_device, void *stream, void *target, uint64_t target_offset, void *source_device,
                    void *source, uint64_t source_offset, uint64_t bytes, um_error **error);
} um_peer_interface;

/* ---- ultramarine.replay/2: lists of commands, recorded once and replayed on other memory --------------------- */

/* A recorded command is a command with a source for the memory of each tensor:
 *  - fixed: the command's own memory, which lives as long as the recording.
 *  - bound: a slot. Every replay binds a buffer to it.
 *  - arena: an offset in one buffer for all temporaries. `record` returns its size, and the host allocates it.
 * Scalars are the command's own, or values of a slot.
 *
 * A replay does what a submit of the commands would do, in their order, on the bound memory. Calls with one recording come
 * one at a time, from any thread. Its replays run one after the other: a stream waits for the former replay if that was on
 * another stream.
 *
 * record, replay and update may answer UM_UNSUPPORTED or UM_NOT_YET: nothing was done or enqueued, and the host submits the
 * commands instead. After UM_NOT_YET it asks again at a later run. */
#define UM_REPLAY_INTERFACE "ultramarine.replay/2"

/* Kinds of memory sources. */
#define UM_SOURCE_FIXED 0u /* the memory that the command names */
#define UM_SOURCE_BOUND 1u /* slot `slot`; dl.byte_offset counts from um_slot_memory.offset */
#define UM_SOURCE_ARENA 2u /* dl.byte_offset counts from the arena's beginning */

/* Source of a tensor's memory. If it is not fixed, dl.data, buffer, buffer_size and wait of the tensor are unspecified. */
typedef struct um_memory_source {
  uint32_t kind; /* UM_SOURCE_... */
  uint32_t slot; /* if bound, else 0 */
} um_memory_source;

#define UM_FIXED_SCALAR 0xffffffffu /* the scalar is the command's */

/* A command of a recording. */
typedef struct um_recorded_command {
  uint32_t size;
  uint32_t flags;                  /* 0 */
  const um_command *command;       /* plan, shapes, strides, offsets, scalars */
  const um_memory_source *sources; /* of the inputs, then of the outputs; NULL: all are fixed */
  const uint32_t *scalar_slots;    /* of each scalar, or UM_FIXED_SCALAR; NULL: all are fixed */
  um_memory_source workspace;
  uint64_t workspace_offset;       /* from the slot's or the arena's beginning */
} um_recorded_command;

/* Commands to record. */
typedef struct um_recording_request {
  uint32_t size;
  uint32_t flags; /* 0 */
  const um_recorded_command *commands; /* `commands->size` bytes apart */
  uint32_t n_commands;
  uint32_t n_slots;   /* number of slots for memory */
  uint32_t n_scalars; /* number of slots for scalars */
  uint32_t reserved;  /* 0 */
  uint64_t arena_bytes; /* size of the arena that the commands and later updates use */
} um_recording_request;

/* Memory that is bound to a slot for a replay. Handles may be reused: the handle of a former replay may belong to another
 * buffer now. State that a recording keeps about a buffer is valid only while its memory is the same. */
typedef struct um_slot_memory {
  void *buffer;    /* NULL for memory of the host, and for a slot that no command names */
  void *data;      /* the buffer's address for the host, or NULL */
  uint64_t bytes;  /* of the whole buffer */
  uint64_t offset; /* from the buffer's beginning to the slot's */
} um_slot_memory;

/* Memory and scalars of a replay. */
typedef struct um_replay_bindings {
  uint32_t size;
  uint32_t flags; /* 0 */
  const um_slot_memory *slots;
  const uint64_t (*scalars)[2]; /* as those of a command */
  uint32_t n_slots;             /* the recording's */
  uint32_t n_scalars;           /* the recording's */
  /* The arena, at least as large as record said, with offset 0. Its content is unspecified. Another arena than at the last
   * replay may cost as much as an update of all commands. */
  um_slot_memory arena;
} um_replay_bindings;

typedef struct um_replay_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Records commands without running them. Their plans and fixed buffers live as long as the recording. Sets
   * `*arena_bytes` to the request's arena_bytes, or to more: the rest is for the backend's own use. */
  um_status (*record)(void *device, const um_recording_request *request, void **recording, uint64_t *arena_bytes,
                      um_error **error);
  /* (stream) Runs a recording, as submit runs its commands. */
  um_status (*replay)(void *device, void *stream, void *recording, const um_replay_bindings *bindings,
                      um_error **error);
  /* (any) Replaces command `index` for later replays; replays under way keep the former one. The plan and the numbers of
   * tensors and scalars stay; shapes, strides, offsets, scalars and sources may differ. After a failure the former command
   * stays. */
  um_status (*update)(void *device, void *recording, uint32_t index, const um_recorded_command *command,
                      um_error **error);
  /* (any) Frees a recording. No stream runs it any more. */
  void (*release)(void *device, void *recording);
} um_replay_interface;

/* ---- ultramarine.statistics/1: the backend's own counts of memory, and its limits ---------------------------- */

/* Without this interface the host reports its own counts. */
#define UM_STATISTICS_INTERFACE "ultramarine.statistics/1"

/* Memory of one device, in bytes. */
typedef struct um_memory_statistics {
  uint32_t size;   /* may end before `total`: the host then wants no more, since drivers may be slow to count free memory */
  uint32_t flags;  /* 0 */
  uint64_t active; /* in buffers that exist */
  uint64_t peak;   /* the largest `active` since the start or the last reset_peak */
  uint64_t cache;  /* freed, and kept for reuse */
  uint64_t total;  /* of the device; 0: unknown */
  uint64_t free_;  /* free on the device; 0: unknown */
} um_memory_statistics;

/* Limits, in bytes. */
#define UM_LIMIT_MEMORY 0u /* of buffers and cache together; a guideline */
#define UM_LIMIT_CACHE 1u  /* of memory kept for reuse */
#define UM_LIMIT_WIRED 2u  /* of pinned memory */

typedef struct um_statistics_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Fills `statistics` up to its size. */
  um_status (*read)(void *device, um_memory_statistics *statistics, um_error **error);
  /* (any) Sets the limit UM_LIMIT_... and `*former` to its former value. */
  um_status (*set_limit)(void *device, uint32_t which, uint64_t bytes, uint64_t *former, um_error **error);
  uint64_t (*get_limit)(void *device, uint32_t which); /* (any) Returns the limit UM_LIMIT_... */
  void (*reset_peak)(void *device);                    /* (any) Sets the peak to the present `active`. */
  void (*clear_cache)(void *device);                   /* (any) Frees the memory that is kept for reuse. */
} um_statistics_interface;

/* ---- ultramarine.stream_memory/1: memory that is given back in the order of a stream ------------------------- */

/* A buffer that only one stream uses can be given back before that work is done: later work of the stream comes after it, and
 * may have the memory at once. Buffers of buffer_alloc and of this alloc are alike; buffer_free and this free_ take both. */
#define UM_STREAM_MEMORY_INTERFACE "ultramarine.stream_memory/1"

typedef struct um_stream_memory_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Allocates as buffer_alloc does, perhaps memory that was given back in the order of `stream`. Work of that stream may
   * use the buffer at once. The host makes all other work wait for the work that the stream had at its last free_. */
  um_status (*alloc)(void *device, void *stream, uint64_t bytes, void **buffer, um_error **error);
  /* (any) Gives a buffer back in the order of `stream`. Its users are submitted work of `stream`, and work of other streams
   * that `stream` already waits for. The backend gives the memory to other users only when the stream has completed its
   * earlier work. */
  void (*free_)(void *device, void *stream, void *buffer);
} um_stream_memory_interface;

/* ---- ultramarine.timing/1: timestamps in the order of a stream, and ranges in the vendor's profiler ------------ */

/* A mark is work of its stream: the device notes the time at which the stream's earlier work is done. Two marks around a
 * command give its duration. Nothing waits for a mark; it is resolved later. The host makes marks and ranges only while a
 * profile runs. */
#define UM_TIMING_INTERFACE "ultramarine.timing/1"

typedef struct um_timing_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (stream) Enqueues a timestamp behind the stream's earlier work, and sets `*slot` to its handle, never NULL. `stream` is NULL
   * if streams are the host's (a CPU backend); all earlier work is then done. UM_UNSUPPORTED: this stream has no clock, and
   * the host takes its own times. */
  um_status (*mark)(void *device, void *stream, void **slot, um_error **error);
  /* (any) Reads a timestamp, without waiting. Sets `*ready` to 0 if the stream has not reached it; else to 1, and
   * `*nanoseconds` to the time. The clock never goes back, has any origin, and is one for all streams of an open device. A
   * later call gives the same time. */
  um_status (*resolve)(void *device, void *slot, uint64_t *nanoseconds, uint32_t *ready, um_error **error);
  /* (any) Frees a timestamp, resolved or not. */
  void (*release)(void *device, void *slot);
  /* (stream) Opens a range of the calling thread in the vendor's profiler. `name` is NUL-terminated UTF-8. The function is NULL
   * if the profiler has no ranges. */
  void (*range_push)(void *device, void *stream, const char *name);
  /* (stream) Closes the range that the thread opened last. NULL exactly if range_push is. */
  void (*range_pop)(void *device, void *stream);
} um_timing_interface;

/* ---- ultramarine.upload/1: memory that a backend lends for uploads, which the host fills ----------------------- */

/* The backend lends memory that its device can read, such as pinned memory. The host fills it, for example from a file, and
 * gives it back for a copy in the order of a stream. It asks for at most 4 MiB at a time, from a few threads. */
#define UM_UPLOAD_INTERFACE "ultramarine.upload/1"

typedef struct um_upload_piece {
  uint32_t size;  /* set by the host */
  uint32_t flags; /* 0 */
  void *handle;   /* the backend's, never NULL */
  void *memory;   /* its address for the host */
  uint64_t bytes;
} um_upload_piece;

typedef struct um_upload_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Lends at least `bytes` bytes, which are not 0, for a copy in `stream`, and fills `piece`. It may wait for earlier
   * copies of that stream. UM_UNSUPPORTED: there is no memory now, and the host copies from memory of its own. */
  um_status (*lend)(void *device, void *stream, uint64_t bytes, um_upload_piece *piece, um_error **error);
  /* (stream) Enqueues a copy of the first `bytes` bytes of lent memory (its handle is `piece`) to a buffer, `offset` bytes
   * behind its beginning. The stream's later work sees them. The memory is the backend's again, also after a failure, and is
   * not lent before the copy is done. */
  um_status (*copy)(void *device, void *stream, void *piece, void *buffer, uint64_t offset, uint64_t bytes,
                    um_error **error);
  /* (any) Takes lent memory back without a copy. */
  void (*give_back)(void *device, void *piece);
} um_upload_interface;

/* ---- ultramarine.collective/1: collectives among the devices of several processes ----------------------------- */

/* Each process has one device in a group, and a rank from 0 to the group's size - 1. One process makes an id; the host
 * carries it to the others, and all open the group with it. Every process runs the same collectives in the same order; sends
 * and receives match by their peers. A command waits for the other ranks on the device, never on the host. So a missing rank
 * halts the stream until the host calls abort_. */
#define UM_COLLECTIVE_INTERFACE "ultramarine.collective/1"
#define UM_COLLECTIVE_MOST_ID_BYTES 256

/* Kinds of commands. */
#define UM_COLLECTIVE_SUM 0u         /* sum over the ranks, on all of them; of bool: true if any is */
#define UM_COLLECTIVE_MAX 1u         /* largest element; NaN if one is NaN; complex numbers compare as by UM_BINARY_MAXIMUM */
#define UM_COLLECTIVE_MIN 2u         /* smallest element, likewise */
#define UM_COLLECTIVE_GATHER 3u      /* inputs of all ranks, one behind the other, by rank */
#define UM_COLLECTIVE_SUM_SCATTER 4u /* sum over the ranks; rank r gets part r of it */
#define UM_COLLECTIVE_SEND 5u        /* sends the input to a rank, which receives as many elements */
#define UM_COLLECTIVE_RECEIVE 6u     /* receives the output from a rank */

/* Id of a group: bytes of the backend, opaque to the host. */
typedef struct um_collective_id {
  uint32_t size;   /* set by the host */
  uint32_t length; /* bytes in use */
  uint8_t bytes[UM_COLLECTIVE_MOST_ID_BYTES]; /* zero behind `length` */
} um_collective_id;

/* A collective or a message. Tensors are contiguous parts of buffers. */
typedef struct um_collective_command {
  uint32_t size;
  uint32_t kind; /* UM_COLLECTIVE_... */
  DLDataType dtype;
  uint32_t peer; /* rank of the other side of SEND and RECEIVE; else 0 */
  /* Number of elements of the input; for RECEIVE of the output. Never 0. The output of GATHER has `count` elements for each
   * rank. For SUM_SCATTER `count` is a multiple of the group's size, and the output has one part. */
  uint64_t count;
  void *input; /* a buffer; NULL for RECEIVE */
  uint64_t input_offset; /* bytes from the buffer's beginning */
  /* A buffer; NULL for SEND. For SUM, MAX and MIN it may be exactly the input's memory; otherwise the two do not overlap. */
  void *output;
  uint64_t output_offset; /* bytes from the buffer's beginning */
} um_collective_command;

typedef struct um_collective_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Makes the id of a new group, in one of its processes. A NULL `id` asks only if it could. UM_UNSUPPORTED, with an error
   * that has the reason and the remedy: a library is missing here. */
  um_status (*make_id)(void *device, um_collective_id *id, um_error **error);
  /* (any) Begins to open a group on a device, as `rank` of `n_ranks`, without waiting for the other ranks. `status` tells
   * when it is ready. */
  um_status (*open)(void *device, const um_collective_id *id, uint32_t rank, uint32_t n_ranks, void **group,
                    um_error **error);
  /* (any) Begins to open a part of a ready group: the ranks with equal `color`, ordered by `key` and then by rank. All ranks of
   * the group call it. None runs a command of the group before `status` of the new one is UM_OK. */
  um_status (*split)(void *device, void *group, uint32_t color, int32_t key, void **new_group, um_error **error);
  /* (any) Returns the state of a group, without waiting. UM_OK: it is ready, and nothing has failed. UM_NOT_YET: it is being
   * opened. Any other status: it has failed, here or on another rank; the host then calls only abort_ and close. */
  um_status (*status)(void *device, void *group, um_error **error);
  /* (any) Reads rank and size of a ready group. The host asks before it runs commands. */
  um_status (*place)(void *device, void *group, uint32_t *rank, uint32_t *n_ranks, um_error **error);
  /* (stream) Enqueues commands of a ready group. They lie commands->size bytes apart, begin together and do not depend on one
   * another: a send and a receive of one list never wait for each other. One call at a time for each group. UM_UNSUPPORTED:
   * the device cannot combine this dtype, and nothing was enqueued. */
  um_status (*run)(void *device, void *group, void *stream, const um_collective_command *commands, uint32_t n_commands,
                   um_error **error);
  /* (any, also during other calls with the group) Ends a group. Commands that wait for other ranks end with unspecified
   * outputs, and their streams go on. Other ranks may see it in `status`. The handle stays valid. */
  void (*abort_)(void *device, void *group);
  /* (any) Frees a group. Its commands are done, or it was aborted. Groups split from it live on. */
  void (*close)(void *device, void *group);
} um_collective_interface;

/* ---- ultramarine.about/1: description of a backend's libraries and drivers, for people ------------------------ */

#define UM_ABOUT_INTERFACE "ultramarine.about/1"

typedef struct um_about_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Writes up to `room` bytes of UTF-8 text, without a NUL at the end, and returns the length of the whole text. It has a
   * line for each library, driver or setting that matters. The call may take a while. */
  uint64_t (*describe)(void *backend, char *text, uint64_t room);
} um_about_interface;

#ifdef __cplusplus
}
#endif

#endif
