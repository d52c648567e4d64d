/* RANDOM_BITS: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
 * 2011). The words of a key: with half = n / 2 and odd = n % 2 the counters (i, half + odd + i) give words i and
 * half + odd + i; if n is odd, (half, 0) gives word `half`. VARIANT is the width of an element in bytes. */

#if VARIANT == 1
typedef uchar Bits;
#elif VARIANT == 2
typedef ushort Bits;
#else
typedef uint Bits;
#endif

#define ROUND(by)        \
  a += b;                \
  b = rotate(b, (uint)by) ^ a;

static uint2 threefry(uint2 key, uint2 counter) {
  uint keys[3] = {key.x, key.y, key.x ^ key.y ^ 0x1BD11BDAu};
  uint a = counter.x + keys[0], b = counter.y + keys[1];
  for (uint group = 0; group < 5; group++) {
    if (group % 2 == 0) {
      ROUND(13) ROUND(15) ROUND(26) ROUND(6)
    } else {
      ROUND(17) ROUND(29) ROUND(16) ROUND(24)
    }
    a += keys[(group + 1) % 3];
    b += keys[(group + 2) % 3] + group + 1;
  }
  return (uint2)(a, b);
}

/* `each` elements for every key; the layout walks the keys, whose words lie `step` apart. */
KERNEL void random_bits(__global const uint *keys, __global Bits *out, ulong each, long step, long to,
                        const Layout l) {
  ulong i = get_global_id(0);
  if (i >= l.n * each) return;
  ulong key = i / each, byte = (i - key * each) * VARIANT;
  long at[1];
  locate(&l, key, 1, at);
  uint2 words = (uint2)(keys[at[0]], keys[at[0] + step]);
  ulong n = (each * VARIANT + 3) / 4, half_way = n / 2, odd = n % 2, word = byte / 4;
  uint bits;
  if (word < half_way) bits = threefry(words, (uint2)((uint)word, (uint)(half_way + odd + word))).x;
  else if (odd && word == half_way) bits = threefry(words, (uint2)((uint)half_way, 0)).x;
  else bits = threefry(words, (uint2)((uint)(word - half_way - odd), (uint)word)).y;
  out[to + (long)i] = (Bits)(bits >> (8 * (byte % 4)));
}
