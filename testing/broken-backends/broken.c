/* The minimal backend with one of the mistakes of a first hour: -DVARIANT=n. What `python -m ultramarine backends` and the
 * conformance kit say of each is in python/tests/backends/test_broken.py, where the kinds that need no code are, too: a text
 * file, an object, another file name. */
#include <ultramarine/helper.h>

#define FORGETS_DEFINE 1
#define LACKS_SUBMIT 2
#define SCORES_ZERO 3
#define SCORES_ZERO_SILENTLY 4
#define OTHER_CONTRACT 5
#define INIT_FAILS 6
#define UNDEFINED_SYMBOL 7
#define INIT_CRASHES 8
#define NO_DEVICES 9
#define OTHER_DEVICE_TYPE 10
/* Beyond the load: a command that crashes. */
#define SUBMIT_CRASHES 11
/* It loads and computes; a later host would ask it for what it does not know. */
#define IGNORES_ATTRIBUTES 12

#if VARIANT == FORGETS_DEFINE
#undef UM_DEFINE_BACKEND
#define UM_DEFINE_BACKEND(...) extern int nothing_here
#endif
#if VARIANT == OTHER_CONTRACT
#undef UM_ABI_MINOR
#define UM_ABI_MINOR 99
#endif
#define ultramarine_backend_init minimal_init
#if VARIANT == SCORES_ZERO || VARIANT == SCORES_ZERO_SILENTLY
#define ultramarine_backend_score minimal_score
#endif
#include "../../examples/backends/minimal/minimal.c"
#undef ultramarine_backend_init
#undef ultramarine_backend_score

#if VARIANT == SCORES_ZERO || VARIANT == SCORES_ZERO_SILENTLY
um_status ultramarine_backend_score(um_backend_score *score) {
  score->score = 0;
  if (VARIANT == SCORES_ZERO) UM_SET_TEXT(score->reason, "there is no device file /dev/accelerator0");
  return UM_OK;
}
#endif

#if VARIANT == UNDEFINED_SYMBOL
int accelerator_open(void); /* in a library that nobody links */
#endif

#if VARIANT == NO_DEVICES
static uint32_t none(void *backend) { return 0; }
#endif

#if VARIANT == SUBMIT_CRASHES
static um_status crash(void *device, void *stream, const um_command *commands, uint32_t n, um_error **error) {
  const plan *p = commands->plan;
  if (p->compute == unary && p->code == UM_UNARY_SIN) *(volatile int *)8 = 1;
  return submit(device, stream, commands, n, error);
}
#endif

#if VARIANT == IGNORES_ATTRIBUTES
/* Takes each op's attributes for the struct that it knows, without their size. */
static um_status careless(void *device, uint32_t op, uint32_t revision, const void *attributes,
                          const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                          uint32_t n_outputs, void **result, um_error **error) {
  um_reduce_attrs known = {0};
  if (attributes == NULL || op > UM_OP_MATMUL) return UM_UNSUPPORTED;
  memcpy(&known, attributes, ops[op].attributes);
  known.size = (uint32_t)ops[op].attributes;
  return prepare(device, op, revision, &known, inputs, n_inputs, outputs, n_outputs, result, error);
}
#endif

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *table, um_error **error) {
  um_backend_table t = um_table("minimal", kDLExtDev);
  const um_status status = minimal_init(lent, &t, error);
#if VARIANT == LACKS_SUBMIT
  t.submit = NULL;
#elif VARIANT == INIT_FAILS
  return um_fail(host, error, UM_ERROR, "the driver answers with code 7");
#elif VARIANT == UNDEFINED_SYMBOL
  if (accelerator_open() != 0) return UM_ERROR;
#elif VARIANT == INIT_CRASHES
  *(volatile int *)8 = 1;
#elif VARIANT == NO_DEVICES
  t.device_count = none;
#elif VARIANT == OTHER_DEVICE_TYPE
  t.device_type = kDLCUDA;
#elif VARIANT == SUBMIT_CRASHES
  t.submit = crash;
#elif VARIANT == IGNORES_ATTRIBUTES
  t.prepare = careless;
#endif
  um_write_sized(table, &t, sizeof t);
  return status;
}
