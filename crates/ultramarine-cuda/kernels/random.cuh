// RANDOM_BITS: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", 2011). A key has W words and h = ceil(W / 2) blocks: the counters (i, h + i) give the words i and h + i; if
// W is odd the last block has the counters (h - 1, 0) and gives one word.

struct Words { u32 first, second; };

INLINE u32 rotate_left(u32 x, int by) { return __funnelshift_l(x, x, by); }

INLINE Words threefry(const u32 (&keys)[3], u32 a, u32 b) {
  const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  a += keys[0];
  b += keys[1];
#pragma unroll
  for (int group = 0; group < 5; group++) {
#pragma unroll
    for (int round = 0; round < 4; round++) {
      a += b;
      b = rotate_left(b, turns[group % 2 * 4 + round]) ^ a;
    }
    a += keys[(group + 1) % 3];
    b += keys[(group + 2) % 3] + (u32)group + 1;
  }
  Words words = {a, b};
  return words;
}

// Words one behind another in memory.
struct Line {
  u32 *out;
  __device__ __forceinline__ void one(i64 i, u32 bits) const { out[i] = bits; }
  // From a multiple of 4 on.
  __device__ __forceinline__ void four(i64 i, const u32 (&bits)[4]) const {
    *(uint4 *)(out + i) = make_uint4(bits[0], bits[1], bits[2], bits[3]);
  }
};

// The words of one key, in their order. A thread has four blocks under way at once, which hides the latency of the cipher's
// chain, and gives 4 words at a time: `fourths` says that the second half begins at a multiple of them.
template <class I, class To>
static __device__ __forceinline__ void random_line(const u32 *in, i64 step, i64 words, bool fourths, const To &to) {
  const I blocks = (I)((words + 1) / 2), whole = (I)(words / 2);
  const u32 first = in[0], second = in[step];
  const u32 keys[3] = {first, second, first ^ second ^ 0x1BD11BDAu};
  for (I from = thread_number<I>() * 4; from < blocks; from += thread_count<I>() * 4) {
    u32 left[4], right[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const I i = from + k;
      const Words made = threefry(keys, (u32)i, i < whole ? (u32)(blocks + i) : 0);
      left[k] = made.first;
      right[k] = made.second;
    }
    if (from + 4 <= whole) {
      to.four(from, left);
      if (fourths) {
        to.four(blocks + from, right);
      } else {
#pragma unroll
        for (int k = 0; k < 4; k++) to.one(blocks + from + k, right[k]);
      }
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (from + k < blocks) to.one(from + k, left[k]);
        if (from + k < whole) to.one(blocks + from + k, right[k]);
      }
    }
  }
}

// Where a word goes: whole, where the words of all keys lie one behind another ...
struct WholeWords {
  u32 *out;
  __device__ __forceinline__ void put(i64 key, i64 words, i64 word, u32 bits) const { out[key * words + word] = bits; }
};
// ... or element by element, `each` for a key, over any strides.
template <class T>
struct Elements {
  T *out;
  i64 each;
  const Walk<1, 32> *walk;
  __device__ __forceinline__ void put(i64 key, i64, i64 word, u32 bits) const {
    const int parts = 4 / sizeof(T);
#pragma unroll
    for (int p = 0; p < parts; p++) {
      i64 element = word * parts + p, at[1];
      if (element >= each) return;
      locate<1, 32, i64>(*walk, key * each + element, at);
      out[at[0]] = (T)(bits >> (8 * sizeof(T)) % 32 * p);
    }
  }
};

// Words of any keys: a thread makes a block at a time. `step` lies between the words of a key.
template <class I, class To>
static __device__ __forceinline__ void random_blocks(const u32 *in, i64 step, i64 words, const Walk<1, 32> &w,
                                                     const To &to) {
  const i64 blocks = (words + 1) / 2;
  const I all = (I)(w.n * blocks);
  const bool single = w.n == 1;
  i64 last = -1;
  u32 keys[3] = {0, 0, 0};
  for (I i = thread_number<I>(); i < all; i += thread_count<I>()) {
    I key = single ? (I)0 : divide_whole(i, (I)blocks), block = i - key * (I)blocks;
    if ((i64)key != last) {
      i64 at[1];
      locate<1, 32, i64>(w, (i64)key, at);
      keys[0] = in[at[0]];
      keys[1] = in[at[0] + step];
      keys[2] = keys[0] ^ keys[1] ^ 0x1BD11BDAu;
      last = (i64)key;
    }
    i64 second = blocks + (i64)block;
    bool two = second < words;
    Words made = threefry(keys, (u32)block, two ? (u32)second : 0);
    to.put((i64)key, words, (i64)block, made.first);
    if (two) to.put((i64)key, words, second, made.second);
  }
}
