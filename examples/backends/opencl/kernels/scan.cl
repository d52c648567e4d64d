/* SCAN: a work-item per lane, or per chunk of one where there are few long lanes: then the totals of the chunks are
 * scanned first. The halves run in float32 and are rounded at each element. */

static A start_of(uint op) {
#ifdef IS_COMPLEX
  switch (op) {
    case UM_REDUCE_SUM: return (A)(0, 0);
    case UM_REDUCE_PROD: return (A)(1, 0);
    case UM_REDUCE_MIN: return (A)(INFINITY, INFINITY);
    case UM_REDUCE_MAX: return (A)(-INFINITY, -INFINITY);
    default: return (A)(-INFINITY, 0);
  }
#else
  switch (op) {
    case UM_REDUCE_SUM: return (A)0;
    case UM_REDUCE_PROD: return (A)1;
    case UM_REDUCE_MIN: return (A)HIGHEST;
    default: return (A)LOWEST;
  }
#endif
}

#ifdef IS_COMPLEX
/* In double precision where there is any: the sum may come near zero. The angle is not brought back into (-pi, pi]. */
static A log_add_exp(A x, A y) {
  if (complex_nan(x) || complex_nan(y)) return (A)(NAN, NAN);
  bool first = complex_less(x, y);
  A low = first ? x : y, high = first ? y : x;
  if (low.x == -INFINITY || high.x == INFINITY) return high;
  wide scale = exp((wide)low.x - (wide)high.x), angle = (wide)low.y - (wide)high.y;
  wide re = 1 + scale * cos(angle), im = scale * sin(angle);
  return (A)((float)((wide)high.x + log(hypot(re, im))), (float)((wide)high.y + atan2(im, re)));
}
#elif defined(IS_FLOAT)
static A log_add_exp(A x, A y) {
  A low = x < y ? x : y, high = x < y ? y : x;
  if (isnan(low) || isnan(high)) return NAN;
  if (low == -INFINITY || high == INFINITY) return high;
  return high + log1p(exp(low - high));
}
#endif

/* Of extremes NaN stays, but for complex numbers; of equals the maximum is the later. */
static A next_of(uint op, A running, A value) {
#ifdef IS_COMPLEX
  bool less = complex_less(value, running);
  switch (op) {
    case UM_REDUCE_SUM: return running + value;
    case UM_REDUCE_PROD: return complex_multiply(running, value);
    case UM_REDUCE_MIN: return less ? value : running;
    case UM_REDUCE_MAX: return less ? running : value;
    default: return log_add_exp(running, value);
  }
#elif defined(IS_FLOAT)
  switch (op) {
    case UM_REDUCE_SUM: return running + value;
    case UM_REDUCE_PROD: return running * value;
    case UM_REDUCE_MIN: return isnan(value) || value < running ? value : running;
    case UM_REDUCE_MAX: return isnan(running) || value < running ? running : value;
    default: return log_add_exp(running, value);
  }
#elif defined(IS_BOOL)
  return op == UM_REDUCE_SUM || op == UM_REDUCE_MAX ? running | value : running & value;
#else
  switch (op) {
    case UM_REDUCE_SUM: return (A)((U)running + (U)value);
    case UM_REDUCE_PROD: return (A)((U)running * (U)value);
    case UM_REDUCE_MIN: return value < running ? value : running;
    default: return value < running ? running : value;
  }
#endif
}

/* Mirrors `struct scan` of scan.c. The layout walks the lanes: in, out. */
typedef struct {
  ulong length;
  ulong chunk;
  ulong chunks;
  long in_step;
  long out_step;
  ulong inclusive;
} Scan;

#define CHUNK_OF_LANE                                                \
  ulong i = get_global_id(0);                                        \
  if (i >= l.n * s.chunks) return;                                   \
  ulong c = i / l.n, lane = i - c * l.n;                             \
  ulong first = c * s.chunk, end = min(first + s.chunk, s.length);   \
  long at[2];                                                        \
  locate(&l, lane, 2, at);

KERNEL void scan_totals(__global const T *a, __global A *totals, const Scan s, const Layout l) {
  CHUNK_OF_LANE
  A running = up(a[at[0] + (long)first * s.in_step]);
  for (ulong j = first + 1; j < end; j++) running = next_of(l.op, running, up(a[at[0] + (long)j * s.in_step]));
  totals[i] = running;
}

/* Each total is replaced by what came before its chunk. */
KERNEL void scan_carry(__global A *totals, const Scan s, const Layout l) {
  ulong lane = get_global_id(0);
  if (lane >= l.n) return;
  A running = totals[lane];
  for (ulong c = 1; c < s.chunks; c++) {
    A total = totals[c * l.n + lane];
    totals[c * l.n + lane] = running;
    running = next_of(l.op, running, total);
  }
}

KERNEL void scan_lanes(__global const T *a, __global T *out, __global const A *totals, const Scan s, const Layout l) {
  CHUNK_OF_LANE
  A running = c > 0 ? totals[i] : start_of(l.op);
  if (c == 0 && s.inclusive) {
    /* The first element is the first result, whatever is neutral. */
    T x = a[at[0]];
    running = up(x);
    out[at[1]] = x;
    first = 1;
  }
  for (ulong j = first; j < end; j++) {
    A next = next_of(l.op, running, up(a[at[0] + (long)j * s.in_step]));
    out[at[1] + (long)j * s.out_step] = down(s.inclusive ? next : running);
    running = next;
  }
}
