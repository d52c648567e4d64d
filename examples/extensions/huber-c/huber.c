/* huber(x, delta) = x^2 / 2 where |x| <= delta, delta (|x| - delta / 2) elsewhere: a first operation of Ultramarine's in C.
 * One loop for the CPU; gradients, batches and other devices follow from `compose`. */
#include <math.h>
#include <ultramarine/extension_helper.h>

static um_status infer(void *context, const um_tensor_type *inputs, uint32_t n, um_tensor_type *outputs, um_error **error) {
  (void)context, (void)n; /* one: um_apply_objects gives as many as it got */
  if (!um_is_float(inputs->dtype, 32) && !um_is_float(inputs->dtype, 64))
    return um_refuse(error, UM_INVALID, "[huber] takes float32 and float64, and integers as float32.");
  um_like(outputs, inputs);
  return UM_OK;
}

#define LOOP(type, absolute) \
  for (int64_t i = 0; i < row->length; i++) { \
    const type a = absolute(UM_AT(type, row, 0, i)), d = (type)delta; \
    UM_AT(type, row, 1, i) = a <= d ? a * a / 2 : d * (a - d / 2); \
  }

static void huber_row(const um_row *row) {
  const double delta = *(const double *)row->context;
  if (row->dtype.bits == 32) LOOP(float, fabsf)
  else LOOP(double, fabs)
}

static um_status eval_cpu(void *context, const um_call *call, um_error **error) {
  return um_elementwise(call, huber_row, context, error);
}

/* m (|x| - m / 2), where m is the smaller of |x| and delta. */
static um_status compose(void *context, um_array *const *inputs, uint32_t n, um_array **outputs, um_error **error) {
  (void)n;
  um_ops ops = {0};
  um_array *a = um_ops_unary(&ops, "abs", inputs[0]);
  um_array *m = um_ops_binary(&ops, "minimum", a, um_ops_number(&ops, inputs[0], *(const double *)context));
  um_array *half = um_ops_binary(&ops, "multiply", m, um_ops_number(&ops, inputs[0], 0.5));
  um_array *result = um_ops_binary(&ops, "multiply", m, um_ops_binary(&ops, "subtract", a, half));
  return um_ops_end(&ops, result, &outputs[0], error);
}

static PyObject *huber(PyObject *module, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"x", "delta", "stream", NULL};
  PyObject *x, *stream = Py_None;
  double delta = 1;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|d$O:huber", names, &x, &delta, &stream)) return NULL;
  um_primitive primitive = um_primitive_of("huber_c", 1, &delta, sizeof delta);
  primitive.infer = infer, primitive.eval_cpu = eval_cpu, primitive.compose = compose;
  return um_apply_objects(&primitive, &x, 1, stream);
}

static PyMethodDef methods[] = {
    UM_FUNCTION("huber", huber, "huber(x, delta=1.0, *, stream=None)\n--\n\nThe Huber function of x."),
    {NULL, NULL, 0, NULL},
};
UM_MODULE(_native, "huber, in C.", methods)
