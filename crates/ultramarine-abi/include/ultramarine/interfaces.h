/* Optional interfaces of a backend, looked up by id. An id ends in the interface's revision; within a
 * revision structs only grow, by their sizes. Included by backend.h. */
#ifndef ULTRAMARINE_INTERFACES_H
#define ULTRAMARINE_INTERFACES_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ultramarine.fused/1: elementwise programs with an optional reduction as epilogue ---------------------- */

/* A program is in static single assignment form. Operand indices count first the inputs, then the constants, then
 * the instructions' results. Every value has the iteration shape, to which inputs are broadcast by zero strides.
 * Every instruction rounds to its dtype, without contraction. With an epilogue, output 0 is the named value
 * reduced over `axes` (kept as size 1); further outputs have the iteration shape. A sum or a product gives the bits of
 * REDUCE of that value, so the order in which either joins values does not depend on an operand's strides. */
#define UM_FUSED_INTERFACE "ultramarine.fused/1"

#define UM_FAMILY_UNARY 0u
#define UM_FAMILY_BINARY 1u
#define UM_FAMILY_SELECT 2u /* a ? b : c */
#define UM_FAMILY_CAST 3u

typedef struct um_instruction {
  uint8_t family;
  uint8_t op; /* code within the family; 0 for select and cast */
  uint16_t a;
  uint16_t b;
  uint16_t c;
  DLDataType dtype; /* of the result */
} um_instruction;

#define UM_NO_REDUCTION 0xffffffffu

typedef struct um_program {
  uint32_t size;
  uint32_t reduce; /* UM_REDUCE_... for output 0, or UM_NO_REDUCTION */
  uint64_t axes;   /* bit i: axis i of the iteration shape is reduced */
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
  /* (any) Like `prepare` of the table; the plan is submitted and released like any other. */
  um_status (*prepare)(void *device, const um_program *program, const um_tensor_desc *inputs,
                       const um_tensor_desc *outputs, void **plan, um_error **error);
} um_fused_interface;

/* ---- ultramarine.fused/2: programs with an anchor, besides fused/1 ------------------------------------------ */

#define UM_ANCHORED_INTERFACE "ultramarine.fused/2"

#define UM_POSITION_LAST 0u /* operand 0 of the operation is the value that the program's output 0 names */

/* An operation with one output that a program hangs on. A command has the program's inputs, then the operation's
 * operands but for the one that is a value of the program; the program's constants, then the operation's scalars. With
 * UM_POSITION_LAST its output 0 is the operation's; the further outputs are the program's, of the iteration shape, and
 * may be the value that the operation reads. Of these outputs the last one may lie in an input of the program, as in
 * fused/1, but in none that the operation reads. The program has no reduction as epilogue. The value is rounded to its
 * dtype before the operation reads it, so results are bitwise identical to those of the program and, of its row-major
 * result, of the operation by itself. */
typedef struct um_anchor {
  uint32_t size;
  uint32_t op; /* UM_OP_... */
  uint32_t revision;
  uint32_t position; /* UM_POSITION_...; others are unsupported */
  const void *attributes;
  uint32_t n_inputs; /* operands besides the one that is a value of the program */
  uint32_t n_scalars;
} um_anchor;

typedef struct um_anchored_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Like `prepare` of fused/1. There are as many `inputs` as the program and the anchor have together. After
   * UM_UNSUPPORTED or UM_NOT_YET the host gives the program and the operation one by one. */
  um_status (*prepare)(void *device, const um_program *program, const um_anchor *anchor, const um_tensor_desc *inputs,
                       const um_tensor_desc *outputs, void **plan, um_error **error);
} um_anchored_interface;

/* ---- ultramarine.kernel/1: kernels given by users, in source form or compiled -------------------------------- */

/* um_device_info.kernel_languages lists what a device takes: cuda-c, wgsl, msl, opencl-c ...; of compiled code ptx, cubin. */
#define UM_KERNEL_INTERFACE "ultramarine.kernel/1"

/* A kernel to compile. Pointers are valid only during the call. */
typedef struct um_kernel_source {
  uint32_t size;
  uint32_t n_template_arguments;
  const char *language; /* NUL-terminated */
  const char *source;   /* source_bytes bytes of UTF-8; of cubin any bytes */
  uint64_t source_bytes;
  const char *entry;                      /* name of the function, NUL-terminated */
  const char *const *template_arguments;  /* as text, each NUL-terminated */
  const char *options;                    /* for the compiler, NUL-terminated, or NULL */
} um_kernel_source;

/* `tensor`: a pointer to its first element, or a binding of memory that begins there. It may be empty, unlike tensors of
 * commands; its buffer may then be NULL. */
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

/* One launch. Pointers are valid only during the call. */
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
  uint32_t thread_multiple; /* numbers of threads that suit the device are multiples of this */
  uint32_t max_shared;      /* bytes of shared memory of a block, dynamic and static */
} um_kernel_info;

typedef struct um_kernel_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Compiles; a failure's error holds the compiler's log. */
  um_status (*compile)(void *device, const um_kernel_source *source, void **kernel, um_error **error);
  /* (stream) Launches. */
  um_status (*launch)(void *device, void *stream, void *kernel, const um_kernel_launch *launch, um_error **error);
  void (*release)(void *device, void *kernel); /* (any) no stream runs it any more */
  um_status (*info)(void *device, void *kernel, um_kernel_info *info, um_error **error); /* (any) */
} um_kernel_interface;

/* ---- ultramarine.memory/1: memory of other libraries as buffers and the reverse, without a copy -------------- */

#define UM_MEMORY_INTERFACE "ultramarine.memory/1"

#define UM_MEMORY_HOST 0u           /* `handle` is an address in host memory */
#define UM_MEMORY_DEVICE_POINTER 1u /* an address in the device's memory */
#define UM_MEMORY_OPAQUE_FD 2u      /* an opaque file descriptor */
#define UM_MEMORY_MTL_BUFFER 3u     /* an MTLBuffer */
#define UM_MEMORY_CL_MEM 4u         /* a cl_mem */

#define UM_MEMORY_READ_ONLY 1u /* must not be written */

/* A block of memory that belongs to somebody else. */
typedef struct um_foreign_memory {
  uint32_t size;
  uint32_t kind;     /* UM_MEMORY_HOST ... */
  uint32_t flags;    /* UM_MEMORY_READ_ONLY */
  uint32_t reserved; /* 0 */
  uint64_t handle;   /* as kind says */
  uint64_t offset;   /* bytes from the start of the memory to the block */
  uint64_t bytes;    /* of the block */
  /* Called once, on any thread, when the block is no longer used; may be NULL. The owner sets it for an import,
   * the backend for an export. */
  void (*release)(void *context);
  void *context;
  /* A native event or stream of the other library after whose present work the content is there; 0: now. */
  uint64_t ready;
} um_foreign_memory;

typedef struct um_memory_interface {
  uint32_t size;
  uint32_t imports; /* bit i: memory of kind i can be imported */
  uint32_t exports; /* bit i: buffers can be exported as kind i */
  uint32_t flags;   /* 0 */
  /* (any) A buffer over somebody else's memory. On success the backend calls `release` when the buffer is freed;
   * on failure it never does. */
  um_status (*import_)(void *device, const um_foreign_memory *memory, void **buffer, um_error **error);
  /* (any) Describes a buffer as memory of `kind`. The host keeps the buffer alive for as long as the other side
   * uses it, and calls `release` afterwards. */
  um_status (*export_)(void *device, void *buffer, uint32_t kind, um_foreign_memory *memory, um_error **error);
  /* (stream) Makes a stream of the backend wait for the present work of a foreign native stream, which comes as
   * signal_foreign says. */
  um_status (*wait_foreign)(void *device, void *stream, uint64_t foreign, um_error **error);
  uint64_t (*native_stream)(void *device, void *stream); /* (any) the one behind a stream, as an integer */
  /* (any) Makes later work of a foreign native stream wait until an event of the backend has reached `value`, which
   * was recorded. The stream is what native_stream would return for it, or a number that DLPack gives a meaning to
   * for the device's type (CUDA: 1 and 2; ROCm: 0). What is neither is refused, where the backend can tell. */
  um_status (*signal_foreign)(void *device, uint64_t foreign, void *event, uint64_t value, um_error **error);
  /* (any) Keeps a foreign native stream, which is alive, until release_foreign: what its owner does to it destroys
   * it no earlier. Where streams are counted, as OpenCL's queues are; NULL elsewhere. */
  um_status (*retain_foreign)(void *device, uint64_t foreign, um_error **error);
  /* (any) Ends a retain_foreign that succeeded. Both are there, or neither. */
  void (*release_foreign)(void *device, uint64_t foreign);
} um_memory_interface;

/* ---- ultramarine.peer/1: copies between buffers of one backend, without the host ----------------------------- */

#define UM_PEER_INTERFACE "ultramarine.peer/1"

typedef struct um_peer_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (stream) Copies bytes between buffers of two devices, or of one, in the order of a stream of the target's
   * device. The host has made that stream wait for the source. */
  um_status (*copy)(void *target_device, void *stream, void *target, uint64_t target_offset, void *source_device,
                    void *source, uint64_t source_offset, uint64_t bytes, um_error **error);
} um_peer_interface;

/* ---- ultramarine.replay/2: lists of commands, recorded once and replayed on other memory --------------------- */

/* A recorded command is a command whose tensors say where their memory comes from: fixed (the command's own, alive for as
 * long as the recording), bound (a slot, to which every replay binds a buffer), or an offset in the arena, one buffer for
 * all temporaries whose size `record` returns and which the host allocates. Scalars are the command's, or named by a slot.
 *
 * A replay does what a submit of the commands would do, in their order, on the memory that is bound. Calls with one
 * recording come one at a time, from any thread, and replays of it run one after another: the host has a stream wait
 * for the former replay if that was on another stream.
 *
 * UM_UNSUPPORTED and UM_NOT_YET are answers of record, replay and update after which nothing was done and nothing was
 * enqueued: the host submits the commands instead, and after UM_NOT_YET asks again at a later run. */
#define UM_REPLAY_INTERFACE "ultramarine.replay/2"

#define UM_SOURCE_FIXED 0u /* the memory that the command names */
#define UM_SOURCE_BOUND 1u /* slot `slot`; dl.byte_offset counts from um_slot_memory.offset */
#define UM_SOURCE_ARENA 2u /* dl.byte_offset counts from the arena's beginning */

/* Of tensors whose memory is not fixed, dl.data, buffer, buffer_size and wait say nothing. */
typedef struct um_memory_source {
  uint32_t kind; /* UM_SOURCE_... */
  uint32_t slot; /* if bound, else 0 */
} um_memory_source;

#define UM_FIXED_SCALAR 0xffffffffu /* the scalar is the command's */

/* Pointers are valid only during the call. */
typedef struct um_recorded_command {
  uint32_t size;
  uint32_t flags;                  /* 0 */
  const um_command *command;       /* plan, shapes, strides, offsets, scalars */
  const um_memory_source *sources; /* of the inputs, then of the outputs; NULL: all are fixed */
  const uint32_t *scalar_slots;    /* of each scalar, or UM_FIXED_SCALAR; NULL: all are fixed */
  um_memory_source workspace;
  uint64_t workspace_offset;       /* from the slot's or the arena's beginning */
} um_recorded_command;

/* Pointers are valid only during the call. */
typedef struct um_recording_request {
  uint32_t size;
  uint32_t flags; /* 0 */
  const um_recorded_command *commands; /* `commands->size` bytes apart */
  uint32_t n_commands;
  uint32_t n_slots;   /* for memory */
  uint32_t n_scalars; /* slots for scalars */
  uint32_t reserved;  /* 0 */
  uint64_t arena_bytes; /* that commands and later updates use */
} um_recording_request;

/* Memory that is bound for a replay. The handle of the last replay may be that of another buffer by now: what a recording
 * keeps of a buffer is good for as long as its memory is the same. */
typedef struct um_slot_memory {
  void *buffer;    /* NULL for memory of the host, and for a slot that no command names */
  void *data;      /* the buffer's address for the host, or NULL */
  uint64_t bytes;  /* of the whole buffer */
  uint64_t offset; /* from the buffer's beginning to the slot's */
} um_slot_memory;

/* Pointers are valid only during the call. */
typedef struct um_replay_bindings {
  uint32_t size;
  uint32_t flags; /* 0 */
  const um_slot_memory *slots;
  const uint64_t (*scalars)[2]; /* as those of a command */
  uint32_t n_slots;             /* the recording's */
  uint32_t n_scalars;           /* the recording's */
  /* At least as large as record said, offset 0. Its content need not be what the last replay left. The same one as
   * last time costs nothing, another one may cost as much as a change of all commands. */
  um_slot_memory arena;
} um_replay_bindings;

typedef struct um_replay_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Records commands without running them. Their plans and fixed buffers stay alive for as long as the
   * recording. `arena_bytes` gets what was asked for, or more, which is the backend's own. */
  um_status (*record)(void *device, const um_recording_request *request, void **recording, uint64_t *arena_bytes,
                      um_error **error);
  /* (stream) Runs a recording, as submit its commands. */
  um_status (*replay)(void *device, void *stream, void *recording, const um_replay_bindings *bindings,
                      um_error **error);
  /* (any) Replaces a command for later replays. Its plan and the numbers of its tensors and scalars are the former
   * one's; shapes, strides, offsets, scalars and sources may differ. After a failure the former command stays. */
  um_status (*update)(void *device, void *recording, uint32_t index, const um_recorded_command *command,
                      um_error **error);
  void (*release)(void *device, void *recording); /* (any) no stream runs it any more */
} um_replay_interface;

/* ---- ultramarine.statistics/1: the backend's own counts of memory, and its limits ---------------------------- */

/* Without it the host's counts stand in. */
#define UM_STATISTICS_INTERFACE "ultramarine.statistics/1"

/* Memory of one device, in bytes. */
typedef struct um_memory_statistics {
  uint32_t size;   /* up to `total`, if the host wants no more: a driver may be slow to say what is free */
  uint32_t flags;  /* 0 */
  uint64_t active; /* in buffers that exist */
  uint64_t peak;   /* the most that `active` was since the start or the last reset */
  uint64_t cache;  /* kept for reuse */
  uint64_t total;  /* on the device in all; 0: unknown */
  uint64_t free_;  /* on the device; 0: unknown */
} um_memory_statistics;

#define UM_LIMIT_MEMORY 0u /* bytes that buffers and cache should take at most */
#define UM_LIMIT_CACHE 1u  /* bytes kept for reuse at most */
#define UM_LIMIT_WIRED 2u  /* bytes that may be pinned */

typedef struct um_statistics_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  um_status (*read)(void *device, um_memory_statistics *statistics, um_error **error); /* (any) */
  /* (any) Sets one of UM_LIMIT_...; `former` gets what it was. */
  um_status (*set_limit)(void *device, uint32_t which, uint64_t bytes, uint64_t *former, um_error **error);
  uint64_t (*get_limit)(void *device, uint32_t which); /* (any) */
  void (*reset_peak)(void *device);                    /* (any) starts the peak afresh */
  void (*clear_cache)(void *device);                   /* (any) frees what is kept for reuse */
} um_statistics_interface;

/* ---- ultramarine.stream_memory/1: memory that is given back in the order of a stream ------------------------- */

/* A buffer that only one stream's work uses need not wait for that work: what is enqueued to the stream later comes
 * after it, and may have the memory at once. Buffers are the same in all else: any that buffer_alloc or this alloc
 * made can be given back in either way. */
#define UM_STREAM_MEMORY_INTERFACE "ultramarine.stream_memory/1"

typedef struct um_stream_memory_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) As buffer_alloc; the memory may be some that was given back in the order of `stream`. Work of the stream
   * may use the buffer at once; the host has all other work wait for what the stream had been given when it last took
   * memory back. */
  um_status (*alloc)(void *device, void *stream, uint64_t bytes, void **buffer, um_error **error);
  /* (any) Gives back a buffer that nothing may still use but work of `stream`, all of which has been submitted, and
   * work of other streams that `stream` waits for already. The backend hands the memory to others than that stream
   * only when the stream has passed what it was given before. */
  void (*free_)(void *device, void *stream, void *buffer);
} um_stream_memory_interface;

/* ---- ultramarine.timing/1: timestamps in the order of a stream, and ranges in the vendor's profiler ------------ */

/* A mark is work of its stream: the device notes the time at which everything that the stream was given before it is
 * done. Two marks around a command say how long it took. Nothing waits for a mark; it is resolved later. The host makes
 * marks and ranges while a profile runs, and never otherwise. */
#define UM_TIMING_INTERFACE "ultramarine.timing/1"

typedef struct um_timing_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (stream) Enqueues a timestamp behind the stream's earlier work. `slot` gets a handle for it, never NULL. Where
   * streams are the host's (a CPU backend) `stream` is NULL, and all earlier work is done. UM_UNSUPPORTED: this stream
   * has no clock, and the host takes its own times. */
  um_status (*mark)(void *device, void *stream, void **slot, um_error **error);
  /* (any) Asks for a timestamp, without waiting. `ready` gets 0 if the stream has not got there; else 1, and
   * `nanoseconds` the time on the device's clock. That clock never goes back, begins anywhere, and is one for all
   * streams of an open device. Asked again, it is the same time. */
  um_status (*resolve)(void *device, void *slot, uint64_t *nanoseconds, uint32_t *ready, um_error **error);
  void (*release)(void *device, void *slot); /* (any) gives a slot back, resolved or not */
  /* (stream) Opens a range of the calling thread in the vendor's profiler; `name` is NUL-terminated UTF-8, valid during
   * the call. NULL: the vendor has no ranges. */
  void (*range_push)(void *device, void *stream, const char *name);
  /* (stream) Closes the range that the thread opened last. Both are there, or neither. */
  void (*range_pop)(void *device, void *stream);
} um_timing_interface;

/* ---- ultramarine.upload/1: memory that a backend lends for uploads, which the host fills ----------------------- */

/* A backend copies to its device by way of memory that the device can read. Bytes that the host has to fetch first, as
 * from a file, are read into such memory, which goes back for a copy in the order of a stream. The host asks for at most
 * 4 MiB at a time, from a few threads. */
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
  /* (any) Lends memory of at least `bytes` bytes, which are not 0, for a copy in `stream`. It may wait for earlier copies
   * of that stream. UM_UNSUPPORTED: there is none now, and the host copies from memory of its own. */
  um_status (*lend)(void *device, void *stream, uint64_t bytes, um_upload_piece *piece, um_error **error);
  /* (stream) Enqueues a copy of the first `bytes` bytes of lent memory to a buffer, behind the stream's earlier work:
   * they are there for its later work. The memory is the backend's again, also after a failure, and is not lent until
   * the copy is done. */
  um_status (*copy)(void *device, void *stream, void *piece, void *buffer, uint64_t offset, uint64_t bytes,
                    um_error **error);
  void (*give_back)(void *device, void *piece); /* (any) takes lent memory back of which nothing is to be copied */
} um_upload_interface;

/* ---- ultramarine.collective/1: collectives among the devices of several processes ----------------------------- */

/* Each process has one device of a group and a rank in it. One process makes an id, which the host carries to the others;
 * all open the group with it. Every process runs the same commands in the same order; sends and receives match by their
 * peers. A command waits on the device for the other ranks, never on the host: a rank that is missing halts the stream
 * until the host calls `abort`. */
#define UM_COLLECTIVE_INTERFACE "ultramarine.collective/1"
#define UM_COLLECTIVE_MOST_ID_BYTES 256

#define UM_COLLECTIVE_SUM 0u         /* over the ranks, on all of them; of bool: true if any is */
#define UM_COLLECTIVE_MAX 1u         /* NaN where one is NaN; complex numbers compare as UM_OP_MAXIMUM does */
#define UM_COLLECTIVE_MIN 2u         /* likewise */
#define UM_COLLECTIVE_GATHER 3u      /* the inputs one behind the other, by rank */
#define UM_COLLECTIVE_SUM_SCATTER 4u /* the sum, of which rank r gets part r */
#define UM_COLLECTIVE_SEND 5u        /* to a rank, which receives as many elements */
#define UM_COLLECTIVE_RECEIVE 6u     /* from a rank */

typedef struct um_collective_id {
  uint32_t size;   /* set by the host */
  uint32_t length; /* bytes in use */
  uint8_t bytes[UM_COLLECTIVE_MOST_ID_BYTES]; /* zero behind `length` */
} um_collective_id;

/* A collective or a message. Tensors are contiguous parts of buffers. */
typedef struct um_collective_command {
  uint32_t size;
  uint32_t kind;
  DLDataType dtype;
  uint32_t peer; /* rank of the other side of SEND and RECEIVE; else 0 */
  /* Elements of the input; of the output for RECEIVE. Never 0. The output of GATHER has as many for each rank;
   * SUM_SCATTER's are a multiple of the group's size, and its output has the rank's part. */
  uint64_t count;
  void *input; /* a buffer; NULL for RECEIVE */
  uint64_t input_offset;
  /* A buffer; NULL for SEND. SUM, MAX and MIN may have the input's place; otherwise the two do not overlap. */
  void *output;
  uint64_t output_offset;
} um_collective_command;

typedef struct um_collective_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Makes the id of a new group, in one of its processes. A NULL `id` asks only if it could. UM_UNSUPPORTED, with
   * the reason and the remedy: there is no library for it here. */
  um_status (*make_id)(void *device, um_collective_id *id, um_error **error);
  /* (any) Begins to open a group on a device, as `rank` of `n_ranks`, and does not wait for the other ranks. */
  um_status (*open)(void *device, const um_collective_id *id, uint32_t rank, uint32_t n_ranks, void **group,
                    um_error **error);
  /* (any) Begins to open a part of a group that is ready: the ranks of equal `color`, by `key` and then by rank. All
   * ranks of the group call it, and none runs a command of the group before `status` of the new one is UM_OK. */
  um_status (*split)(void *device, void *group, uint32_t color, int32_t key, void **new_group, um_error **error);
  /* (any) State of a group, without waiting. UM_OK: it is ready, and nothing has failed. UM_NOT_YET: it is being opened.
   * Else it has failed, also because of another rank; after that only `abort` and `close` are called. */
  um_status (*status)(void *device, void *group, um_error **error);
  /* (any) Rank and size of a group that is ready. The host asks before it runs commands. */
  um_status (*place)(void *device, void *group, uint32_t *rank, uint32_t *n_ranks, um_error **error);
  /* (stream) Enqueues commands of a group that is ready; they lie `commands.size` bytes apart. They begin together and
   * do not depend on one another, so that a send and a receive of a list never wait for each other. One call at a time
   * for each group. UM_UNSUPPORTED: a dtype that the device cannot combine, and nothing was enqueued. */
  um_status (*run)(void *device, void *group, void *stream, const um_collective_command *commands, uint32_t n_commands,
                   um_error **error);
  /* (any, also during other calls with the group) Ends a group: commands that wait for other ranks end, with outputs that
   * hold anything, and their streams go on. Other ranks may learn of it by `status`. The handle stays valid. */
  void (*abort_)(void *device, void *group);
  /* (any) Frees a group. Its commands are done, or it was aborted; parts of it live on. */
  void (*close)(void *device, void *group);
} um_collective_interface;

/* ---- ultramarine.about/1: what a backend found on this machine, for people to read --------------------------- */

#define UM_ABOUT_INTERFACE "ultramarine.about/1"

typedef struct um_about_interface {
  uint32_t size;
  uint32_t flags; /* 0 */
  /* (any) Writes up to `room` bytes of UTF-8 text, without a NUL at the end, and returns how many there are in all:
   * lines, one for each library, driver or setting that matters. It may take a while. */
  uint64_t (*describe)(void *backend, char *text, uint64_t room);
} um_about_interface;

#ifdef __cplusplus
}
#endif

#endif
