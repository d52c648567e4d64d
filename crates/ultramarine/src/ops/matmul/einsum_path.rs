//! Parses the subscripts of [`super::einsum`], and finds the order in which its operands are contracted.
//!
//! The search is greedy, as in NumPy and MLX. At each step it takes the pair that frees most memory, and among those
//! the cheaper one. No intermediate result is larger than the largest operand or the result.

use crate::error::{Result, bail, ensure};
use crate::{array::Array, shape::Show};

/// An index: 0 to 51 are the letters, beginning with `A`. The axes of an ellipsis follow, counted from the last one.
/// Sets of indices are bit masks.
pub(crate) type Label = u8;

const ELLIPSIS: Label = 52;

/// A set of indices as a bit mask.
pub(crate) fn set(labels: &[Label]) -> u128 {
    labels.iter().fold(0, |bits, l| bits | 1 << l)
}

/// The subscripts, resolved against the operands.
pub(crate) struct Parsed {
    /// The indices of each operand's axes.
    pub inputs: Vec<Vec<Label>>,
    /// The indices of the result's axes.
    pub output: Vec<Label>,
    /// Sizes by index.
    pub sizes: [usize; 128],
}

/// A step removes the operands at these positions, and appends their result, which keeps some of the indices.
pub(crate) struct Step {
    pub positions: Vec<usize>,
    pub keep: u128,
}

/// All steps and their cost, and for comparison the cost of a single step for everything.
pub(crate) struct Path {
    pub steps: Vec<Step>,
    pub naive: Cost,
    pub chosen: Cost,
}

/// Number of operations, and the largest number of indices of one step.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub count: u64,
    pub scaling: u32,
}

/// The labels of a term. An ellipsis is `None`.
fn term(op: &str, text: &str) -> Result<Vec<Option<Label>>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            ensure!(
                !out.contains(&None),
                op,
                "Only one ellipsis per subscript is allowed but found more in '{text}'. Write it once."
            );
            out.push(None);
            rest = after;
            continue;
        }
        out.push(Some(match c {
            'A'..='Z' => c as u8 - b'A',
            'a'..='z' => c as u8 - b'a' + 26,
            _ => {
                bail!(op, "Subscripts must be letters, but got '{c}'. Name each axis by a letter.");
            }
        }));
        rest = &rest[1..];
    }
    Ok(out)
}

/// The term with its ellipsis replaced by the `n` axes that it stands for.
fn expanded(term: &[Option<Label>], n: usize) -> Vec<Label> {
    let one = |l: &Option<Label>| match l {
        Some(l) => vec![*l],
        None => (0..n as Label).rev().map(|i| ELLIPSIS + i).collect(),
    };
    term.iter().flat_map(one).collect()
}

/// The result's term if none is given: the ellipsis if there is one, then the labels that occur once.
fn implied(inputs: &[Vec<Option<Label>>]) -> Vec<Option<Label>> {
    let all: Vec<_> = inputs.iter().flatten().copied().collect();
    let once = |l: Label| all.iter().filter(|x| **x == Some(l)).count() == 1;
    let dots = all.contains(&None).then_some(None);
    dots.into_iter().chain((0..ELLIPSIS).filter(|l| once(*l)).map(Some)).collect()
}

/// Parses subscripts and checks them against the operands.
pub(crate) fn parse(op: &str, subscripts: &str, operands: &[&Array]) -> Result<Parsed> {
    ensure!(
        !operands.is_empty(),
        op,
        "At least one operand is required. Pass the arrays after the subscripts."
    );
    let text: String = subscripts.chars().filter(|c| *c != ' ').collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&text[..], None),
    };
    let named: Vec<&str> = left.split(',').collect();
    ensure!(
        named.len() == operands.len(),
        op,
        "Number of operands, {}, does not match number of input subscripts, {}. Separate subscripts by commas, one list for each operand.",
        operands.len(),
        named.len()
    );
    let terms = named.iter().map(|t| term(op, t)).collect::<Result<Vec<_>>>()?;
    let result = right.map_or_else(|| Ok(implied(&terms)), |t| term(op, t))?;

    let mut inputs = Vec::new();
    let mut longest = 0;
    for (i, (term, a)) in terms.iter().zip(operands).enumerate() {
        let letters = term.iter().flatten().count();
        let dots = term.contains(&None);
        ensure!(
            a.ndim() >= letters && (dots || a.ndim() == letters),
            op,
            "Invalid number of subscripts {letters} for input {i} with {} dimensions. Write a letter for each dimension, or an ellipsis.",
            a.ndim()
        );
        let n = if dots { a.ndim() - letters } else { 0 };
        longest = longest.max(n);
        inputs.push(expanded(term, n));
    }
    let output = expanded(&result, longest);
    let all = inputs.iter().fold(0, |bits, l| bits | set(l));
    if set(&output).count_ones() as usize != output.len() {
        bail!(op, "Repeat indices not allowed in output. Write each output index once.");
    }
    ensure!(
        set(&output) & !all == 0,
        op,
        "All indices of the output must occur in an input. Remove the others from the output."
    );
    let sizes = sizes(op, &inputs, operands)?;
    Ok(Parsed { inputs, output, sizes })
}

/// The size of each index. Axes of size 1 are broadcast.
fn sizes(op: &str, inputs: &[Vec<Label>], operands: &[&Array]) -> Result<[usize; 128]> {
    let mut sizes = [1; 128];
    let mut known = 0u128;
    for (i, (labels, a)) in inputs.iter().zip(operands).enumerate() {
        let mut own = [None; 128];
        for (l, &n) in labels.iter().map(|l| *l as usize).zip(a.shape()) {
            if let Some(before) = own[l].filter(|m| *m != n) {
                bail!(
                    op,
                    "Dimensions of repeated subscripts do not have the same size ({before} != {n}). Use another letter for one of them."
                );
            }
            own[l] = Some(n);
        }
        for (axis, (l, &n)) in labels.iter().map(|l| *l as usize).zip(a.shape()).enumerate() {
            let size = &mut sizes[l];
            if known >> l & 1 == 0 || *size == 1 {
                *size = n;
            } else if n != 1 && *size != n {
                bail!(
                    op,
                    "Cannot broadcast dimension {axis} of input {i} with shape {} to size {size}. Give it the size 1 or {size}.",
                    Show(a.shape())
                );
            }
            known |= 1 << l;
        }
    }
    Ok(sizes)
}

impl Parsed {
    /// The number of elements over some indices.
    fn size(&self, bits: u128) -> u64 {
        (0..128)
            .filter(|l| bits >> l & 1 == 1)
            .fold(1, |n: u64, l| n.saturating_mul(self.sizes[l] as u64))
    }

    /// The cost of a step over `all` indices of `terms` operands. The indices `keep` remain.
    fn cost(&self, all: u128, keep: u128, terms: usize) -> Cost {
        let factor = (terms - 1).max(1) + (all & !keep != 0) as usize;
        let count = self.size(all).saturating_mul(factor as u64);
        Cost { count, scaling: all.count_ones() }
    }

    /// The order of contractions.
    pub fn path(&self) -> Path {
        let output = set(&self.output);
        let inputs: Vec<u128> = self.inputs.iter().map(|l| set(l)).collect();
        let all = inputs.iter().fold(0, |x, y| x | y);
        let naive = self.cost(all, output, inputs.len());
        if inputs.len() <= 2 {
            let steps = vec![Step { positions: (0..inputs.len()).collect(), keep: output }];
            return Path { steps, naive, chosen: naive };
        }
        let (steps, chosen) = self.greedy(inputs, output, naive.count);
        Path { steps, naive, chosen }
    }

    fn greedy(&self, mut terms: Vec<u128>, output: u128, limit: u64) -> (Vec<Step>, Cost) {
        let largest = terms.iter().fold(self.size(output), |n, t| n.max(self.size(*t)));
        let (mut steps, mut total) = (Vec::new(), Cost { count: 0, scaling: 0 });
        // Pairs that were considered before, and new pairs.
        let mut known: Vec<Pair> = Vec::new();
        let mut fresh = pairs(terms.len());
        while terms.len() > 1 {
            let consider = |&(x, y): &(usize, usize)| -> Option<Pair> {
                let both = terms[x] | terms[y];
                let others = terms.iter().enumerate().filter(|(i, _)| *i != x && *i != y);
                let keep = both & others.fold(output, |bits, (_, t)| bits | t);
                let (size, cost) = (self.size(keep), self.cost(both, keep, 2));
                if size > largest || total.count.saturating_add(cost.count) > limit {
                    return None;
                }
                let freed =
                    self.size(terms[x]) as i128 + self.size(terms[y]) as i128 - size as i128;
                Some(Pair { x, y, freed, keep, cost })
            };
            // Outer products come last.
            let meet = |(x, y): &&(usize, usize)| terms[*x] & terms[*y] != 0;
            known.extend(fresh.iter().filter(meet).filter_map(consider));
            if known.is_empty() {
                known.extend(fresh.iter().filter_map(consider));
            }
            let Some(best) = known.iter().min_by_key(|p| (-p.freed, p.cost.count)).cloned() else {
                let cost = self.cost(terms.iter().fold(0, |a, b| a | b), output, terms.len());
                total.count = total.count.saturating_add(cost.count);
                total.scaling = total.scaling.max(cost.scaling);
                steps.push(Step { positions: (0..terms.len()).collect(), keep: output });
                return (steps, total);
            };
            let (x, y) = (best.x, best.y);
            terms.remove(y);
            terms.remove(x);
            terms.push(best.keep);
            known.retain(|p| ![p.x, p.y].iter().any(|i| *i == x || *i == y));
            for p in &mut known {
                p.x -= (p.x > x) as usize + (p.x > y) as usize;
                p.y -= (p.y > x) as usize + (p.y > y) as usize;
            }
            let last = terms.len() - 1;
            fresh = (0..last).map(|i| (i, last)).collect();
            total.count = total.count.saturating_add(best.cost.count);
            total.scaling = total.scaling.max(best.cost.scaling);
            steps.push(Step { positions: vec![x, y], keep: best.keep });
        }
        (steps, total)
    }
}

/// A contraction of two terms that could come next.
#[derive(Clone)]
struct Pair {
    x: usize,
    y: usize,
    freed: i128,
    keep: u128,
    cost: Cost,
}

fn pairs(n: usize) -> Vec<(usize, usize)> {
    (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect()
}
