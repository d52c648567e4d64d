//! Systems of linear equations with triangular matrices.

use crate::error::{Error, Result, ensure};
use crate::ops::linalg::derivatives::{negated, solved};
use crate::ops::rules::builders::{plus, with_axis, without_axis};
use crate::ops::{
    Call, Cotangents, Draft, Jvp, Rules, Vjp, Vmap, attributes, linalg::matrices, matmul::adjoint,
    rules::batching::batched,
};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, backend::Exec, node::Value};
use smallvec::smallvec;
use ultramarine_abi::schema::{TriangleAttrs, op};

/// Returns the solution x of `a x = b` for triangular matrices.
///
/// `a` is `(..., n, n)`; only its lower triangle, or with `upper` the upper one, is read. b is
/// `(n)` or `(..., n, k)`, and x has its shape. Batches are broadcast. Operands are promoted to
/// float32, float64 or complex64.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 1.0, 4.0], &[2, 2])?;
/// let b = Array::from_slice(&[2.0f32, 9.0], &[2])?;
/// assert_eq!(linalg::solve_triangular(&a, &b, false)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for other dtypes, `a` that is not square, or shapes that do not fit. Evaluation fails
/// with [`Error::Runtime`] if a diagonal element is zero.
pub fn solve_triangular(a: &Array, b: &Array, upper: bool) -> Result<Array> {
    solve_system("linalg::solve_triangular", a, b, |a, b| SolveTriangular { upper }.of(a, b))
}

/// Solves systems of linear equations by `solve`, which takes matrices of one dtype. A vector becomes a matrix of one
/// column.
pub(crate) fn solve_system(
    op: &str,
    a: &Array,
    b: &Array,
    solve: impl FnOnce(&Array, &Array) -> Result<Array>,
) -> Result<Array> {
    check_system(op, a, b)?;
    let dtype = a.dtype().promote(b.dtype());
    let (a, b) = (a.promoted(dtype), b.promoted(dtype));
    if b.ndim() > 1 {
        return solve(&a, &b);
    }
    let x = solve(&a, &with_axis(&b, 1)?)?;
    without_axis(&x, x.ndim() - 1)
}

/// Rejects operands that are not systems of linear equations in a supported dtype.
fn check_system(op: &str, a: &Array, b: &Array) -> Result<()> {
    let few = |which: &str, least: usize, x: &Array| {
        let text = format!(
            "{which} input must have >= {least} dimensions. Received array with {} dimensions. Reshape or expand it.",
            x.ndim()
        );
        Error::value(op, text)
    };
    if a.ndim() < 2 {
        return Err(few("First", 2, a));
    }
    if b.ndim() < 1 {
        return Err(few("Second", 1, b));
    }
    let (m, n) = matrices::sizes(a);
    ensure!(
        m == n,
        op,
        "First input must be a square matrix. Received array with shape {}. Pass as many rows as columns.",
        Show(a.shape())
    );
    ensure!(
        b.shape()[b.ndim().saturating_sub(2)] == n,
        op,
        "Last dimension of first input with shape {} must match second to last dimension of second input with shape {}. Transpose or reshape one of them.",
        Show(a.shape()),
        Show(b.shape())
    );
    ensure!(
        matrices::solved(a.dtype().promote(b.dtype())),
        op,
        "Input arrays must promote to float32, float64 or complex64. Received arrays with type {} and {}. Convert them with astype(float32).",
        a.dtype(),
        b.dtype()
    );
    Ok(())
}

attributes! {
    /// Solves with one triangle of the first operand. The batch dimensions have to be equal.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct SolveTriangular {
        pub upper: bool,
    }
}

impl SolveTriangular {
    /// The solutions for matrices `(..., n, n)` and `(..., n, k)` of one dtype; batches are broadcast.
    pub fn of(self, a: &Array, b: &Array) -> Result<Array> {
        let batch = |x: &Array| Shape::from_slice(&x.shape()[..x.ndim() - 2]);
        let mut shape = shape::broadcast("linalg::solve_triangular", &batch(a), &batch(b))?;
        let (axes, (n, k)) = (shape.len(), matrices::sizes(b));
        shape.extend([n, n]);
        let a = a.broadcast_to(&shape)?;
        shape[axes + 1] = k;
        shape::check("linalg::solve_triangular", &shape)?;
        let b = b.broadcast_to(&shape)?;
        Array::try_of(self, &[&a, &b], shape, b.dtype())
    }
}

impl Rules for SolveTriangular {
    fn name(&self) -> &'static str {
        "solve_triangular"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(a, _), b], out)) = node.of() else { return false };
        let ([batch @ .., m, n], [other @ .., rows, _]) = (a, b.0) else { return false };
        node.follows(op::SOLVE_TRIANGULAR, None, &[])
            && (m, batch) == (n, other)
            && rows == n
            && b == out
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, op::SOLVE_TRIANGULAR, &TriangleAttrs::new(self.upper as u32), &[])
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        // Of `a x = b`: `b' = a^-H x'`, `a' = -b' x^H` in the triangle.
        let b = solved(&adjoint(&v.primals[0])?, v.cotangent, !self.upper)?;
        let a = if v.wanted[0] {
            let full = negated(&b.matmul(&adjoint(v.output)?)?);
            Some(if self.upper { full.triu(0)? } else { full.tril(0)? })
        } else {
            None
        };
        Ok(smallvec![a, Some(b)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        // `dx = a^-1 (db - da x)`.
        let from_a = match &j.tangents[0] {
            Some(t) => {
                let t = if self.upper { t.triu(0)? } else { t.tril(0)? };
                Some(negated(&t.matmul(j.output)?))
            }
            None => None,
        };
        let right = plus(j.tangents[1].clone(), from_a)?;
        right.map(|r| solved(&j.primals[0], &r, self.upper)).transpose()
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let operand = |i: usize| batched(&v.inputs[i], v.axes[i], v.size);
        Ok((self.of(&operand(0)?, &operand(1)?)?, Some(0)))
    }
}
