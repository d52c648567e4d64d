/* A plugin in C for the tests: one op, float32 sums of two tensors, by the helper alone. */
#include <ultramarine/helper.h>

UM_DEFINE_BACKEND("in_c", "test-1.0", "0.1", kDLExtDev);

static um_host_table host;

static um_status submit(void *device, void *stream, const um_command *commands, uint32_t n, um_error **error) {
  (void)device, (void)stream;
  for (uint32_t c = 0; c < n; c++) {
    const um_command *command = um_command_at(commands, c);
    const um_tensor *out = um_output(command, 0);
    um_rows rows;
    if (command->n_inputs != 2) {
      const um_status code = um_fail(&host, error, UM_INVALID, "%u inputs", (unsigned)command->n_inputs);
      return um_fail_command(&host, error, c, code);
    }
    um_rows_start(&rows, out->dl.ndim, out->dl.shape);
    um_rows_add(&rows, out);
    um_rows_add(&rows, um_input(command, 0));
    um_rows_add(&rows, um_input(command, 1));
    while (um_rows_next(&rows)) {
      for (int64_t i = 0; i < rows.length; i++) {
        *(float *)(void *)(rows.data[0] + i * rows.step[0]) = *(const float *)(void *)(rows.data[1] + i * rows.step[1]) +
                                                      *(const float *)(void *)(rows.data[2] + i * rows.step[2]);
      }
    }
  }
  return UM_OK;
}

static um_status prepare(void *device, uint32_t op, uint32_t revision, const void *attributes,
                         const um_tensor_desc *inputs, uint32_t n_inputs, const um_tensor_desc *outputs,
                         uint32_t n_outputs, void **plan, um_error **error) {
  um_binary_attrs attrs;
  um_status status;
  (void)device, (void)revision, (void)outputs;
  if (op != UM_OP_BINARY) return um_fail(&host, error, UM_UNSUPPORTED, "op %u is unknown here", (unsigned)op);
  status = um_read_attributes(&attrs, sizeof attrs, attributes);
  if (status != UM_OK) return um_fail(&host, error, status, "attributes of a later revision");
  if (n_inputs != 2 || n_outputs != 1 || attrs.op != UM_BINARY_ADD ||
      um_dtype_index(um_desc_at(inputs, 1)->dtype) != UM_DTYPE_FLOAT32) {
    return um_fail(&host, error, UM_UNSUPPORTED, "only sums of float32");
  }
  *plan = &host;
  return UM_OK;
}

static void plan_release(void *device, void *plan) { (void)device, (void)plan; }

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *table, um_error **error) {
  um_backend_table mine;
  memset(&mine, 0, sizeof mine);
  if (!um_read_sized(&host, sizeof host, lent)) return UM_INVALID;
  mine.size = sizeof mine;
  mine.abi_major = UM_ABI_MAJOR;
  mine.abi_minor = UM_ABI_MINOR;
  mine.name = "in_c";
  mine.device_type = kDLExtDev;
  mine.prepare = prepare;
  mine.plan_release = plan_release;
  mine.submit = submit;
  um_sync_functions(&mine);
  if (!um_write_sized(table, &mine, sizeof mine)) return um_fail(&host, error, UM_INVALID, "no place for the table");
  return UM_OK;
}
