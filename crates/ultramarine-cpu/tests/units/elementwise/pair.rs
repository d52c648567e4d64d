//! Pairs of operations in one pass, against one after the other.

use ultramarine_cpu::elementwise::pair::{Arith, PairFn, lookup, products};
use ultramarine_cpu::level::Level;
use ultramarine_test_support::Rng;

fn plain(op: Arith, x: f32, y: f32) -> f32 {
    match op {
        Arith::Add => x + y,
        Arith::Subtract => x - y,
        Arith::From => y - x,
        Arith::Multiply => x * y,
        Arith::None => x,
    }
}

/// Runs `run` on operands of which the bits of `constants` are constant, streamed or
/// not, aligned or not, and compares with `want` of the four operands' elements.
fn check(run: PairFn, n: usize, constants: usize, what: &str, want: impl Fn([f32; 4]) -> f32) {
    let mut rng = Rng::new(1);
    let all = [0usize, 1, 2, 3];
    let steps = all.map(|k| 1 - (constants >> k & 1));
    let data = all.map(|k| -> Vec<f32> {
        let any: Vec<f32> = rng.uniforms(n, -170.0, 200.0).into_iter().map(|x| x as f32).collect();
        // A constant fills a vector.
        if steps[k] == 0 { vec![any[0]; 16] } else { any }
    });
    for (stream, shift) in [(false, 0), (true, 0), (true, 3)] {
        let mut out = vec![f32::NAN; n + shift + 1];
        let from = all.map(|k| data[k].as_ptr());
        // SAFETY: operands have n elements or a constant's, and the result has room
        // for n.
        unsafe { run(out.as_mut_ptr().add(shift), from, steps, n, stream) };
        for i in 0..n {
            let want = want(all.map(|k| data[k][i * steps[k]]));
            assert_eq!(out[shift + i].to_bits(), want.to_bits(), "{what} {n} {constants}");
        }
        assert!(out[n + shift].is_nan(), "{what}: written past the end");
    }
}

#[test]
fn one_pass_matches_several_bitwise() {
    let ops = [Arith::Add, Arith::Subtract, Arith::From, Arith::Multiply, Arith::None];
    for level in Level::available() {
        for (n, constants) in [1, 5, 16, 33, 200].iter().flat_map(|n| (0..16).map(|c| (*n, c))) {
            for (first, second) in ops[..4].iter().flat_map(|a| ops.map(|b| (*a, b))) {
                let run = lookup(*level, first, second).expect("it is there");
                check(run, n, constants, &format!("{first:?} {second:?} {level:?}"), |x| {
                    plain(second, plain(first, x[0], x[1]), x[2])
                });
            }
            for second in &ops[..3] {
                let run = products(*level, *second).expect("it is there");
                check(run, n, constants, &format!("products {second:?} {level:?}"), |x| {
                    plain(*second, x[0] * x[1], x[2] * x[3])
                });
            }
        }
    }
}
