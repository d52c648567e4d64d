//! CROSS_ENTROPY and its gradient.

use crate::cases::{Case, Check, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::{nn::cross_entropy, working};
use crate::tensor::{Array, Layout, Placed};
use crate::values::Rng;
use ultramarine_abi::schema::{NoAttrs, op};

/// Rows and classes.
const SHAPES: [[i64; 2]; 9] =
    [[3, 5], [1, 1], [4, 1], [2, 33], [7, 100], [1, 1000], [2, 5000], [1, 40_000], [300, 3]];

/// The first logit of each row, if it is not between -4 and 4 like the others.
#[derive(Clone, Copy)]
enum Special {
    None,
    Large,
    Infinite,
}

/// Cases of CROSS_ENTROPY.
pub fn cross_entropy(scope: &Scope) -> Vec<OpUnderTest> {
    of(scope, false)
}

/// Cases of CROSS_ENTROPY_GRADIENT.
pub fn cross_entropy_gradient(scope: &Scope) -> Vec<OpUnderTest> {
    of(scope, true)
}

fn of(scope: &Scope, gradient: bool) -> Vec<OpUnderTest> {
    let id = if gradient { op::CROSS_ENTROPY_GRADIENT } else { op::CROSS_ENTROPY };
    let rng = &mut Rng::new(43);
    let mut all = Vec::new();
    for dtype in scope.dtypes(id, None) {
        let mut cases = Vec::new();
        for (i, shape) in SHAPES.into_iter().enumerate() {
            for layout in scope.layouts(i) {
                if layout != Layout::Broadcast || shape[0] > 1 {
                    cases.push(one(shape, dtype, layout, Special::None, gradient, rng));
                }
            }
        }
        for special in [Special::Large, Special::Infinite] {
            cases.push(one([4, 70], dtype, Layout::Contiguous, special, gradient, rng));
        }
        all.push(OpUnderTest::new(scope, id, None, dtype, cases));
    }
    all
}

fn one(
    [rows, classes]: [i64; 2],
    dtype: DType,
    layout: Layout,
    special: Special,
    gradient: bool,
    rng: &mut Rng,
) -> Case {
    let mut reals = |shape: &[i64], dtype: DType, f: &dyn Fn(usize) -> Option<f64>| {
        let n = shape.iter().product::<i64>() as usize;
        let values: Vec<Num> =
            (0..n).map(|i| Num::Real(f(i).unwrap_or(rng.between(-4.0, 4.0)))).collect();
        Array::cycle(dtype, shape, &values)
    };
    let first = |i: usize| match special {
        _ if i as i64 % classes != 0 => None,
        Special::None => None,
        Special::Large => Some(30_000.0),
        // A class that cannot be.
        Special::Infinite => Some(f64::NEG_INFINITY),
    };
    let mut logits = reals(&[rows, classes], dtype, &first);
    // Broadcast operands have one value along their first axis.
    drop(Placed::new(&mut logits, layout));
    let mut cotangent = reals(&[rows], working(dtype), &|_| None);
    if rows > 2 {
        cotangent.values[2] = Num::Real(0.0);
    }
    let mut targets: Vec<Num> = Vec::new();
    for row in 0..rows {
        // Never the first class, which may be special; some from the end, and some outside.
        let inside = 1 + (rng.next() % (classes - 1).max(1) as u64) as i64;
        let target = match row % 5 {
            _ if classes == 1 => -(row % 2),
            3 => inside - classes,
            4 if row % 2 == 0 => classes + 3,
            _ => inside,
        };
        targets.push(Num::Int(target.into()));
    }
    let targets = Array::cycle(DType::I32, &[rows], &targets);
    let mut inputs = vec![(logits, layout), (targets, Layout::Contiguous)];
    let (id, output) = match gradient {
        true => {
            let logarithms = cross_entropy::logarithms(&inputs[0].0);
            inputs.push((logarithms, Layout::Contiguous));
            inputs.push((cotangent, Layout::Contiguous));
            (op::CROSS_ENTROPY_GRADIENT, (dtype, vec![rows, classes]))
        }
        false => (op::CROSS_ENTROPY, (working(dtype), vec![rows])),
    };
    let what = match special {
        Special::None => String::new(),
        Special::Large => " with large logits".into(),
        Special::Infinite => " with infinite logits".into(),
    };
    let name = format!("{rows} x {classes}{what} {}", layout.name());
    let mut made = case(name, (id, words(&NoAttrs::new())), inputs, output, |_| Vec::new());
    if !gradient {
        let more = Placed::output(working(dtype), &[rows], Layout::Contiguous);
        made.request.more = vec![more];
    }
    let check: Check = Box::new(move |inputs: &[Array], outputs: &[Array]| match gradient {
        true => cross_entropy::check_gradient(inputs, &outputs[0]),
        false => cross_entropy::check(inputs, outputs),
    });
    made.check = Some(check);
    made
}
