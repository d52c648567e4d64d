//! RANDOM_BITS: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel
//! random numbers: as easy as 1, 2, 3", 2011).
//!
//! The bits of a key are `n` 32-bit words, little-endian, cut to the bytes that are
//! wanted. With `half` = n / 2 and `odd` = n % 2, the counters (i, half + odd + i)
//! give words i and half + odd + i; if n is odd, the counters (half, 0) give word
//! `half` and a word that is dropped.

use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::level::{Body, Isa, Level, at};
use crate::strided::{Nest, ranges};
use crate::{dtype::DType, par::Shared};

/// Pairs of words that are made at a time.
const BLOCK: usize = 256;
/// Pairs of words of a task.
const TASK: usize = 1 << 13;

struct RandomBits;

/// Prepares RANDOM_BITS.
pub fn prepare(signature: &Signature<'_>, _level: Level) -> Prepared {
    let ([keys], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("random_bits takes keys".into()));
    };
    if keys.dtype != DType::U32 || keys.ndim == 0 || output.ndim + 1 < keys.ndim {
        return Err(Refusal::Invalid("random_bits: keys or output do not fit".into()));
    }
    match output.dtype {
        DType::U8 | DType::U16 | DType::U32 => Ok(Box::new(RandomBits)),
        _ => Err(Refusal::Unsupported),
    }
}

impl Kernel for RandomBits {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (keys, output) = (&args.inputs[0], &args.outputs[0]);
        let outer = keys.shape.len() - 1;
        if keys.shape[outer] != 2 || keys.shape[..outer] != output.shape[..outer] {
            return Err("random_bits: shapes of keys and output do not fit".into());
        }
        let all =
            Nest::new((0..outer).map(|a| (keys.shape[a], [keys.strides[a], output.strides[a]])));
        let own =
            Nest::new((outer..output.shape.len()).map(|a| (output.shape[a], [output.strides[a]])));
        let width = output.dtype.size();
        let bytes = own.size() * width;
        // One run of bytes per key can be written at once, else through a buffer.
        let direct = own.size() == 1 || own.inner() == (own.size(), [1]);
        let pairs = bytes.div_ceil(4).div_ceil(2);
        let parts = if direct { pairs.div_ceil(TASK) } else { 1 };
        let joined = (TASK / pairs).max(1);
        let (first, second) = (Shared(keys.data as *mut u32), keys.strides[outer] as isize);
        let target = Shared(output.data);
        ranges(cx.par, all.size() * parts, joined, |range| {
            for task in range {
                let part = task % parts;
                all.rows(task / parts..task / parts + 1, |_, offsets, _| {
                    let key = first.get().wrapping_offset(offsets[0]);
                    // SAFETY: the key's two words lie at the nest's offset and beside it.
                    let key = unsafe { [*key, *key.wrapping_offset(second)] };
                    let to = target.get().wrapping_offset(offsets[1] * width as isize);
                    let range = part * TASK..((part + 1) * TASK).min(pairs);
                    if direct {
                        // SAFETY: `bytes` bytes lie at `to`; parts write disjoint words.
                        unsafe { fill(cx.level, key, bytes, range, to) };
                        return;
                    }
                    let mut buffer = vec![0u32; bytes.div_ceil(4)];
                    let from = buffer.as_mut_ptr() as *mut u8;
                    // SAFETY: the buffer has room for `bytes` bytes; the offsets are
                    // those of the key's own outputs.
                    unsafe {
                        fill(cx.level, key, bytes, 0..pairs, from);
                        for_dtype!(output.dtype, T => {
                            let step = own.inner().1[0];
                            own.rows(0..own.size(), |position, at, count| {
                                crate::strided::move_run(
                                    (from as *const T).add(position),
                                    1,
                                    (to as *mut T).wrapping_offset(at[0]),
                                    step,
                                    count,
                                );
                            });
                        });
                    }
                });
            }
        });
        Ok(())
    }
}

/// Writes the words of the pairs `pairs` of a key.
///
/// # Safety
/// `to` has room for `bytes` bytes.
unsafe fn fill(
    level: Level,
    key: [u32; 2],
    bytes: usize,
    pairs: std::ops::Range<usize>,
    to: *mut u8,
) {
    let words = bytes.div_ceil(4);
    let (half, odd) = (words / 2, words % 2);
    let write = |word: usize, values: &[u32]| {
        let count = (4 * values.len()).min(bytes.saturating_sub(4 * word));
        #[cfg(target_endian = "big")]
        let values: &[u32] = &values.iter().map(|v| v.to_le()).collect::<Vec<_>>();
        // SAFETY: `count` bytes of the values, and as many below `bytes`.
        unsafe {
            std::ptr::copy_nonoverlapping(values.as_ptr() as *const u8, to.add(4 * word), count)
        };
    };
    let mut block = [[0u32; BLOCK]; 2];
    for start in pairs.clone().step_by(BLOCK) {
        let count = BLOCK.min(pairs.end.min(half).saturating_sub(start));
        if count > 0 {
            at(level, Pairs { key, first: start, apart: half + odd, count, words: &mut block });
            write(start, &block[0][..count]);
            write(half + odd + start, &block[1][..count]);
        }
    }
    if odd == 1 && pairs.contains(&half) {
        write(half, &[threefry(key, [half as u32, 0])[0]]);
    }
}

/// Makes at least `count` pairs of words from the counters (first + i, first + i + apart).
struct Pairs<'a> {
    key: [u32; 2],
    first: usize,
    apart: usize,
    count: usize,
    words: &'a mut [[u32; BLOCK]; 2],
}

impl Body for Pairs<'_> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let (first, apart) = (self.first as u32, self.apart as u32);
        let [low, high] = self.words;
        // Whole vectors, also for the few words of a short run.
        for i in 0..self.count.next_multiple_of(16).min(BLOCK) {
            let counter = first.wrapping_add(i as u32);
            [low[i], high[i]] = threefry(self.key, [counter, counter.wrapping_add(apart)]);
        }
    }
}

/// The block cipher: 20 rounds, a key injection after every fourth.
#[inline(always)]
fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let [mut a, mut b] = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            a = a.wrapping_add(b);
            b = b.rotate_left(rotation) ^ a;
        }
        a = a.wrapping_add(keys[(group + 1) % 3]);
        b = b.wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    [a, b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kernel::View, testing::Array};
    use ultramarine_test_support::Rng;

    /// The layout as the module's documentation states it, word by word.
    fn words(key: [u32; 2], n: usize) -> Vec<u32> {
        let (half, odd) = (n / 2, n % 2);
        let mut words = vec![0; n];
        for i in 0..half {
            let apart = half + odd + i;
            [words[i], words[apart]] = threefry(key, [i as u32, apart as u32]);
        }
        if odd == 1 {
            words[half] = threefry(key, [half as u32, 0])[0];
        }
        words
    }

    fn bits(keys: &View<'_>, output: &View<'_>, level: Level) {
        crate::testing::run(prepare, &[*keys], output, level, true).unwrap();
    }

    #[test]
    fn known_values() {
        // Vectors of the cipher's authors (Random123).
        assert_eq!(threefry([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry([!0, !0], [!0, !0]), [0x1cb9_96fc, 0xbb00_2be7]);
        let (key, counter) = ([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]);
        assert_eq!(threefry(key, counter), [0xc492_3a9c, 0x483d_f7a0]);
        // MLX's `random.split(random.key(7), n)`, which are its bits.
        assert_eq!(words([0, 7], 2), [195_045_567, 4_062_205_631]);
        assert_eq!(words([0, 7], 4), [966_301_609, 989_289_821, 1_948_237_315, 1_058_547_403]);
        let six =
            [276_534_068, 861_967_409, 1_905_761_346, 1_641_862_660, 2_900_896_126, 1_402_713_516];
        assert_eq!(words([0, 7], 6), six);
        // MLX's `random.uniform` of 5, times 2**32, to 24 bits.
        let uniform = [0.064_385_61, 0.200_692_43, 0.650_459_23f32];
        for (word, value) in words([0, 7], 5).iter().zip(uniform) {
            assert!((*word as f64 / 4294967296.0 - value as f64).abs() < 1e-7);
        }
    }

    #[test]
    fn all_sizes_widths_and_strides() {
        let rng = &mut Rng::new(17);
        let sizes = (1..=20).chain([255, 256, 511, 512, 513, 1001, 40_001]);
        for (round, n) in sizes.enumerate() {
            let values = [0, 7, 256, 5, 0xdead_beef, 0xcafe];
            let keys = Array::new(&[3, 2], &values, round % 2 == 0, rng);
            macro_rules! check {
                ($($t:ty)*) => {$(
                    let level = Level::available()[round % Level::available().len()];
                    let zeros = vec![0 as $t; 3 * n];
                    let output = Array::new(&[3, n as i64], &zeros, round % 3 < 2, rng);
                    bits(&keys.view(), &output.view(), level);
                    let mut expected = Vec::new();
                    for key in values.chunks(2) {
                        let words = words([key[0], key[1]], (n * size_of::<$t>()).div_ceil(4));
                        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                        let whole = bytes.chunks_exact(size_of::<$t>()).take(n);
                        expected.extend(whole.map(|b| <$t>::from_le_bytes(b.try_into().unwrap())));
                    }
                    assert_eq!(output.values(), expected, "{n}");
                )*};
            }
            check!(u8 u16 u32);
        }
    }

    #[test]
    fn one_key_and_a_scalar() {
        let rng = &mut Rng::new(17);
        let key = Array::new(&[2], &[0u32, 7], true, rng);
        let output = Array::new(&[], &[0u32], true, rng);
        bits(&key.view(), &output.view(), Level::Baseline);
        assert_eq!(output.values(), [3_625_411_723]);
        let output = Array::new(&[2, 3], &[0u32; 6], false, rng);
        bits(&key.view(), &output.view(), Level::Baseline);
        assert_eq!(output.values(), words([0, 7], 6));
    }
}
