//! AMX's instructions and their emulation, which other tests go by where there is no AMX.

use ultramarine_cpu::tested::tiles::{
    BFLOAT16, BYTES, ROW, SIDE, Steps, TILE, Tiles, emulated, is_available, steps,
};
use ultramarine_test_support::Rng;

/// Sums of random panels by the processor and by emulation.
fn both<const KIND: u8>(rng: &mut Rng, bits: fn(&mut Rng) -> u32) {
    for flags in 0..8 {
        for count in [1, 2, 5] {
            let mut numbers = |n: usize| -> Vec<u32> { (0..n).map(|_| bits(rng)).collect() };
            let (a, b) = (numbers(count * SIDE * TILE), numbers(count * SIDE * TILE));
            let mut c = [numbers(SIDE * SIDE), Vec::new()];
            c[1] = c[0].clone();
            for (i, c) in c.iter_mut().enumerate() {
                let steps_of = Steps {
                    a: a.as_ptr().cast(),
                    a_step: SIDE * ROW,
                    b: b.as_ptr().cast(),
                    b_row: 4 * SIDE,
                    c: c.as_mut_ptr().cast(),
                    c_row: 4 * SIDE as isize,
                    count,
                    flags,
                };
                // SAFETY: the panels have so many steps.
                unsafe {
                    match i {
                        0 => steps::<KIND>(&steps_of),
                        _ => emulated::<KIND>(&steps_of),
                    }
                }
            }
            for (x, y) in c[0].iter().zip(&c[1]) {
                let [p, q] = [x, y].map(|bits| f32::from_bits(*bits));
                // The order of a pair's products is the processor's own.
                let near = KIND == BFLOAT16 && (p - q).abs() <= 1e-3;
                assert!(x == y || near, "{KIND} {flags} {count}: {x:x} {y:x}");
            }
        }
    }
}

#[test]
fn the_processor_does_as_emulation() {
    if !is_available() {
        #[allow(clippy::print_stderr)] // for those who look for it
        {
            eprintln!("skipped: no AMX here, so other tests of it are of its emulation");
        }
        return;
    }
    let _tiles = Tiles::configure();
    let mut rng = Rng::new(5);
    both::<BYTES>(&mut rng, |rng| rng.bits() as u32);
    both::<BFLOAT16>(&mut rng, |rng| {
        // Pairs between half and one, of both signs.
        rng.bits() as u32 & 0x807f_807f | 0x3f00_3f00
    });
}
