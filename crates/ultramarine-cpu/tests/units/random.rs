//! Random bits, against the layout as the module's documentation has it.

use crate::testing::Array;
use ultramarine_cpu::kernel::View;
use ultramarine_cpu::level::Level;
use ultramarine_cpu::tested::families::random as prepare;
use ultramarine_cpu::tested::threefry;
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
