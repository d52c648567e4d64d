//! Convolutions of every dtype against sums in float64, over random shapes, groups, strides,
//! dilations, padding and layouts.

use crate::testing::{Array, Sample, desc, host};
use half::{bf16, f16};
use ultramarine_abi::schema::{ConvolveAttrs, OpId, op};
use ultramarine_cpu::kernel::{Args, Context, Signature};
use ultramarine_cpu::tested::Storage;
use ultramarine_cpu::tested::families::conv as prepare;
use ultramarine_cpu::{dtype::Element, level::Level, par::Par};
use ultramarine_test_support::Rng;

/// Numbers that float64 holds.
trait Real: Sample + Element + Storage {
    /// Units of rounding of sums and of the result.
    const EPS: [f64; 2];
    fn real(self) -> f64;
}
macro_rules! reals {
    ($($t:ty, $sum:expr, $own:expr, $x:ident => $e:expr;)*) => {$(impl Real for $t {
        const EPS: [f64; 2] = [$sum, $own];
        fn real(self) -> f64 { let $x = self; $e }
    })*};
}
reals! {
    f16, f32::EPSILON as f64, 1.0 / 1024.0, x => x.to_f64();
    bf16, f32::EPSILON as f64, 1.0 / 128.0, x => x.to_f64();
    f32, f32::EPSILON as f64, f32::EPSILON as f64, x => x as f64;
    f64, f64::EPSILON, f64::EPSILON, x => x;
}

/// A convolution to try.
#[derive(Clone, Debug)]
struct Config {
    batch: i64,
    groups: i64,
    channels: i64,
    filters: i64,
    input: [i64; 3],
    kernel: [i64; 3],
    output: [i64; 3],
    stride: [i64; 3],
    low: [i64; 3],
    dilation: [i64; 3],
    spread: [i64; 3],
    flip: bool,
    plain: [bool; 3],
}

impl Config {
    /// Ordinary sizes.
    const BASE: Config = Config {
        batch: 2,
        groups: 1,
        channels: 64,
        filters: 96,
        input: [1, 14, 15],
        kernel: [1, 3, 3],
        output: [1, 14, 15],
        stride: [1; 3],
        low: [0, 1, 1],
        dilation: [1; 3],
        spread: [1; 3],
        flip: false,
        plain: [true; 3],
    };

    fn random(rng: &mut Rng) -> Config {
        let dims = 1 + rng.below(3);
        let axes = |rng: &mut Rng, f: &dyn Fn(&mut Rng) -> i64, rest: i64| {
            let mut of = [rest; 3];
            (3 - dims..3).for_each(|i| of[i] = f(rng));
            of
        };
        let few = |rng: &mut Rng, of: &[i64]| of[rng.below(of.len())];
        let kind = rng.below(5);
        let (groups, channels, filters) = match kind {
            // Depthwise.
            0 => (1 + rng.below(90) as i64, 1, 1),
            1 => (2 + rng.below(3) as i64, 1 + rng.below(20) as i64, 1 + rng.below(20) as i64),
            _ => (1, few(rng, &[1, 2, 3, 8, 17, 33, 64]), few(rng, &[1, 2, 5, 16, 31, 40, 64, 70])),
        };
        let low = |rng: &mut Rng| rng.below(7) as i64 - 3;
        let step = |rng: &mut Rng| [1, 1, 1, 2, 3][rng.below(5)];
        Config {
            batch: 1 + rng.below(3) as i64,
            groups,
            channels,
            filters,
            input: axes(rng, &|r| 1 + r.below(9) as i64, 1),
            kernel: axes(rng, &|r| 1 + r.below(5) as i64, 1),
            output: axes(rng, &|r| 1 + r.below(9) as i64, 1),
            stride: axes(rng, &step, 1),
            low: axes(rng, &low, 0),
            dilation: axes(rng, &step, 1),
            spread: axes(rng, &|r| [1, 1, 2, 3, 4][r.below(5)], 1),
            flip: rng.below(2) == 0,
            plain: [(); 3].map(|_| rng.below(2) == 0),
        }
    }

    /// Where output `o` meets tap `k` along an axis, if it meets an element.
    fn meets(&self, axis: usize, o: i64, k: i64) -> Option<i64> {
        let at = o * self.stride[axis] - self.low[axis] + k * self.dilation[axis];
        let i = at.div_euclid(self.spread[axis]);
        (at.rem_euclid(self.spread[axis]) == 0 && (0..self.input[axis]).contains(&i)).then_some(i)
    }

    /// The shapes of the input, the weight and the output.
    fn shapes(&self) -> [[i64; 5]; 3] {
        let shape = |n: i64, s: [i64; 3], c: i64| [n, s[0], s[1], s[2], c];
        [
            shape(self.batch, self.input, self.groups * self.channels),
            shape(self.groups * self.filters, self.kernel, self.channels),
            shape(self.batch, self.output, self.groups * self.filters),
        ]
    }

    /// Calls `f` with the places of each element of the input, the weight and the output that meet.
    fn each(&self, mut f: impl FnMut([usize; 3])) {
        let [xs, ws, ys] = self.shapes();
        let at =
            |s: &[i64; 5], i: [i64; 5]| i.iter().zip(s).fold(0, |at, (i, n)| at * n + i) as usize;
        for position in 0..ys.iter().product::<i64>() as usize {
            let p = crate::testing::unravel(position, &ys);
            let group = p[4] / self.filters;
            for t in 0..self.kernel.iter().product() {
                let k = crate::testing::unravel(t as usize, &self.kernel);
                let met = [0, 1, 2].map(|a| self.meets(a, p[1 + a], k[a]));
                let [Some(d), Some(h), Some(b)] = met else { continue };
                let tap = |a: usize| if self.flip { self.kernel[a] - 1 - k[a] } else { k[a] };
                for c in 0..self.channels {
                    let x = at(&xs, [p[0], d, h, b, group * self.channels + c]);
                    f([x, at(&ws, [p[4], tap(0), tap(1), tap(2), c]), position]);
                }
            }
        }
    }

    /// Computes the output, or the gradient by the weight, and compares it with sums in float64.
    fn check_of<T: Real>(&self, id: OpId, level: Level, par: Par, rng: &mut Rng) {
        let [xs, ws, ys] = self.shapes();
        // The places in a triple of what is given, and of what is computed.
        let (shapes, given, computed) = match id {
            op::CONVOLVE_WEIGHT => ([xs, ys, ws], [0, 2], 1),
            _ => ([xs, ws, ys], [0, 1], 2),
        };
        let size = |s: &[i64; 5]| s.iter().product::<i64>() as usize;
        let mut fill = |s: &[i64; 5]| -> Vec<T> {
            (0..size(s)).map(|_| T::sample(rng.below(17) as i64 - 8)).collect()
        };
        let values = [fill(&shapes[0]), fill(&shapes[1])];
        let unset = vec![T::sample(99); size(&shapes[2])];
        let a = Array::new(&shapes[0], &values[0], self.plain[0], rng);
        let b = Array::new(&shapes[1], &values[1], self.plain[1], rng);
        let c = Array::new(&shapes[2], &unset, self.plain[2], rng);
        let inputs = [desc(&a.view()), desc(&b.view())];
        let signature = Signature { inputs: &inputs, outputs: &[desc(&c.view())] };
        let kernel =
            prepare(id, ConvolveAttrs::new(self.flip as u32, 0), &signature, level).unwrap();
        let lists = [self.stride, self.low, self.dilation, self.spread];
        let scalars: Vec<[u64; 2]> = lists.iter().flatten().map(|v| [*v as u64, 0]).collect();
        let args = Args { inputs: &[a.view(), b.view()], outputs: &[c.view()], scalars: &scalars };
        // SAFETY: the views are of live arrays, which do not overlap.
        unsafe { kernel.run(&Context { par, level }, &args) }.unwrap();
        let mut want = vec![(0.0, 0.0); unset.len()];
        self.each(|places| {
            let product = values[0][places[given[0]]].real() * values[1][places[given[1]]].real();
            let (sum, size) = &mut want[places[computed]];
            *sum += product;
            *size += product.abs();
        });
        for (i, (got, (sum, size))) in c.values().iter().zip(want).enumerate() {
            let bound = 8.0 * T::EPS[0] * size + T::EPS[1] * sum.abs();
            assert!(
                (got.real() - sum).abs() <= bound,
                "{level:?} {} {self:?} at {i}: {} is not {sum}",
                std::any::type_name::<T>(),
                got.real(),
            );
        }
    }

    fn check<T: Real>(&self, level: Level, threads: bool, rng: &mut Rng) {
        let par = if threads { Par::new(host()) } else { Par::default() };
        self.check_of::<T>(op::CONVOLVE, level, par, rng);
    }

    fn check_weight<T: Real>(&self, level: Level, rng: &mut Rng) {
        self.check_of::<T>(op::CONVOLVE_WEIGHT, level, Par::new(host()), rng);
    }
}

/// The two highest levels, whose products of bfloat16 differ.
fn highest() -> impl Iterator<Item = &'static Level> {
    Level::of_products().iter().rev().take(2)
}

#[test]
fn gradients_by_the_weight() {
    let mut rng = Rng::new(0xc0ffee);
    for _ in 0..200 {
        let config = Config::random(&mut rng);
        for level in Level::available() {
            config.check_weight::<f32>(*level, &mut rng);
        }
        for level in highest() {
            config.check_weight::<bf16>(*level, &mut rng);
        }
        config.check_weight::<f64>(Level::detected(), &mut rng);
    }
    // Several shares of the lines of a depthwise one.
    let deep = Config {
        batch: 3,
        groups: 70,
        channels: 1,
        filters: 1,
        input: [1, 20, 21],
        output: [1, 10, 21],
        stride: [1, 2, 1],
        ..Config::BASE
    };
    deep.check_weight::<f32>(Level::detected(), &mut rng);
    deep.check_weight::<f16>(Level::detected(), &mut rng);
}

#[test]
fn channels_by_themselves() {
    let mut rng = Rng::new(0xdee9);
    // Widths of few and of many pixels that are summed together, and of several tiles.
    for (width, kernel) in [(8, 3), (13, 5), (14, 3), (27, 7), (28, 3), (70, 5), (113, 3)] {
        let config = Config {
            groups: 37,
            channels: 1,
            filters: 1,
            input: [1, 9, width],
            kernel: [1, kernel, kernel],
            output: [1, 9, width],
            low: [0, kernel / 2, kernel / 2],
            ..Config::BASE
        };
        for level in Level::available() {
            config.check::<f32>(*level, true, &mut rng);
        }
        config.check::<bf16>(Level::detected(), true, &mut rng);
        config.check::<f64>(Level::detected(), true, &mut rng);
    }
}

#[test]
fn random_configurations() {
    let mut rng = Rng::new(0x5eed_c0de);
    for i in 0..300 {
        let config = Config::random(&mut rng);
        for level in Level::available() {
            config.check::<f32>(*level, i % 3 == 0, &mut rng);
        }
        let level = Level::of_products()[i % Level::of_products().len()];
        config.check::<f16>(level, false, &mut rng);
        config.check::<bf16>(level, true, &mut rng);
        config.check::<f64>(level, false, &mut rng);
    }
}

/// Shapes that are cut into several tasks and stretches of k.
#[test]
fn larger_ones() {
    let base = Config::BASE;
    let narrow = Config { batch: 1, groups: 17, channels: 1, filters: 1, ..base.clone() };
    let cases = [
        base.clone(),
        Config { channels: 130, kernel: [1, 3, 5], flip: true, ..base.clone() },
        Config { filters: 300, plain: [false; 3], ..base.clone() },
        Config { groups: 4, channels: 40, filters: 33, ..base.clone() },
        Config { channels: 700, kernel: [1, 1, 7], low: [0, 0, 3], ..base.clone() },
        // One tap: a product of matrices, also in a view.
        Config { kernel: [1; 3], low: [0; 3], channels: 200, ..base.clone() },
        Config { kernel: [1; 3], low: [0; 3], plain: [false; 3], ..base.clone() },
        // Sound: one channel, a long kernel.
        Config {
            channels: 1,
            filters: 1,
            input: [1, 1, 3000],
            kernel: [1, 1, 513],
            output: [1, 1, 3000],
            low: [0, 0, 256],
            ..base.clone()
        },
        // Each channel by itself: several rectangles, and taps so far apart that they have lines of their own.
        Config { stride: [1, 1, 2], input: [1, 70, 140], output: [1, 70, 70], ..narrow.clone() },
        Config {
            groups: 3,
            input: [1, 410, 420],
            output: [1, 9, 70],
            dilation: [1, 200, 200],
            low: [0, 3, 1],
            ..narrow
        },
        // A transposed one.
        Config { spread: [1, 2, 2], output: [1, 29, 31], ..base },
    ];
    let mut rng = Rng::new(77);
    for (i, config) in cases.iter().enumerate() {
        for level in Level::available() {
            config.check::<f32>(*level, i % 2 == 0, &mut rng);
        }
        for level in highest() {
            config.check::<bf16>(*level, true, &mut rng);
        }
        config.check::<f64>(Level::detected(), true, &mut rng);
    }
}

#[test]
fn misfits_are_refused() {
    let mut rng = Rng::new(3);
    let x = Array::new(&[1, 1, 1, 4, 2], &[1f32; 8], true, &mut rng);
    let w = Array::new(&[3, 1, 1, 2, 2], &[1f32; 12], true, &mut rng);
    let y = Array::new(&[1, 1, 1, 3, 3], &[0f32; 9], true, &mut rng);
    let signature = [desc(&x.view()), desc(&w.view())];
    let outputs = [desc(&y.view())];
    let signature = Signature { inputs: &signature, outputs: &outputs };
    let level = Level::detected();
    let kernel = prepare(op::CONVOLVE, ConvolveAttrs::new(0, 0), &signature, level).unwrap();
    let run = |scalars: &[[u64; 2]]| {
        let args = Args { inputs: &[x.view(), w.view()], outputs: &[y.view()], scalars };
        // SAFETY: the views are of live arrays.
        unsafe { kernel.run(&Context { par: Par::default(), level }, &args) }
    };
    let mut scalars = [[1, 0]; 12];
    scalars[3..6].fill([0, 0]);
    assert!(run(&scalars).is_ok());
    assert!(run(&scalars[1..]).is_err());
    for i in [0, 6, 9] {
        let mut bad = scalars;
        bad[i] = [0, 0];
        assert!(run(&bad).is_err());
    }
    scalars[0] = [u64::MAX >> 1, 0];
    scalars[2] = [u64::MAX >> 1, 0];
    assert!(run(&scalars).is_err());
}
