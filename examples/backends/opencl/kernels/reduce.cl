/* REDUCE (VARIANT 0; 1: ALL and ANY) and ARG_REDUCE.
 *
 * Narrow accumulators of type N take BLOCK elements each and are added to a wide one of type W (float64 for floating
 * types, where there is any), of which what rounding loses is kept too. A long reduction is cut into segments, whose results are merged in order. How it is
 * cut depends on shapes and on the device only. */

/* Mirrors `struct fold` of reduce.c. */
typedef struct {
  ulong outputs;
  ulong count;  /* elements of a reduction */
  ulong length; /* of a segment */
  ulong segments;
  uint out_axes;
  uint axes;
  uint op;
  uint reserved;
  long offset[2]; /* in, out */
  ulong out_size[MAX_AXES];
  long in_stride[MAX_AXES];
  long out_stride[MAX_AXES];
  ulong size[MAX_AXES];
  long stride[MAX_AXES];
} Fold;

#define BLOCK 16

static inline void place(const Fold *f, ulong o, long *in, long *out) {
  *in = f->offset[0];
  *out = f->offset[1];
  for (int d = (int)f->out_axes - 1; d >= 0; d--) {
    ulong next = d > 0 ? o / f->out_size[d] : 0;
    long index = (long)(o - next * f->out_size[d]);
    o = next;
    *in += index * f->in_stride[d];
    *out += index * f->out_stride[d];
  }
}

/* The offset of element `r` of a reduction; `run` is how many follow at the last axis' stride, itself included. */
static inline long reduced_at(const Fold *f, ulong r, ulong *run) {
  long at = 0;
  *run = 1;
  for (int d = (int)f->axes - 1; d >= 0; d--) {
    ulong next = d > 0 ? r / f->size[d] : 0;
    ulong index = r - next * f->size[d];
    if (d == (int)f->axes - 1) *run = f->size[d] - index;
    r = next;
    at += (long)index * f->stride[d];
  }
  return at;
}

#if VARIANT == 1
typedef uchar N;
typedef uchar W;
typedef uchar O;
#elif defined(IS_COMPLEX)
typedef float2 N;
typedef wide2 W;
typedef T O;
#elif defined(IS_FLOAT)
typedef A N;
typedef wide W;
typedef T O;
#else
typedef A N;
typedef A W;
typedef T O;
#endif

static inline N read_value(T x) {
#if VARIANT == 1 && defined(IS_COMPLEX)
  return x.x != 0 || x.y != 0;
#elif VARIANT == 1
  return up(x) != 0;
#else
  return up(x);
#endif
}

#if VARIANT == 1
static inline N neutral(uint op) { return op == UM_REDUCE_ALL; }
#define DEFINE_STEP(NAME, V) \
  static inline V NAME(uint op, V a, V x) { return op == UM_REDUCE_ALL ? a & x : a | x; }
#elif defined(IS_FLOAT)
/* Of sums -0, which keeps the sign of zero. */
static inline N neutral(uint op) {
  return op == UM_REDUCE_SUM ? (N)-0.0f : op == UM_REDUCE_PROD ? (N)1 : op == UM_REDUCE_MIN ? (N)HIGHEST : (N)LOWEST;
}
#define DEFINE_STEP(NAME, V)                                   \
  static inline V NAME(uint op, V a, V x) {                    \
    switch (op) {                                              \
      case UM_REDUCE_SUM: return a + x;                        \
      case UM_REDUCE_PROD: return a * x;                       \
      case UM_REDUCE_MIN: return x < a || isnan(x) ? x : a;    \
      default: return x > a || isnan(x) ? x : a;               \
    }                                                          \
  }
#elif defined(IS_COMPLEX)
static inline N neutral(uint op) {
  return op == UM_REDUCE_SUM    ? (N)(-0.0f, -0.0f)
         : op == UM_REDUCE_PROD ? (N)(1, 0)
         : op == UM_REDUCE_MIN  ? (N)(INFINITY, INFINITY)
                                : (N)(-INFINITY, -INFINITY);
}
#define DEFINE_STEP(NAME, V)                                                                    \
  static inline V NAME(uint op, V a, V x) {                                                     \
    bool a_nan = isnan(a.x) || isnan(a.y), x_nan = isnan(x.x) || isnan(x.y);                    \
    if (op == UM_REDUCE_SUM) return a + x;                                                      \
    if (op == UM_REDUCE_PROD) return (V)(a.x * x.x - a.y * x.y, a.x * x.y + a.y * x.x);         \
    if (a_nan || x_nan) return a_nan ? a : x;                                                   \
    bool less = x.x < a.x || (x.x == a.x && x.y < a.y);                                         \
    bool more = a.x < x.x || (x.x == a.x && a.y < x.y);                                         \
    return (op == UM_REDUCE_MIN ? less : more) ? x : a;                                         \
  }
#else
static inline N neutral(uint op) {
  return op == UM_REDUCE_SUM ? (N)0 : op == UM_REDUCE_PROD ? (N)1 : op == UM_REDUCE_MIN ? HIGHEST : LOWEST;
}
#ifdef IS_BOOL
typedef uchar Wrapping;
#else
typedef U Wrapping;
#endif
#define DEFINE_STEP(NAME, V)                                          \
  static inline V NAME(uint op, V a, V x) {                           \
    switch (op) {                                                     \
      case UM_REDUCE_SUM: return (V)((Wrapping)a + (Wrapping)x);      \
      case UM_REDUCE_PROD: return (V)((Wrapping)a * (Wrapping)x);     \
      case UM_REDUCE_MIN: return x < a ? x : a;                       \
      default: return x > a ? x : a;                                  \
    }                                                                 \
  }
#endif
DEFINE_STEP(fold_step, N)
DEFINE_STEP(fold_wide, W)

static inline W widen(N x) {
#if VARIANT == 0 && defined(IS_COMPLEX)
  return (W)(x.x, x.y);
#else
  return (W)x;
#endif
}

static inline O finish(W x) {
#if VARIANT == 1
  return x;
#elif defined(IS_COMPLEX)
  return (O)((float)x.x, (float)x.y);
#elif defined(IS_HALF) && defined(FP64)
  /* Rounded once: to odd on the way, which no later rounding mistakes. */
  float f = convert_float_rtz(x);
  if ((double)f != x && isfinite(f)) f = as_float(as_uint(f) | 1);
  return down(f);
#else
  return down((A)x);
#endif
}

/* Adds `x` to `*total`; of floating sums `*lost` takes what that rounds away (Knuth's exact sum of two). */
static inline void fold_block(uint op, W *total, W *lost, W x) {
  W sum = fold_wide(op, *total, x);
#if VARIANT == 0 && (defined(IS_FLOAT) || defined(IS_COMPLEX))
  if (op == UM_REDUCE_SUM) {
    W part = sum - *total;
    *lost += (*total - (sum - part)) + (x - part);
  }
#endif
  *total = sum;
}

/* The total with what was lost, unless there is nothing, which keeps the sign of zero, or no number. */
static inline W fold_close(W total, W lost) {
#if VARIANT == 0 && defined(IS_COMPLEX)
  if (lost.x != 0 && isfinite(lost.x)) total.x += lost.x;
  if (lost.y != 0 && isfinite(lost.y)) total.y += lost.y;
#elif VARIANT == 0 && defined(IS_FLOAT)
  if (lost != 0 && isfinite(lost)) total += lost;
#endif
  return total;
}

/* A work-item per output and segment. */
KERNEL void fold_each(__global const T *a, __global O *out, __global W *partial, const Fold f) {
  ulong i = get_global_id(0);
  if (i >= f.outputs * f.segments) return;
  ulong segment = i / f.outputs, o = i - segment * f.outputs;
  long in, to;
  place(&f, o, &in, &to);
  ulong r = segment * f.length, end = min(r + f.length, f.count);
  long stride = f.axes > 0 ? f.stride[f.axes - 1] : 0;
  W total = widen(neutral(f.op)), lost = (W)(0);
  N sum = neutral(f.op);
  uint room = BLOCK;
  while (r < end) {
    ulong run;
    long at = in + reduced_at(&f, r, &run);
    run = min(run, end - r);
    r += run;
    while (run > 0) {
      uint n = (uint)min(run, (ulong)room);
      for (uint j = 0; j < n; j++, at += stride) sum = fold_step(f.op, sum, read_value(a[at]));
      run -= n;
      room -= n;
      if (room == 0) {
        fold_block(f.op, &total, &lost, widen(sum));
        sum = neutral(f.op);
        room = BLOCK;
      }
    }
  }
  fold_block(f.op, &total, &lost, widen(sum));
  total = fold_close(total, lost);
  if (f.segments == 1) out[to] = finish(total);
  else partial[i] = total;
}

/* A group per output and segment: neighbours read neighbours. */
KERNEL void fold_group(__global const T *a, __global O *out, __global W *partial, const Fold f) {
  __local W totals[GROUP];
  ulong i = get_group_id(0);
  int me = get_local_id(0);
  ulong segment = i / f.outputs, o = i - segment * f.outputs;
  long in, to;
  place(&f, o, &in, &to);
  ulong start = segment * f.length, end = min(start + f.length, f.count);
  W total = widen(neutral(f.op)), lost = (W)(0);
  N sum = neutral(f.op);
  uint room = BLOCK;
  for (ulong r = start + me; r < end; r += GROUP) {
    ulong run;
    sum = fold_step(f.op, sum, read_value(a[in + reduced_at(&f, r, &run)]));
    if (--room == 0) {
      fold_block(f.op, &total, &lost, widen(sum));
      sum = neutral(f.op);
      room = BLOCK;
    }
  }
  fold_block(f.op, &total, &lost, widen(sum));
  totals[me] = fold_close(total, lost);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {
    if (me < half_way) totals[me] = fold_wide(f.op, totals[me], totals[me + half_way]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (me == 0) {
    if (f.segments == 1) out[to] = finish(totals[0]);
    else partial[i] = totals[0];
  }
}

/* The segments of each output, in order. */
KERNEL void fold_merge(__global O *out, __global const W *partial, const Fold f) {
  ulong o = get_global_id(0);
  if (o >= f.outputs) return;
  long in, to;
  place(&f, o, &in, &to);
  W total = partial[o], lost = (W)(0);
  for (ulong s = 1; s < f.segments; s++) fold_block(f.op, &total, &lost, partial[s * f.outputs + o]);
  out[to] = finish(fold_close(total, lost));
}

/* ---- ARG_REDUCE --------------------------------------------------------------------------------------------- */
#if VARIANT == 0

/* Whether `new` takes the place of `old`, which came before it. The first NaN stays; of complex numbers only the real
 * part counts for that. */
static inline bool beats(uint op, A new, A old) {
#ifdef IS_COMPLEX
  bool better = op == UM_ARG_REDUCE_ARGMAX ? complex_less(old, new) : complex_less(new, old);
  return (better || isnan(new.x)) && !isnan(old.x);
#elif defined(IS_FLOAT)
  bool better = op == UM_ARG_REDUCE_ARGMAX ? old < new : new < old;
  return (better || isnan(new)) && !isnan(old);
#else
  return op == UM_ARG_REDUCE_ARGMAX ? old < new : new < old;
#endif
}

KERNEL void arg_each(__global const T *a, __global uint *out, __global uint *partial, const Fold f) {
  ulong i = get_global_id(0);
  if (i >= f.outputs * f.segments) return;
  ulong segment = i / f.outputs, o = i - segment * f.outputs;
  long in, to;
  place(&f, o, &in, &to);
  ulong start = segment * f.length, end = min(start + f.length, f.count);
  long stride = f.stride[0];
  ulong best = start;
  A value = up(a[in + (long)start * stride]);
  for (ulong r = start + 1; r < end; r++) {
    A new = up(a[in + (long)r * stride]);
    if (beats(f.op, new, value)) {
      value = new;
      best = r;
    }
  }
  if (f.segments == 1) out[to] = (uint)best;
  else partial[i] = (uint)best;
}

KERNEL void arg_merge(__global const T *a, __global uint *out, __global const uint *partial, const Fold f) {
  ulong o = get_global_id(0);
  if (o >= f.outputs) return;
  long in, to;
  place(&f, o, &in, &to);
  uint best = partial[o];
  A value = up(a[in + (long)best * f.stride[0]]);
  for (ulong s = 1; s < f.segments; s++) {
    uint next = partial[s * f.outputs + o];
    A new = up(a[in + (long)next * f.stride[0]]);
    if (beats(f.op, new, value)) {
      value = new;
      best = next;
    }
  }
  out[to] = best;
}
#endif
