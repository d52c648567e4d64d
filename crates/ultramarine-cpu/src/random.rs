//! RANDOM_BITS: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel
//! random numbers: as easy as 1, 2, 3", 2011).
//!
//! The bits of a key are `n` 32-bit words, little-endian, cut to the requested number of bytes.
//! With `half` = n / 2 and `odd` = n % 2, the counters (i, half + odd + i) give words i and half +
//! odd + i. If n is odd, the counters (half, 0) give word `half` and a word that is dropped.

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
        // If a key has a single run of bytes, it is written directly, else through a buffer.
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
        // Compute whole vectors, also for the few words of a short run.
        for i in 0..self.count.next_multiple_of(16).min(BLOCK) {
            let counter = first.wrapping_add(i as u32);
            [low[i], high[i]] = threefry(self.key, [counter, counter.wrapping_add(apart)]);
        }
    }
}

/// The block cipher: 20 rounds, a key injection after every fourth.
#[inline(always)]
pub fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
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
