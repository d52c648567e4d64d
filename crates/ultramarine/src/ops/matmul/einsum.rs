//! Sums of products by subscripts, computed by transposes, products and matrix products.

use crate::error::{Result, bail};
use crate::ops::matmul::einsum_path::{Label, Parsed, parse, set};
use crate::{array::Array, arrays::Arrays, ops::rules::builders::without_axis, shape::Shape};

/// Returns the sum of products that `subscripts` describes: a letter for each axis of each operand, commas between the
/// operands, and after `->` the letters of the result.
///
/// Letters that are not in the result are summed over. If an operand repeats a letter, its diagonal is taken. Axes of
/// size 1 are broadcast. `...` stands for the axes without a letter, which are broadcast. Without `->` the result has
/// the ellipsis, then the letters that occur once, in alphabetical order. More than two operands are contracted
/// pairwise, in the order of [`einsum_path`].
///
/// ```
/// use ultramarine::{Array, einsum};
/// let a = Array::from_slice(&[1f32, 2., 3., 4., 5., 6.], &[2, 3])?;
/// assert_eq!(einsum("ij,kj->ik", &[&a, &a])?.to_vec::<f32>()?, [14., 32., 32., 77.]);
/// assert_eq!(einsum("ij->j", &[a])?.to_vec::<f32>()?, [5., 7., 9.]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] when the subscripts are malformed or do not fit the operands, or when integers would have to
/// be contracted. [`Array::matmul`] contracts integers.
pub fn einsum(subscripts: &str, operands: impl Arrays) -> Result<Array> {
    contracted(subscripts, &operands.borrowed())
}

fn contracted(subscripts: &str, operands: &[&Array]) -> Result<Array> {
    let parsed = parse("einsum", subscripts, operands)?;
    operands.iter().try_for_each(|a| a.computable("einsum"))?;
    let mut terms: Vec<Term> = Vec::with_capacity(operands.len());
    for (a, labels) in operands.iter().zip(&parsed.inputs) {
        let term = Term { array: Array::clone(a), labels: labels.clone(), named: set(labels) };
        terms.push(term.distinct()?);
    }
    for step in parsed.path().steps {
        let mut taken = Vec::with_capacity(step.positions.len());
        for at in step.positions.iter().rev() {
            taken.push(terms.remove(*at));
        }
        terms.push(contract(taken, step.keep, &parsed)?);
    }
    terms.swap_remove(0).arranged(&parsed.output)
}

/// Returns the order in which [`einsum`] contracts these operands, and a text about its cost. The order is a list of
/// steps. A step lists the positions of the operands that it removes from the list of operands; its result is appended
/// to that list.
///
/// ```
/// use ultramarine::{Array, Dtype, einsum_path};
/// let of = |m, n| Array::zeros(&[m, n], Dtype::Float32);
/// let (path, _) = einsum_path("ij,jk,kl->il", &[of(2, 10)?, of(10, 10)?, of(10, 3)?])?;
/// assert_eq!(path, [[0, 1], [0, 1]]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] when the subscripts are malformed or do not fit the operands.
pub fn einsum_path(subscripts: &str, operands: impl Arrays) -> Result<(Vec<Vec<usize>>, String)> {
    let path = parse("einsum_path", subscripts, &operands.borrowed())?.path();
    let about = [
        ("Complete contraction", subscripts.to_string()),
        ("Naive scaling", path.naive.scaling.to_string()),
        ("Optimized scaling", path.chosen.scaling.to_string()),
        ("Naive FLOP count", path.naive.count.to_string()),
        ("Optimized FLOP count", path.chosen.count.to_string()),
    ];
    let text = about.iter().map(|(what, value)| format!("{what:>22}:  {value}\n")).collect();
    Ok((path.steps.into_iter().map(|s| s.positions).collect(), text))
}

/// An operand or an intermediate result, with the indices of its axes.
struct Term {
    array: Array,
    labels: Vec<Label>,
    /// All its indices, including those of axes that are broadcast.
    named: u128,
}

impl Term {
    /// Takes the diagonal over the axes of each index that occurs more than once.
    fn distinct(mut self) -> Result<Term> {
        let repeated = |labels: &[Label]| {
            (0..labels.len()).find_map(|i| {
                let j = labels[..i].iter().position(|l| *l == labels[i])?;
                Some((j, i))
            })
        };
        while let Some((i, j)) = repeated(&self.labels) {
            self.array = self.array.diagonal(0, i as isize, j as isize)?;
            let label = self.labels.remove(j);
            self.labels.remove(i);
            self.labels.push(label);
        }
        Ok(self)
    }

    /// Removes axes of size 1 whose index has another size in other operands: they are broadcast, or summed over there.
    fn narrow(mut self, sizes: &[usize; 128]) -> Result<Term> {
        for i in (0..self.labels.len()).rev() {
            if self.array.shape()[i] == 1 && sizes[self.labels[i] as usize] != 1 {
                self.array = without_axis(&self.array, i)?;
                self.labels.remove(i);
            }
        }
        Ok(self)
    }

    /// Sums over the axes whose index is not in `keep`.
    fn summed(self, keep: u128) -> Result<Term> {
        let gone = |l: &Label| keep >> l & 1 == 0;
        let axes: Vec<isize> =
            (0..self.labels.len()).filter(|i| gone(&self.labels[*i])).map(|i| i as isize).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let array = self.array.sum(&axes)?;
        let labels = self.labels.into_iter().filter(|l| !gone(l)).collect();
        Ok(Term { array, labels, named: self.named & keep })
    }

    /// Brings the axes into the order of these indices, which are the term's. An axis that was removed returns with
    /// size 1.
    fn arranged(&self, labels: &[Label]) -> Result<Array> {
        let order: Vec<isize> = labels
            .iter()
            .filter_map(|l| self.labels.iter().position(|x| x == l))
            .map(|i| i as isize)
            .collect();
        let array = self.array.transpose_axes(&order)?;
        if order.len() == labels.len() {
            return Ok(array);
        }
        let shape: Shape = labels
            .iter()
            .map(|l| self.labels.iter().position(|x| x == l).map_or(1, |i| self.array.shape()[i]))
            .collect();
        array.reshape(&shape)
    }

    /// The array with its axes in three groups of indices; each of the last two groups is joined into one axis.
    fn matrix(&self, batch: &[Label], rows: &[Label], columns: &[Label]) -> Result<Array> {
        let order = [batch, rows, columns].concat();
        let array = self.arranged(&order)?;
        let (b, r) = (batch.len(), batch.len() + rows.len());
        let mut shape = Shape::from_slice(&array.shape()[..b]);
        shape.push(array.shape()[b..r].iter().product());
        shape.push(array.shape()[r..].iter().product());
        array.reshape(&shape)
    }
}

/// The product of the terms, summed over all indices but `keep`. The last term comes first.
fn contract(mut terms: Vec<Term>, keep: u128, parsed: &Parsed) -> Result<Term> {
    let mut out = match terms.pop() {
        Some(first) => first.narrow(&parsed.sizes)?,
        None => return Ok(Term { array: Array::scalar(1f32), labels: Vec::new(), named: 0 }),
    };
    // MLX multiplies elementwise in a step of more than two operands, so such a step accepts integers.
    let elementwise = terms.len() > 1;
    while let Some(next) = terms.pop() {
        // An index is summed over once no remaining term has it.
        let rest = terms.iter().fold(keep, |bits, t| bits | set(&t.labels));
        out = product(out, next.narrow(&parsed.sizes)?, rest, elementwise)?;
    }
    out.summed(keep)
}

/// The product of two terms, summed over the indices that are not in `keep`. Integers cannot be contracted by a matrix
/// product; they are an error unless `elementwise` allows multiplying them.
fn product(a: Term, b: Term, keep: u128, elementwise: bool) -> Result<Term> {
    let dtype = a.array.dtype().promote(b.array.dtype());
    let exact = !dtype.is_inexact();
    if exact && !elementwise && a.named & b.named & !keep != 0 {
        bail!(
            "einsum",
            "Only inexact types can be contracted, but got {dtype}. Convert the operands with astype(float32)."
        );
    }
    let (a, b) = {
        let (of_a, of_b) = (set(&a.labels), set(&b.labels));
        (a.summed(keep | of_b)?, b.summed(keep | of_a)?)
    };
    let (of_a, of_b) = (set(&a.labels), set(&b.labels));
    let named = (a.named | b.named) & keep;
    let pick = |t: &Term, bits: u128| -> Vec<Label> {
        t.labels.iter().copied().filter(|l| bits >> l & 1 == 1).collect()
    };
    let over = pick(&a, of_b & !keep);
    if over.is_empty() || (exact && elementwise) {
        let labels = [pick(&a, u128::MAX), pick(&b, !of_a)].concat();
        let array = a.arranged(&labels)?.multiply(&b.arranged(&labels)?)?;
        return Term { array, labels, named }.summed(keep);
    }
    let batch = pick(&a, of_b & keep);
    let (rows, columns) = (pick(&a, !of_b), pick(&b, !of_a));
    let array = a.matrix(&batch, &rows, &over)?.matmul(&b.matrix(&batch, &over, &columns)?)?;
    let size = |t: &Term, l: &Label| {
        t.labels.iter().position(|x| x == l).map_or(1, |i| t.array.shape()[i])
    };
    let shape: Shape = (batch.iter().chain(&rows).map(|l| size(&a, l)))
        .chain(columns.iter().map(|l| size(&b, l)))
        .collect();
    let array = array.reshape(&shape)?;
    Ok(Term { array, labels: [batch, rows, columns].concat(), named })
}
