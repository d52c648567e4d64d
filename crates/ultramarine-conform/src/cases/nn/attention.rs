//! ATTENTION and its gradient.

use crate::cases::{Case, Check, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::nn::attention::{Attention, Extra};
use crate::reference::working;
use crate::tensor::{Array, Layout, Placed};
use crate::values::Rng;
use ultramarine_abi::schema::{AttentionAttrs, op};

/// A mask of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    None,
    Bools,
    Numbers,
}

use Mask::{Bools, None as NoMask, Numbers};

/// Sizes of a case, and the optional operands that it has.
#[derive(Clone, Copy)]
struct Shape {
    what: &'static str,
    batches: i64,
    /// Number of query heads, and number of query heads that share a key head.
    heads: [i64; 2],
    /// Number of queries, and number of keys.
    lengths: [i64; 2],
    /// Sizes of the query vectors and of the value vectors.
    sizes: [i64; 2],
    causal: bool,
    mask: Mask,
    sinks: bool,
    /// The number of valid keys, cycled over the batches.
    counts: &'static [i64],
    /// For the gradient: the cotangent of the first query's result is 0, but that of its logarithm
    /// is not.
    by_logarithm: bool,
    /// True if equal commands have to give bitwise identical results.
    deterministic: bool,
}

const PLAIN: Shape = Shape {
    what: "plain",
    batches: 1,
    heads: [2, 1],
    lengths: [5, 7],
    sizes: [4, 4],
    causal: false,
    mask: NoMask,
    sinks: false,
    counts: &[],
    by_logarithm: false,
    deterministic: true,
};

const SHAPES: [Shape; 20] = [
    PLAIN,
    Shape { what: "one of each", heads: [1, 1], lengths: [1, 1], sizes: [1, 1], ..PLAIN },
    Shape {
        what: "one query",
        batches: 2,
        heads: [4, 2],
        lengths: [1, 37],
        sizes: [16, 24],
        ..PLAIN
    },
    Shape { what: "causal", batches: 2, lengths: [9, 9], sizes: [8, 3], causal: true, ..PLAIN },
    Shape {
        what: "causal, more keys than queries",
        heads: [6, 3],
        lengths: [3, 70],
        sizes: [16, 8],
        causal: true,
        ..PLAIN
    },
    Shape { what: "causal, queries without keys", lengths: [7, 4], causal: true, ..PLAIN },
    Shape { what: "bools", batches: 2, lengths: [11, 19], mask: Bools, ..PLAIN },
    Shape { what: "numbers", batches: 2, lengths: [6, 21], sizes: [5, 7], mask: Numbers, ..PLAIN },
    Shape { what: "sinks", heads: [4, 2], lengths: [6, 5], mask: Bools, sinks: true, ..PLAIN },
    Shape { what: "causal with sinks", lengths: [7, 4], causal: true, sinks: true, ..PLAIN },
    Shape {
        what: "lengths",
        batches: 3,
        lengths: [4, 40],
        sizes: [8, 8],
        counts: &[33, 0, 40],
        ..PLAIN
    },
    Shape {
        what: "causal with lengths",
        batches: 2,
        lengths: [4, 40],
        causal: true,
        counts: &[17, 3],
        ..PLAIN
    },
    Shape {
        what: "many keys for one query",
        heads: [4, 4],
        lengths: [1, 300],
        sizes: [64, 64],
        counts: &[290],
        ..PLAIN
    },
    Shape {
        what: "several blocks",
        heads: [2, 2],
        lengths: [70, 135],
        sizes: [64, 64],
        causal: true,
        ..PLAIN
    },
    Shape {
        what: "several blocks of bools",
        lengths: [67, 68],
        sizes: [64, 64],
        mask: Bools,
        ..PLAIN
    },
    Shape {
        what: "several blocks of numbers",
        heads: [4, 2],
        lengths: [130, 200],
        sizes: [72, 128],
        mask: Numbers,
        ..PLAIN
    },
    Shape {
        what: "several blocks with lengths",
        batches: 2,
        lengths: [140, 300],
        sizes: [64, 40],
        causal: true,
        counts: &[290, 90],
        ..PLAIN
    },
    Shape {
        what: "several blocks that share keys",
        batches: 2,
        heads: [4, 2],
        lengths: [66, 66],
        sizes: [64, 64],
        causal: true,
        deterministic: false,
        ..PLAIN
    },
    Shape {
        what: "a gradient by a logarithm alone",
        heads: [2, 2],
        lengths: [40, 50],
        sizes: [32, 16],
        by_logarithm: true,
        deterministic: false,
        ..PLAIN
    },
    Shape {
        what: "large heads",
        heads: [1, 1],
        lengths: [33, 40],
        sizes: [128, 72],
        causal: true,
        ..PLAIN
    },
];

impl Shape {
    fn queries(&self) -> [i64; 4] {
        [self.batches, self.heads[0], self.lengths[0], self.sizes[0]]
    }

    fn keys(&self, size: i64) -> [i64; 4] {
        [self.batches, self.heads[0] / self.heads[1], self.lengths[1], size]
    }

    fn result(&self) -> [i64; 4] {
        [self.batches, self.heads[0], self.lengths[0], self.sizes[1]]
    }

    fn attributes(&self, gradient: bool) -> AttentionAttrs {
        AttentionAttrs::new(
            (self.mask != NoMask).into(),
            (self.sinks && !gradient).into(),
            (!self.counts.is_empty()).into(),
            self.causal.into(),
            self.sizes[0] as u32,
            self.sizes[1] as u32,
            self.heads[1] as u32,
            self.deterministic.into(),
        )
    }

    /// The mask, the first row of which hides all keys.
    fn masks(&self, dtype: DType, rng: &mut Rng) -> Option<Array> {
        let shape = [self.batches, self.heads[0], self.lengths[0], self.lengths[1]];
        let n = shape.iter().product::<i64>() as usize;
        let hidden =
            |i: usize, rng: &mut Rng| i < shape[3] as usize || rng.next().is_multiple_of(4);
        match self.mask {
            NoMask => None,
            Bools => {
                let values: Vec<Num> = (0..n).map(|i| Num::Int((!hidden(i, rng)).into())).collect();
                Some(Array::cycle(DType::BOOL, &shape, &values))
            }
            Numbers => {
                let number = |i| match hidden(i, rng) {
                    true => f64::NEG_INFINITY,
                    false => rng.between(-2.0, 2.0),
                };
                let values: Vec<Num> = (0..n).map(number).map(Num::Real).collect();
                Some(Array::cycle(dtype, &shape, &values))
            }
        }
    }
}

/// Cases of ATTENTION.
pub fn attention(scope: &Scope) -> Vec<OpUnderTest> {
    of(scope, false)
}

/// Cases of ATTENTION_GRADIENT.
pub fn attention_gradient(scope: &Scope) -> Vec<OpUnderTest> {
    of(scope, true)
}

fn of(scope: &Scope, gradient: bool) -> Vec<OpUnderTest> {
    let id = if gradient { op::ATTENTION_GRADIENT } else { op::ATTENTION };
    let rng = &mut Rng::new(41);
    let mut all = Vec::new();
    for dtype in scope.dtypes(id, None) {
        let mut cases = Vec::new();
        for (i, shape) in SHAPES.iter().enumerate() {
            for layout in scope.layouts(i) {
                if layout != Layout::Broadcast || shape.batches > 1 {
                    cases.push(one(*shape, dtype, layout, gradient, rng));
                }
            }
        }
        all.push(OpUnderTest::new(scope, id, None, dtype, cases));
    }
    all
}

fn one(shape: Shape, dtype: DType, layout: Layout, gradient: bool, rng: &mut Rng) -> Case {
    let how = Attention { causal: shape.causal, scale: 1.0 / (shape.sizes[0] as f64).sqrt() };
    let mut array = |sizes: &[i64], size: f64| {
        let n = sizes.iter().product();
        let values: Vec<Num> = (0..n).map(|_| Num::Real(rng.between(-size, size))).collect();
        Array::cycle(dtype, sizes, &values)
    };
    let mut inputs = vec![
        (array(&shape.queries(), 2.0), layout),
        (array(&shape.keys(shape.sizes[0]), 2.0), layout),
        (array(&shape.keys(shape.sizes[1]), 2.0), layout),
    ];
    let cotangent = (array(&shape.result(), 2.0), layout);
    let sinks = shape.sinks.then(|| array(&[shape.batches, shape.heads[0]], 2.0));
    // Broadcast operands have one value along their first axis.
    let level = |array: &mut Array| drop(Placed::new(array, layout));
    let mut mask = shape.masks(dtype, rng);
    let counts: Vec<Num> = shape.counts.iter().map(|n| Num::Int((*n).into())).collect();
    let lengths = (!counts.is_empty()).then(|| Array::cycle(DType::I32, &[shape.batches], &counts));
    inputs.iter_mut().map(|(array, _)| array).chain(&mut mask).for_each(level);
    let outputs: Vec<(DType, [i64; 4])> = if gradient {
        let (mut ct, _) = cotangent.clone();
        level(&mut ct);
        if shape.by_logarithm {
            ct.values[..shape.sizes[1] as usize].fill(dtype.value(Num::Real(0.0)));
        }
        let extra = Extra { mask: mask.as_ref(), sinks: sinks.as_ref(), lengths: lengths.as_ref() };
        let operands = [&inputs[0].0, &inputs[1].0, &inputs[2].0];
        let mut made = how.logarithms(operands, extra, &ct);
        if shape.by_logarithm {
            made[1].values[0] = Num::Real(-0.75);
        }
        inputs.push((ct, layout));
        inputs.extend(made.map(|array| (array, Layout::Contiguous)));
        [shape.queries(), shape.keys(shape.sizes[0]), shape.keys(shape.sizes[1])]
            .map(|sizes| (dtype, sizes))
            .into()
    } else {
        vec![(dtype, shape.result())]
    };
    let first = inputs.len();
    inputs.extend(mask.map(|mask| (mask, layout)));
    if !gradient {
        inputs.extend(sinks.map(|sinks| (sinks, Layout::Contiguous)));
    }
    inputs.extend(lengths.map(|lengths| (lengths, Layout::Contiguous)));
    let id = if gradient { op::ATTENTION_GRADIENT } else { op::ATTENTION };
    let mut made = case(
        format!("{} {}", shape.what, layout.name()),
        (id, words(&shape.attributes(gradient))),
        inputs,
        (dtype, outputs[0].1.to_vec()),
        |_| Vec::new(),
    );
    made.request.scalars = vec![DType::F64.scalar(Num::Real(how.scale))];
    let output = |dtype, sizes: &[i64]| Placed::output(dtype, sizes, Layout::Contiguous);
    made.request.more = match gradient {
        true => outputs[1..].iter().map(|(dtype, sizes)| output(*dtype, sizes)).collect(),
        false => vec![output(working(dtype), &shape.queries()[..3])],
    };
    let check: Check = Box::new(move |inputs: &[Array], outputs: &[Array]| {
        let mut more = inputs[first..].iter();
        let extra = Extra {
            mask: (shape.mask != NoMask).then(|| more.next()).flatten(),
            sinks: (shape.sinks && !gradient).then(|| more.next()).flatten(),
            lengths: more.next(),
        };
        match gradient {
            true => how.check_gradient(inputs, extra, outputs),
            false => how.check([&inputs[0], &inputs[1], &inputs[2]], extra, outputs),
        }
    });
    made.check = Some(check);
    made.repeats = !gradient || shape.deterministic;
    made
}
