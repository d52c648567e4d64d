//! Eigenvalues and eigenvectors of square matrices.

use crate::ops::linalg::derivatives::{
    diagonal, gaps, minus, of_columns, one, real, with_diagonal,
};
use crate::ops::linalg::{inverse::solve, matrices};
use crate::ops::rules::builders::{plus, un, with_axis};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::shape::axes::KeepDims;
use crate::ops::{Cotangents, Jvp, Rules, Vjp, attributes, matmul::adjoint};
use crate::{array::Array, dtype::Dtype, error::Result, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op, unary};

/// Returns eigenvalues and eigenvectors `(w, v)` of square matrices: `a v = v diag(w)`.
///
/// `a` is `(..., n, n)` of float32, float64 (computed in float64) or complex64. w, `(..., n)`, in
/// no particular order, and v, `(..., n, n)`, are complex64. Columns of v have norm 1, and a real
/// largest element.
///
/// ```
/// use ultramarine::{Array, Complex32, linalg};
/// let quarter_turn = Array::from_slice(&[0.0f32, -1.0, 1.0, 0.0], &[2, 2])?;
/// let (w, _v) = linalg::eig(&quarter_turn)?;
/// let w = w.to_vec::<Complex32>()?;
/// assert!(w.iter().all(|w| (w.im.abs() - 1.0).abs() < 1e-6));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes, fewer than two dimensions, or matrices that are not
/// square. Evaluation fails with [`crate::Error::Runtime`] if an element is infinite or NaN.
pub fn eig(a: &Array) -> Result<(Array, Array)> {
    matrices::check_square("linalg::eig", a)?;
    let [w, v] = Eig.of(a)?;
    Ok((w, v))
}

/// Returns the eigenvalues of [`eig`] alone: complex64 of shape `(..., n)`.
///
/// # Errors
/// As [`eig`].
pub fn eigvals(a: &Array) -> Result<Array> {
    matrices::check_square("linalg::eigvals", a)?;
    Eigvals.of(a)
}

attributes! {
    /// Eigenvalues and eigenvectors.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Eig;
}

impl Eig {
    /// The eigenvalues and eigenvectors of square matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 2]> {
        let results = smallvec![
            (matrices::with_last(a, &[matrices::sizes(a).0]), Dtype::Complex64),
            (Shape::from_slice(a.shape()), Dtype::Complex64),
        ];
        matrices::exactly("eig", Array::multi_output(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl MultiOutputRules for Eig = "eig": EIG, |_| NoAttrs::new(), |_, node| {
        let (batch, [m, n], _) = matrices::operand(node)?;
        let of = |last: &[usize]| (matrices::stacked(batch, last), Dtype::Complex64);
        Some(m == n && node.gives_all(&[of(&[n]), of(&[n, n])]))
    }, eig_vjp, eig_jvp
}

attributes! {
    /// Eigenvalues alone.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Eigvals;
}

impl Eigvals {
    /// The eigenvalues of square matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        let shape = matrices::with_last(a, &[matrices::sizes(a).0]);
        Array::try_of(self, &[a], shape, Dtype::Complex64)
    }
}

impl Rules for Eigvals {
    matrices::kernel!("eigvals": EIGVALS, |_| NoAttrs::new(), |_, node| {
        let (batch, [m, n], _) = matrices::operand(node)?;
        Some(m == n && node.gives(&matrices::stacked(batch, &[n]), Dtype::Complex64))
    });

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        // As [`eig_vjp`], for eigenvalues alone. The rule computes the vectors itself.
        let a = &v.primals[0];
        let [_, vectors] = Eig.of(a)?;
        let transposed = adjoint(&vectors)?;
        let inner = with_axis(v.cotangent, v.cotangent.ndim())?.multiply(&transposed)?;
        one(as_operand(&solve(&transposed, &inner)?, a.dtype())?)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        // As [`eig_jvp`], for eigenvalues alone.
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        let [_, v] = Eig.of(&j.primals[0])?;
        let inner = solve(&v, &t.astype(v.dtype()).matmul(&v)?)?;
        Ok(Some(diagonal(&inner)?))
    }
}

/// Converts a complex gradient to the dtype of the operand.
fn as_operand(a: &Array, dtype: Dtype) -> Result<Array> {
    if dtype.is_complex() { Ok(a.clone()) } else { Ok(a.real()?.astype(dtype)) }
}

/// `a' = V^-H (diag(w') + conj(F) * (V^H V' - V^H V diag(Re(V^H V')))) V^H`: vectors keep norm 1.
fn eig_vjp(v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
    let (w, vectors) = (&v.outputs[0], &v.outputs[1]);
    let transposed = adjoint(vectors)?;
    let from_w = v.cotangents[0].as_ref().map(with_diagonal);
    let from_v = v.cotangents[1].as_ref().map(|c| -> Result<Array> {
        let inner = transposed.matmul(c)?;
        let length = of_columns(&real(&diagonal(&inner)?)?)?;
        let inner = minus(&inner, &transposed.matmul(vectors)?.multiply(&length)?)?;
        un(unary::CONJUGATE, &gaps(w)?).multiply(&inner)
    });
    let inner = plus(from_w.transpose()?, from_v.transpose()?)?;
    let Some(inner) = inner else { return Ok(smallvec![None]) };
    let a = solve(&transposed, &inner.matmul(&transposed)?)?;
    one(as_operand(&a, v.primals[0].dtype())?)
}

/// `dw = diag(V^-1 da V)`, `dV = V (F * (V^-1 da V))` minus the part that would change the vectors'
/// norms.
fn eig_jvp(j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 2]) };
    let (w, v) = (&j.outputs[0], &j.outputs[1]);
    let inner = solve(v, &t.astype(v.dtype()).matmul(v)?)?;
    let dv = v.matmul(&gaps(w)?.multiply(&inner)?)?;
    let length = un(unary::CONJUGATE, v).multiply(&dv)?.sum(KeepDims(-2))?;
    let dv = minus(&dv, &v.multiply(&real(&length)?)?)?;
    Ok(vec![Some(diagonal(&inner)?), Some(dv)])
}
