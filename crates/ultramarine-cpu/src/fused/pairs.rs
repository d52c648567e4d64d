//! Joins consecutive float32 sums, differences and products into one pass.

use super::program::{Run, Step};
use super::source::Instruction;
use crate::elementwise::pair::{self, Arith};
use crate::{dtype::DType, elementwise::TileOp, level::Level};
use ultramarine_abi::schema::binary;

/// A float32 sum, difference or product whose partner is not yet known.
#[derive(Clone, Copy)]
pub struct Simple {
    op: Arith,
    operands: [u16; 2],
}

/// The instruction as a float32 sum, difference or product, if it is one.
pub fn simple_of(values: &[DType], i: &Instruction) -> Option<Simple> {
    let TileOp::Binary(code) = i.op else { return None };
    let op = match code {
        binary::ADD => Arith::Add,
        binary::SUBTRACT => Arith::Subtract,
        binary::MULTIPLY => Arith::Multiply,
        _ => return None,
    };
    let operands = [i.operands[0], i.operands[1]];
    let float = |v: &u16| values.get(usize::from(*v)) == Some(&DType::F32);
    operands.iter().all(float).then_some(Simple { op, operands })
}

/// The steps, in which a few float32 sums, differences and products are joined into one pass if the
/// results in between have no other use.
pub fn paired(
    mut steps: Vec<Step>,
    simple: &[Option<Simple>],
    outputs: &[u16],
    is_constant: impl Fn(u16) -> bool,
    level: Level,
) -> Vec<Step> {
    let uses = |value: u16| {
        let reads = |s: &Step| {
            // An operand that repeats the first one does not count. (Or it counts twice, which only
            // keeps a value from being absorbed.)
            let n = if s.operands[0] == s.operands[2] { 2 } else { 3 };
            s.operands[..n].iter().filter(|v| **v == value).count()
        };
        steps.iter().map(reads).sum::<usize>() + outputs.iter().filter(|v| **v == value).count()
    };
    // The steps that each step absorbs: those of its left and its right operand.
    let mut parts: Vec<[Option<usize>; 2]> = vec![[None; 2]; steps.len()];
    let mut swallowed = vec![false; steps.len()];
    for (at, s) in simple.iter().enumerate() {
        let Some(s) = s.filter(|s| s.operands[0] != s.operands[1]) else { continue };
        let free = |v: u16| {
            let made = steps.iter().position(|step| step.result == v)?;
            let whole = parts[made] == [None; 2] && !swallowed[made] && uses(v) == 1;
            simple.get(made).copied().flatten().filter(|_| whole).map(|op| (made, op.op))
        };
        let [left, right] = s.operands.map(free);
        let product = |part: Option<(usize, Arith)>| part.is_some_and(|p| p.1 == Arith::Multiply);
        let both = product(left) && product(right) && s.op != Arith::Multiply;
        let left = left.map(|p| p.0);
        let right = right.map(|p| p.0).filter(|_| both || left.is_none());
        parts[at] = [left, right];
        left.into_iter().chain(right).for_each(|made| swallowed[made] = true);
    }
    for (at, s) in simple.iter().enumerate().filter(|(at, _)| !swallowed[*at]) {
        let Some(last) = s else { continue };
        let part = |k: usize| parts[at][k].and_then(|made| simple[made]);
        let (run, operands) = match (part(0), part(1)) {
            (Some(a), Some(b)) => {
                let operands = [a.operands[0], a.operands[1], b.operands[0], b.operands[1]];
                (pair::products(level, last.op), operands)
            }
            (Some(a), None) => {
                let operands = [a.operands[0], a.operands[1], last.operands[1], a.operands[0]];
                (pair::lookup(level, a.op, last.op), operands)
            }
            (None, Some(b)) => {
                let operands = [b.operands[0], b.operands[1], last.operands[0], b.operands[0]];
                (pair::lookup(level, b.op, last.op.swapped()), operands)
            }
            (None, None) => {
                let [a, b] = last.operands;
                (pair::lookup(level, last.op, Arith::None), [a, b, a, a])
            }
        };
        let Some(run) = run else { continue };
        let strides = operands.map(|v| usize::from(!is_constant(v)));
        steps[at] = Step { run: Run::Pair(run, strides), operands, result: steps[at].result };
    }
    let mut keep = swallowed.into_iter().map(|s| !s).chain(std::iter::repeat(true));
    steps.retain(|_| keep.next() == Some(true));
    steps
}
