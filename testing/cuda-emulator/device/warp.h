// Barriers, and what the lanes of a warp do together.
#pragma once

inline void __syncthreads() { um_emulated.barrier(0); }
inline int __syncthreads_count(int predicate) { return (int)(unsigned)um_emulated.barrier(predicate); }
inline int __syncthreads_and(int predicate) { return (int)(um_emulated.barrier(predicate) >> 32); }
inline int __syncthreads_or(int predicate) { return (unsigned)um_emulated.barrier(predicate) != 0; }
inline void __syncwarp(unsigned mask = 0xFFFFFFFF) { um_emulated.warp(UM_EMULATED_SYNC, mask, 0, 0); }
inline unsigned __activemask() { return um_emulated.active(); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return (unsigned)um_emulated.warp(UM_EMULATED_BALLOT, mask, predicate != 0, 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// The lane that a shuffle reads: beyond the end of its part of `width` lanes it is the own one.
inline unsigned um_emulated_lane(int lane, int width) {
  return (um_emulated.lane & ~(width - 1u)) | ((unsigned)lane & (width - 1u));
}
inline unsigned um_emulated_lane_up(unsigned delta, int width) {
  unsigned lane = um_emulated.lane;
  return (lane & (width - 1u)) >= delta ? lane - delta : lane;
}
inline unsigned um_emulated_lane_down(unsigned delta, int width) {
  unsigned lane = um_emulated.lane, in = lane & (width - 1u);
  return in + delta < (unsigned)width ? lane + delta : lane;
}
inline unsigned um_emulated_lane_xor(int lanes, int width) {
  unsigned lane = um_emulated.lane, source = lane ^ (unsigned)lanes;
  return source <= (lane | (width - 1u)) ? source : lane;
}

#define UM_EMULATED_SHUFFLE_BY(T, name, by, source)                                                                    \
  inline T name(unsigned mask, T value, by, int width = 32) {                                                          \
    um_emulated_u64 bits = 0;                                                                                          \
    __builtin_memcpy(&bits, &value, sizeof value);                                                                     \
    bits = um_emulated.warp(UM_EMULATED_SHUFFLE, mask, bits, source);                                                  \
    __builtin_memcpy(&value, &bits, sizeof value);                                                                     \
    return value;                                                                                                      \
  }
#define UM_EMULATED_SHUFFLES(T)                                                                                        \
  UM_EMULATED_SHUFFLE_BY(T, __shfl_sync, int lane, um_emulated_lane(lane, width))                                      \
  UM_EMULATED_SHUFFLE_BY(T, __shfl_up_sync, unsigned delta, um_emulated_lane_up(delta, width))                         \
  UM_EMULATED_SHUFFLE_BY(T, __shfl_down_sync, unsigned delta, um_emulated_lane_down(delta, width))                     \
  UM_EMULATED_SHUFFLE_BY(T, __shfl_xor_sync, int lanes, um_emulated_lane_xor(lanes, width))
UM_EMULATED_SHUFFLES(int)
UM_EMULATED_SHUFFLES(unsigned)
UM_EMULATED_SHUFFLES(long)
UM_EMULATED_SHUFFLES(unsigned long)
UM_EMULATED_SHUFFLES(long long)
UM_EMULATED_SHUFFLES(um_emulated_u64)
UM_EMULATED_SHUFFLES(float)
UM_EMULATED_SHUFFLES(double)

#define UM_EMULATED_MATCHES(T)                                                                                         \
  inline unsigned __match_any_sync(unsigned mask, T value) {                                                           \
    um_emulated_u64 bits = 0;                                                                                          \
    __builtin_memcpy(&bits, &value, sizeof value);                                                                     \
    return (unsigned)um_emulated.warp(UM_EMULATED_MATCH, mask, bits, 0);                                               \
  }                                                                                                                    \
  inline unsigned __match_all_sync(unsigned mask, T value, int *all) {                                                 \
    unsigned equal = __match_any_sync(mask, value);                                                                    \
    *all = equal == (mask & __activemask());                                                                           \
    return *all ? equal : 0;                                                                                           \
  }
UM_EMULATED_MATCHES(int)
UM_EMULATED_MATCHES(unsigned)
UM_EMULATED_MATCHES(long)
UM_EMULATED_MATCHES(unsigned long)
UM_EMULATED_MATCHES(long long)
UM_EMULATED_MATCHES(um_emulated_u64)
UM_EMULATED_MATCHES(float)
UM_EMULATED_MATCHES(double)

#define UM_EMULATED_REDUCE(T, name, op)                                                                                \
  inline T __reduce_##name##_sync(unsigned mask, T value) {                                                            \
    return (T)um_emulated.warp(op, mask, (unsigned)value, 0);                                                          \
  }
UM_EMULATED_REDUCE(int, add, UM_EMULATED_ADD)
UM_EMULATED_REDUCE(unsigned, add, UM_EMULATED_ADD)
UM_EMULATED_REDUCE(int, min, UM_EMULATED_MIN)
UM_EMULATED_REDUCE(unsigned, min, UM_EMULATED_UMIN)
UM_EMULATED_REDUCE(int, max, UM_EMULATED_MAX)
UM_EMULATED_REDUCE(unsigned, max, UM_EMULATED_UMAX)
UM_EMULATED_REDUCE(unsigned, and, UM_EMULATED_AND)
UM_EMULATED_REDUCE(unsigned, or, UM_EMULATED_OR)
UM_EMULATED_REDUCE(unsigned, xor, UM_EMULATED_XOR)
