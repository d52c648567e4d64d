//! Norms of vectors and matrices.

use crate::error::{Error, Result, bail};
use crate::ops::linalg::{matrices::check, svd::SingularValues};
use crate::ops::rules::builders::{bin, compute_dtype, like, un};
use crate::ops::shape::axes::KeepDims;
use crate::ops::shape::axes::Reduced;
use crate::ops::{reduce::axes_of, select::where_, shape::axes::Axes};
use crate::{array::Array, dtype::Dtype, shape};
use ultramarine_abi::schema::{binary, unary};

const OP: &str = "linalg::norm";

/// Order of a norm; see [`norm`]. A plain number converts: `2.0.into()`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormOrder {
    /// A number p. For vectors the norm is `sum(|x|^p)^(1/p)`, the largest or smallest magnitude for infinity and
    /// -infinity, and the number of nonzero elements for 0. For matrices it is the largest (for negative p the
    /// smallest) sum of magnitudes of a column for 1 and of a row for infinity, and the largest or smallest singular
    /// value for 2 and -2.
    Number(f64),
    /// For matrices, the root of the sum of squares.
    Frobenius,
    /// For matrices, the sum of the singular values.
    Nuclear,
}

impl From<f64> for NormOrder {
    fn from(p: f64) -> NormOrder {
        NormOrder::Number(p)
    }
}

/// The magnitudes of the elements, in a dtype in which they and their powers can be summed.
fn sizes(a: &Array) -> Result<Array> {
    let sizes = if a.dtype() == Dtype::Bool { a.clone() } else { a.abs()? };
    Ok(sizes.astype(compute_dtype(sizes.dtype().to_inexact())))
}

/// Converts the norm to the dtype that MLX gives most norms: the operand's.
fn finished(norm: Array, a: &Array) -> Array {
    norm.astype(a.dtype().to_inexact())
}

/// The square root, with derivative 0 at 0.
fn root(squares: &Array) -> Result<Array> {
    let zero = bin(binary::EQUAL, squares, &like(squares, 0.0))?;
    let safe = where_(&zero, like(squares, 1.0), squares)?;
    where_(&zero, like(squares, 0.0), un(unary::SQRT, &safe))
}

fn euclidean(a: &Array, over: Reduced<Axes>) -> Result<Array> {
    let norm = root(&un(unary::SQUARE, &sizes(a)?).sum(over)?)?;
    // The magnitudes of complex numbers are real.
    Ok(if a.dtype().is_floating() { norm.astype(a.dtype()) } else { norm })
}

fn of_vectors(a: &Array, p: f64, over: Reduced<Axes>) -> Result<Array> {
    if p == 2.0 {
        return euclidean(a, over);
    }
    let size = sizes(a)?;
    let norm = if p == 0.0 {
        bin(binary::NOT_EQUAL, &size, &like(&size, 0.0))?.sum(over)?
    } else if p == 1.0 {
        size.sum(over)?
    } else if p == f64::INFINITY {
        size.max(over)?
    } else if p == f64::NEG_INFINITY {
        size.min(over)?
    } else {
        let sum = size.power(like(&size, p))?.sum(over)?;
        sum.power(like(&sum, 1.0 / p))?
    };
    Ok(finished(norm, a))
}

/// The singular values of the matrices over two axes. They lie along the last axis.
fn singular_values(a: &Array, [row, column]: [usize; 2]) -> Result<Array> {
    let order: Vec<isize> = (0..a.ndim())
        .filter(|i| *i != row && *i != column)
        .chain([row, column])
        .map(|i| i as isize)
        .collect();
    let a = a.transpose_axes(&order)?;
    check("linalg::svd", &a)?;
    SingularValues.of(&a)
}

/// Rejects orders that matrices do not have.
fn known_of_matrices(ord: NormOrder) -> Result<()> {
    match ord {
        NormOrder::Number(p) if ![1.0, 2.0, f64::INFINITY].contains(&p.abs()) => Err(Error::value(
            OP,
            format!(
                "Invalid ord {p} for matrix norm. Use 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'."
            ),
        )),
        _ => Ok(()),
    }
}

fn of_matrices(a: &Array, ord: NormOrder, axes: [usize; 2], keepdims: bool) -> Result<Array> {
    let signed = axes.map(|i| i as isize);
    let [row, column] = signed;
    // The largest or smallest value along one axis of the sums along the other.
    let sums = |over: isize, of: isize, largest: bool| -> Result<Array> {
        let sums = sizes(a)?.sum(KeepDims(over))?;
        let most = if largest { sums.max(KeepDims(of))? } else { sums.min(KeepDims(of))? };
        Ok(finished(most, a))
    };
    let values = || singular_values(a, axes);
    let (norm, kept) = match ord {
        NormOrder::Frobenius => return euclidean(a, Reduced::new(signed, keepdims)),
        // MLX returns a real dtype for the nuclear norm only.
        NormOrder::Nuclear => (values()?.sum(-1)?, false),
        NormOrder::Number(2.0) => (values()?.max(-1)?, false),
        NormOrder::Number(-2.0) => (values()?.min(-1)?, false),
        NormOrder::Number(1.0) => (sums(row, column, true)?, true),
        NormOrder::Number(-1.0) => (sums(row, column, false)?, true),
        NormOrder::Number(f64::INFINITY) => (sums(column, row, true)?, true),
        NormOrder::Number(f64::NEG_INFINITY) => (sums(column, row, false)?, true),
        NormOrder::Number(_) => return known_of_matrices(ord).map(|()| a.clone()),
    };
    let of_values =
        |norm: Array| Ok(if ord == NormOrder::Nuclear { norm } else { finished(norm, a) });
    match (kept, keepdims) {
        (true, false) => norm.squeeze(signed),
        (false, true) => {
            let mut sorted = signed;
            sorted.sort_unstable();
            of_values(norm)?.expand_dims(sorted)
        }
        (false, false) => of_values(norm),
        (true, true) => Ok(norm),
    }
}

/// Returns norms over one axis, for vectors, or over two axes, for matrices (rows first). Without `ord` the norm is the
/// root of the sum of squares. Without `axes` it is the norm of the whole array, which must have one or two dimensions
/// if `ord` is given. Integers give float32. Norms based on singular values support float32, float64 and complex64.
///
/// Where there is no derivative, a subgradient is used: 0 for the root of squares at zero, as for `|x|`, and that of
/// one element if several share the largest magnitude.
///
/// ```
/// use ultramarine::{Array, linalg::{NormOrder, norm}};
/// let a = Array::from_slice(&[3.0f32, -4.0, 0.0, 1.0], &[2, 2])?;
/// assert_eq!(norm(&a, Some(NormOrder::Number(1.0)), ..)?.item::<f32>()?, 5.0);
/// assert_eq!(norm(&a, None, 1)?.to_vec::<f32>()?, [5.0, 1.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Index`] for an axis out of range; [`Error::Value`] for an axis that is named twice, more than two axes, an
/// `ord` that vectors or matrices do not have, or the largest or smallest magnitude of an empty array.
pub fn norm(a: &Array, ord: Option<NormOrder>, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
    a.computable(OP)?;
    let Reduced { axes, keepdims } = axes.into();
    let axes = axes.named(a.ndim());
    let axes = axes.as_deref();
    let many = || {
        Error::value(
            OP,
            "Received too many axes for norm. Pass one axis for vectors, two for matrices.",
        )
    };
    let Some(ord) = ord else {
        if axes.is_some_and(|x| x.len() > 2) {
            return Err(many());
        }
        let named: Vec<isize> = axes_of(OP, a, axes)?.iter().map(|i| *i as isize).collect();
        return euclidean(a, Reduced::new(named, keepdims));
    };
    let all: Vec<isize> = (0..a.ndim() as isize).collect();
    let axes = axes.unwrap_or(&all);
    match (ord, axes) {
        (NormOrder::Number(p), [_]) => of_vectors(a, p, Reduced::new(axes, keepdims)),
        (_, [row, column]) => {
            known_of_matrices(ord)?;
            axes_of(OP, a, Some(axes))?;
            let at = |axis: isize| shape::normalize_axis(OP, axis, a.ndim());
            of_matrices(a, ord, [at(*row)?, at(*column)?], keepdims)
        }
        (NormOrder::Number(_), _) => Err(many()),
        (_, _) => {
            let name = if ord == NormOrder::Nuclear { "nuc" } else { "fro" };
            bail!(
                OP,
                "Norm '{name}' only supported for matrices, but received {} axis/axes. Pass two axes.",
                axes.len()
            )
        }
    }
}
