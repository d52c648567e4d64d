//! Against a reference that is written the plain way.

use crate::testing::lanes::{Value, any_shape, lanes, sampled};
use crate::testing::{Array, dtypes, run};
use std::cmp::Ordering;
use ultramarine_abi::schema::{ArgReduceAttrs, arg_reduce as arg_codes};
use ultramarine_cpu::tested::families;
use ultramarine_cpu::{kernel::Signature, level::Level};
use ultramarine_test_support::Rng;

#[test]
fn arg_reductions() {
    fn check<T: Value>(rng: &mut Rng, round: usize, level: Level) {
        let (mut shape, axis) = any_shape(rng, round);
        if round == 3 {
            shape = vec![1, 140_000];
        }
        let axis = if round == 3 { 1 } else { axis };
        let source = sampled::<T>(&shape, round.is_multiple_of(3), round.is_multiple_of(2), rng);
        let mut kept = shape.clone();
        kept[axis] = 1;
        let zeros = vec![9u32; kept.iter().product::<i64>() as usize];
        let output = Array::new(&kept, &zeros, round.is_multiple_of(5), rng);
        let max = round % 2 == 1;
        let code = if max { arg_codes::ARGMAX } else { arg_codes::ARGMIN };
        let prepare = |s: &Signature<'_>, l| {
            families::arg_reduce(ArgReduceAttrs::new(code, axis as u32), s, l)
        };
        run(prepare, &[source.view()], &output.view(), level, round % 4 < 2).unwrap();
        let values = source.values();
        let mut expected = Vec::new();
        for lane in lanes(&shape, axis) {
            let at = |i: usize| values[lane[i]].parts();
            let nan = (0..lane.len()).find(|i| at(*i).0.is_nan());
            let mut best = 0;
            for i in 1..lane.len() {
                let wanted = if max { Ordering::Greater } else { Ordering::Less };
                if at(i).partial_cmp(&at(best)) == Some(wanted) {
                    best = i;
                }
            }
            expected.push(nan.unwrap_or(best) as u32);
        }
        assert_eq!(output.values(), expected, "{:?} {shape:?} {axis} {code}", T::DTYPE);
    }
    let mut rng = Rng::new(51);
    for level in Level::available() {
        for dtype in dtypes() {
            (0..60).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round, *level)));
        }
    }
}
